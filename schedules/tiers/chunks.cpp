#include "schedules/tiers/chunks.h"

#include <algorithm>

namespace stagewright {

std::optional<std::vector<std::vector<int>>> packIntoChunks(std::span<const std::int64_t> sizes, std::int64_t chunk)
{
    std::vector<std::vector<int>> out;
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] > chunk) return std::nullopt;
        if (out.empty() || sizes[i] > rest) {
            out.emplace_back();
            rest = chunk;
        }
        out.back().push_back(static_cast<int>(i));
        rest -= sizes[i];
    }
    return out;
}

std::vector<int> chunkBudgets(Bytes cap, std::span<const Bytes> notInChunks, Bytes reserve, Bytes chunk)
{
    std::vector<int> out;
    for (std::size_t t = 0; t < notInChunks.size(); ++t) {
        const Bytes other = std::max(notInChunks[t], notInChunks[(t + 1) % notInChunks.size()]);
        out.push_back(static_cast<int>(std::clamp<Bytes>((cap - other - reserve) / chunk, 0, 1'000'000'000)));
    }
    return out;
}

Accesses sweepOfLayers(int layers)
{
    Accesses out;
    for (int layer = 0; layer < layers; ++layer) {
        out.use.push_back({layer});
        out.write.emplace_back();
    }
    for (int layer = layers; layer-- > 0;) {
        out.use.push_back({layer});
        out.write.push_back({layer});
    }
    return out;
}

Accesses accessesOfPasses(std::span<const char> passes, int layers)
{
    Accesses out;
    for (const char pass : passes)
        for (int i = 0; i < layers; ++i) {
            if (pass == 'F') {
                out.use.push_back({i});
                out.write.emplace_back();
            } else {
                const int layer = layers - 1 - i;
                out.use.push_back({layer, layers + layer});
                out.write.push_back({layers + layer});
            }
        }
    return out;
}

LowestCaps lowestCaps(const AccessTrace& trace, std::span<const Bytes> notInChunks, Bytes reserve, Bytes chunk)
{
    const auto loads = [&](std::int64_t chunks) -> std::int64_t {
        const auto budgets = chunkBudgets(chunks * chunk, notInChunks, reserve, chunk);
        const auto result = trace.replay(budgets, Eviction::Belady, true);
        return result ? result->loads : -1;
    };
    // More room never needs more loads by the known future, and is never too little where less was enough.
    Bytes most = reserve;
    for (const Bytes other : notInChunks) most = std::max(most, other + reserve);
    const std::int64_t enough = most / chunk + 1 + trace.pieces();
    const auto least = [&](auto&& holds) {
        std::int64_t low = 0, high = enough;
        while (low < high) {
            const std::int64_t middle = (low + high) / 2;
            holds(loads(middle)) ? high = middle : low = middle + 1;
        }
        return low;
    };
    const std::int64_t once = loads(enough);
    return {least([](std::int64_t found) { return found >= 0; }),
            least([&](std::int64_t found) { return found == once; })};
}

std::int64_t optimizerChunksOnDevice(Bytes cap, Bytes peakNotInChunks, Bytes fp16, std::int64_t elementsOfChunk)
{
    const Bytes left = cap - peakNotInChunks - fp16;
    if (left <= 0 || elementsOfChunk <= 0) return 0;
    return left / 5 * 4 / (12 * elementsOfChunk);
}

} // namespace stagewright
