#include "engine/transport/threads_transport.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>

#include "profiler/clock.h"

namespace stagewright {

namespace {

struct Slot
{
    bool full = false;
    int fromRank = -1;
    Buffer buffer; // the sender's: the receiver copies it and sends it back
    Nanos availableAt = 0;
};

// std::chrono::steady_clock is CLOCK_MONOTONIC here.
std::chrono::steady_clock::time_point timePoint(Nanos time)
{
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::nanoseconds(time)));
}

class ThreadsTransport final : public Transport
{
public:
    ThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells)
        : m_space(cells), m_boxes(static_cast<std::size_t>(ranks)), m_outboxes(static_cast<std::size_t>(ranks))
    {
        for (int rank = 0; rank < ranks; ++rank) {
            const std::vector<int> stages = placement.stagesOf(rank);
            const std::size_t messages = stages.size() * m_space.perStage();
            Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
            box.chunk.resize(static_cast<std::size_t>(placement.stages()));
            for (std::size_t i = 0; i < stages.size(); ++i)
                box.chunk[static_cast<std::size_t>(stages[i])] = i;
            box.slots.resize(messages);
            m_outboxes[static_cast<std::size_t>(rank)].returned.reserve(messages);
        }
    }

    std::string_view name() const override { return "threads"; }

    void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(toRank)];
        {
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.slots[at(box, key)];
            assert(!slot.full);
            slot.buffer = std::move(message);
            slot.fromRank = fromRank;
            slot.availableAt = availableAt;
            slot.full = true;
        }
        box.changed.notify_one(); // one rank waits on a box: its owner
    }

    bool ready(int rank, const MessageKey& key) const override
    {
        const Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        const std::lock_guard lock(box.mutex);
        const Slot& slot = box.slots[at(box, key)];
        return !box.interrupted && slot.full && slot.availableAt <= monotonicNow();
    }

    TransportStatus wait(int rank, const MessageKey& key) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        std::unique_lock lock(box.mutex);
        return await(box, box.slots[at(box, key)], lock);
    }

    Buffer take(int rank, const MessageKey& key, Allocator& allocator) override
    {
        SentMessage original{key, Buffer()};
        int fromRank = -1;
        {
            Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.slots[at(box, key)];
            assert(slot.full);
            slot.full = false;
            fromRank = slot.fromRank;
            original.buffer = std::move(slot.buffer);
        }
        return copyOf(std::move(original), fromRank, allocator, {MemoryCategory::Communication, key.stage, key.microbatch});
    }

    void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(toRank)];
        {
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.control[key];
            assert(!slot.full);
            slot.buffer = std::move(message);
            slot.fromRank = key.fromRank;
            slot.availableAt = availableAt;
            slot.full = true;
        }
        box.changed.notify_one();
    }

    Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        SentMessage original{{}, Buffer(), true};
        {
            std::unique_lock lock(box.mutex);
            Slot& slot = box.control[key];
            if (await(box, slot, lock) != TransportStatus::Ready) return {};
            slot.full = false;
            original.buffer = std::move(slot.buffer);
        }
        return copyOf(std::move(original), key.fromRank, allocator, tag);
    }

    std::optional<SentMessage> giveBack(int rank) override
    {
        Outbox& outbox = m_outboxes[static_cast<std::size_t>(rank)];
        const std::lock_guard lock(outbox.mutex);
        if (outbox.returned.empty()) return std::nullopt;
        std::optional<SentMessage> message = std::move(outbox.returned.back());
        outbox.returned.pop_back();
        return message;
    }

    void interrupt() override
    {
        for (Mailbox& box : m_boxes) {
            {
                const std::lock_guard lock(box.mutex);
                box.interrupted = true;
            }
            box.changed.notify_all();
        }
    }

private:
    struct Mailbox
    {
        mutable std::mutex mutex;
        std::condition_variable changed;
        std::vector<Slot> slots;
        std::vector<std::size_t> chunk; // of each stage on this rank
        std::map<ControlKey, Slot> control;
        bool interrupted = false;
    };
    struct Outbox
    { // buffers on their way back to the rank that sent them
        std::mutex mutex;
        std::vector<SentMessage> returned;
    };

    std::size_t at(const Mailbox& box, const MessageKey& key) const
    {
        return box.chunk[key.stage] * m_space.perStage() + m_space.within(key);
    }

    static TransportStatus await(Mailbox& box, const Slot& slot, std::unique_lock<std::mutex>& lock)
    {
        for (;;) {
            if (box.interrupted) return TransportStatus::Interrupted;
            if (!slot.full) {
                box.changed.wait(lock);
            } else if (slot.availableAt > monotonicNow()) {
                box.changed.wait_until(lock, timePoint(slot.availableAt));
            } else {
                return TransportStatus::Ready;
            }
        }
    }

    // Under the receiver's allocator; the original goes back to its sender.
    Buffer copyOf(SentMessage original, int fromRank, Allocator& allocator, const MemoryTag& tag)
    {
        Outbox& outbox = m_outboxes[static_cast<std::size_t>(fromRank)];
        Buffer copy;
        try {
            const std::span<const float> source = original.buffer.span();
            copy = allocator.take(source.size(), tag);
            std::copy(source.begin(), source.end(), copy.data());
        } catch (...) { // the buffer is the sender's to free, whatever happens here
            const std::lock_guard lock(outbox.mutex);
            outbox.returned.push_back(std::move(original));
            throw;
        }
        const std::lock_guard lock(outbox.mutex);
        outbox.returned.push_back(std::move(original));
        return copy;
    }

    MessageSpace m_space;
    std::vector<Mailbox> m_boxes;
    std::vector<Outbox> m_outboxes;
};

} // namespace

std::unique_ptr<Transport> makeThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells)
{
    return std::make_unique<ThreadsTransport>(ranks, placement, cells);
}

} // namespace stagewright
