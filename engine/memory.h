// Counted memory: every byte that an engine holds is a Buffer of an Allocator, which tells a MemorySink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// Every byte of weights, gradients, optimizer state, activations, workspace and message buffers passes an Allocator that
// tells this sink, so that measured memory is exact. Called on the thread that runs the op.
struct MemoryTag {
    MemoryCategory category = MemoryCategory::Activations;
    std::uint16_t stage = 0;
    std::int32_t microbatch = -1;
};
class MemorySink {
public:
    virtual ~MemorySink() = default;
    virtual void memoryChanged(const MemoryTag& tag, Bytes delta) = 0;
};

// An owned, 64-byte aligned block of floats. Freeing it tells the sink of the allocator it came from. Move only.
class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept;
    Buffer& operator=(Buffer&& other) noexcept;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer();

    float* data() const { return m_data; }
    std::size_t size() const { return m_size; } // floats
    std::span<float> span() const { return {m_data, m_size}; }
    explicit operator bool() const { return m_data != nullptr; }
    void reset();
    // The same memory under another tag: a received message becomes an activation. Tells the sink −size, then +size.
    void retag(const MemoryTag& tag);
    // The front `floats` (0 < floats < size) become a buffer of their own, counted apart and with the same tag; this one
    // keeps the rest, which may no longer be aligned. The block returns to the allocator when both are gone.
    Buffer splitOff(std::size_t floats);

private:
    friend class Allocator;
    struct Shared;
    float* m_data = nullptr;
    std::size_t m_size = 0;
    MemoryTag m_tag;
    class Allocator* m_allocator = nullptr;
    Shared* m_shared = nullptr; // where the block was split
};

// One per rank; blocks are reused by size. Not thread safe: a rank's thread owns it, but a Buffer may travel to another
// rank only through a transport, which copies. The sink may be null and may be exchanged between ops.
class Allocator {
public:
    Allocator();
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    Buffer take(std::size_t floats, const MemoryTag& tag); // contents undefined; throws std::bad_alloc where memory is out
    void setSink(MemorySink* sink);
    Bytes inUse(MemoryCategory category) const;
    Bytes peak(MemoryCategory category) const; // since the last resetPeaks()
    void resetPeaks();

private:
    friend class Buffer;
    void give(Buffer& buffer) noexcept;
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
