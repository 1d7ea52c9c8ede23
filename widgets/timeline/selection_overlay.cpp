#include "widgets/timeline/selection_overlay.h"

#include <algorithm>
#include <cmath>

#include "widgets/timeline/arrows.h"
#include "widgets/timeline/row_cursor.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr double edgeReach = 4; // px around an area's edge
constexpr double snapReach = 6;

void paintAreas(QPainter& p, const TimelineScene& scene, const Theme& theme, bool pinned)
{
    for (const AreaSelection& area : scene.areas) {
        for (const QRectF& rect : scene.rectsOf(area, pinned)) {
            QColor tint = theme.accent;
            tint.setAlphaF(theme.dark ? 0.22f : 0.14f);
            p.fillRect(rect, tint);
            p.setPen(QPen(theme.accent, 1.5));
            p.setBrush(Qt::NoBrush);
            p.drawRect(rect);
            p.setPen(Qt::NoPen);
            p.setBrush(theme.accent);
            for (const double x : {rect.left(), rect.right()})
                p.drawRoundedRect(QRectF(x - 2, rect.center().y() - 9, 4, 18), 2, 2);
        }
    }
}

// Outlines every slice of the microbatch in view. Rows with thousands of slices in view are skipped: nothing would be
// visible.
void paintMicrobatch(QPainter& p, const TimelineScene& scene, const Theme& theme, bool pinned)
{
    if (!scene.microbatch.valid()) return;
    p.setBrush(Qt::NoBrush);
    for (const int row : scene.visibleRows()) {
        const RowPlace& place = scene.place(row);
        if ((row < scene.rows.pinned) != pinned || place.kind == RowKind::Group || place.height < 6) continue;
        const TimelinePanel& panel = scene.panel(place.panel);
        const LaneData& lane = panel.ranks[static_cast<std::size_t>(place.rankIndex)].compute;
        const std::size_t from = lane.firstEndingAfter(scene.axis.range.begin),
                          to = lane.firstBeginningAt(scene.axis.range.end);
        if (to < from || to - from > 5000) continue;
        for (std::size_t i = from; i < to; ++i) {
            const Slice& slice = lane.slices()[i];
            if (slice.microbatchOr(-1) != scene.microbatch.microbatch) continue;
            const SpanId id = lane.spanOf(i);
            const int step = (id == noSpan ? panel.stepNumberAt(slice.begin()) : panel.timeline->spans()[id].step) -
                             std::max(0, panel.step);
            if (scene.microbatch.step >= 0 && step != scene.microbatch.step) continue;
            const TimeSpan drawn = lane.drawn(i);
            const double x0 = scene.axis.toX(drawn.begin), x1 = scene.axis.toX(drawn.end);
            const bool half = slice.upper != 0 || slice.lower != 0;
            const double height = place.height / (half ? 2 : 1);
            const QRectF rect(x0, scene.rowTop(row) + (slice.lower != 0 ? height : 0), std::max(1.0, x1 - x0), height);
            p.setPen(QPen(theme.canvas, 3.5));
            p.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
            p.setPen(QPen(theme.text, 1.5));
            p.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
        }
    }
}

void paintDependencies(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    constexpr std::size_t most = 64;
    const auto selected = scene.rectOf(scene.selected);
    if (!selected) return;
    const Timeline& timeline = *scene.panel(scene.selected.panel).timeline;
    const auto place = [&](SpanId id) { return scene.rectOf({scene.selected.panel, id}); };
    std::size_t drawn = 0;
    for (const Edge& edge : timeline.edgesFrom(scene.selected.span)) {
        if (edge.to == edge.from) continue; // says only when it was launched
        const auto to = place(edge.to);
        if (to && drawn++ < most) paintDependency(p, *selected, *to, theme.better, theme.canvas);
    }
    drawn = 0;
    for (const Edge& edge : timeline.edgesInto(scene.selected.span)) {
        if (edge.to == edge.from) continue;
        const auto from = place(edge.from);
        if (from && drawn++ < most) paintDependency(p, *from, *selected, theme.critical, theme.canvas);
    }
}

