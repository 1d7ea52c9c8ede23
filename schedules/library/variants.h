// The registry's schedules with their parameters: what a test of all of them runs through, and what a given schedule
// may be.
#pragma once

#include <string>
#include <vector>

#include "schedules/library/registry.h"

namespace stagewright {

// "chimera", "chimera:join=doubling", "chimera:f=2" …: the defaults, then each other value of each parameter alone. A
// parameter that is a whole number is tried with 2, one that is a real number is left at its default.
std::vector<std::string> variantsOf(const ScheduleInfo& info);
std::vector<std::string> everyVariant(); // of every schedule

// The names under which the library may have made a schedule: each of as many stages per rank, at its defaults, then
// with each parameter alone and all of them together. Whole numbers are those that the schedule's ranks, copies of
// stages, chunks and slices suggest. `searching`: also those that search (some milliseconds each).
std::vector<std::string> namesThatMayFit(const Schedule& schedule, bool searching);

// The schedule on the given shape, or on the first that it takes of: more microbatches (up to four a rank), then more
// ranks (up to twice as many) and the same. The error is that of the given shape.
Result<Schedule> makeOnNearShape(const std::string& name, const Shape& shape);

} // namespace stagewright
