// Communication by link: waiting, transfer, and how much of the transfer either end computes. Covers messages with both
// ends recorded (message_view.h); in timelines without them a message lasts from the producer's end to the arrival,
// without waits. Computing time is that of a rank's kernels other than NCCL's, or of its ops if it has no kernels.
#pragma once

#include <optional>
#include <vector>

#include "traces/analysis/step_context.h"

namespace stagewright {

struct LinkOverlap {
    int from = 0; // ranks
    int to = 0;
    std::int64_t messages = 0;
    std::optional<Bytes> bytes; // sum over those whose size is known; nothing: of none
    Nanos sizedTransfer = 0;    // part of transfer that is theirs
    // sum over messages: posted by the sender until the receiver is there too and the channel is free; empty: only
    // arrivals are known
    std::optional<Nanos> sendWait;
    std::optional<Nanos> receiveWait; // posted by the receiver until the transfer starts; empty as above
    Nanos transfer = 0;               // from then until it has arrived
    // Part of transfer in which the sender, the receiver computes; empty: a CUDA graph that was traced as a whole runs
    // meanwhile, and what of it computes is unknown.
    std::optional<Nanos> coveredBySender = 0;
    std::optional<Nanos> coveredByReceiver = 0;
    std::optional<Nanos> exposed() const
    {
        return coveredByReceiver ? std::optional(transfer - *coveredByReceiver) : std::nullopt;
    }
};

// By (from, to); links without a message in the step are omitted, and all where the timeline says nothing of messages
// (whyNoArrivals()). O(messages and kernels of the step × log).
std::vector<LinkOverlap> analyseLinks(const StepContext& context);

} // namespace stagewright
