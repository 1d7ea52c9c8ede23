// List execution. Each rank runs its list until an input is missing; it then waits in that input's cell and is woken by
// the op that fills it. Every op is examined once, plus once for each time its rank was woken for it.
#include "schedules/execute/place_buckets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/large_memory.h"
#include "schedules/messages/buckets.h"
#include "schedules/messages/link_lane.h"
#include "schedules/messages/message_delay.h"
#include "schedules/messages/message_execution.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

constexpr Nanos notReady = -1; // a cell below holds −2 − rank: not ready, that rank waits first in line

struct NeedPlan {
    std::int8_t product = 0;
    std::int8_t offset = 0;
};
struct KindPlan {
    std::uint8_t needCount = 0;
    std::int8_t product = -1; // −1: nobody can need it
    std::array<NeedPlan, 2> needs{};
};

// Whether all messages of a stage go between the same ranks and have one size, whatever their microbatch.
bool messagesAreAlike(const Schedule& schedule, const CellSpace& cells, std::span<const Bytes> boundary)
{
    return cells.plain && !schedule.placement.hasCopies() &&
           boundary.size() <= static_cast<std::size_t>(schedule.stages);
}

struct Execution {
    const Schedule& schedule;
    std::span<const Nanos> durations;
    const Links& links;
    std::span<const Bytes> boundary;
    std::span<const int> gradientBuckets; // place_buckets.h
    CellSpace cells;
    const Channels& channels;
    bool relaxed = false;
    SimResult out{};

    std::array<KindPlan, opKindRoom> plans{};
    std::array<std::vector<Nanos>, productCount> ready{}; // end of the producer by cell, or < 0
    std::array<std::vector<Nanos>, 2> delays{};           // by stage of the consumer; [0] from below, [1] from above
    // Where messages share their links (of plain lists, whose stages are on one rank each): what a stage sends, [0] up
    // and [1] down, and when it arrives, by the cell of its producer.
    struct Flight {
        std::size_t lane = 0;
        Transit transit;
    };
    std::array<std::vector<Flight>, 2> flights{};
    // of activations, of gradients; empty: messages don't wait for each other
    std::array<std::vector<Nanos>, 2> arrivals{};
    std::vector<LinkLane> lanes{};
    bool uniformDelays =
        true; // false: links depend on the microbatch (copies) or messages on their op (counts, halves)
    std::vector<std::size_t> head{};
    std::vector<Nanos> clock{};
    std::vector<int> nextWaiter{};
    std::vector<int> runnable{};
    int forced = -1; // relaxed: the rank whose next op starts without what is missing

    // Collectives beside compute, by rank; empty: none in the lists, or all on the compute lane.
    struct Beside {
        Nanos lane = 0;              // until when it is taken
        std::vector<Nanos> gathered; // by stage: when the newest gather ends
        std::vector<Nanos> reduced;  // by stage: when the newest reduction ends
        std::vector<Nanos> bucket;   // and when its first bucket has arrived
        bool steps = false;          // on arrival: its list goes on behind an optimizer
    };
    std::vector<Beside> beside{};
    // by cell: when its message can leave; only where the link is shared
    std::array<std::vector<Nanos>, productCount> leaves{};

    void prepare();
    void prepareFlights();
    Nanos delayOf(const Op& op, int stage, int offset, int rank) const;
    template <bool Plain>
    bool inputsReady(const Op& op, int rank, Nanos& begin);
    template <bool Plain>
    void publish(const Op& op, Nanos end, int rank);
    void waitForCollectives(const Op& op, int rank, Nanos duration, Nanos& begin) const;
    int bucketsOf(const Op& op, int rank) const;
    void runBeside(const Op& op, int rank, Nanos now, std::size_t id);
    template <bool Plain>
    void runRank(int rank);
    template <bool Plain>
    void run();
    template <bool Plain>
    void runRelaxed();
    void wake(Nanos cell);
    int waitingRank() const; // the lowest; −1: every list ended
};

