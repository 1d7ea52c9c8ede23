// The planner's own picture of a step: p ranks with one chunk each, or two chunks in V placement, and m microbatches
// that are all alike. Internal to schedules/plan; Schedule values come out at the end.
//
// Where microbatches differ in time or size, the times and sizes of a stage are the least of its microbatches': no
// order takes less with its own, so that bounds and refutations hold, and `own` has each microbatch's, in which orders
// are timed.
//
// Microbatches of a stage may be taken in rising order without loss: the k-th F of stage s+1 needs k ends of F at stage
// s, so sorting every stage's ops of a kind by start and renumbering them keeps all needs and all counts in memory. A
// rank's order is therefore a word over at most eight letters, and the state of a rank is a handful of counts. The same
// holds where each microbatch of a stage goes back in one full backward or in I and W: the k-th gradient is numbered k,
// whichever of the two makes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/heuristic/objective.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright::planning {

enum class PassKind : std::uint8_t {
    Forward,
    InputGrad,
    WeightGrad,
    Backward,
};
inline constexpr std::size_t passKindCount = 4;

// One letter of a rank's word: kind and chunk (0: the rank's first stage, 1: its second).
using Letter = std::uint8_t;
inline constexpr int letterCount = 8;
constexpr Letter letterOf(PassKind kind, int chunk) { return static_cast<Letter>(static_cast<int>(kind) * 2 + chunk); }
constexpr PassKind kindOf(Letter letter) { return static_cast<PassKind>(letter / 2); }
constexpr int chunkOf(Letter letter) { return letter % 2; }
constexpr bool givesGradient(PassKind kind) { return kind == PassKind::InputGrad || kind == PassKind::Backward; }

using Word = std::vector<Letter>;
using Words = std::vector<Word>; // by rank

// What a pass of one microbatch takes, and changes its rank's memory by.
struct OwnPass {
    Nanos duration = 0;
    Bytes delta = 0;
};

// Durations and delays in ns; sizes in the cost model's bytes or shares.
struct Pipeline {
    int ranks = 0;
    int chunks = 1; // 1: stage r on rank r; 2: stages r and 2p−1−r on rank r
    int microbatches = 0;
    std::vector<Nanos> duration[passKindCount]; // by PassKind, then stage
    std::vector<Nanos> fromBelow;               // by stage: delay of the activation that F waits for
    std::vector<Nanos> fromAbove;               // by stage: delay of the gradient that I waits for
    // by PassKind, then stage: change of the rank's memory at the pass's end
    std::vector<Bytes> delta[passKindCount];
    // by stage: a full backward may do better than I and W: it is shorter, or I adds to the memory
    std::vector<char> full;
    std::vector<Bytes> cap; // by rank; unlimited: see below
    // by rank: the objective is the largest end − origin (makespan: 0, span: first start)
    std::vector<Nanos> origin;

    // by PassKind, then stage × microbatches + microbatch; empty: microbatches are alike
    std::vector<OwnPass> own[passKindCount];

    static constexpr Bytes unlimited = INT64_MAX / 4;

    int stages() const { return ranks * chunks; }
    int stageOf(int rank, int chunk) const { return chunk == 0 ? rank : 2 * ranks - 1 - rank; }
    int rankOf(int stage) const { return stage < ranks ? stage : 2 * ranks - 1 - stage; }
    int chunkOfStage(int stage) const { return stage < ranks ? 0 : 1; }
    Nanos time(PassKind kind, int stage) const
    {
        return duration[static_cast<std::size_t>(kind)][static_cast<std::size_t>(stage)];
    }
    Bytes change(PassKind kind, int stage) const
    {
        return delta[static_cast<std::size_t>(kind)][static_cast<std::size_t>(stage)];
    }
    bool alike() const { return own[0].empty(); }
    const OwnPass& ownPass(PassKind kind, int stage, int microbatch) const
    {
        return own[static_cast<std::size_t>(kind)]
                  [static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches) +
                   static_cast<std::size_t>(microbatch)];
    }
    bool usesFull(int stage) const { return full[static_cast<std::size_t>(stage)] != 0; }
    // The least that one microbatch's way back can take here, of I and W or a full backward: in all, until its gradient
    // is there, the rest.
    Nanos backTime(int stage) const;
    Nanos gradientTime(int stage) const;
    Nanos restTime(int stage) const { return backTime(stage) - gradientTime(stage); }
    Nanos work(int rank) const;  // of all microbatches, at least
    Nanos head(int stage) const; // earliest start of the stage's first F
    Nanos turn(int stage) const; // earliest start of the stage's first I
};

// Costs by stage as the cost model has them (stages: ranks × chunks, in V placement where chunks = 2), launch delays in
// front of each pass; where it has no time for a full backward, that is I + W. caps: by rank, empty: none.
// Fails (Usage) where ranks, chunks, microbatches, the cost model's stages or the caps don't fit together, and where
// spans are asked for of microbatches that differ: a rank's first start then depends on the order.
Result<Pipeline> pipelineOf(int ranks, int chunks, int microbatches, const CostModel& costs,
                            const std::vector<Bytes>& caps, Objective objective);
// F, I and W only, at even costs (rank shares; a chunk op takes 1/chunks); cap in microbatch activations, 0: none.
Pipeline evenPipeline(int ranks, int chunks, int microbatches, const GeneratorCosts& costs, double cap,
                      Objective objective);

Schedule scheduleOf(const Pipeline& pipeline, const Words& words, std::string name);
// A full backward that can't do better than I and W becomes these. None where the schedule has another placement, other
// kinds than F, B, I and W, pairs or microbatches out of order.
std::optional<Words> wordsOf(const Pipeline& pipeline, const Schedule& schedule);

// Least memory with which the rank can finish: one microbatch after the other.
Bytes leastMemory(const Pipeline& pipeline, int rank);

} // namespace stagewright::planning
