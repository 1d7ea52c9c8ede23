#include "traces/compare/ladder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/edit/edit_ops.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "traces/fit/executed_run.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

constexpr OpKind timedKinds[] = {OpKind::Forward,    OpKind::Backward,  OpKind::InputGrad,
                                 OpKind::WeightGrad, OpKind::Recompute, OpKind::Optimizer};

Nanos totalOf(const CostModel& costs, OpKind kind)
{
    Nanos sum = 0;
    for (int stage = 0; stage < costs.stages(); ++stage) sum += costs.duration(kind, stage, -1);
    return sum;
}

bool sameKeys(const Schedule& a, const Schedule& b) // one placement, one set of microbatches
{
    return a.ranks == b.ranks && a.stages == b.stages && a.microbatches == b.microbatches && a.placement == b.placement;
}

// A's order of everything but W, with each W behind as many input gradients as in B, and behind as many of the forwards
// that follow there; after its own I.
std::optional<Schedule> placedAs(const Schedule& a, const Schedule& b)
{
    Schedule placed = a;
    for (std::size_t rank = 0; rank < a.order.size(); ++rank) {
        std::vector<Op> others;
        std::vector<std::size_t> inputs; // where in others
        for (const Op& op : a.order[rank]) {
            if (isWeightGrad(op.kind)) continue;
            if (isInputGrad(op.kind)) inputs.push_back(others.size());
            others.push_back(op);
        }
        std::vector<std::pair<std::size_t, Op>> weights; // after this many others
        std::size_t passed = 0;
        std::size_t since = 0; // other ops since the last input gradient
        for (const Op& op : b.order[rank]) {
            if (isInputGrad(op.kind)) {
                ++passed;
                since = 0;
            } else if (!isWeightGrad(op.kind)) {
                ++since;
            }
            if (!isWeightGrad(op.kind)) continue;
            if (passed > inputs.size()) return std::nullopt;
            std::size_t place = passed == 0 ? 0 : inputs[passed - 1] + 1;
            for (std::size_t k = 0; k < since && place < others.size() && !isInputGrad(others[place].kind); ++k)
                ++place;
            for (int k = 0; k < op.count; ++k) { // of stacked ones all their I
                Op own = op;
                own.kind = OpKind::InputGrad;
                own.count = 1;
                own.microbatch = op.microbatch + k;
                const auto at = std::find(others.begin(), others.end(), own);
                if (at == others.end()) return std::nullopt;
                place = std::max(place, static_cast<std::size_t>(at - others.begin()) + 1);
            }
            weights.emplace_back(place, op);
        }
        std::stable_sort(weights.begin(), weights.end(),
                         [](const auto& x, const auto& y) { return x.first < y.first; });
        std::vector<Op> order;
        std::size_t next = 0;
        for (std::size_t i = 0; i <= others.size(); ++i) {
            for (; next < weights.size() && weights[next].first == i; ++next) order.push_back(weights[next].second);
            if (i < others.size()) order.push_back(others[i]);
        }
        placed.order[rank] = std::move(order);
    }
    return placed;
}

bool hasWhole(const Schedule& schedule, OpKind kind)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [kind](const std::vector<Op>& order) {
        return std::any_of(order.begin(), order.end(), [kind](const Op& op) { return op.kind == kind; });
    });
}

// The lists without gathers, reductions and optimizer steps.
Schedule withoutState(const Schedule& schedule)
{
    return without(schedule, [](const Op& op) { return worksOnState(op.kind); });
}

std::vector<std::vector<Op>> stateOps(const Schedule& schedule)
{
    std::vector<std::vector<Op>> out(schedule.order.size());
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
        for (const Op& op : schedule.order[rank])
            if (worksOnState(op.kind)) out[rank].push_back(op);
    return out;
}

// The costs with what B's gathers, reductions and optimizer steps take, and where they run.
CostModel withStateOf(CostModel costs, const CostModel& b, int ranks)
{
    const bool stepsShared = !(costs.sharding == b.sharding);
    costs.sharding = b.sharding;
    costs.replicas = b.replicas;
    costs.links.collectives = b.links.collectives;
    for (int stage = 0; stage < std::min(costs.stages(), b.stages()); ++stage) {
        for (const OpKind kind : {OpKind::Unshard, OpKind::ReduceGrad})
            costs.setDuration(kind, stage, b.duration(kind, stage, -1));
        for (int rank = 0; stepsShared && rank < ranks; ++rank)
            costs.setDuration(OpKind::Optimizer, stage, rank, b.duration(OpKind::Optimizer, stage, rank));
    }
    return costs;
}