void Execution::prepare()
{
    std::array<bool, opKindRoom> present{};
    out.offsets.push_back(0);
    for (const auto& ops : schedule.order) {
        for (const Op& op : ops) present[static_cast<std::size_t>(op.kind)] = true;
        out.offsets.push_back(out.offsets.back() + ops.size());
    }
    std::array<bool, productCount> needed{};
    bool collectives = false;
    for (const KindTraits& rule : allKinds()) {
        const auto k = static_cast<std::size_t>(rule.kind);
        collectives = collectives || (present[k] && isCollective(rule.kind) && !isRelease(rule.kind));
        plans[k].product = static_cast<std::int8_t>(productOf(rule.kind));
        plans[k].needCount = rule.needCount;
        for (std::size_t n = 0; n < rule.needCount; ++n) {
            const auto product = static_cast<std::int8_t>(productOf(rule.needs[n].kind));
            plans[k].needs[n] = {product, static_cast<std::int8_t>(rule.needs[n].stageOffset)};
            if (present[k]) needed[static_cast<std::size_t>(product)] = true;
        }
    }
    for (std::size_t p = 0; p < productCount; ++p)
        if (needed[p]) {
            reserveLarge(ready[p], cells.size());
            ready[p].assign(cells.size(), notReady);
        }
    for (KindPlan& plan : plans)
        if (plan.product >= 0 && !needed[static_cast<std::size_t>(plan.product)]) plan.product = -1;

    if (collectives && links.collectives != CollectiveLane::Compute) {
        const auto stages = static_cast<std::size_t>(schedule.stages);
        const std::vector<Nanos> never(stages, 0);
        beside.assign(static_cast<std::size_t>(schedule.ranks), {0, never, never, never});
        for (std::size_t rank = 0; rank < beside.size() && !gradientBuckets.empty(); ++rank) {
            bool stepped = false;
            for (const Op& op : schedule.order[rank]) {
                if (stepped && !settles(op.kind)) beside[rank].steps = true;
                stepped = stepped || isOptimizer(op.kind);
            }
        }
        if (links.collectives == CollectiveLane::Shared)
            for (std::size_t p = 0; p < productCount; ++p) leaves[p].assign(ready[p].size(), 0);
    }
    uniformDelays = messagesAreAlike(schedule, cells, boundary);
    if (uniformDelays)
        for (int side = 0; side < 2; ++side) {
            delays[static_cast<std::size_t>(side)].assign(static_cast<std::size_t>(schedule.stages), 0);
            for (int s = 0; s < schedule.stages; ++s) {
                const int from = side == 0 ? s - 1 : s + 1;
                if (from < 0 || from >= schedule.stages) continue;
                const auto lower = static_cast<std::size_t>(std::min(s, from));
                delays[static_cast<std::size_t>(side)][static_cast<std::size_t>(s)] =
                    links.delay(schedule.placement.rankOf(from, -1), schedule.placement.rankOf(s, -1),
                                lower < boundary.size() ? boundary[lower] : 0);
            }
        }
    if (uniformDelays && sharesBandwidth(links, boundary, channels)) prepareFlights();
    const auto ranks = static_cast<std::size_t>(schedule.ranks);
    head.assign(ranks, 0);
    clock.assign(ranks, 0);
    nextWaiter.assign(ranks, -1);
    for (auto* times : {&out.start, &out.end}) {
        reserveLarge(*times, out.offsets.back());
        times->resize(out.offsets.back());
    }
}

void Execution::prepareFlights()
{
    std::map<std::pair<int, int>, std::size_t> known;
    for (std::size_t down = 0; down < 2; ++down) {
        arrivals[down].assign(ready[down].size(), 0);
        for (int stage = 0; stage < schedule.stages; ++stage) {
            const int to = down == 1 ? stage - 1 : stage + 1;
            Flight& flight = flights[down].emplace_back();
            if (to < 0 || to >= schedule.stages) continue;
            const auto below = static_cast<std::size_t>(std::min(stage, to));
            const std::pair<int, int> ends{schedule.placement.rankOf(stage, -1), schedule.placement.rankOf(to, -1)};
            flight.lane = known.try_emplace(ends, known.size()).first->second;
            flight.transit = links.transit(ends.first, ends.second, below < boundary.size() ? boundary[below] : 0);
        }
    }
    lanes.resize(std::max<std::size_t>(1, known.size()));
}

// Only where delays are not uniform: the message of one op, from the rank that made it.
Nanos Execution::delayOf(const Op& op, int stage, int offset, int rank) const
{
    return messageDelay(schedule, links, boundary, op, stage, offset, rank, cells.slices);
}

