// Dividing a model's layers, whole and in their order, among the stages of a pipeline: embedding, layers, multi-token
// prediction and loss, of whatever cost each. Methods side by side: as many layers each, parameters, the longest stage,
// the simulated step, which is searched together with the schedule of the library, and an order planned for it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/text/megatron.h"

namespace stagewright {

struct ModelLayer {
    enum class Kind {
        Embedding,
        Block,
        Prediction, // of multi-token prediction
        Loss,       // with the head
    };
    Kind kind = Kind::Block;
    Nanos forward = 0, input = 0, weight = 0; // of a microbatch
    Bytes weights = 0;
    Bytes activation = 0; // of a microbatch
    Bytes boundary = 0;   // what is sent on behind it
    Nanos time() const { return forward + input + weight; }
};

struct PartitionProblem {
    std::vector<ModelLayer> layers;
    int ranks = 4;
    int microbatches = 8;
    std::vector<int> chunks{1, 2, 3, 4}; // numbers of chunks that are tried
    Link link;
    ModelLayer perOp;   // what each pass of a stage takes beyond its layers
    Bytes cap = 0;      // of a rank's memory; 0: none
    double state = 9;   // weights, gradients and optimizer state ÷ weights: 2 + 4 + 12 bytes a parameter of 2
    std::string origin; // of the layers, in words
};
// {"layers": [{"kind": "block", "count": 1, "forward_ns", "input_grad_ns", "weight_grad_ns", "weight_bytes",
// "activation_bytes", "boundary_bytes"}], "latency_ns", "bytes_per_second"}; Unreadable names the layer.
Result<PartitionProblem> parseModelLayers(std::string_view text);
// Reads "gpt3-13b@a100", with ":b=1" samples a microbatch, ":t=1" devices that share a layer, ":mtp=1" layers of multi-token
// prediction, each a block and the head again. Usage as parseCluster.
Result<PartitionProblem> modelLayersOf(std::string_view text);

struct PartitionFound {
    std::string method;      // "even", "parameters", "longest stage", "step", "step and order"
    Schedule schedule;       // under which it is fastest, of those that were tried; named as the library does
    std::vector<int> bounds; // 0, the stages' ends
    Nanos longest = 0;       // stage, of one microbatch
    Nanos step = 0;          // simulated
    struct Held {
        Bytes state = 0, activations = 0; // at their peak
        Bytes sum() const { return state + activations; }
    };
    std::vector<Held> ranks;
    const Held& fullest() const;                       // rank
    Bytes over(const PartitionProblem& problem) const; // the cap, on the fullest rank; 0: it fits
    int chunks() const { return schedule.stages / schedule.ranks; }
};
struct PartitionAnswer {
    std::vector<PartitionFound> found; // even under (interleaved) 1F1B first, the best that fits last
    // No division into so many chunks, in loops or as the library's schedules place them, is shorter in any order of
    // synchronous passes.
    Nanos bound = 0;
    double gap() const; // of the best
    bool interrupted = false;
};
// At most 20 % of the seconds are for divisions under the library's schedules, 20 % for orders by list scheduling, 10 %
// for the bound, all counted in steps and so the same on every machine; 50 % are for planning orders of the best
// divisions, of one chunk or two. Where there is a cap, even and parameters and the longest stage take the fastest
// schedule that fits, the search takes divisions that fit or lack less, orders hold as few activations as fit, and the
// last found fits if any does. Usage: fewer layers than ranks.
Result<PartitionAnswer> planPartition(const PartitionProblem& problem, double seconds = 5,
                                      const Progress& progress = {});

CostModel partitionCosts(const PartitionProblem& problem, const std::vector<int>& bounds);
// As Megatron-LM's layout; Usage where it does not allow this.
Result<std::string> megatronText(const PartitionProblem& problem, const std::vector<int>& bounds, int ranks);

} // namespace stagewright
