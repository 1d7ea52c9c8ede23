// The weights that the own engine starts with, as a file for another engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/workload/workload.h"
#include "schedules/base/result.h"

namespace stagewright {

// All parameters of the model in the order of its stages, by the names that ParameterView gives them. They depend on
// the seed and the names alone, not on the slices. Holds one stage at a time. Errors: no room, the file can't be
// written.
Result<void> writeInitialWeights(const Workload& workload, std::span<const StageSlice> slices, std::uint64_t seed,
                                 const std::string& path);

} // namespace stagewright
