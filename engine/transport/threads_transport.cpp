#include "engine/transport/threads_transport.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "profiler/record/clock.h"
#include "schedules/messages/communication_streams.h"

namespace stagewright {

namespace {

constexpr Nanos never = std::numeric_limits<Nanos>::max(); // its receive is not posted

struct Slot {
    bool full = false;
    int fromRank = -1;
    Buffer buffer; // the sender's: the receiver copies it and sends it back
    Mark written;
    Nanos availableAt = 0;
    bool offered = false; // the receive is posted
    Nanos delay = 0;      // of a message that waits for its receive
};

// std::chrono::steady_clock is CLOCK_MONOTONIC here.
std::chrono::steady_clock::time_point timePoint(Nanos time)
{
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::nanoseconds(time)));
}

class ThreadsTransport final : public Transport {
public:
    ThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells, const Channels& channels,
                     std::function<void()> interrupted)
        : m_rendezvous(channels.sends == SendMode::Rendezvous), m_interrupted(std::move(interrupted)), m_space(cells),
          m_boxes(static_cast<std::size_t>(ranks)), m_outboxes(static_cast<std::size_t>(ranks)), m_received(ranks)
    {
        std::size_t first = 0;
        for (int rank = 0; rank < ranks; ++rank) {
            const std::vector<int> stages = placement.stagesOf(rank);
            const std::size_t messages = stages.size() * m_space.perStage();
            Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
            box.stages = stages;
            box.slots.resize(messages);
            if (channels.perDirection > 0)
                box.channels.assign(static_cast<std::size_t>(ranks),
                                    {std::vector<Nanos>(static_cast<std::size_t>(channels.perDirection), 0), {}});
            box.first = first;
            first += messages;
            m_outboxes[static_cast<std::size_t>(rank)].returned.reserve(messages);
        }
        if (!channels.oneStream) return;
        m_streams.emplace(static_cast<std::size_t>(ranks), first);
        m_groups.resize(static_cast<std::size_t>(ranks));
    }

    std::string_view name() const override { return "threads"; }

    void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(toRank)];
        Mark written = message.memory().mark();
        const std::size_t place = at(box, key);
        {
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.slots[place];
            assert(!slot.full);
            slot.buffer = std::move(message);
            slot.written = std::move(written);
            slot.fromRank = fromRank;
            slot.full = true;
            const Nanos now = monotonicNow();
            slot.delay = std::max<Nanos>(0, availableAt - now);
            slot.availableAt = never;
            if (m_streams) {
                // its turn says when
            } else if (box.channels.empty()) {
                if (!m_rendezvous || slot.offered) slot.availableAt = availableAt;
            } else {
                Direction& channels = box.channels[static_cast<std::size_t>(fromRank)];
                channels.queue.push_back(&slot);
                advance(channels, now);
            }
        }
        if (m_streams) return postOnStream(fromRank, {static_cast<std::uint32_t>(box.first + place), true});
        box.changed.notify_all(); // its owner waits, and under rendezvous those who send to it
    }

    void offer(int rank, const MessageKey& key) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        if (m_streams) return postOnStream(rank, {static_cast<std::uint32_t>(box.first + at(box, key)), false});
        if (!m_rendezvous) return;
        {
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.slots[at(box, key)];
            slot.offered = true;
            if (slot.full && box.channels.empty())
                slot.availableAt = monotonicNow() + slot.delay;
            else if (slot.full)
                advance(box.channels[static_cast<std::size_t>(slot.fromRank)], monotonicNow());
        }
        box.changed.notify_all();
    }

    void beginGroup(int rank) override
    {
        if (m_streams) m_groups[static_cast<std::size_t>(rank)].emplace();
    }

    void endGroup(int rank) override
    {
        if (!m_streams) return;
        const std::vector<CommunicationStreams::Side> sides =
            std::exchange(m_groups[static_cast<std::size_t>(rank)], std::nullopt).value();
        appendToStream(rank, sides);
    }

    TransportStatus waitSent(int toRank, const MessageKey& key) override
    {
        if (!m_rendezvous) return TransportStatus::Ready;
        Mailbox& box = m_boxes[static_cast<std::size_t>(toRank)];
        std::unique_lock lock(box.mutex);
        const Slot& slot = box.slots[at(box, key)];
        for (;;) {
            if (box.interrupted) return TransportStatus::Interrupted;
            if (!slot.full) return TransportStatus::Ready; // taken already
            const Nanos until = slot.availableAt;
            if (until == never)
                box.changed.wait(lock);
            else if (until > monotonicNow())
                box.changed.wait_until(lock, timePoint(until));
            else
                return TransportStatus::Ready;
        }
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

    bool awaitAny(int rank, std::span<const MessageKey> keys, bool sleeps, const std::function<bool()>& /*stopped*/,
                  std::vector<std::pair<std::size_t, Nanos>>& came) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        std::unique_lock lock(box.mutex);
        for (;;) {
            if (box.interrupted) return false;
            const Nanos now = monotonicNow();
            Nanos next = never;
            for (std::size_t i = 0; i < keys.size(); ++i) {
                const Slot& slot = box.slots[at(box, keys[i])];
                if (!slot.full) continue;
                if (slot.availableAt <= now)
                    came.emplace_back(i, slot.availableAt);
                else
                    next = std::min(next, slot.availableAt);
            }
            if (!came.empty() || !sleeps) return true;
            if (next == never)
                box.changed.wait(lock);
            else
                box.changed.wait_until(lock, timePoint(next));
        }
    }

    Buffer take(int rank, const MessageKey& key, Allocator& allocator) override
    {
        SentMessage original{key, Buffer(), false, {}, {}};
        int fromRank = -1;
        {
            Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.slots[at(box, key)];
            assert(slot.full);
            slot.full = slot.offered = false;
            fromRank = slot.fromRank;
            original.buffer = std::move(slot.buffer);
            original.written = std::move(slot.written);
        }
        if (m_rendezvous) m_boxes[static_cast<std::size_t>(rank)].changed.notify_all();
        m_received.addMessage(rank, original.buffer.size() * sizeof(float));
        return copyOf(std::move(original), fromRank, allocator, messageTag(key.stage, key.microbatch));
    }

    void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(toRank)];
        Mark written = message.memory().mark();
        {
            const std::lock_guard lock(box.mutex);
            Slot& slot = box.control[key].emplace_back();
            slot.buffer = std::move(message);
            slot.written = std::move(written);
            slot.fromRank = key.fromRank;
            slot.availableAt = availableAt;
            slot.full = true;
        }
        box.changed.notify_all(); // one woken alone may be a sender that waits for its receive
    }

    Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) override
    {
        std::optional<Slot> slot = awaitControl(rank, key);
        if (!slot) return {};
        return copyOf({{}, std::move(slot->buffer), true, std::move(slot->written), {}}, key.fromRank, allocator, tag);
    }

    bool collectInto(int rank, const ControlKey& key, Memory& memory, std::span<float> to, Nanos& arrived) override
    {
        std::optional<Slot> slot = awaitControl(rank, key);
        if (!slot) return false;
        assert(slot->buffer.size() == to.size());
        arrived = slot->availableAt;
        copyInto({{}, std::move(slot->buffer), true, std::move(slot->written), {}}, key.fromRank,
                 [&](SentMessage& original) {
                     const std::span<const float> source = original.buffer.span();
                     original.read = memory.copyFrom(to.data(), source.data(), source.size_bytes(), original.written,
                                                     {true, memory.position(), nullptr});
                 });
        return true;
    }

    bool hasCome(int rank, const ControlKey& key) override
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        const std::lock_guard lock(box.mutex);
        const auto found = box.control.find(key);
        return found != box.control.end() && !found->second.empty() &&
               found->second.front().availableAt <= monotonicNow();
    }

    ReceivedBytes received(int rank) const override { return m_received.of(rank); }

    std::optional<SentMessage> giveBack(int rank) override
    {
        Outbox& outbox = m_outboxes[static_cast<std::size_t>(rank)];
        std::optional<SentMessage> message;
        {
            const std::lock_guard lock(outbox.mutex);
            if (outbox.returned.empty()) return std::nullopt;
            message = std::move(outbox.returned.back());
            outbox.returned.pop_back();
        }
        if (message->read) message->buffer.readUntil(std::exchange(message->read, nullptr));
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
        if (m_interrupted) m_interrupted();
    }

