#include "schedules/heuristic/list_order.h"

#include <algorithm>

namespace stagewright::planning {

ListOrder::ListOrder(const Placement& placement, int ranks, int microbatches)
    : m_placement(placement), m_microbatches(microbatches), m_ranks(static_cast<std::size_t>(ranks)),
      m_stages(static_cast<std::size_t>(placement.stages()))
{
    for (int stage = 0; stage < placement.stages(); ++stage) {
        at(stage).rank = placement.rankOf(stage, -1);
        m_ranks[static_cast<std::size_t>(at(stage).rank)].stages.push_back(stage);
    }
}

Nanos ListOrder::forwardArrival(int stage)
{
    const auto microbatch = static_cast<std::size_t>(at(stage).forwards);
    if (at(stage).forwards == m_microbatches) return never;
    if (stage == 0) return 0;
    const Stage& before = at(stage - 1);
    if (before.forwardEnds.size() <= microbatch) return never;
    const Nanos message = (*m_times)[static_cast<std::size_t>(stage - 1)].message;
    return before.forwardEnds[microbatch] + (before.rank == at(stage).rank ? 0 : message);
}

Nanos ListOrder::gradientArrival(int stage)
{
    const Stage& own = at(stage);
    const auto microbatch = static_cast<std::size_t>(own.gradients);
    if (own.forwardEnds.size() <= microbatch) return never;
    const Nanos ready = own.forwardEnds[microbatch];
    if (stage + 1 == m_placement.stages()) return ready;
    const Stage& after = at(stage + 1);
    if (after.gradientEnds.size() <= microbatch) return never;
    const Nanos message = (*m_times)[static_cast<std::size_t>(stage)].message;
    return std::max(ready, after.gradientEnds[microbatch] + (after.rank == own.rank ? 0 : message));
}

void ListOrder::choose(int index)
{
    Rank& rank = m_ranks[static_cast<std::size_t>(index)];
    rank.next = never;
    int bestPlace = 0, longest = -1;
    const auto count = static_cast<int>(rank.stages.size());
    const auto offer = [&](Nanos arrival, OpKind kind, int stage, int microbatch, int place) {
        if (arrival >= never) return;
        const Nanos start = std::max(arrival, rank.clock);
        if (start > rank.next || (start == rank.next && place >= bestPlace)) return;
        rank.next = start;
        rank.op = makeOp(kind, stage, microbatch);
        bestPlace = place;
    };
    for (int k = 0; k < count; ++k) {
        const int stage = rank.stages[static_cast<std::size_t>(k)];
        const Stage& one = at(stage);
        offer(gradientArrival(stage), OpKind::InputGrad, stage, one.gradients, count - 1 - k);
        if (m_rule.open == 0 || one.forwards - one.gradients < m_rule.open)
            offer(forwardArrival(stage), OpKind::Forward, stage, one.forwards,
                  count + (m_rule.laterForward ? count - 1 - k : k));
        if (one.weights == one.gradients) continue;
        const Nanos weight = (*m_times)[static_cast<std::size_t>(stage)].weight;
        if (longest < 0 || weight > (*m_times)[static_cast<std::size_t>(longest)].weight) longest = stage;
    }
    if (longest < 0 || rank.next <= rank.clock) return;
    rank.next = rank.clock;
    rank.op = makeOp(OpKind::WeightGrad, longest, at(longest).weights);
}

Nanos ListOrder::run(const std::vector<StageTimes>& stages, const ListRule& rule, Nanos limit)
{
    m_times = &stages;
    m_rule = rule;
    for (Stage& one : m_stages) {
        one.forwards = one.gradients = one.weights = 0;
        one.forwardEnds.clear();
        one.gradientEnds.clear();
    }
    for (Rank& one : m_ranks) {
        one.clock = 0;
        one.order.clear();
    }
    const auto ranks = static_cast<int>(m_ranks.size());
    for (int rank = 0; rank < ranks; ++rank) choose(rank);
    Nanos end = 0;
    for (std::int64_t left = std::int64_t{3} * m_placement.stages() * m_microbatches; left > 0; --left) {
        const auto first = std::min_element(m_ranks.begin(), m_ranks.end(),
                                            [](const Rank& a, const Rank& b) { return a.next < b.next; });
        if (first->next >= never) return never;
        ++m_ops;
        const Op op = first->op;
        Stage& stage = at(op.stage);
        const StageTimes& times = stages[op.stage];
        const bool forward = op.kind == OpKind::Forward, gradient = op.kind == OpKind::InputGrad;
        first->clock = first->next + (forward ? times.forward : gradient ? times.input : times.weight);
        end = std::max(end, first->clock);
        if (end >= limit) return never;
        first->order.push_back(op);
        ++(forward ? stage.forwards : gradient ? stage.gradients : stage.weights);
        if (forward) stage.forwardEnds.push_back(first->clock);
        if (gradient) stage.gradientEnds.push_back(first->clock);
        choose(stage.rank);
        const int to = forward ? op.stage + 1 : gradient ? op.stage - 1 : -1;
        if (to >= 0 && to < m_placement.stages() && at(to).rank != stage.rank) choose(at(to).rank);
    }
    return end;
}

Schedule ListOrder::schedule() const
{
    Schedule out;
    out.name = "plan";
    out.ranks = static_cast<int>(m_ranks.size());
    out.stages = m_placement.stages();
    out.microbatches = m_microbatches;
    out.placement = m_placement;
    for (const Rank& one : m_ranks) out.order.push_back(one.order);
    out.paired.resize(out.order.size());
    return out;
}

} // namespace stagewright::planning
