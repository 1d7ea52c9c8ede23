#include "engine/workload/gpt/stage_memory.h"

#include <algorithm>

#include "engine/layers/attention_sizes.h"

namespace stagewright {

namespace {

constexpr Bytes floatBytes = sizeof(float);
// K-FAC's factors of a block's four products, their inverses and sums (engine/layers/kfac.h).
Bytes factorBytes(Bytes hidden)
{
    Bytes sum = 0;
    for (const auto& [in, out] :
         {std::pair(hidden, 3 * hidden), {hidden, hidden}, {hidden, 4 * hidden}, {4 * hidden, hidden}})
        sum += 2 * 8 * ((in + 1) * (in + 1) + out * out) + 4 * (in * in + 2 * in + out * out);
    return sum;
}

constexpr Bytes lossSlots = 256 * sizeof(double); // of a device's last stage

struct AttentionMemory {
    Bytes kept = 0;
    Bytes workspace = 0;
};

AttentionMemory attentionOf(const ModelConfig& model, int microbatchSize, const StageLayout& layout)
{
    if (!layout.onDevice()) {
        const cpu::AttentionShape shape{microbatchSize, model.sequence, model.hidden, model.heads};
        if (layout.elementBytes < floatBytes)
            return {floatBytes * static_cast<Bytes>(cpu::bf16::probabilityFloats(shape)),
                    floatBytes * static_cast<Bytes>(std::max(cpu::bf16::forwardWorkspace(shape),
                                                             cpu::bf16::backwardWorkspace(shape)))};
        return {floatBytes * static_cast<Bytes>(cpu::probabilityCount(shape)),
                floatBytes * static_cast<Bytes>(cpu::attentionWorkspace(shape))};
    }
    if (model.sequence >= layout.streamFrom(layout.elementBytes, model.hidden / model.heads)) {
        const Bytes rows = floatBytes * microbatchSize * model.sequence * model.heads;
        return {rows, rows};
    }
    constexpr Bytes line = 64;
    const Bytes squares = Bytes{model.heads} * model.sequence * model.sequence * layout.elementBytes;
    const Bytes sample = (squares + line - 1) / line * line;
    return {microbatchSize * sample, sample};
}

// On a CPU a GEMM's results wait in fp32 before they are rounded to bf16: while the activation is there (the last
// GEMM of a block's forward) or beside stream and norm. A head without blocks has its norm beside the stream.
Bytes bf16Workspace(const ModelConfig& model, const StageSlice& slice, int rows, Bytes stream, Bytes attention)
{
    const auto gemm = [&](int columns) {
        return floatBytes * static_cast<Bytes>(cpu::bf16::gemmWorkspace(rows, columns));
    };
    Bytes workspace = stream;
    if (slice.layerCount > 0)
        workspace = std::max(5 * stream + gemm(model.hidden), 2 * stream + std::max(attention, gemm(4 * model.hidden)));
    if (slice.last) workspace = std::max({workspace, 2 * stream + gemm(model.vocabulary), stream + gemm(model.hidden)});
    return workspace;
}

} // namespace

std::vector<std::int64_t> layerElements(const ModelConfig& model, const StageSlice& slice)
{
    const std::int64_t hidden = model.hidden;
    std::vector<std::int64_t> out;
    if (slice.first) out.push_back((model.vocabulary + std::int64_t{model.sequence}) * hidden);
    out.insert(out.end(), static_cast<std::size_t>(slice.layerCount), 12 * hidden * hidden + 13 * hidden);
    if (slice.last) out.push_back((model.vocabulary + std::int64_t{2}) * hidden);
    return out;
}

StageMemory stageMemoryOf(const ModelConfig& model, const StageSlice& slice, int microbatchSize,
                          const OptimizerConfig& optimizer, const StageLayout& layout)
{
    const Bytes element = layout.elementBytes;
    const Bytes hidden = model.hidden;
    const Bytes vocabulary = model.vocabulary;
    const Bytes layers = slice.layerCount;
    const Bytes rows = Bytes{microbatchSize} * model.sequence;
    const Bytes stream = element * rows * hidden;
    const Bytes logits = element * rows * vocabulary;
    const Bytes tokens = (rows + floatBytes - 1) / floatBytes * floatBytes; // a byte each
    const AttentionMemory attention = attentionOf(model, microbatchSize, layout);

    Bytes weights = layers * (12 * hidden * hidden + 13 * hidden);
    Bytes afterForward = layers * (10 * stream + 2 * floatBytes * rows + attention.kept);
    Bytes afterInput = layers * (16 * stream + floatBytes * 13 * hidden);
    // The stream itself and the widest temporary of a layer; a device also has the norm next to the activation that it
    // computes at once.
    Bytes workspace = stream;
    if (!layout.onDevice() && element < floatBytes)
        workspace = bf16Workspace(model, slice, static_cast<int>(rows), stream, attention.workspace);
    else if (layers > 0)
        workspace = std::max((layout.onDevice() ? 6 : 5) * stream, 2 * stream + attention.workspace);
    else if (slice.last)
        workspace = 2 * stream + (layout.onDevice() ? floatBytes * rows + tokens : 0); // a row's loss, and the targets
    if (slice.first) {
        weights += (vocabulary + model.sequence) * hidden;
        afterForward += tokens;
        afterInput += tokens + stream;
    }
    if (slice.last) {
        weights += (vocabulary + 2) * hidden;
        afterForward += stream + floatBytes * rows + logits;
        afterInput += stream + logits + 2 * floatBytes * hidden;
        if (layout.onDevice()) workspace += lossSlots;
    }

    const Bytes states = optimizer.kind == OptimizerKind::AdamW ? 2 : optimizer.momentum != 0 ? 1 : 0;
    StageMemory memory;
    memory.activation = afterForward;
    memory.freedAtInput = afterForward - afterInput;
    memory.workspace = workspace;
    memory.boundary = slice.first && slice.last ? 0 : stream;
    memory.weight = floatBytes * weights + (element < floatBytes ? element * weights : 0);
    memory.gradient = floatBytes * weights;
    memory.optimizer = states * memory.gradient;
    if (optimizer.kind == OptimizerKind::Kfac) memory.optimizer += slice.layerCount * factorBytes(hidden);
    return memory;
}

} // namespace stagewright
