// The features of a window, in the order of features.def.
#pragma once

#include <vector>

namespace stagewright {

class Feature;
class Workspace;

using MakeFeature = Feature* (*)(Workspace&); // the workspace owns what it makes, once it is added
const std::vector<MakeFeature>& allFeatures();

} // namespace stagewright
