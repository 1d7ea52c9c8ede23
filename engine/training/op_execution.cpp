#include "engine/training/op_execution.h"

#include <numeric>

#include "engine/training/gradient_rules.h"

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

void copyCommon(Memory& memory, const Region& to, float* target, const Region& from, const float* source,
                std::size_t width)
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
    memory.copyRows(target + at(to), bytes(to.tokens), source + at(from), bytes(from.tokens),
                    bytes(endToken - firstToken), static_cast<std::size_t>(endSample - firstSample));
}

double PartShapes::shareOf(const Part& part) const
{
    return static_cast<double>(regionOf(part.slice, part.half).positions()) /
           static_cast<double>(regionOf(-1, 0).positions());
}

BatchShapes::BatchShapes(const Schedule& schedule, const PartShapes& common, const std::vector<int>& samples)
    : m_pipelineRanks(schedule.pipelineRanks())
{
    if (samples.empty()) {
        m_shapes = {common};
        return;
    }
    for (const int size : samples) {
        m_shapes.push_back(common);
        m_shapes.back().batch = size;
    }
    for (int j = 0; j < schedule.microbatches; ++j) {
        m_replica.push_back(schedule.replicaOf(schedule.placement.rankOf(0, j)));
        m_samples += ofMicrobatch(j).batch;
    }
}

float BatchShapes::lossScale(const Schedule& schedule, int rank) const
{
    if (m_replica.empty()) return lossScaleOf(schedule);
    return static_cast<float>(ofRank(rank).batch) / static_cast<float>(m_samples);
}

double BatchShapes::meanOf(std::span<const double> losses) const
{
    double sum = 0;
    for (std::size_t j = 0; j < losses.size(); ++j)
        sum += m_replica.empty() ? losses[j] : losses[j] * ofMicrobatch(static_cast<int>(j)).batch;
    return sum / static_cast<double>(m_replica.empty() ? static_cast<std::int64_t>(losses.size()) : m_samples);
}

void StepData::sample(const Workload& workload, std::uint64_t seed, int step, int microbatches,
                      const BatchShapes& shapes)
{
    m_width = {static_cast<std::size_t>(workload.tokenBytes()), static_cast<std::size_t>(workload.targetBytes())};
    m_begin.clear();
    std::size_t size = 0;
    for (int j = 0; j < microbatches; ++j)
        for (const std::size_t width : m_width) {
            m_begin.push_back(size);
            size += width * shapes.ofMicrobatch(j).regionOf(-1, 0).positions();
        }
    m_begin.push_back(size);
    m_bytes.resize(size);
    std::int64_t first = 0; // sample of the microbatch
    for (int j = 0; j < microbatches; ++j) {
        const PartShapes& own = shapes.ofMicrobatch(j);
        const auto at = m_begin.begin() + 2 * j;
        workload.sample(seed, step, first, own.batch, std::span(m_bytes).subspan(at[0], at[1] - at[0]),
                        std::span(m_bytes).subspan(at[1], at[2] - at[1]));
        first += own.batch;
    }
}

std::span<const std::uint8_t> StepData::of(std::size_t which, const Part& part, const PartShapes& shapes,
                                           std::vector<std::uint8_t>& cut) const
{
    const std::size_t index = 2 * static_cast<std::size_t>(part.microbatch) + which;
    const std::span<const std::uint8_t> whole =
        std::span(m_bytes).subspan(m_begin[index], m_begin[index + 1] - m_begin[index]);
    if (part.slice < 0 && part.half == 0) return whole;
    const Region region = shapes.regionOf(part.slice, part.half);
    cut.resize(region.positions() * m_width[which]);
    copyCommon(region, cut.data(), shapes.regionOf(-1, 0), whole.data(), m_width[which]);
    return cut;
}

Buffer OpExecution::take(std::size_t positions, const StageModel& model, int microbatch) const
{
    return m_allocator.take(positions * static_cast<std::size_t>(m_shapes.width),
                            messageTag(model.slice().stage, microbatch));
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
