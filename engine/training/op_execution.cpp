#include "engine/training/op_execution.h"

#include <numeric>

namespace stagewright {

Region PartShapes::regionOf(int slice, int half) const
{
    Region region{0, batch, 0, sequence};
    if (slice >= 0) {
        const auto at = sliceTokens.begin() + slice;
        region.firstToken = std::accumulate(sliceTokens.begin(), at, 0);
        region.tokens = *at;
    }
    if (half != 0) {
        region.samples = batch / 2;
        region.firstSample = half == 1 ? 0 : batch / 2;
    }
    return region;
}

void copyCommon(Memory& memory, const Region& to, float* target, const Region& from, const float* source, std::size_t width)
{
    const int firstSample = std::max(to.firstSample, from.firstSample);
    const int endSample = std::min(to.firstSample + to.samples, from.firstSample + from.samples);
    const int firstToken = std::max(to.firstToken, from.firstToken);
    const int endToken = std::min(to.firstToken + to.tokens, from.firstToken + from.tokens);
    if (endToken <= firstToken || endSample <= firstSample) return;
    const auto at = [&](const Region& region) {
        return (static_cast<std::size_t>(firstSample - region.firstSample) * static_cast<std::size_t>(region.tokens) +
                static_cast<std::size_t>(firstToken - region.firstToken)) *
               width;
    };
    const auto bytes = [width](int tokens) { return static_cast<std::size_t>(tokens) * width * sizeof(float); };
    memory.copyRows(target + at(to), bytes(to.tokens), source + at(from), bytes(from.tokens), bytes(endToken - firstToken),
                    static_cast<std::size_t>(endSample - firstSample));
}

double PartShapes::shareOf(const Part& part) const
{
    return static_cast<double>(regionOf(part.slice, part.half).positions()) /
           static_cast<double>(regionOf(-1, 0).positions());
}

void StepData::sample(const Corpus& corpus, std::uint64_t seed, int step, int microbatches, const PartShapes& shapes)
{
    m_size = shapes.regionOf(-1, 0).positions();
    m_bytes.resize(2 * m_size * static_cast<std::size_t>(microbatches));
    for (int j = 0; j < microbatches; ++j) {
        const std::size_t at = 2 * m_size * static_cast<std::size_t>(j);
        corpus.sample(seed, step, j, shapes.batch, shapes.sequence, std::span(m_bytes).subspan(at, m_size),
                      std::span(m_bytes).subspan(at + m_size, m_size));
    }
}

std::span<const std::uint8_t> StepData::of(std::size_t index, const Part& part, const PartShapes& shapes,
                                           std::vector<std::uint8_t>& cut) const
{
    const std::span<const std::uint8_t> whole = std::span(m_bytes).subspan(index * m_size, m_size);
    if (part.slice < 0 && part.half == 0) return whole;
    const Region region = shapes.regionOf(part.slice, part.half);
    cut.resize(region.positions());
    copyCommon(region, cut.data(), shapes.regionOf(-1, 0), whole.data(), 1);
    return cut;
}

Buffer OpExecution::take(std::size_t positions, const StageModel& model, int microbatch) const
{
    return m_allocator.take(positions * static_cast<std::size_t>(m_shapes.width),
                            {MemoryCategory::Communication, static_cast<std::uint16_t>(model.slice().stage), microbatch});
}

Buffer OpExecution::forward(const PlannedOp& planned, StageModel& model, const Part& part, Buffer input)
{
    const StageSlice& slice = model.slice();
    std::span<const std::uint8_t> tokens;
    std::span<const std::uint8_t> targets;
    if (slice.first) tokens = m_data.tokens(part, m_shapes, m_tokens);
    if (slice.last) targets = m_data.targets(part, m_shapes, m_targets);
    return planned.recomputed ? model.forwardForRecompute(part, std::move(input), tokens, targets)
                              : model.forward(part, std::move(input), tokens, targets);
}

} // namespace stagewright
