// A whole that comes in equal parts, one after the other.
#pragma once

#include "schedules/base/units.h"

namespace stagewright {

// whole · (parts − 1) / parts, rounded down once.
constexpr Nanos allButOnePart(Nanos whole, int parts) { return whole - (whole + parts - 1) / parts; }

} // namespace stagewright
