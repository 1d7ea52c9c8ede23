// Places in the schedule's lists of what a panel draws, where gathers and reductions run beside compute: they are in
// the lists too, but on lanes of their own. The n-th span of an op on its rank is the n-th such op in the list.
#pragma once

#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// Whether a rank has such lanes and the timeline a schedule to find places in.
bool hasListPlaces(const TimelinePanel& panel, int rank);

// Index in Schedule::order[rank] of a span on a lane compute, gather or reduce; −1: none. O(spans of the rank in the
// step).
int listPlaceOf(const TimelinePanel& panel, SpanId span);

// Where an op dropped at the axis time goes, in the list without `dragged` (noSpan: a new op): before the first op, in
// the list's order, whose middle is later. A compute op goes between compute ops, with the gathers of the next one
// before it. O(spans of the rank).
int listPlaceAt(const TimelinePanel& panel, int rank, Nanos axisTime, SpanId dragged);

} // namespace stagewright
