#include "widgets/timeline/list_place.h"

#include <algorithm>
#include <map>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

struct Placed {
    SpanId span;
    int place;
};

// The ops of one rank and step with their places in the list, by place.
std::vector<Placed> placesOf(const TimelinePanel& panel, int rank, int step)
{
    const Timeline& timeline = *panel.timeline;
    const auto& list = timeline.schedule()->order[static_cast<std::size_t>(rank)];
    std::map<Op, std::vector<int>> wanted;
    for (std::size_t i = list.size(); i-- > 0;) wanted[list[i]].push_back(static_cast<int>(i)); // the first one last
    std::vector<Placed> out;
    for (const Track& track : timeline.tracks()) {
        if (track.rank != rank || !isListLane(track.lane)) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step || (span.flags & SpanDiscarded) != 0) continue;
            const auto found = wanted.find(span.op);
            if (found == wanted.end() || found->second.empty()) continue;
            out.push_back({id, found->second.back()});
            found->second.pop_back();
        }
    }
    std::sort(out.begin(), out.end(), [](const Placed& a, const Placed& b) { return a.place < b.place; });
    return out;
}

} // namespace

bool hasListPlaces(const TimelinePanel& panel, int rank)
{
    const Schedule* schedule = panel.timeline->schedule().get();
    if (schedule == nullptr || rank < 0 || static_cast<std::size_t>(rank) >= schedule->order.size()) return false;
    return std::ranges::any_of(panel.timeline->tracks(),
                               [rank](const Track& track) { return track.rank == rank && isBesideLane(track.lane); });
}

int listPlaceOf(const TimelinePanel& panel, SpanId span)
{
    const Track& track = panel.timeline->trackOf(span);
    if (!isListLane(track.lane)) return -1;
    for (const Placed& one : placesOf(panel, track.rank, panel.timeline->spans()[span].step))
        if (one.span == span) return one.place;
    return -1;
}

int listPlaceAt(const TimelinePanel& panel, int rank, Nanos axisTime, SpanId dragged)
{
    const auto spans = panel.timeline->spans();
    const int step = dragged != noSpan ? spans[dragged].step : std::max(0, panel.step);
    const Lane lane = dragged != noSpan ? panel.timeline->trackOf(dragged).lane : Lane::Compute;
    int after = 0, skipped = 0; // behind the last candidate; 1 once the dragged op was passed
    for (const Placed& one : placesOf(panel, rank, step)) {
        if (one.span == dragged) {
            skipped = 1;
            continue;
        }
        const Lane of = panel.timeline->trackOf(one.span).lane;
        // the optimizer ends the list
        const bool candidate = of == Lane::Compute ? ruleOf(spans[one.span].op.kind).computeOnly : of == lane;
        if (!candidate) continue;
        if (panel.toAxis((spans[one.span].start + spans[one.span].end) / 2) >= axisTime) return one.place - skipped;
        after = one.place + 1 - skipped;
    }
    return after;
}

} // namespace stagewright
