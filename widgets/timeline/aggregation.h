// Aggregation of a selected area: what happened in a time range on some rows, trimmed to the range.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct Aggregation {
    TimeRange range;        // axis time; union over the areas
    int rows = 0;           // (panel, rank) pairs
    std::int64_t count = 0; // ops that overlap the range, compute lanes
    std::array<std::int64_t, opKindRoom> countByKind{};
    std::array<Nanos, opKindRoom> timeByKind{}; // trimmed to the range
    Nanos busy = 0;                             // F, B, I, W, R
    Nanos idle = 0;                             // rows × range (cut to each panel's extent) − all compute-lane time
    Nanos communication = 0;                    // transfers, trimmed; may overlap
    bool empty() const { return rows == 0; }
};

// O(slices in the range). Overlapping areas are each counted once.
Aggregation aggregate(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                      const std::vector<AreaSelection>& areas,
                      const RowPlan* plan = nullptr); // null: ranks in numerical order

} // namespace stagewright
