// How messages travel: what simulator, validator and the threads transport share. It concerns lowered schedules, whose lists
// hold sends and receives (schedules/messages/lower.h). Times of a message are those of MessageTimes (schedules/execute/simulate.h).
//
//                        send                                     receive
//   buffered             the rank continues at once;              posted: the rank continues at once, the op that needs the
//                        the message waits at the receiver        message waits for it (isend and irecv of PyTorch)
//   rendezvous,          the rank waits until the receive has     the rank waits until the message is there
//     blocking receives  been posted and the message gone over    (a strict send and receive without buffers)
//   rendezvous,          the same                                 posted, as buffered
//     posted receives
//
// Two messages issued as a pair (Schedule::paired, GROUPED in a CSV) are posted at the same moment; the rank waits until
// both are done.
#pragma once

#include <cstdint>

namespace stagewright {

enum class SendMode : std::uint8_t {
    Buffered,   // a send ends at once; the message waits at the receiver
    Rendezvous, // no buffers: a send ends when its receive has been posted and the message has gone over
};

enum class ReceiveMode : std::uint8_t {
    Blocking, // the rank waits at the receive
    Posted,   // the receive only offers its buffer
};

struct Channels {
    SendMode sends = SendMode::Buffered;
    // Messages that may be in flight at once from one rank to another; more queue in the order of their sends (head of
    // line). 0: without limit.
    int perDirection = 0;
    ReceiveMode receives = ReceiveMode::Blocking; // of Rendezvous; buffered receives are always posted

    bool blockingReceives() const { return sends == SendMode::Rendezvous && receives == ReceiveMode::Blocking; }
    bool operator==(const Channels&) const = default;
};

} // namespace stagewright
