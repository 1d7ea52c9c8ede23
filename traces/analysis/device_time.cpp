#include "traces/analysis/device_time.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/foreign/graph_node.h"

namespace stagewright {

namespace {

enum Part : std::size_t {
    Computing,
    Communicating,
    Copying,
};

// The call that launched it; of work without one its own start.
Nanos launchTimeOf(const Timeline& timeline, SpanId id)
{
    for (const Edge& edge : timeline.edgesInto(id))
        if (edge.kind == EdgeKind::Launch) return edge.arrival;
    return timeline.spans()[id].start;
}

// Names streams on which kernels overlap by more than ticks of a clock, without being of one launch.
struct Overlaps {
    std::int64_t kernels = 0; // that start while an earlier one of their stream runs
    Nanos time = 0;           // of the streams' kernels: the sum of their durations − the time in which one runs
    int streams = 0;
    const Track* most = nullptr; // the stream with most of that time
    Nanos ofMost = 0;
    std::int64_t contained = 0; // of these: that also end before it does
    SpanId longest = noSpan;    // contains the most
    std::int64_t inLongest = 0;
};

void addOverlaps(const Timeline& timeline, const Track& track, int step, Overlaps& out)
{
    constexpr Nanos clock = 1'000; // ticks of devices' clocks, and launches that begin in the tail of the kernel before
    SpanId last = noSpan;          // ends last so far
    std::int64_t inLast = 0, kernels = 0;
    Nanos time = 0;
    bool said = false;
    for (SpanId id = track.begin; id < track.end; ++id) {
        const Span& span = timeline.spans()[id];
        if (step != everyStep && span.step != step) continue;
        const Span* before = last == noSpan ? nullptr : &timeline.spans()[last];
        const Nanos common = before == nullptr ? 0 : std::min(before->end, span.end) - span.start;
        if (common > 0) ++kernels, time += common;
        if (common > clock && launchTimeOf(timeline, last) != launchTimeOf(timeline, id)) {
            said = true;
            if (span.end <= before->end) {
                ++out.contained;
                if (++inLast > out.inLongest) out.inLongest = inLast, out.longest = last;
            }
        }
        if (before != nullptr && span.end <= before->end) continue;
        last = id;
        inLast = 0;
    }
    if (!said) return;
    out.kernels += kernels;
    out.time += time;
    ++out.streams;
    if (time > out.ofMost) out.ofMost = time, out.most = &track;
}

} // namespace

std::vector<RankDeviceTime> analyseDeviceTime(const Timeline& timeline, int step)
{
    const Devices devices(timeline);
    std::vector<RankDeviceTime> out(devices.size());
    for (std::size_t d = 0; d < out.size(); ++d) {
        out[d].rank = devices.all()[d].rank;
        out[d].gpu = devices.all()[d].gpu;
    }
    struct Covered {
        std::array<Coverage, 3> of; // by Part
        Coverage kernels;
        Coverage graphs;
        Coverage all;
    };
    std::vector<Covered> covered(out.size());
    KernelClasses classes;
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId, const Span& span) {
        const std::size_t r = devices.of(track);
        const Part of = track.lane == Lane::Copy                             ? Copying
                        : isCommunication(classes.of(timeline, track, span)) ? Communicating
                                                                             : Computing;
        covered[r].of[of].add(span.start, span.end);
        if (of != Copying) covered[r].kernels.add(span.start, span.end);
        if (of == Computing && timeline.labelOf(span) == wholeGraph) covered[r].graphs.add(span.start, span.end);
        covered[r].all.add(span.start, span.end);
        RankDeviceTime& rank = out[r];
        rank.first = rank.calls == 0 ? span.start : std::min(rank.first, span.start);
        rank.last = rank.calls == 0 ? span.end : std::max(rank.last, span.end);
        ++rank.calls;
    });
    std::map<int, std::pair<Nanos, Nanos>> windows; // by rank, whose GPUs share it
    for (const RankDeviceTime& device : out) {
        if (device.calls == 0) continue;
        const auto [entry, added] = windows.try_emplace(device.rank, device.first, device.last);
        entry->second = {std::min(entry->second.first, device.first), std::max(entry->second.second, device.last)};
    }
    for (RankDeviceTime& device : out)
        if (device.calls > 0) std::tie(device.first, device.last) = windows.at(device.rank);
    for (std::size_t r = 0; r < out.size(); ++r) {
        out[r].computing = covered[r].of[Computing].total();
        out[r].communicating = covered[r].of[Communicating].total();
        out[r].copying = covered[r].of[Copying].total();
        out[r].busy = covered[r].all.total();
        out[r].graphs = covered[r].graphs.total();
        out[r].hidden = out[r].computing + out[r].communicating - covered[r].kernels.total();
    }
    return out;
}

