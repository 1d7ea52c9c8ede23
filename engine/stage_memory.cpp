#include "engine/stage_memory.h"

#include <algorithm>

#include "engine/cpu/attention.h"

namespace stagewright {

StageMemory stageMemoryOf(const ModelConfig& model, const StageSlice& slice, int microbatchSize,
                          const OptimizerConfig& optimizer)
{
    constexpr Bytes element = sizeof(float);
    const Bytes hidden = model.hidden;
    const Bytes vocabulary = model.vocabulary;
    const Bytes layers = slice.layerCount;
    const Bytes rows = Bytes{microbatchSize} * model.sequence;
    const Bytes stream = rows * hidden;
    const cpu::AttentionShape attention{microbatchSize, model.sequence, model.hidden, model.heads};

    Bytes weights = layers * (12 * hidden * hidden + 13 * hidden);
    Bytes afterForward = layers * (10 * stream + 2 * rows + static_cast<Bytes>(cpu::probabilityCount(attention)));
    Bytes afterInput = layers * (16 * stream + 13 * hidden);
    // The stream itself and the widest temporary of a layer.
    Bytes workspace = stream;
    if (layers > 0)
        workspace = std::max(5 * stream, 2 * stream + static_cast<Bytes>(cpu::attentionWorkspace(attention)));
    else if (slice.last)
        workspace = 2 * stream;
    if (slice.first) {
        weights += (vocabulary + model.sequence) * hidden;
        const Bytes tokens = (rows + element - 1) / element; // a byte each
        afterForward += tokens;
        afterInput += tokens + stream;
    }
    if (slice.last) {
        weights += (vocabulary + 2) * hidden;
        afterForward += stream + rows + rows * vocabulary;
        afterInput += stream + rows * vocabulary + 2 * hidden;
    }

    const Bytes states = optimizer.kind == OptimizerKind::AdamW ? 2 : optimizer.momentum != 0 ? 1 : 0;
    StageMemory memory;
    memory.activation = element * afterForward;
    memory.freedAtInput = element * (afterForward - afterInput);
    memory.workspace = element * workspace;
    memory.boundary = slice.first && slice.last ? 0 : element * stream;
    memory.weight = element * weights;
    memory.gradient = element * weights;
    memory.optimizer = states * memory.weight;
    return memory;
}

} // namespace stagewright
