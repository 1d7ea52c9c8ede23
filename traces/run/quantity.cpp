#include "traces/run/quantity.h"

#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace stagewright {

namespace {

// Up to `most` decimals, trailing zeros removed but for the first.
std::string withoutZeros(double value, int most)
{
    std::string text = fmt::format("{:.{}f}", value, most);
    while (text.size() > 2 && text.back() == '0' && text[text.size() - 2] != '.') text.pop_back();
    return text;
}

std::string signedText(bool negative, const std::string& text)
{
    return negative ? "\u2212" + text : text;
}

std::string scaled(double value, std::string_view unit)
{
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : 1, unit);
}

} // namespace

std::string formatDuration(Nanos nanos, Nanos timeUnit)
{
    const bool negative = nanos < 0;
    const double value = std::fabs(static_cast<double>(nanos));
    if (timeUnit > 1) {
        const std::string number = withoutZeros(value / static_cast<double>(timeUnit), 3);
        return signedText(negative && number != "0.0", number) + " units";
    }
    if (value < 1e3) return signedText(negative, fmt::format("{:.0f} ns", value));
    if (value < 999.95e3) return signedText(negative, scaled(value / 1e3, "µs"));
    if (value < 999.95e6) return signedText(negative, scaled(value / 1e6, "ms"));
    return signedText(negative, scaled(value / 1e9, "s"));
}

std::string formatBytes(Bytes bytes, Bytes memoryUnit)
{
    const bool negative = bytes < 0;
    double value = std::fabs(static_cast<double>(bytes));
    if (memoryUnit > 1) {
        const std::string number = withoutZeros(value / static_cast<double>(memoryUnit), 3);
        return signedText(negative && number != "0.0", number) + (number == "1.0" ? " microbatch" : " microbatches");
    }
    if (value < 1024) return signedText(negative, fmt::format("{:.0f} B", value));
    static constexpr std::array<std::string_view, 5> units{"KiB", "MiB", "GiB", "TiB", "PiB"};
    std::size_t unit = 0;
    value /= 1024;
    while (value >= 1023.95 && unit + 1 < units.size()) {
        value /= 1024;
        ++unit;
    }
    return signedText(negative, scaled(value, units[unit]));
}

std::string counted(long long count, std::string_view noun)
{
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("tch") ? "es"
                                                                                       : "s");
}

std::string formatPercent(double share, int decimals)
{
    if (!std::isfinite(share)) return "n/a";
    const std::string text = fmt::format("{:.{}f}", std::fabs(share) * 100, decimals);
    const bool zero = text.find_first_not_of("0.") == std::string::npos;
    return signedText(share < 0 && !zero, text) + " %";
}

std::string formatChange(double share)
{
    const std::string text = formatPercent(share);
    return share <= 0 || text == formatPercent(0) || !std::isfinite(share) ? text : "+" + text;
}

std::string withTrueMinus(std::string number)
{
    if (number.empty() || number.front() != '-') return number;
    return fmt::format("−{}", std::string_view(number).substr(1));
}

std::string shortNumber(double value)
{
    std::string text = fmt::format("{:.4f}", value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    if (text == "-0") text = "0";
    return withTrueMinus(text);
}

std::string Units::timeText(Nanos nanos) const
{
    return shares() ? shortNumber(timeValue(nanos)) : formatDuration(nanos);
}

std::string Units::memoryText(Bytes bytes) const
{
    return memory != 1 ? shortNumber(memoryValue(bytes)) : formatBytes(bytes);
}

} // namespace stagewright
