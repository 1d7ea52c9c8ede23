#include "widgets/search/search_overlay.h"

#include <algorithm>
#include <cmath>

#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

void markHit(QPainter& p, const QRectF& rect, const Theme& theme, bool current)
{
    p.setBrush(Qt::NoBrush);
    if (rect.width() < 4) {
        p.fillRect(QRectF(std::round(rect.left()) - 0.5, rect.top() - 3, 2, rect.height() + 3),
                   current ? theme.critical : theme.accent);
        return;
    }
    p.setPen(QPen(theme.canvas, 4));
    p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
    p.setPen(QPen(current ? theme.critical : theme.accent, 2));
    p.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
}

// At most one mark per pixel: from one painted hit to the first one that ends beyond its pixel by binary search.
void paintFinds(QPainter& p, const TimelineScene& scene, const Theme& theme, const Finds& found)
{
    if (!found.hits || found.hits->empty()) return;
    const TimelinePanel& panel = scene.panel(found.panel);
    const auto spans = panel.timeline->spans();
    const auto& hits = *found.hits;
    const std::vector<int> rows = scene.visibleRows();
    for (const Track& track : panel.timeline->tracks()) {
        const int row = scene.rowOf(found.panel, track.rank);
        if (row < 0 || std::find(rows.begin(), rows.end(), row) == rows.end()) continue;
        auto at = std::lower_bound(hits.begin(), hits.end(), track.begin);
        const auto end = std::lower_bound(at, hits.end(), track.end);
        const Nanos from = scene.axis.range.begin + panel.origin, to = scene.axis.range.end + panel.origin;
        at = std::partition_point(at, end, [&](SpanId id) { return spans[id].end <= from && spans[id].start < from; });
        while (at != end && *at < spans.size() && spans[*at].start < to) {
            const double x = scene.axis.toX(panel.toAxis(spans[*at].start));
            if (const auto rect = scene.rectOf({found.panel, *at});
                rect && !scene.isCovered(*rect, {found.panel, *at})) {
                markHit(p, *rect, theme, *at == found.current);
                p.fillRect(QRectF(std::max(scene.axis.left, rect->left()) - 0.5, rulerHeight - 4, 2, 4), theme.accent);
            }
            const Nanos next = scene.axis.toTime(x + 1) + panel.origin;
            ++at;
            if (at != end && spans[*at].start < next)
                at = std::partition_point(at, end, [&](SpanId id) { return spans[id].start < next; });
        }
    }
    if (found.current != noSpan) // over its neighbours
        if (const auto rect = scene.rectOf({found.panel, found.current})) markHit(p, *rect, theme, true);
}

} // namespace

void SearchOverlay::set(Finds finds)
{
    m_finds = std::move(finds);
    m_timeline.reset();
    if (view() != nullptr && m_finds.panel < static_cast<int>(view()->panels().size()))
        m_timeline = scene().panel(m_finds.panel).timeline;
    update();
}

bool SearchOverlay::isOf(const TimelineScene& scene) const
{
    return !m_finds.empty() && m_finds.panel < static_cast<int>(scene.panels.size()) &&
           scene.panel(m_finds.panel).timeline == m_timeline.lock();
}

const Finds* SearchOverlay::shown() const { return view() != nullptr && isOf(scene()) ? &m_finds : nullptr; }

void SearchOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (!isOf(scene)) return;
    paintFinds(painter, scene, theme, m_finds);
    double painted = -10;
    for (const Nanos moment : m_finds.moments) {
        const double x = scene.axis.toX(moment);
        if (x < scene.axis.left || x > scene.axis.left + scene.axis.width + rightMargin || x < painted + 1) continue;
        painted = x;
        QColor line = theme.accent;
        line.setAlphaF(0.7F);
        painter.fillRect(QRectF(x - 0.5, rulerHeight, 1, scene.size.height()), line);
    }
}

} // namespace stagewright