void paintSelected(QPainter& p, const TimelineScene& scene, const Theme& theme)
{
    const auto rect = scene.rectOf(scene.selected);
    if (!rect) return;
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(theme.canvas, 5));
    if (scene.isCovered(*rect, scene.selected)) return;
    const QRectF outer = QRectF(rect->left(), rect->top(), std::max(2.0, rect->width()), rect->height());
    p.drawRoundedRect(outer.adjusted(-0.5, -0.5, 0.5, 0.5), 3, 3);
    p.setPen(QPen(theme.text, 2));
    p.drawRoundedRect(outer.adjusted(-1, -1, 1, 1), 3.5, 3.5);
}

} // namespace

void SelectionOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    for (const bool pinned : {false, true}) {
        if (pinned && scene.rows.pinned == 0) continue;
        painter.save();
        painter.setClipRect(pinned ? scene.pinnedRect() : scene.scrolledRect(), Qt::IntersectClip);
        paintAreas(painter, scene, theme, pinned);
        paintMicrobatch(painter, scene, theme, pinned);
        painter.restore();
    }
    paintSelected(painter, scene, theme);
    paintDependencies(painter, scene, theme);
}

Aggregation SelectionOverlay::aggregation() const
{
    const TimelineScene& scene = view()->scene();
    return aggregate(scene.panels, state().areas(), scene.rows.plan.get());
}

// --- the pointer ----------------------------------------------------------------------------------------------------

Nanos SelectionOverlay::snapped(double x, int first, int last) const
{
    const TimelineScene& scene = view()->scene();
    const Nanos time = scene.axis.toTime(x);
    double best = snapReach * scene.axis.nanosPerPixel();
    Nanos found = time;
    const auto consider = [&](Nanos edge) {
        const double distance = std::abs(static_cast<double>(edge - time));
        if (distance <= best) {
            best = distance;
            found = edge;
        }
    };
    const auto& ranks = scene.rows.plan->rankAt;
    for (int at = std::max(0, first); at <= std::min(last, static_cast<int>(ranks.size()) - 1); ++at) {
        const auto [panel, rankIndex] = ranks[static_cast<std::size_t>(at)];
        const LaneData& lane = scene.panel(panel).ranks[static_cast<std::size_t>(rankIndex)].compute;
        const std::size_t next = lane.firstEndingAfter(time);
        for (std::size_t i = next > 0 ? next - 1 : 0; i < std::min(lane.size(), next + 2); ++i) {
            consider(lane.slices()[i].begin());
            consider(lane.slices()[i].end());
        }
    }
    return found;
}

AreaSelection SelectionOverlay::areaBetween(QPointF a, QPointF b) const
{
    const TimelineScene& scene = view()->scene();
    AreaSelection area;
    const RowPlace& first = scene.place(scene.nearestRow(a.y()));
    const RowPlace& last = scene.place(scene.nearestRow(b.y()));
    area.firstRow = std::min(first.firstPosition, last.firstPosition);
    area.lastRow = std::max(first.lastPosition, last.lastPosition);
    const double left = scene.axis.left, right = left + scene.axis.width;
    // each end to the ops of its own row
    const Nanos t1 = snapped(std::clamp(a.x(), left, right), first.firstPosition, first.lastPosition);
    const Nanos t2 = snapped(std::clamp(b.x(), left, right), last.firstPosition, last.lastPosition);
    area.range = {std::min(t1, t2), std::max(t1, t2)};
    return area;
}

