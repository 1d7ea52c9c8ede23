// A requirement on the figures of a run: "bubble_fraction<=0.12", "idle_by_cause.order<1e6", "loss[-1]<3.2". What
// budgets of continuous integration are made of.
#pragma once

#include <string>
#include <vector>

#include "app/cli/text/json.h"
#include "schedules/base/result.h"

namespace stagewright {

struct Requirement {
    std::string text;
    std::vector<std::string> path; // keys, and positions as "[-1]"
    std::string comparison;        // "<=", ">=", "<", ">", "=="
    double bound = 0;              // in nanoseconds or bytes where it was written with a unit
    enum class Unit {
        None,
        Time,
        Memory,
    };
    Unit unit = Unit::None; // of the bound as it was written
    std::string boundText;
};

// Usage errors say the form; keys are looked up in check().
Result<Requirement> parseRequirement(const std::string& text);

struct RequirementCheck {
    bool holds = false;
    std::string sentence; // "bubble_fraction is 0.2727, over the required <= 0.12"
};
// In the object of --json. residuals.step_error is compared by its magnitude, and the sentence says so:
// |residuals.step_error|. An unknown key is a Usage error that lists the keys at that place; null does not hold.
Result<RequirementCheck> checkRequirement(const Requirement& requirement, const Json& figures);

} // namespace stagewright
