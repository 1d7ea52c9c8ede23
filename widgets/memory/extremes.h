// ExtremeIndex: minimum and maximum of any part of a long sequence without reading each value: blocks of 16, and blocks
// of blocks. About one byte per value. The caller keeps the values and passes the same `get` (index → double) to every
// call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace stagewright {

struct Extremes {
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    void add(double value)
    {
        least = std::min(least, value);
        most = std::max(most, value);
    }
    void add(const Extremes& other)
    {
        least = std::min(least, other.least);
        most = std::max(most, other.most);
    }
    bool empty() const { return most < least; }
};

class ExtremeIndex {
public:
    template <typename Get>
    void build(std::size_t count, Get get) // O(count)
    {
        m_count = count;
        m_levels.clear();
        std::vector<Extremes> level((count + fan - 1) / fan);
        for (std::size_t i = 0; i < count; ++i) level[i / fan].add(get(i));
        while (level.size() > fan) {
            std::vector<Extremes> above((level.size() + fan - 1) / fan);
            for (std::size_t i = 0; i < level.size(); ++i) above[i / fan].add(level[i]);
            m_levels.push_back(std::move(level));
            level = std::move(above);
        }
        m_levels.push_back(std::move(level));
    }

    // The extremes of [first, last); empty extremes for an empty range. O(log count).
    template <typename Get>
    Extremes over(std::size_t first, std::size_t last, Get get) const
    {
        Extremes found;
        last = std::min(last, m_count);
        for (; first < last && first % fan != 0; ++first) found.add(get(first));
        for (; first < last && last % fan != 0; --last) found.add(get(last - 1));
        if (first >= last) return found;
        std::size_t a = first / fan, b = last / fan;
        for (std::size_t level = 0; a < b; ++level) {
            const std::vector<Extremes>& nodes = m_levels[level];
            if (level + 1 == m_levels.size()) {
                for (; a < b; ++a) found.add(nodes[a]);
                break;
            }
            for (; a < b && a % fan != 0; ++a) found.add(nodes[a]);
            for (; a < b && b % fan != 0; --b) found.add(nodes[b - 1]);
            a /= fan;
            b /= fan;
        }
        return found;
    }

    // The first value over the limit; count if there is none. O(log count).
    template <typename Get>
    std::size_t firstAbove(double limit, Get get) const
    {
        if (m_levels.empty() || m_count == 0) return m_count;
        std::size_t from = 0;
        for (std::size_t level = m_levels.size(); level-- > 0;) {
            const std::vector<Extremes>& nodes = m_levels[level];
            std::size_t at = from;
            while (at < nodes.size() && nodes[at].most <= limit) ++at;
            if (at == nodes.size()) return m_count;
            from = at * fan;
        }
        while (from < m_count && get(from) <= limit) ++from;
        return from;
    }

private:
    static constexpr std::size_t fan = 16;
    std::size_t m_count = 0;
    std::vector<std::vector<Extremes>> m_levels; // the lowest first
};

} // namespace stagewright