std::optional<OverlayHit> SelectionOverlay::edgeAt(QPointF at)
{
    const TimelineScene& scene = view()->scene();
    const auto& areas = state().areas();
    const bool pinned = scene.rows.pinned > 0 && scene.pinnedRect().contains(at);
    for (std::size_t i = areas.size(); i-- > 0;) {
        const auto rects = scene.rectsOf(areas[i], pinned);
        if (std::none_of(rects.begin(), rects.end(),
                         [&](const QRectF& rect) { return at.y() >= rect.top() && at.y() <= rect.bottom(); }))
            continue;
        const auto [begin, end] = areas[i].range;
        const bool movesEnd = std::abs(at.x() - scene.axis.toX(end)) <= edgeReach;
        if (!movesEnd && std::abs(at.x() - scene.axis.toX(begin)) > edgeReach) continue;
        OverlayHit hit;
        hit.cursor = Qt::SizeHorCursor;
        hit.held = Qt::SizeHorCursor;
        hit.atOnce = true;
        hit.drag = [this, before = areas, i, other = movesEnd ? begin : end](QPointF to) {
            const Axis& axis = view()->scene().axis;
            std::vector<AreaSelection> moved = before;
            const double x = std::clamp(to.x(), axis.left, axis.left + axis.width);
            const Nanos time = snapped(x, moved[i].firstRow, moved[i].lastRow);
            moved[i].range = {std::min(time, other), std::max(time, other)};
            state().setAreas(std::move(moved));
        };
        hit.cancel = [this, before = areas] { state().setAreas(before); };
        return hit;
    }
    return std::nullopt;
}

void SelectionOverlay::clicked(QPointF at, bool adds)
{
    const TimelineScene& scene = view()->scene();
    if (const SpanRef ref = scene.spanAt(at); ref.valid()) return state().select(ref);
    if (adds) return;
    state().clearSelection();
    const int row = scene.rowUnder(at.y());
    if (row < 0 || at.x() < scene.axis.left || scene.place(row).kind == RowKind::Group) return;
    emit idleClicked(scene.place(row).panel, scene.rankOf(scene.place(row)).rank, scene.axis.toTime(at.x()));
}

std::optional<OverlayHit> SelectionOverlay::hit(const OverlayPress& press)
{
    if (press.hovers() || press.button == Qt::LeftButton)
        if (auto edge = edgeAt(press.at)) return edge;
    if (press.button != Qt::LeftButton || press.at.x() < gutterFor(view()->width()) - 12) return std::nullopt;
    const bool adds = (press.modifiers & Qt::ControlModifier) != 0;
    OverlayHit hit;
    hit.click = [this, at = press.at, adds] { clicked(at, adds); };
    if (press.at.x() < view()->scene().axis.left || view()->scene().rows.rows.empty()) return hit;
    hit.drag = [this, from = press.at, before = state().areas(), adds](QPointF to) {
        std::vector<AreaSelection> areas;
        if (adds) areas = before;
        areas.push_back(areaBetween(from, to));
        state().setAreas(std::move(areas));
    };
    hit.cancel = [this, before = state().areas()] { state().setAreas(before); };
    return hit;
}

// --- keys -----------------------------------------------------------------------------------------------------------

bool SelectionOverlay::key(ViewAction action, bool asked)
{
    const auto obey = [asked](auto what) {
        if (!asked) what();
        return true;
    };
    switch (action) {
    case ViewAction::FitSelection: return obey([&] { fit(); });
    case ViewAction::PreviousOp: return obey([&] { walkOnRank(-1); });
    case ViewAction::NextOp: return obey([&] { walkOnRank(1); });
    case ViewAction::PreviousStage: return obey([&] { walkStage(-1); });
    case ViewAction::NextStage: return obey([&] { walkStage(1); });
    case ViewAction::PreviousDependency: return obey([&] { walkDependency(false); });
    case ViewAction::NextDependency: return obey([&] { walkDependency(true); });
    case ViewAction::Cancel:
        return (state().selected().valid() || !state().areas().empty()) && obey([&] { state().clearSelection(); });
    default: return false;
    }
}

void SelectionOverlay::fitTo(SpanRef ref)
{
    const TimelineScene& scene = view()->scene();
    if (!scene.rectOf(ref)) return;
    const TimelinePanel& panel = scene.panel(ref.panel);
    const Span& span = panel.timeline->spans()[ref.span];
    const Nanos margin = std::max<Nanos>(span.duration(), 10);
    state().setVisible({panel.toAxis(span.start) - margin, panel.toAxis(span.end) + margin});
    show(ref);
}

