#include "schedules/execute/place_buckets.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/step/plain_run.h"
#include "schedules/step/step_deadlock.h"
#include "schedules/step/step_run.h"

namespace stagewright {

namespace {

SimResult summarised(const Schedule& schedule, std::span<const Nanos> clock, bool beside, SimResult out)
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
    return out;
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

Result<void> durationsFit(const Schedule& schedule, std::span<const Nanos> durations)
{
    if (durations.size() != schedule.opCount())
        return fail(ErrorCode::Usage, fmt::format("{} durations for {} ops", durations.size(), schedule.opCount()));
    if (std::any_of(durations.begin(), durations.end(), [](Nanos duration) { return duration < 0; }))
        return fail(ErrorCode::Usage, "a duration is negative");
    return {};
}

// index: where there is one already; null: made where it is needed.
Result<SimResult> runLists(const Schedule& schedule, std::span<const Nanos> durations, const StepRules& rules,
                           PlacePolicy policy, const CellSpace& cells, const OpIndex* index)
{
    STAGEWRIGHT_CHECK(durationsFit(schedule, durations));
    if (PlainRun::serves(schedule, cells, rules)) {
        PlainRun lists(schedule, cells, rules, durations);
        for (bool ended = lists.run(); !ended; ended = lists.runForcing(lists.waitingRank()))
            if (policy == PlacePolicy::Strict) return tl::unexpected(listError(schedule, cells));
        return summarised(schedule, lists.clocks(), lists.collectivesBeside(), lists.take());
    }
    std::optional<OpIndex> own;
    if (index == nullptr) index = &own.emplace(schedule, cells);
    const StepPlan plan(schedule, *index, rules);
    StepRun lists(plan, durations);
    if (!lists.run(policy)) return tl::unexpected(listError(schedule, cells, rules.channels));
    SimResult out = summarised(schedule, lists.clocks(), plan.collectivesBeside(), lists.take());
    if (!out.end.empty()) out.makespan = std::max(out.makespan, *std::max_element(out.end.begin(), out.end.end()));
    return out;
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
    return runLists(schedule, durations, {links, channels, boundary, gradientBuckets}, policy, *cells, nullptr);
}

Result<SimResult> placeBuckets(const CheckedSchedule& schedule, std::span<const Nanos> durations, const Links& links,
                               std::span<const int> gradientBuckets, std::span<const Bytes> boundary,
                               const Channels& channels)
{
    return runLists(schedule.compute(), durations, {links, channels, boundary, gradientBuckets}, PlacePolicy::Strict,
                    schedule.cells(), &schedule.index());
}

} // namespace stagewright
