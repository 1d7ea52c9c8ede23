#include "schedules/model/layer_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

using Part = LayerCosts::Part;

constexpr auto forward = static_cast<std::size_t>(OpKind::Forward);
constexpr auto backward = static_cast<std::size_t>(OpKind::Backward);
constexpr auto inputGrad = static_cast<std::size_t>(OpKind::InputGrad);
constexpr auto weightGrad = static_cast<std::size_t>(OpKind::WeightGrad);
constexpr auto recompute = static_cast<std::size_t>(OpKind::Recompute);

Nanos ofKind(const LayerCosts& part, std::size_t kind)
{
    if (part.duration[kind] > 0) return part.duration[kind];
    if (kind == backward) return part.duration[inputGrad] + part.duration[weightGrad];
    return kind == recompute ? part.duration[forward] : 0;
}

// The parts of each stage, without PerOp.
std::vector<std::vector<const LayerCosts*>> partsByStage(const std::vector<LayerCosts>& layers,
                                                         std::span<const int> blocksByStage)
{
    std::vector<std::vector<const LayerCosts*>> out(blocksByStage.size());
    std::size_t stage = 0;
    int left = blocksByStage.empty() ? 0 : blocksByStage[0];
    for (const LayerCosts& part : layers) {
        if (part.part == Part::Embedding) out.front().push_back(&part);
        if (part.part == Part::Head) out.back().push_back(&part);
        if (part.part != Part::Block) continue;
        while (left == 0 && stage + 1 < blocksByStage.size()) left = blocksByStage[++stage];
        out[stage].push_back(&part);
        --left;
    }
    return out;
}

void addMemory(const StageMemory& part, StageMemory& to)
{
    to.activation += part.activation;
    to.freedAtInput += part.freedAtInput;
    to.workspace = std::max(to.workspace, part.workspace);
    to.boundary = std::max(to.boundary, part.boundary);
    to.weight += part.weight;
    to.gradient += part.gradient;
    to.optimizer += part.optimizer;
}

} // namespace

PassTimes passTimesOf(const LayerCosts& part)
{
    PassTimes out{part.duration[forward], part.duration[inputGrad], part.duration[weightGrad], false};
    if (out.input > 0 || out.weight > 0 || part.duration[backward] <= 0) return out;
    out.input = part.duration[backward] / 2;
    out.weight = part.duration[backward] - out.input;
    out.halved = true;
    return out;
}

PassTimes passTimesOf(const CostModel& costs, int stage)
{
    LayerCosts whole;
    for (const std::size_t kind : {forward, backward, inputGrad, weightGrad})
        whole.duration[kind] = costs.duration(static_cast<OpKind>(kind), stage, -1);
    return passTimesOf(whole);
}

int blocksOf(const std::vector<LayerCosts>& layers)
{
    return static_cast<int>(
        std::count_if(layers.begin(), layers.end(), [](const LayerCosts& part) { return part.part == Part::Block; }));
}

void setLayers(CostModel& costs, std::vector<LayerCosts> parts, std::span<const int> blocksByStage)
{
    costs.layers.clear();
    if (parts.empty() || static_cast<int>(blocksByStage.size()) != costs.stages()) return;
    if (std::accumulate(blocksByStage.begin(), blocksByStage.end(), 0) != blocksOf(parts)) return;
    if (std::any_of(parts.begin(), parts.end(), [](const LayerCosts& part) { return part.duration[forward] <= 0; }))
        return;
    LayerCosts perOp;
    perOp.part = Part::PerOp;
    const auto stages = partsByStage(parts, blocksByStage);
    for (std::size_t k = 0; k < allKinds().size(); ++k) {
        if (!isCompute(static_cast<OpKind>(k))) continue;
        std::vector<Nanos> rest;
        for (std::size_t stage = 0; stage < stages.size(); ++stage) {
            const Nanos whole = costs.duration(static_cast<OpKind>(k), static_cast<int>(stage), -1);
            if (whole <= 0) continue;
            Nanos sum = 0;
            for (const LayerCosts* part : stages[stage]) sum += ofKind(*part, k);
            if (sum > 0) rest.push_back(whole - sum);
        }
        perOp.duration[k] = std::max<Nanos>(0, lowerMedian(std::move(rest)));
    }
    costs.layers.push_back(perOp);
    costs.layers.insert(costs.layers.end(), parts.begin(), parts.end());
}