template <bool Plain>
bool Execution::inputsReady(const Op& op, int rank, Nanos& begin)
{
    const KindPlan& plan = plans[static_cast<std::size_t>(op.kind)];
    bool all = true;
    for (std::size_t n = 0; n < plan.needCount; ++n) {
        const NeedPlan need = plan.needs[n];
        const int stage = op.stage + need.offset;
        if (stage < 0 || stage >= cells.stages) continue;
        auto& table = ready[static_cast<std::size_t>(need.product)];
        auto take = [&](std::size_t cell) {
            const Nanos value = table[cell];
            if (value < 0 && relaxed) {
                all = false;
                return true; // what is known of the others counts for a forced op
            }
            if (value < 0) { // wait in line
                nextWaiter[static_cast<std::size_t>(rank)] = value == notReady ? -1 : static_cast<int>(-2 - value);
                table[cell] = -2 - static_cast<Nanos>(rank);
                return false;
            }
            Nanos arrival = value;
            if (const std::size_t down = need.offset > 0 ? 1 : 0;
                Plain && need.offset != 0 && !arrivals[down].empty()) {
                arrival = arrivals[down][cell];
            } else if (need.offset != 0) {
                const Nanos delay = Plain && uniformDelays ? delays[need.offset > 0 ? 1 : 0][op.stage]
                                                           : delayOf(op, stage, need.offset, rank);
                const auto& leaving = leaves[static_cast<std::size_t>(need.product)];
                if (delay > 0 && !leaving.empty()) arrival = std::max(arrival, leaving[cell]);
                arrival += delay;
            }
            begin = std::max(begin, arrival);
            return true;
        };
        if (Plain) {
            if (!take(static_cast<std::size_t>(stage) * static_cast<std::size_t>(cells.microbatches) +
                      static_cast<std::size_t>(op.microbatch)))
                return false;
        } else if (!cells.each(op, stage, take)) {
            return false;
        }
    }
    return all || forced == rank;
}

void Execution::wake(Nanos cell)
{
    if (cell == notReady) return;
    for (int waiter = static_cast<int>(-2 - cell); waiter >= 0;) {
        const int next = nextWaiter[static_cast<std::size_t>(waiter)];
        runnable.push_back(waiter);
        waiter = next;
    }
}

template <bool Plain>
void Execution::publish(const Op& op, Nanos end, int rank)
{
    const int product = plans[static_cast<std::size_t>(op.kind)].product;
    if (product < 0) return;
    auto& table = ready[static_cast<std::size_t>(product)];
    auto fill = [&](std::size_t cell) {
        const Nanos before = table[cell];
        if (before >= 0) return true; // a duplicate: the first counts
        table[cell] = end;
        if (auto& leaving = leaves[static_cast<std::size_t>(product)]; !leaving.empty())
            leaving[cell] = std::max(end, beside[static_cast<std::size_t>(rank)].lane);
        if (Plain && product < 2 && !arrivals[static_cast<std::size_t>(product)].empty()) {
            const auto down = static_cast<std::size_t>(product);
            const auto& leaving = leaves[down];
            const Flight& flight = flights[down][op.stage];
            arrivals[down][cell] =
                lanes[flight.lane].take(leaving.empty() ? end : leaving[cell], flight.transit) + flight.transit.delay;
        }
        wake(before);
        return true;
    };
    if (Plain)
        fill(static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(cells.microbatches) +
             static_cast<std::size_t>(op.microbatch));
    else
        cells.each(op, op.stage, fill);
}

int Execution::bucketsOf(const Op& op, int rank) const
{
    return beside[static_cast<std::size_t>(rank)].steps && op.stage < gradientBuckets.size()
               ? std::max(1, gradientBuckets[op.stage])
               : 1;
}

void Execution::waitForCollectives(const Op& op, int rank, Nanos duration, Nanos& begin) const
{
    const Beside& own = beside[static_cast<std::size_t>(rank)];
    if (op.stage >= own.gathered.size()) return;
    if (ruleOf(op.kind).needsWeights) begin = std::max(begin, own.gathered[op.stage]);
    if (!isOptimizer(op.kind)) return;
    const int buckets = bucketsOf(op, rank);
    begin = std::max({begin, own.bucket[op.stage], own.reduced[op.stage] - allButOnePart(duration, buckets)});
}

