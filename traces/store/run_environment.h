// Environment data of a recorded run that is known only after it has ended.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

// Adds pairs after those of the run's environment; pairs with the same key are kept side by side. One transaction on a
// connection of its own, so no other writer may be active. The file must exist (Unreadable) and contain the run
// (Usage).
Result<void> addEnvironment(const std::string& path, std::int64_t run, const TextPairs& pairs);

} // namespace stagewright
