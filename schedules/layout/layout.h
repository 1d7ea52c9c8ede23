// A layout: for each stage of a pipeline its layers, its devices, how many of them share a layer, what each layer
// recomputes and what replicas share of its state. A way to divide is a layout of equal stages; others have unequal ones.
// Layouts are kept as JSON (docs/cli.md), and their layers as Megatron-LM's layout or TorchTitan's settings.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/layout/cluster.h"
#include "schedules/layout/parallelism.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/planner/inter_operator.h"

namespace stagewright {

struct LayoutStage {
    std::vector<KeptActivations> layers; // what each keeps
    std::vector<int> devices;            // their numbers in the cluster: tensor × the stage's replicas
    int tensor = 1;
    int zero = 1;
    bool sequence = false; // sequence parallelism
    int replicas() const { return static_cast<int>(devices.size()) / tensor; }
    bool operator==(const LayoutStage&) const = default;
};
struct Layout {
    int ranks = 1; // stage k is on rank k mod ranks, its chunk k ÷ ranks
    int microbatches = 1;
    int samples = 1; // of a microbatch, over all replicas
    std::vector<LayoutStage> stages;

    int chunks() const { return static_cast<int>(stages.size()) / ranks; }
    int layers() const;
    std::vector<int> layersByStage() const;
    bool operator==(const Layout&) const = default;
};

// The layout of a way whose stages are equal.
Layout layoutOf(const ModelPreset& model, const Parallelism& way);
// What a stage is to the formulas of a way.
Parallelism wayOf(const Layout& layout, int stage);

// A plan of Alpa: stages in a row on devices, of a host or of whole hosts. Layers of a stage are shared by the devices
// of a host, as far as 8, and replicated over the others. Usage: 8 or fewer of a host's do not divide them evenly.
Result<Layout> layoutOfPlan(const InterOperatorProblem& problem, const InterOperatorPlan& plan);
struct SolvedLayout {
    Layout layout;
    std::string choose; // what times it, of a file of this layout: "stagewright choose --layout FILE --model …"
};
// The best plan of a problem of alpa_inter, as JSON. None: no plan fits.
Result<std::optional<SolvedLayout>> layoutOfProblem(std::string_view text, const std::string& file,
                                                    const Progress& progress);

std::string toJson(const Layout& layout);
// Unreadable names the stage. The stages' devices are there and in no other rank, their replicas divide the samples.
Result<Layout> parseLayout(std::string_view text);
// Usage: layers that are not the model's, devices that the cluster does not have, a tensor degree that does not divide
// the model's heads.
Result<void> checkLayout(const Layout& layout, const ModelPreset& model, const Cluster& cluster);
// The layout with other layers by stage; their recomputation is that of the stage's first layer.
Layout withLayers(Layout layout, const std::vector<int>& layers);

// How TorchTitan divides layers: pipeline_parallel_layers_per_stage and what the first and the last stage have less.
struct TitanStages {
    int layersPerStage = 0;
    int firstLess = 1, lastLess = 1;
    bool operator==(const TitanStages&) const = default;
};
// Layers by stage; empty: TorchTitan refuses it.
std::vector<int> titanLayers(int layers, const TitanStages& stages);
// None: these are not divided so. They need its module_fqns_per_model_part.
std::optional<TitanStages> titanStages(const std::vector<int>& layers);

// The costs of the layout's stages for the simulator: what a device does and waits for within a pass, all-reduces of
// layers included; gradients and optimizers are not in it. Precondition: the schedule has the layout's stages.
CostModel layoutCosts(const Schedule& schedule, const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                      const StepConstants& constants = {});

struct LayoutRank {
    double state = 0;       // bytes of a device
    double activations = 0; // at the schedule's peak
};
struct LayoutStep {
    std::string schedule;
    double seconds = 0;               // simulated, with gradients and optimizer
    double pipeline = 0;              // of it, the simulated passes and messages
    double reduce = 0, optimizer = 0; // of the slowest rank
    std::vector<LayoutRank> ranks;
    bool fits = false; // in the cluster's memory
};
// Under one schedule; Usage: it can't have these stages.
Result<LayoutStep> stepUnder(std::string_view schedule, const Layout& layout, const ModelPreset& model,
                             const Cluster& cluster, const StepConstants& constants = {});
// Under the library's schedule with which the step is shortest and fits, else of those that do not fit; none: no
// schedule has these stages, or it was stopped.
std::optional<LayoutStep> bestStep(const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                                   const StepConstants& constants = {}, const std::stop_token& stop = {});

} // namespace stagewright
