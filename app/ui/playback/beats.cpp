#include "app/ui/playback/beats.h"

#include <algorithm>

#include "schedules/base/median.h"
#include "traces/lessons/narrate.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

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
            if (sender.rank == receiver.rank || sender.lane != Lane::Compute || receiver.lane != Lane::Compute)
                continue;
            const int a = row[static_cast<std::size_t>(sender.rank)], b = row[static_cast<std::size_t>(receiver.rank)];
            if (a < 0 || b < 0) continue;
            all.parcels.push_back({static_cast<int>(p), a, b, from.op.microbatch, from.op.kind, panel.toAxis(from.end),
                                   panel.toAxis(edge.arrival), panel.toAxis(std::max(to.start, edge.arrival))});
        }
    }
    std::stable_sort(all.parcels.begin(), all.parcels.end(),
                     [](const Parcel& a, const Parcel& b) { return a.sent < b.sent; });
}

} // namespace

int Beats::at(Nanos time) const
{
    const auto after =
        std::upper_bound(beats.begin(), beats.end(), time, [](Nanos t, const Beat& beat) { return t < beat.time; });
    return static_cast<int>(after - beats.begin()) - 1;
}

std::shared_ptr<const Beats> makeBeats(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                                       std::optional<Bytes> cap)
{
    using lessons::BeatEvent;
    auto all = std::make_shared<Beats>();
    std::vector<Nanos> lengths, forwards;
    for (std::size_t p = 0; p < panels.size(); ++p) {
        const TimelinePanel& panel = *panels[p];
        all->end = std::max(all->end, panel.duration);
        for (const PanelRank& rank : panel.ranks)
            for (const Slice& slice : rank.compute.slices()) {
                lengths.push_back(slice.end() - slice.begin());
                if (isForward(slice.opKind())) forwards.push_back(lengths.back());
            }
        lessons::NarrationOptions options;
        options.memoryCap = cap;
        int repeating = 0;
        for (const lessons::Beat& narrated : lessons::beatsOf(*panel.timeline, std::max(0, panel.step), options)) {
            Beat beat;
            beat.time = std::max<Nanos>(0, panel.toAxis(narrated.time));
            beat.isFirst = narrated.event == BeatEvent::FirstForward || narrated.event == BeatEvent::Arrival ||
                           narrated.event == BeatEvent::FirstBackward || narrated.event == BeatEvent::FirstReturn;
            beat.interesting = narrated.interesting;
            repeating = narrated.event == BeatEvent::SteadySkip ? narrated.skip : repeating - 1;
            beat.repeats = repeating > 0;
            beat.words = QString::fromStdString(narrated.plain);
            if (panels.size() > 1 && !beat.words.isEmpty())
                beat.words.prepend(QString(QChar(static_cast<char16_t>(u'A' + p))) + u": "_s);
            all->beats.push_back(std::move(beat));
        }
    }
    std::stable_sort(all->beats.begin(), all->beats.end(),
                     [](const Beat& a, const Beat& b) { return a.time < b.time; });
    const Nanos median = upperMedian(lengths);
    const Nanos share = panels.empty() ? 1 : panels.front()->units.time;
    all->unit = std::max<Nanos>(1, share > 1 ? share : forwards.empty() ? median : upperMedian(forwards));
    // Moments of several panels that fall together are one.
    std::vector<Beat> merged;
    for (Beat& beat : all->beats) {
        if (merged.empty() || beat.time - merged.back().time > median / 100) {
            merged.push_back(std::move(beat));
            continue;
        }
        Beat& same = merged.back();
        if (!beat.words.isEmpty()) same.words += (same.words.isEmpty() ? QString() : u"  "_s) + beat.words;
        same.isFirst = same.isFirst || beat.isFirst;
        same.interesting = same.interesting || beat.interesting;
        same.repeats = same.repeats && beat.repeats;
    }
    all->beats = std::move(merged);
    if (!all->beats.empty()) collectParcels(*all, panels);
    return all;
}

} // namespace stagewright
