// The rows of the memory charts, computed from panels by a pure function that may run on any thread.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "widgets/memory/step_chart.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct MemorySettings {
    std::vector<bool> shown = std::vector<bool>(memoryCategoryCount, false); // by MemoryCategory
    // every rank scaled to its own peak; else one scale for all
    bool ownScale = false;
    // charts of Timeline::counters under the ranks'
    bool counters = true;
    MemorySettings() { set(MemoryCategory::Activations, true); }
    bool has(MemoryCategory category) const { return shown[static_cast<std::size_t>(category)]; }
    void set(MemoryCategory category, bool on) { shown[static_cast<std::size_t>(category)] = on; }
    int count() const { return static_cast<int>(std::count(shown.begin(), shown.end(), true)); }
    bool operator==(const MemorySettings&) const = default;
};

// One row per rank, then the counters. panels: the last is charted, the one before it is the ghost. predicted: may be
// null. O(memory events and samples of both).
std::vector<MemoryRow> memoryRows(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                                  const std::shared_ptr<const TimelinePanel>& predicted,
                                  const MemorySettings& settings);
// The categories a run has memory of.
std::vector<bool> categoriesOf(const Timeline& timeline);

} // namespace stagewright
