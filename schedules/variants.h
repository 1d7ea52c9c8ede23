// What a proof over the whole registry runs through: every schedule with each alternative of each of its parameters, on
// shapes that it takes.
#pragma once

#include <string>
#include <vector>

#include "schedules/registry.h"

namespace stagewright {

// "chimera", "chimera:join=doubling", "chimera:f=2" …: the defaults, then each other value of each parameter alone. A
// parameter that is a whole number is tried with 2, one that is a real number is left at its default.
std::vector<std::string> variantsOf(const ScheduleInfo& info);

// The schedule on the given shape, or on the first that it takes of: more microbatches (up to four a rank), then more ranks
// (up to twice as many) and the same. The error is that of the given shape.
Result<Schedule> makeOnNearShape(const std::string& name, const Shape& shape);

} // namespace stagewright
