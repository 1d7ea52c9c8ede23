// What the checks of synchronous and asynchronous schedules share: comparing tensors, and their two halves.
#pragma once

#include <span>
#include <stop_token>
#include <vector>

#include "engine/training/training_with_backend.h"

namespace stagewright {

struct Difference {
    double error = 0;  // largest ‖a−b‖∞ / ‖b‖∞ over tensors; infinite where sizes differ or NaN is among them
    bool equal = true; // bit for bit

    void add(std::span<const float> a, std::span<const float> b);
};

bool sameBits(double a, double b);

// A training's gradients (concatenated by stage) against the reference's tensors (by stage, by parameter).
Difference compareGradients(const std::vector<std::vector<float>>& training,
                            const std::vector<std::vector<std::vector<float>>>& reference);

// checkSchedule() of an asynchronous schedule: against the one-rank model of its update rule (stale_model.h): bit for bit,
// predicted weights within 1e-5 (relative L2), as the prediction is computed apart. The deviation is from synchronous training.
Result<CheckResult> checkStale(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options, int steps, const std::stop_token& stop,
                               const BackendMaker& makeBackend);

// Of a check whose first training has its ranks in several processes: in those that do not lead there is nothing but to serve it. The
// result says nothing there.
bool serves(const TrainingOptions& options);
Result<CheckResult> servedCheck(std::span<const std::unique_ptr<Training>> trainings, const Schedule& schedule, const TrainingOptions& options);

// The options of the first and the second training of a check; of ranks in processes only the first is. Where the check may choose the clock, one runs on the
// wall clock and one on the virtual clock: the bits may depend on neither, and idle cores are not needed.
TrainingOptions clockedOptions(const TrainingOptions& options, int training);

// The undivided model on one rank: F and B of one microbatch after the other.
Schedule undividedSchedule(int microbatches);

// The first part of both kinds of result.
CheckResult checkResultOf(const Schedule& schedule, const TrainingOptions& options);

} // namespace stagewright
