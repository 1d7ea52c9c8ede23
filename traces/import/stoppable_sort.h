// Sorting millions of items so that it can be stopped within milliseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <stop_token>

namespace stagewright {

// Stable. Part by part, then merges of twice as many, checking for a stop between them; after a stop the items are in
// some order. Sorted input costs one pass. O(n log n), memory for half of the items.
template <typename Iterator, typename Less>
void sortStoppable(Iterator begin, Iterator end, Less less, const std::stop_token& stop)
{
    constexpr std::ptrdiff_t part = 1 << 15;
    if (std::is_sorted(begin, end, less)) return;
    const std::ptrdiff_t size = end - begin;
    for (std::ptrdiff_t at = 0; at < size; at += part) {
        if (stop.stop_requested()) return;
        std::stable_sort(begin + at, begin + std::min(size, at + part), less);
    }
    for (std::ptrdiff_t width = part; width < size; width *= 2)
        for (std::ptrdiff_t at = 0; at + width < size; at += 2 * width) {
            if (stop.stop_requested()) return;
            std::inplace_merge(begin + at, begin + at + width, begin + std::min(size, at + 2 * width), less);
        }
}

} // namespace stagewright