std::string deviceTimeSentence(const std::vector<RankDeviceTime>& ranks)
{
    RankDeviceTime sum;
    Nanos window = 0;
    std::int64_t devices = 0;
    for (const RankDeviceTime& rank : ranks) {
        if (rank.calls == 0) continue;
        ++devices;
        window += rank.window();
        sum.computing += rank.computing;
        sum.communicating += rank.communicating;
        sum.hidden += rank.hidden;
        sum.busy += rank.busy;
        sum.graphs += rank.graphs;
    }
    if (window <= 0) return {};
    const auto share = [window](Nanos time) {
        return formatPercent(static_cast<double>(time) / static_cast<double>(window));
    };
    const bool one = devices == 1;
    if (sum.graphs > 0)
        return fmt::format(
            "{} busy {} and idle {} of {}{}; what of it computes and what communicates is unknown, for {} of the time "
            "CUDA graphs run that were traced as a whole: record again with --cuda-graph-trace=node",
            one ? "the device is" : "devices are", share(sum.busy), share(window - sum.busy),
            formatDuration(window / devices), one ? "" : " on average", share(sum.graphs));
    const std::string exposed =
        sum.communicating == 0 ? std::string() : fmt::format(" ({} exposed)", share(sum.exposed()));
    return fmt::format("{} {}, {} {}{}, {} idle {} of {}{}", one ? "the device computes" : "devices compute",
                       share(sum.computing), one ? "communicates" : "communicate", share(sum.communicating), exposed,
                       one ? "is" : "are", share(window - sum.busy), formatDuration(window / devices),
                       one ? "" : " on average");
}

std::string graphSentence(const Timeline& timeline, int step)
{
    struct OfLabel {
        bool known = false;
        CudaGraphNode node;
    };
    std::vector<OfLabel> labels;                   // a label is that of one node
    std::set<std::pair<int, std::int64_t>> graphs; // by rank
    std::int64_t all = 0, nodes = 0;
    for (const Track& track : timeline.tracks()) {
        if (!isDeviceLane(track.lane)) continue;
        for (const Span& span : timeline.spansOf(track)) {
            if (step != everyStep && span.step != step) continue;
            ++all;
            if (span.label >= labels.size()) labels.resize(span.label + std::size_t{1});
            OfLabel& of = labels[span.label];
            if (!of.known) of = {true, graphNodeIn(timeline.shapeOf(span))};
            if (!of.node.node) continue;
            ++nodes;
            graphs.emplace(track.rank, of.node.graph.value_or(0));
        }
    }
    if (nodes == 0) return {};
    return fmt::format("{} of {} kernels and copies {} of {}", nodes, all, nodes == 1 ? "is a node" : "are nodes",
                       counted(static_cast<std::int64_t>(graphs.size()), "CUDA graph"));
}

