// Editing a schedule: pure functions, each returns the new schedule and whether it is valid. Fillers move like ops.
#pragma once

#include <cstddef>

#include "schedules/base/result.h"
#include "schedules/check/validate.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct EditResult {
    Schedule schedule;     // the order after the edit, also where it is invalid
    Validation validation; // of that order
};

// Inserts a filler of delay ns before position `at` (at = size: at the end). Fails (Usage) where rank or position does
// not exist.
Result<EditResult> insertDelay(const Schedule& schedule, int rank, std::size_t at, std::uint32_t delay);
// Removes a filler; any other op can't be removed (Usage).
Result<EditResult> removeDelay(const Schedule& schedule, int rank, std::size_t at);

// The positions to which an op may move within its rank without breaking validity: [first, last] around `from`.
struct MoveRange {
    std::size_t first = 0;
    std::size_t last = 0;
};
MoveRange validMoves(const Schedule& schedule, int rank, std::size_t from);

} // namespace stagewright
