// A recorded step as a timeline.
#pragma once

#include "profiler/record/step_record.h"

namespace stagewright {

// Compute lane: list, norm, optimizer; gathers and reductions of shared state on lanes of their own: from their op to
// the last piece, and the copies labelled apart where they came later; Order edges to the op that needed them. Send
// lane: from the producer's end until available; Receive: copying; Wait: blocked. Data edges with arrivals, memory
// events, CPU time, the schedule. Device work: its name as label, Launch edges from the op it belongs to, collectives
// on a track of their own.
Result<std::shared_ptr<const Timeline>> timelineOf(const StepRecord& record);

} // namespace stagewright
