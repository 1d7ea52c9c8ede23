// checkSchedule() of asynchronous schedules.
#pragma once

#include "engine/check/check.h"

namespace stagewright {

// Against the one-rank model of its update rule (stale_model.h): bit for bit,
// predicted weights within 1e-5 (relative L2), as the prediction is computed apart. The deviation is from synchronous
// training.
Result<CheckResult> checkStale(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                               int steps, const std::stop_token& stop, const BackendMaker& makeBackend);

} // namespace stagewright
