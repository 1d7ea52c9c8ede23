// Gate: a verdict for CI on whether a run is worse than those before it, by more than equal runs differ.
//
// Runs of one recording that took turns (step by step, `record -s A,B`) share what the machine does meanwhile: the
// figure is the logarithm of the ratio of neighbouring steps, in blocks of eight that each count with their median, and
// its mean without the outer quarters of the blocks is judged by Student's t with the drawn-in variance (K. K. Yuen,
// Biometrika 61, 1974): what disturbs some of the steps counts for little.
// Runs that were recorded one by one differ by more than their steps do: by the machine's state, which a run has one
// of. Then a run counts as one value, its median step, and the limits are those of Student's t over runs, with one
// variance; without several runs there is no verdict. Over all figures of a pair a false alarm has a probability of
// 1 : 1,000.
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
    double before = 0;
    double after = 0;
    // Relative change, and the limits between which it is.
    double change = 0;
    std::optional<double> least = {}, most = {};
    double shows = 0; // a change from this on is found in 95 of 100 cases
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

// runs: those before, then as many to judge as `judged` says; comparisons: of the first with each other. A figure is
// worse if it changes by more than `within`, half of which is certain. Usage error if the step time can't be judged:
// other units or clocks, too few steps of runs that took turns, too few runs of those that did not.
Result<Gate> gateOf(std::span<const Run* const> runs, std::span<const Comparison> comparisons,
                    double within = usualGate, std::size_t judged = 1);

// Relative change with its limits; falseAlarms: probability that an unchanged figure is outside of them.
struct SeriesChange {
    double change = 0, least = 0, most = 0;
    double shows = 0; // without what is allowed
};
// Step i is compared with step i. Nothing: fewer than twelve steps, or one that took no time.
std::optional<SeriesChange> changeInTurn(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms);
// Runs are compared with runs. Nothing: fewer than four in all, none on a side, or one that took no time.
std::optional<SeriesChange> changeOfRuns(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms);

// For CI: a JUnit file with one test case a figure, and one that fails names the cause.
std::string gateJunit(const Gate& gate, const Run& judged);
document::Section gateSection(const Gate& gate, const Units& units);

} // namespace stagewright
