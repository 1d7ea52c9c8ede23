// RunView: one step of a run, or several on one axis, with figures and panel: what the window shows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QStringList>

#include "schedules/base/result.h"
#include "traces/report/run_report.h"
#include "widgets/memory/memory_budget.h"
#include "widgets/runs/runs_model.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// Steps shown on one axis, inclusive.
struct ShownSteps {
    int first = 0;
    int last = -1; // −1: to the last
    bool operator==(const ShownSteps&) const = default;
};

// One step of a run, or several, ready to show.
struct RunView {
    RunRef ref;
    std::shared_ptr<const Run> run;
    int step = 0; // the step of these figures
    std::shared_ptr<const RunReport> figures;
    std::shared_ptr<const TimelinePanel> panel;
    bool partial = false;            // `run` holds only the newest steps, or no spans
    std::optional<ShownSteps> steps; // if the panel shows several; figures are then those of `step`
    int stepCount = 1;               // of the run
    int median = 0;                  // the representative step
    bool large = false;              // `run` holds only the spans of `step`
    // `run` holds a part of a step too large for a timeline: figures are of this range of the run's time
    std::optional<TimeRange> excerpt;
};

// What the user chose for all views.
struct ViewChoices {
    MemoryBudget budget;
    bool kernelsByClass = false; // also in runs with ops
};

// Figures and panel of a step; a pure function for any thread. step −1: the representative step.
Result<std::shared_ptr<const RunView>> makeRunView(const RunRef& ref, std::shared_ptr<const Run> run, int step,
                                                   const ViewChoices& choices = {});

// Titles that tell the runs apart: where two are called alike, with the disturbance, else the file, else the number of
// the run in it.
QStringList distinctTitles(const std::vector<std::shared_ptr<const RunView>>& views);

// The same run with several steps on one axis; figures stay those of `base`'s step. For any thread.
std::shared_ptr<const RunView> overSteps(const RunView& base, const ShownSteps& steps, const ViewChoices& choices);

} // namespace stagewright
