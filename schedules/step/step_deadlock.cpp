#include "schedules/step/step_deadlock.h"

#include "schedules/step/plain_run.h"

namespace stagewright {

std::vector<Wait> waitsOf(const StepRun& run, const StepPlan& plan)
{
    std::vector<Wait> waits;
    for (int r = 0; r < plan.schedule().ranks; ++r)
        for (const auto& obstacle : run.obstacles(r)) {
            if (obstacle.awaited == noOp) continue;
            const OpPlace at = plan.index().placeOf(obstacle.op);
            const OpPlace on = plan.index().placeOf(obstacle.awaited);
            waits.push_back({r, static_cast<int>(at.position), plan.op(obstacle.op), on.rank,
                             static_cast<int>(on.position), plan.op(obstacle.awaited)});
        }
    return waits;
}

std::vector<Wait> findDeadlock(const Schedule& schedule, const OpIndex& index, const Channels& channels)
{
    if (hasMessagesOrMeetings(schedule)) {
        const StepPlan plan(schedule, index, {untimedLinks(schedule), channels});
        StepRun lists(plan);
        if (lists.run()) return {};
        return shortestCycle(schedule.ranks, waitsOf(lists, plan));
    }
    const StepRules rules;
    PlainRun lists(schedule, index.cells(), rules);
    bool ended = lists.run();
    while (!ended) { // past what no other rank will make
        int rank = lists.waitingRank();
        while (rank < schedule.ranks && (lists.heads()[static_cast<std::size_t>(rank)] ==
                                             schedule.order[static_cast<std::size_t>(rank)].size() ||
                                         waitAt(schedule, index, rank, lists.heads()).onRank >= 0))
            ++rank;
        if (rank == schedule.ranks) return cycleAt(schedule, index, lists.heads());
        ended = lists.runForcing(rank);
    }
    return {};
}

std::vector<std::size_t> runnableOps(const Schedule& schedule, const OpIndex& index)
{
    const StepRules rules;
    PlainRun lists(schedule, index.cells(), rules);
    lists.run();
    return {lists.heads().begin(), lists.heads().end()};
}

Error listError(const Schedule& schedule, const CellSpace& cells, const Channels& channels)
{
    const OpIndex index(schedule, cells);
    return blockedError(schedule, index, findDeadlock(schedule, index, channels));
}

} // namespace stagewright
