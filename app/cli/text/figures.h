// Counts and lists as words, on top of schedules/base/quantity.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/base/quantity.h"
#include "traces/run/run.h"

namespace stagewright {

std::string plural(long long count, const std::string& noun); // "1 run", "3 runs", "2 microbatches"

// Values of the measured steps (warm-up left out).
std::vector<double> measuredValues(const Run& run, std::string_view metric);
std::int64_t unixMilliseconds(); // now

} // namespace stagewright
