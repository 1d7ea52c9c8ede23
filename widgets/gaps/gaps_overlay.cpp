#include "widgets/gaps/gaps_overlay.h"

#include <algorithm>
#include <cmath>

#include "widgets/timeline/arrows.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

QRectF rectOf(const TimelineScene& scene, const GapNote& gap)
{
    const int row = scene.rowOf(0, gap.rank);
    if (row < 0) return {};
    const double low = scene.axis.left, high = scene.axis.left + scene.axis.width + rightMargin;
    const double x0 = std::max(low, scene.axis.toX(gap.range.begin)),
                 x1 = std::min(high, scene.axis.toX(gap.range.end));
    return {x0, scene.rowTop(row), std::max(0.0, x1 - x0), scene.place(row).height};
}

// Ops fade towards the canvas with their slack; rows with thousands of slices in view are skipped: nothing would be
// visible.
void paintSlack(QPainter& p, const TimelineScene& scene, const Theme& theme, const TimelineNotes& notes)
{
    if (!notes.slack || notes.mostSlack <= 0 || scene.rows.metrics.height < 8) return;
    for (const int row : scene.visibleRows()) {
        const RowPlace& place = scene.place(row);
        if (place.panel != 0 || place.kind == RowKind::Group) continue;
        const LaneData& lane = scene.panels.front()->ranks[static_cast<std::size_t>(place.rankIndex)].compute;
        const std::size_t from = lane.firstEndingAfter(scene.axis.range.begin),
                          to = lane.firstBeginningAt(scene.axis.range.end);
        if (to < from || to - from > 5000) continue;
        for (std::size_t i = from; i < to; ++i) {
            const SpanId id = lane.spanOf(i);
            const Nanos slack = id < notes.slack->size() ? (*notes.slack)[id] : 0;
            if (slack <= 0) continue;
            const auto rect = scene.rectOf({0, id});
            if (!rect) continue;
            QColor veil = theme.canvas;
            const double share = static_cast<double>(slack) / static_cast<double>(notes.mostSlack);
            veil.setAlphaF(static_cast<float>(0.2 + 0.4 * std::min(1.0, share)));
            p.fillRect(*rect, veil);
        }
    }
}

void paintGaps(QPainter& p, const TimelineScene& scene, const Theme& theme, const TimelineNotes& notes)
{
    QColor tint = theme.accent;
    tint.setAlphaF(theme.dark ? 0.42F : 0.3F);
    const auto& gaps = notes.gaps;
    for (const int row : scene.visibleRows()) {
        const RowPlace& place = scene.place(row);
        if (place.panel != 0 || place.kind == RowKind::Group) continue;
        const int rank = scene.panels.front()->ranks[static_cast<std::size_t>(place.rankIndex)].rank;
        auto gap = std::lower_bound(
            gaps.begin(), gaps.end(), std::pair(rank, scene.axis.range.begin),
            [](const GapNote& note, const auto& from) { return std::pair(note.rank, note.range.end) <= from; });
        double painted = -1; // gaps within one pixel are painted once, as wide as it
        for (; gap != gaps.end() && gap->rank == rank && gap->range.begin < scene.axis.range.end; ++gap) {
            QRectF rect = rectOf(scene, *gap);
            if (rect.right() <= painted) continue;
            if (rect.width() < 1) rect = QRectF(std::floor(rect.left()), rect.top(), 1, rect.height());
            painted = rect.right();
            p.fillRect(rect, tint);
            if (rect.width() <= 4) continue;
            p.setPen(QPen(theme.accent, 1.5));
            p.setBrush(Qt::NoBrush);
            p.drawRect(rect.adjusted(0.75, 0.75, -0.75, -0.75));
        }
    }
}

void paintChain(QPainter& p, const TimelineScene& scene, const Theme& theme, const TimelineNotes& notes)
{
    constexpr std::size_t most = 512; // the arrows nearest to the gap; the root is outlined anyway
    const auto place = [&](SpanId span) { return scene.rectOf({0, span}); };
    std::optional<QRectF> gap;
    if (notes.selected) {
        gap = rectOf(scene, *notes.selected);
        if (gap->height() <= 0) gap.reset();
    }
    if (gap) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(theme.canvas, 5));
        p.drawRoundedRect(*gap, 3, 3);
        p.setPen(QPen(theme.text, 2));
        p.drawRoundedRect(*gap, 3, 3);
    }
    const std::size_t count = std::min(most, notes.chain.size());
    for (std::size_t i = count; i-- > 1;) {
        const auto from = place(notes.chain[i]), to = place(notes.chain[i - 1]);
        if (from && to) paintDependency(p, *from, *to, theme.critical, theme.canvas);
    }
    if (count > 0 && gap) {
        // The last arrow points at the gap's end: there the wait was over.
        const auto from = place(notes.chain.front());
        const QRectF end(gap->right() - std::min(3.0, gap->width()), gap->top(), std::min(3.0, gap->width()),
                         gap->height());
        if (from) paintDependency(p, *from, end, theme.critical, theme.canvas);
    }
    if (count == 0) return;
    if (const auto root = place(notes.chain.back())) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(theme.canvas, 5.5));
        p.drawRoundedRect(root->adjusted(-1, -1, 1, 1), 4, 4);
        p.setPen(QPen(theme.critical, 3));
        p.drawRoundedRect(root->adjusted(-1, -1, 1, 1), 4, 4);
    }
}

} // namespace

void GapsOverlay::set(std::shared_ptr<const TimelineNotes> notes)
{
    m_notes = std::move(notes);
    m_panel.reset();
    if (view() != nullptr && !view()->panels().empty()) m_panel = view()->panels().front();
    update();
}

std::shared_ptr<const TimelineNotes> GapsOverlay::notes() const
{
    const bool shown = view() != nullptr && !view()->panels().empty() && view()->panels().front() == m_panel.lock();
    return shown ? m_notes : nullptr;
}

void GapsOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (!m_notes || scene.panels.empty() || scene.panels.front() != m_panel.lock()) return;
    paintSlack(painter, scene, theme, *m_notes);
    paintGaps(painter, scene, theme, *m_notes);
    paintChain(painter, scene, theme, *m_notes);
}

} // namespace stagewright