// The ranks of the stage are alike, so that all come to it at once.
void Execution::runBeside(const Op& op, int rank, Nanos now, std::size_t id)
{
    Beside& own = beside[static_cast<std::size_t>(rank)];
    out.start[id] = out.end[id] = now;
    if (isRelease(op.kind) || op.stage >= own.gathered.size()) return;
    out.start[id] = std::max(now, own.lane);
    own.lane = out.end[id] = out.start[id] + durations[id];
    (isGather(op.kind) ? own.gathered : own.reduced)[op.stage] = own.lane;
    if (isReduction(op.kind)) own.bucket[op.stage] = own.lane - allButOnePart(durations[id], bucketsOf(op, rank));
}

template <bool Plain>
void Execution::runRank(int rank)
{
    const auto r = static_cast<std::size_t>(rank);
    const auto& ops = schedule.order[r];
    const bool anyPairs = r < schedule.paired.size() && !schedule.paired[r].empty();
    const std::size_t offset = out.offsets[r];
    Nanos now = clock[r];
    std::size_t i = head[r];
    while (i < ops.size()) {
        if (!beside.empty() && isCollective(ops[i].kind)) {
            runBeside(ops[i], rank, now, offset + i);
            ++i;
            continue;
        }
        const bool paired = anyPairs && schedule.isPaired(rank, i);
        Nanos begin = now;
        if (!inputsReady<Plain>(ops[i], rank, begin) || (paired && !inputsReady<Plain>(ops[i + 1], rank, begin))) break;
        forced = -1;
        if (!beside.empty()) {
            waitForCollectives(ops[i], rank, durations[offset + i], begin);
            if (paired) waitForCollectives(ops[i + 1], rank, durations[offset + i + 1], begin);
        }
        const bool serial = paired && isRecompute(ops[i].kind); // issued together, one after the other
        const bool together = paired && !serial;
        if (serial) {
            out.start[offset + i] = begin;
            begin += durations[offset + i];
            out.end[offset + i] = begin;
            publish<Plain>(ops[i], begin, rank);
            ++i;
        }
        const Nanos end = begin + durations[offset + i] + (together ? durations[offset + i + 1] : 0);
        const std::size_t last = together ? i + 1 : i;
        for (; i <= last; ++i) {
            out.start[offset + i] = begin;
            out.end[offset + i] = end;
            publish<Plain>(ops[i], end, rank);
        }
        now = end;
    }
    head[r] = i;
    clock[r] = now;
}

template <bool Plain>
void Execution::run()
{
    for (int r = schedule.ranks - 1; r >= 0; --r) runnable.push_back(r);
    while (!runnable.empty()) {
        const int rank = runnable.back();
        runnable.pop_back();
        runRank<Plain>(rank);
    }
}

// Nobody waits in line: all ranks are tried in turn, and where none moved, one is forced. O(ops × ranks) at worst.
template <bool Plain>
void Execution::runRelaxed()
{
    while (waitingRank() >= 0) {
        const std::vector<std::size_t> before = head;
        for (int r = 0; r < schedule.ranks; ++r) runRank<Plain>(r);
        if (head == before) forced = waitingRank();
    }
}

int Execution::waitingRank() const
{
    for (std::size_t r = 0; r < head.size(); ++r)
        if (head[r] < schedule.order[r].size()) return static_cast<int>(r);
    return -1;
}

void summarise(const Schedule& schedule, std::span<const Nanos> clock, bool beside, SimResult& out)
{
    out.collectivesBeside = beside;
    for (std::size_t r = 0; r < clock.size(); ++r) {
        const auto& ops = schedule.order[r];
        out.makespan = std::max(out.makespan, clock[r]);
        if (beside)
            for (std::size_t i = 0; i < ops.size(); ++i)
                out.makespan = std::max(out.makespan, out.end[out.offsets[r] + i]);
        std::size_t first = 0;
        while (first < ops.size() && !isBusy(ops[first].kind)) ++first;
        if (first == ops.size()) continue;
        std::size_t last = ops.size() - 1;
        while (!isBusy(ops[last].kind)) --last;
        out.span = std::max(out.span, out.end[out.offsets[r] + last] - out.start[out.offsets[r] + first]);
    }
}

// The schedule with delays of the same length for ops outside its shape, which then need and make nothing; rows and
// pairs stay.
Schedule insideShape(const Schedule& schedule)
{
    Schedule out = schedule;
    const auto free = [](Op& op) { op = makeFiller(0, 0); };
    if (!shapeFault(out).empty()) { // not even rows, stages and pairs fit: every rank runs its row without waiting
        out.ranks = std::max(1, static_cast<int>(out.order.size()));
        out.order.resize(static_cast<std::size_t>(out.ranks));
        out.stages = out.microbatches = 1;
        out.placement = Placement::loop(1, 1);
        out.paired.clear();
        for (auto& ops : out.order) std::for_each(ops.begin(), ops.end(), free);
        return out;
    }
    for (auto& ops : out.order)
        for (Op& op : ops)
            if (!opFault(schedule, op).empty()) free(op);
    if (!shapeFault(out).empty()) out.paired.clear(); // a message's partner is left alone
    return out;
}

