#include "app/cli/text/figures.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "schedules/base/quantity.h"

namespace stagewright {

std::string plural(long long count, const std::string& noun) { return counted(count, noun); }

std::vector<double> measuredValues(const Run& run, std::string_view metric)
{
    const Metric* found = run.metric(metric);
    if (!found) return {};
    const auto skip = std::min(found->values.size(), static_cast<std::size_t>(std::max(0, run.info.warmupSteps)));
    return {found->values.begin() + static_cast<std::ptrdiff_t>(skip), found->values.end()};
}

std::int64_t unixMilliseconds()
{
    using std::chrono::milliseconds;
    return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace stagewright
