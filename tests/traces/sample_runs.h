// Timelines and runs for the tests: simulated ones, and random ones with every field in use.
#pragma once

#include <cstdint>
#include <random>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/cost_model.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/run/run.h"

namespace stagewright::samples {

inline constexpr Nanos us = 1'000;

inline Schedule schedule(const std::string& name, int ranks, int microbatches)
{
    Shape shape;
    shape.ranks = ranks;
    shape.microbatches = microbatches;
    return makeSchedule(name, shape).value();
}

inline CostModel unitCosts(const Schedule& schedule, double latency = 0)
{
    CostModel::UnitCosts costs;
    costs.latency = latency;
    return CostModel::uniform(schedule, costs);
}

inline std::shared_ptr<const Timeline> simulated(const std::string& name, int ranks, int microbatches,
                                                 double latency = 0)
{
    const Schedule s = schedule(name, ranks, microbatches);
    return simulatedTimeline(s, unitCosts(s, latency)).value();
}

inline Run simulatedRun(const std::string& name, int ranks, int microbatches, double latency = 0)
{
    Run run;
    const Schedule s = schedule(name, ranks, microbatches);
    run.costs = unitCosts(s, latency);
    run.timeline = simulatedTimeline(s, *run.costs).value();
    run.schedule = run.timeline->schedule();
    run.info.name = name;
    run.info.scheduleName = name;
    run.info.provenance = run.timeline->provenance();
    run.info.clock = run.timeline->clock();
    run.info.ranks = ranks;
    run.info.stages = s.stages;
    run.info.microbatches = microbatches;
    run.info.steps = run.timeline->steps();
    run.info.spanCount = static_cast<std::int64_t>(run.timeline->spans().size());
    return run;
}

// Spans on several lanes and steps, labels, CPU times, edges of every kind, memory, counters. Times may be negative.
std::shared_ptr<const Timeline> randomTimeline(std::uint32_t seed, int ranks, int steps, int spansPerTrack,
                                               int firstStep = 0);
Run randomRun(std::uint32_t seed);

// "" where both hold the same, else the first thing that differs.
std::string difference(const Timeline& a, const Timeline& b);
std::string difference(const Run& a, const Run& b);

} // namespace stagewright::samples
