#include "schedules/base/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::array<NumberScale, 4> timeScales{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};

// In a chosen unit: three digits, but nothing below a nanosecond.
int decimalsIn(double value, double size)
{
    const int wanted = value == 0 ? 0 : 2 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
    return std::clamp(wanted, 0, static_cast<int>(std::lround(std::log10(size))));
}

} // namespace

std::string fixedNumber(double value, int decimals)
{
    if (!std::isfinite(value)) return "–";
    const std::string text = fmt::format("{:.{}f}", std::fabs(value), decimals);
    const bool zero = text.find_first_not_of("0.") == std::string::npos; // no "−0.0"
    return value < 0 && !zero ? "\u2212" + text : text;
}

std::string shortNumber(double value, int most)
{
    std::string text = fixedNumber(value, most);
    if (text.find('.') == std::string::npos) return text;
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
}

std::string withTrueMinus(std::string number)
{
    if (number.empty() || number.front() != '-') return number;
    return fmt::format("−{}", std::string_view(number).substr(1));
}

NumberScale timeScale(double nanos, TimeUnit unit)
{
    if (unit != TimeUnit::Automatic) return timeScales[static_cast<std::size_t>(unit) - 1];
    const double size = std::fabs(nanos);
    // Nothing rounds up to "1000.0 µs".
    return timeScales[size < 1e3 ? 3 : size < 999.95e3 ? 2 : size < 999.95e6 ? 1 : 0];
}

NumberScale byteScale(double bytes)
{
    static constexpr std::array<std::string_view, 5> names{"KiB", "MiB", "GiB", "TiB", "PiB"};
    NumberScale scale{1, "B"};
    double size = 1024;
    for (const std::string_view name : names) {
        if (std::fabs(bytes) < (scale.size == 1 ? 1024 : 1023.95 * scale.size)) break;
        scale = {size, name};
        size *= 1024;
    }
    return scale;
}

int decimalsOf(double scaled) { return std::fabs(scaled) < 9.995 ? 2 : 1; }

std::string formatDuration(Nanos nanos, Nanos timeUnit, TimeUnit unit)
{
    if (timeUnit > 1) return formatUnits(static_cast<double>(nanos) / static_cast<double>(timeUnit));
    const NumberScale scale = timeScale(static_cast<double>(nanos), unit);
    const double value = static_cast<double>(nanos) / scale.size;
    const int decimals = unit != TimeUnit::Automatic ? decimalsIn(value, scale.size)
                         : scale.size == 1           ? 0
                                                     : decimalsOf(value);
    return fmt::format("{} {}", fixedNumber(value, decimals), scale.name);
}

std::string formatUnits(double value, int most)
{
    const std::string number = shortNumber(value, most);
    return number + (number == "1" || number == "−1" ? " unit" : " units");
}

std::string formatBytes(Bytes bytes, Bytes memoryUnit)
{
    const auto value = static_cast<double>(bytes);
    if (memoryUnit > 1) {
        const std::string number = shortNumber(value / static_cast<double>(memoryUnit));
        return number + (number == "1" || number == "−1" ? " microbatch" : " microbatches");
    }
    const NumberScale scale = byteScale(value);
    return fmt::format("{} {}", fixedNumber(value / scale.size, scale.size == 1 ? 0 : decimalsOf(value / scale.size)),
                       scale.name);
}

std::string counted(long long count, std::string_view noun)
{
    return fmt::format("{} {}{}", count, noun,
                       count == 1                                      ? ""
                       : noun.ends_with("tch") || noun.ends_with("ss") ? "es"
                                                                       : "s");
}

std::string formatPercent(double share, int decimals)
{
    return std::isfinite(share) ? fixedNumber(share * 100, decimals) + " %" : fixedNumber(share, decimals);
}

std::string formatChange(double share)
{
    if (!std::isfinite(share)) return formatPercent(share);
    if (share >= 8.9995) return fmt::format("× {:.0f}", share + 1);
    const std::string text = formatPercent(share);
    return share <= 0 || text == formatPercent(0) ? text : "+" + text;
}

} // namespace stagewright
