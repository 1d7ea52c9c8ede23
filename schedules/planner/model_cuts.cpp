#include "schedules/planner/model_cuts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr int carriedUsers = 5; // more than so many

} // namespace

std::vector<int> legalCuts(std::span<const GraphNode> nodes, int width)
{
    struct Output {
        int made = 0, lastUsed = -1, users = 0;
    };
    std::map<std::string, Output> outputs;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        for (const std::string& input : nodes[i].inputs)
            if (const auto found = outputs.find(input); found != outputs.end()) {
                found->second.lastUsed = static_cast<int>(i);
                ++found->second.users;
            }
        outputs[nodes[i].name] = {static_cast<int>(i), -1, 0};
    }
    std::vector<int> change(nodes.size() + 1, 0); // outputs that cross a cut after so many nodes
    for (const auto& [name, output] : outputs)
        if (output.lastUsed > output.made && output.users <= carriedUsers) {
            ++change[static_cast<std::size_t>(output.made) + 1];
            --change[static_cast<std::size_t>(output.lastUsed) + 1];
        }
    std::vector<int> cuts;
    int crossing = 0;
    for (std::size_t cut = 1; cut < nodes.size(); ++cut) {
        crossing += change[cut];
        if (crossing <= width) cuts.push_back(static_cast<int>(cut));
    }
    return cuts;
}

std::optional<Partition> divide(std::span<const std::int64_t> costs, int parts, std::span<const int> cuts)
{
    const int items = static_cast<int>(costs.size());
    std::vector<int> places{0}; // where a part may begin or end
    for (int i = 1; i < items; ++i)
        if (cuts.empty() || std::binary_search(cuts.begin(), cuts.end(), i)) places.push_back(i);
    places.push_back(items);
    const std::size_t n = places.size();
    if (parts < 1 || items == 0 || n - 1 < static_cast<std::size_t>(parts)) return std::nullopt;
    std::vector<std::int64_t> before(costs.size() + 1, 0);
    std::partial_sum(costs.begin(), costs.end(), before.begin() + 1);
    const auto sum = [&](std::size_t a, std::size_t b) {
        return before[static_cast<std::size_t>(places[b])] - before[static_cast<std::size_t>(places[a])];
    };
    constexpr auto never = std::numeric_limits<std::int64_t>::max();
    // least[k][i]: of what is behind place i in k parts
    std::vector<std::vector<std::int64_t>> least(static_cast<std::size_t>(parts) + 1,
                                                 std::vector<std::int64_t>(n, never));
    least[0][n - 1] = 0;
    for (std::size_t k = 1; k < least.size(); ++k)
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = i + 1; j < n; ++j)
                if (least[k - 1][j] != never) least[k][i] = std::min(least[k][i], std::max(sum(i, j), least[k - 1][j]));
    Partition out;
    out.largest = least.back()[0];
    std::vector<std::vector<std::int64_t>> ways(least.size(), std::vector<std::int64_t>(n, 0));
    ways[0][n - 1] = 1;
    for (std::size_t k = 1; k < ways.size(); ++k)
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = i + 1; j < n; ++j)
                if (sum(i, j) <= out.largest) ways[k][i] += ways[k - 1][j];
    out.ways = ways.back()[0];
    out.bounds = {0};
    for (std::size_t k = ways.size() - 1, i = 0; k > 0; --k)
        for (std::size_t j = i + 1; j < n; ++j)
            if (sum(i, j) <= out.largest && ways[k - 1][j] > 0) {
                out.bounds.push_back(places[j]);
                i = j;
                break;
            }
    return out;
}

Result<RecomputePlan> planRecomputation(const RecomputeProblem& problem)
{
    const std::size_t stages = problem.layers.size();
    if (stages == 0 || problem.fixed.size() != stages || problem.cap.size() != stages || problem.microbatches < 1)
        return fail(ErrorCode::Usage, "layers, static and cap have a number for each stage", "see docs/planners.md");
    for (const std::int64_t layers : problem.layers)
        if (layers < 0 || layers > 100'000)
            return fail(ErrorCode::Usage, fmt::format("a stage has 0 to 100000 layers, not {}", layers));
    // no sum below leaves 64 bits
    const double most = 1e18 / (100'000.0 * static_cast<double>(stages));
    for (const std::int64_t one : {problem.kept, problem.input, problem.forward, problem.backward})
        if (std::abs(static_cast<double>(one)) > most)
            return fail(ErrorCode::Usage, fmt::format("A, a, F and B are up to {:.3g} here, not {}", most, one),
                        "write them in a larger unit");
    for (std::size_t stage = 0; stage < stages; ++stage)
        for (const std::int64_t one : {problem.fixed[stage], problem.cap[stage]})
            if (std::abs(static_cast<double>(one)) > 1e18)
                return fail(ErrorCode::Usage, fmt::format("stage {}: memory is up to 10^18, not {}", stage, one),
                            "write it in a larger unit");
    RecomputePlan out;
    out.slowest = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        const std::int64_t layers = problem.layers[stage];
        const auto held = std::min<std::int64_t>(problem.microbatches, static_cast<std::int64_t>(stages - stage));
        std::optional<std::int64_t> kept;
        for (std::int64_t k = layers; k >= 0 && !kept; --k)
            if (problem.fixed[stage] + held * (k * problem.kept + (layers - k) * problem.input) +
                    (k < layers ? problem.kept : 0) <=
                problem.cap[stage])
                kept = k;
        const std::int64_t passes = layers * (problem.forward + problem.backward);
        out.all = std::max(out.all, passes + layers * problem.forward);
        if (!kept) out.slowest.reset();
        if (kept && out.slowest) out.slowest = std::max(*out.slowest, passes + (layers - *kept) * problem.forward);
        out.kept.push_back(kept);
    }
    return out;
}

SubPipeline subPipeline(std::int64_t segments, double compute, double reduce, double loss)
{
    SubPipeline out;
    out.unsplit = static_cast<double>(segments) * (compute + reduce);
    double computes = 0, reduces = 0; // when each is free
    double ready[2] = {0, 0};         // when a half's last reduction was there
    for (std::int64_t segment = 0; segment < segments; ++segment)
        for (double& half : ready) {
            computes = std::max(computes, half) + compute * loss / 2;
            reduces = std::max(reduces, computes) + reduce / 2;
            half = reduces;
        }
    out.split = std::max(computes, reduces);
    return out;
}

} // namespace stagewright
