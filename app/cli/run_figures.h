// RunFigures: what the verbs print of a run, analysed once. The formulas stand in docs/numbers.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/figures.h"
#include "schedules/base/result.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/overlap.h"
#include "traces/analysis/step_sample.h"
#include "traces/run.h"
#include "traces/simulated_run.h"

namespace stagewright {

struct RankMemory {
    std::array<Bytes, memoryCategoryCount> peak{}; // by category
    Nanos peakTime = 0;                            // of activations
    std::vector<Holder> holders;                   // of activations at that time, largest first
};

struct RunFigures {
    int step = 0; // the one the figures are of
    Units units;
    BubbleReport bubbles;
    OverlapReport overlap;
    std::vector<CriticalLink> criticalPath;
    std::vector<RankMemory> memory; // by rank; empty where the timeline has none
    std::optional<Bytes> memoryCap; // of a rank's activations, given or the run's own
    std::optional<LeverTable> levers; // addLevers()
    StepSamples overSteps;            // likewise; empty: fewer than two measured steps

    Bytes peak(int rank, MemoryCategory category) const
    {
        return memory[static_cast<std::size_t>(rank)].peak[static_cast<std::size_t>(category)];
    }
    Bytes largestPeak(MemoryCategory category) const; // over ranks, 0 where there is no memory
};

// step −1: the representative one. An unknown step is a Usage error. memoryCap: else the run's own.
Result<RunFigures> analyseRun(const Run& run, int step = -1, std::optional<Bytes> memoryCap = {});

// What would help, and figures over the measured steps. Simulates the step some twenty times.
void addLevers(const Run& run, RunFigures& figures);

// "virtual clock: projected for 4 devices", "wall clock, 2 threads", "model time: F=1, I=1, W=1"
std::string clockText(const Run& run);
double medianOf(std::vector<double> values); // of an even number the lower of the two in the middle; 0 where empty
// Values of the measured steps (warm-up left out).
std::vector<double> measuredValues(const Run& run, std::string_view metric);

} // namespace stagewright
