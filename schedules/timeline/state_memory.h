// What the ranks hold of weights, gradients and optimizer state over a simulated step, beside activations.
//   weights      the parts that the rank owns; all of them where they are not sharded
//   gathered     a stage's weights from the start of its UNSHARD until its RESHARD, or the end
//   gradients    the parts that the rank owns; where gradients are sharded also a stage's whole ones from the first op
//                that adds to them until they are reduced
//   buckets      from the start to the end of a REDUCE_GRAD: a bucket, or all of the stage's gradients
//   optimizer    the parts that the rank owns
#pragma once

#include "schedules/messages/sim_result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

// Events by rank and stage, of the costs' sharding and replicas. O(ops).
void addStateMemory(TimelineBuilder& builder, const Schedule& schedule, const SimResult& result,
                    const CostModel& costs);

} // namespace stagewright
