// Figures as words, on top of traces/analysis/quantity.h: units of a timeline, signs, counts, lists. A negative figure has a
// true minus.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/base/units.h"
#include "traces/analysis/quantity.h"

namespace stagewright {

// How a timeline's figures are printed: unit-cost work in rank shares, measured work in ns … s and B … GiB.
struct Units {
    Nanos time = 1;
    Bytes memory = 1;

    bool shares() const { return time != 1; }
    std::string timeName() const { return shares() ? "rank_share" : "ns"; }
    double timeValue(Nanos nanos) const { return static_cast<double>(nanos) / static_cast<double>(time); }
    double memoryValue(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(memory); }
    std::string timeText(Nanos nanos) const;   // "27", "28.5", "12.4 ms"
    std::string memoryText(Bytes bytes) const; // "4", "5.5", "3.1 MiB"
};

std::string withTrueMinus(std::string number); // a leading - becomes −
std::string shortNumber(double value);         // up to four decimals, no trailing zeros
std::string signedPercentText(double share);   // "+4.1 %", "−16.7 %"
std::string plural(long long count, const std::string& noun); // "1 run", "3 runs", "2 microbatches"
std::string listText(const std::vector<std::string>& items);  // "a, b and c"

std::int64_t unixMilliseconds();                              // now

} // namespace stagewright