void SelectionOverlay::fit()
{
    const TimelineScene& scene = view()->scene();
    std::optional<TimeRange> wanted = state().selectedRange();
    const SpanRef selected = state().selected();
    if (!wanted && scene.rectOf(selected)) {
        const TimelinePanel& panel = scene.panel(selected.panel);
        const Span& span = panel.timeline->spans()[selected.span];
        wanted = TimeRange{panel.toAxis(span.start), panel.toAxis(span.end)};
    }
    if (!wanted) return state().fitAll();
    const TimeRange before = state().visible();
    state().fit(*wanted);
    if (state().visible() == before) state().fitAll(); // F again
}

void SelectionOverlay::show(SpanRef ref)
{
    const TimelineScene& scene = view()->scene();
    if (ref.valid() && ref.panel < static_cast<int>(scene.panels.size())) { // out of a folded group
        const int row = scene.rowOf(ref.panel, scene.rankNumber(ref));
        if (row >= 0 && scene.place(row).kind == RowKind::Group) toggleGroup(state(), scene, row);
    }
    const auto rect = scene.rectOf(ref);
    if (!rect) return;
    const Axis& axis = scene.axis;
    const double left = axis.left, right = axis.left + axis.width;
    if (rect->right() < left || rect->left() > right ||
        (rect->width() < axis.width && (rect->left() < left || rect->right() > right))) {
        const TimeRange range = state().visible();
        const Nanos middle = axis.toTime(rect->center().x());
        state().setVisible({middle - range.duration() / 2, middle - range.duration() / 2 + range.duration()}, false);
    }
    if (scene.rowOf(ref.panel, scene.rankNumber(ref)) >= scene.rows.pinned) {
        view()->showRows(rect->top(), rect->bottom());
    }
}

void SelectionOverlay::showRank(int panel, int rank)
{
    const TimelineScene& scene = view()->scene();
    const int row = scene.rowOf(panel, rank);
    if (row >= scene.rows.pinned) view()->showRows(scene.rowTop(row), scene.rowTop(row) + scene.place(row).height);
}

void SelectionOverlay::choose(SpanRef ref)
{
    state().select(ref);
    show(ref);
}

void SelectionOverlay::walkOnRank(int by)
{
    const TimelineScene& scene = view()->scene();
    if (scene.panels.empty()) return;
    const SpanRef from = state().selected();
    if (!scene.rectOf(from)) { // nothing selected: start at the first op in view
        for (std::size_t p = 0; p < scene.panels.size(); ++p) {
            for (const PanelRank& rank : scene.panels[p]->ranks) {
                const LaneData& lane =
                    rank.compute.size() == 0 && !rank.lanes.empty() ? rank.lanes.front().data : rank.compute;
                const std::size_t at = lane.firstBeginningAt(scene.axis.range.begin);
                if (at >= lane.size()) continue;
                if (lane.spanOf(at) == noSpan)
                    return emit sliceAsked(static_cast<int>(p), rank.rank, lane.slices()[at].begin());
                return choose({static_cast<int>(p), lane.spanOf(at)});
            }
        }
        return;
    }
    const TimelinePanel& panel = scene.panel(from.panel);
    const PanelRank& rank = panel.ranks[static_cast<std::size_t>(scene.rankNumber(from))];
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

void SelectionOverlay::walkStage(int by)
{
    const TimelineScene& scene = view()->scene();
    const SpanRef from = state().selected();
    if (!scene.rectOf(from)) return walkOnRank(1);
    const TimelinePanel& panel = scene.panel(from.panel);
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

void SelectionOverlay::walkDependency(bool forward)
{
    const TimelineScene& scene = view()->scene();
    const SpanRef from = state().selected();
    if (!scene.rectOf(from)) return walkOnRank(1);
    const Timeline& timeline = *scene.panel(from.panel).timeline;
    SpanId best = noSpan;
    Nanos at = 0;
    const auto consider = [&](SpanId id, Nanos time, bool better) {
        if (id == from.span || !scene.rectOf({from.panel, id})) return;
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
