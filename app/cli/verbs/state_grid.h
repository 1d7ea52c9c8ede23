// What `check` trains beside every schedule where nothing is named: a few schedules over two and three replicas that
// share state at each level, so that every way to divide, gather and reduce it occurs.
#pragma once

#include <string>
#include <vector>

#include "schedules/setup/setup.h"

namespace stagewright {

// Schedules × levels × replicas; each is the setup with a schedule, its shape and what is shared.
std::vector<Setup> stateGrid(const Setup& setup);

} // namespace stagewright
