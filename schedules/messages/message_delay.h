// How long a message between two stages takes.
#pragma once

#include <span>
#include <vector>

#include "schedules/messages/channels.h"
#include "schedules/messages/messages.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Bytes of the messages above each stage; where microbatches differ in size, microbatch after microbatch.
std::vector<Bytes> boundaryOf(const Schedule& schedule, const CostModel& costs);

// The message that `op` of `rank` takes from `stage` (of its own: no time), for copies, counts, slices and
// halves too. slices: how many equal ones a microbatch has, where the schedule gives no lengths.
Transit messageTransit(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                       int stage, int rank, int slices = 1);
Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int rank, int slices = 1);

// Whether messages of compute-only lists can wait for each other: links with a bandwidth, which they share, and bytes.
bool sharesBandwidth(const Links& links, std::span<const Bytes> boundary, const Channels& channels);

// The messages of a compute-only schedule in the order in which they take their links: by producer, those of one op in
// the order of what they carry. As lists with sends and receives have them (schedules/messages/lower.h).
std::vector<Message> messagesBySender(const Schedule& schedule, const OpIndex& index);

} // namespace stagewright
