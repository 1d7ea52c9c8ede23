// Runs too large for one timeline: what the window reads of them, part by part. Pure functions for any thread. A step
// too large for a timeline is read in excerpts: what is in view, once that is little enough.
// A view of one step holds that step's timeline; a view of every step holds the lanes of all steps and the timeline of
// one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "app/ui/runs/run_library.h"
#include "traces/store/run_file.h"
#include "widgets/panel/op_query.h"

namespace stagewright {

// larger steps are drawn but not analysed: no timeline is built for them
inline constexpr qint64 detailedSpans = 1'500'000;

// The limits in spans; STAGEWRIGHT_LARGE_RUN="whole,step,lanes,excerpt" sets others, for tests.
struct LargeLimits {
    qint64 whole = wholeRunSpans;
    qint64 step = detailedSpans; // larger ones are read in excerpts
    qint64 lanes = 15'000'000;   // of a run with such steps: below, every op is drawn and kept (27 bytes each)
    qint64 excerpt = 200'000;    // in view, for its details to be read
    qint64 buckets = 8'000'000;  // of the stored overview, all ranks together
};
LargeLimits largeLimits();

struct LargeRun {
    RunRef ref;
    RunFile::Content content;
    std::vector<RunFile::StepBounds> steps;   // by step
    int median = 0;                           // its representative step
    qint64 longest = 0;                       // spans of its largest step
    std::vector<RunFile::BlockBounds> blocks; // of a run with steps too large for a timeline
    LargeLimits limits;
    mutable std::once_flag headerOnce;
    mutable std::shared_ptr<const Run> header; // headerOf()
    bool detailed() const { return longest <= limits.step; }
    bool keepsLanes() const { return content.info.spanCount <= limits.lanes; }
    qint64 spansIn(Nanos begin, Nanos end) const; // estimated from the bounds of blocks; run time
};
// Reads no spans. A run without a complete step is an error.
Result<std::shared_ptr<const LargeRun>> openLargeRun(const RunRef& ref);

// One step with its figures; step −1: the representative step.
Result<std::shared_ptr<const RunView>> readStepView(const LargeRun& large, int step, const ViewChoices& choices);
// The stored overview of every step, beside `detail`. fine: of a run whose lanes are not kept as many buckets as the
// limits allow, for close views; else some per pixel.
Result<std::shared_ptr<const RunView>> readOverviewView(const LargeRun& large,
                                                        const std::shared_ptr<const RunView>& detail, bool fine);
// Every step as lanes, 16 bytes per slice and a pyramid; no span ids.
struct RunLanes {
    std::shared_ptr<const TimelinePanel> panel;
    qint64 damagedBlocks = 0;
};
Result<RunLanes> readLanes(const LargeRun& large, bool kernelsByClass, const Progress& progress);
// `lanes` with the spans, the critical path and the figures of `detail`; null: without details.
std::shared_ptr<const RunView> everyStepView(const LargeRun& large, const RunLanes& lanes,
                                             const std::shared_ptr<const RunView>& detail);

// What overlaps [begin, end) of the run's time, drawn into `base` (its lanes, or instead of its overview), with figures
// cut to that. Reads some beside it, 1.5× in total or more, so that what is at the edges has its neighbours. Invalid:
// nothing is there.
Result<std::shared_ptr<const RunView>> readExcerptView(const LargeRun& large, const TimelinePanel& base, Nanos begin,
                                                       Nanos end, const ViewChoices& choices, const Progress& progress);

// The next (or previous) step after `from` with a matching op, wrapping around; −1: no match. Reads the run.
Result<int> findStep(const LargeRun& large, const OpQuery& query, int from, bool backward, const Progress& progress);

} // namespace stagewright
