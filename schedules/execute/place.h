// The one list execution that simulator, virtual clock and what-if share: each rank runs its list in order, each op
// starts as early as its rank, its inputs and the links allow (specs: "list execution").
#pragma once

#include <span>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/sim_result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// durations: rank-major, one per op. boundary: message bytes by stage, as boundaryOf() has them (may be empty: 0).
// O(ops). Fails with ErrorCode::Invalid and the wait cycle in the message where the order deadlocks.
// A paired op (Schedule::paired) is one interval of the sum of both, inputs of both needed at its start.
// channels (schedules/messages/channels.h): a compute-only schedule is taken to send at each op's end and to receive
// whenever a message comes, so that only their `apart` concerns it. REDUCE_GRAD of a stage with copies starts on all
// their ranks when the last has come to it. Where links.collectives is not Compute, UNSHARD and REDUCE_GRAD run beside
// compute, one after the other on a rank, as those of all ranks of the stage do: start and end are then those of the
// collective, which may be behind ops that its list has later. Ops that need the weights wait for the gather, OPT for
// the reduction, and RESHARD takes no time.
Result<SimResult> place(const Schedule& schedule, std::span<const Nanos> durations, const Links& links,
                        std::span<const Bytes> boundary = {}, const Channels& channels = {},
                        PlacePolicy policy = PlacePolicy::Strict);

} // namespace stagewright
