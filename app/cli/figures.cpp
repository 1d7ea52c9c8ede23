#include "app/cli/figures.h"

#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

namespace stagewright {

namespace {

// Three significant figures, as a workbench shows them.
std::string threeFigures(double value)
{
    const double magnitude = std::fabs(value);
    return fmt::format("{:.{}f}", value, magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2);
}

} // namespace

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

std::string nanosText(Nanos nanos)
{
    const auto value = static_cast<double>(nanos);
    const double magnitude = std::fabs(value);
    if (magnitude < 1e3) return withTrueMinus(fmt::format("{} ns", nanos));
    if (magnitude < 999.5e3) return withTrueMinus(threeFigures(value / 1e3) + " µs");
    if (magnitude < 999.5e6) return withTrueMinus(threeFigures(value / 1e6) + " ms");
    return withTrueMinus(threeFigures(value / 1e9) + " s");
}

std::string bytesText(Bytes bytes)
{
    const auto value = static_cast<double>(bytes);
    const double magnitude = std::fabs(value);
    if (magnitude < 1e3) return withTrueMinus(fmt::format("{} B", bytes));
    if (magnitude < 999.5e3) return withTrueMinus(threeFigures(value / 1e3) + " kB");
    if (magnitude < 999.5e6) return withTrueMinus(threeFigures(value / 1e6) + " MB");
    return withTrueMinus(threeFigures(value / 1e9) + " GB");
}

std::string percentText(double share)
{
    std::string text = fmt::format("{:.1f} %", 100 * share);
    if (text == "-0.0 %") text = "0.0 %";
    return withTrueMinus(text);
}

std::string signedPercentText(double share)
{
    const std::string text = percentText(share);
    if (text == "0.0 %" || text.starts_with("−")) return text;
    return fmt::format("+{}", text);
}

std::string signedNanosText(Nanos nanos)
{
    return fmt::format("{}{}", nanos > 0 ? "+" : "", nanosText(nanos));
}

std::string plural(long long count, const std::string& noun)
{
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string listText(const std::vector<std::string>& items)
{
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i)
        text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
    return text;
}

std::string Units::timeText(Nanos nanos) const
{
    return shares() ? shortNumber(timeValue(nanos)) : nanosText(nanos);
}

std::string Units::memoryText(Bytes bytes) const
{
    return memory != 1 ? shortNumber(memoryValue(bytes)) : bytesText(bytes);
}

} // namespace stagewright
