// The bar of a rank without ops: what its devices do, one class at a time.
#pragma once

#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// PanelRank::device, gpus and deviceBusy of a rank whose other lanes are filled; `extent`: what deviceBusy is a share
// of. O(slices × log).
void fillDevice(PanelRank& row, Nanos extent);
// What the busy share of a rank with several GPUs is: "mean of 2 GPUs". Empty: it has one.
QString gpusText(const PanelRank& rank);
// The share of the GPU whose first lane this is; nothing: another lane, or a rank with one.
std::optional<double> gpuBusyAt(const PanelRank& rank, std::size_t lane);

} // namespace stagewright
