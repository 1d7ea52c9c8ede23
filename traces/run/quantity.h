// Numbers as text: durations, sizes and shares as every view, report and sentence prints them.
#pragma once

#include <optional>
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
// What became of a figure, as a share of what it was: "+4.1 %", "−16.7 %", "0.0 %".
std::string formatChange(double share);
std::string withTrueMinus(std::string number); // a leading - becomes −
std::string shortNumber(double value);         // up to four decimals, no trailing zeros

// How a timeline's figures are printed: Timeline::timeUnit() and memoryUnit(). 1 means ns and bytes, anything else unit-cost work, whose
// figures are rank shares and microbatches.
struct Units {
    Nanos time = 1;
    Bytes memory = 1;
    bool operator==(const Units&) const = default;

    bool shares() const { return time != 1; }
    std::string timeName() const { return shares() ? "rank_share" : "ns"; }
    double timeValue(Nanos nanos) const { return static_cast<double>(nanos) / static_cast<double>(time); }
    double memoryValue(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(memory); }
    std::string timeText(Nanos nanos) const;                                                                     // in columns: "27", "28.5", "12.4 ms"
    std::string memoryText(Bytes bytes) const;                                                                   // likewise: "4", "5.5", "3.1 MiB"
    std::string memoryText(const std::optional<Bytes>& bytes) const { return bytes ? memoryText(*bytes) : "–"; } // unknown: "–"
};

} // namespace stagewright
