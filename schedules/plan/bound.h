// Lower bounds on the objective of a Pipeline, valid for every order that keeps the caps, of I and W or full backwards
// by microbatch. Where a full backward is shorter, each formula takes the least of both. Internal to schedules/plan.
//
// Window bound. On rank r no I can start before turn(r's last stage in the chain), so before that moment only F's run,
// and of them at most what the cap holds; after the rank's last I only its W's are left, again at most what the cap
// holds, while the gradient still has to travel to stage 0. What cannot run in those windows must run between them.
//
// Round trip. With room for k microbatches on a rank, microbatch j + k can't start there before microbatch j has gone
// down, come back and been freed.
//
// Rank relaxation: schedules/plan/relaxation.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

struct Bound {
    Nanos value = 0;
    // "work of rank 3", "window of rank 0", "round trip of rank 0", "relaxation of single ranks", "branch and bound"
    std::string by;
};

// Where microbatches differ: what each rank's passes take together, with their own times. O(passes).
Bound workBound(const Pipeline& pipeline);

// O(stages²).
Bound windowBound(const Pipeline& pipeline);

// The better of both: the smallest target that the relaxation can't refute, to a 10,000th of `best` unless it is best
// itself, on the grid of the durations' common divisor, between the window bound, or a better one that is known
// already, and `best` (an objective that is reached). stop ends it early with what is proven so far.
Bound provenBound(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos best,
                  const std::function<bool()>& stop = {}, const Bound& known = {});

// The largest number that divides every duration, delay and origin: objectives are multiples of it. At least 1.
Nanos gridOf(const Pipeline& pipeline);

} // namespace stagewright::planning
