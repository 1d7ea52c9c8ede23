// Gate: a verdict for CI on whether a run is worse than the runs before it, by more than their steps differ among
// themselves.
//
// A figure's value in each measured step is a series. It is cut into at most ten blocks of neighbouring steps, each of
// which counts with its median: single slow steps do not matter, and a slow drift within a run shows between blocks.
// Two runs are compared by Welch's t-test over their blocks (B. L. Welch, Biometrika 34, 1947), at a probability of
// 1 : 10,000 of a false alarm over all figures of a pair.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/compare/compare.h"

namespace stagewright {

struct GateFigure {
    enum class Verdict { Same, Better, Worse, Unknown };

    std::string key = {};   // "step_time_ns", "stage_work_ns.1", "peak_activation_bytes.rank0"
    std::string title = {}; // "Step time", "Work of stage 1 (rank 1)"
    bool size = false;      // in bytes; else in ns
    double before = 0;      // of the run before with the largest value
    double after = 0;
    // Relative change against that run, and the limits between which it is: those of the test, widened by how far the
    // runs before are apart; without limits too few steps.
    double change = 0;
    std::optional<double> least = {}, most = {};
    Verdict verdict = Verdict::Unknown;
};
std::string_view toText(GateFigure::Verdict verdict); // "same", "better", "worse", "unknown"

struct Gate {
    double within = 0;                    // relative: a change that is surely larger is worse or better
    std::vector<GateFigure> figures = {}; // step time, work by stage, peaks
    std::vector<std::string> causes = {}; // sentences, of a worse run only: what became slower, and what waited for it
    std::vector<std::string> doubts = {}; // what makes the verdict weaker than it looks

    bool worse() const;
    std::string sentence() const; // "worse: step time 279 ms → 291 ms, at least 3.1 % more"
};

inline constexpr double usualGate = 0.02;

// runs: one or more before, then the one to judge; comparisons: of the first with each other. A figure is worse if it
// exceeds the largest of the runs before by more than `within`, half of which is certain. Usage error if the step time can't be judged: other
// units or clocks, no measured steps, fewer than four of them.
Result<Gate> gateOf(std::span<const Run* const> runs, std::span<const Comparison> comparisons,
                    double within = usualGate);

// Relative change of the second series' centre against the first's with its limits, as the gate judges it;
// falseAlarms: probability that an unchanged figure is outside. Nothing: fewer than four values in one, or none above 0.
struct SeriesChange {
    double before = 0, after = 0;
    double change = 0, least = 0, most = 0;
};
std::optional<SeriesChange> seriesChange(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms);

// For CI: a JUnit file with one test case a figure, and one that fails names the cause.
std::string gateJunit(const Gate& gate, const Run& judged);
document::Section gateSection(const Gate& gate, const Units& units);

} // namespace stagewright
