// The bar of a rank without ops: what its devices do, one class at a time.
#pragma once

#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// PanelRank::device and deviceBusy of a rank whose other lanes are filled; `extent`: what deviceBusy is a share of. O(slices × log).
void fillDevice(PanelRank& row, Nanos extent);

} // namespace stagewright
