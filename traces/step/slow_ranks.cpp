#include "traces/step/slow_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stagewright {

namespace {

// The durations of work of one sort, of which those of any rank can be left out.
class Durations {
public:
    void add(const ChunkWork& one)
    {
        m_all.push_back(one.duration);
        m_byRank[one.rank].push_back(one.duration);
    }
    void sort()
    {
        std::sort(m_all.begin(), m_all.end());
        for (auto& [rank, own] : m_byRank) std::sort(own.begin(), own.end());
    }
    // Lower median of the other ranks' durations; −1: there are none.
    Nanos medianWithout(int rank) const
    {
        const std::vector<Nanos>& own = m_byRank.at(rank);
        if (own.size() == m_all.size()) return -1;
        std::size_t at = (m_all.size() - own.size() - 1) / 2;
        std::size_t equal = 0; // of the rank's own, before this one
        for (std::size_t i = 0; i < own.size(); ++i) {
            equal = i > 0 && own[i] == own[i - 1] ? equal + 1 : 0;
            const auto place =
                static_cast<std::size_t>(std::lower_bound(m_all.begin(), m_all.end(), own[i]) - m_all.begin()) + equal;
            if (place <= at) ++at; // that one is not counted
        }
        return m_all[at];
    }

private:
    std::vector<Nanos> m_all;
    std::map<int, std::vector<Nanos>> m_byRank;
};

} // namespace

std::int64_t sizeClass(std::span<const double> sizes, int replica)
{
    if (replica < 0 || static_cast<std::size_t>(replica) >= sizes.size()) return 0;
    return std::find(sizes.begin(), sizes.end(), sizes[static_cast<std::size_t>(replica)]) - sizes.begin();
}

std::vector<RankSlowness> slownessOf(std::span<const ChunkWork> work, int ranks)
{
    std::map<std::int64_t, Durations> bySort;
    std::map<std::pair<std::int64_t, int>, Durations> byStage; // and sort
    for (const ChunkWork& one : work) {
        bySort[one.sort].add(one);
        byStage[{one.sort, one.stage}].add(one);
    }
    for (auto& [sort, durations] : bySort) durations.sort();
    for (auto& [stage, durations] : byStage) durations.sort();
    struct Chunk {
        double own = 0;
        double reference = 0;
        bool copied = false;
    };
    std::map<std::pair<int, int>, Chunk> chunks; // by rank and stage
    for (const ChunkWork& one : work) {
        Chunk& chunk = chunks[{one.rank, one.stage}];
        const Nanos copies = byStage[{one.sort, one.stage}].medianWithout(one.rank);
        const Nanos reference = copies >= 0 ? copies : bySort[one.sort].medianWithout(one.rank);
        chunk.copied = chunk.copied || copies >= 0;
        if (reference <= 0) continue;
        chunk.own += static_cast<double>(one.count) * static_cast<double>(one.duration);
        chunk.reference += static_cast<double>(one.count) * static_cast<double>(reference);
    }
    std::vector<RankSlowness> out(static_cast<std::size_t>(std::max(0, ranks)));
    std::vector<int> compared(out.size(), 0);
    for (const auto& [place, chunk] : chunks) {
        if (place.first < 0 || place.first >= ranks || chunk.reference <= 0) continue;
        RankSlowness& rank = out[static_cast<std::size_t>(place.first)];
        const double factor = std::max(1.0, chunk.own / chunk.reference);
        int& seen = compared[static_cast<std::size_t>(place.first)];
        rank.factor = seen == 0 ? factor : std::min(rank.factor, factor);
        rank.known = rank.known || chunk.copied || seen > 0;
        ++seen;
    }
    return out;
}

} // namespace stagewright
