#include "schedules/step/plain_run.h"

#include <algorithm>
#include <map>

#include "schedules/base/large_memory.h"
#include "schedules/messages/message_delay.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

namespace {

constexpr Nanos notReady = -1;

// Whether all messages of a stage go between the same ranks and have one size, whatever their microbatch.
bool messagesAreAlike(const Schedule& schedule, const CellSpace& cells, std::span<const Bytes> boundary)
{
    return cells.plain && schedule.graph.isChain() && !schedule.placement.hasCopies() &&
           boundary.size() <= static_cast<std::size_t>(schedule.stages);
}

} // namespace

bool PlainRun::serves(const Schedule& schedule, const CellSpace& cells, const StepRules& rules)
{
    return !hasMessagesOrMeetings(schedule) &&
           (messagesAreAlike(schedule, cells, rules.boundary) ||
            !sharesBandwidth(rules.links, rules.boundary, rules.channels)) &&
           (rules.links.cards.hosts.empty() || !sharesBandwidth(rules.links, rules.boundary, rules.channels));
}

PlainRun::PlainRun(const Schedule& schedule, const CellSpace& cells, const StepRules& rules,
                   std::span<const Nanos> durations)
    : m_schedule(schedule), m_rules(rules), m_durations(durations), m_cells(cells)
{
    std::array<bool, opKindRoom> present{};
    m_out.offsets.push_back(0);
    for (const auto& ops : m_schedule.order) {
        for (const Op& op : ops) present[static_cast<std::size_t>(op.kind)] = true;
        m_out.offsets.push_back(m_out.offsets.back() + ops.size());
    }
    std::array<bool, productCount> needed{};
    bool collectives = false;
    for (const KindTraits& rule : allKinds()) {
        const auto k = static_cast<std::size_t>(rule.kind);
        collectives = collectives || (present[k] && isCollective(rule.kind) && !isRelease(rule.kind));
        m_plans[k].product = static_cast<std::int8_t>(productOf(rule.kind));
        for (const Need& need : rule.needs) {
            if (need.ifThere) continue; // such lists are not plain
            const auto product = static_cast<std::int8_t>(productOf(need.kind));
            m_plans[k].needs[m_plans[k].needCount++] = {product, need.side};
            if (present[k]) needed[static_cast<std::size_t>(product)] = true;
        }
    }
    for (std::size_t p = 0; p < productCount; ++p)
        if (needed[p]) {
            reserveLarge(m_ready[p], m_cells.size());
            m_ready[p].assign(m_cells.size(), notReady);
        }
    for (KindPlan& plan : m_plans)
        if (plan.product >= 0 && !needed[static_cast<std::size_t>(plan.product)]) plan.product = -1;

    if (collectives && m_rules.links.collectives != ResourceUse::Compute) {
        const auto stages = static_cast<std::size_t>(m_schedule.stages);
        const std::vector<Nanos> never(stages, 0);
        m_beside.assign(static_cast<std::size_t>(m_schedule.ranks), {0, never, never, never});
        for (std::size_t rank = 0; rank < m_beside.size() && !m_rules.gradientBuckets.empty(); ++rank)
            m_beside[rank].steps = stepsOnArrival(m_schedule.order[rank]);
        if (m_rules.links.collectives == ResourceUse::Shared)
            for (std::size_t p = 0; p < productCount; ++p) m_leaves[p].assign(m_ready[p].size(), 0);
    }
    m_uniformDelays = messagesAreAlike(m_schedule, m_cells, m_rules.boundary);
    if (m_uniformDelays)
        for (int side = 0; side < 2; ++side) {
            m_delays[static_cast<std::size_t>(side)].assign(static_cast<std::size_t>(m_schedule.stages), 0);
            for (int s = 0; s < m_schedule.stages; ++s) {
                const int from = side == 0 ? s - 1 : s + 1;
                if (from < 0 || from >= m_schedule.stages) continue;
                const auto lower = static_cast<std::size_t>(std::min(s, from));
                m_delays[static_cast<std::size_t>(side)][static_cast<std::size_t>(s)] =
                    m_rules.links.delay(m_schedule.placement.rankOf(from, -1), m_schedule.placement.rankOf(s, -1),
                                        lower < m_rules.boundary.size() ? m_rules.boundary[lower] : 0);
            }
        }
    if (m_uniformDelays && sharesBandwidth(m_rules.links, m_rules.boundary, m_rules.channels)) prepareFlights();
    const auto ranks = static_cast<std::size_t>(m_schedule.ranks);
    m_head.assign(ranks, 0);
    m_clock.assign(ranks, 0);
    m_nextWaiter.assign(ranks, -1);
    for (int r = m_schedule.ranks - 1; r >= 0; --r) m_runnable.push_back(r);
    if (durations.empty()) return;
    for (auto* times : {&m_out.start, &m_out.end}) {
        reserveLarge(*times, m_out.offsets.back());
        times->resize(m_out.offsets.back());
    }
}

