#include "schedules/library/draft.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace stagewright::library {

Schedule draft(std::string_view name, int ranks, int stages, int microbatches, Placement placement)
{
    Schedule out;
    out.name = name;
    out.ranks = ranks;
    out.stages = stages;
    out.microbatches = microbatches;
    out.placement = std::move(placement);
    out.order.resize(static_cast<std::size_t>(ranks));
    return out;
}

ClosedForm closedForm1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    form.makespan = (shape.microbatches + shape.ranks - 1) * (forward + inputGrad + weightGrad);
    for (int r = 0; r < shape.ranks; ++r) form.peakActivation.push_back(std::min(shape.microbatches, shape.ranks - r));
    return form;
}

Schedule updatedAfterEveryBackward(std::string_view name, WeightRule weights, const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft(name, p, p, m, Placement::loop(p, p));
    out.weights = weights;
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(m));
        oneForwardOneBackward(m, p - 1 - r, [&](OpKind kind, int microbatch) {
            ops.push_back(makeOp(kind, r, microbatch));
            if (kind == OpKind::Backward) ops.push_back(makeOp(OpKind::Optimizer, r));
        });
    }
    return out;
}

bool isForUnitCosts(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    const GeneratorCosts& costs = shape.costs;
    return forward == inputGrad && inputGrad == weightGrad && costs.forward == costs.inputGrad &&
           costs.inputGrad == costs.weightGrad && costs.latency == 0;
}

Result<int> loopGroup(std::string_view schedule, int ranks, int microbatches)
{
    const auto groups = [](int p, int m) { return std::max(1, m / p); };
    const auto divides = [&](int p, int m) { return m % groups(p, m) == 0; };
    if (divides(ranks, microbatches)) return microbatches / groups(ranks, microbatches);
    return fail(ErrorCode::Usage,
                fmt::format("{}: {} microbatches do not divide into {} groups on {} ranks", schedule, microbatches,
                            groups(ranks, microbatches), ranks),
                nearestThatWork(ranks, microbatches, divides));
}

Op loopedOp(OpKind kind, int rank, const Shape& shape, int group, int k)
{
    const int first = k / (group * shape.chunks) * group;
    const int size = std::min(group, shape.microbatches - first);
    const int inGroup = k - first * shape.chunks;
    const int chunk = inGroup / size;
    const int stage = (kind == OpKind::Forward ? chunk : shape.chunks - 1 - chunk) * shape.ranks + rank;
    return makeOp(kind, stage, first + inGroup % size);
}

void appendConcatenatedWeightGrads(std::vector<Op>& ops, int stage, int first, int last)
{
    constexpr int most = std::numeric_limits<std::uint16_t>::max();
    while (first <= last) {
        Op op = makeOp(OpKind::WeightGrad, stage, first);
        op.count = static_cast<std::uint16_t>(std::min(most, last - first + 1));
        ops.push_back(op);
        first += op.count;
    }
}

void appendOptimizers(Schedule& schedule, const Shape& shape)
{
    if (shape.parameter("optimizer") != "rank") return;
    for (int r = 0; r < schedule.ranks; ++r)
        for (const int stage : schedule.placement.stagesOf(r))
            schedule.order[static_cast<std::size_t>(r)].push_back(makeOp(OpKind::Optimizer, stage));
}

std::string nearestThatWork(int ranks, int microbatches, const std::function<bool(int, int)>& works)
{
    const int window = 4 * ranks + 4096; // constraints repeat sooner
    constexpr int none = 0;
    const auto below = [=](int from, const auto& holds) {
        for (int n = from; n >= std::max(1, from - window); --n)
            if (holds(n)) return n;
        return none;
    };
    const auto above = [=](int from, const auto& holds) {
        for (int n = from; n <= from + window; ++n)
            if (holds(n)) return n;
        return none;
    };
    const auto list = [](const std::string& less, const std::string& more, std::string_view unit) {
        if (less.empty() && more.empty()) return std::string();
        if (less.empty() || more.empty()) return fmt::format("the nearest that works is {}{}{}", less, more, unit);
        return fmt::format("the nearest that work are {} and {}{}", less, more, unit);
    };
    const auto text = [](int number) { return number == none ? std::string() : fmt::format("{}", number); };

    const auto here = [&](int m) { return works(ranks, m); };
    const int fewer = below(microbatches, here);
    const int more = above(microbatches, here);
    if (fewer != none || more != none) return list(text(fewer), text(more), " microbatches");

    const auto asGiven = [&](int p) { return works(p, microbatches); };
    const auto adjusted = [&](int p) {
        const auto there = [&](int m) { return works(p, m); };
        const int less = below(microbatches, there);
        return less != none ? less : above(microbatches, there);
    };
    const auto atAll = [&](int p) { return adjusted(p) != none; };
    const int narrower = below(ranks, atAll);
    const int wider = above(ranks, atAll);
    if ((narrower == none || asGiven(narrower)) && (wider == none || asGiven(wider)))
        return list(text(narrower), text(wider), " ranks");
    const auto both = [&](int p) {
        return p == none ? std::string() : fmt::format("{} ranks with {} microbatches", p, adjusted(p));
    };
    return list(both(narrower), both(wider), "");
}

} // namespace stagewright::library
