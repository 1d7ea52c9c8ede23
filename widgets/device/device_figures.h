// DeviceFigures: the device panel's data for one step: kernels and copies, launch gaps, links, roofline. Computed on
// any thread.
#pragma once

#include <optional>
#include <vector>

#include <QString>

#include "traces/analysis/kernels.h"
#include "traces/analysis/launch_gaps.h"
#include "traces/analysis/links.h"
#include "traces/analysis/roofline.h"
#include "traces/run/run.h"
#include "widgets/numbers.h"

namespace stagewright {

struct DeviceFigures {
    KernelReport kernels;
    std::optional<LaunchGapReport> gaps; // absent without kernels or ops
    std::vector<LinkOverlap> links;
    QString noLinks;                  // why nothing is known of messages
    std::optional<Ceilings> ceilings; // measured on the run's device
    std::vector<RooflineRow> roofline;
    QString noRoofline; // why there is none
    Units units;
};

DeviceFigures deviceFiguresOf(const Run& run, int step, const Units& units);

} // namespace stagewright
