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

Result<int> loopGroup(std::string_view schedule, int ranks, int microbatches)
{
    const auto groups = [ranks](int m) { return std::max(1, m / ranks); };
    const auto divides = [&](int m) { return m % groups(m) == 0; };
    if (divides(microbatches)) return microbatches / groups(microbatches);
    int below = microbatches;
    int above = microbatches;
    while (!divides(below))
        --below;
    while (!divides(above))
        ++above;
    return fail(ErrorCode::Usage,
                fmt::format("{}: {} microbatches do not divide into {} groups on {} ranks", schedule, microbatches,
                            groups(microbatches), ranks),
                fmt::format("the nearest that work are {} and {} microbatches", below, above));
}

Op loopedOp(OpKind kind, int rank, int ranks, int chunks, int group, int k)
{
    const int round = k / (group * chunks);
    const int chunk = k % (group * chunks) / group;
    const int stage = (kind == OpKind::Forward ? chunk : chunks - 1 - chunk) * ranks + rank;
    return makeOp(kind, stage, round * group + k % group);
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

std::string nearestMultiples(int value, int factor, int least, std::string_view unit)
{
    const int lowest = (least + factor - 1) / factor * factor;
    const int below = value / factor * factor;
    const int above = std::max(lowest, below + factor);
    if (below < lowest) return fmt::format("the nearest that works is {} {}", above, unit);
    return fmt::format("the nearest that work are {} and {} {}", below, above, unit);
}

} // namespace stagewright::library
