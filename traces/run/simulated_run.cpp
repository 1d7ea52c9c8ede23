#include "traces/run/simulated_run.h"

#include "schedules/messages/channel_facts.h"
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

Result<Run> simulatedRun(const Schedule& schedule, const CostModel& costs, const Channels& channels,
                         const std::optional<Lowering>& lowering)
{
    STAGEWRIGHT_TRY(auto timeline, simulatedTimeline(schedule, costs, channels));
    Run run = runOfSchedule(schedule);
    run.info.state = RunState::Complete;
    run.info.provenance = Provenance::Simulated;
    run.info.clock = timeline->clock();
    run.info.steps = timeline->steps();
    run.info.spanCount = static_cast<std::int64_t>(timeline->spans().size());
    run.configuration = {{"schedule", schedule.name},
                         {"ranks", std::to_string(schedule.ranks)},
                         {"stages", std::to_string(schedule.stages)},
                         {"microbatches", std::to_string(schedule.microbatches)},
                         {"costs", costs.origin}};
    for (auto& fact : channelFacts(channels, lowering ? toText(*lowering) : std::string(), costs.links.haveBandwidth()))
        run.configuration.push_back(std::move(fact));
    run.costs = costs;
    run.timeline = std::move(timeline);
    return run;
}

} // namespace stagewright
