#include "widgets/playback/beats.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace stagewright {
namespace {

constexpr std::size_t longestRound = 64; // beats that a repeated pattern may have

struct Begin {
    Nanos time;
    SpanRef ref;
};

std::vector<Begin> beginsOf(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    std::vector<Begin> begins;
    for (std::size_t p = 0; p < panels.size(); ++p) {
        const TimelinePanel& panel = *panels[p];
        for (const PanelRank& rank : panel.ranks)
            for (std::size_t i = rank.compute.idsBegin(); i < rank.compute.idsEnd(); ++i)
                begins.push_back({rank.compute.slices()[i].begin(), {static_cast<int>(p), rank.compute.spanOf(i)}});
    }
    std::stable_sort(begins.begin(), begins.end(), [](const Begin& a, const Begin& b) { return a.time < b.time; });
    return begins;
}

Nanos medianOf(std::vector<Nanos> values)
{
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// Beats at which something is worth stopping for, beside the firsts.
void markMoments(Beats& all, const std::vector<std::shared_ptr<const TimelinePanel>>& panels, Nanos median)
{
    auto mark = [&](Nanos time) {
        const int at = all.at(time);
        if (at >= 0) all.beats[static_cast<std::size_t>(at)].interesting = true;
    };
    for (const auto& panel : panels) {
        for (const PanelRank& rank : panel->ranks) {
            const auto& slices = rank.compute.slices();
            Nanos busyUntil = 0;
            for (const Slice& slice : slices) {
                if (slice.begin() - busyUntil >= median / 2 && median > 0) {
                    mark(busyUntil);
                    mark(slice.begin());
                }
                busyUntil = std::max(busyUntil, slice.end());
            }
            if (slices.empty()) continue;
            mark(slices.back().begin());
            const auto forward = std::find_if(slices.rbegin(), slices.rend(), [](const Slice& s) { return s.opKind() == OpKind::Forward; });
            if (forward != slices.rend()) mark(forward->begin());
            if (rank.activations.peak > 0) mark(panel->toAxis(rank.activations.peakTime));
        }
    }
}

// A round is a run of beats that start the same kinds on the same ranks at the same distances, seen twice in a row before.
void markRounds(Beats& all, const std::vector<std::shared_ptr<const TimelinePanel>>& panels, Nanos tolerance)
{
    struct Sign {
        std::vector<std::tuple<int, int, OpKind>> ops; // panel, rank, kind
        Nanos distance = 0;                            // from the beat before
    };
    std::vector<Sign> signs(all.beats.size());
    for (std::size_t i = 0; i < all.beats.size(); ++i) {
        const Beat& beat = all.beats[i];
        signs[i].distance = i == 0 ? 0 : beat.time - all.beats[i - 1].time;
        for (std::uint32_t k = beat.first; k < beat.last; ++k) {
            const SpanRef ref = all.ops[k];
            const Timeline& timeline = *panels[static_cast<std::size_t>(ref.panel)]->timeline;
            signs[i].ops.emplace_back(ref.panel, timeline.trackOf(ref.span).rank, timeline.spans()[ref.span].op.kind);
        }
        std::sort(signs[i].ops.begin(), signs[i].ops.end());
    }
    auto same = [&](std::size_t a, std::size_t b) { return std::abs(signs[a].distance - signs[b].distance) <= tolerance && signs[a].ops == signs[b].ops; };
    std::vector<std::size_t> matched(longestRound + 1, 0); // beats in a row that equal the one a round before
    std::vector<std::size_t> period(all.beats.size(), 0);
    for (std::size_t i = 0; i < all.beats.size(); ++i)
        for (std::size_t p = 1; p <= longestRound; ++p) {
            matched[p] = i >= p && same(i, i - p) ? matched[p] + 1 : 0;
            if (period[i] == 0 && matched[p] > p && matched[p] > 1) period[i] = p;
        }
    for (std::size_t i = 0; i < period.size(); ++i) {
        if (period[i] == 0) continue;
        std::size_t last = i;
        while (last + 1 < period.size() && period[last + 1] == period[i]) ++last;
        for (std::size_t k = i; k <= last; ++k) {
            Beat& beat = all.beats[k];
            if (!beat.isFirst) beat.rounds = static_cast<int>((last - k) / period[i]);
        }
        if (last + 1 < period.size()) all.beats[last + 1].interesting = true;
        i = last;
    }
}

void collectParcels(Beats& all, const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    for (std::size_t p = 0; p < panels.size(); ++p) {
        const TimelinePanel& panel = *panels[p];
        const Timeline& timeline = *panel.timeline;
        std::vector<int> row(static_cast<std::size_t>(timeline.ranks()), -1);
        for (std::size_t i = 0; i < panel.ranks.size(); ++i)
            row[static_cast<std::size_t>(panel.ranks[i].rank)] = static_cast<int>(i);
        for (const Edge& edge : timeline.edges()) {
            if (edge.kind != EdgeKind::Data) continue;
            const Span& from = timeline.spans()[edge.from];
            const Span& to = timeline.spans()[edge.to];
            if (panel.step >= 0 && to.step != panel.step) continue;
            const Track &sender = timeline.trackOf(edge.from), &receiver = timeline.trackOf(edge.to);
            if (sender.rank == receiver.rank || sender.lane != Lane::Compute || receiver.lane != Lane::Compute) continue;
            const int a = row[static_cast<std::size_t>(sender.rank)], b = row[static_cast<std::size_t>(receiver.rank)];
            if (a < 0 || b < 0) continue;
            all.parcels.push_back({static_cast<int>(p), a, b, from.op.microbatch, from.op.kind, panel.toAxis(from.end), panel.toAxis(edge.arrival),
                                   panel.toAxis(std::max(to.start, edge.arrival))});
        }
    }
    std::stable_sort(all.parcels.begin(), all.parcels.end(), [](const Parcel& a, const Parcel& b) { return a.sent < b.sent; });
}

} // namespace

int Beats::at(Nanos time) const
{
    const auto after = std::upper_bound(beats.begin(), beats.end(), time, [](Nanos t, const Beat& beat) { return t < beat.time; });
    return static_cast<int>(after - beats.begin()) - 1;
}

std::shared_ptr<const Beats> makeBeats(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    auto all = std::make_shared<Beats>();
    std::vector<Nanos> lengths, forwards;
    for (const auto& panel : panels) {
        all->end = std::max(all->end, panel->duration);
        for (const PanelRank& rank : panel->ranks)
            for (const Slice& slice : rank.compute.slices()) {
                lengths.push_back(slice.end() - slice.begin());
                if (slice.opKind() == OpKind::Forward) forwards.push_back(lengths.back());
            }
    }
    const Nanos median = medianOf(lengths);
    const Nanos share = panels.empty() ? 1 : panels.front()->units.time;
    all->unit = std::max<Nanos>(1, share > 1 ? share : forwards.empty() ? median : medianOf(forwards));

    std::set<std::tuple<int, int, OpKind>> seen; // panel, rank, kind
    for (const Begin& begin : beginsOf(panels)) {
        if (all->beats.empty() || begin.time - all->beats.back().time > median / 100) {
            Beat& fresh = all->beats.emplace_back();
            fresh.time = begin.time;
            fresh.first = static_cast<std::uint32_t>(all->ops.size());
        }
        all->ops.push_back(begin.ref);
        Beat& beat = all->beats.back();
        beat.last = static_cast<std::uint32_t>(all->ops.size());
        const Timeline& timeline = *panels[static_cast<std::size_t>(begin.ref.panel)]->timeline;
        if (seen.emplace(begin.ref.panel, timeline.trackOf(begin.ref.span).rank, timeline.spans()[begin.ref.span].op.kind).second)
            beat.isFirst = beat.interesting = true;
    }
    if (all->beats.empty()) return all;
    all->beats.back().interesting = true;
    markMoments(*all, panels, median);
    markRounds(*all, panels, std::max<Nanos>(1, median / 100));
    collectParcels(*all, panels);
    return all;
}

} // namespace stagewright
