#include "traces/import/clock_alignment.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <tuple>

namespace stagewright {

namespace {

constexpr Nanos far = std::numeric_limits<Nanos>::max() / 8;

struct Pinned {
    Nanos ahead = 0; // the second clock
    Nanos band = 0;  // ±
};

// The median, and how far the middle 80 % are from it.
Pinned pinnedBy(std::vector<Nanos> seen)
{
    constexpr Nanos hop = 1'000;          // ends differ by a hop between devices, however many are seen
    constexpr Nanos spreadOfFew = 20'000; // two don't show their spread: that of a job on one network
    std::sort(seen.begin(), seen.end());
    const std::size_t count = seen.size();
    const Nanos median = seen[count / 2];
    const std::size_t cut = count / 10;
    return {median, std::max({count < 3 ? spreadOfFew : hop, seen[count - 1 - cut] - median, median - seen[cut]})};
}

struct Pair {
    int other = 0;
    Nanos least = -far; // the other's clock ahead of this one's
    Nanos most = far;
    std::optional<Pinned> pinned;

    Nanos width() const { return pinned ? 2 * pinned->band : most - least; }
};

struct Move {
    Nanos ahead = 0;
    Nanos error = -1;
    bool least = false;
};

Move moveOf(const Pair& pair)
{
    Move move;
    const bool possible = pair.least <= pair.most;
    const bool agree = pair.least <= 0 && pair.most >= 0;
    if (pair.pinned) {
        move.error = pair.pinned->band;
        if (agree && std::abs(pair.pinned->ahead) <= pair.pinned->band) return move;
        move.ahead = possible ? std::clamp(pair.pinned->ahead, pair.least, pair.most) : pair.pinned->ahead;
        return move;
    }
    if (!agree) {
        move.ahead = std::abs(pair.least) < std::abs(pair.most) ? pair.least : pair.most;
        move.least = true;
    }
    if (possible && pair.least > -far && pair.most < far)
        move.error = std::max(pair.most - move.ahead, move.ahead - pair.least);
    return move;
}

} // namespace

void ClockBounds::add(int from, Nanos before, int to, Nanos after)
{
    if (from == to) return;
    const Nanos most = after - before;
    const auto [entry, added] = m_most.try_emplace({from, to}, most);
    if (!added) entry->second = std::min(entry->second, most);
}

void ClockBounds::addSame(int from, Nanos at, int to, Nanos there)
{
    if (from == to) return;
    m_same[std::minmax(from, to)].push_back(from < to ? there - at : at - there);
}

ClockAlignment ClockBounds::align(std::size_t ranks) const
{
    ClockAlignment out;
    out.correction.assign(ranks, 0);
    std::set<std::pair<int, int>> known; // first < second
    for (const auto& [key, most] : m_most) known.insert(std::minmax(key.first, key.second));
    for (const auto& [key, seen] : m_same) known.insert(key);
    std::vector<std::vector<Pair>> pairs(ranks);
    for (const auto& [first, second] : known) {
        Pair pair{second, -far, far, std::nullopt};
        if (const auto found = m_most.find({first, second}); found != m_most.end()) pair.most = found->second;
        if (const auto found = m_most.find({second, first}); found != m_most.end()) pair.least = -found->second;
        if (const auto found = m_same.find({first, second}); found != m_same.end())
            pair.pinned = pinnedBy(found->second);
        pairs[static_cast<std::size_t>(first)].push_back(pair);
        Pair back{first, -pair.most, -pair.least, pair.pinned};
        if (back.pinned) back.pinned->ahead = -back.pinned->ahead;
        pairs[static_cast<std::size_t>(second)].push_back(back);
    }
    std::vector<bool> placed(ranks, false);
    using Step = std::tuple<Nanos, int, std::size_t, std::size_t>; // width, rank, from, its place there
    std::priority_queue<Step, std::vector<Step>, std::greater<>> queue;
    std::vector<Nanos> ahead(ranks, 0); // of the first rank of its part
    for (std::size_t root = 0; root < ranks; ++root) {
        if (placed[root]) continue;
        const auto reach = [&](std::size_t rank) {
            placed[rank] = true;
            for (std::size_t i = 0; i < pairs[rank].size(); ++i)
                if (const Pair& pair = pairs[rank][i]; !placed[static_cast<std::size_t>(pair.other)])
                    queue.emplace(pair.width(), pair.other, rank, i);
        };
        reach(root);
        while (!queue.empty()) {
            const auto [width, rank, from, place] = queue.top();
            queue.pop();
            const auto r = static_cast<std::size_t>(rank);
            if (placed[r]) continue;
            const Pair& pair = pairs[from][place];
            const Move move = moveOf(pair);
            if (pair.least > pair.most) out.contradiction = std::max(out.contradiction, pair.least - pair.most);
            out.error = std::max(out.error, move.error);
            out.least = out.least || move.least;
            ahead[r] = ahead[from] + move.ahead;
            out.correction[r] = -ahead[r];
            out.corrected += ahead[r] != 0 ? 1 : 0;
            reach(r);
        }
    }
    return out;
}

} // namespace stagewright
