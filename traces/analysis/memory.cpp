#include "traces/analysis/memory.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/format/format_registry.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace stagewright {

namespace {

// Start of the step on the rank; false if the rank has no part in it.
bool stepBegin(const Timeline& timeline, int rank, int step, Nanos& begin)
{
    const auto marks = timeline.stepMarks();
    const auto mark =
        std::lower_bound(marks.begin(), marks.end(), std::pair(step, rank),
                         [](const StepMark& a, const std::pair<int, int>& b) { return std::pair(a.step, a.rank) < b; });
    if (mark == marks.end() || mark->step != step || mark->rank != rank) return false;
    begin = mark->begin;
    return true;
}

void addPoint(MemorySeries& series, Nanos time, Bytes inUse)
{
    if (!series.points.empty() && series.points.back().time == time)
        series.points.back().inUse = inUse;
    else
        series.points.push_back({time, inUse});
}

} // namespace

MemorySeries memorySeries(const Timeline& timeline, int rank, int step, MemoryCategory category)
{
    MemorySeries series;
    series.rank = rank;
    series.category = category;
    if (rank < 0 || rank >= timeline.ranks()) return series;

    const auto events = timeline.memoryOf(rank);
    std::size_t first = 0;
    std::size_t last = events.size(); // the step's events lie in [first, last)
    if (step >= 0) {
        const auto ofStep = [&](const MemoryEvent& e) { return e.category == category && e.step == step; };
        const auto begin = std::find_if(events.begin(), events.end(), ofStep);
        const auto end = std::find_if(events.rbegin(), events.rend(), ofStep).base();
        first = static_cast<std::size_t>(begin - events.begin());
        last = static_cast<std::size_t>(end - events.begin());
        Nanos mark = 0;
        const bool marked = stepBegin(timeline, rank, step, mark);
        if (begin == events.end()) { // nothing changes: the value carried in, while the step lasts
            first = last = static_cast<std::size_t>(
                std::upper_bound(events.begin(), events.end(), mark,
                                 [](Nanos time, const MemoryEvent& e) { return time < e.time; }) -
                events.begin());
            if (!marked) return series;
        }
        Bytes carried = 0;
        for (std::size_t i = 0; i < first; ++i)
            if (events[i].category == category) carried += events[i].delta;
        const Nanos firstTime = first < last ? events[first].time : mark;
        addPoint(series, marked ? std::min(mark, firstTime) : firstTime, carried);
    }
    Bytes inUse = series.points.empty() ? 0 : series.points.back().inUse;
    for (std::size_t i = first; i < last; ++i) {
        if (events[i].category != category) continue;
        inUse += events[i].delta;
        addPoint(series, events[i].time, inUse);
    }
    if (series.points.empty()) return series;
    series.peak = std::numeric_limits<Bytes>::min();
    for (const MemoryPoint& point : series.points) {
        if (point.inUse <= series.peak) continue;
        series.peak = point.inUse;
        series.peakTime = point.time;
    }
    return series;
}

std::vector<Holder> holdersAt(const Timeline& timeline, int rank, Nanos time, MemoryCategory category)
{
    std::map<std::pair<int, int>, Bytes> held;
    if (rank >= 0 && rank < timeline.ranks()) {
        for (const MemoryEvent& event : timeline.memoryOf(rank)) {
            if (event.time > time) break;
            if (event.category == category) held[{event.stage, event.microbatch}] += event.delta;
        }
    }
    std::vector<Holder> holders;
    for (const auto& [who, bytes] : held)
        if (bytes != 0) holders.push_back({who.first, who.second, bytes});
    std::stable_sort(holders.begin(), holders.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    return holders;
}

std::vector<Bytes> peakByRank(const Timeline& timeline, int step, MemoryCategory category)
{
    std::vector<Bytes> peaks;
    peaks.reserve(static_cast<std::size_t>(timeline.ranks()));
    for (int rank = 0; rank < timeline.ranks(); ++rank)
        peaks.push_back(memorySeries(timeline, rank, step, category).peak);
    return peaks;
}

std::vector<RankMemory> memoryByRank(const Timeline& timeline, int step)
{
    std::vector<RankMemory> out(timeline.hasMemory() ? static_cast<std::size_t>(timeline.ranks()) : 0);
    for (std::size_t rank = 0; rank < out.size(); ++rank)
        for (std::size_t c = 0; c < memoryCategoryCount; ++c) {
            const auto category = static_cast<MemoryCategory>(c);
            const MemorySeries series = memorySeries(timeline, static_cast<int>(rank), step, category);
            out[rank].peak[c] = series.peak;
            if (category != MemoryCategory::Activations) continue;
            out[rank].peakTime = series.peakTime;
            out[rank].holders = holdersAt(timeline, static_cast<int>(rank), series.peakTime, category);
        }
    return out;
}

std::string whyNoMemory(const Run& run)
{
    if (run.timeline->hasMemory()) return {};
    const FormatInfo* format = findFormat(configured(run, "format"));
    if (format == nullptr || format->recordMemory.empty()) return "the run has no memory events";
    return "the trace has no memory events: " + std::string(format->recordMemory);
}

namespace analyses {

namespace {

std::vector<TableColumn> memoryColumns()
{
    std::vector<TableColumn> columns{{"rank", "Rank", ColumnKind::Whole}};
    for (std::size_t category = 0; category < memoryCategoryCount; ++category) {
        const std::string name(toText(static_cast<MemoryCategory>(category)));
        columns.push_back({"peak_" + name + "_bytes", "Peak " + name, ColumnKind::Size});
    }
    return columns;
}

// Without ops only what the trace itself names has a use; a memory snapshot names nothing.
bool hasUses(const Timeline& timeline)
{
    const auto events = timeline.memory();
    return std::any_of(events.begin(), events.end(),
                       [](const MemoryEvent& event) { return event.category != MemoryCategory::Workspace; }) ||
           hasOps(timeline);
}

Result<AnalysisRows> memoryRows(const StepContext& context)
{
    AnalysisRows out;
    const bool uses = hasUses(context.timeline());
    if (!uses) out.sentence = std::string(noMemoryUses) + ": all of it is under workspace";
    for (const RankMemory& memory : context.memory()) {
        auto& row = out.rows.emplace_back(std::vector<TableCell>{static_cast<std::int64_t>(out.rows.size())});
        for (std::size_t c = 0; c < memoryCategoryCount; ++c) {
            TableCell& cell = row.emplace_back();
            if (uses || static_cast<MemoryCategory>(c) == MemoryCategory::Workspace) cell = memory.peak[c];
        }
    }
    return out;
}

} // namespace

extern const AnalysisInfo memory;
const AnalysisInfo memory{"memory", "Peak memory by rank", memoryColumns, whyNoMemory, memoryRows};

} // namespace analyses

} // namespace stagewright
