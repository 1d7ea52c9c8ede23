// Runs too large for one timeline: what the window reads of them, part by part. Pure functions for any thread.
// A view of one step holds that step's timeline; a view of every step holds the lanes of all steps and the timeline of one.
#pragma once

#include <memory>
#include <vector>

#include "app/ui/runs/run_library.h"
#include "traces/store/run_file.h"
#include "widgets/panel/op_query.h"

namespace stagewright {

inline constexpr qint64 wholeRunSpans = 1'000'000; // larger runs are read in parts
inline constexpr qint64 detailedSpans = 1'500'000; // larger steps are drawn but not analysed: no timeline is built for them

struct LargeRun {
    RunRef ref;
    RunFile::Content content;
    std::vector<RunFile::StepBounds> steps; // by step
    int median = 0;                         // its representative step
    qint64 longest = 0;                     // spans of its largest step
    bool detailed() const { return longest <= detailedSpans; }
};
// Reads no spans. A run without a complete step is an error.
Result<std::shared_ptr<const LargeRun>> openLargeRun(const RunRef& ref);

// One step with its figures; step −1: the representative step.
Result<std::shared_ptr<const RunView>> readStepView(const LargeRun& large, int step, const MemoryBudget& budget);
// The stored overview of every step, beside `detail`.
Result<std::shared_ptr<const RunView>> readOverviewView(const LargeRun& large, const std::shared_ptr<const RunView>& detail);
// Every step as lanes, 16 bytes per slice and a pyramid; no span ids.
struct RunLanes {
    std::shared_ptr<const TimelinePanel> panel;
    qint64 damagedBlocks = 0;
};
Result<RunLanes> readLanes(const LargeRun& large, const Progress& progress);
// `lanes` with the spans, the critical path and the figures of `detail`; null: without details.
std::shared_ptr<const RunView> everyStepView(const LargeRun& large, const RunLanes& lanes, const std::shared_ptr<const RunView>& detail);

// The next (or previous) step after `from` with a matching op, wrapping around; −1: no match. Reads the run.
Result<int> findStep(const LargeRun& large, const OpQuery& query, int from, bool backward, const Progress& progress);

} // namespace stagewright