std::vector<std::string> deviceDoubts(const Timeline& timeline, int step, bool graphs)
{
    Overlaps overlaps;
    std::int64_t whole = 0;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel) continue;
        if (track.name.find("stream") != std::string::npos) addOverlaps(timeline, track, step, overlaps);
        for (SpanId id = track.begin; id < track.end; ++id)
            if (const Span& span = timeline.spans()[id]; step == everyStep || span.step == step)
                whole += graphs && timeline.labelOf(span) == wholeGraph ? 1 : 0;
    }
    std::vector<std::string> out;
    if (overlaps.contained > 0) {
        const Span& longest = timeline.spans()[overlaps.longest];
        out.push_back(
            fmt::format("kernels of one stream contain each other, which a stream can't run: {} on {} lasts {} and {} "
                        "others start and end within it, so its duration is wrong, and with it the shares of time",
                        briefKernelName(timeline.nameOf(longest)), timeline.trackOf(overlaps.longest).name,
                        formatDuration(longest.duration()), overlaps.inLongest));
    }
    if (overlaps.kernels > 0)
        out.push_back(fmt::format("{} of {}{} {} the one before by {}: sums of durations exceed the time by as much",
                                  counted(overlaps.kernels, "kernel"), overlaps.most->name,
                                  overlaps.streams == 1
                                      ? std::string()
                                      : fmt::format(" and {}", counted(overlaps.streams - 1, "other stream")),
                                  overlaps.kernels == 1 ? "overlaps" : "overlap", formatDuration(overlaps.time)));
    if (whole > 0)
        out.push_back(fmt::format("{} traced as a whole: which kernels ran in {}, and how much of that is "
                                  "communication, is unknown; record again with --cuda-graph-trace=node",
                                  whole == 1 ? "1 CUDA graph was" : fmt::format("{} CUDA graphs were", whole),
                                  whole == 1 ? "it" : "them"));
    return out;
}

namespace analyses {

namespace {

std::vector<TableColumn> deviceTimeColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"gpu", "GPU", ColumnKind::Whole, "Of a rank with several GPUs: each has figures of its own."},
            {"window_ns", "First to last", ColumnKind::Time,
             "From the start of the step's first kernel or copy to the end of the last."},
            {"computing_ns", "Computing", ColumnKind::Time, "A kernel runs whose class is not communication."},
            {"communicating_ns", "Communicating", ColumnKind::Time,
             "A kernel runs whose class is collective or send, receive."},
            {"copying_ns", "Copying", ColumnKind::Time, "A copy or a fill runs."},
            {"hidden_ns", "Hidden", ColumnKind::Time, "Communicating while computing."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "Communicating while nothing computes."},
            {"idle_ns", "Idle", ColumnKind::Time, "Nothing runs."},
            {"calls", "Kernels and copies", ColumnKind::Count}};
}

Result<AnalysisRows> deviceTimeRows(const StepContext& context)
{
    const auto ranks = analyseDeviceTime(context.timeline(), context.step());
    AnalysisRows out;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankDeviceTime& rank = ranks[r];
        const auto known = [&rank](Nanos time) { return rank.graphs > 0 ? TableCell() : TableCell(time); };
        out.rows.push_back({std::int64_t{rank.rank}, rank.gpu < 0 ? TableCell() : TableCell(std::int64_t{rank.gpu}),
                            rank.window(), known(rank.computing), known(rank.communicating), rank.copying,
                            known(rank.hidden), known(rank.exposed()), rank.idle(), rank.calls});
    }
    out.sentence = deviceTimeSentence(ranks);
    if (const std::string graphs = graphSentence(context.timeline(), context.step()); !graphs.empty())
        out.sentence += "; " + graphs;
    for (const std::string& doubt : deviceDoubts(context.timeline(), context.step(), false))
        out.sentence += "; " + doubt;
    return out;
}

} // namespace

extern const AnalysisInfo device_time;
const AnalysisInfo device_time{"device_time",  "Device time", deviceTimeColumns, unknownWithoutKernels,
                               deviceTimeRows, false,         ReportPart::Device};

} // namespace analyses

} // namespace stagewright
