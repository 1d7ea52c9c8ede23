// Transport: carries messages between ranks under the rules of schedules/messages/channels.h. send() itself never blocks; under
// rendezvous the sender then waits in waitSent() until its receive has been offered and the message gone over. A receiver
// sleeps until its message is available. Messages are copied: the receiver takes a buffer of its own allocator, the
// sender gets its buffer back. Each call names the rank on whose thread it is made. Destroyed while all ranks are at
// rest, before their allocators. Buffers of devices are copied by the receiver's Memory once the sender's has written them; a
// buffer given back is the sender's device's to use once the copy is done.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
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

// What ranks exchange besides the schedule's messages: gradients of the copies of a stage, and square sums for the
// global norm, up the ranks and down again. Never part of a rendezvous.
struct ControlKey {
    enum class Kind : std::uint8_t {
        WeightGradients,
        NormsUp,
        NormsDown,
        AtReduction,
        GradientSums, // a piece of them, from the copy that adds it up
    };
    Kind kind = Kind::NormsUp;
    std::uint16_t stage = 0; // WeightGradients, AtReduction, GradientSums
    int fromRank = 0;
    auto operator<=>(const ControlKey&) const = default;
};

class Transport {
public:
    virtual ~Transport() = default;
    virtual std::string_view name() const = 0;

    // Takes the buffer over. The receiver may have the message from availableAt (CLOCK_MONOTONIC) on; where the message has
    // to wait for its receive or for a free channel, later by that wait. Every key once per step.
    virtual void send(int fromRank, int toRank, const MessageKey& key, Buffer message, Nanos availableAt) = 0;
    // Rendezvous: the receive is posted; and the sender's sleep until the message has gone over. Buffered: nothing to do.
    virtual void offer(int rank, const MessageKey& key) = 0;
    virtual TransportStatus waitSent(int toRank, const MessageKey& key) = 0;
    // Whether the message could be taken now without waiting.
    virtual bool ready(int rank, const MessageKey& key) const = 0;
    // Sleeps until it can, or until interrupt().
    virtual TransportStatus wait(int rank, const MessageKey& key) = 0;
    // Copies a message that is ready into a buffer of the receiver's allocator, tagged Communication.
    virtual Buffer take(int rank, const MessageKey& key, Allocator& allocator) = 0;
    // As send() and wait() with take() for control messages. collect() gives an empty buffer after interrupt().
    virtual void post(int toRank, const ControlKey& key, Buffer message, Nanos availableAt) = 0;
    virtual Buffer collect(int rank, const ControlKey& key, Allocator& allocator, const MemoryTag& tag) = 0;
    // A buffer this rank sent and its receiver has copied; the caller frees it. None: nothing to return now.
    virtual std::optional<SentMessage> giveBack(int rank) = 0;

    // All ranks have come to the end of the step, so that every message of this rank has been taken: sleeps until that is known here, and
    // giveBack() gives them all. False after interrupt().
    virtual bool settle(int /*rank*/) { return true; }

    // Any thread: every wait returns Interrupted, now and later.
    virtual void interrupt() = 0;
};

} // namespace stagewright
