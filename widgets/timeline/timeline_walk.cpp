// Walking from op to op: along a rank, across stages, along dependencies.
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

void TimelineView::choose(SpanRef ref)
{
    m_state->select(ref);
    ensureVisible(ref);
}

void TimelineView::walkOnRank(int by)
{
    if (m_scene.panels.empty()) return;
    const SpanRef from = m_state->selected();
    if (!m_scene.rectOf(from)) { // nothing selected: start at the first op in view
        for (std::size_t p = 0; p < m_scene.panels.size(); ++p) {
            for (const PanelRank& rank : m_scene.panels[p]->ranks) {
                const LaneData& lane =
                    rank.compute.size() == 0 && !rank.lanes.empty() ? rank.lanes.front().data : rank.compute;
                const std::size_t at = lane.firstBeginningAt(m_scene.axis.range.begin);
                if (at >= lane.size()) continue;
                if (lane.spanOf(at) == noSpan)
                    return emit sliceAsked(static_cast<int>(p), rank.rank, lane.slices()[at].begin());
                return choose({static_cast<int>(p), lane.spanOf(at)});
            }
        }
        return;
    }
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(from.panel)];
    const PanelRank& rank = panel.ranks[static_cast<std::size_t>(panel.timeline->trackOf(from.span).rank)];
    const LaneData* lane = &rank.compute; // or its lane of transfers or kernels
    for (const LaneData& one : rank.communication)
        if (one.sliceOf(from.span) < one.size()) lane = &one;
    for (const PanelLane& one : rank.lanes)
        if (one.data.sliceOf(from.span) < one.data.size()) lane = &one.data;
    const std::size_t at = lane->sliceOf(from.span);
    if (at >= lane->size()) return;
    if ((by < 0 && at == 0) || (by > 0 && at + 1 >= lane->size())) return;
    const std::size_t next = by < 0 ? at - 1 : at + 1;
    if (lane->spanOf(next) == noSpan)
        emit sliceAsked(from.panel, rank.rank, lane->slices()[next].begin());
    else
        choose({from.panel, lane->spanOf(next)});
}

void TimelineView::walkStage(int by)
{
    const SpanRef from = m_state->selected();
    if (!m_scene.rectOf(from)) return walkOnRank(1);
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(from.panel)];
    const Span& span = panel.timeline->spans()[from.span];
    const int stage = span.op.stage + by;
    for (const PanelRank& rank : panel.ranks) {
        const Track* track = panel.timeline->trackOf(rank.rank, Lane::Compute);
        if (track == nullptr) continue;
        const auto [first, last] = panel.timeline->stepRange(*track, span.step);
        for (SpanId id = first; id < last; ++id) {
            const Span& other = panel.timeline->spans()[id];
            const bool same = other.op.kind == span.op.kind && other.op.microbatch == span.op.microbatch &&
                              other.op.slice == span.op.slice;
            if (same && other.op.stage == stage && other.step == span.step) return choose({from.panel, id});
        }
    }
}

void TimelineView::walkDependency(bool forward)
{
    const SpanRef from = m_state->selected();
    if (!m_scene.rectOf(from)) return walkOnRank(1);
    const Timeline& timeline = *m_scene.panels[static_cast<std::size_t>(from.panel)]->timeline;
    SpanId best = noSpan;
    Nanos at = 0;
    const auto consider = [&](SpanId id, Nanos time, bool better) {
        if (id == from.span || !m_scene.rectOf({from.panel, id})) return;
        if (best == noSpan || better) {
            best = id;
            at = time;
        }
    };
    if (forward) { // the first it unblocks
        for (const Edge& edge : timeline.edgesFrom(from.span))
            consider(edge.to, timeline.spans()[edge.to].start, timeline.spans()[edge.to].start < at);
    } else { // the last it waited for
        for (const Edge& edge : timeline.edgesInto(from.span)) consider(edge.from, edge.arrival, edge.arrival > at);
    }
    if (best != noSpan) choose({from.panel, best});
}

} // namespace stagewright
