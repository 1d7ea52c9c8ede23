// What planners found, as a sentence and a plot of any size (schedules/base/plot.h): the machine's lanes and cells, what a
// part takes, and what limits it. Times and sizes are in the problem's own units. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "schedules/base/plot.h"
#include "schedules/planner/cluster_study.h"
#include "schedules/planner/inter_operator.h"
#include "schedules/planner/intra_operator.h"
#include "schedules/planner/job_packing.h"
#include "schedules/planner/layer_strategies.h"
#include "schedules/planner/mesh_resharding.h"
#include "schedules/planner/model_cuts.h"
#include "schedules/planner/uneven_devices.h"

namespace stagewright {

struct PlannerPicture {
    std::string sentence; // what it comes to
    Plot plot;            // empty, with a reason, where there is no plan
};

// Layers (across) and devices (up) of each stage, beside the best uniform stages.
PlannerPicture pictureOf(const InterOperatorProblem& problem, const std::optional<InterOperatorPlan>& plan);
// The strategies of each operator by cost, and those that were chosen.
PlannerPicture pictureOf(const IntraOperatorProblem& problem, const std::optional<IntraOperatorPlan>& plan);
// The best ways over tokens and inner size, the problem's own among them.
PlannerPicture pictureOf(const PerceptronProblem& problem, const PerceptronPlan& plan);
// Network lanes of the hosts that send and receive, and the strategies' times against the bound.
PlannerPicture pictureOf(const ReshardingProblem& problem, const ReshardingPlan& plan);
// Time and memory of each layer under its strategy.
PlannerPicture pictureOf(const LayerStrategyProblem& problem, const std::optional<LayerStrategyPlan>& plan);
// Items in their parts; legal cuts as lines.
PlannerPicture partitionPicture(std::span<const std::string> names, std::span<const std::int64_t> costs,
                                std::span<const int> cuts, const std::optional<Partition>& best);
// Layers kept and recomputed by stage, and their memory against the caps.
PlannerPicture pictureOf(const RecomputeProblem& problem, const RecomputePlan& plan);
// 1F1B with recomputation: passes by rank.
PlannerPicture pipelinePicture(std::int64_t ranks, std::int64_t microbatches, double forward, double recompute,
                               double backward);
// Computing and reducing of the segments, whole and in halves.
PlannerPicture subPipelinePicture(std::int64_t segments, double compute, double reduce, double loss);
// Samples, memory against the cap, and the time of each device.
PlannerPicture pictureOf(const UnevenProblem& problem, const UnevenAnswer& answer);
// Steps by split, and the best split over networks and memories; performance against price where prices are known.
PlannerPicture pictureOf(const ClusterStudy& study, const ClusterAnswer& answer);
// Jobs on the GPUs within a period; `full`: the same without partial backward.
PlannerPicture pictureOf(const PackingProblem& partial, const Packing& packing, const PackingProblem* full,
                         const Packing* fullPacking);

} // namespace stagewright