void PlainRun::prepareFlights()
{
    std::map<std::pair<int, int>, std::size_t> known;
    for (std::size_t down = 0; down < 2; ++down) {
        m_arrivals[down].assign(m_ready[down].size(), 0);
        for (int stage = 0; stage < m_schedule.stages; ++stage) {
            const int to = down == 1 ? stage - 1 : stage + 1;
            Flight& flight = m_flights[down].emplace_back();
            if (to < 0 || to >= m_schedule.stages) continue;
            const auto below = static_cast<std::size_t>(std::min(stage, to));
            const std::pair<int, int> ends{m_schedule.placement.rankOf(stage, -1), m_schedule.placement.rankOf(to, -1)};
            flight.leaves = ends.first != ends.second;
            if (!flight.leaves) continue;
            flight.lane = known.try_emplace(ends, known.size()).first->second;
            flight.transit = m_rules.links.transit(ends.first, ends.second,
                                                   below < m_rules.boundary.size() ? m_rules.boundary[below] : 0);
        }
    }
    m_lanes.resize(std::max<std::size_t>(1, known.size()));
}

// Only where delays are not uniform: the message of one op, from the rank that made it.
Nanos PlainRun::delayOf(const Op& op, int stage, int rank) const
{
    return messageDelay(m_schedule, m_rules.links, m_rules.boundary, op, stage, rank, m_cells.slices);
}

template <bool Plain>
bool PlainRun::inputsReady(const Op& op, int rank, Nanos& begin)
{
    const KindPlan& plan = m_plans[static_cast<std::size_t>(op.kind)];
    for (std::size_t n = 0; n < plan.needCount; ++n) {
        const NeedPlan need = plan.needs[n];
        auto& table = m_ready[static_cast<std::size_t>(need.product)];
        const bool neighbour = need.side != StageSide::Own;
        const std::size_t down = need.side == StageSide::After ? 1 : 0;
        auto take = [&](int stage, std::size_t cell) {
            const Nanos value = table[cell];
            if (value < 0 && m_forced == rank) { // what is known of the others counts
                leaveLine(table[cell], rank);
                return true;
            }
            if (value < 0) { // wait in line
                m_nextWaiter[static_cast<std::size_t>(rank)] = value == notReady ? -1 : static_cast<int>(-2 - value);
                table[cell] = -2 - static_cast<Nanos>(rank);
                return false;
            }
            Nanos arrival = value;
            if (Plain && neighbour && !m_arrivals[down].empty()) {
                arrival = m_arrivals[down][cell];
            } else if (neighbour) {
                const Nanos delay = Plain && m_uniformDelays ? m_delays[down][op.stage] : delayOf(op, stage, rank);
                const auto& leaving = m_leaves[static_cast<std::size_t>(need.product)];
                if (delay > 0 && !leaving.empty()) arrival = std::max(arrival, leaving[cell]);
                arrival += delay;
            }
            begin = std::max(begin, arrival);
            return true;
        };
        if (Plain) {
            const int stage = op.stage + static_cast<int>(need.side);
            if (stage < 0 || stage >= m_cells.stages) continue;
            if (!take(stage, static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_cells.microbatches) +
                                 static_cast<std::size_t>(op.microbatch)))
                return false;
        } else {
            bool all = true;
            m_schedule.graph.each(op.stage, need.side, m_cells.stages, [&](int stage) {
                all = all && m_cells.each(op, stage, [&](std::size_t cell) { return take(stage, cell); });
            });
            if (!all) return false;
        }
    }
    return true;
}

void PlainRun::wake(Nanos cell)
{
    if (cell == notReady) return;
    for (int waiter = static_cast<int>(-2 - cell); waiter >= 0;) {
        const int next = m_nextWaiter[static_cast<std::size_t>(waiter)];
        m_runnable.push_back(waiter);
        waiter = next;
    }
}

void PlainRun::leaveLine(Nanos& cell, int rank)
{
    if (cell == notReady) return;
    const int next = m_nextWaiter[static_cast<std::size_t>(rank)];
    int waiter = static_cast<int>(-2 - cell);
    if (waiter == rank) cell = next < 0 ? notReady : -2 - static_cast<Nanos>(next);
    for (; waiter >= 0 && waiter != rank; waiter = m_nextWaiter[static_cast<std::size_t>(waiter)])
        if (m_nextWaiter[static_cast<std::size_t>(waiter)] == rank) {
            m_nextWaiter[static_cast<std::size_t>(waiter)] = next;
            return;
        }
}

template <bool Plain>
void PlainRun::publish(const Op& op, Nanos end, int rank)
{
    const int product = m_plans[static_cast<std::size_t>(op.kind)].product;
    if (product < 0) return;
    auto& table = m_ready[static_cast<std::size_t>(product)];
    auto fill = [&](std::size_t cell) {
        const Nanos before = table[cell];
        if (before >= 0) return true; // a duplicate: the first counts
        table[cell] = end;
        if (auto& leaving = m_leaves[static_cast<std::size_t>(product)]; !leaving.empty())
            leaving[cell] = std::max(end, m_beside[static_cast<std::size_t>(rank)].lane);
        if (Plain && product < 2 && !m_arrivals[static_cast<std::size_t>(product)].empty()) {
            const auto down = static_cast<std::size_t>(product);
            const auto& leaving = m_leaves[down];
            const Flight& flight = m_flights[down][op.stage];
            m_arrivals[down][cell] = end;
            if (flight.leaves)
                m_arrivals[down][cell] =
                    flight.transit.delay +
                    m_lanes[flight.lane].take(leaving.empty() ? end : leaving[cell], flight.transit);
        }
        wake(before);
        return true;
    };
    if (Plain)
        fill(static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(m_cells.microbatches) +
             static_cast<std::size_t>(op.microbatch));
    else
        m_cells.each(op, op.stage, fill);
}

