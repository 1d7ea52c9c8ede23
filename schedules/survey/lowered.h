// A compute-only schedule lowered to sends and receives by a rule, timed under one way of sending messages, and how its
// channels are used. Pure; any thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct LoweredRequest {
    std::shared_ptr<const Schedule> schedule; // compute-only
    CostModel costs;
    Lowering lowering;
    Channels channels;
    double latency = -1; // of every link, in forwards of a rank (forwardUnit()); < 0: from the costs
};

// Messages from one rank to another.
struct ChannelUse {
    int from = 0;
    int to = 0;
    int messages = 0;
    Nanos busy = 0;   // in transfer; parallel messages count separately
    Nanos queued = 0; // both sides were posted but the channel was busy
    // sent and not yet posted at the receiver (rendezvous), or behind other messages in the sender's list
    Nanos unposted = 0;
};

struct LoweredFigures {
    std::optional<Error> fault;
    bool hangs = false;                       // the lists hang with this lowering
    std::shared_ptr<const Schedule> lowered;  // null if the rule fails
    std::shared_ptr<const Timeline> timeline; // null on a fault
    std::size_t sends = 0;
    Nanos makespan = 0;
    Nanos makespanBefore = 0;         // of the compute-only schedule with the same costs
    std::vector<ChannelUse> channels; // by from, to
};

LoweredFigures loweredFigures(const LoweredRequest& request);

} // namespace stagewright
