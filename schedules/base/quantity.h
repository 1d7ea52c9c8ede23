// Numbers as text: durations, sizes, shares and counts as every view, report, sentence and message prints them. The
// window wraps these.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/units.h"

namespace stagewright {

// With a true minus sign, none before zero. Not finite: "–".
std::string fixedNumber(double value, int decimals); // "−1.50", "0.0"
std::string shortNumber(double value, int most = 3); // up to `most` decimals, no trailing zeros: "27", "28.5", "0.333"
std::string withTrueMinus(std::string number);       // a leading - becomes −

// A unit and its size in ns or bytes, chosen so that one to three digits (of bytes four) are before the point.
struct NumberScale {
    double size = 1;
    std::string_view name;
};
// The unit of durations that a reader chose; Automatic chooses by size. Unit-cost work stays in units.
enum class TimeUnit {
    Automatic,
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
};
NumberScale timeScale(double nanos, TimeUnit unit = TimeUnit::Automatic); // ns, µs, ms, s
NumberScale byteScale(double bytes);                                      // B, KiB, MiB, GiB, TiB, PiB
int decimalsOf(double scaled);                                            // 2 below ten, else 1

// "0 ns", "840 ns", "3.14 µs", "12.4 ms", "1.25 s"; where timeUnit > 1 (unit-cost work) "1 unit", "28.5 units". In a
// chosen unit three digits, but none below a nanosecond.
std::string formatDuration(Nanos nanos, Nanos timeUnit = 1, TimeUnit unit = TimeUnit::Automatic);
std::string formatUnits(double value, int most = 3); // "1 unit", "28.5 units"
// "0 B", "1.50 MiB"; where memoryUnit > 1 "4 microbatches" (activations of one microbatch on 1/p of the model).
std::string formatBytes(Bytes bytes, Bytes memoryUnit = 1);
// "1 op", "3 ops": a count with its noun.
std::string counted(long long count, std::string_view noun);
// 0.1667 → "16.7 %"; NaN → "–".
std::string formatPercent(double share, int decimals = 1);
// What became of a figure, as a share of what it was: "+4.1 %", "−16.7 %", "0.0 %"; from ten times upwards "× 12".
std::string formatChange(double share);

// How a timeline's figures are printed: Timeline::timeUnit() and memoryUnit(). 1 means ns and bytes, anything else
// unit-cost work, whose figures are rank shares and microbatches.
struct Units {
    Nanos time = 1;
    Bytes memory = 1;
    bool operator==(const Units&) const = default;

    bool shares() const { return time != 1; }
    std::string timeName() const { return shares() ? "rank_share" : "ns"; }
    double timeValue(Nanos nanos) const { return static_cast<double>(nanos) / static_cast<double>(time); }
    double memoryValue(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(memory); }
    // In columns: as formatDuration and formatBytes, without the words "units" and "microbatches". Unknown: "–".
    std::string timeText(Nanos nanos) const { return shares() ? shortNumber(timeValue(nanos)) : formatDuration(nanos); }
    std::string memoryText(Bytes bytes) const
    {
        return memory != 1 ? shortNumber(memoryValue(bytes)) : formatBytes(bytes);
    }
    std::string memoryText(const std::optional<Bytes>& bytes) const { return bytes ? memoryText(*bytes) : "–"; }
};

} // namespace stagewright
