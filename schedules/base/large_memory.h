// Large pages for arrays of tens of megabytes. Where thousands of ranks take turns, each turn touches different pages
// of every array, and with pages of 4 KiB most of the time goes into finding them (1F1B on 2,048 ranks: a third).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace stagewright {

// Reserves, and requests large pages where worthwhile; call it before the first resize or assign.
template <typename T>
void reserveLarge(std::vector<T>& memory, std::size_t count)
{
    memory.reserve(count);
#if defined(__linux__)
    constexpr std::size_t worthIt = std::size_t{32} << 20;
    constexpr std::uintptr_t page = 4096;
    const std::size_t bytes = count * sizeof(T);
    if (bytes < worthIt) return;
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    const std::uintptr_t first = (address + page - 1) / page * page;
    // optional: everything works without
    (void)madvise(reinterpret_cast<void*>(first), bytes - (first - address), MADV_HUGEPAGE);
#endif
}

} // namespace stagewright
