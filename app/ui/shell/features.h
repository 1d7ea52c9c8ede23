// The features of a window, in the order of features.def, and what they declare.
#pragma once

#include <vector>

#include "app/ui/workspace/feature.h"

namespace stagewright {

const std::vector<FeatureEntry>& allFeatures();
std::vector<ActionEntry> allActions();
const std::vector<ShowEntry>& allShown(); // in the order of the help

} // namespace stagewright
