#include "schedules/tiers/owners.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace stagewright {

namespace {

Owners leastLoadedFirst(std::span<const std::int64_t> cost, int members, std::span<const std::size_t> order)
{
    Owners out{std::vector<int>(cost.size()), 0};
    std::vector<std::int64_t> load(static_cast<std::size_t>(members));
    for (const std::size_t layer : order) {
        const auto least = std::min_element(load.begin(), load.end());
        *least += cost[layer];
        out.owner[layer] = static_cast<int>(least - load.begin());
        out.makespan = std::max(out.makespan, *least);
    }
    return out;
}

std::vector<std::size_t> longestFirst(std::span<const std::int64_t> cost)
{
    std::vector<std::size_t> order(cost.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost[a] > cost[b]; });
    return order;
}

} // namespace

Owners ownersRoundRobin(std::span<const std::int64_t> cost, int members)
{
    Owners out{std::vector<int>(cost.size()), 0};
    std::vector<std::int64_t> load(static_cast<std::size_t>(members));
    for (std::size_t layer = 0; layer < cost.size(); ++layer) {
        const std::size_t member = layer % load.size();
        out.owner[layer] = static_cast<int>(member);
        out.makespan = std::max(out.makespan, load[member] += cost[layer]);
    }
    return out;
}

Owners ownersInOrder(std::span<const std::int64_t> cost, int members)
{
    std::vector<std::size_t> order(cost.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return leastLoadedFirst(cost, members, order);
}

Owners ownersLongestFirst(std::span<const std::int64_t> cost, int members)
{
    return leastLoadedFirst(cost, members, longestFirst(cost));
}

std::int64_t ownersBound(std::span<const std::int64_t> cost, int members)
{
    const std::int64_t sum = std::accumulate(cost.begin(), cost.end(), std::int64_t{0});
    const std::int64_t most = cost.empty() ? 0 : *std::max_element(cost.begin(), cost.end());
    return std::max((sum + members - 1) / members, most);
}

std::int64_t contiguousOwnersOptimum(std::span<const std::int64_t> cost, int members)
{
    std::int64_t low = ownersBound(cost, members), high = std::accumulate(cost.begin(), cost.end(), std::int64_t{0});
    const auto fits = [&](std::int64_t most) {
        int used = 1;
        std::int64_t load = 0;
        for (const std::int64_t one : cost) {
            if (load + one > most) {
                ++used;
                load = 0;
            }
            load += one;
        }
        return used <= members;
    };
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        fits(middle) ? high = middle : low = middle + 1;
    }
    return low;
}

std::optional<std::int64_t> ownersOptimum(std::span<const std::int64_t> cost, int members, std::int64_t nodes)
{
    const auto order = longestFirst(cost);
    std::int64_t best = std::min(ownersLongestFirst(cost, members).makespan, contiguousOwnersOptimum(cost, members));
    const std::int64_t bound = ownersBound(cost, members);
    std::vector<std::int64_t> load(static_cast<std::size_t>(members));
    const std::function<bool(std::size_t)> place = [&](std::size_t index) {
        if (best == bound) return true;
        if (--nodes < 0) return false;
        if (index == order.size()) {
            best = std::min(best, *std::max_element(load.begin(), load.end()));
            return true;
        }
        for (std::size_t member = 0; member < load.size(); ++member) {
            // Members with equal loads are the same.
            if (std::find(load.begin(), load.begin() + static_cast<std::ptrdiff_t>(member), load[member]) !=
                load.begin() + static_cast<std::ptrdiff_t>(member))
                continue;
            if (load[member] + cost[order[index]] >= best) continue;
            load[member] += cost[order[index]];
            const bool whole = place(index + 1);
            load[member] -= cost[order[index]];
            if (!whole) return false;
        }
        return true;
    };
    if (!place(0)) return std::nullopt;
    return best;
}

FactorVolumes factorVolumes(std::span<const std::pair<std::int64_t, std::int64_t>> layers)
{
    FactorVolumes out;
    for (const auto& [in, outputs] : layers) {
        out.packed += in * (in + 1) / 2 + outputs * (outputs + 1) / 2;
        out.gradients += in * outputs;
        out.whole += 2 * (in * in + outputs * outputs);
    }
    return out;
}

} // namespace stagewright
