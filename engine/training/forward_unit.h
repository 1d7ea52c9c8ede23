// The unit of emulated links: the forward of a microbatch.
#pragma once

#include "engine/training/training.h"

namespace stagewright {

// Forward time of one microbatch over a rank's chunks, averaged over ranks: the unit of --comm in `record`.
Result<Nanos> measureForwardUnit(const std::shared_ptr<const CheckedSchedule>& schedule,
                                 const TrainingOptions& options);

} // namespace stagewright
