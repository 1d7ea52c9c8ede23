// Fitting the constants of a step's closed form to steps that were measured: the seven that make the mean relative error
// of a table's rows least, by Nelder and Mead's simplex (Computer Journal 7, 1965) over their logarithms. Deterministic.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/layout/parallelism.h"

namespace stagewright {

struct MeasuredStep {
    ModelPreset model;
    Parallelism way;
    double seconds = 0;
};

// A CSV with a title line: hidden, layers, heads, t, p, d, b, samples (of a step) and ms; seq [2048], vocab [51200], v [1],
// recompute [full]: none, selective or full. Other columns are passed over. Errors name the line.
Result<std::vector<MeasuredStep>> parseMeasuredSteps(std::string_view text);

struct Calibration {
    StepConstants constants;
    std::vector<double> errors;   // of each row: predicted ÷ measured − 1
    double mean = 0, largest = 0; // of their magnitudes
    std::size_t fitted = 0;       // so many of namedConstants(), from the first; the others are as they were
};
// The constants as they are, against the rows; the cluster's number of devices is each row's own.
Calibration residualsOf(const std::vector<MeasuredStep>& rows, const Cluster& cluster, const StepConstants& constants);
// As many constants as there are rows, at most all; the others stay those given. Usage: no rows. Cancelled by the
// progress.
Result<Calibration> calibrate(const std::vector<MeasuredStep>& rows, const Cluster& cluster,
                              const Progress& progress = {}, const StepConstants& start = {});

std::vector<std::pair<std::string, double>> namedConstants(const StepConstants& constants);
// The constants as JSON, and back; Unreadable names the key.
std::string toJson(const StepConstants& constants);
Result<StepConstants> parseStepConstants(const std::string& text);

} // namespace stagewright
