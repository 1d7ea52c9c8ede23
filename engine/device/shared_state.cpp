#include "engine/device/shared_state.h"

#include <algorithm>

namespace stagewright {

namespace {

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count); }

std::size_t bytesOf(std::int64_t floatCount) { return floats(floatCount) * sizeof(float); }

} // namespace

SharedState::SharedState(const StageShare& share, int stage, int moments, Allocator& allocator, StateMath& math)
    : m_share(share), m_stage(static_cast<std::uint16_t>(stage)), m_allocator(allocator), m_math(math)
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
    const std::int64_t stepped = share.level == ShardLevel::None ? all : owned;
    if (shards(ShardLevel::Weights))
        m_ownWeights = zeros(words(owned), MemoryCategory::Weights);
    else
        m_weights = zeros(words(all), MemoryCategory::Weights);
    if (isBf16()) m_masters = zeros(floats(stepped), MemoryCategory::Weights);
    if (shards(ShardLevel::Gradients))
        m_sums = zeros(floats(owned), MemoryCategory::Gradients);
    else
        m_gradients = zeros(floats(all), MemoryCategory::Gradients);
    for (int i = 0; i < moments; ++i) m_moments[i] = zeros(floats(stepped), MemoryCategory::Optimizer);
}

std::size_t SharedState::words(std::int64_t elements) const
{
    return floats(elements) * static_cast<std::size_t>(m_math.elementBytes()) / sizeof(float);
}

Buffer SharedState::zeros(std::size_t count, MemoryCategory category) const
{
    Buffer buffer = m_allocator.take(count, {category, m_stage, -1});
    if (buffer) memory().clear(buffer.data(), buffer.size() * sizeof(float));
    return buffer;
}

void SharedState::start(std::int64_t begin, std::span<const float> values)
{
    const std::int64_t end = begin + static_cast<std::int64_t>(values.size());
    Buffer staged;
    const float* source = values.data();
    if (!memory().isHost()) {
        staged = m_allocator.take(values.size(), workspaceTag(m_stage));
        memory().upload(staged.data(), source, values.size_bytes());
        source = staged.data();
    }
    const auto write = [&](void* to, std::int64_t first, std::int64_t count) {
        if (isBf16())
            m_math.toElements(floats(count), source + (first - begin), to);
        else
            memory().copy(to, source + (first - begin), bytesOf(count));
    };
    if (m_weights) write(weights(begin), begin, end - begin);
    for (const Own& own : m_stepped) {
        const std::int64_t from = std::max(begin, own.begin);
        const std::int64_t to = std::min(end, own.end);
        if (from >= to) continue;
        if (m_masters)
            memory().copy(m_masters.data() + own.offset + (from - own.begin), source + (from - begin),
                          bytesOf(to - from));
        if (!m_ownWeights) continue;
        const auto at =
            static_cast<std::size_t>(own.offset + (from - own.begin)) * static_cast<std::size_t>(m_math.elementBytes());
        write(reinterpret_cast<char*>(m_ownWeights.data()) + at, from, to - from);
    }
}

void* SharedState::weights(std::int64_t begin) const
{
    if (!m_weights) return nullptr;
    return reinterpret_cast<char*>(m_weights.data()) + floats(begin) * static_cast<std::size_t>(m_math.elementBytes());
}

std::span<float> SharedState::weightsPart(std::int64_t begin, std::int64_t end) const
{
    return m_weights.span().subspan(words(begin), words(end - begin));
}

Buffer SharedState::valuesWindow(std::int64_t begin, std::int64_t end) const
{
    if (!isBf16()) return m_weights ? m_weights.window(floats(begin), floats(end - begin)) : Buffer();
    return hasAllValues() ? m_masters.window(floats(begin), floats(end - begin)) : Buffer();
}

void SharedState::takeWeights()
{
    if (m_weights) return;
    m_weights = m_allocator.take(words(m_share.flat.padded), {MemoryCategory::Gathered, m_stage, -1});
    refreshOwn();
}

void SharedState::releaseWeights()
{
    if (shards(ShardLevel::Weights)) m_weights.reset();
}

float* SharedState::stepsOn(const Own& own) const
{
    if (m_masters) return m_masters.data() + own.offset;
    return m_ownWeights ? m_ownWeights.data() + own.offset : m_weights.data() + own.begin;
}

void* SharedState::elementsFor(const Own& own) const
{
    if (!isBf16()) return nullptr;
    return m_ownWeights ? m_ownWeights.data() + words(own.offset) : weights(own.begin);
}

Buffer SharedState::ownWeightsWindow(const Own& own) const
{
    return m_ownWeights ? m_ownWeights.window(words(own.offset), words(own.size()))
                        : m_weights.window(words(own.begin), words(own.size()));
}

void SharedState::refreshOwn()
{
    if (!m_weights || !m_ownWeights) return;
    for (const Own& own : m_own)
        memory().copy(weights(own.begin), m_ownWeights.data() + words(own.offset), words(own.size()) * sizeof(float));
}

std::vector<float> SharedState::steppedValues() const
{
    std::vector<float> values;
    for (const Own& own : m_stepped) {
        const std::size_t at = values.size();
        values.resize(at + floats(own.size()));
        memory().download(values.data() + at, stepsOn(own), bytesOf(own.size()));
    }
    return values;
}

Buffer SharedState::gradientsWindow(std::int64_t begin, std::int64_t end) const
{
    return m_gradients.window(floats(begin), floats(end - begin));
}

void SharedState::takeGradients()
{
    if (!m_gradients) m_gradients = zeros(floats(m_share.flat.padded), MemoryCategory::Gradients);
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
        memory().clear(m_gradients.data(), m_gradients.size() * sizeof(float));
}

float* SharedState::sums(const Own& own) const
{
    return m_sums ? m_sums.data() + own.offset : m_gradients.data() + own.begin;
}

std::vector<float> SharedState::sumsOnHost() const
{
    std::vector<float> values;
    for (const Own& own : m_own) {
        const std::size_t at = values.size();
        values.resize(at + floats(own.size()));
        memory().download(values.data() + at, sums(own), bytesOf(own.size()));
    }
    return values;
}

void SharedState::keepStepped()
{
    std::int64_t count = 0;
    for (const Own& own : m_stepped) count += own.size();
    const MemoryTag tag{MemoryCategory::Optimizer, m_stage, -1};
    if (!m_kept[0]) m_kept[0] = m_allocator.take(floats(count), tag);
    for (const Own& own : m_stepped) memory().copy(m_kept[0].data() + own.offset, stepsOn(own), bytesOf(own.size()));
    for (int i = 0; i < 2; ++i) {
        if (!m_moments[i]) continue;
        if (!m_kept[i + 1]) m_kept[i + 1] = m_allocator.take(m_moments[i].size(), tag);
        memory().copy(m_kept[i + 1].data(), m_moments[i].data(), m_moments[i].size() * sizeof(float));
    }
}

void SharedState::restoreStepped()
{
    for (const Own& own : m_stepped) {
        memory().copy(stepsOn(own), m_kept[0].data() + own.offset, bytesOf(own.size()));
        if (void* elements = elementsFor(own)) m_math.toElements(floats(own.size()), stepsOn(own), elements);
    }
    for (int i = 0; i < 2; ++i)
        if (m_moments[i]) memory().copy(m_moments[i].data(), m_kept[i + 1].data(), m_moments[i].size() * sizeof(float));
    refreshOwn();
}

void SharedState::dropKept()
{
    for (Buffer& buffer : m_kept) buffer.reset();
}

} // namespace stagewright
