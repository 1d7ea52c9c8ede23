// A span as a row of a table: what the CSV and the Arrow file of a run hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/timeline.h"
#include "traces/foreign/graph_node.h"

namespace stagewright {

struct SpanRow { // nothing: not known, or not so of this span
    std::optional<std::int32_t> step;
    std::int32_t rank = 0;
    Lane lane = Lane::Compute;
    std::optional<std::int32_t> stage; // of an op
    std::optional<OpKind> kind;
    std::optional<std::int32_t> microbatch;
    Nanos start = 0;
    Nanos end = 0;
    std::optional<Nanos> cpu; // of the thread
    std::string name;
    std::optional<std::int64_t> stepNumber; // as the program counts for its users
    CudaGraphNode graph;                    // the CUDA graph that launched it, and its node
};

inline constexpr std::string_view spanColumns[] = {"step",        "rank",     "lane",      "stage",  "kind",
                                                   "microbatch",  "start_ns", "end_ns",    "cpu_ns", "name",
                                                   "step_number", "graph",    "graph_node"};

inline SpanRow spanRow(const Timeline& timeline, const Track& track, SpanId id)
{
    const Span& span = timeline.spans()[id];
    SpanRow row;
    if (span.step != outsideSteps) row.step = span.step, row.stepNumber = stepNumber(span.step);
    row.rank = track.rank;
    row.lane = track.lane;
    if (span.label == 0) { // an op
        row.stage = span.op.stage;
        row.kind = span.op.kind;
        if (span.op.microbatch >= 0) row.microbatch = span.op.microbatch;
    }
    row.start = span.start;
    row.end = span.end;
    if (timeline.hasCpuTime() && timeline.cpuTime(id) >= 0) row.cpu = timeline.cpuTime(id);
    row.name = timeline.nameOf(span);
    row.graph = graphNodeIn(timeline.shapeOf(span));
    return row;
}

} // namespace stagewright
