// What changed on the devices, as sections of a document: the command line, the window and the HTML page show these.
#pragma once

#include <cstddef>
#include <vector>

#include "traces/compare/device_changes.h"
#include "traces/report/document/document.h"

namespace stagewright {

// A table each, shown only: device time, kernels that run in both by their change, those of one run by their time; none
// without rows. `b` is the letter of the run compared with A; at most `most` kernels a table. A row of a kernel is about
// the call that changed most, in that run, where the calls of both runs are known to be the same.
std::vector<document::Section> deviceSections(const DeviceChanges& changes, char b = 'B', std::size_t most = 25);

} // namespace stagewright
