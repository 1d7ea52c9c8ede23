#include "engine/cpu/stage_model.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "engine/cpu/denormals.h"

namespace stagewright::cpu {

CpuStage::CpuStage(const ModelConfig& model, const StageSlice& slice, int microbatchSize, std::uint64_t seed,
                   const OptimizerConfig& optimizer, Allocator& allocator)
    : m_context{model, microbatchSize, slice.stage, allocator, kernels()}, m_slice(slice),
      m_parameters(slice.stage, seed, optimizer, allocator)
{
    if (slice.first) m_embedding.emplace(m_context, m_parameters);
    m_blocks.reserve(static_cast<std::size_t>(slice.layerCount));
    for (int i = 0; i < slice.layerCount; ++i)
        m_blocks.emplace_back(m_context, slice.firstLayer + i, m_parameters);
    if (slice.last) m_head.emplace(m_context, m_parameters);
}

Buffer CpuStage::forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                         std::span<const std::uint8_t> targets)
{
    const int microbatch = part.microbatch;
    const FlushDenormals flush;
    if (m_kept.contains(microbatch))
        throw std::logic_error("stage " + std::to_string(m_slice.stage) + ", microbatch " + std::to_string(microbatch) +
                               ": forward again before its weight gradient");
    if (!m_embedding && input.size() != m_context.stream())
        throw std::invalid_argument("stage " + std::to_string(m_slice.stage) + ": input of " +
                                    std::to_string(input.size()) + " floats, " + std::to_string(m_context.stream()) +
                                    " needed");
    Kept now;
    now.blocks.resize(m_blocks.size());
    Buffer stream;
    if (m_embedding) {
        stream = m_context.borrow(m_context.stream(), microbatch);
        m_embedding->forward(now.embedding, microbatch, tokens, stream.data());
    } else {
        // Nothing of the input is kept: the blocks change it into the output.
        stream = std::move(input);
        stream.retag(m_context.tag(MemoryCategory::Workspace, microbatch));
    }
    for (std::size_t i = 0; i < m_blocks.size(); ++i)
        m_blocks[i].forward(now.blocks[i], microbatch, stream.data());
    if (m_head) {
        m_losses[microbatch] = m_head->forward(now.head, microbatch, stream.data(), targets);
        stream.reset();
    } else {
        stream.retag(m_context.tag(MemoryCategory::Communication, microbatch));
    }
    m_kept.emplace(microbatch, std::move(now));
    return stream;
}

CpuStage::Kept& CpuStage::kept(int microbatch, Awaits awaits)
{
    const auto found = m_kept.find(microbatch);
    if (found == m_kept.end() || found->second.awaits != awaits)
        throw std::logic_error("stage " + std::to_string(m_slice.stage) + ", microbatch " + std::to_string(microbatch) +
                               (awaits == Awaits::InputGrad ? ": input gradient without a forward"
                                                            : ": weight gradient without an input gradient"));
    return found->second;
}

Buffer CpuStage::inputGrad(const Part& part, Buffer outputGrad)
{
    const int microbatch = part.microbatch;
    const FlushDenormals flush;
    Kept& now = kept(microbatch, Awaits::InputGrad);
    if (!m_head && outputGrad.size() != m_context.stream())
        throw std::invalid_argument("stage " + std::to_string(m_slice.stage) + ": output gradient of " +
                                    std::to_string(outputGrad.size()) + " floats, " +
                                    std::to_string(m_context.stream()) + " needed");
    Buffer grad;
    if (m_head) {
        grad = m_head->inputGrad(now.head, microbatch, m_lossScale);
    } else {
        grad = std::move(outputGrad);
        grad.retag(m_context.tag(MemoryCategory::Activations, microbatch));
    }
    for (std::size_t i = m_blocks.size(); i-- > 0;)
        grad = m_blocks[i].inputGrad(now.blocks[i], microbatch, std::move(grad));
    now.awaits = Awaits::WeightGrad;
    if (m_embedding) {
        m_embedding->inputGrad(now.embedding, std::move(grad));
        return {};
    }
    grad.retag(m_context.tag(MemoryCategory::Communication, microbatch));
    return grad;
}

void CpuStage::weightGrad(const Part& part)
{
    const int microbatch = part.microbatch;
    const FlushDenormals flush;
    Kept& now = kept(microbatch, Awaits::WeightGrad);
    if (m_head) m_head->weightGrad(now.head, microbatch, m_lossScale);
    for (std::size_t i = m_blocks.size(); i-- > 0;)
        m_blocks[i].weightGrad(now.blocks[i], microbatch);
    if (m_embedding) m_embedding->weightGrad(now.embedding);
    m_kept.erase(microbatch);
}

double CpuStage::gradientSquareSum() const
{
    const FlushDenormals flush;
    return m_parameters.gradientSquareSum();
}

void CpuStage::optimizerStep(const OptimizerConfig& config, int step, float gradientScale)
{
    const FlushDenormals flush;
    m_parameters.step(config, step, gradientScale);
}

double CpuStage::loss(const Part& part) const
{
    const int microbatch = part.microbatch;
    const auto found = m_losses.find(microbatch);
    if (found == m_losses.end())
        throw std::logic_error("stage " + std::to_string(m_slice.stage) + ", microbatch " + std::to_string(microbatch) +
                               ": no loss without a forward on the last stage");
    return found->second;
}

namespace {
[[noreturn]] void notYet()
{
    throw std::logic_error("the CPU layers do not do this yet");
}
} // namespace

Buffer CpuStage::forwardForRecompute(const Part&, Buffer, std::span<const std::uint8_t>, std::span<const std::uint8_t>)
{
    notYet();
}
void CpuStage::recompute(const Part&) { notYet(); }
void CpuStage::weightGradOver(std::span<const Part> parts)
{
    for (const Part& part : parts)
        weightGrad(part);
}
void CpuStage::setSlices(std::span<const int> lengths)
{
    if (!lengths.empty()) notYet();
}
void CpuStage::setRecomputedLayers(int, int) { notYet(); }
void CpuStage::undoOptimizerStep(const OptimizerConfig&, int, float) { notYet(); }
void CpuStage::keepVersion(int) { notYet(); }
void CpuStage::useVersion(int) { notYet(); }
void CpuStage::dropVersion(int) { notYet(); }
void CpuStage::keepPredicted(int, const OptimizerConfig&, int, double) { notYet(); }

} // namespace stagewright::cpu
