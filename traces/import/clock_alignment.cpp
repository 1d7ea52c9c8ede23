#include "traces/import/clock_alignment.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <queue>
#include <tuple>

namespace stagewright {

void ClockBounds::add(int from, Nanos before, int to, Nanos after)
{
    if (from == to) return;
    const Nanos most = after - before;
    const auto [entry, added] = m_most.try_emplace({from, to}, most);
    if (!added) entry->second = std::min(entry->second, most);
}

ClockAlignment ClockBounds::align(std::size_t ranks) const
{
    constexpr Nanos far = std::numeric_limits<Nanos>::max() / 8;
    ClockAlignment out;
    out.correction.assign(ranks, 0);
    struct Pair {
        int other;
        Nanos least; // the other's clock ahead of this one's
        Nanos most;
    };
    std::vector<std::vector<Pair>> pairs(ranks);
    for (const auto& [key, most] : m_most) {
        const auto [from, to] = key;
        const auto back = m_most.find({to, from});
        const Nanos least = back == m_most.end() ? -far : -back->second;
        pairs[static_cast<std::size_t>(from)].push_back({to, least, most});
        if (back == m_most.end()) pairs[static_cast<std::size_t>(to)].push_back({from, -most, far});
    }
    std::vector<bool> placed(ranks, false);
    using Step = std::tuple<Nanos, int, int, Nanos, Nanos>; // width, rank, from, least, most
    std::priority_queue<Step, std::vector<Step>, std::greater<>> queue;
    std::vector<Nanos> ahead(ranks, 0); // of the first rank of its part
    for (std::size_t root = 0; root < ranks; ++root) {
        if (placed[root]) continue;
        const auto reach = [&](std::size_t rank) {
            placed[rank] = true;
            for (const Pair& pair : pairs[rank])
                if (!placed[static_cast<std::size_t>(pair.other)])
                    queue.emplace(pair.most - pair.least, pair.other, static_cast<int>(rank), pair.least, pair.most);
        };
        reach(root);
        while (!queue.empty()) {
            const auto [width, rank, from, least, most] = queue.top();
            queue.pop();
            const auto r = static_cast<std::size_t>(rank);
            if (placed[r]) continue;
            Nanos by = 0;
            if (least > 0 || most < 0) by = least <= -far ? most : most >= far ? least
                                                                               : least + (most - least) / 2;
            if (least > most)
                out.contradiction = std::max(out.contradiction, least - most);
            else if (least > -far && most < far)
                out.error = std::max({out.error, most - by, by - least});
            ahead[r] = ahead[static_cast<std::size_t>(from)] + by;
            out.correction[r] = -ahead[r];
            out.corrected += ahead[r] != 0 ? 1 : 0;
            reach(r);
        }
    }
    return out;
}

} // namespace stagewright
