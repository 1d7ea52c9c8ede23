// Medians. Of an even number of values both middle ones occurred: the lower is the median of every figure, the upper
// serves estimates. Quantiles are values that occurred, too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace stagewright {

// T() of no values.
template <typename T>
T middleValue(std::vector<T> values, std::size_t place)
{
    if (values.empty()) return T();
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(place);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

template <typename T>
T lowerMedian(std::vector<T> values)
{
    const std::size_t place = values.empty() ? 0 : (values.size() - 1) / 2;
    return middleValue(std::move(values), place);
}

// The smallest value that at least `share` of them do not exceed.
template <typename T>
T quantileOf(std::vector<T> values, double share)
{
    if (values.empty()) return T();
    const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size()) + 0.9999999);
    return middleValue(std::move(values), std::clamp<std::size_t>(rank, 1, values.size()) - 1);
}

template <typename T>
T upperMedian(std::vector<T> values)
{
    const std::size_t place = values.size() / 2;
    return middleValue(std::move(values), place);
}

} // namespace stagewright
