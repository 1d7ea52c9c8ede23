// When each op of a schedule runs: what list execution returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

// A message of a lowered schedule, in time: send posted, receive posted, on the wire, arrived. Between what both sides
// posted and the start it waits for a free channel (head of line); produced but not yet posted, it is behind other
// messages in the sender's list. −1: that side is missing.
struct MessageTimes {
    std::uint32_t send = 0; // ops, numbered as start and end below
    std::uint32_t receive = 0;
    Nanos sendPosted = -1;
    Nanos receivePosted = -1;
    Nanos begin = -1;
    Nanos arrival = -1;
};

// Rank-major: the ops of rank 0 in order, then rank 1 … ; offsets[r] is the first of rank r, offsets[ranks] the total.
struct SimResult {
    std::vector<std::size_t> offsets;
    std::vector<Nanos> start;
    std::vector<Nanos> end;
    Nanos makespan = 0; // last end − 0
    Nanos span = 0;     // longest first-start-to-last-end of any one rank
    // By rank; empty after place(). Without copies it depends on the order alone.
    std::vector<Bytes> peakActivation;
    std::vector<Bytes> peakOnHost; // of activations that the rank's OFFLOADs have moved there; empty: it has none
    // UNSHARD and REDUCE_GRAD ran beside compute: their times overlap those of other ops of their rank
    bool collectivesBeside = false;
    // of a lowered schedule. Its sends and receives last while their rank waits at them
    std::vector<MessageTimes> messages;

    std::size_t indexOf(int rank, std::size_t position) const
    {
        return offsets[static_cast<std::size_t>(rank)] + position;
    }
};

// What happens where no rank can go on. Strict: an error. Relaxed, for orders under edit: the op at the head of the
// lowest rank that waits starts without what is missing; ops outside the schedule's shape need and make nothing;
// nothing fails.
enum class PlacePolicy {
    Strict,
    Relaxed,
};

} // namespace stagewright
