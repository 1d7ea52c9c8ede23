#include "engine/workload/gpt/kept_part.h"

#include <utility>

namespace stagewright::layers {

namespace {

// The second half of the rows.
Buffer cutRows(Buffer& rows)
{
    if (!rows) return {};
    Buffer front = rows.splitOff(rows.size() / 2);
    return std::exchange(rows, std::move(front));
}

// Bytes do not end at a float, so each half gets a buffer of its own.
Buffer cutBytes(Buffer& bytes, const PartShape& half, const StageContext& context)
{
    if (!bytes) return {};
    const auto size = static_cast<std::size_t>(half.rows());
    const auto copy = [&](std::size_t from) {
        Buffer part = context.keepFloats((size + sizeof(float) - 1) / sizeof(float), half.microbatch);
        context.allocator.memory().copy(part.data(), reinterpret_cast<const std::uint8_t*>(bytes.data()) + from, size);
        return part;
    };
    Buffer second = copy(size);
    bytes = copy(0);
    return second;
}

constexpr Buffer Block::Saved::*blockRowBuffers[] = {
    &Block::Saved::normal1,    &Block::Saved::deviation1, &Block::Saved::qkv,        &Block::Saved::probabilities,
    &Block::Saved::attention,  &Block::Saved::normal2,    &Block::Saved::deviation2, &Block::Saved::hidden,
    &Block::Saved::outputGrad, &Block::Saved::hiddenGrad, &Block::Saved::middleGrad, &Block::Saved::qkvGrad};

} // namespace

KeptPart KeptPart::cutInHalf(const StageContext& context)
{
    shape.batch /= 2;
    KeptPart second;
    second.awaits = awaits;
    second.shape = shape;
    second.dropped = dropped;
    second.input = cutRows(input);
    second.embedding.tokens = cutBytes(embedding.tokens, shape, context);
    second.embedding.outputGrad = cutRows(embedding.outputGrad);
    second.blocks.resize(blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
        for (Buffer Block::Saved::*rows : blockRowBuffers) second.blocks[i].*rows = cutRows(blocks[i].*rows);
    second.head.normal = cutRows(head.normal);
    second.head.deviation = cutRows(head.deviation);
    second.head.logitsGrad = cutRows(head.logitsGrad);
    second.head.targets = cutBytes(head.targets, shape, context);
    return second;
}

std::vector<Buffer*> KeptPart::buffers(bool whole)
{
    std::vector<Buffer*> there;
    const auto add = [&there](Buffer& buffer) {
        if (buffer) there.push_back(&buffer);
    };
    add(input);
    add(embedding.tokens);
    add(embedding.outputGrad);
    for (Block::Saved& block : blocks) {
        for (Buffer Block::Saved::*rows : blockRowBuffers)
            if (whole || (rows != &Block::Saved::qkv && rows != &Block::Saved::qkvGrad)) add(block.*rows);
        if (whole) add(block.keyValue);
        add(block.sums);
    }
    for (Buffer Head::Saved::*of : {&Head::Saved::normal, &Head::Saved::deviation, &Head::Saved::logitsGrad,
                                    &Head::Saved::targets, &Head::Saved::sums})
        add(head.*of);
    return there;
}

} // namespace stagewright::layers