// Whether gathers and reductions are others, not only measured again.
bool sharesOtherwise(const CostModel& a, const CostModel& b)
{
    if (!(a.sharding == b.sharding) || a.replicas != b.replicas || a.links.collectives != b.links.collectives)
        return true;
    for (const OpKind kind : {OpKind::Unshard, OpKind::ReduceGrad}) {
        const Nanos x = totalOf(a, kind), y = totalOf(b, kind);
        if (std::abs(x - y) * 20 > std::max(x, y)) return true;
    }
    return false;
}

int warmUpOf(const Schedule& schedule) // forwards on rank 0 before its first backward
{
    int count = 0;
    if (schedule.order.empty()) return 0;
    for (const Op& op : schedule.order.front()) {
        if (isReturn(op.kind)) break;
        if (isForward(op.kind)) ++count;
    }
    return count;
}

std::string orderTitle(const Schedule& from, const Schedule& to)
{
    const int a = warmUpOf(from);
    const int b = warmUpOf(to);
    if (a == b) return "forwards and backwards in B's order";
    return fmt::format("{} warm-up: {} forwards on rank 0 before its first backward instead of {}",
                       b > a ? "deeper" : "shorter", b, a);
}

std::string placementTitle(const Schedule& from, const Schedule& to)
{
    std::vector<std::string> parts;
    const auto add = [&](const char* what, int a, int b) {
        if (a != b) parts.push_back(fmt::format("{} {} instead of {}", b, what, a));
    };
    add("ranks", from.ranks, to.ranks);
    add("stages", from.stages, to.stages);
    add("microbatches", from.microbatches, to.microbatches);
    std::string text = "B's placement and order";
    for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ": " : ", ") + parts[i];
    return text;
}

// How a run's messages travel, where that is more than links.
struct Messages {
    Channels channels;
    std::optional<Lowering> lowering; // none: the lists are without
    bool operator==(const Messages&) const = default;
};

struct Climb {
    std::stop_token stop;
    std::vector<LadderRung> rungs; // changes and peaks; makespans are filled in later
    Nanos last = 0;
    Messages messages;
};

// The lists with the sends and receives that this takes; as they are where they have them.
Result<Schedule> listsOf(const Schedule& schedule, const Messages& messages)
{
    if (!messages.lowering || isLowered(schedule)) return schedule;
    return lower(schedule, *messages.lowering);
}

Result<void> step(Climb& climb, RungKind kind, std::string title, const Schedule& schedule, const CostModel& costs)
{
    if (climb.stop.stop_requested()) return fail(ErrorCode::Cancelled, "comparing was cancelled");
    STAGEWRIGHT_TRY(const auto lists, listsOf(schedule, climb.messages));
    STAGEWRIGHT_TRY(const auto result, simulate(lists, costs, climb.messages.channels));
    LadderRung rung;
    rung.kind = kind;
    rung.title = std::move(title);
    const Nanos makespan = figuresOf(lists, result).step;
    rung.change = kind == RungKind::Start ? 0 : makespan - climb.last;
    if (costs.knowsActivations())
        for (const Bytes peak : result.peakActivation) rung.peak = std::max(rung.peak.value_or(0), peak);
    climb.last = makespan;
    climb.rungs.push_back(std::move(rung));
    return {};
}