private:
    // From one rank to another, where their number is limited.
    struct Direction {
        std::vector<Nanos> free; // when each is
        std::deque<Slot*> queue; // messages that have not begun, in the order of their sends
    };
    struct Mailbox {
        mutable std::mutex mutex;
        std::condition_variable changed;
        std::vector<Slot> slots;
        std::vector<int> stages; // of this rank, ascending
        std::map<ControlKey, std::deque<Slot>> control;
        std::vector<Direction> channels; // limited ones: by sender
        std::size_t first = 0;           // of its messages, among those of all ranks
        bool interrupted = false;
    };
    struct Outbox { // buffers on their way back to the rank that sent them
        std::mutex mutex;
        std::vector<SentMessage> returned;
    };

    std::size_t at(const Mailbox& box, const MessageKey& key) const
    {
        const auto chunk =
            std::lower_bound(box.stages.begin(), box.stages.end(), static_cast<int>(key.stage)) - box.stages.begin();
        return static_cast<std::size_t>(chunk) * m_space.perStage() + m_space.within(key);
    }

    void postOnStream(int rank, const CommunicationStreams::Side& side)
    {
        if (auto& group = m_groups[static_cast<std::size_t>(rank)])
            group->push_back(side);
        else
            appendToStream(rank, {&side, 1});
    }

    void appendToStream(int rank, std::span<const CommunicationStreams::Side> sides)
    {
        const std::lock_guard lock(m_streamMutex);
        m_streams->append(rank, sides, monotonicNow());
        m_streams->advance(rank, [this](std::uint32_t message, Nanos ready) {
            const auto box =
                std::prev(std::upper_bound(m_boxes.begin(), m_boxes.end(), message,
                                           [](std::size_t number, const Mailbox& one) { return number < one.first; }));
            const std::lock_guard inBox(box->mutex);
            Slot& slot = box->slots[message - box->first];
            slot.availableAt = ready + slot.delay;
            box->changed.notify_all();
            return slot.availableAt;
        });
    }

    // Puts under way what may go over from `now` on, each on the channel that is free first. The others queue behind a
    // message whose receive is not posted.
    void advance(Direction& channels, Nanos now) const
    {
        for (; !channels.queue.empty(); channels.queue.pop_front()) {
            Slot& slot = *channels.queue.front();
            if (m_rendezvous && !slot.offered) return;
            Nanos& first = *std::min_element(channels.free.begin(), channels.free.end());
            first = std::max(first, now) + slot.delay;
            slot.availableAt = first;
        }
    }

    static TransportStatus await(Mailbox& box, const Slot& slot, std::unique_lock<std::mutex>& lock)
    {
        for (;;) {
            if (box.interrupted) return TransportStatus::Interrupted;
            if (!slot.full || slot.availableAt == never) {
                box.changed.wait(lock);
            } else if (slot.availableAt > monotonicNow()) {
                box.changed.wait_until(lock, timePoint(slot.availableAt));
            } else {
                return TransportStatus::Ready;
            }
        }
    }

    // The first of the key's, once it is available; none after interrupt().
    std::optional<Slot> awaitControl(int rank, const ControlKey& key)
    {
        Mailbox& box = m_boxes[static_cast<std::size_t>(rank)];
        std::unique_lock lock(box.mutex);
        std::deque<Slot>& slots = box.control[key];
        while (slots.empty() && !box.interrupted) box.changed.wait(lock);
        if (slots.empty() || await(box, slots.front(), lock) != TransportStatus::Ready) return std::nullopt;
        Slot slot = std::move(slots.front());
        slots.pop_front();
        m_received.add(rank, key.kind, slot.buffer.size() * sizeof(float));
        return slot;
    }

    // Under the receiver's allocator.
    Buffer copyOf(SentMessage original, int fromRank, Allocator& allocator, const MemoryTag& tag)
    {
        Buffer copy;
        copyInto(std::move(original), fromRank, [&](SentMessage& from) {
            const std::span<const float> source = from.buffer.span();
            BlockUse before;
            copy = allocator.takeForCopy(source.size(), tag, before);
            from.read =
                allocator.memory().copyFrom(copy.data(), source.data(), source.size_bytes(), from.written, before);
        });
        return copy;
    }

    // copies(original), which then goes back to its sender.
    template <typename Copies>
    void copyInto(SentMessage original, int fromRank, Copies&& copies)
    {
        Outbox& outbox = m_outboxes[static_cast<std::size_t>(fromRank)];
        try {
            copies(original);
        } catch (...) { // the buffer is the sender's to free, whatever happens here
            const std::lock_guard lock(outbox.mutex);
            outbox.returned.push_back(std::move(original));
            throw;
        }
        const std::lock_guard lock(outbox.mutex);
        outbox.returned.push_back(std::move(original));
    }

    bool m_rendezvous;
    std::function<void()> m_interrupted;
    MessageSpace m_space;
    std::vector<Mailbox> m_boxes;
    std::vector<Outbox> m_outboxes;
    std::mutex m_streamMutex; // before that of a mailbox
    std::optional<CommunicationStreams> m_streams;
    // by rank, on its thread: what it posts together
    std::vector<std::optional<std::vector<CommunicationStreams::Side>>> m_groups;
    ReceivedCounts m_received;
};

} // namespace

std::unique_ptr<Transport> makeThreadsTransport(int ranks, const Placement& placement, const CellSpace& cells,
                                                const Channels& channels, std::function<void()> interrupted)
{
    return std::make_unique<ThreadsTransport>(ranks, placement, cells, channels, std::move(interrupted));
}

} // namespace stagewright
