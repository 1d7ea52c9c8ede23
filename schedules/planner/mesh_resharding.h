// Resharding of a tensor from one mesh of devices to another (Zhuang et al. 2023, arXiv 2211.05322): both layouts cut the
// tensor into unit tasks, each a cell with the hosts that can send it and the hosts whose devices need it. A host has one
// network card, which sends and receives at once; copies within a host are free; a broadcast along a chain of hosts in many
// chunks takes as long as one copy. Times are in elements that one card sends.
//
// Exact by branch and bound within a limit of nodes, and where all tasks are equal and have one receiving host, as the
// colouring of a bipartite graph's edges; else the best of many orders that was found, with the bound.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct DeviceMesh {
    int hosts = 1;
    int perHost = 1;
};
struct ReshardingProblem {
    std::vector<std::int64_t> shape;
    DeviceMesh from, to;
    // By dimension the axes of the mesh that cut it, 0 hosts and 1 devices of a host, outer first; empty: it is whole.
    std::vector<std::vector<int>> fromLayout, toLayout;
};

struct UnitTask {
    std::vector<std::int64_t> first, size; // of the cell, by dimension
    std::int64_t elements = 0;
    std::vector<int> senders;   // hosts of `from` that have it
    std::vector<int> receivers; // hosts of `to` that need it
    std::vector<int> devices;   // of each receiver, how many devices need it
};
struct PlacedTask {
    int task = 0;
    int sender = 0;
    std::int64_t start = 0, end = 0;
};
struct Fraction {
    std::int64_t numerator = 0, denominator = 1;
};
struct ReshardingPlan {
    std::int64_t elements = 0; // of the tensor
    std::vector<UnitTask> tasks;
    Fraction sendReceive;           // a copy for each device, the work shared among senders as well as it can be
    Fraction oneCopy;               // one for each host
    Fraction bound;                 // no order of broadcasts is faster
    std::int64_t balanced = 0;      // broadcasts in the tasks' order, each from the host that has sent least
    std::int64_t best = 0;          // broadcasts in the best order that was found
    bool proven = false;            // there is no better one
    std::vector<PlacedTask> placed; // of `best`, by start
};
// Usage: layouts that do not fit the shape or the mesh, more than 16 hosts or 1024 tasks. Cancelled by the progress.
Result<ReshardingPlan> planResharding(const ReshardingProblem& problem, const Progress& progress = {});
// The plan of tasks that are known, each with a sender and a receiver, between so many hosts, at most 16 each;
// `elements` is left out.
Result<ReshardingPlan> planTasks(std::vector<UnitTask> tasks, int fromHosts, int toHosts,
                                 const Progress& progress = {});

} // namespace stagewright
