// Grading: a step of a lesson, the learner's canvas and answers, against goals, truths and the values in the text.
// A verdict is a function of these alone: it changes with the schedule.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/bound.h"
#include "traces/lessons/lesson.h"
#include "traces/lessons/reports.h"
#include "traces/run/run.h"

namespace stagewright::lessons {

// The canvas with which a step starts. kept: answers of checks by id, for a step that shows one; if there is none, the
// check's solution is used.
Result<Canvas> startOf(const Lesson& lesson, const Step& step, const std::map<std::string, Schedule>& kept = {});
// The canvas described by an answer in the file.
Result<Canvas> canvasOf(const Lesson& lesson, const GivenAnswer& answer);

// Why a run of a block was refused, or where it stopped.
struct RunFailure {
    std::string message;
    bool hung = false;    // stopped by the watchdog, else refused before it started
    bool skipped = false; // not tried
    std::vector<int> cycle;
    std::vector<int> victims;
};

// The learner's answers and recordings. Runs are named "BLOCK/SCHEDULE" (as run() finds them), schedules as the block
// names them.
struct Learner {
    std::map<std::string, std::string> said; // by id of predict or quiz: "45", "4 3 2 1", "gpipe"
    std::map<std::string, std::shared_ptr<const Run>> runs;
    std::map<std::string, RunFailure> failures; // by block
};

enum class Verdict {
    Open,
    Pass,
    Fail,
};                                        // Open: nothing was answered, or a run is missing
std::string_view toText(Verdict verdict); // "open", "pass", "fail"

// One comparison of a goal.
struct Meter {
    std::string subject; // "makespan"
    Value yours;
    std::string sign; // "<="; "" if the part is a condition (complete, valid)
    Value needed;
    bool holds = false;
};

struct Grade {
    Verdict verdict = Verdict::Open;
    std::string message; // the pass text, the first fail text that applies, or what could not be evaluated
    std::string medal;   // of the best grade line that holds; "" none
    int remark = -1;     // index of the fail line used
    std::vector<Meter> meters;
};

struct LiveValue {
    std::string expression;
    std::string text;  // the value, or "?" if it can't be evaluated
    std::string error; // "" none
};

// The lines of a score; numbers in units, NaN if missing.
struct ScoreRail {
    double yours = 0;
    double guess = 0; // of the learner, if it was about par, the bound or the best known
    double par = 0;
    std::string parName;
    double bound = 0; // proved for orders with the solution's placement, split and costs (bound.h)
    // the best of the library and of the lesson's solutions with the bound's placement and split, within the step's cap
    double bestKnown = 0;
    std::string bestKnownName;
    std::string boundReason;
    bool boundReached = true; // by par or the best known; true where there is neither
};

// A step at a moment. Immutable; keeps references to the lesson, which must outlive it. Thread-safe for reading.
class StepState {
public:
    // Simulates the canvas (microseconds); an order that can't run is a state too: its figures are empty.
    StepState(const Lesson& lesson, const Step& step, Canvas canvas, Learner learner = {});
    ~StepState();
    StepState(StepState&&) noexcept;

    Grade grade(const Check& check) const;
    // Where the step's cap is first exceeded, and by which ops; empty: it fits, or there is no cap.
    std::optional<CapFault> capFault() const;
    Grade grade(const Quiz& quiz) const; // on the canvas that the step starts with
    // In file order, with the run's figures; a run without result leaves them Open. The last one is the fit, if
    // requested.
    std::vector<Grade> grade(const RunBlock& run) const;

    // Text with values; "?" for those that can't be evaluated. within: the check to whose goal value(goal, n) refers.
    std::string say(const Text& text, const Check* within = nullptr) const;
    std::vector<LiveValue> values(const Text& text, const Check* within = nullptr) const;
    Result<Value> evaluate(const Expression& expression, const Check* within = nullptr) const;

    ScoreRail rail(const Check& check) const;
    const Canvas& canvas() const;
    // Its figures, timeline and faults; null if settings and order don't fit each other (evaluations then say why).
    std::shared_ptr<const SimulatedReport> report() const;

    struct Inside;

private:
    std::unique_ptr<Inside> m_inside;
};

// A learner's answer as a value: "4 3 2 1" or "4,3,2,1" a list, "50 %" and "3/4" numbers, else a text.
Value saidValue(const std::string& words);

} // namespace stagewright::lessons
