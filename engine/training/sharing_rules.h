// Whether lists and sharding go together: what is sharded is gathered and reduced where it must be.
#pragma once

#include "engine/training/execution_plan.h"
#include "engine/training/training.h"

namespace stagewright {

// Usage, naming replica and stage: cuts for another number of replicas, of layers that are not there, or that the lists
// do not keep to; of state that is not shared, or whose gradients are sharded.
Result<void> checkCuts(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                       std::span<const StageSlice> slices);

// Usage, naming rank and stage: a sharding of lists that share nothing; shares for another number of ranks; sharded
// weights that are not gathered; stepped pieces that the other ranks never see; reductions by microbatch of gradients
// that stay whole.
Result<void> checkSharing(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options);

// Usage, where K-FAC can't step: a device without LAPACK, stages whose factors would be of several ranks, steps without
// a barrier, checkpoints.
Result<void> checkFactors(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                          const Capabilities& device);

} // namespace stagewright
