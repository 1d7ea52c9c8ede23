// How messages travel: what simulator, validator and the threads transport share. It concerns lowered schedules, whose
// lists hold sends and receives (schedules/messages/lower.h). Times of a message are those of MessageTimes
// (schedules/execute/simulate.h).
//
//                        send                                     receive
//   buffered             the rank continues at once;              posted: the rank continues at once, the op that needs
//                                                                 the
//                        the message waits at the receiver        message waits for it (isend and irecv of PyTorch)
//   rendezvous,          the rank waits until the receive has     the rank waits until the message is there
//     blocking receives  been posted and the message gone over    (a strict send and receive without buffers)
//   rendezvous,          the same                                 posted, as buffered
//     posted receives
//
// Messages issued as a group (schedules/model/groups.h, GROUPED in a CSV) are posted at the same moment; the rank waits
// until all are done.
//
// Messages of one link share its bandwidth: each takes it for bytes ÷ bandwidth, one after the other in the order in
// which they can leave; latency delays a message and occupies nothing. Which other limits there are says one word,
// --channels and what a run keeps:
//
//   shared   none (the default)
//   N        at most N messages in flight at once from one rank to another, queueing in the order of their sends
//   0        none, and each message has the whole bandwidth, however many there are
//   one      one communication stream a rank: its sends and receives run one after the other in the order of its list
//            (a group at once), each from when both sides have come to it until it is there; a receive whose message is
//            not sent yet holds up what is behind it, compute goes on
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
    bool apart = false;                           // no message takes bandwidth from another
    bool oneStream = false;                       // of each rank; perDirection is then 0

    bool blockingReceives() const { return sends == SendMode::Rendezvous && receives == ReceiveMode::Blocking; }
    // beyond what links carry: only sends and receives in the lists show it
    bool limited() const { return perDirection > 0 || oneStream; }
    bool operator==(const Channels&) const = default;
};

// "shared", "0", "one", "2"; sends and receives are not in it.
std::string limitText(const Channels& channels);
bool readLimit(std::string_view text, Channels& channels); // false: it is none of them, and nothing is changed
inline constexpr const char* limitForms = "shared, one, 0 or a number of messages";

} // namespace stagewright
