#include "traces/step/slow_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stagewright {

namespace {

// Lower median; −1: none.
Nanos median(std::vector<Nanos>& values)
{
    if (values.empty()) return -1;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The time of others for the same work; −1: there are none.
Nanos elsewhere(const std::vector<const ChunkWork*>& ofSort, const ChunkWork& own, bool& copy)
{
    std::vector<Nanos> copies;
    std::vector<Nanos> others;
    for (const ChunkWork* other : ofSort) {
        if (other->rank == own.rank) continue;
        others.push_back(other->duration);
        if (other->stage == own.stage) copies.push_back(other->duration);
    }
    copy = !copies.empty();
    return median(copy ? copies : others);
}

} // namespace

std::vector<RankSlowness> slownessOf(std::span<const ChunkWork> work, int ranks)
{
    std::map<std::int64_t, std::vector<const ChunkWork*>> bySort;
    for (const ChunkWork& one : work) bySort[one.sort].push_back(&one);
    struct Chunk {
        double own = 0;
        double reference = 0;
        bool copied = false;
    };
    std::map<std::pair<int, int>, Chunk> chunks; // by rank and stage
    for (const ChunkWork& one : work) {
        Chunk& chunk = chunks[{one.rank, one.stage}];
        bool copy = false;
        const Nanos reference = elsewhere(bySort[one.sort], one, copy);
        chunk.copied = chunk.copied || copy;
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
