// The layout that trace files share, and the walk over a run in the order they are written: a process per rank, in it a
// row per lane (weight gradients apart from the other compute), the rank's bubbles on rows of their own, arrows for
// data edges, counters for memory by category. Rows of a rank have distinct names, and spans on one row never overlap:
// overlapping work goes to further rows, "send (2)".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/analysis/bubbles.h"
#include "traces/run/run.h"

namespace stagewright {

struct TraceCounts { // what was written; equal to what the timeline holds
    std::int64_t spans = 0;
    std::int64_t bubbles = 0;
    std::int64_t flows = 0; // data edges
    std::int64_t counterSamples = 0;
};
std::string toText(const TraceCounts& counts); // "112 spans, 49 bubbles, 80 flows, 96 counter samples"

struct TraceRow {
    int number = 0; // from 0, through the file
    int rank = 0;
    int order = 0;    // among the rows and counters of the rank, ascending; not dense
    std::string name; // "compute", "weight gradients", "bubbles", "send (2)", or the track's own
};

struct TraceCounter {
    int number = 0; // from 0, through the file
    int rank = -1;  // −1: of the whole run
    int order = 0;
    std::string name; // "activations", or the counter's own
    std::string unit; // "bytes", "microbatches" (unit-cost work), or the counter's own
    bool isMemory = false;
};

struct TraceSpan {
    SpanId id = 0;
    const Span* span = nullptr;
    const Track* track = nullptr;
    int row = 0;
    // Numbers of the arrows that start and end here: positions in Timeline::edges().
    std::span<const std::uint32_t> leaves;
    std::span<const std::uint32_t> arrives;
};

struct TraceBubble {
    const Gap* gap = nullptr;
    int step = 0;
    int row = 0;
    std::string_view cause, title; // "unknown", "Unknown" where ranks are missing (Timeline::missingRanks())
    std::string why;               // a sentence
};

struct TraceSample {
    Nanos time = 0;
    bool isWhole = false;
    std::int64_t whole = 0; // where isWhole
    double value = 0;       // else; finite
};

// The writer of a format. Rows and counters are declared before their first use; everything on one row comes by start.
class TraceSink {
public:
    virtual ~TraceSink() = default;
    virtual void process(int rank) = 0;
    virtual void row(const TraceRow& row) = 0;
    virtual void counter(const TraceCounter& counter) = 0;
    virtual void span(const TraceSpan& span) = 0;
    virtual void bubble(const TraceBubble& bubble) = 0;
    virtual void sample(const TraceCounter& counter, const TraceSample& sample) = 0;
    virtual Result<void> flush() = 0; // called often; writes out large buffers
};

// The offset added to every time, so that none is below 0, which viewers don't draw; 0 if none is.
Nanos traceShift(const Timeline& timeline);

// Order: every process, spans by track, bubbles by step, memory, counters. Samples that are not finite are omitted.
// Errors: no timeline (Usage), the sink's, those of the analysis, Cancelled. Memory beyond the run's: one step's
// bubbles, one rank's memory points and the arrows of four million spans.
Result<TraceCounts> walkTrace(const Run& run, TraceSink& sink, const Progress& progress = {});

} // namespace stagewright
