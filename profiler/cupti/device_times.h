// A step whose ops take the times of their kernels.
#pragma once

#include "profiler/cupti/correlate.h"

namespace stagewright {

// Ops and messages take the device's times, in which their ranks' order holds; CPU times are forgotten (they are of
// launching), work is added. An op without work keeps its duration at most, after the previous op. Counts overlaps into
// device.counts.
void placeOnDevice(StepRecord& step, DeviceStep& device);

} // namespace stagewright
