// Run: a stored execution, as listed by the store and opened by the window.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

using TextPairs = std::vector<std::pair<std::string, std::string>>; // keeps its order

enum class RunState {
    Recording,
    Complete,
    Interrupted,
    Receiving, // by a listener, which replaces the file: complete as far as it goes
};
std::string_view toText(RunState state);

struct Metric {       // one value per step
    std::string name; // "loss", "step_time_ns", "wall_time_ns", "contention"
    std::string unit; // "nats", "ns", …
    std::vector<double> values;
};

struct RunInfo {
    std::int64_t id = 0; // within its file, from 1
    std::string name;    // shown; the schedule's name unless renamed
    std::string scheduleName;
    std::string note;
    std::int64_t createdUnixMs = 0;
    RunState state = RunState::Complete;
    Provenance provenance = Provenance::Simulated;
    std::string clock;
    int ranks = 0;
    int stages = 0;
    int microbatches = 0;
    int steps = 0;
    int warmupSteps = 0; // the first ones, not used for figures
    std::int64_t spanCount = 0;
    std::int64_t damagedBlocks = 0; // set by reading: unreadable blocks that were skipped; to be shown
};

struct Run {
    RunInfo info;
    TextPairs configuration;
    TextPairs environment;
    std::shared_ptr<const Schedule> schedule; // may be null (imported)
    std::optional<CostModel> costs;
    std::shared_ptr<const Timeline> timeline; // over all its steps
    std::vector<Metric> metrics;
    std::optional<int> median; // representativeStep(), where the timeline has some of the run's steps only

    const Metric* metric(std::string_view metricName) const;
    // The step whose figures are shown: of the measured (not warm-up) steps the one with the median time (of two the
    // faster).
    int representativeStep() const;
};

// representativeStep() from the bounds of the steps, by step; end < begin: the step is absent.
int representativeStep(const std::vector<std::pair<Nanos, Nanos>>& bounds, const std::vector<Metric>& metrics,
                       int warmupSteps);

// For a run of an asynchronous schedule, which changes the mathematics: the rule of its weights and, if it was trained,
// how far they are from those of synchronous training. "stashed: 7.7e-02 from synchronous training after the last step
// (relative L2)". Empty: the run is synchronous.
std::string weightsText(const Run& run);

} // namespace stagewright
