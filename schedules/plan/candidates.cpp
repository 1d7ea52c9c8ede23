#include "schedules/plan/candidates.h"

#include <algorithm>

#include "schedules/execute/simulate.h"
#include "schedules/heuristic/block_schedule.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/heuristic/improve.h"
#include "schedules/heuristic/zero_bubble.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/plan/block_family.h"

namespace stagewright::planning {

namespace {

Found timed(WordRunner& runner, const Words& words)
{
    const Timing& timing = runner.time(words);
    if (!timing.feasible) return {};
    return {words, timing.objective, timing.makespan};
}

Found filled(WordRunner& runner, const Words& words, const FillRule& rule)
{
    const Timing& timing = runner.fill(words, rule);
    if (!timing.feasible) return {};
    return {runner.filled(), timing.objective, timing.makespan};
}

Words oneByOne(const Pipeline& pipeline)
{
    Words out(static_cast<std::size_t>(pipeline.ranks));
    for (int r = 0; r < pipeline.ranks; ++r)
        for (int j = 0; j < pipeline.microbatches; ++j) {
            Word& word = out[static_cast<std::size_t>(r)];
            for (int c = 0; c < pipeline.chunks; ++c) word.push_back(letterOf(PassKind::Forward, c));
            for (int c = pipeline.chunks - 1; c >= 0; --c) {
                if (pipeline.usesFull(pipeline.stageOf(r, c))) {
                    word.push_back(letterOf(PassKind::Backward, c));
                    continue;
                }
                word.push_back(letterOf(PassKind::InputGrad, c));
                word.push_back(letterOf(PassKind::WeightGrad, c));
            }
        }
    return out;
}

// The block repeated as it is; none where it makes no schedule of the pipeline.
std::optional<Words> wordsOfBlock(const Pipeline& pipeline, const Block& block)
{
    BlockOptions raw;
    raw.reorder = false;
    const auto schedule = scheduleOf(block, pipeline.microbatches, raw);
    return schedule ? wordsOf(pipeline, *schedule) : std::nullopt;
}

// One interval of even blocks between V-Min and V-ZB: hops (k, −1, k, −1); empty where passes meet.
void blockOrders(const Pipeline& pipeline, WordRunner& runner, std::vector<Guess>& out)
{
    const int p = pipeline.ranks;
    if (p * pipeline.microbatches > 20'000) return;
    for (const Block& block : {vMinBlock(p), vHalfBlock(p), vHalfBlock(p, SpareSlot::FirstTurn), vZbBlock(p)}) {
        const auto words = wordsOfBlock(pipeline, block);
        if (!words) continue;
        out.push_back({timed(runner, *words), "building block"});
        const Words core = withoutWeightGrads(*words);
        for (const FillRule rule : {FillRule{2, false}, FillRule{0, true}}) {
            out.push_back({filled(runner, core, rule), "building block, weight gradients filled in"});
            out.push_back({greedyFrom(pipeline, core, rule), "building block, reordered"});
        }
    }
}

bool plainKinds(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            const bool known = op.kind == OpKind::Forward || isReturn(op.kind) || op.kind == OpKind::WeightGrad;
            if (!known || op.count != 1 || op.half != 0 || op.slice >= 0) return false;
        }
    return true;
}

Placement placementOf(const PlanRequest& request)
{
    return request.chunks == 1 ? Placement::loop(request.ranks, request.ranks) : Placement::vShape(request.ranks);
}

// One of the orders among which a plan is the best.
bool plannable(const PlanRequest& request, const Schedule& schedule)
{
    return schedule.stages == request.ranks * request.chunks && schedule.placement == placementOf(request) &&
           schedule.weights == WeightRule::Synchronous && plainKinds(schedule);
}

bool timeCandidate(const PlanRequest& request, Candidate& candidate)
{
    auto result = simulate(candidate.schedule, request.costs);
    if (!result) return false;
    candidate.makespan = result->makespan;
    candidate.span = result->span;
    candidate.objective = request.objective == Objective::Makespan ? result->makespan : result->span;
    candidate.peaks = std::move(result->peakActivation);
    return true;
}

GeneratorCosts meanCosts(const PlanRequest& request)
{
    GeneratorCosts out;
    double sums[3] = {};
    const OpKind kinds[] = {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad};
    for (int s = 0; s < request.costs.stages(); ++s)
        for (std::size_t k = 0; k < 3; ++k)
            sums[k] += static_cast<double>(
                request.costs.duration(kinds[k], s, s < request.ranks ? s : 2 * request.ranks - 1 - s));
    const double unit = sums[0] > 0 ? sums[0] : 1;
    out.inputGrad = sums[1] / unit;
    out.weightGrad = sums[2] / unit;
    out.latency = static_cast<double>(request.costs.links.all.latency) * request.ranks / unit;
    return out;
}

} // namespace

bool Candidate::keeps(const std::vector<Bytes>& caps) const
{
    for (std::size_t r = 0; r < peaks.size() && r < caps.size(); ++r)
        if (peaks[r] > caps[r]) return false;
    return true;
}

std::vector<Guess> firstOrders(const Pipeline& pipeline)
{
    WordRunner runner(pipeline);
    std::vector<Guess> out;
    out.push_back({timed(runner, oneByOne(pipeline)), "one microbatch after the other"});
    if (pipeline.chunks == 1) {
        out.push_back({zeroBubble(pipeline), "zero-bubble heuristic"});
        return out;
    }
    const bool anyFull = std::find(pipeline.full.begin(), pipeline.full.end(), 1) != pipeline.full.end();
    for (const FillRule fill : {FillRule{2, false}, FillRule{0, true}})
        for (const bool upperFirst : {true, false})
            for (const double patience : {0.0, 1.0})
                for (const bool full : {false, true})
                    if (!full || anyFull)
                        out.push_back({greedy(pipeline, {fill, true, false, false, patience, upperFirst, full}),
                                       "list scheduling in the V"});
    blockOrders(pipeline, runner, out);
    return out;
}

Found searchBlocks(const Pipeline& pipeline, const std::function<bool()>& stop)
{
    constexpr std::size_t mostBlocks = 400;
    Found best;
    if (pipeline.chunks != 2 || pipeline.ranks < 2 || pipeline.ranks * pipeline.microbatches > 4096) return best;
    Bytes least = Pipeline::unlimited; // what a chunk holds
    for (int s = 0; s < pipeline.stages(); ++s) least = std::min(least, pipeline.change(PassKind::Forward, s));
    const Bytes cap = *std::max_element(pipeline.cap.begin(), pipeline.cap.end());
    const auto most = static_cast<Bytes>(2 * pipeline.ranks + 2);
    const int chunks = static_cast<int>(least > 0 ? std::min(cap / least, most) : most);
    WordRunner runner(pipeline);
    for (const Block& block : blockFamily(pipeline.ranks, chunks, mostBlocks)) {
        if (stop && stop()) break;
        const auto words = wordsOfBlock(pipeline, block);
        if (!words) continue;
        const Words core = withoutWeightGrads(*words);
        for (const FillRule rule : {FillRule{2, false}, FillRule{0, true}}) {
            if (Found found = filled(runner, core, rule); found.betterThan(best)) best = std::move(found);
            if (Found found = greedyFrom(pipeline, core, rule); found.betterThan(best)) best = std::move(found);
        }
    }
    return best;
}

std::optional<Candidate> candidateOf(const PlanRequest& request, const Pipeline& pipeline, const Words& words,
                                     const std::string& by)
{
    Candidate out;
    out.schedule = scheduleOf(pipeline, words, "plan");
    out.by = by;
    if (!timeCandidate(request, out)) return {};
    return out;
}

std::vector<Candidate> libraryCandidates(const PlanRequest& request)
{
    std::vector<Candidate> out;
    Shape shape{request.ranks, request.microbatches, request.chunks};
    shape.costs = meanCosts(request);
    for (const ScheduleInfo& info : allSchedules()) {
        if (info.fixedChunks > 0 && info.fixedChunks != request.chunks) continue;
        auto made = makeSchedule(info.name, shape);
        if (!made || !plannable(request, *made)) continue;
        Candidate candidate;
        candidate.schedule = serialised(std::move(*made));
        candidate.by = "library: " + std::string(info.name);
        if (timeCandidate(request, candidate)) out.push_back(std::move(candidate));
    }
    return out;
}

void addLibraryPoints(const PlanRequest& request, const CostsFor& costsFor, Pareto& pareto)
{
    for (const ScheduleInfo& info : allSchedules()) {
        const std::string name(info.name);
        auto leaveOut = [&](std::string why) { pareto.leftOut.emplace_back(name, std::move(why)); };
        Shape shape{request.ranks, request.microbatches, 0};
        shape.costs = meanCosts(request);
        auto made = makeSchedule(name, shape);
        if (!made) {
            leaveOut(made.error().message);
            continue;
        }
        const bool sameStages =
            made->stages == request.ranks * request.chunks && made->placement == placementOf(request);
        if (!sameStages && !costsFor) {
            leaveOut("another placement");
            continue;
        }
        auto costs = plannable(request, *made) || !costsFor ? Result<CostModel>(request.costs) : costsFor(*made);
        if (!costs) {
            leaveOut(costs.error().message);
            continue;
        }
        costs->sliceStarts = sliceStartsOf(*made);
        const auto result = simulate(*made, *costs);
        if (!result) {
            leaveOut(result.error().message);
            continue;
        }
        LibraryPoint point;
        point.name = name;
        point.peak = *std::max_element(result->peakActivation.begin(), result->peakActivation.end());
        point.objective = request.objective == Objective::Makespan ? result->makespan : result->span;
        point.planned = plannable(request, *made) && serialised(*made) == *made;
        point.asynchronous = made->weights != WeightRule::Synchronous;
        point.copies = made->placement.hasCopies();
        pareto.library.push_back(std::move(point));
    }
}

} // namespace stagewright::planning
