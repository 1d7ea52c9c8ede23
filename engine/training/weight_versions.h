// WeightVersions: which weights of a stage an op computes with, where a schedule's Optimizer ops do not wait for a
// whole step (Schedule::weights). One per stage and rank, used on the rank's thread.
//
//   Stashed      F computes with the newest weights; they are copied only when a step would change them under a
//                microbatch that still waits for its B, and dropped after its B. Stage r of p then holds p − r
//                versions. (PipeDream, Harlap et al. 2018, arXiv 1806.03377, section 3.3)
//   TwoVersions  a step's ops compute with the weights before the last update: w(t+1) = w(t) − lr ∇f(w(t−1)).
//                (PipeDream-2BW, Narayanan et al. 2021, arXiv 2006.09503, section 3.1)
//   Predicted    F computes with weights predicted for its B, B with the newest: two versions while F runs.
//                (PipeOptim, Guan et al. 2023, arXiv 2312.00839, section 3)
// Synchronous schedules have one version; here they only step.
#pragma once

#include <map>

#include "engine/training/execution_plan.h"

namespace stagewright {

class WeightVersions {
public:
    WeightVersions(WeightRule rule, const OptimizerConfig& optimizer) : m_rule(rule), m_optimizer(optimizer) {}

    void before(const PlannedOp& planned, StageModel& model);
    void after(const PlannedOp& planned, StageModel& model);
    // An asynchronous update with the gradients since the last one, unclipped (there is no global norm); clears them.
    void step(StageModel& model);
    int updates() const { return m_updates; }
    // Between steps, in which the other rules keep nothing: the kept weights of before the last update; −1: none.
    int delayed() const { return m_delayed; }
    // Before the first step: it goes on behind so many; delayed(): the version that is then to be loaded.
    void resume(int updates, bool delayed);

private:
    void select(StageModel& model, int version);
    void keep(StageModel& model, int version);
    void drop(StageModel& model, int version);

    WeightRule m_rule;
    OptimizerConfig m_optimizer;
    int m_updates = 0;             // names the newest weights
    int m_delayed = -1;            // TwoVersions: kept weights of before the last update; −1: none yet
    int m_selected = -1;           // as StageModel::useVersion
    std::map<int, int> m_inFlight; // Stashed: microbatch → the weights its F used
    std::map<int, bool> m_kept;    // Stashed: kept versions
};

} // namespace stagewright
