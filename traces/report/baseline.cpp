#include "traces/report/baseline.h"

#include <algorithm>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"

namespace stagewright {

std::optional<Baseline> baselineOf(const Schedule& schedule, const CostModel& costs)
{
    if (schedule.ranks < 2 || schedule.placement.hasCopies()) return std::nullopt;
    auto other = makeSchedule("1f1b", Shape{schedule.ranks, schedule.microbatches, 1});
    if (!other) return std::nullopt;
    CostModel merged(schedule.ranks, costs.source);
    merged.links = costs.links;
    merged.timeUnit = costs.timeUnit;
    merged.memoryUnit = costs.memoryUnit;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        Nanos forward = 0, backward = 0;
        StageMemory memory;
        for (const int stage : schedule.placement.stagesOf(rank)) {
            const Nanos whole = costs.duration(OpKind::Backward, stage, rank); // where only its parts ran, their sum
            forward += costs.duration(OpKind::Forward, stage, rank);
            backward += whole > 0 ? whole
                                  : costs.duration(OpKind::InputGrad, stage, rank) +
                                        costs.duration(OpKind::WeightGrad, stage, rank);
            if (stage >= costs.stages()) continue;
            const StageMemory& part = costs.memory[static_cast<std::size_t>(stage)];
            memory.activation += part.activation;
            memory.boundary = std::max(memory.boundary, part.boundary);
        }
        merged.setDuration(OpKind::Forward, rank, forward);
        merged.setDuration(OpKind::Backward, rank, backward);
        merged.memory[static_cast<std::size_t>(rank)] = memory;
    }
    auto result = simulate(*other, merged);
    if (!result || result->makespan <= 0) return std::nullopt;
    Baseline baseline;
    baseline.name = "1F1B";
    baseline.bubbleFraction = figuresOf(*other, *result).bubbleFraction;
    baseline.makespan = result->makespan;
    baseline.peakActivation = result->peakActivation;
    return baseline;
}

} // namespace stagewright
