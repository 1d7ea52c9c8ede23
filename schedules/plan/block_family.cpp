#include "schedules/plan/block_family.h"

#include <algorithm>

namespace stagewright::planning {

namespace {

constexpr int interval = 6;

// Slots from one device to the next: F0 and I1 on the way down, F1 and I0 on the way up.
struct Hops {
    int down;
    int up;
};

constexpr Hops hops[] = {{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {1, 2}, {2, 2}, {3, 2},
                         {4, 2}, {1, 3}, {2, 3}, {3, 3}, {1, 4}, {2, 4}, {1, 5}};

// No two of the four passes meet on any device.
bool apart(const Block& block)
{
    for (const BlockDevice& device : block.devices) {
        unsigned taken = 0;
        for (int slot : {device.forward[0], device.forward[1], device.inputGrad[1], device.inputGrad[0]}) {
            const unsigned bit = 1U << (slot % interval);
            if (taken & bit) return false;
            taken |= bit;
        }
    }
    return true;
}

int peakOf(const Block& block)
{
    const BlockFigures figures = figuresOf(block);
    return *std::max_element(figures.peakBound.begin(), figures.peakBound.end());
}

} // namespace

std::vector<Block> blockFamily(int devices, int mostChunks, std::size_t most)
{
    struct Member {
        int peak;
        int length;
        Block block;
    };
    std::vector<Member> members;
    Block block{"block", 2, interval, std::vector<BlockDevice>(static_cast<std::size_t>(devices))};
    auto at = [&](int i) -> BlockDevice& { return block.devices[static_cast<std::size_t>(i)]; };
    for (const Hops& first : hops)
        for (const Hops& second : hops)
            for (int split = 0; split < devices - 1; ++split) {
                if (split > 0 && (first.down == second.down && first.up == second.up)) continue; // split 0 has it
                // the first is not used
                if (split == 0 && &first != &hops[0]) continue;
                // from device i to i + 1
                auto down = [&](int i) { return i < split ? first.down : second.down; };
                auto up = [&](int i) { return i < split ? first.up : second.up; }; // and back
                for (int turn = 0; turn < interval * interval * interval; ++turn) {
                    const int last = devices - 1;
                    at(0).forward[0] = 0;
                    for (int i = 0; i < last; ++i) at(i + 1).forward[0] = at(i).forward[0] + down(i);
                    at(last).forward[1] = at(last).forward[0] + 1 + turn % interval;
                    for (int i = last; i > 0; --i) at(i - 1).forward[1] = at(i).forward[1] + up(i - 1);
                    at(0).inputGrad[1] = at(0).forward[1] + 1 + turn / interval % interval;
                    for (int i = 0; i < last; ++i) at(i + 1).inputGrad[1] = at(i).inputGrad[1] + down(i);
                    at(last).inputGrad[0] = at(last).inputGrad[1] + 1 + turn / interval / interval;
                    for (int i = last; i > 0; --i) at(i - 1).inputGrad[0] = at(i).inputGrad[0] + up(i - 1);
                    if (!apart(block)) continue;
                    const int peak = peakOf(block);
                    if (peak > mostChunks || peak < mostChunks - 4) continue;
                    members.push_back({peak, at(0).inputGrad[0], block});
                }
            }
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
        return a.peak != b.peak ? a.peak > b.peak : a.length < b.length;
    });
    std::vector<Block> out;
    const std::size_t count = std::min(most, members.size());
    for (std::size_t i = 0; i < count; ++i) out.push_back(std::move(members[i * members.size() / count].block));
    return out;
}

} // namespace stagewright::planning
