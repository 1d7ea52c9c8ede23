// What `check` trains beside every schedule where nothing is named: a few schedules over two and three replicas that
// share state at each level, so that every way to divide, gather and reduce it occurs.
#pragma once

#include <string>
#include <vector>

#include "app/cli/options/options.h"
#include "app/cli/options/replica_options.h"

namespace stagewright {

struct GridCell {
    std::string schedule;
    ReplicaOptions replicas;
};
std::vector<GridCell> stateGrid(); // schedules × levels × replicas
ShapeOptions stateGridShape();     // of one replica

} // namespace stagewright
