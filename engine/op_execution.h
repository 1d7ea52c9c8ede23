// One op of a schedule on a stage's layers; the rank loop and the one-rank replay run the same code.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/backend.h"
#include "engine/corpus.h"
#include "profiler/rank_recorder.h"

namespace stagewright {

// A step's tokens and targets, (batch × tokens) bytes per microbatch.
class StepData
{
public:
    void sample(const Corpus& corpus, std::uint64_t seed, int step, int microbatches, int batch, int tokens)
    {
        m_size = static_cast<std::size_t>(batch) * static_cast<std::size_t>(tokens);
        m_bytes.resize(2 * m_size * static_cast<std::size_t>(microbatches));
        for (int j = 0; j < microbatches; ++j) {
            const std::size_t at = 2 * m_size * static_cast<std::size_t>(j);
            corpus.sample(seed, step, j, batch, tokens, std::span(m_bytes).subspan(at, m_size),
                          std::span(m_bytes).subspan(at + m_size, m_size));
        }
    }
    std::span<const std::uint8_t> tokens(int microbatch) const
    {
        return part(2 * static_cast<std::size_t>(microbatch));
    }
    std::span<const std::uint8_t> targets(int microbatch) const
    {
        return part(2 * static_cast<std::size_t>(microbatch) + 1);
    }

private:
    std::span<const std::uint8_t> part(std::size_t index) const
    {
        return std::span(m_bytes).subspan(index * m_size, m_size);
    }
    std::size_t m_size = 0;
    std::vector<std::uint8_t> m_bytes;
};

// take(key) gives an input, put(key, buffer) accepts an output. A full backward B is the input gradient, then the
// weight gradient: the caller must not let its output go before the op has ended.
template <typename Take, typename Put>
void executeOp(const Op& op, StageModel& model, const StepData& data, Take&& take, Put&& put)
{
    const StageSlice& slice = model.slice();
    const std::uint16_t stage = op.stage;
    const auto before = static_cast<std::uint16_t>(stage - 1);
    const auto after = static_cast<std::uint16_t>(stage + 1);
    for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
        if (op.kind == OpKind::Forward) {
            Buffer input = slice.first ? Buffer() : take(MessageKey{j, stage, false});
            const auto tokens = slice.first ? data.tokens(j) : std::span<const std::uint8_t>();
            const auto targets = slice.last ? data.targets(j) : std::span<const std::uint8_t>();
            Buffer output = model.forward(j, std::move(input), tokens, targets);
            if (!slice.last) put(MessageKey{j, after, false}, std::move(output));
            continue;
        }
        if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) {
            Buffer gradient = slice.last ? Buffer() : take(MessageKey{j, stage, true});
            Buffer output = model.inputGrad(j, std::move(gradient));
            if (!slice.first) put(MessageKey{j, before, true}, std::move(output));
        }
        if (op.kind == OpKind::Backward || op.kind == OpKind::WeightGrad) model.weightGrad(j);
    }
}

// Clipping: what multiplies every gradient before the optimizer. squareSums: by stage, summed in stage order.
float gradientScale(std::span<const double> squareSums, double clipNorm);

} // namespace stagewright
