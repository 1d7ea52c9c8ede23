// How far times may lie apart: one limit for what is imported, simulated, stored and read back.
#pragma once

#include <limits>

#include "schedules/base/units.h"

namespace stagewright {

// From the origin of a run, 36 years: sums of a few such times can't overflow.
inline constexpr Nanos farthestTime = std::numeric_limits<Nanos>::max() / 8;
// The latest reading of a clock that counts from 1970, as traces have it: in 2043. Two readings are less than twice
// farthestTime apart once an origin is taken off.
inline constexpr Nanos farthestReading = std::numeric_limits<Nanos>::max() / 4;

constexpr bool isStorableTime(Nanos time) { return time >= -farthestTime && time <= farthestTime; }

} // namespace stagewright
