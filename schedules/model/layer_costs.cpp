#include "schedules/model/layer_costs.h"

#include <algorithm>
#include <cmath>
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

// The first of [begin, end) for which it holds, as it does for those behind; end: none.
template <typename Holds>
static std::size_t firstOf(std::size_t begin, std::size_t end, const Holds& holds)
{
    while (begin < end) {
        const std::size_t middle = begin + (end - begin) / 2;
        holds(middle) ? end = middle : begin = middle + 1;
    }
    return begin;
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
    // The first stages with so many blocks: the longest of them, and where the last of them starts. Stages between the
    // first and the last have a block each, so that few ends are possible where there are nearly as many stages as
    // blocks.
    const auto n = static_cast<std::size_t>(blocks), last = static_cast<std::size_t>(stages) - 1;
    struct Ends {
        std::size_t least = 0;
        std::vector<Nanos> longest;
        std::vector<std::uint32_t> from;
        std::size_t most() const { return least + longest.size() - 1; }
    };
    std::vector<Ends> ends(last + 1);
    for (std::size_t stage = 0; stage <= last; ++stage) {
        Ends& own = ends[stage];
        own.least = stage == last ? n : stage;
        const std::size_t most = stage == last ? n : n - (last - 1 - stage);
        for (std::size_t end = own.least; end <= most; ++end) {
            const Nanos more = (stage == 0 ? embedding : 0) + (stage == last ? head : 0);
            std::size_t begin = 0;
            Nanos longest = before[end] + more;
            if (stage > 0) {
                // Where it starts later the others take longer and it less: the best is where they meet, of equal ones
                // the first.
                const Ends& others = ends[stage - 1];
                const auto takes = [&](std::size_t at) { return before[end] - before[at] + more; };
                const auto othersTake = [&](std::size_t at) { return others.longest[at - others.least]; };
                const std::size_t behind = std::min(others.most(), stage < last ? end - 1 : end) + 1;
                begin = firstOf(others.least, behind, [&](std::size_t at) { return othersTake(at) >= takes(at); });
                const std::size_t met = begin;
                if (met > others.least && (met == behind || takes(met - 1) <= othersTake(met)))
                    begin = firstOf(others.least, met, [&](std::size_t at) { return takes(at) <= takes(met - 1); });
                longest = std::max(othersTake(begin), takes(begin));
            }
            own.longest.push_back(longest);
            own.from.push_back(static_cast<std::uint32_t>(begin));
        }
    }
    std::vector<int> out(ends.size());
    std::size_t end = n;
    for (std::size_t stage = ends.size(); stage-- > 0;) {
        const std::size_t begin = ends[stage].from[end - ends[stage].least];
        out[stage] = static_cast<int>(end - begin);
        end = begin;
    }
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
