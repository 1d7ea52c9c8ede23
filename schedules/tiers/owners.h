// Which member of a group owns a layer: steps it, or inverts its factors (DP-KFAC, arXiv 2206.15143).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct Owners {
    std::vector<int> owner;    // by layer
    std::int64_t makespan = 0; // what the member with most has
};
Owners ownersRoundRobin(std::span<const std::int64_t> cost, int members);
// Each layer to the member with least so far; of equals the first. In the layers' order, or the longest first (Graham
// 1969: within 4/3 − 1/(3 members) of the optimum).
Owners ownersInOrder(std::span<const std::int64_t> cost, int members);
Owners ownersLongestFirst(std::span<const std::int64_t> cost, int members);

std::int64_t contiguousOwnersOptimum(std::span<const std::int64_t> cost, int members); // neighbours stay together
std::int64_t ownersBound(std::span<const std::int64_t> cost, int members);             // no owners have less
// The least makespan, by branch and bound; nullopt beyond so many nodes.
std::optional<std::int64_t> ownersOptimum(std::span<const std::int64_t> cost, int members,
                                          std::int64_t nodes = 2'000'000);

// What K-FAC sends of layers (inputs, outputs): packed symmetric factors, and preconditioned gradients from their
// owners.
struct FactorVolumes {
    std::int64_t packed = 0, gradients = 0, whole = 0; // elements; whole: factors and their inverses
};
FactorVolumes factorVolumes(std::span<const std::pair<std::int64_t, std::int64_t>> layers);

} // namespace stagewright
