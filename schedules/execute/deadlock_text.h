// A deadlock in sentences, and drawn.
#pragma once

#include "schedules/execute/deadlock.h"

namespace stagewright {

// What is wrong, in sentences: the cycle, the victims, buffering and grouping, the fix.
std::string describeDeadlock(const Deadlock& deadlock);
// The cycle drawn on the lists: each blocked rank's ops around its position, [op] where it is blocked, <op> what
// another waits for, and below it the arrows. Lines are at most `columns` (80 at least) wide.
std::string drawDeadlock(const Schedule& schedule, const Deadlock& deadlock, int columns);

} // namespace stagewright