std::vector<int> balancedBlocks(const std::vector<LayerCosts>& layers, int stages)
{
    const int blocks = blocksOf(layers);
    if (stages < 1 || blocks < stages - 2 || (stages == 1 && blocks < 1)) return {};
    std::vector<Nanos> before{0}; // of the first blocks, together
    Nanos embedding = 0;
    Nanos head = 0;
    for (const LayerCosts& part : layers) {
        const Nanos time = ofKind(part, forward) + ofKind(part, backward);
        if (part.part == Part::Embedding) embedding += time;
        if (part.part == Part::Head) head += time;
        if (part.part == Part::Block) before.push_back(before.back() + time);
    }
    constexpr Nanos never = std::numeric_limits<Nanos>::max();
    const auto n = static_cast<std::size_t>(blocks);
    // the longest of the first stages with so many blocks
    std::vector<std::vector<Nanos>> best(static_cast<std::size_t>(stages), std::vector<Nanos>(n + 1, never));
    std::vector<std::vector<std::size_t>> from(best.size(), std::vector<std::size_t>(n + 1, 0));
    for (std::size_t stage = 0; stage < best.size(); ++stage) {
        const bool first = stage == 0;
        const bool last = stage + 1 == best.size();
        for (std::size_t end = 0; end <= n; ++end)
            for (std::size_t begin = 0; begin <= end; ++begin) {
                if ((first && begin != 0) || (begin == end && !first && !last)) continue;
                const Nanos others = first ? 0 : best[stage - 1][begin];
                if (others == never) continue;
                const Nanos longest =
                    std::max(others, before[end] - before[begin] + (first ? embedding : 0) + (last ? head : 0));
                if (longest >= best[stage][end]) continue;
                best[stage][end] = longest;
                from[stage][end] = begin;
            }
    }
    if (best.back()[n] == never) return {};
    std::vector<int> out(best.size());
    std::size_t end = n;
    for (std::size_t stage = best.size(); stage-- > 0; end = from[stage][end])
        out[stage] = static_cast<int>(end - from[stage][end]);
    return out;
}

Result<CostModel> costsByLayer(const CostModel& measured, const Schedule& schedule, std::span<const int> blocksByStage)
{
    const int blocks = blocksOf(measured.layers);
    if (measured.layers.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("the costs of {} stages have no costs by layer for {} stages", measured.stages(),
                                schedule.stages),
                    "record the run again: a recording measures them");
    std::vector<int> counts(blocksByStage.begin(), blocksByStage.end());
    if (counts.empty()) counts = balancedBlocks(measured.layers, schedule.stages);
    if (static_cast<int>(counts.size()) != schedule.stages ||
        std::accumulate(counts.begin(), counts.end(), 0) != blocks)
        return fail(ErrorCode::Usage,
                    fmt::format("{} layers for {} stages, given {}", blocks, schedule.stages,
                                counts.empty() ? "none" : fmt::format("{}", fmt::join(counts, ","))),
                    "give one number per stage; their sum must be the layers of the model");
    CostModel out(schedule.stages, measured.source);
    out.origin = fmt::format("{}, by layer for {} stages of {} layers", measured.origin, schedule.stages,
                             fmt::join(counts, ","));
    out.timeUnit = measured.timeUnit;
    out.memoryUnit = measured.memoryUnit;
    out.links = measured.links;
    std::erase_if(out.links.overrides,
                  [&](const auto& link) { return std::max(link.first.first, link.first.second) >= schedule.ranks; });
    out.launch = measured.launch;
    if (!out.launch.empty() && static_cast<int>(out.launch.size()) != schedule.ranks)
        out.launch.assign(static_cast<std::size_t>(schedule.ranks), lowerMedian(measured.launch));
    out.jitter = measured.jitter;
    out.jitterSeed = measured.jitterSeed;
    out.sliceStarts = sliceStartsOf(schedule);
    out.layers = measured.layers;

    const auto stages = partsByStage(measured.layers, counts);
    const LayerCosts none;
    const LayerCosts& perOp = measured.layers.front().part == Part::PerOp ? measured.layers.front() : none;
    Bytes weights = 0;
    std::array<Nanos, opKindRoom> together{}; // of ops of a stage, over all of them
    for (int stage = 0; stage < measured.stages(); ++stage) {
        weights += measured.memory[static_cast<std::size_t>(stage)].weight;
        for (std::size_t k = 0; k < allKinds().size(); ++k)
            together[k] += measured.duration(static_cast<OpKind>(k), stage, -1);
    }
    for (int stage = 0; stage < schedule.stages; ++stage) {
        StageMemory& memory = out.memory[static_cast<std::size_t>(stage)];
        const auto& parts = stages[static_cast<std::size_t>(stage)];
        for (const LayerCosts* part : parts) addMemory(part->memory, memory);
        for (std::size_t k = 0; k < allKinds().size(); ++k) {
            const auto kind = static_cast<OpKind>(k);
            if (!isCompute(kind)) {
                if (together[k] > 0 && weights > 0)
                    out.setDuration(kind, stage,
                                    std::llround(static_cast<double>(together[k]) * static_cast<double>(memory.weight) /
                                                 static_cast<double>(weights)));
                continue;
            }
            Nanos sum = 0;
            for (const LayerCosts* part : parts) sum += ofKind(*part, k);
            if (sum > 0)
                out.setDuration(kind, stage,
                                sum + (kind == OpKind::Recompute && perOp.duration[k] == 0 ? perOp.duration[forward]
                                                                                           : perOp.duration[k]));
        }
    }
    return out;
}

} // namespace stagewright
