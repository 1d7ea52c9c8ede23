#include "traces/lessons/bound.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "schedules/model/kinds.h"

namespace stagewright::lessons {

namespace {

// Time from the start of the step until stage `stage` can start microbatch `microbatch`; and from the end of its
// backward until stage 0 is done with it.
Nanos headOf(const Schedule& schedule, const CostModel& costs, int stage, int microbatch)
{
    Nanos time = 0;
    for (int s = 0; s < stage; ++s) {
        const int from = schedule.placement.rankOf(s, microbatch);
        const int to = schedule.placement.rankOf(s + 1, microbatch);
        time += costs.forward(s, from) + (from == to ? 0 : costs.links.delay(from, to, 0));
    }
    return time;
}

Nanos tailOf(const Schedule& schedule, const CostModel& costs, int stage, int microbatch)
{
    Nanos time = 0;
    for (int s = stage - 1; s >= 0; --s) {
        const int from = schedule.placement.rankOf(s + 1, microbatch);
        const int to = schedule.placement.rankOf(s, microbatch);
        time += costs.backward(s, to) + (from == to ? 0 : costs.links.delay(from, to, 0));
    }
    return time;
}

} // namespace

Bound boundOf(const Schedule& schedule, const CostModel& costs)
{
    Bound best;
    Nanos bestValue = -1;
    for (int rank = 0; rank < static_cast<int>(schedule.order.size()); ++rank) {
        const auto& list = schedule.order[static_cast<std::size_t>(rank)];
        Nanos work = 0;
        Nanos head = std::numeric_limits<Nanos>::max();
        Nanos tail = std::numeric_limits<Nanos>::max();
        bool plain = true, splits = false;
        // by stage and copy: all microbatches of a copy go one way
        std::map<std::pair<int, int>, std::pair<Nanos, Nanos>> known;
        for (const Op& op : list) {
            if (!isCompute(op.kind)) continue;
            plain = plain && op.slice < 0 && op.half == 0;
            splits = splits || isSplitBackward(op.kind);
            work += costs.duration(op, rank);
            if (!isForward(op.kind) && !isFullBackward(op.kind)) continue;
            const int first = schedule.placement.rankOf(0, op.microbatch);
            auto [found, added] = known.try_emplace({op.stage, first});
            if (added)
                found->second = {headOf(schedule, costs, op.stage, op.microbatch),
                                 tailOf(schedule, costs, op.stage, op.microbatch)};
            if (isForward(op.kind))
                head = std::min(head, found->second.first);
            else
                tail = std::min(tail, found->second.second);
        }
        if (work == 0) continue;
        // its last op may be a W, for which nothing waits
        if (splits || tail == std::numeric_limits<Nanos>::max()) tail = 0;
        if (head == std::numeric_limits<Nanos>::max() || !plain) head = tail = 0;
        const Nanos value = head + work + tail;
        if (value <= bestValue) continue;
        bestValue = value;
        const auto shares = [&](Nanos nanos) {
            return static_cast<double>(nanos) / static_cast<double>(costs.timeUnit);
        };
        best.value = shares(value);
        best.rank = rank;
        best.why =
            fmt::format("rank {} can't start before {:g} and has {:g} of work", rank, shares(head), shares(work));
        if (tail > 0) best.why += fmt::format("; then {:g} until the last gradient is back", shares(tail));
    }
    return best;
}

} // namespace stagewright::lessons
