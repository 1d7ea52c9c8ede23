// Partial backward (SPB, arXiv 2111.10672): a replica runs every forward, but goes back only to its own cut, a layer.
// Each layer's gradient is the mean over the replicas that went back to it, its contributors; what lies below the cut
// keeps no activations. That changes the mathematics: the layers near the output learn from the whole batch, the first
// ones from the part of it that one replica has.
//
// The lists say it all: a replica's stages below its cut have no B, I, W or R. 1F1B over 2 replicas, 2 stages of one
// layer, cuts 0,1:
//   replica 0   rank 0  0F0 0F1 0B0 0B1        rank 1  1F0 1B0 1F1 1B1
//   replica 1   rank 2  0F2 0F3                rank 3  1F2 1B2 1F3 1B3
// Stage 0's gradient is the mean over microbatches 0 and 1, stage 1's over all four.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// "0,2,4": a layer of each replica, 0 … layers; `layers` itself goes back through the head only. Usage: another number
// of items than replicas, other layers, or none that goes back to layer 0 (nobody would train it).
Result<std::vector<int>> parseCuts(std::string_view text, int replicas, int layers);

// The first stage that a cut goes back to: the last one in any case. blocks: layers of each stage.
int firstStageOf(int cut, std::span<const int> blocks);

// How far back each replica's lists go: the first stage with a B, I or W. 0 in all where there is one replica, where
// one has no backward at all, or where none goes back to stage 0: those lists lack something.
std::vector<int> firstStagesBack(const Schedule& schedule);
bool goesBackPartly(const Schedule& schedule); // any of them is not 0
// What a rank's ops of a stage can be compared with: 0 where its replica goes back through the whole stage, 1 where the
// replica's backwards end in it (perhaps inside), 2 where it has forwards only. firstStages: firstStagesBack().
int backwardShare(const Schedule& schedule, std::span<const int> firstStages, int rank, int stage);

// The lists without B, I, W and R of each replica's stages before its first one; a pair that loses an op is none.
// Usage: weights that are not synchronous, optimizer ops or reductions in the lists, sequence slices (their keys and
// values are freed on the way back).
Result<Schedule> withoutBackwardBelow(const Schedule& schedule, std::span<const int> firstStages);

// The elements of a stage's flat vector that the same copies contribute to, and what their sum is to be multiplied by
// to be their mean.
struct ContributedRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::vector<char> contributes; // by copy
    float scale = 1;               // samples of all copies / samples of the contributors
};
// from: by copy, the first element that it contributes. samples: by copy. Ascending, without holes, none empty;
// elements without contributors have scale 1.
std::vector<ContributedRange> contributedRanges(std::span<const std::int64_t> from,
                                                std::span<const std::int64_t> samples, std::int64_t elements);

} // namespace stagewright
