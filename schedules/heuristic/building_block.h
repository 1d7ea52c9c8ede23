// Building blocks: the passes of one microbatch on every device, repeated every `interval` slots. Qi et al. 2024,
// "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362, sections 2 and 3. Shown, edited and written as
// text; a schedule is made from a block by repeating it, filling in the W's, squeezing out idle time and reordering
// both ends.
//
//   block v-half devices=4 interval=6        one slot is one pass of one chunk (half a rank share where there are two)
//   0: F0=0 F1=10 I1=14 I0=25                device: kind and chunk = slot; W's not named are placed by the schedule
//   1: F0=2 F1=9 I1=16 I0=24 W1=17 W0=25     all W's of a device or none
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// F, I and W of a chunk, in this order; a device with one chunk leaves chunk 1 at notPlaced.
inline constexpr int notPlaced = -1'000'000;

struct BlockDevice {
    std::array<int, 2> forward{notPlaced, notPlaced}; // slot, by chunk
    std::array<int, 2> inputGrad{notPlaced, notPlaced};
    std::array<int, 2> weightGrad{notPlaced, notPlaced}; // notPlaced: by the schedule
    bool operator==(const BlockDevice&) const = default;
};

struct Block {
    std::string name;
    int chunks = 2;   // 1: stage d on device d; 2: stages d and 2·devices−1−d (V placement)
    int interval = 6; // slots from one microbatch to the next; 3 × chunks keeps a device busy all the time
    std::vector<BlockDevice> devices;

    bool operator==(const Block&) const = default;
};

// Every pass has a slot ≥ 0 of its own modulo interval, and comes after what it needs (one slot each, no latency). Else
// an error (Invalid) that names device, passes and slots.
Result<void> checkBlock(const Block& block);

// Places every W in the first slot after its I that is free modulo interval, earlier I first. W's in place stay.
Block withWeightGrads(const Block& block);

// In slots and chunks. A block without W's is taken withWeightGrads().
struct BlockFigures {
    std::vector<std::array<int, 2>> lifespan; // by device and chunk: from F's start to W's end
    std::vector<int> distance;                // by device: sum over chunks of I's start − F's start
    std::vector<int> peakBound;               // by device: sum over chunks of ceil(lifespan / interval)
};
BlockFigures figuresOf(const Block& block);

// Where V-Half's spare slot is: at the last turn, as its authors' program has it, or at the first, as their paper does.
enum class SpareSlot {
    LastTurn,
    FirstTurn,
};
Block vMinBlock(int devices);
Block vHalfBlock(int devices, SpareSlot spare = SpareSlot::LastTurn);
Block vZbBlock(int devices);
Block oneForwardOneBackwardBlock(int devices); // 1F1B, W right after I: lifespan 3p on device 0

// The block of a library schedule: "v-min", "v-half" ("v-half:turn=paper"), "v-zb", "1f1b". Usage for any other name.
Result<Block> blockOf(std::string_view schedule, int devices);

// The least time over a step that blocks of the V family leave idle, in slots, for a peak of `chunks` half activations
// on `devices` devices: 3p−1−3k + max(3p, p−1+2(1+⌊(k+1)/2⌋)), from the authors' search (found, not proven); at least
// 0.
int searchedBubble(int devices, int chunks);

std::string toText(const Block& block);
// Strict; errors (Unreadable) name line and word. parseBlock(toText(b)) == b for every b that passes checkBlock.
Result<Block> parseBlock(std::string_view text);

} // namespace stagewright