// From A to a B that splits whenever A does.
Result<Climb> climb(const ExecutedRun& runA, const ExecutedRun& runB, const std::stop_token& stop)
{
    const CostModel &costsA = runA.costs, &costsB = runB.costs;
    const Schedule a = withoutMessages(runA.schedule), b = withoutMessages(runB.schedule);
    const Messages messagesB{runB.channels, runB.lowering};
    Climb path{stop, {}, 0, {runA.channels, runA.lowering}};
    CostModel costs = costsOnStagesOf(a, costsA, costsB);
    STAGEWRIGHT_CHECK(step(path, RungKind::Start, {}, runA.schedule, costsA));
    Schedule now = a;
    if (!a.splitsBackward() && b.splitsBackward() && hasWhole(a, OpKind::Backward) && !overlapsOps(a)) {
        now = splitEveryBackward(now);
        STAGEWRIGHT_CHECK(step(path, RungKind::Split, "the backward is split into I and W", now, costs));
    }
    const bool alike = sameKeys(now, b);
    if (alike && now.splitsBackward() && b.splitsBackward() && !overlapsOps(now) && !overlapsOps(b))
        if (auto placed = placedAs(now, b); placed && !(*placed == now)) {
            // an order that can't run does not get a rung
            if (step(path, RungKind::Place, "weight gradients placed as in B", *placed, costs))
                now = std::move(*placed);
        }
    const bool sameState = stateOps(now) == stateOps(b);
    if (!(now == b) && !(alike && withoutState(now) == withoutState(b))) {
        CostModel onB = alike ? costs : costsOnStagesOf(b, costsA, costsB);
        if (!sameState) onB = withStateOf(onB, costsB, b.ranks);
        std::string title = alike ? orderTitle(now, b) : placementTitle(now, b);
        if (!sameState) title += ", with B's gathers and reductions";
        STAGEWRIGHT_CHECK(step(path, alike ? RungKind::Order : RungKind::Placement, title, b, onB));
        costs = std::move(onB);
        now = b;
    }
    if (!(now == b) || sharesOtherwise(costs, costsB)) {
        CostModel onB = withStateOf(costs, costsB, b.ranks);
        STAGEWRIGHT_CHECK(step(path, RungKind::Sharing, "B's gathers and reductions", b, onB));
        costs = std::move(onB);
    }
    if (path.messages != messagesB) {
        path.messages = messagesB;
        STAGEWRIGHT_CHECK(step(path, RungKind::Messages, "B's sends, receives and channels", runB.schedule, costs));
    }
    if (!(costs.links == costsB.links)) {
        costs.links = costsB.links;
        STAGEWRIGHT_CHECK(step(path, RungKind::Wire, "B's links", runB.schedule, costs));
    }
    STAGEWRIGHT_TRY(const auto own, simulate(runB.schedule, costsB, runB.channels));
    if (durationsOf(b, costs) != durationsOf(b, costsB) || figuresOf(runB.schedule, own).step != path.last ||
        costs.launch != costsB.launch)
        STAGEWRIGHT_CHECK(step(path, RungKind::Costs, "op durations of B", runB.schedule, costsB));
    return path;
}

// The same rungs walked down: each change is taken back.
Climb reversed(const Climb& up)
{
    Climb down;
    down.rungs.push_back(up.rungs.back());
    down.rungs.front().kind = RungKind::Start;
    down.rungs.front().title.clear();
    down.rungs.front().change = 0;
    for (std::size_t i = up.rungs.size(); i-- > 1;) {
        LadderRung rung = up.rungs[i];
        rung.change = -rung.change;
        rung.peak = up.rungs[i - 1].peak;
        switch (rung.kind) {
        case RungKind::Split: rung.title = "I and W rejoined as one backward"; break;
        case RungKind::Place: rung.title = "weight gradients directly after their input gradients"; break;
        case RungKind::Order: rung.title = "forwards and backwards in B's order"; break;
        case RungKind::Placement: rung.title = "B's placement and order"; break;
        case RungKind::Sharing: rung.title = "B's gathers and reductions"; break;
        case RungKind::Messages: rung.title = "B's sends, receives and channels"; break;
        case RungKind::Wire: rung.title = "B's links"; break;
        case RungKind::Costs: rung.title = "op durations of B"; break;
        case RungKind::Start:
        case RungKind::Rest: break;
        }
        down.rungs.push_back(std::move(rung));
    }
    return down;
}

} // namespace

std::string_view toText(RungKind kind)
{
    switch (kind) {
    case RungKind::Start: return "start";
    case RungKind::Split: return "split";
    case RungKind::Place: return "place";
    case RungKind::Order: return "order";
    case RungKind::Placement: return "placement";
    case RungKind::Sharing: return "sharing";
    case RungKind::Messages: return "messages";
    case RungKind::Wire: return "wire";
    case RungKind::Costs: return "costs";
    case RungKind::Rest: return "rest";
    }
    return "";
}

