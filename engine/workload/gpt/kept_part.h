// What a stage keeps of one part between its ops.
#pragma once

#include <vector>

#include "engine/workload/gpt/layers.h"

namespace stagewright::layers {

// Which layers forwardForRecompute dropped: blocks first … end − 1 of the stage, and the head.
struct DroppedLayers {
    std::size_t first = 0;
    std::size_t end = 0;
    bool head = false;
    bool any() const { return first < end || head; }
};

struct KeptPart {
    enum class Awaits {
        Recompute,
        InputGrad,
        WeightGrad,
    };
    Awaits awaits = Awaits::InputGrad;
    PartShape shape;
    DroppedLayers dropped;
    Buffer input; // the stream before the first dropped layer; none where that is the embedding's output
    Embedding::Saved embedding;
    std::vector<Block::Saved> blocks;
    Head::Saved head;

    // Cuts the batch in two: this keeps the first half and what is summed over rows; returns the second. Nothing but
    // the tokens and targets is copied.
    KeptPart cutInHalf(const StageContext& context);
    // Those that are there; whole: also the keys and values that later slices of the microbatch read.
    std::vector<Buffer*> buffers(bool whole);
};

} // namespace stagewright::layers
