// What would help, and figures over the steps of a run, as text and JSON.
#pragma once

#include <string>

#include "app/cli/text/run_json.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/step_sample.h"

namespace stagewright {

// The table, longest gain first, and what it is simulated with. Nothing to simulate: one line with the reason.
std::string leversText(const LeverTable& table, const Units& units, bool colour);
// Keys levers, levers_baseline.
void addLeversJson(Json& object, const LeverTable& table, const Units& units);

// "median 28.7 ms of 8 steps, 95 %: 28.1 ms to 29.4 ms"; below six steps "from 28.1 ms to 29.4 ms". unit: "ns",
// "fraction" or "bytes".
std::string sampleText(const FigureSample& sample, const std::string& unit, const Units& units);
// Key over_steps: by figure, in the units of the figures themselves; null where the run has fewer than two measured
// steps.
void addStepSamplesJson(Json& object, const StepSamples& samples, const Units& units);

} // namespace stagewright
