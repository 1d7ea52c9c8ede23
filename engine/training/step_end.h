// StepEnd: what happens to a rank's gradients once they are summed up: reduction over the copies of a stage, the global
// norm, the optimizer's steps and their validation. One per rank, used on the rank's thread.
//
// Four ways to end a step
//   a barrier, then the optimizer with the norm of all gradients (synchronous schedules without Optimizer ops)
//   Optimizer ops in the list step at once, and the global norm has the last word: up the ranks goes what each knows,
//   down comes the whole; steps it forbids are rolled back, and repeated if clipped (synchronous schedules with
//   Optimizer ops; Qi et al. 2024, arXiv 2401.10241, section 4). The verdict is there before finish() ends: the next
//   step starts from validated weights.
//   Optimizer ops are final (asynchronous schedules)
//   ranks share state (state_exchange.h): before the first Optimizer op the gradients are summed, piece by piece, and
//   the norm is that of all of them; each Optimizer op then steps what its rank owns. Where a rank's list goes on
//   behind one (stepsOnArrival()) a stage steps as soon as its own gradients are summed and what the rank knows of the
//   norm allows it; the whole norm at the end has the last word: what it forbids is put back as it was, and stepped
//   again if clipped, bit for bit as with all gradients known. Where gradients travel in buckets each bucket's part
//   steps as it arrives, by the same rule
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/training/gradient_rules.h"
#include "engine/training/rank_trace.h"
#include "engine/training/state_exchange.h"
#include "engine/training/training_state.h"
#include "schedules/model/state_sharding.h"

namespace stagewright {

// What the rank loop does for it.
struct StepHooks {
    // Runs work on the op's stage as an op, recorded at `position` of the list, −1: outside it. False: stopped.
    std::function<bool(const Op& op, int position, RankPhase phase, int statusPosition,
                       const std::function<void(StageRun&)>& work)>
        record;
    // With all ranks, giving this rank's sums and taking those of all stages, if wanted; false: stopped.
    std::function<bool(std::span<const StageSum> sums, std::vector<double>* all)> barrier;
    std::function<void()> freeSent;
    std::function<Nanos(int rank, const Buffer& message)> delayTo;
    std::function<void(std::string)> where; // for error messages: the current activity; empty: nothing special
};

class StepEnd {
public:
    StepEnd(TrainingState& state, int rank, const RankTrace& trace, StateExchange& exchange, StepHooks hooks);

    void begin(); // of a step
    // A ReduceGrad op: this copy's gradients go to the other copies of the stage, to each the piece that it adds up; of
    // two copies, and on devices, all of them to each.
    void shareGradients(StageRun& run);
    // Under rendezvous: waits until all copies of the stage have come to it, as a collective does. False: stopped.
    bool meetCopies(int stage);
    // An Optimizer op of the list. False: stopped.
    bool runOptimizer(const Op& op, int position);
    // Before a gather of the list: one of stepped weights needs the norm's verdict. False: stopped.
    bool beforeGather(int stage);
    // After the list. False: stopped.
    bool finish();

private:
    StageRun& stageRun(int stage) { return m_state.stageOn(stage, m_rank); }
    bool extra(OpKind kind, RankPhase phase, int stage, const std::function<void(StageRun&)>& work);
    bool finishStep();
    std::vector<StageSum> ownSums();
    bool judgeShared();
    bool runShared(const Op& op, int position);
    bool stepOnArrival(const Op& op, int position);
    bool stepByPieces(const Op& op, int position);
    bool mayStep(double squareSum); // as far as this rank knows, with this much of a stage that is not summed yet
    bool validateShared();
    bool stepTogether();
    bool sumOverCopies();
    // The copies' places for a stage's gradients, where each adds up a piece; empty: each adds up all of them.
    std::vector<ShardPiece> piecesOf(StageRun& run, std::span<StageRun* const> copies) const;
    bool sumByPieces(StageRun& run, std::span<StageRun* const> copies, std::span<const ShardPiece> pieces);
    void postGradients(int rank, ControlKey::Kind kind, int stage, const Buffer& from, std::size_t begin,
                       std::size_t count);
    bool freeAllSent();
    std::vector<double> knownNorms() const;
    bool receiveNormsUp(int position);
    bool receiveNorms(const ControlKey& key);
    void postNorms(int rank, const ControlKey& key);
    void passNormsUp();
    bool validateSteps();
    void keepGradients(StageRun& run);

    TrainingState& m_state;
    int m_rank;
    const RankPlan& m_plan;
    RankRun& m_run;
    const RankTrace& m_trace;
    StateExchange& m_exchange;
    std::optional<Verdict> m_shared; // on shared state, of this step
    bool m_early = false;            // stages step as their gradients arrive
    std::vector<int> m_arrived;      // those whose optimizer op came before the verdict
    StepHooks m_hooks;
    std::vector<double> m_norms; // square sums by stage where steps are validated afterwards; else empty
    bool m_normsKnown = false;   // of the previous ranks
    bool m_normsPassed = false;  // to the next rank
};

} // namespace stagewright
