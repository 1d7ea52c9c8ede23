#include "traces/analysis/device_idle.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

namespace {

struct StateName {
    std::string_view text;
    std::string_view title;
    std::string_view meaning; // in its column
    std::string_view waits;   // "they wait for …"; empty: not a wait
};
constexpr std::array<StateName, deviceStateCount> names{{
    {"computing", "Computing", "A kernel runs whose class is not communication.", ""},
    {"collective", "Collectives", "A collective runs and nothing computes.", "for collectives"},
    {"send_receive", "Sends, receives", "Sends or receives run and nothing else.", "for sends and receives"},
    {"copying", "Copies", "Only copies or fills run.", "for copies"},
    {"launch", "Launches", "Nothing runs: what runs next was launched after everything before it had ended.",
     "for launches by the host"},
    {"sync", "Host waits", "Nothing runs, and the host waited for the device in a synchronising call.",
     "for a host that waits for kernels"},
    {"between", "Between kernels", "Nothing runs for less than 30 ns, though the next was launched.",
     "between kernels"},
    {"queued", "Queued",
     "Nothing runs, though the next was launched: it waits for an event, or its launch is on the way.",
     "with work in the queue"},
    {"unknown", "Unknown", "Nothing runs, and the trace does not say when the next was launched.",
     "for unknown reasons"},
}};

// What runs, by rank.
struct RankWork {
    Coverage computing, withCollectives, kernels, all; // each with those before it
    struct Item {
        Nanos start;
        Nanos end;
        SpanId id;
    };
    std::vector<Item> items;
    Coverage syncs; // calls of the host
};

// begin, end: the window, which the GPUs of a rank share.
void addGaps(const Timeline& timeline, RankWork& work, Nanos begin, Nanos end, RankDeviceIdle& out)
{
    std::stable_sort(work.items.begin(), work.items.end(), [](const RankWork::Item& a, const RankWork::Item& b) {
        return std::pair(a.start, a.id) < std::pair(b.start, b.id);
    });
    const auto add = [&out](DeviceState state, Nanos time) { out.time[static_cast<std::size_t>(state)] += time; };
    Nanos until = begin;
    for (std::size_t i = 0; i < work.items.size(); ++i) {
        const auto& [start, over, id] = work.items[i];
        const Nanos gap = start - until;
        if (gap > 0) {
            std::optional<Nanos> launched;
            // the first launched of those that start together
            for (std::size_t k = i; k < work.items.size() && work.items[k].start == start; ++k)
                if (const auto time = launchOf(timeline, work.items[k].id).time;
                    time && (!launched || *time < *launched))
                    launched = time;
            if (!launched) {
                add(DeviceState::Unknown, gap);
            } else if (*launched > until) {
                const Nanos waited = work.syncs.within(until, std::min(*launched, start));
                add(DeviceState::Sync, waited);
                add(DeviceState::Launch, gap - waited);
                ++out.lateLaunches;
            } else {
                add(gap < betweenKernels ? DeviceState::Between : DeviceState::Queued, gap);
            }
            if (gap > out.longestGap) {
                out.longestGap = gap;
                out.longestGapBefore = id;
            }
        }
        until = std::max(until, over);
    }
    if (end > until) add(DeviceState::Launch, end - until); // nothing more was launched for it
    const Nanos computing = work.computing.total(), kernels = work.kernels.total(), all = work.all.total();
    const Nanos withCollectives = work.withCollectives.total();
    out.window = end - begin;
    add(DeviceState::Computing, computing);
    add(DeviceState::Collective, withCollectives - computing);
    add(DeviceState::SendReceive, kernels - withCollectives);
    add(DeviceState::Copying, all - kernels);
}

} // namespace

std::string_view toText(DeviceState state) { return names[static_cast<std::size_t>(state)].text; }

std::string_view titleOf(DeviceState state) { return names[static_cast<std::size_t>(state)].title; }

bool isSynchronisingCall(std::string_view name)
{
    // of CUDA, HIP, Level Zero, Gaudi and Ascend
    constexpr std::array<std::string_view, 5> runtimes{"cu", "hip", "ze", "syn", "AscendCL@aclrt"};
    return std::any_of(runtimes.begin(), runtimes.end(), [name](auto runtime) { return name.starts_with(runtime); }) &&
           name.find("Synchronize") != std::string_view::npos;
}

bool isGraphLaunch(std::string_view name)
{
    return (name.starts_with("cu") || name.starts_with("hip")) && name.find("GraphLaunch") != std::string_view::npos;
}

