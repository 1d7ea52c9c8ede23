#include "traces/run/simulated_run.h"

#include "schedules/timeline/timeline_of.h"

namespace stagewright {

Run runOfSchedule(const Schedule& schedule)
{
    Run run;
    run.info.name = schedule.name;
    run.info.scheduleName = schedule.name;
    run.info.ranks = schedule.ranks;
    run.info.stages = schedule.stages;
    run.info.microbatches = schedule.microbatches;
    run.schedule = std::make_shared<const Schedule>(schedule);
    return run;
}

Result<Run> simulatedRun(const Schedule& schedule, const CostModel& costs, const Channels& channels)
{
    auto timeline = simulatedTimeline(schedule, costs, channels);
    if (!timeline) return tl::unexpected(std::move(timeline.error()));
    Run run = runOfSchedule(schedule);
    run.info.state = RunState::Complete;
    run.info.provenance = Provenance::Simulated;
    run.info.clock = (*timeline)->clock();
    run.info.steps = (*timeline)->steps();
    run.info.spanCount = static_cast<std::int64_t>((*timeline)->spans().size());
    run.configuration = {{"schedule", schedule.name},
                         {"ranks", std::to_string(schedule.ranks)},
                         {"stages", std::to_string(schedule.stages)},
                         {"microbatches", std::to_string(schedule.microbatches)},
                         {"costs", costs.origin}};
    if (channels.sends == SendMode::Rendezvous) run.configuration.emplace_back("sends", "rendezvous");
    if (channels.perDirection > 0) run.configuration.emplace_back("channels", std::to_string(channels.perDirection));
    run.costs = costs;
    run.timeline = std::move(*timeline);
    return run;
}

} // namespace stagewright
