// measureForwardUnit: the forward time that is the unit of latencies.
#include "engine/training/forward_unit.h"

#include <algorithm>

#include "engine/training/training.h"
#include "schedules/base/median.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

Result<Nanos> measureForwardUnit(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options)
{
    const Schedule& schedule = checked->compute();
    constexpr int measuredSteps = 2; // after a cold one
    TrainingOptions alone = options;
    alone.clock = ClockMode::Virtual; // CPU time, whatever else the machine does
    alone.links = Links();
    alone.channels = Channels();
    alone.perturbation = RunPerturbation();
    Result<std::unique_ptr<Training>> training = Training::create(checked, alone);
    if (!training) return tl::unexpected(std::move(training.error()).with("measuring the forward time"));
    std::vector<std::vector<Nanos>> durations(static_cast<std::size_t>(schedule.stages));
    for (int step = 0; step <= measuredSteps; ++step) {
        Result<StepOutcome> outcome = (*training)->step({});
        if (!outcome) return tl::unexpected(std::move(outcome.error()).with("measuring the forward time"));
        if (step == 0) continue;
        for (const Span& span : outcome->timeline->spans()) {
            if (isForward(span.op.kind)) durations[span.op.stage].push_back(span.duration() / span.op.count);
        }
    }
    Nanos sum = 0; // of the median over microbatches, over stages
    for (std::vector<Nanos>& of : durations) sum += upperMedian(std::move(of));
    return sum / schedule.pipelineRanks();
}

} // namespace stagewright
