// Schedules to timelines and back.
#pragma once

#include <memory>

#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

// The picture of a simulation: compute spans, transfer spans (lane Send of the producer's rank, kind SendF / SendB,
// from its start to the arrival) where a link costs time, Data edges, memory events (activations at op ends, per
// stage and microbatch). Of a lowered schedule its sends and receives, as timeline/message_view.h says. Provenance
// Simulated, clock "model".
// channels: those of the simulation.
// SpansOnly: only the compute spans, about five times as fast; enough for a picture that changes under the pointer.
enum class TimelineParts {
    All,
    SpansOnly,
};
Result<std::shared_ptr<const Timeline>> timelineOf(const Schedule& schedule, const SimResult& result,
                                                   const CostModel& costs, TimelineParts parts = TimelineParts::All,
                                                   const Channels& channels = {});

// simulate() and timelineOf() in one.
Result<std::shared_ptr<const Timeline>> simulatedTimeline(const Schedule& schedule, const CostModel& costs,
                                                          const Channels& channels = {});

// The schedule that a step realised: compute spans by start on each rank, kinds F, B, I, W, R and fillers, and
// optimizer and reduction where the timeline's schedule has such ops; discarded spans left out; placement from where
// the ops ran; weight rule and slice lengths from the timeline's schedule. Law: scheduleOf(simulatedTimeline(S, C), 0)
// == S, of a lowered S its compute-only order, withoutCommunication(S). Collectives beside compute: as the
// timeline's schedule issues them, where all else is in its order.
Result<Schedule> scheduleOf(const Timeline& timeline, int step);

} // namespace stagewright
