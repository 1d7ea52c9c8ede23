// Medians. Of an even number of values both middle ones occurred: the lower is the median of every figure, the upper
// serves estimates.
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

template <typename T>
T upperMedian(std::vector<T> values)
{
    const std::size_t place = values.size() / 2;
    return middleValue(std::move(values), place);
}

} // namespace stagewright
