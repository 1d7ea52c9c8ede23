// Allocator and Buffer: exact accounting by category, blocks kept for reuse by size.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/device/memory.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace stagewright {

namespace {

constexpr std::size_t cacheLine = 64;
constexpr std::size_t hugePage = std::size_t{2} << 20;

thread_local bool unreported = false;

std::size_t roundUp(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

Bytes bytesOf(std::size_t floats) { return static_cast<Bytes>(floats * sizeof(float)); }

// What is really requested from the system; the accounting has only the requested floats.
std::size_t blockBytes(std::size_t floats) { return roundUp(floats * sizeof(float), cacheLine); }

class HostMemory final : public Memory {
public:
    bool isHost() const override { return true; }
    void* take(std::size_t bytes) override
    {
        const bool large = bytes >= hugePage;
        void* memory = std::aligned_alloc(large ? hugePage : cacheLine, large ? roundUp(bytes, hugePage) : bytes);
        if (!memory) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        if (large) ::madvise(memory, roundUp(bytes, hugePage), MADV_HUGEPAGE); // a hint: a refusal costs nothing
#endif
        return memory;
    }
    void give(void* block) noexcept override { std::free(block); }
    void copyRows(void* to, std::size_t toStride, const void* from, std::size_t fromStride, std::size_t bytes,
                  std::size_t rows) override
    {
        for (std::size_t row = 0; row < rows; ++row)
            std::memcpy(static_cast<char*>(to) + row * toStride, static_cast<const char*>(from) + row * fromStride,
                        bytes);
    }
    void clear(void* to, std::size_t bytes) override { std::memset(to, 0, bytes); }
    void upload(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void download(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    Mark mark() override { return nullptr; }
    Mark copyFrom(void* to, const void* from, std::size_t bytes, const Mark&, const BlockUse&) override
    {
        std::memcpy(to, from, bytes);
        return nullptr;
    }
    void await(const Mark&) override {}
    void finish() override {}
};

} // namespace

Memory& hostMemory()
{
    static HostMemory memory;
    return memory;
}

struct Buffer::Shared {
    float* block;
    std::size_t floats; // of the whole block
    int buffers;
};

struct Allocator::State {
    explicit State(Memory& of) : memory(of) {}
    struct Idle {
        void* block;
        BlockUse use;
    };
    Memory& memory;
    std::unordered_map<std::size_t, std::vector<Idle>> idle; // by block size, the one that was freed first in front
    std::array<Bytes, memoryCategoryCount> inUse{};
    std::array<Bytes, memoryCategoryCount> peak{};
    std::vector<Mark> readers; // of views that came back
    std::size_t buffers = 0;
    Bytes held = 0; // of all categories
    Bytes limit = 0;
    MemorySink* sink = nullptr;
    bool shared = false; // by threads
    std::mutex mutex;    // then
    std::function<bool()> relief;

    std::unique_lock<std::mutex> lock() { return shared ? std::unique_lock(mutex) : std::unique_lock<std::mutex>(); }
    void change(const MemoryTag& tag, Bytes delta)
    {
        const auto category = static_cast<std::size_t>(tag.category);
        inUse[category] += delta;
        held += delta;
        if (inUse[category] > peak[category]) peak[category] = inUse[category];
        if (sink && !unreported) sink->memoryChanged(tag, delta);
    }
};

MemoryLimitExceeded::MemoryLimitExceeded(Bytes asked, Bytes held, Bytes limit)
    : std::runtime_error("it needs " + std::to_string(asked) + " bytes beside the " + std::to_string(held) +
                         " that it holds, over the limit of " + std::to_string(limit))
{
}

Unreported::Unreported() { unreported = true; }

Unreported::~Unreported() { unreported = false; }

Allocator::Allocator(Memory& memory) : m_state(new State(memory)) {}

Allocator::~Allocator()
{
    assert(m_state->buffers == 0 && "an allocator must outlive its buffers");
    for (auto& [bytes, blocks] : m_state->idle)
        for (const State::Idle& idle : blocks) m_state->memory.give(idle.block);
}

Memory& Allocator::memory() const { return m_state->memory; }

Buffer Allocator::take(std::size_t floats, const MemoryTag& tag) { return takeBlock(floats, tag, nullptr); }

Buffer Allocator::takeForCopy(std::size_t floats, const MemoryTag& tag, BlockUse& before)
{
    before = {};
    return takeBlock(floats, tag, &before);
}

// For a copy the block that was freed first; else the newest that no other rank may still read, or that of which this
// is so for longest.
Buffer Allocator::takeBlock(std::size_t floats, const MemoryTag& tag, BlockUse* before)
{
    Buffer buffer;
    if (floats == 0) return buffer;
    if (floats > (std::size_t{1} << 60)) throw std::bad_alloc();
    auto lock = m_state->lock();
    while (m_state->limit > 0 && m_state->held + bytesOf(floats) > m_state->limit) {
        const bool asks = m_state->relief && !unreported;
        if (asks && lock) lock.unlock();
        const bool relieved = asks && m_state->relief();
        if (asks && m_state->shared) lock.lock();
        if (!relieved) throw MemoryLimitExceeded(bytesOf(floats), m_state->held, m_state->limit);
    }
    const std::size_t bytes = blockBytes(floats);
    std::vector<State::Idle>& idle = m_state->idle[bytes];
    // Room for the block's return is made now, so that give() can't fail.
    const std::size_t wanted = idle.size() + m_state->buffers + 1;
    if (idle.capacity() < wanted) idle.reserve(2 * wanted);
    void* memory = nullptr;
    if (idle.empty()) {
        memory = m_state->memory.take(bytes);
    } else {
        auto chosen = idle.begin();
        if (!before || m_state->memory.isHost()) {
            const auto unread =
                std::find_if(idle.rbegin(), idle.rend(), [](const State::Idle& each) { return !each.use.read; });
            if (unread != idle.rend()) chosen = std::prev(unread.base());
        }
        if (before)
            *before = chosen->use;
        else if (chosen->use.read)
            m_state->memory.await(chosen->use.read);
        memory = chosen->block;
        idle.erase(chosen);
    }
    buffer.m_data = static_cast<float*>(memory);
    buffer.m_size = floats;
    buffer.m_tag = tag;
    buffer.m_allocator = this;
    ++m_state->buffers;
    m_state->change(tag, bytesOf(floats));
    return buffer;
}

void Allocator::give(Buffer& buffer) noexcept
{
    const auto lock = m_state->lock();
    const std::uint64_t position = m_state->memory.position();
    if (Buffer::Shared* shared = buffer.m_shared) {
        if (--shared->buffers == 0) {
            m_state->idle[blockBytes(shared->floats)].push_back({shared->block, {true, position, nullptr}});
            delete shared;
        }
    } else {
        m_state->idle[blockBytes(buffer.m_size)].push_back({buffer.m_data, {true, position, std::move(buffer.m_read)}});
    }
    --m_state->buffers;
    m_state->change(buffer.m_tag, -bytesOf(buffer.m_size));
}

void Allocator::awaitReaders()
{
    for (const Mark& reader : m_state->readers) m_state->memory.await(reader);
    m_state->readers.clear();
}

void Allocator::setSink(MemorySink* sink) { m_state->sink = sink; }

void Allocator::share() { m_state->shared = true; }

void Allocator::setRelief(std::function<bool()> relief) { m_state->relief = std::move(relief); }

void Allocator::setLimit(Bytes limit) { m_state->limit = limit; }

Bytes Allocator::inUse(MemoryCategory category) const
{
    const auto lock = m_state->lock();
    return m_state->inUse[static_cast<std::size_t>(category)];
}

Bytes Allocator::peak(MemoryCategory category) const
{
    const auto lock = m_state->lock();
    return m_state->peak[static_cast<std::size_t>(category)];
}

void Allocator::resetPeaks()
{
    const auto lock = m_state->lock();
    m_state->peak = m_state->inUse;
}

Buffer::Buffer(Buffer&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0)), m_tag(other.m_tag),
      m_allocator(std::exchange(other.m_allocator, nullptr)), m_read(std::move(other.m_read)),
      m_shared(std::exchange(other.m_shared, nullptr)), m_window(std::exchange(other.m_window, false))
{
}

Buffer& Buffer::operator=(Buffer&& other) noexcept
{
    if (this != &other) {
        reset();
        m_data = std::exchange(other.m_data, nullptr);
        m_size = std::exchange(other.m_size, 0);
        m_tag = other.m_tag;
        m_allocator = std::exchange(other.m_allocator, nullptr);
        m_read = std::move(other.m_read);
        m_shared = std::exchange(other.m_shared, nullptr);
        m_window = std::exchange(other.m_window, false);
    }
    return *this;
}

Buffer::~Buffer() { reset(); }

Memory& Buffer::memory() const { return m_allocator->memory(); }

void Buffer::reset()
{
    if (!m_data) return;
    if (!m_window) m_allocator->give(*this);
    m_data = nullptr;
    m_size = 0;
    m_allocator = nullptr;
    m_shared = nullptr;
    m_window = false;
}

Buffer Buffer::window(std::size_t first, std::size_t count) const
{
    assert(first + count <= m_size);
    Buffer view;
    if (count == 0) return view;
    view.m_data = m_data + first;
    view.m_size = count;
    view.m_tag = m_tag;
    view.m_allocator = m_allocator;
    view.m_window = true;
    return view;
}

void Buffer::readUntil(Mark mark)
{
    if (m_window)
        m_allocator->m_state->readers.push_back(std::move(mark));
    else if (m_shared || m_read) // its block is not its own, or another reads it already
        memory().await(mark);
    else
        m_read = std::move(mark);
}

Buffer Buffer::splitOff(std::size_t floats)
{
    assert(floats > 0 && floats < m_size && !m_window);
    if (m_read) memory().await(std::exchange(m_read, nullptr));
    const auto lock = m_allocator->m_state->lock();
    if (!m_shared) m_shared = new Shared{m_data, m_size, 1};
    Buffer front;
    front.m_data = m_data;
    front.m_size = floats;
    front.m_tag = m_tag;
    front.m_allocator = m_allocator;
    front.m_shared = m_shared;
    ++m_shared->buffers;
    ++m_allocator->m_state->buffers;
    m_data += floats;
    m_size -= floats;
    return front;
}

void Buffer::retag(const MemoryTag& tag)
{
    if (m_data && !m_window) {
        const auto lock = m_allocator->m_state->lock();
        m_allocator->m_state->change(m_tag, -bytesOf(m_size));
        m_allocator->m_state->change(tag, bytesOf(m_size));
    }
    m_tag = tag;
}

} // namespace stagewright
