// What recorded runs say to formulas: a step as a row for the constants of a layout's closed form, and in shares of a
// rank for the survey of levels. Pure.
#pragma once

#include <string>

#include "schedules/layout/calibration.h"
#include "traces/run/run.h"

namespace stagewright {

// The shape of the model that a run trained. Usage: it does not say so.
Result<ModelPreset> trainedModelOf(const Run& run);

// Median step of the measured steps, with the run's model and division. Usage says why a run is not such a row: it is
// simulated or imported, is not of 1F1B's length (the closed form is that of 1F1B, plain or interleaved, and of GPipe),
// or does not say its model.
Result<MeasuredStep> measuredStepOf(const Run& run);

// The representative step without what is before its first pass and behind its last: in shares of a rank, one being the
// mean of a rank's forwards of one microbatch.
struct MeasuredWindow {
    std::string schedule;
    int ranks = 0, microbatches = 0, chunks = 1;
    double inputGrad = 0, weightGrad = 0; // rank shares; a full backward counts half as each
    double step = 0;                      // likewise
};
// Usage: no passes are in it.
Result<MeasuredWindow> measuredWindowOf(const Run& run);

} // namespace stagewright
