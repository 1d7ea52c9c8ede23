// Gives memory back to the system while work goes on: that of finished items of a large list, and of lists that were
// freed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace stagewright {

// Items [first, last) are not read again: the pages they fill go back to the system. The list keeps its size and its
// addresses. For some hundred kilobytes at a time, as pages shared with neighbouring items stay.
template <typename Item>
requires std::is_trivially_copyable_v<Item>
void releaseItems([[maybe_unused]] std::vector<Item>& list, [[maybe_unused]] std::size_t first,
                  [[maybe_unused]] std::size_t last)
{
#if defined(__linux__)
    constexpr std::uintptr_t page = 4096;
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(list.data() + first) + page - 1) / page * page;
    const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(list.data() + last) / page * page;
    // optional: everything works without
    if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
#endif
}

// What other threads freed stays with their allocator, which the next large list of another thread does not get: counts
// bytes that were freed, and returns their pages now and then, and at its end. One object for any number of threads
// would need a lock: one each.
class FreedMemory {
public:
    FreedMemory() = default;
    FreedMemory(const FreedMemory&) = delete;
    FreedMemory& operator=(const FreedMemory&) = delete;
    ~FreedMemory()
    {
        if (m_bytes >= enough / 16) add(enough);
    }
    void add([[maybe_unused]] std::size_t bytes)
    {
#if defined(__GLIBC__)
        m_bytes += bytes;
        if (m_bytes < enough) return;
        m_bytes = 0;
        (void)malloc_trim(0);
#endif
    }

private:
    static constexpr std::size_t enough = std::size_t{16} << 20;
    std::size_t m_bytes = 0;
};

} // namespace stagewright
