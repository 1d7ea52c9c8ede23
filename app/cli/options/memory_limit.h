// --memory-limit: what a rank may hold at its peak, in the units of the costs at hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/training/training.h"
#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Microbatch-activations as a plain number where costs count in units, bytes with a suffix ("64MB") where they count
// bytes; mixing the two is a Usage error with the remedy. Empty text: no limit.
Result<std::optional<Bytes>> readMemoryLimit(const std::string& text, const CostModel& costs);

// Before a recording: the order's peak against "4" (microbatch-activations), "64MB", or "60%" of what holding every
// microbatch at once takes on the fullest rank. bytes: a cost model with the model's bytes by stage, memoryUnit 1.
// Invalid, naming rank, op and both numbers, where the order needs more. Gives the limits in bytes by rank, a
// microbatch-activation being that of the rank where one is largest; none where the text is empty. "64MB,48MB": by rank
// of a pipeline. O(ops).
Result<std::vector<Bytes>> checkMemoryLimit(const std::string& text, const Schedule& schedule, const CostModel& bytes);
// The same with the bytes of what is trained.
Result<std::vector<Bytes>> checkMemoryLimit(const std::string& text, const Schedule& schedule,
                                            const TrainingOptions& training);

// --rank-memory: all that a rank may hold while it trains, by rank (TrainingOptions::rankMemory), from one size for all
// or one for each replica or rank; --host-memory likewise. Empty text: no limits.
Result<std::vector<Bytes>> readRankMemory(const std::string& text, const Schedule& schedule,
                                          const char* option = "--rank-memory");

} // namespace stagewright
