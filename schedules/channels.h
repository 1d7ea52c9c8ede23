// How messages travel: the two semantics that simulator, validator and the threads transport share.
#pragma once

#include <cstdint>

namespace stagewright {

enum class SendMode : std::uint8_t {
    Buffered,   // a send ends at once; the message waits at the receiver
    Rendezvous, // no buffers: a send ends when its receive has been posted and the message has gone over
};

struct Channels {
    SendMode sends = SendMode::Buffered;
    // Messages that may be under way at once from one rank to another; more queue in the order of their sends (head of
    // line). 0: without limit.
    int perDirection = 0;

    bool operator==(const Channels&) const = default;
};

} // namespace stagewright
