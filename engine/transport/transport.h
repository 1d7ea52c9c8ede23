// Transport: carries messages between ranks under the rules of schedules/messages/channels.h. send() itself never
// blocks; under rendezvous the sender then waits in waitSent() until its receive has been offered and the message gone
// over. A receiver sleeps until its message is available. Messages are copied: the receiver takes a buffer of its own
// allocator, the sender gets its buffer back. Each call names the rank on whose thread it is made. Destroyed while all
// ranks are at rest, before their allocators. Buffers of devices are copied by the receiver's Memory once the sender's
// has written them; a buffer given back is the sender's device's to use once the copy is done.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "profiler/record/rank_recorder.h"

namespace stagewright {

enum class TransportStatus {
    Ready,
    Interrupted,
};

struct SentMessage {
    MessageKey key;
    Buffer buffer;
    bool control = false; // sent by post(): the key says nothing
    Mark written;         // of the sender's device: the buffer holds the message
    Mark read;            // of the receiver's: it has been copied
};

// What ranks exchange besides the schedule's messages: gradients of the copies of a stage, weights that they share, and
// square sums for the global norm, up the ranks and down again. Never part of a rendezvous. Several of one key arrive
// in the order of their posts, which become available in that order.
struct ControlKey {
    enum class Kind : std::uint8_t {
        WeightGradients,
        NormsUp,
        NormsDown,
        AtReduction,
        GradientSums, // a piece of them, from the copy that adds it up
        Weights,      // a piece of them, from the rank that owns it
    };
    Kind kind = Kind::NormsUp;
    std::uint16_t stage = 0; // of all but norms
    int fromRank = 0;
    auto operator<=>(const ControlKey&) const = default;
};

// Bytes that a rank has taken, since the transport was made.
struct ReceivedBytes {
    Bytes messages = 0;  // activations and their gradients
    Bytes weights = 0;   // gathered
    Bytes gradients = 0; // reduced: those of others and their sums
    bool operator==(const ReceivedBytes&) const = default;
};

class Transport {
public:
    virtual ~Transport() = default;
    virtual std::string_view name() const = 0;
    // Before a rank's first message: what it waits for to be connected with others. Throws where that fails.
    virtual void open(int /*rank*/) {}

    // Takes the buffer over. The receiver may have the message from availableAt (CLOCK_MONOTONIC) on; where the message
    // has to wait for its receive or for a free channel, later by that wait. Every key once per step.
    virtual void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) = 0;
    // Rendezvous: the receive is posted; and the sender's sleep until the message has gone over. Buffered: nothing to
    // do.
    virtual void offer(int rank, const MessageKey& key) = 0;
    virtual TransportStatus waitSent(int toRank, const MessageKey& key) = 0;
    // What the rank sends and offers between the two is posted together: it matters where its messages share one
    // stream.
    virtual void beginGroup(int /*rank*/) {}
    virtual void endGroup(int /*rank*/) {}
    // Whether the message could be taken now without waiting.
    virtual bool ready(int rank, const MessageKey& key) const = 0;
    // Sleeps until it can, or until interrupt().
    virtual TransportStatus wait(int rank, const MessageKey& key) = 0;
    // Adds to `came` which of the keys could be taken now, each with since when, as far as is known. Where none could
    // and `sleeps`, first sleeps until one can or `stopped`: false.
    virtual bool awaitAny(int rank, std::span<const MessageKey> keys, bool sleeps, const std::function<bool()>& stopped,
                          std::vector<std::pair<std::size_t, Nanos>>& came);
    // Copies a message that is ready into a buffer of the receiver's allocator, tagged Communication.
    virtual Buffer take(int rank, const MessageKey& key, Allocator& allocator) = 0;
    // As send() and wait() with take() for control messages. collect() gives an empty buffer after interrupt().
    virtual void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) = 0;
    virtual Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) = 0;
    // As collect(), into floats of the rank's own memory that are as long as the message, behind all that was requested
    // of it so far; arrived: since when it could be had, as far as is known. False after interrupt(). hasCome():
    // neither would wait.
    virtual bool collectInto(int rank, const ControlKey& key, Memory& memory, std::span<float> to, Nanos& arrived) = 0;
    virtual bool hasCome(int rank, const ControlKey& key) = 0;
    virtual ReceivedBytes received(int rank) const = 0; // on the rank's thread, or while it is at rest
    // A buffer this rank sent and its receiver has copied; the caller frees it. None: nothing to return now.
    virtual std::optional<SentMessage> giveBack(int rank) = 0;

    // All ranks have come to the end of the step, so that every message of this rank has been taken: sleeps until that
    // is known here, and giveBack() gives them all. False after interrupt().
    virtual bool settle(int /*rank*/) { return true; }

    // Any thread: every wait returns Interrupted, now and later.
    virtual void interrupt() = 0;
};

// One a rank, on its thread.
class ReceivedCounts {
public:
    explicit ReceivedCounts(int ranks) : m_ranks(static_cast<std::size_t>(ranks)) {}
    const ReceivedBytes& of(int rank) const { return m_ranks[static_cast<std::size_t>(rank)]; }
    void addMessage(int rank, std::size_t bytes)
    {
        m_ranks[static_cast<std::size_t>(rank)].messages += static_cast<Bytes>(bytes);
    }
    void add(int rank, ControlKey::Kind kind, std::size_t bytes)
    {
        ReceivedBytes& counts = m_ranks[static_cast<std::size_t>(rank)];
        if (kind == ControlKey::Kind::Weights) counts.weights += static_cast<Bytes>(bytes);
        if (kind == ControlKey::Kind::WeightGradients || kind == ControlKey::Kind::GradientSums)
            counts.gradients += static_cast<Bytes>(bytes);
    }

private:
    std::vector<ReceivedBytes> m_ranks;
};

} // namespace stagewright
