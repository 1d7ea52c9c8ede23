// For tests: how often this process worked out what a CheckedSchedule keeps (schedules/check/checked_schedule.h), so
// that they can hold that nothing on a schedule's way does it twice. Nothing else reads them.
#pragma once

#include <atomic>

namespace stagewright {

struct WorkCounts {
    std::atomic<int> validations = 0; // validate(), CheckedSchedule::of()
    std::atomic<int> indexes = 0;     // OpIndex: producers
    std::atomic<int> cells = 0;       // cellsOf()
    std::atomic<int> strips = 0;      // withoutMessages() and the like
    std::atomic<int> lowerings = 0;   // lower()
};
inline WorkCounts workCounts; // of all threads; each number alone is exact once those that add to it have been joined

inline void countWork(std::atomic<int> WorkCounts::*work)
{
    (workCounts.*work).fetch_add(1, std::memory_order_relaxed);
}

} // namespace stagewright
