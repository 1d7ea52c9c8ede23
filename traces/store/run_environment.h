// What is known of a recorded run's surroundings only once it has ended.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/base/result.h"
#include "traces/run.h"

namespace stagewright {

// Adds pairs behind those that the run's environment has; pairs of the same key stay beside each other. One transaction on a
// connection of its own, so nobody else may be writing. The file must be there (Unreadable) and the run in it (Usage).
Result<void> addEnvironment(const std::string& path, std::int64_t run, const TextPairs& pairs);

} // namespace stagewright
