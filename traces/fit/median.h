// The median for fits: for an even number the lower one, a value that occurred.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stagewright {

// Not empty; reorders the values.
template <typename T>
T lowerMedian(std::vector<T>& values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace stagewright
