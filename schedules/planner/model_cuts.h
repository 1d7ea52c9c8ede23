// Merak's planners (Lai et al. 2023, arXiv 2206.04959): where a model's graph may be cut into stages, the best division of
// what is between cuts, how many layers of each stage need not be recomputed, and tensor parallelism in two halves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct GraphNode {
    std::string name; // of its output
    std::int64_t cost = 0;
    std::vector<std::string> inputs; // names of outputs before it; others come from outside
};

// A cut is legal after so many nodes if those behind it need at most `width` outputs of those before it. Outputs with more
// than five users are carried along and do not count. Ascending; never at an end.
std::vector<int> legalCuts(std::span<const GraphNode> nodes, int width = 1);

struct Partition {
    std::int64_t largest = 0; // sum of a part: the least that is possible
    std::int64_t ways = 0;    // to have it
    std::vector<int> bounds;  // the first of them: 0, the parts' ends
};
// Contiguous parts, none empty, cut only there (empty `cuts`: anywhere). None: there are fewer places than cuts.
std::optional<Partition> divide(std::span<const std::int64_t> costs, int parts, std::span<const int> cuts = {});

struct RecomputeProblem {
    int microbatches = 1;
    std::vector<std::int64_t> layers, fixed, cap; // by stage: layers, memory of weights and state, cap
    std::int64_t kept = 0, input = 0;             // of a layer and microbatch: everything, its input only
    std::int64_t forward = 0, backward = 0;       // of a layer
};
struct RecomputePlan {
    std::vector<std::optional<std::int64_t>> kept; // layers by stage; none: not even recomputing all of them fits
    std::optional<std::int64_t> slowest;           // stage; none: one does not fit
    std::int64_t all = 0;                          // the slowest where everything is recomputed
};
// Stage i holds min(m, p − i) microbatches, and one layer's activations more while it recomputes.
Result<RecomputePlan> planRecomputation(const RecomputeProblem& problem);

// n segments that compute and then all-reduce: one after the other, and in two halves of the batch, of which one computes,
// `loss` times as long, while the other one's half is reduced.
struct SubPipeline {
    double unsplit = 0;
    double split = 0;
};
SubPipeline subPipeline(std::int64_t segments, double compute, double reduce, double loss);

} // namespace stagewright
