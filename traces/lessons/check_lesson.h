// Checking a lesson, as in `stagewright lesson --check`. A lesson is a set of statements about schedules; every one is
// simulated.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "traces/lessons/grading.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

// The points to which findings belong.
enum class Point {
    Names = 1,  // named predecessors, schedules, tools, hints and runs exist
    Simulates,  // every step simulates, or is invalid on purpose
    StartFails, // no check passes without a change, and its solution can be reached with the step's tools
    SolutionPasses,
    WrongFails,  // wrong answers fail with their message; every fail line is the message of some wrong answer
    AboveBound,  // no goal below the proved bound
    Evaluates,   // every {{…}} evaluates; no figure typed into prose
    Generalises, // goals hold for other shapes, if the lesson says so
    Figures,     // figures are not empty
    Words,       // sentences of at most 25 words, abbreviations in the glossary
    Runs,        // recorded runs meet their goals
    Tight,       // a goal one unit looser lets a wrong answer pass
    Withholds,   // no reply, hint or figure beside the tools is the answer of its question
};
std::string_view toText(Point point); // "names"

enum class Severity {
    Note,
    Warning,
    Fault,
    Skipped,
};
std::string_view toText(Severity severity);

struct Finding {
    Severity severity = Severity::Fault;
    Point point = Point::Names;
    FilePlace at;
    std::string message;
};

struct LessonReport {
    std::string lesson;
    std::string file;
    std::vector<Finding> findings; // in file order within a point
    int statements = 0;            // how many were checked
    bool sound() const;            // no fault
    int count(Severity severity) const;
};

struct CheckOptions {
    std::vector<std::string> lessons; // ids that `after` may name; empty: not checked
    Learner recorded;                 // runs to judge, with `judgeRuns`
    bool judgeRuns = false;
};

// Pure, deterministic, without input or output. Takes milliseconds per lesson.
LessonReport checkLesson(const Lesson& lesson, const CheckOptions& options = {});

// "needs chimera": features that a lesson, step or block needs and this program lacks; empty: none.
std::vector<std::string> missingNeeds(const std::vector<std::string>& needs);
// For a check or quiz: its own needs and those of its step.
template <typename Asked>
std::vector<std::string> missingFor(const Lesson& lesson, const Asked& asked)
{
    std::vector<std::string> needs = asked.needs;
    if (const Step* step = lesson.step(asked.step)) needs.insert(needs.end(), step->needs.begin(), step->needs.end());
    return missingNeeds(needs);
}

} // namespace stagewright::lessons
