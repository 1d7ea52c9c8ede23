#include "engine/device/shared_state.h"

#include <algorithm>
#include <cstring>

namespace stagewright {

namespace {

std::size_t floats(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

} // namespace

SharedState::SharedState(const StageShare& share, int stage, int moments, Allocator& allocator)
    : m_share(share), m_stage(static_cast<std::uint16_t>(stage)), m_allocator(allocator)
{
    std::int64_t owned = 0;
    for (const ShardPiece& piece : share.flat.pieces) {
        if (piece.owner != share.member) continue;
        m_own.push_back({piece.begin, piece.end, owned});
        owned += piece.size();
    }
    m_stepped = m_own;
    if (share.level == ShardLevel::None) m_stepped = {{0, share.flat.padded, 0}};
    const std::int64_t all = share.flat.padded;
    if (shards(ShardLevel::Weights))
        m_ownWeights = zeros(owned, MemoryCategory::Weights);
    else
        m_weights = zeros(all, MemoryCategory::Weights);
    if (shards(ShardLevel::Gradients))
        m_sums = zeros(owned, MemoryCategory::Gradients);
    else
        m_gradients = zeros(all, MemoryCategory::Gradients);
    for (int i = 0; i < moments; ++i) m_moments[i] = zeros(share.level == ShardLevel::None ? all : owned, MemoryCategory::Optimizer);
}

Buffer SharedState::zeros(std::int64_t count, MemoryCategory category) const
{
    Buffer buffer = m_allocator.take(floats(count), {category, m_stage, -1});
    if (buffer) std::memset(buffer.data(), 0, buffer.size() * sizeof(float));
    return buffer;
}

Buffer SharedState::weightsWindow(std::int64_t begin, std::int64_t end) const
{
    return m_weights.window(floats(begin), floats(end - begin));
}

void SharedState::takeWeights()
{
    if (m_weights) return;
    m_weights = m_allocator.take(floats(m_share.flat.padded), {MemoryCategory::Gathered, m_stage, -1});
    refreshOwn();
}

void SharedState::releaseWeights()
{
    if (shards(ShardLevel::Weights)) m_weights.reset();
}

float* SharedState::ownWeights(const Own& own) const
{
    return m_ownWeights ? m_ownWeights.data() + own.offset : m_weights.data() + own.begin;
}

Buffer SharedState::ownWeightsWindow(const Own& own) const
{
    return m_ownWeights ? m_ownWeights.window(floats(own.offset), floats(own.end - own.begin)) : weightsWindow(own.begin, own.end);
}

void SharedState::refreshOwn()
{
    if (!m_weights || !m_ownWeights) return;
    for (const Own& own : m_own) std::memcpy(m_weights.data() + own.begin, ownWeights(own), floats(own.end - own.begin) * sizeof(float));
}

Buffer SharedState::gradientsWindow(std::int64_t begin, std::int64_t end) const
{
    return m_gradients.window(floats(begin), floats(end - begin));
}

void SharedState::takeGradients()
{
    if (!m_gradients) m_gradients = zeros(m_share.flat.padded, MemoryCategory::Gradients);
}

Buffer SharedState::handOverGradients()
{
    takeGradients();
    return std::move(m_gradients);
}

void SharedState::zeroGradients()
{
    if (shards(ShardLevel::Gradients))
        m_gradients.reset(); // of a step that was stopped
    else
        std::memset(m_gradients.data(), 0, m_gradients.size() * sizeof(float));
}

float* SharedState::sums(const Own& own) const
{
    return m_sums ? m_sums.data() + own.offset : m_gradients.data() + own.begin;
}

void SharedState::keepStepped()
{
    std::int64_t count = 0;
    for (const Own& own : m_stepped) count += own.end - own.begin;
    const MemoryTag tag{MemoryCategory::Optimizer, m_stage, -1};
    if (!m_kept[0]) m_kept[0] = m_allocator.take(floats(count), tag);
    for (const Own& own : m_stepped) std::memcpy(m_kept[0].data() + own.offset, ownWeights(own), floats(own.end - own.begin) * sizeof(float));
    for (int i = 0; i < 2; ++i) {
        if (!m_moments[i]) continue;
        if (!m_kept[i + 1]) m_kept[i + 1] = m_allocator.take(m_moments[i].size(), tag);
        std::memcpy(m_kept[i + 1].data(), m_moments[i].data(), m_moments[i].size() * sizeof(float));
    }
}

void SharedState::restoreStepped()
{
    for (const Own& own : m_stepped) std::memcpy(ownWeights(own), m_kept[0].data() + own.offset, floats(own.end - own.begin) * sizeof(float));
    for (int i = 0; i < 2; ++i)
        if (m_moments[i]) std::memcpy(m_moments[i].data(), m_kept[i + 1].data(), m_moments[i].size() * sizeof(float));
    refreshOwn();
}

void SharedState::dropKept()
{
    for (Buffer& buffer : m_kept) buffer.reset();
}

} // namespace stagewright
