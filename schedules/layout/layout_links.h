// What a layout's messages take: between stages whose devices share layers differently the tensor is cut otherwise on
// both sides, and is resharded (schedules/planner/mesh_resharding.h) over the network cards of both sides' hosts. Pure.
#pragma once

#include <optional>
#include <vector>

#include "schedules/layout/layout.h"

namespace stagewright {

struct Resharding {
    int stage = 0;      // from this one to the next
    bool back = false;  // its gradient, from the next to this one
    int tasks = 0;      // cells that go to another host
    double seconds = 0; // of one microbatch, without latency
    double bound = 0;   // no order is faster
};
// The times of the boundaries between unequal stages; those between equal ones pass on what each device has. Stages
// over more than 16 hosts, or whose cells are more than 1024, are left out: their messages are counted as those of
// equal stages.
std::vector<Resharding> reshardings(const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                                    const StepConstants& constants);

// The links of ranks that have a device each, replicas of a rank side by side, as ways number them. Usage: the cluster
// has fewer devices.
Result<Links> clusterLinks(const Schedule& schedule, const Cluster& cluster, const StepConstants& constants);

// The links of the layout's ranks: network cards where ranks are on several hosts, and what is resharded.
Links layoutLinks(const Schedule& schedule, const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                  const StepConstants& constants);

} // namespace stagewright
