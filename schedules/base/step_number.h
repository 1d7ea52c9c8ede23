// Steps are indices from 0 inside, in run files, SQL and JSON (`step`); people count them from 1 over all steps of a
// run, warm-up included: every text, window and option, and `step_number` next to each `step`.
#pragma once

#include <concepts>

namespace stagewright {

inline constexpr int outsideSteps = -1; // the index of work that is in no step, or in one that is not known

template <std::integral Index>
constexpr Index stepNumber(Index step)
{
    return step + 1;
}

} // namespace stagewright
