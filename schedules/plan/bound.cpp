#include "schedules/plan/bound.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace stagewright::planning {

namespace {

constexpr Nanos finest = 10'000; // the part of the best objective to which the relaxation is bisected

// Passes of chunk c that may be unfreed at once, at most m.
int roomFor(const Pipeline& pipeline, int rank, Bytes each)
{
    const Bytes cap = pipeline.cap[static_cast<std::size_t>(rank)];
    if (each <= 0 || cap / each >= pipeline.microbatches) return pipeline.microbatches;
    return static_cast<int>(cap / each);
}

// No op of the rank but F's can run before `until`: the most work that the cap lets them do from the head on.
Nanos forwardWork(const Pipeline& pipeline, int rank, Nanos until)
{
    const Nanos open = std::max<Nanos>(until - pipeline.head(rank), 0);
    Nanos most = 0;
    if (pipeline.chunks == 1) {
        most =
            roomFor(pipeline, rank, pipeline.change(PassKind::Forward, rank)) * pipeline.time(PassKind::Forward, rank);
    } else { // as if every F had the best ratio of time to memory
        const int other = pipeline.stageOf(rank, 1);
        const Bytes small =
            std::min(pipeline.change(PassKind::Forward, rank), pipeline.change(PassKind::Forward, other));
        const Nanos longest = std::max(pipeline.time(PassKind::Forward, rank), pipeline.time(PassKind::Forward, other));
        const Bytes cap = pipeline.cap[static_cast<std::size_t>(rank)];
        const Nanos all = Nanos{2} * pipeline.microbatches;
        const Nanos count = small <= 0 || cap / small >= all ? all : cap / small;
        most = count * longest;
    }
    return std::min(open, most);
}

} // namespace

Nanos gridOf(const Pipeline& pipeline)
{
    Nanos grid = 0;
    auto add = [&](const std::vector<Nanos>& values) {
        for (Nanos value : values) grid = std::gcd(grid, value);
    };
    for (PassKind kind : {PassKind::Forward, PassKind::InputGrad, PassKind::WeightGrad})
        add(pipeline.duration[static_cast<std::size_t>(kind)]);
    for (int s = 0; s < pipeline.stages(); ++s)
        if (pipeline.usesFull(s)) grid = std::gcd(grid, pipeline.time(PassKind::Backward, s));
    for (const auto& passes : pipeline.own)
        for (const OwnPass& pass : passes) grid = std::gcd(grid, pass.duration);
    add(pipeline.fromBelow);
    add(pipeline.fromAbove);
    add(pipeline.origin);
    return std::max<Nanos>(grid, 1);
}

Bound workBound(const Pipeline& pipeline)
{
    Bound out;
    for (int r = 0; r < pipeline.ranks && !pipeline.alike(); ++r) {
        Nanos work = 0;
        for (int c = 0; c < pipeline.chunks; ++c) {
            const int stage = pipeline.stageOf(r, c);
            for (int j = 0; j < pipeline.microbatches; ++j) {
                const auto time = [&](PassKind kind) { return pipeline.ownPass(kind, stage, j).duration; };
                const Nanos apart = time(PassKind::InputGrad) + time(PassKind::WeightGrad);
                work += time(PassKind::Forward) +
                        (pipeline.usesFull(stage) ? std::min(apart, time(PassKind::Backward)) : apart);
            }
        }
        const Nanos least = pipeline.head(r) + work - pipeline.origin[static_cast<std::size_t>(r)];
        if (least > out.value) out = {least, fmt::format("work of rank {}", r)};
    }
    return out;
}

Bound windowBound(const Pipeline& pipeline)
{
    Bound best;
    auto offer = [&](Nanos value, const char* what, int rank) {
        if (value > best.value) best = {value, fmt::format("{} of rank {}", what, rank)};
    };
    const int m = pipeline.microbatches;
    for (int r = 0; r < pipeline.ranks; ++r) {
        const Nanos origin = pipeline.origin[static_cast<std::size_t>(r)];
        const Nanos work = pipeline.work(r);
        const Nanos head = pipeline.head(r);
        offer(head + work - origin, "work", r);
        // The rank's first I is that of its deepest stage.
        const int deepest = pipeline.stageOf(r, pipeline.chunks - 1);
        const Nanos turn = pipeline.turn(deepest);
        const Nanos before = forwardWork(pipeline, r, turn);
        offer(turn + work - before - origin, "window", r);
        // Only W's follow the rank's last I or B, of stage r: what they can't take lies before it, and a chain to stage
        // 0 follows.
        Nanos after = 0;
        for (int c = 0; c < pipeline.chunks; ++c) {
            const int stage = pipeline.stageOf(r, c);
            after += roomFor(pipeline, r, -pipeline.change(PassKind::WeightGrad, stage)) * pipeline.restTime(stage);
        }
        Nanos chain = 0;
        for (int s = r; s >= 0; --s) {
            if (s < r) chain += pipeline.fromAbove[static_cast<std::size_t>(s)] + pipeline.gradientTime(s);
            const bool nothingLeft = s == r && pipeline.usesFull(s); // the last may be a B
            const Nanos end = turn + work - before - after + chain + (nothingLeft ? 0 : pipeline.restTime(s));
            offer(end - pipeline.origin[static_cast<std::size_t>(pipeline.rankOf(s))], "window", r);
        }
        // Round trip of stage s: F there, down, up, and back to the I there, then W if it holds a part.
        for (int c = 0; c < pipeline.chunks; ++c) {
            const int s = pipeline.stageOf(r, c);
            const bool rest = pipeline.change(PassKind::WeightGrad, s) < 0;
            const Bytes each = pipeline.change(PassKind::Forward, s);
            if (!rest || -pipeline.change(PassKind::InputGrad, s) > 0) continue; // partly freed at I: other counts
            const Nanos trip = pipeline.turn(s) - pipeline.head(s) + pipeline.backTime(s);
            const int room = std::max(1, roomFor(pipeline, r, each));
            const int rounds = (m - 1) / room;
            const Nanos single = pipeline.time(PassKind::Forward, s) + pipeline.backTime(s);
            const int left = m - rounds * room; // still to be done from the last round's start on, at least 1
            const Nanos last = trip + (left - 1) * (single - std::min(pipeline.time(PassKind::Forward, s), single));
            offer(pipeline.head(s) + rounds * trip + std::max(trip, last) - origin, "round trip", r);
        }
    }
    return best;
}

Bound provenBound(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos best, const std::function<bool()>& stop,
                  const Bound& known)
{
    Bound bound = windowBound(pipeline);
    if (known.value > bound.value) bound = known;
    const Nanos grid = gridOf(pipeline);
    bound.value = (bound.value + grid - 1) / grid * grid; // ends lie on the grid, and so do origins
    if (!relaxation.usable() || bound.value >= best) return bound;
    Nanos low = bound.value; // not yet refuted below
    Nanos high = best;       // reached
    // by the relaxation at `high`: targets below leave no more
    std::optional<Windows> left;
    while (high - low > best / finest || (high == best && low < high)) { // branching does the rest
        if (stop && stop()) break;
        const Nanos middle = low + (high - low) / 2 / grid * grid;
        Windows windows = left ? *left : relaxation.windowsFor(middle);
        relaxation.lower(windows, middle);
        const bool refuted = !relaxation.propagate(windows, stop);
        if (stop && stop()) break;
        if (refuted) {
            low = middle + grid;
            bound = {low, "relaxation of single ranks"};
        } else {
            high = middle;
            left = std::move(windows);
        }
    }
    return bound;
}

} // namespace stagewright::planning
