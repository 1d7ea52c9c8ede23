// The timeline for screen readers: a chart whose children are the slices in view, created on demand, each with a
// sentence: "Forward, microbatch 3, rank 1, 10.4 ms at 141.5 ms". Pressing one selects it. GUI thread only.
#pragma once

#include <vector>

#include <QString>

#include "widgets/timeline/view_state.h"

namespace stagewright {

class TimelineView;
struct TimelinePanel;

inline constexpr std::size_t mostAccessibleSlices = 2000; // per view; beyond that, rows are exposed instead

QString accessibleSliceName(const TimelinePanel& panel, SpanId span);
// Compute and communication slices in view, row by row, by start; at most `most`.
std::vector<SpanRef> slicesInView(const TimelineView& view, std::size_t most = mostAccessibleSlices);
void installTimelineAccessibility(); // once per process; later calls do nothing

} // namespace stagewright
