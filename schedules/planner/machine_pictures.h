// What planners of machines found, likewise (pictures.h): parts on stages, unequal devices, clusters, jobs on shared
// GPUs.
#pragma once

#include <span>
#include <string>

#include "schedules/planner/cluster_study.h"
#include "schedules/planner/job_packing.h"
#include "schedules/planner/model_cuts.h"
#include "schedules/planner/pictures.h"
#include "schedules/planner/uneven_devices.h"

namespace stagewright {

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
