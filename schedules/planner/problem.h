// A planner's problem and its answer as JSON (docs/planners.md): {"program": "alpa_inter", "input": {…}}.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/planner/inter_operator.h"
#include "schedules/planner/pictures.h"
#include "schedules/planner/uneven_devices.h"

namespace stagewright {

struct PlannerInfo {
    std::string_view program; // "alpa_inter"
    std::string_view title;   // "Alpa: layers on submeshes"
};
std::span<const PlannerInfo> allPlanners();
// What exampleProblem() takes: all planners, and those of their kinds of problems that have a picture of their own.
std::vector<PlannerInfo> allExamples();

struct PlannerAnswer {
    std::string program;
    std::string json; // an object, indented
    bool fits = true; // there is a plan
    PlannerPicture picture;
};
// A small problem of the program to start from, as JSON, a line for each member; "merak:subpipe" is one of a kind.
// Usage: an unknown program or kind.
Result<std::string> exampleProblem(std::string_view name);

std::string programOf(std::string_view problem);   // "": it is not a problem
std::string exampleLike(std::string_view problem); // its program, or its kind where that is an example
// A number of the input that is not in a list: what a slider moves.
struct ProblemNumber {
    std::string key;
    double value = 0;
    bool whole = false; // as it is written
};
std::vector<ProblemNumber> numbersOf(std::string_view problem); // none: it is not a problem
// The problem with another number, likewise. Usage: it has no such number.
Result<std::string> withNumber(std::string_view problem, std::string_view key, double value);

// Unreadable: not such a problem, with the place in it; Usage: numbers that a planner refuses; Cancelled.
Result<PlannerAnswer> solveProblem(std::string_view text, const Progress& progress = {});

bool hasLayout(std::string_view program); // its plan is one
bool takesRuns(std::string_view program); // recorded runs are a problem of it (traces/fit)
// Such a problem, of alpa_inter, as a value. Usage: it is another one; else as solveProblem().
Result<InterOperatorProblem> interOperatorProblem(std::string_view text);
Result<UnevenProblem> unevenProblem(std::string_view text); // likewise of cephalo

} // namespace stagewright
