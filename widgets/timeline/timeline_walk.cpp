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
                const std::size_t at = rank.compute.firstBeginningAt(m_scene.axis.range.begin);
                if (at < rank.compute.size()) return choose({static_cast<int>(p), rank.compute.spanOf(at)});
            }
        }
        return;
    }
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(from.panel)];
    const PanelRank& rank = panel.ranks[static_cast<std::size_t>(panel.timeline->trackOf(from.span).rank)];
    const std::size_t at = rank.compute.sliceOf(from.span);
    if (at >= rank.compute.size()) return;
    if ((by < 0 && at == 0) || (by > 0 && at + 1 >= rank.compute.size())) return;
    choose({from.panel, rank.compute.spanOf(by < 0 ? at - 1 : at + 1)});
}

void TimelineView::walkStage(int by)
{
    const SpanRef from = m_state->selected();
    if (!m_scene.rectOf(from)) return walkOnRank(1);
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(from.panel)];
    const Span& span = panel.timeline->spans()[from.span];
    const int stage = span.op.stage + by;
    for (const PanelRank& rank : panel.ranks) {
        for (std::size_t i = 0; i < rank.compute.size(); ++i) {
            const Slice& slice = rank.compute.slices()[i];
            if (slice.opKind() != span.op.kind || slice.microbatchOr(-1) != span.op.microbatch) continue;
            const SpanId id = rank.compute.spanOf(i);
            const Span& other = panel.timeline->spans()[id];
            if (other.op.stage == stage && other.step == span.step && other.op.slice == span.op.slice) return choose({from.panel, id});
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
        if (!m_scene.rectOf({from.panel, id})) return;
        if (best == noSpan || better) {
            best = id;
            at = time;
        }
    };
    if (forward) { // the first it unblocks
        for (const Edge& edge : timeline.edgesFrom(from.span)) consider(edge.to, timeline.spans()[edge.to].start, timeline.spans()[edge.to].start < at);
    } else { // the last it waited for
        for (const Edge& edge : timeline.edgesInto(from.span)) consider(edge.from, edge.arrival, edge.arrival > at);
    }
    if (best != noSpan) choose({from.panel, best});
}

} // namespace stagewright
