// Messages of a timeline whose schedule is lowered: what channel occupancy and the causes peer_wait and head_of_line
// are read from. Only timelines that have both sides of a message have them (Transfer edges); all others give nothing.
//
//   lane Send     of the sender     [begin, arrival]         the message on the wire: the channel's occupancy
//   lane Receive  of the receiver   [posted, arrival]        from when its buffer was offered; empty if it was late
//   lane Wait     of either         [reached, went on]       the rank itself waited at this send or receive
//                                                            (rendezvous)
//   edges         producer → send (Order, arrival: when the send was posted), send → receive (Transfer, arrival),
//                 receive → consumer (Transfer, arrival), producer → consumer (Data, arrival)
//
// As far as this message is concerned, the gap in front of a consumer consists of
//   until produced                                     dependency
//   produced … sendPosted                              head_of_line: it is behind other messages in its sender's list
//   sendPosted … receivePosted, where that is later    peer_wait (rendezvous: begin is never before receivePosted)
//   max(sendPosted, receivePosted) … begin             head_of_line: the channel is taken
//   begin … arrival                                    transfer
// A rank that waits at a send of its own (lane Wait, kind SEND) has peer_wait until the message's begin, or
// head_of_line while the channel is taken, then transfer. Under buffered sends begin may be before receivePosted and
// nobody waits for it.
#pragma once

#include <optional>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct MessageView {
    SpanId producer = noSpan;
    SpanId send = noSpan;    // on lane Send
    SpanId receive = noSpan; // on lane Receive
    SpanId consumer = noSpan;
    Nanos produced = 0; // the producer's end
    Nanos sendPosted = 0;
    Nanos receivePosted = 0;
    Nanos begin = 0;
    Nanos arrival = 0;
};

std::vector<MessageView> messagesInto(const Timeline& timeline, SpanId consumer);
// The message of a span on lane Send; none where the timeline does not have both sides.
std::optional<MessageView> messageOfSend(const Timeline& timeline, SpanId send);

// A span on lane Wait in which the rank waited at a send or receive: the message it waited at, if the timeline has it.
// O(spans of the rank's lane).
std::optional<MessageView> messageOfWait(const Timeline& timeline, SpanId wait);

} // namespace stagewright
