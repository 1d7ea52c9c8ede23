// What planners of models found, as a sentence and a plot of any size (schedules/base/plot.h): the machine's lanes and
// cells, what a part takes, and what limits it. Times and sizes are in the problem's own units. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "schedules/base/plot.h"
#include "schedules/planner/inter_operator.h"
#include "schedules/planner/intra_operator.h"
#include "schedules/planner/layer_strategies.h"
#include "schedules/planner/mesh_resharding.h"

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
} // namespace stagewright
