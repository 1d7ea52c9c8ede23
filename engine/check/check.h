// checkSchedule(): a training against its one-rank replay; and what the checks of synchronous and asynchronous
// schedules share.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/training/training.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

// The truth of training: gradients and losses of a one-rank replay that accumulates each stage's weight gradients in
// the schedule's own order (docs/numbers.md, "gradient_error").
struct CheckResult {
    std::string schedule;
    std::string backend;
    std::string shape;           // "p=4 m=8 v=1"
    double gradientError = 0;    // largest ‖a−b‖∞ / ‖b‖∞ over tensors
    bool gradientsEqual = false; // bit for bit
    bool lossesEqual = false;
    bool repeatEqual = false;         // the same bits from run to run
    bool orderEqual = false;          // scheduleOf(run(S)) == S
    bool copiesEqual = false;         // copies of a stage hold the same bits
    bool weightsEqual = true;         // of ranks that share state, with the replay's, bit for bit
    std::string sharing;              // "weights:by=layer"; empty: no ranks share state
    std::vector<RankTraffic> traffic; // of the last step, by rank
    int rollbacks = 0;                // optimizer steps rolled back: then equality is up to their rounding (1e-4)
    WeightRule weights = WeightRule::Synchronous;
    bool partial = false; // replicas go back to different layers
    // asynchronous schedules and partial backward: of their weights from those of synchronous training
    double deviation = 0;
    double referenceLoss = 0;
    double loss = 0;
    std::string note;
    bool passed = false;
};
Result<CheckResult> checkSchedule(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                                  int steps, const std::stop_token& stop);

// Creates a new backend on each call: a check needs several.
using BackendMaker = std::function<Result<std::unique_ptr<Backend>>()>;
Result<CheckResult> checkSchedule(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                                  int steps, const std::stop_token& stop, const BackendMaker& makeBackend);

struct Difference {
    double error = 0; // largest ‖a−b‖∞ / ‖b‖∞ over tensors; infinite where sizes differ or NaN is among them
    bool equal = true; // bit for bit

    void add(std::span<const float> a, std::span<const float> b);
};

bool sameBits(double a, double b);

// A training's gradients (concatenated by stage) against the reference's tensors (by stage, by parameter).
Difference compareGradients(const std::vector<std::vector<float>>& training,
                            const std::vector<std::vector<std::vector<float>>>& reference);

// The first training of a check may have its ranks in several processes: those that do not lead have nothing to do but
// to serve it, and their result says nothing.
bool serves(const TrainingOptions& options);
Result<CheckResult> servedCheck(std::span<const std::unique_ptr<Training>> trainings, const Schedule& schedule,
                                const TrainingOptions& options);

// The options of the first and the second training of a check; of ranks in processes only the first is. Where the check
// may choose the clock, one runs on the wall clock and one on the virtual clock: the bits may depend on neither, and
// idle cores are not needed.
TrainingOptions clockedOptions(const TrainingOptions& options, int training);

// The undivided model on one rank: F and B of one microbatch after the other. A schedule of its own, checked like any
// other.
Schedule undividedSchedule(int microbatches);
Result<std::shared_ptr<const CheckedSchedule>> checkedUndivided(int microbatches);

// The first part of both kinds of result.
CheckResult checkResultOf(const Schedule& schedule, const TrainingOptions& options);

} // namespace stagewright
