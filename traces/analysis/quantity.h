// Numbers as text: durations, sizes and shares as every view, report and sentence prints them.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/units.h"

namespace stagewright {

// "840 ns", "3.14 µs", "12.4 ms", "1.25 s"; where timeUnit > 1 (unit-cost work) "27.0 units". Negative values carry a
// true minus sign. Two decimals below ten, else one; units up to three, at least one.
std::string formatDuration(Nanos nanos, Nanos timeUnit = 1);
// "512 B", "1.50 MiB"; where memoryUnit > 1 "4.0 microbatches" (activations of one microbatch on 1/p of the model).
std::string formatBytes(Bytes bytes, Bytes memoryUnit = 1);
// "1 op", "3 ops": a count with its noun.
std::string counted(long long count, std::string_view noun);
// 0.1667 → "16.7 %"; NaN → "n/a".
std::string formatPercent(double share, int decimals = 1);

} // namespace stagewright
