#include "traces/import/timeline_ranges.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>

namespace stagewright {

namespace {

constexpr std::string_view deviceSuffix = " on the device"; // run_timeline.cpp

} // namespace

bool isRangeTrack(const Track& track) { return track.lane == Lane::Other && !track.name.ends_with(deviceSuffix); }

TimelineRanges rangesOf(const Timeline& timeline)
{
    TimelineRanges out;
    out.ranks.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    std::vector<std::map<std::string, std::uint32_t>> threads(out.ranks.size());
    const auto threadOf = [&](const Track& track, std::string_view name, bool device) {
        ForeignRank& rank = out.ranks[static_cast<std::size_t>(track.rank)];
        const auto [found, added] = threads[static_cast<std::size_t>(track.rank)].try_emplace(
            std::string(name), static_cast<std::uint32_t>(rank.threads.size()));
        if (added) rank.threads.push_back({std::string(name), device});
        return found->second;
    };
    for (std::size_t r = 0; r < out.ranks.size(); ++r) out.ranks[r].rank = static_cast<int>(r);
    for (const Track& track : timeline.tracks()) {
        ForeignRank& rank = out.ranks[static_cast<std::size_t>(track.rank)];
        if (track.lane == Lane::Send && track.end > track.begin) out.messages = true;
        const bool work = isDeviceLane(track.lane);
        if (!work && !isRangeTrack(track)) continue;
        const std::uint32_t thread = threadOf(track, track.name, work);
        for (SpanId id = track.begin; id < track.end; ++id) {
            const Span& span = timeline.spans()[id];
            const ForeignSpan seen{span.start, span.end, rank.names.idOf(timeline.nameOf(span)), thread};
            if (!work) {
                rank.annotations.push_back(seen);
                continue;
            }
            DeviceSpan device{seen, -1, track.lane == Lane::Copy, false};
            for (const Edge& edge : timeline.edgesInto(id)) {
                if (edge.kind != EdgeKind::Launch || edge.from == id || edge.from == noSpan) continue;
                const Track& from = timeline.trackOf(edge.from);
                if (!from.name.ends_with(deviceSuffix) || from.rank != track.rank) continue;
                device.launched = edge.arrival;
                device.launchedFrom = threadOf(
                    from, std::string_view(from.name).substr(0, from.name.size() - deviceSuffix.size()), false);
                break;
            }
            rank.device.push_back(device);
        }
    }
    if (timeline.steps() < 2) return out;
    // by rank and step: of the host's ranges, which a device may follow later
    std::map<std::pair<int, int>, std::pair<Nanos, Nanos>> bounds;
    for (const Track& track : timeline.tracks()) {
        if (!isRangeTrack(track)) continue;
        for (const Span& span : timeline.spansOf(track)) {
            auto& [begin, end] = bounds.try_emplace({track.rank, span.step}, span.start, span.end).first->second;
            begin = std::min(begin, span.start);
            end = std::max(end, span.end);
        }
    }
    for (const StepMark& whole : timeline.stepMarks()) { // as the trace marked them
        StepMark mark = whole;
        if (const auto found = bounds.find({mark.rank, mark.step}); found != bounds.end())
            std::tie(mark.begin, mark.end) = found->second;
        ForeignRank& rank = out.ranks[static_cast<std::size_t>(mark.rank)];
        if (rank.threads.empty() || rank.threads.back().name != "steps") rank.threads.push_back({"steps", false});
        rank.annotations.push_back({mark.begin, mark.end, rank.names.idOf("ProfilerStep#" + std::to_string(mark.step)),
                                    static_cast<std::uint32_t>(rank.threads.size() - 1)});
    }
    return out;
}

} // namespace stagewright
