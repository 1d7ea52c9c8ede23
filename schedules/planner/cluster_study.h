// COMET's question (Kadiyala et al. 2022, arXiv 2211.16648): how far to divide a transformer among the devices of a cluster
// whose computing, memory, expansion memory and networks may be any. Of each split into M-way model and D-way data
// parallelism (ZeRO 2, full recomputation, one sample a microbatch): the memory of a device, the step and what limits it.
//
// A layer takes max(operations ÷ (peak × efficiency), bytes ÷ bandwidth) four times a sample; where the footprint F is above
// the capacity C, expansion memory of bandwidth X holds the rest: bandwidth = F/(C/BW + (F − C)/X). An all-reduce over g
// devices of k hosts takes 2 (g − 1)/g × V/inside + 2 (k − 1)/k × V/(g × between); that of gradients 2 (D − 1)/D × V/between.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct ClusterStudy {
    double hidden = 0, layers = 0, heads = 0, sequence = 0;
    std::int64_t devices = 1, batch = 1, perHost = 1;
    double peak = 0, efficiency = 1;              // operations per second
    double capacity = 0, bandwidth = 0;           // bytes, per second
    double inside = 0, between = 0;               // of links in a host and of a device's network
    double expansion = 0, expansionBandwidth = 0; // bytes beyond the capacity; 0: none
    std::vector<std::int64_t> splits;             // M
    struct Prices {
        double device = 0, memory = 0, expansion = 0, network = 0; // of a device, a GB of each, a GB/s of its network
    } prices;                                                      // device 0: unknown
};
struct ClusterSplit {
    std::int64_t model = 1, data = 1;
    double bytes = 0;
    bool fits = false;
    double compute = 0, modelNetwork = 0, dataNetwork = 0; // seconds
    double step() const { return compute + modelNetwork + dataNetwork; }
    enum class Limit {
        Compute,
        Memory,
        Network,
    };
    Limit limit = Limit::Compute;
};
struct ClusterAnswer {
    std::vector<ClusterSplit> rows;
    std::optional<std::int64_t> best; // M of the fastest that fits
};
Result<ClusterAnswer> studyCluster(const ClusterStudy& study);

} // namespace stagewright
