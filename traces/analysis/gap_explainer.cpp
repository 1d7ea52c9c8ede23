#include "traces/analysis/gap_explainer.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/message_view.h"
#include "traces/analysis/explain_gap.h"

namespace stagewright {

namespace {

constexpr std::size_t longestChain = 256;
constexpr Nanos longAgo = std::numeric_limits<Nanos>::min() / 4; // a transfer that never holds anybody up

} // namespace

GapExplainer::GapExplainer(const StepContext& context)
    : m_timeline(context.timeline()), m_ops(context.ops()), m_graph(context.graph()), m_levels(context.levels())
{
}

std::string GapExplainer::nameOf(SpanId span) const
{
    return fmt::format("{} on rank {}", m_timeline.nameOf(m_timeline.spans()[span]), m_timeline.trackOf(span).rank);
}

// The slot whose result the rank waited for: of a drain the one that ends last of all.
SlotId GapExplainer::waitedFor(const Gap& gap) const
{
    const auto spans = m_timeline.spans();
    SlotId found = noSlot;
    if (gap.next == noSpan) {
        for (SlotId id = 0; id < m_graph.size(); ++id)
            if (m_graph.slot(id).busy &&
                (found == noSlot || spans[m_graph.slot(id).first].end > spans[m_graph.slot(found).first].end))
                found = id;
        return found;
    }
    // a message of its own, a reduction
    if (gap.wait != noSpan || (gap.cause == IdleCause::PeerWait && gap.blamed != noSpan)) {
        const SlotId peer = gap.wait != noSpan && gap.cause == IdleCause::PeerWait ? busyPeer(gap) : noSlot;
        return peer != noSlot ? peer : m_graph.slotOf(gap.blamed);
    }
    const SlotId slot = m_graph.slotOf(gap.next);
    if (slot == noSlot) return noSlot;
    Nanos latest = std::numeric_limits<Nanos>::min();
    const auto [first, last] = m_graph.inputsOf(slot);
    for (std::size_t i = first; i < last; ++i) {
        const SlotId from = m_graph.inputs()[i].from;
        const Nanos arrival = spans[m_graph.slot(from).first].end + m_graph.asItWas().transfer[i];
        if (arrival <= latest) continue;
        latest = arrival;
        found = from;
    }
    return found;
}

// The last op of the rank that a send waits for, before it posts the receive.
SlotId GapExplainer::busyPeer(const Gap& gap) const
{
    const auto message = messageOfWait(m_timeline, gap.wait);
    if (!message || message->receive == noSpan) return noSlot;
    const int peer = m_timeline.trackOf(message->receive).rank;
    const auto spans = m_timeline.spans();
    SlotId found = noSlot;
    for (const SpanId id : m_ops.all(peer)) {
        if (spans[id].end > gap.end) break;
        if (const SlotId slot = m_graph.slotOf(id); slot != noSlot) found = slot;
    }
    return found;
}

GapChain GapExplainer::chainOf(const Gap& gap) const
{
    GapChain chain;
    const auto spans = m_timeline.spans();
    SlotId at = waitedFor(gap);
    if (at == noSlot) return chain;
    const auto messageOf = [&](SlotId slot) {
        return isReturn(spans[m_graph.slot(slot).first].op.kind) ? "gradient" : "output";
    };
    std::string why = gap.next == noSpan ? std::string("ends the step")
                                         : fmt::format("{1} waits for its {0}", messageOf(at), nameOf(gap.next));
    if (gap.wait != noSpan)
        why = m_graph.slotOf(gap.blamed) == at
                  ? fmt::format("rank {1} waits for its {0}", messageOf(at), gap.rank)
                  : fmt::format("keeps rank {} busy until it can receive", m_graph.slot(at).rank);
    else if (gap.cause == IdleCause::PeerWait && m_graph.slotOf(gap.blamed) == at)
        why = fmt::format("keeps rank {} busy until it reaches the reduction", m_graph.slot(at).rank);
    chain.push_back({m_graph.slot(at).first, std::move(why)});
    while (chain.size() < longestChain) {
        const Slot& slot = m_graph.slot(at);
        if (gap.next == noSpan ? spans[slot.first].start <= gap.start : slot.rank == gap.rank && chain.size() > 1) {
            chain.back().why += gap.next == noSpan
                                    ? fmt::format("; it is already running when rank {} finishes", gap.rank)
                                    : std::string("; the waiting rank ran it itself: a round trip");
            break;
        }
        const bool culprit = slot.first == gap.blamed || slot.second == gap.blamed;
        if (culprit && gap.cause == IdleCause::Straggler) {
            chain.back().why +=
                gap.rankFactor > 0 ? fmt::format("; rank {} takes longer than other ranks for the same work", slot.rank)
                                   : std::string("; it takes longer than the median of its kind");
            break;
        }
        if (culprit && gap.cause == IdleCause::Microbatch) {
            chain.back().why += "; its microbatch takes longer than the others on every stage";
            break;
        }
        if (culprit && gap.cause == IdleCause::Imbalance) {
            chain.back().why += "; its stage costs more than the average stage";
            break;
        }
        const SlotId from = m_graph.releasedBy(at);
        if (from == noSlot) {
            chain.back().why += "; the step starts with it";
            break;
        }
        const bool sameRank = m_graph.before(at) == from;
        chain.push_back({m_graph.slot(from).first,
                         sameRank ? fmt::format("keeps rank {} busy until {} starts", slot.rank,
                                                m_timeline.nameOf(spans[slot.first]))
                                  : fmt::format("{1} waits for its {0}", messageOf(from), nameOf(slot.first))});
        at = from;
    }
    return chain;
}

std::optional<GapExperiment> GapExplainer::experimentOf(const Gap& gap, const GapChain& chain) const
{
    const auto spans = m_timeline.spans();
    const auto time = [&](Nanos nanos) { return formatDuration(nanos, m_timeline.timeUnit()); };
    StepScenario scenario = m_graph.asItWas();
    const SlotId next = gap.next == noSpan ? noSlot : m_graph.slotOf(gap.next);
    std::string change;
    const IdleCause cause = gap.wait != noSpan ? IdleCause::HeadOfLine : gap.cause;
    switch (cause) {
    case IdleCause::Warmup:
    case IdleCause::Drain: {
        std::size_t halved = 0;
        for (const GapLink& link : chain) {
            if (gap.next == noSpan && spans[link.span].start < gap.start) continue;
            const SlotId slot = m_graph.slotOf(link.span);
            scenario.duration[slot] /= 2;
            ++halved;
        }
        if (halved == 0 && next != noSlot) { // nothing to wait for: a late launch
            scenario.delay[next] = std::min<Nanos>(scenario.delay[next], 0);
            change = fmt::format("if rank {} started it at once", gap.rank);
            break;
        }
        if (halved == 0) return std::nullopt;
        change = fmt::format("if the {} op{} it waits for took half as long, as with twice as many chunks,", halved,
                             halved == 1 ? "" : "s");
        break;
    }
    case IdleCause::Dependency: {
        const SlotId producer = gap.blamed == noSpan ? noSlot : m_graph.slotOf(gap.blamed);
        if (producer == noSlot) return std::nullopt;
        const Nanos earlier = std::min(scenario.duration[producer], gap.end - gap.start);
        scenario.duration[producer] -= earlier;
        change = fmt::format("if {} ended {} earlier", nameOf(gap.blamed), time(earlier));
        break;
    }
    case IdleCause::Straggler:
    case IdleCause::Imbalance: {
        const SlotId culprit = gap.blamed == noSpan ? noSlot : m_graph.slotOf(gap.blamed);
        if (culprit == noSlot) return std::nullopt;
        if (gap.rankFactor > 0) {
            const int rank = m_graph.slot(culprit).rank;
            for (SlotId id = 0; id < m_graph.size(); ++id)
                if (m_graph.slot(id).busy && m_graph.slot(id).rank == rank) scenario.duration[id] = m_levels.even[id];
            change = fmt::format("if rank {} were as fast as the others for the same work", rank);
            break;
        }
        if (gap.cause == IdleCause::Straggler) {
            scenario.duration[culprit] = m_levels.median[culprit];
            change = fmt::format("if {} took {}, the median of its kind", nameOf(gap.blamed),
                                 time(m_levels.median[culprit]));
            break;
        }
        const int stage = spans[gap.blamed].op.stage;
        for (SlotId id = 0; id < m_graph.size(); ++id)
            if (m_graph.slot(id).busy && spans[m_graph.slot(id).first].op.stage == stage)
                scenario.duration[id] = m_levels.mean[id];
        change = fmt::format("if stage {} cost as much as the average stage", stage);
        break;
    }
    case IdleCause::Microbatch: {
        if (gap.blamed == noSpan) return std::nullopt;
        const int microbatch = spans[gap.blamed].op.microbatch;
        for (SlotId id = 0; id < m_graph.size(); ++id)
            if (spans[m_graph.slot(id).first].op.microbatch == microbatch ||
                (m_graph.slot(id).second != noSpan && spans[m_graph.slot(id).second].op.microbatch == microbatch))
                scenario.duration[id] = m_levels.alike[id];
        change = fmt::format("if microbatch {} took as long as the others", microbatch);
        break;
    }
    case IdleCause::PeerWait:
    case IdleCause::HeadOfLine: {
        if (next == noSlot) return std::nullopt;
        const SlotId producer = gap.blamed == noSpan ? noSlot : m_graph.slotOf(gap.blamed);
        bool shortened = false;
        const auto [first, last] = m_graph.inputsOf(next);
        for (std::size_t i = first; i < last; ++i)
            if (m_graph.inputs()[i].from == producer && m_graph.slot(producer).rank != gap.rank) {
                scenario.transfer[i] -= gap.end - gap.start;
                shortened = true;
            }
        if (!shortened) { // the rank waited in a message of its own, or in a reduction before the op
            SlotId at = next;
            while (m_graph.before(at) != noSlot && spans[m_graph.slot(m_graph.before(at)).first].start >= gap.end)
                at = m_graph.before(at);
            scenario.delay[at] -= gap.end - gap.start;
        }
        change = gap.blamed != noSpan && isCollective(spans[gap.blamed].op.kind) &&
                         m_timeline.trackOf(gap.blamed).rank == gap.rank
                     ? "if the other ranks had come to it in time"
                 : gap.cause == IdleCause::PeerWait   ? "if the peer had been ready, or sends were buffered,"
                 : gap.cause == IdleCause::HeadOfLine ? "if the message had not been queued behind others"
                                                      : "if it continued at once, as with buffered sends,";
        break;
    }
    case IdleCause::Transfer: {
        if (gap.blamed == noSpan) return std::nullopt;
        const int from = m_timeline.trackOf(gap.blamed).rank;
        for (std::size_t i = 0; i < m_graph.inputs().size(); ++i) {
            const SlotInput& input = m_graph.inputs()[i];
            if (m_graph.slot(input.from).rank == from && m_graph.slot(input.to).rank == gap.rank)
                scenario.transfer[i] = 0;
        }
        change = fmt::format("with zero transfer time from rank {} to rank {}", from, gap.rank);
        break;
    }
    case IdleCause::Memory:
    case IdleCause::Order: {
        if (next == noSlot) return std::nullopt;
        auto& row = scenario.order[static_cast<std::size_t>(gap.rank)];
        const auto place = std::find(row.begin(), row.end(), next);
        if (!gap.hasReadyOp) { // a delay that the schedule asks for
            if (place == row.begin()) return std::nullopt;
            for (const SlotId id : row) {
                const Span& span = spans[m_graph.slot(id).first];
                if (isDelay(span.op.kind) && span.end > gap.start && span.start < gap.end) scenario.duration[id] = 0;
            }
            change = "without the delay";
            break;
        }
        const SlotId ready = m_graph.slotOf(m_ops.find(gap.readyOp));
        const auto from = std::find(row.begin(), row.end(), ready);
        if (ready == noSlot || from == row.end() || place == row.end() || from < place) return std::nullopt;
        std::rotate(place, from, from + 1);
        change = gap.cause == IdleCause::Memory ? fmt::format("with room for {} here", toText(gap.readyOp))
                                                : fmt::format("with {} here", toText(gap.readyOp));
        break;
    }
    case IdleCause::RecomputeWait: {
        if (next == noSlot) return std::nullopt;
        const auto [first, last] = m_graph.inputsOf(next);
        for (std::size_t i = first; i < last; ++i)
            if (m_graph.slot(m_graph.inputs()[i].from).rank != gap.rank) scenario.transfer[i] = longAgo;
        change = fmt::format("with {} started before its gradient arrives", m_timeline.nameOf(spans[gap.next]));
        break;
    }
    case IdleCause::ReloadWait: {
        if (next == noSlot) return std::nullopt;
        const auto [first, last] = m_graph.inputsOf(next);
        for (std::size_t i = first; i < last; ++i)
            if (m_graph.slot(m_graph.inputs()[i].from).first == gap.blamed) scenario.transfer[i] = longAgo;
        change = fmt::format("with {} issued in time", m_timeline.nameOf(spans[gap.blamed]));
        break;
    }
    case IdleCause::Collective:
        if (next == noSlot) return std::nullopt;
        scenario.delay[next] = std::min<Nanos>(scenario.delay[next], 0);
        change = fmt::format("with {} over in time", m_timeline.nameOf(spans[gap.blamed]));
        break;
    case IdleCause::Launch:
        if (gap.unsure) return std::nullopt;
        for (SlotId id = 0; id < m_graph.size(); ++id)
            if (m_graph.slot(id).rank == gap.rank) scenario.delay[id] = std::min<Nanos>(scenario.delay[id], 0);
        change = fmt::format("if rank {} started every op at once", gap.rank);
        break;
    }
    const auto replay = m_graph.run(scenario);
    if (!replay) return std::nullopt;
    return GapExperiment{std::move(change), m_graph.makespan(), replay->makespan};
}

GapExplanation GapExplainer::explain(const Gap& gap) const
{
    GapExplanation out;
    out.chain = chainOf(gap);
    out.experiment = experimentOf(gap, out.chain);
    out.sentence = explainGap(m_timeline, gap);
    if (!out.experiment) return out;
    const auto time = [&](Nanos nanos) { return formatDuration(nanos, m_timeline.timeUnit()); };
    const GapExperiment& tried = *out.experiment;
    if (time(tried.after) == time(tried.before)) // or a difference that the figures don't show
        out.sentence += fmt::format("; {} the step would still take {}", tried.change, time(tried.before));
    else
        out.sentence += fmt::format("; {} the step would take {} instead of {}", tried.change, time(tried.after),
                                    time(tried.before));
    return out;
}

} // namespace stagewright