CostModel costsOnStagesOf(const Schedule& target, const CostModel& a, const CostModel& b)
{
    CostModel costs = a;
    const bool same = a.stages() == target.stages;
    if (!same) {
        costs = CostModel(target.stages, a.source);
        costs.links = a.links;
        costs.origin = a.origin;
        costs.timeUnit = a.timeUnit;
        costs.memoryUnit = a.memoryUnit;
        if (a.launch.size() <= static_cast<std::size_t>(target.ranks)) costs.launch = a.launch;
        const double width = static_cast<double>(a.stages()) / target.stages; // of a target stage, in stages of A
        for (int stage = 0; stage < target.stages; ++stage) {
            const auto covered = [&](auto valueOf) { // Σ value × covered part of each stage of A
                double sum = 0;
                for (int from = 0; from < a.stages(); ++from) {
                    const double part =
                        std::min<double>(from + 1, (stage + 1) * width) - std::max<double>(from, stage * width);
                    if (part > 0) sum += part * static_cast<double>(valueOf(from));
                }
                return std::llround(sum);
            };
            for (const OpKind kind : timedKinds)
                costs.setDuration(kind, stage, covered([&](int from) { return a.duration(kind, from, -1); }));
            StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
            const auto take = [&](Bytes StageMemory::*field) {
                memory.*field = covered([&](int from) { return a.memory[static_cast<std::size_t>(from)].*field; });
            };
            for (Bytes StageMemory::*field : {&StageMemory::activation, &StageMemory::freedAtInput,
                                              &StageMemory::weight, &StageMemory::gradient, &StageMemory::optimizer})
                take(field);
            const int at = std::min(a.stages() - 1, static_cast<int>(stage * width));
            // a message does not shrink with the stage
            memory.boundary = a.memory[static_cast<std::size_t>(at)].boundary;
            memory.workspace = a.memory[static_cast<std::size_t>(at)].workspace;
        }
    }
    // kinds that A's costs do not know
    const Nanos forwardA = totalOf(a, OpKind::Forward);
    const Nanos forwardB = totalOf(b, OpKind::Forward);
    const Nanos splitB = totalOf(b, OpKind::InputGrad) + totalOf(b, OpKind::WeightGrad);
    const Nanos fullA = totalOf(a, OpKind::Backward);
    for (const OpKind kind : timedKinds) {
        if (totalOf(a, kind) != 0 || totalOf(b, kind) == 0 || isOptimizer(kind)) continue;
        const bool half = isSplitBackward(kind) && fullA > 0 && splitB > 0;
        const double share = half
                                 ? static_cast<double>(totalOf(b, kind)) / static_cast<double>(splitB)
                                 : static_cast<double>(totalOf(b, kind)) / std::max(1.0, static_cast<double>(forwardB));
        if (!half && (forwardA == 0 || forwardB == 0)) continue;
        const OpKind basis = half ? OpKind::Backward : OpKind::Forward;
        for (int rank = -1; rank < (costs.hasRankDurations() ? target.ranks : 0); ++rank)
            for (int stage = 0; stage < target.stages; ++stage) {
                const Nanos whole = costs.duration(basis, stage, rank);
                // I and W sum to B to the nanosecond
                const Nanos input = static_cast<Nanos>(std::llround(share * static_cast<double>(whole)));
                const Nanos value = half && isWeightGrad(kind) && totalOf(a, OpKind::InputGrad) == 0
                                        ? whole - costs.duration(OpKind::InputGrad, stage, rank)
                                        : input;
                if (rank < 0)
                    costs.setDuration(kind, stage, value);
                else
                    costs.setDuration(kind, stage, rank, value);
            }
    }
    if (totalOf(a, OpKind::Backward) == 0) // A splits, the target may not
        for (int stage = 0; stage < target.stages; ++stage)
            costs.setDuration(OpKind::Backward, stage,
                              costs.duration(OpKind::InputGrad, stage, -1) +
                                  costs.duration(OpKind::WeightGrad, stage, -1));
    return costs;
}

Result<std::vector<LadderRung>> ladderOf(const Run& a, Nanos makespanA, const Run& b, Nanos makespanB,
                                         const std::stop_token& stop)
{
    if (!a.schedule || !b.schedule)
        return fail(ErrorCode::Usage, fmt::format("run {} has no schedule to simulate", a.schedule ? "B" : "A"));
    auto runA = usualRun(a);
    if (!runA) return tl::unexpected(std::move(runA.error()).with("run A"));
    auto runB = usualRun(b);
    if (!runB) return tl::unexpected(std::move(runB.error()).with("run B"));
    if ((runA->costs.timeUnit == 1) != (runB->costs.timeUnit == 1))
        return fail(ErrorCode::Usage, "one run is timed in units and the other in nanoseconds",
                    "fit costs and simulate with them: simulate --costs-from");
    // not known to differ
    if (!whyNoArrivals(*a.timeline).empty() || !whyNoArrivals(*b.timeline).empty())
        runB->costs.links = runA->costs.links;
    const bool down = a.schedule->splitsBackward() && !b.schedule->splitsBackward();
    STAGEWRIGHT_TRY(auto path, down ? climb(*runB, *runA, stop) : climb(*runA, *runB, stop));
    std::vector<LadderRung> rungs = down ? reversed(path).rungs : std::move(path.rungs);
    rungs.front().title = "A as recorded";
    Nanos now = makespanA;
    for (LadderRung& rung : rungs) rung.makespan = now += rung.change;
    if (now != makespanB) {
        LadderRung rest;
        rest.kind = RungKind::Rest;
        rest.title = "what the costs do not explain";
        rest.change = makespanB - now;
        rest.makespan = makespanB;
        rest.peak = rungs.back().peak;
        rungs.push_back(std::move(rest));
    }
    return rungs;
}

} // namespace stagewright
