// --cluster: a preset with options, or a cluster's file with options.
#pragma once

#include <string_view>

#include "schedules/base/result.h"
#include "schedules/layout/cluster.h"

namespace stagewright {

Result<Cluster> clusterOf(std::string_view text); // its errors name --cluster

} // namespace stagewright
