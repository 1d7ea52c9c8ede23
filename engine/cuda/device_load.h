// How full and how busy the GPUs are.
#pragma once

#include <memory>
#include <vector>

#include "engine/device/load.h"

namespace stagewright::cuda {

// devices: by number, empty for all. Null without a driver.
std::unique_ptr<LoadGauge> openLoad(const std::vector<int>& devices);

} // namespace stagewright::cuda