void PlainRun::waitForCollectives(const Op& op, int rank, Nanos duration, Nanos& begin) const
{
    const Beside& own = m_beside[static_cast<std::size_t>(rank)];
    if (op.stage >= own.gathered.size()) return;
    if (ruleOf(op.kind).needsWeights) begin = std::max(begin, own.gathered[op.stage]);
    if (ruleOf(op.kind).behind != Behind::Reductions) return;
    const int buckets =
        own.steps && op.stage < m_rules.gradientBuckets.size() ? std::max(1, m_rules.gradientBuckets[op.stage]) : 1;
    begin = std::max(begin, gradientsArrive(own.reductionFrom[op.stage], own.reduced[op.stage], duration, buckets));
}

// The ranks of the stage are alike, so that all come to it at once.
void PlainRun::runBeside(const Op& op, int rank, Nanos now, std::size_t id)
{
    Beside& own = m_beside[static_cast<std::size_t>(rank)];
    m_out.start[id] = m_out.end[id] = now;
    if (isRelease(op.kind) || op.stage >= own.gathered.size()) return;
    m_out.start[id] = std::max(now, own.lane);
    own.lane = m_out.end[id] = m_out.start[id] + m_durations[id];
    (isGather(op.kind) ? own.gathered : own.reduced)[op.stage] = own.lane;
    if (isReduction(op.kind)) own.reductionFrom[op.stage] = m_out.start[id];
}

template <bool Plain, bool Timed>
void PlainRun::runRank(int rank)
{
    const auto r = static_cast<std::size_t>(rank);
    const auto& ops = m_schedule.order[r];
    const bool anyPairs = r < m_schedule.paired.size() && !m_schedule.paired[r].empty();
    const std::size_t offset = m_out.offsets[r];
    const auto duration = [&](std::size_t at) { return Timed ? m_durations[offset + at] : 0; };
    const auto keep = [&](std::size_t at, Nanos begin, Nanos end) {
        if (!Timed) return;
        m_out.start[offset + at] = begin;
        m_out.end[offset + at] = end;
    };
    Nanos now = m_clock[r];
    std::size_t i = m_head[r];
    while (i < ops.size()) {
        if (Timed && !m_beside.empty() && isCollective(ops[i].kind)) {
            runBeside(ops[i], rank, now, offset + i);
            ++i;
            continue;
        }
        const bool paired = anyPairs && m_schedule.isPaired(rank, i);
        Nanos begin = now;
        if (!inputsReady<Plain>(ops[i], rank, begin) || (paired && !inputsReady<Plain>(ops[i + 1], rank, begin))) break;
        m_forced = -1;
        if (Timed && !m_beside.empty()) {
            waitForCollectives(ops[i], rank, duration(i), begin);
            if (paired) waitForCollectives(ops[i + 1], rank, duration(i + 1), begin);
        }
        const bool serial = paired && isRecompute(ops[i].kind); // issued together, one after the other
        const bool together = paired && !serial;
        if (serial) {
            keep(i, begin, begin + duration(i));
            begin += duration(i);
            publish<Plain>(ops[i], begin, rank);
            ++i;
        }
        const Nanos end = begin + duration(i) + (together ? duration(i + 1) : 0);
        const std::size_t last = together ? i + 1 : i;
        for (; i <= last; ++i) {
            keep(i, begin, end);
            publish<Plain>(ops[i], end, rank);
        }
        now = end;
    }
    m_head[r] = i;
    m_clock[r] = now;
}

bool PlainRun::run()
{
    while (!m_runnable.empty()) {
        const int rank = m_runnable.back();
        m_runnable.pop_back();
        // Ops without a microbatch (fillers, optimizer) have no needs and make nothing, so they are plain as well.
        const bool plain = m_cells.plain && m_schedule.graph.isChain();
        if (m_durations.empty())
            plain ? runRank<true, false>(rank) : runRank<false, false>(rank);
        else
            plain ? runRank<true, true>(rank) : runRank<false, true>(rank);
    }
    return waitingRank() < 0;
}

bool PlainRun::runForcing(int rank)
{
    m_forced = rank;
    m_runnable.push_back(rank);
    return run();
}

int PlainRun::waitingRank() const
{
    for (std::size_t r = 0; r < m_head.size(); ++r)
        if (m_head[r] < m_schedule.order[r].size()) return static_cast<int>(r);
    return -1;
}

} // namespace stagewright
