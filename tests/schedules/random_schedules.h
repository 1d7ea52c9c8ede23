// Random valid schedules: a random list execution over random placements, with some backwards split, some fillers and
// some overlapped pairs. Everything follows from the seed.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "schedules/check/validate.h"
#include "schedules/model/op_index.h"
#include "schedules/model/schedule.h"

namespace stagewright::test {

inline int pick(std::mt19937& random, int least, int most)
{
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
}

inline Placement randomPlacement(std::mt19937& random, int ranks, int& stages, int microbatches)
{
    switch (pick(random, 0, 4)) {
    case 0: stages = 2 * ranks; return Placement::vShape(ranks);
    case 1: stages = ranks * pick(random, 1, 3); return Placement::loop(ranks, stages);
    case 2: stages = ranks * 2; return Placement::zigzag(ranks, stages);
    case 3: stages = ranks; return Placement::bidirectional(ranks, microbatches);
    default: break;
    }
    stages = pick(random, 1, 2 * ranks + 1);
    std::vector<int> rankByStage;
    for (int s = 0; s < stages; ++s) rankByStage.push_back(pick(random, 0, ranks - 1));
    return Placement::of(rankByStage);
}

inline Schedule randomSchedule(unsigned seed, bool fillers = true, bool pairs = true)
{
    std::mt19937 random(seed);
    Schedule out;
    out.name = "random";
    out.ranks = pick(random, 1, 5);
    out.microbatches = pick(random, 2, 7);
    out.placement = randomPlacement(random, out.ranks, out.stages, out.microbatches);
    out.order.resize(static_cast<std::size_t>(out.ranks));

    // Ops that may run next; each one done makes others ready.
    std::vector<Op> ready;
    for (int j = 0; j < out.microbatches; ++j) ready.push_back(makeOp(OpKind::Forward, 0, j));
    while (!ready.empty()) {
        const std::size_t at = random() % ready.size();
        const Op op = ready[at];
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
        auto& row = out.order[static_cast<std::size_t>(out.placement.rankOf(op.stage, op.microbatch))];
        if (fillers && random() % 16 == 0)
            row.push_back(makeFiller(op.stage, static_cast<std::uint32_t>(random() % 100'000)));
        row.push_back(op);
        auto backward = [&](int stage) {
            ready.push_back(makeOp(random() % 2 == 0 ? OpKind::Backward : OpKind::InputGrad, stage, op.microbatch));
        };
        if (op.kind == OpKind::Forward && op.stage + 1 < out.stages)
            ready.push_back(makeOp(OpKind::Forward, op.stage + 1, op.microbatch));
        if (op.kind == OpKind::Forward && op.stage + 1 == out.stages) backward(op.stage);
        if (op.kind == OpKind::InputGrad) ready.push_back(makeOp(OpKind::WeightGrad, op.stage, op.microbatch));
        if ((op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) && op.stage > 0) backward(op.stage - 1);
    }
    out.paired.resize(out.order.size());
    for (std::size_t r = 0; pairs && r < out.order.size(); ++r)
        for (std::size_t i = 0; i + 1 < out.order[r].size(); ++i) {
            const Op& first = out.order[r][i];
            const Op& second = out.order[r][i + 1];
            const bool fits = first.kind == OpKind::Forward && second.kind == OpKind::Backward;
            if (!fits || random() % 2 == 0 || (!out.paired[r].empty() && out.paired[r].back() + 1 == i)) continue;
            out.paired[r].push_back(static_cast<std::uint32_t>(i));
            if (!validate(out).valid()) out.paired[r].pop_back();
        }
    return out;
}

// What a random schedule is varied by: each turns some (or all) of its ops into another form of the same work.
enum class Variation {
    Recomputed,
    Halved,
    Concatenated,
    Sliced,
    Stepped,
};

// The same work, with some ops recomputed (an R before the backward), backwards in halves, weight gradients over
// several microbatches, everything in sequence slices, or an Optimizer op for each stage at the end. Pairs are dropped.
inline Schedule varied(Schedule schedule, Variation variation, unsigned seed)
{
    std::mt19937 random(seed);
    const int slices = pick(random, 2, 3);
    schedule.paired.assign(schedule.order.size(), {});
    const auto chosen = [seed](const Op& op) {
        return (op.stage * 7u + static_cast<unsigned>(op.microbatch) * 3u + seed) % 3 != 0;
    };
    for (auto& row : schedule.order) {
        std::vector<Op> out;
        for (const Op& op : row) {
            const bool input = op.kind == OpKind::Backward || op.kind == OpKind::InputGrad;
            const bool backward = input || op.kind == OpKind::WeightGrad;
            if (variation == Variation::Recomputed && input && chosen(op))
                out.push_back(makeOp(OpKind::Recompute, op.stage, op.microbatch));
            if (variation == Variation::Halved && backward && chosen(op)) {
                for (std::uint8_t half : {std::uint8_t{1}, std::uint8_t{2}}) {
                    out.push_back(op);
                    out.back().half = half;
                }
            } else if (variation == Variation::Sliced && op.kind != OpKind::Filler) {
                for (int i = 0; i < slices; ++i) {
                    out.push_back(op);
                    out.back().slice = static_cast<std::int16_t>(backward ? slices - 1 - i : i);
                }
            } else {
                out.push_back(op);
            }
        }
        if (variation == Variation::Concatenated) {
            // The weight gradients of neighbouring microbatches, taken together at the place of the last of them.
            for (std::size_t i = 0; i < out.size(); ++i) {
                if (out[i].kind != OpKind::WeightGrad || out[i].count > 1) continue;
                for (std::size_t j = i + 1; j < out.size(); ++j)
                    if (out[j].kind == OpKind::WeightGrad && out[j].stage == out[i].stage && out[j].count == 1 &&
                        out[j].microbatch == out[i].microbatch + 1) {
                        out[j].microbatch = out[i].microbatch;
                        out[j].count = 2;
                        out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
                        --i;
                        break;
                    }
            }
        }
        row = std::move(out);
    }
    if (variation == Variation::Sliced)
        for (int i = 0; i < slices; ++i) schedule.sliceLengths.push_back(static_cast<std::uint32_t>(slices - i));
    if (variation == Variation::Stepped)
        for (int r = 0; r < schedule.ranks; ++r)
            for (int stage : schedule.placement.stagesOf(r))
                schedule.order[static_cast<std::size_t>(r)].push_back(makeOp(OpKind::Optimizer, stage));
    return schedule;
}

} // namespace stagewright::test
