#include "traces/analysis/coverage.h"

#include <algorithm>
#include <cstddef>

namespace stagewright {

void Coverage::add(Nanos begin, Nanos end)
{
    if (end <= begin) return;
    m_parts.push_back({begin, end, 0});
    m_merged = false;
}

Nanos Coverage::within(Nanos begin, Nanos end)
{
    merge();
    return end > begin ? until(end) - until(begin) : 0;
}

Nanos Coverage::total()
{
    merge();
    return m_parts.empty() ? 0 : m_parts.back().before + m_parts.back().end - m_parts.back().begin;
}

void Coverage::merge()
{
    if (m_merged) return;
    m_merged = true;
    m_near = 0;
    const auto earlier = [](const Part& a, const Part& b) { return a.begin < b.begin; };
    // Tracks are sorted, so the parts are a few sorted runs: merged two by two, O(parts × log runs).
    std::vector<std::ptrdiff_t> runs{0};
    for (std::size_t i = 1; i < m_parts.size(); ++i)
        if (earlier(m_parts[i], m_parts[i - 1])) runs.push_back(static_cast<std::ptrdiff_t>(i));
    runs.push_back(static_cast<std::ptrdiff_t>(m_parts.size()));
    while (runs.size() > 2) {
        std::vector<std::ptrdiff_t> merged{0};
        for (std::size_t i = 0; i + 1 < runs.size(); i += 2) {
            const std::ptrdiff_t end = runs[std::min(i + 2, runs.size() - 1)];
            if (i + 2 < runs.size())
                std::inplace_merge(m_parts.begin() + runs[i], m_parts.begin() + runs[i + 1], m_parts.begin() + end,
                                   earlier);
            merged.push_back(end);
        }
        runs = std::move(merged);
    }
    std::size_t last = 0;
    for (std::size_t i = 1; i < m_parts.size(); ++i) {
        if (m_parts[i].begin <= m_parts[last].end)
            m_parts[last].end = std::max(m_parts[last].end, m_parts[i].end);
        else
            m_parts[++last] = m_parts[i];
    }
    m_parts.resize(last + 1);
    Nanos covered = 0;
    for (Part& part : m_parts) {
        part.before = covered;
        covered += part.end - part.begin;
    }
}

Nanos Coverage::until(Nanos time)
{
    if (m_parts.empty() || time < m_parts.front().begin) return 0;
    const auto holds = [&](std::size_t at) { // the last part that starts by then
        return m_parts[at].begin <= time && (at + 1 == m_parts.size() || time < m_parts[at + 1].begin);
    };
    for (std::size_t i = 0; i < 2 && m_near + 1 < m_parts.size() && !holds(m_near); ++i) ++m_near;
    if (!holds(m_near)) {
        const auto after = std::upper_bound(m_parts.begin(), m_parts.end(), time,
                                            [](Nanos t, const Part& part) { return t < part.begin; });
        m_near = static_cast<std::size_t>(after - m_parts.begin()) - 1;
    }
    const Part& part = m_parts[m_near];
    return part.before + std::min(time, part.end) - part.begin;
}

} // namespace stagewright