// What placeBuckets() is given, and whether its numbers fit.
struct Placing {
    const Schedule& schedule;
    std::span<const Nanos> durations;
    const Links& links;
    std::span<const int> gradientBuckets;
    std::span<const Bytes> boundary;
    const Channels& channels;
    PlacePolicy policy;

    Result<void> fits() const;
    // index: where there is one already; null: made where it is needed.
    Result<SimResult> run(const CellSpace& cells, const OpIndex* index) const;
};

Result<void> Placing::fits() const
{
    if (durations.size() != schedule.opCount())
        return fail(ErrorCode::Usage, fmt::format("{} durations for {} ops", durations.size(), schedule.opCount()));
    if (std::any_of(durations.begin(), durations.end(), [](Nanos duration) { return duration < 0; }))
        return fail(ErrorCode::Usage, "a duration is negative");
    return {};
}

Result<SimResult> Placing::run(const CellSpace& cells, const OpIndex* index) const
{
    if (needsMessageExecution(schedule) ||
        (!messagesAreAlike(schedule, cells, boundary) && sharesBandwidth(links, boundary, channels))) {
        std::optional<OpIndex> own;
        if (index == nullptr) index = &own.emplace(schedule, cells);
        MessageExecution execution(schedule, *index, channels, durations, links, boundary);
        execution.stepInBuckets(gradientBuckets);
        if (!execution.run(policy)) return tl::unexpected(blockedError(schedule, cells, channels));
        SimResult out = execution.result();
        std::vector<Nanos> clock;
        clock.reserve(static_cast<std::size_t>(schedule.ranks));
        for (int r = 0; r < schedule.ranks; ++r) clock.push_back(execution.clockOf(r));
        summarise(schedule, clock, links.collectives != CollectiveLane::Compute, out);
        return out;
    }
    const bool relaxed = policy == PlacePolicy::Relaxed;
    Execution execution{schedule, durations, links, boundary, gradientBuckets, cells, channels, relaxed};
    execution.prepare();
    // Ops without a microbatch (fillers, optimizer) have no needs and make nothing, so they are plain as well.
    if (relaxed && cells.plain)
        execution.runRelaxed<true>();
    else if (relaxed)
        execution.runRelaxed<false>();
    else if (cells.plain)
        execution.run<true>();
    else
        execution.run<false>();
    if (execution.waitingRank() >= 0) return tl::unexpected(blockedError(schedule, cells));
    summarise(schedule, execution.clock, !execution.beside.empty(), execution.out);
    return std::move(execution.out);
}

} // namespace

Result<SimResult> place(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                        std::span<const Bytes> boundary, const Channels& channels, PlacePolicy policy)
{
    return placeBuckets(schedule, durations, links, {}, boundary, channels, policy);
}

Result<SimResult> placeBuckets(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                               std::span<const int> gradientBuckets, std::span<const Bytes> boundary,
                               const Channels& channels, PlacePolicy policy)
{
    auto cells = cellsOf(schedule);
    if (!cells && policy == PlacePolicy::Relaxed) {
        const Schedule inside = insideShape(schedule);
        if (cellsOf(inside)) return placeBuckets(inside, durations, links, gradientBuckets, boundary, channels, policy);
    }
    if (!cells) return tl::unexpected(cells.error());
    const Placing placing{schedule, durations, links, gradientBuckets, boundary, channels, policy};
    STAGEWRIGHT_CHECK(placing.fits());
    return placing.run(*cells, nullptr);
}

Result<SimResult> placeBuckets(const CheckedSchedule& schedule, std::span<const Nanos> durations, const Links& links,
                               std::span<const int> gradientBuckets, std::span<const Bytes> boundary,
                               const Channels& channels)
{
    const Placing placing{schedule.compute(), durations,          links, gradientBuckets, boundary,
                          channels,           PlacePolicy::Strict};
    STAGEWRIGHT_CHECK(placing.fits());
    return placing.run(schedule.cells(), &schedule.index());
}

} // namespace stagewright
