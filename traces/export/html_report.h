// A run, or a comparison of two, as one self-contained HTML file: figures with their definitions, timeline and
// memory as inline SVG, idle time by cause, ops, costs, provenance, environment, notes. No script, no outside resource;
// light and dark by the reader's setting, light in print. Every text of the run is escaped. Same runs, same bytes.
#pragma once

#include <string>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/compare/compare.h"
#include "traces/run/run.h"

namespace stagewright {

struct HtmlOptions {
    int step = -1;           // −1: the representative one
    std::string program;     // "Stagewright 0.1.0", at the foot; empty: nothing
    std::string source;      // where the run is stored: "demo.stagewright, run 3"
    std::string otherSource; // of B
    Progress progress = {};
};

// Usage for a step that the run does not have. A run without spans gives a page that says this; it can't be compared
// (Invalid). Cancelled: stop.
Result<std::string> htmlReport(const Run& run, const HtmlOptions& options = {});
// B against A, as compareRuns() compares them.
Result<std::string> htmlComparison(const Run& a, const Run& b, const HtmlOptions& options = {});

} // namespace stagewright
