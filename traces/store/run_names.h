// Names of the runs of one file. A run recorded into a file that already has one with that name is "NAME (2)", then
// "NAME (3)".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace stagewright {

// Without such a number: "zb-h1" of "zb-h1 (2)". Any other name is unchanged.
std::string_view unnumberedName(std::string_view name);
// The requested name, else the first numbered one that is free.
std::string freeRunName(const std::vector<RunInfo>& runs, const std::string& wanted);

} // namespace stagewright
