#include "traces/analysis/device_time.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"

namespace stagewright {

namespace {

enum Part : std::size_t {
    Computing,
    Communicating,
    Copying,
};

} // namespace

std::vector<RankDeviceTime> analyseDeviceTime(const Timeline& timeline, int step)
{
    const auto ranks = static_cast<std::size_t>(std::max(0, timeline.ranks()));
    std::vector<RankDeviceTime> out(ranks);
    struct Covered {
        std::array<Coverage, 3> of; // by Part
        Coverage kernels;
        Coverage all;
    };
    std::vector<Covered> covered(ranks);
    KernelClasses classes;
    eachDeviceSpan(timeline, step, [&](const Track& track, SpanId, const Span& span) {
        const auto r = static_cast<std::size_t>(track.rank);
        const Part of = track.lane == Lane::Copy ? Copying : isCommunication(classes.of(timeline, track, span)) ? Communicating
                                                                                                                : Computing;
        covered[r].of[of].add(span.start, span.end);
        if (of != Copying) covered[r].kernels.add(span.start, span.end);
        covered[r].all.add(span.start, span.end);
        RankDeviceTime& rank = out[r];
        rank.first = rank.calls == 0 ? span.start : std::min(rank.first, span.start);
        rank.last = rank.calls == 0 ? span.end : std::max(rank.last, span.end);
        ++rank.calls;
    });
    for (std::size_t r = 0; r < ranks; ++r) {
        out[r].computing = covered[r].of[Computing].total();
        out[r].communicating = covered[r].of[Communicating].total();
        out[r].copying = covered[r].of[Copying].total();
        out[r].busy = covered[r].all.total();
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
    }
    if (window <= 0) return {};
    const auto share = [window](Nanos time) { return formatPercent(static_cast<double>(time) / static_cast<double>(window)); };
    const bool one = devices == 1;
    const std::string exposed = sum.communicating == 0 ? std::string() : fmt::format(" ({} exposed)", share(sum.exposed()));
    return fmt::format("{} {}, {} {}{}, {} idle {} of {}{}", one ? "the device computes" : "devices compute", share(sum.computing), one ? "communicates" : "communicate", share(sum.communicating),
                       exposed, one ? "is" : "are", share(window - sum.busy), formatDuration(window / devices), one ? "" : " on average");
}

namespace analyses {

namespace {

std::vector<AnalysisColumn> deviceTimeColumns()
{
    return {{"rank", "Rank", ColumnKind::Whole},
            {"window_ns", "First to last", ColumnKind::Time, "From the start of the step's first kernel or copy to the end of the last."},
            {"computing_ns", "Computing", ColumnKind::Time, "A kernel runs whose class is not communication."},
            {"communicating_ns", "Communicating", ColumnKind::Time, "A kernel runs whose class is collective or send, receive."},
            {"copying_ns", "Copying", ColumnKind::Time, "A copy or a fill runs."},
            {"hidden_ns", "Hidden", ColumnKind::Time, "Communicating while computing."},
            {"exposed_ns", "Exposed", ColumnKind::Time, "Communicating while nothing computes."},
            {"idle_ns", "Idle", ColumnKind::Time, "Nothing runs."},
            {"calls", "Kernels and copies", ColumnKind::Count}};
}

Result<AnalysisRows> deviceTimeRows(const Run& run, int step)
{
    const auto ranks = analyseDeviceTime(*run.timeline, step);
    AnalysisRows out;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        const RankDeviceTime& rank = ranks[r];
        out.rows.push_back({static_cast<std::int64_t>(r), rank.window(), rank.computing, rank.communicating, rank.copying, rank.hidden, rank.exposed(), rank.idle(), rank.calls});
    }
    out.sentence = deviceTimeSentence(ranks);
    return out;
}

} // namespace

extern const AnalysisInfo device_time;
const AnalysisInfo device_time{"device_time", "Device time", deviceTimeColumns, unknownWithoutKernels, deviceTimeRows, false, ReportPart::Device};

} // namespace analyses

} // namespace stagewright
