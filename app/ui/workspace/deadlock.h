// The dialog that shows why an order hangs, with a change that mends it.
#pragma once

#include <functional>
#include <memory>

#include "schedules/execute/deadlock.h"

namespace stagewright {

class Workspace;

// apply: called with the changed order if it is accepted.
void showDeadlock(Workspace& workspace, std::shared_ptr<const Schedule> schedule, const Channels& channels,
                  std::function<void(const Schedule&)> apply);

} // namespace stagewright
