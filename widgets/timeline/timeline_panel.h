// TimelinePanel: one run (or one step of it) prepared for drawing. Immutable, built by a pure function that may run on
// any thread; shared as shared_ptr<const TimelinePanel>.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <QString>

#include "schedules/timeline/timeline.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"
#include "traces/run/rank_places.h"
#include "widgets/numbers.h"
#include "widgets/timeline/lane.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

// Other work of a rank, one sub-lane without overlap.
struct PanelLane {
    Lane lane = Lane::Kernel; // Gather, Reduce, Kernel, Copy, Other, Wait
    LaneData data;
    std::string track; // the timeline's, of which it is a part
    // Gather, Reduce: what no op hides, in axis time, ascending; known where a step's causes are, and of several
    std::vector<TimeSpan> exposed;
};
// What to call the lanes of a track beside them: "stream 7", "stream 7, copies", "thread 4711", "ranges on the device".
QString laneTitle(const Track& track);

struct PanelRank {
    int rank = 0;
    QString title;           // "Rank 0"
    QString subtitle;        // "stage 0", "stages 0, 4"
    int replica = -1;        // of several; −1: there is one
    double busyFraction = 0; // of the panel's window
    LaneData compute;
    std::vector<LaneData> communication; // sub-lanes without overlap; transfers
    std::vector<PanelLane> lanes;        // by LaneTraits::place: waits last
    // without ops: what its devices do, one class at a time: what computes before communication before copies
    LaneData device;
    struct Gpu {
        int gpu = 0;
        double busy = 0; // as deviceBusy
        LaneData device; // as the rank's
    };
    std::vector<Gpu> gpus; // without ops, of a rank with several GPUs, by number
    std::optional<double>
        // without ops: share of the panel's extent in which a kernel or copy runs; of several GPUs the mean
        deviceBusy;
    int workLanes() const; // number of `lanes` before the waits
    MemorySeries activations;
    RankPlace place; // host and dimensions of parallelism, as far as the run says
};

// Bounds of a step in axis time, over all ranks.
struct PanelStep {
    int step = 0;
    Nanos begin = 0;
    Nanos end = 0;
};

// The axis of a run of which a timeline holds a part.
struct PanelAxis {
    Nanos origin = 0;
    Nanos duration = 0;
    std::vector<PanelStep> steps;
};

struct RunReport;

struct PanelOptions {
    int step = -1;  // −1: several steps; else that one, starting at axis time `lead`
    Nanos lead = 0; // how much later than axis time 0 it starts, ≥ 0, for runs aligned at an op
    QString name;   // header of compare mode
    bool pyramids = true;
    // bubble report and critical path of the step (of a single-step timeline also at −1)
    bool causes = true;
    // of the step, if it was made: its causes and critical path are not computed again
    const RunReport* report = nullptr;
    std::optional<Bytes> memoryCap = std::nullopt; // of a rank's activations, for the causes
    int firstStep = 0;                             // if several …
    int lastStep = -1;                             // … inclusive; −1: to the run's last
    // kernels and copies by class and ranges by name, in a run with ops, too
    bool kernelsByClass = false;
    bool hangs = false;                           // an order that can't run to its end: busy shares are unknown
    std::vector<RankPlace> places = {};           // by rank; empty: unknown
    std::optional<PanelAxis> axis = std::nullopt; // every span is shown on it, and `step` is analysed
};

struct TimelinePanel {
    std::shared_ptr<const Timeline> timeline; // never null
    int step = -1;
    std::vector<PanelStep> steps; // the steps shown, by start
    QString name;
    Nanos origin = 0;   // timeline time at axis time 0
    Nanos duration = 0; // of what is shown, from the origin
    Nanos lead = 0;     // of it before the start
    std::vector<PanelRank> ranks;
    std::optional<BubbleReport> bubbles; // if one step is shown
    double bubbleFraction = 0;           // of the report, else over the whole extent
    Bytes peak = 0;                      // largest activation peak of any rank
    std::vector<SpanId> critical;        // sorted by id
    std::int64_t sliceCount = 0;
    Units units;
    std::uint32_t kinds = 0;   // bit 1 << OpKind: the kind occurs on a compute lane
    std::uint32_t classes = 0; // bit 1 << KernelClass: occurs on lanes drawn by class
    bool noOps = false;        // the whole run has none
    std::string noMemory;      // why there is none, where the panel was made with a report
    bool byClass = false;      // kernels and copies are drawn by class, ranges by name; always without ops
    bool hasTints = false;     // some op has another than its kind's first tint
    bool hasPairs = false;

    // Every step of a run too large for one timeline (run_panel.h): the lanes hold all of them, `timeline` the spans
    // of one; slices of the others have no span id.
    bool part = false;
    int detailStep = -1;   // the step whose spans `timeline` holds; −1: none
    bool overview = false; // no slices yet: the lanes are stored pyramids
    int replicas = 1;      // of the run's schedule: rank = replica × pipelineRanks() + pipeline rank
    int pipelineRanks() const { return static_cast<int>(ranks.size()) / std::max(1, replicas); }
    bool isPart() const { return part; }
    // Whether any op is known; otherwise there is no idle time either, as in traces with ranges that no rule names.
    bool hasOps() const { return !noOps && (kinds != 0 || part || overview); }

    // The time of a step as headers and lists print it; the axis also holds the optimizer.
    Nanos stepTime() const { return bubbles ? bubbles->stepTime() : duration - lead; }
    bool isCritical(SpanId span) const;
    Nanos toAxis(Nanos timelineTime) const { return timelineTime - origin; }
    bool shows(int ofStep) const; // whether the step is shown
    // How a moment is printed: from the start of its step, or of the run.
    Nanos shownTime(Nanos axisTime, TimeOrigin from) const;
    const PanelStep* stepAt(Nanos axisTime) const; // the last started step; nullptr before the first
    int stepNumberAt(Nanos axisTime) const { return stepAt(axisTime) != nullptr ? stepAt(axisTime)->step : -1; }
    // Position of a span among its rank's compute spans of its step: the index in Schedule::order[rank]. −1: not
    // compute.
    int positionOf(SpanId span) const;
};

// How lanes of a kind are drawn, and the ink of one piece of work there (−1: that of its op). Notes classes that occur.
LaneLook lookOf(bool byClass, Lane lane);
int inkOfWork(TimelinePanel& panel, const Track& track, std::uint32_t label, std::string_view name,
              std::string_view shape, KernelClasses& classes);

// The ranks' replicas, where the schedule is over several and of as many ranks. It may be null.
void setReplicas(TimelinePanel& panel, const Schedule* schedule);

// Empty timelines give a panel without ranks' slices and duration 0. O(spans of the step + memory events).
std::shared_ptr<const TimelinePanel> makePanel(std::shared_ptr<const Timeline> timeline,
                                               const PanelOptions& options = {});

} // namespace stagewright
