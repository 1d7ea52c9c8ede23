// RunFigures: everything the window prints about one step of a run, computed once by pure functions (any thread).
// docs/numbers.md has the formulas.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/overlap.h"
#include "traces/analysis/step_sample.h"
#include "traces/run.h"
#include "traces/simulated_run.h"

namespace stagewright {

// What the headline is compared with: 1F1B with one stage per rank, simulated with the run's own costs.
struct Baseline {
    std::string name;
    double bubbleFraction = 0;
    Nanos makespan = 0;
    std::vector<Bytes> peakActivation; // by rank
};

struct RunFigures {
    int step = 0;
    BubbleReport bubbles;
    OverlapReport overlap;
    std::vector<CriticalLink> criticalPath;
    std::vector<Bytes> peakActivation; // by rank; empty: the timeline holds no memory
    std::vector<Bytes> peakWeights;    // by rank; empty likewise
    std::optional<Baseline> baseline;
    Nanos linkLatency = -1; // of the fitted or given costs; −1: unknown
    std::size_t spans = 0;  // of the step
    std::optional<LeverTable> levers; // what would help; nothing: figures of a range
    StepSamples overSteps;            // figures over the measured steps; empty: fewer than two, or of a range
};

// step −1: the representative one. memoryCap: of a rank's activations, else the run's own; idle time that only more memory would have filled
// counts as Memory. Fails where the analyses do (a step that does not exist).
Result<RunFigures> runFigures(const Run& run, int step = -1, std::optional<Bytes> memoryCap = {});

// The run's cost model, or costs fitted from its measured steps, or unit costs where nothing can be fitted.
// Invalid where the run holds no schedule and its timeline none either.
Result<CostModel> costsOf(const Run& run);
// The schedule it ran: stored, or read off the timeline's representative step.
Result<Schedule> scheduleOfRun(const Run& run);
// 1F1B over the run's ranks under `costs`, a rank's chunks added up. None for one rank or for copies of a stage.
std::optional<Baseline> baselineOf(const Schedule& schedule, const CostModel& costs);

} // namespace stagewright
