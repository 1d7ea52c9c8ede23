// Slow replicas: pipelines that take longer than the others for the same ops, so that every reduction waits for them.
#pragma once

#include <string>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// "replica 1 takes 1.50× as long as the median replica for the same ops and is the last to finish 4 of 4 stages". "":
// there is one replica, they are equally fast, or the step's replicas have no common ops. O(spans of the step).
std::string slowReplicaSentence(const Timeline& timeline, int step);

} // namespace stagewright
