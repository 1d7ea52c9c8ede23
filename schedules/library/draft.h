// What the generators of this folder share: an empty schedule to fill, the list of 1F1B, looped stages, parameters,
// errors that name the nearest shape that works.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/library/registry.h"

namespace stagewright::library {

// Rows for every rank, no ops yet.
Schedule draft(std::string_view name, int ranks, int stages, int microbatches, Placement placement);

// The forwards and backwards of 1F1B on rank r of p: `warmup` forwards, then a forward (while any is left) before each
// backward. visit(kind, microbatch) gets Forward and Backward.
template <typename Visit>
void oneForwardOneBackward(int microbatches, int warmup, Visit&& visit)
{
    int forward = 0;
    while (forward < microbatches && forward < warmup) visit(OpKind::Forward, forward++);
    for (int j = 0; j < microbatches; ++j) {
        if (forward < microbatches) visit(OpKind::Forward, forward++);
        visit(OpKind::Backward, j);
    }
}

// 1F1B's list takes (m+p−1)T and holds min(m, p−r) microbatches on rank r.
ClosedForm closedForm1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad);

// The list of 1F1B with an Optimizer op after each backward: the asynchronous pipelines.
Schedule updatedAfterEveryBackward(std::string_view name, WeightRule weights, const Shape& shape);

// F = I = W, both given and planned with, without latency: where the V schedules have closed forms.
bool isForUnitCosts(const Shape& shape, double forward, double inputGrad, double weightGrad);

// Looped stages: the microbatches that go round together, q = m / max(1, ⌊m/p⌋) by PyTorch's rule, which relaxes
// Megatron's m mod p = 0. Fails where m is not a multiple of max(1, ⌊m/p⌋).
Result<int> loopGroup(std::string_view schedule, int ranks, int microbatches);

// Op k of a rank over v looped stages: groups of q microbatches, the last of those that are left, run through its first
// stage, then through its second …; backwards take the stages from last to first.
Op loopedOp(OpKind kind, int rank, const Shape& shape, int group, int k);

// W of microbatches first … last as one op (several where they are more than one op can count).
void appendConcatenatedWeightGrads(std::vector<Op>& ops, int stage, int first, int last);

// optimizer=rank: an Optimizer op for each of a rank's stages at the end of its list, so that no barrier ends the step
// (post-validation of the zero-bubble paper, section 4).
inline constexpr ScheduleParameter optimizerParameter{
    "optimizer",
    "barrier",
    "barrier|rank",
    "barrier: all ranks step together; rank: each rank steps its stages at the end of its list, validated afterwards",
    "2",
    "rank=optimizer by rank"};
inline constexpr ScheduleParameter optimizerParameters[] = {optimizerParameter};
void appendOptimizers(Schedule& schedule, const Shape& shape);

// The parameter of all schedules that are made of building blocks.
inline constexpr ScheduleParameter reorderParameter{
    "reorder", "yes",
    "yes|no",  "move passes at both ends into idle time without raising the peak; no: the repeated block as it is",
    "2",       "no=the block as it is"};

// The remedy where works(ranks, microbatches) does not hold: the nearest microbatches for which it does on these ranks,
// else the nearest ranks, with other microbatches where it needs them. "the nearest that work are 2 and 4 ranks", "the
// nearest that works is 6 ranks with 12 microbatches".
std::string nearestThatWork(int ranks, int microbatches, const std::function<bool(int, int)>& works);

} // namespace stagewright::library
