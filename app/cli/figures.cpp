#include "app/cli/figures.h"

#include <chrono>

#include <fmt/core.h>

#include "traces/analysis/quantity.h"

namespace stagewright {

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

std::string signedPercentText(double share)
{
    const std::string text = formatPercent(share);
    if (text == "0.0 %" || text.starts_with("−")) return text;
    return fmt::format("+{}", text);
}

std::string plural(long long count, const std::string& noun)
{
    return counted(count, noun);
}

std::string listText(const std::vector<std::string>& items)
{
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i)
        text += (i == 0 ? "" : i + 1 == items.size() ? " and " : ", ") + items[i];
    return text;
}

std::int64_t unixMilliseconds()
{
    using std::chrono::milliseconds;
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
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
