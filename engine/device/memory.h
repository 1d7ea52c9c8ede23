// Counted memory: every byte that an engine holds is a Buffer of an Allocator, which reports to a MemorySink. The
// blocks lie in a Memory: the host's, or a device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>

#include "schedules/timeline/timeline.h"

namespace stagewright {
class DeviceClock; // profiler/record/device_clock.h
class DeviceEnd;   // engine/device/device_end.h
} // namespace stagewright

namespace stagewright {

// Every byte of weights, gradients, optimizer state, activations, workspace and message buffers passes an Allocator
// that reports to this sink, so that measured memory is exact. Called on the thread that runs the op.
struct MemoryTag {
    MemoryCategory category = MemoryCategory::Activations;
    std::uint16_t stage = 0;
    std::int32_t microbatch = -1;
};
// What is needed while an op runs, and buffers of messages.
inline MemoryTag workspaceTag(int stage = 0, int microbatch = -1)
{
    return {MemoryCategory::Workspace, static_cast<std::uint16_t>(stage), microbatch};
}
inline MemoryTag messageTag(int stage = 0, int microbatch = -1)
{
    return {MemoryCategory::Communication, static_cast<std::uint16_t>(stage), microbatch};
}

class MemorySink {
public:
    virtual ~MemorySink() = default;
    virtual void memoryChanged(const MemoryTag& tag, Bytes delta) = 0;
};

// While it lives, what its thread takes and frees is counted, and not reported to sinks.
class Unreported {
public:
    Unreported();
    ~Unreported();
    Unreported(const Unreported&) = delete;
    Unreported& operator=(const Unreported&) = delete;
};

// A point in the work that a rank requested from its device. Null: done already.
using Mark = std::shared_ptr<void>;

// Until when requested work may still use a block that was freed: nothing of it is waited for before the block is used
// again.
struct BlockUse {
    bool used = false;          // by requests of this memory's rank
    std::uint64_t position = 0; // of the rank's work when the block was freed (Memory::position)
    Mark read;                  // of another rank that reads it; null: none does
};

// Where blocks lie and how bytes get there. One per rank, on its thread but for give(). A device does what is requested
// later, in the order of the requests; download() and finish() wait. Sizes and strides in bytes. Failures of a device
// throw std::runtime_error.
class Memory {
public:
    virtual ~Memory() = default;
    virtual bool isHost() const = 0;
    virtual void* take(std::size_t bytes) = 0; // 64-byte aligned; throws std::bad_alloc
    virtual void give(void* block) noexcept = 0;
    virtual void copyRows(void* to, std::size_t toStride, const void* from, std::size_t fromStride, std::size_t bytes,
                          std::size_t rows) = 0;
    void copy(void* to, const void* from, std::size_t bytes) { copyRows(to, bytes, from, bytes, bytes, 1); }
    virtual void clear(void* to, std::size_t bytes) = 0;
    virtual void upload(void* to, const void* from, std::size_t bytes) = 0; // the host's bytes may change at return
    virtual void download(void* to, const void* from, std::size_t bytes) = 0;
    // Hand-over to another rank: what was requested so far; a copy of another rank's bytes once `written` has come and
    // `to` is free, but for nothing else, with a mark for when they have been read; later work waits for the copy, and
    // for a mark of another rank.
    virtual Mark mark() = 0;
    virtual Mark copyFrom(void* to, const void* from, std::size_t bytes, const Mark& written,
                          const BlockUse& before) = 0;
    virtual void await(const Mark& mark) = 0;
    virtual void finish() = 0;
    virtual void enter() {}     // any thread: what other libraries do on it next concerns this device
    virtual void interrupt() {} // any thread, at any time: what waits for other devices ends with an exception
    // Marks made so far: the first mark after a position is passed when all that was requested before it has been done.
    virtual std::uint64_t position() const { return 0; }
    virtual DeviceClock* clock() { return nullptr; } // null: times are read from the host's clock
    virtual DeviceEnd* end() { return nullptr; }     // null: it is not connected with devices of other processes
};
Memory& hostMemory();

// An owned, 64-byte aligned block of floats. Freeing it reports to the sink of the allocator it came from. Move only.
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
    Memory& memory() const; // of a buffer that is there
    void reset();
    // The same memory under another tag: a received message becomes an activation. Reports −size, then +size to the
    // sink.
    void retag(const MemoryTag& tag);
    // Another rank reads it until `mark`: whoever uses the block after this buffer waits for that, and nobody before;
    // of a view, who calls Allocator::awaitReaders().
    void readUntil(Mark mark);
    // The front `floats` (0 < floats < size) become a buffer of their own, counted apart and with the same tag; this
    // one keeps the rest, which may no longer be aligned. The block returns to the allocator when both are gone.
    Buffer splitOff(std::size_t floats);
    // A view of `count` floats from `first` on: counted nowhere, and nothing is freed with it. This buffer must outlive
    // it; who reads the view on another rank must be done before these floats change.
    Buffer window(std::size_t first, std::size_t count) const;

private:
    friend class Allocator;
    struct Shared;
    float* m_data = nullptr;
    std::size_t m_size = 0;
    MemoryTag m_tag;
    class Allocator* m_allocator = nullptr;
    Mark m_read;                // readUntil()
    Shared* m_shared = nullptr; // where the block was split
    bool m_window = false;
};

// An allocator's declared limit: what was asked for, beside what is held. Says all three sizes.
class MemoryLimitExceeded : public std::runtime_error {
public:
    MemoryLimitExceeded(Bytes asked, Bytes held, Bytes limit);
};

// One per rank; blocks are reused by size. Not thread safe: a rank's thread owns it, but a Buffer may travel to another
// rank only through a transport, which copies. The sink may be null and may be exchanged between ops.
class Allocator {
public:
    explicit Allocator(Memory& memory = hostMemory()); // outlives it
    ~Allocator();
    Allocator(const Allocator&) = delete;
    Allocator& operator=(const Allocator&) = delete;

    // contents undefined; throws std::bad_alloc where memory is out
    Buffer take(std::size_t floats, const MemoryTag& tag);
    // For a copy (Memory::copyFrom), which waits for what `before` says; the block that has been free for longest.
    Buffer takeForCopy(std::size_t floats, const MemoryTag& tag, BlockUse& before);
    Memory& memory() const;
    // Later work waits until other ranks have read all views that came back (Buffer::readUntil): before what they
    // showed changes.
    void awaitReaders();
    void setSink(MemorySink* sink);
    // From now on other threads may take and free, too. Marks and views stay with the rank's thread.
    void share();
    // Asked, on the thread that takes, before a take goes beyond the limit: true once something may have been freed.
    void setRelief(std::function<bool()> relief);
    // A limit on all categories together, as counted: take() throws MemoryLimitExceeded beyond it. 0: as much as there
    // is.
    void setLimit(Bytes limit);
    Bytes inUse(MemoryCategory category) const;
    Bytes peak(MemoryCategory category) const; // since the last resetPeaks()
    void resetPeaks();

private:
    friend class Buffer;
    void give(Buffer& buffer) noexcept;
    Buffer takeBlock(std::size_t floats, const MemoryTag& tag, BlockUse* before);
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace stagewright