std::vector<RankDeviceIdle> analyseDeviceIdle(const Timeline& timeline, int step)
{
    const Devices devices(timeline);
    std::vector<RankDeviceIdle> out(devices.size());
    std::vector<RankWork> works(devices.size());
    for (std::size_t d = 0; d < out.size(); ++d) {
        out[d].rank = devices.all()[d].rank;
        out[d].gpu = devices.all()[d].gpu;
    }
    KernelClasses classes;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Other) continue;
        for (const Span& span : timeline.spansOf(track)) // calls may begin in another step
            if (isSynchronisingCall(timeline.labelOf(span)))
                for (std::size_t d = 0; d < works.size(); ++d)
                    if (devices.all()[d].rank == track.rank) works[d].syncs.add(span.start, span.end);
    }
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId id, const Span& span) {
        RankWork& work = works[devices.of(track)];
        work.items.push_back({span.start, span.end, id});
        work.all.add(span.start, span.end);
        if (track.lane == Lane::Copy) return;
        const KernelClass of = classes.of(timeline, track, span);
        work.kernels.add(span.start, span.end);
        if (of != KernelClass::SendReceive) work.withCollectives.add(span.start, span.end);
        if (isCommunication(of)) return;
        work.computing.add(span.start, span.end);
        out[devices.of(track)].wholeGraphs = out[devices.of(track)].wholeGraphs || timeline.labelOf(span) == wholeGraph;
    });
    std::map<int, std::pair<Nanos, Nanos>> windows; // by rank
    for (std::size_t d = 0; d < works.size(); ++d)
        for (const RankWork::Item& item : works[d].items) {
            const auto [entry, added] = windows.try_emplace(out[d].rank, item.start, item.end);
            auto& [begin, end] = entry->second;
            begin = std::min(begin, item.start);
            end = std::max(end, item.end);
        }
    for (std::size_t d = 0; d < works.size(); ++d) {
        if (works[d].items.empty()) continue;
        const auto [begin, end] = windows.at(out[d].rank);
        addGaps(timeline, works[d], begin, end, out[d]);
    }
    return out;
}

std::string deviceIdleSentence(const std::vector<RankDeviceIdle>& ranks)
{
    RankDeviceIdle sum;
    for (const RankDeviceIdle& rank : ranks) {
        sum.window += rank.window;
        sum.wholeGraphs = sum.wholeGraphs || rank.wholeGraphs;
        for (std::size_t s = 0; s < deviceStateCount; ++s) sum.time[s] += rank.time[s];
    }
    if (sum.window <= 0) return {};
    const auto share = [&sum](std::size_t s) {
        return static_cast<double>(sum.time[s]) / static_cast<double>(sum.window);
    };
    std::vector<std::size_t> waits;
    for (std::size_t s = 1; s < deviceStateCount; ++s)
        if (share(s) >= 0.01) waits.push_back(s);
    std::stable_sort(waits.begin(), waits.end(),
                     [&](std::size_t a, std::size_t b) { return sum.time[a] > sum.time[b]; });
    const bool one =
        std::count_if(ranks.begin(), ranks.end(), [](const RankDeviceIdle& rank) { return rank.window > 0; }) == 1;
    const std::string_view runs =
        sum.wholeGraphs ? (one ? "the device runs kernels and CUDA graphs" : "devices run kernels and CUDA graphs")
        : one           ? "the device computes"
                        : "devices compute";
    std::string text = fmt::format("{} {} of {} time", runs, formatPercent(share(0)), one ? "its" : "their");
    for (std::size_t i = 0; i < waits.size(); ++i)
        text += fmt::format("{}{} {}",
                            i > 0 ? ", "
                            : one ? "; it waits "
                                  : "; they wait ",
                            formatPercent(share(waits[i])), names[waits[i]].waits);
    return text;
}

namespace analyses {

namespace {

std::vector<TableColumn> deviceIdleColumns()
{
    std::vector<TableColumn> columns{
        {"rank", "Rank", ColumnKind::Whole},
        {"gpu", "GPU", ColumnKind::Whole, "Of a rank with several GPUs: each has figures of its own."},
        {"window_ns", "First to last", ColumnKind::Time,
         "From the start of the step's first kernel or copy to the end of the last; the other columns add up to it."}};
    for (const StateName& name : names)
        columns.push_back(
            {fmt::format("{}_ns", name.text), std::string(name.title), ColumnKind::Time, std::string(name.meaning)});
    columns.push_back({"late_launches", "Late launches", ColumnKind::Count,
                       "How often the device had run out of work when the host launched the next."});
    columns.push_back({"longest_gap_ns", "Longest gap", ColumnKind::Time,
                       "In which nothing ran; choosing a row goes to what ran after it."});
    return columns;
}

Result<AnalysisRows> deviceIdleRows(const StepContext& context)
{
    const auto ranks = analyseDeviceIdle(context.timeline(), context.step());
    AnalysisRows out;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        std::vector<TableCell> row{std::int64_t{ranks[r].rank},
                                   ranks[r].gpu < 0 ? TableCell() : TableCell(std::int64_t{ranks[r].gpu}),
                                   ranks[r].window};
        for (std::size_t s = 0; s < deviceStateCount;
             ++s) { // what of a graph computes and what communicates is unknown
            const auto state = static_cast<DeviceState>(s);
            const bool split = state == DeviceState::Computing || state == DeviceState::Collective ||
                               state == DeviceState::SendReceive;
            row.push_back(split && ranks[r].wholeGraphs ? TableCell() : TableCell(ranks[r].time[s]));
        }
        row.emplace_back(ranks[r].lateLaunches);
        row.emplace_back(ranks[r].longestGap);
        out.rows.push_back(std::move(row));
        out.ops.push_back(ranks[r].longestGapBefore);
    }
    out.sentence = deviceIdleSentence(ranks);
    return out;
}

} // namespace

extern const AnalysisInfo device_idle;
const AnalysisInfo device_idle{"device_idle",
                               "Why devices do not compute",
                               deviceIdleColumns,
                               unknownWithoutKernels,
                               deviceIdleRows,
                               false,
                               ReportPart::Device,
                               {},
                               true};

} // namespace analyses

} // namespace stagewright
