#include "widgets/timeline/timeline_flags.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <QFontMetricsF>

#include "widgets/timeline/timeline_painter.h"

namespace stagewright {
namespace {

constexpr double flagHeight = 17;
constexpr double widestFlag = 220;
constexpr double poleHeight = 5;

struct Place {
    QRectF flag;  // with the text
    QPointF foot; // where the pole is
    QRectF range; // of a range note, over its rows
};

double left(const TimelineScene& scene) { return scene.axis.left; }
double right(const TimelineScene& scene) { return scene.axis.left + scene.axis.width + rightMargin; }

std::optional<Place> flagPlace(const TimelineScene& scene, const NoteFlag& note, const QFontMetricsF& metrics)
{
    if (note.panel < 0 || note.panel >= static_cast<int>(scene.panels.size())) return std::nullopt;
    Place place;
    if (note.span != noSpan) {
        const auto rect = scene.rectOf({note.panel, note.span});
        if (!rect || scene.isCovered(*rect, {note.panel, note.span})) return std::nullopt;
        place.foot = rect->topLeft() + QPointF(std::min(6.0, rect->width() / 2), 0);
    } else {
        const int ranks = static_cast<int>(scene.panels[static_cast<std::size_t>(note.panel)]->ranks.size());
        const int first = std::clamp(note.firstRank < 0 ? 0 : note.firstRank, 0, std::max(0, ranks - 1));
        const int last = std::clamp(note.firstRank < 0 ? ranks - 1 : note.lastRank, first, std::max(first, ranks - 1));
        double top = 0, bottom = 0;
        bool any = false;
        for (int rank = first; rank <= last && rank < ranks; ++rank) { // where they are, pinned or folded
            const int row = scene.rowOf(note.panel, rank);
            if (row < 0) continue;
            const double rowTop = scene.rowTop(row),
                         rowBottom = rowTop + scene.place(row).bottom() - scene.place(row).top;
            top = any ? std::min(top, rowTop) : rowTop;
            bottom = any ? std::max(bottom, rowBottom) : rowBottom;
            any = true;
        }
        if (!any) return std::nullopt;
        top -= 3;
        bottom += 3;
        const double x0 = scene.axis.toX(note.range.begin), x1 = scene.axis.toX(note.range.end);
        place.range = QRectF(x0, top, std::max(1.0, x1 - x0), bottom - top);
        place.foot = place.range.topLeft();
    }
    const double width = std::min(widestFlag, metrics.horizontalAdvance(note.text) + 14);
    double x = place.foot.x();
    // the flag of a long range stays in view
    if (!place.range.isNull()) x = std::clamp(x, left(scene), std::max(left(scene), place.range.right() - width));
    // and that of an op at the edge
    if (place.foot.x() <= right(scene)) x = std::max(left(scene), std::min(x, scene.size.width() - width - 2));
    double y = place.foot.y() - poleHeight - flagHeight;
    if (y < rulerHeight + 1) y = rulerHeight + 1;
    place.flag = QRectF(x, y, width, flagHeight);
    return place;
}

QString firstLine(const QString& text) { return text.section(u'\n', 0, 0); }

void paintNote(QPainter& p, const TimelineScene& scene, const Theme& theme, const NoteFlag& note)
{
    const QFont font = fontOf(FontRole::Small);
    const QFontMetricsF metrics(font);
    NoteFlag shown = note;
    shown.text = firstLine(note.text);
    const auto place = flagPlace(scene, shown, metrics);
    if (!place || place->flag.left() > right(scene) ||
        std::max(place->flag.right(), place->range.right()) < left(scene))
        return;
    if (place->flag.top() > scene.size.height()) return;
    const QColor colour = theme.accent;
    if (!place->range.isNull()) {
        QColor tint = colour;
        tint.setAlphaF(note.chosen ? 0.20F : 0.10F);
        p.fillRect(place->range, tint);
        QPen pen(colour, note.chosen ? 2 : 1.25);
        if (note.passing) pen.setDashPattern({4, 3});
        pen.setCapStyle(Qt::FlatCap);
        p.setPen(pen);
        for (const double x : {place->range.left(), place->range.right()})
            p.drawLine(QPointF(x, place->range.top()), QPointF(x, place->range.bottom()));
        p.drawLine(place->range.topLeft(), place->range.topRight());
    } else if (place->foot.x() < left(scene) - 1) {
        return; // its op is out of view
    }
    p.setPen(QPen(colour, 1.5));
    const double pole = std::clamp(place->foot.x() + 0.75, place->flag.left() + 0.75, place->flag.right() - 0.75);
    p.drawLine(QPointF(pole, place->flag.bottom() - 1), QPointF(pole, place->foot.y() + 1));
    const bool hollow = note.passing || note.carried;
    QPen edge(hollow || note.chosen ? (note.chosen ? theme.text : colour) : Qt::transparent, note.chosen ? 2 : 1);
    if (note.passing) edge.setDashPattern({3, 2});
    p.setPen(edge);
    p.setBrush(hollow ? theme.panel : colour);
    p.drawRoundedRect(place->flag, 3, 3);
    p.setFont(font);
    p.setPen(hollow ? theme.text : theme.onAccent);
    const QRectF room = place->flag.adjusted(7, 0, -6, 0);
    p.drawText(room, Qt::AlignVCenter | Qt::AlignLeft,
               metrics.elidedText(shown.text, Qt::ElideRight, room.width() + 1));
}

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
void paintFinds(QPainter& p, const TimelineScene& scene, const Theme& theme, const TimelineFlags& flags)
{
    if (!flags.hits || flags.hits->empty() || flags.hitPanel >= static_cast<int>(scene.panels.size())) return;
    const TimelinePanel& panel = *scene.panels[static_cast<std::size_t>(flags.hitPanel)];
    const auto spans = panel.timeline->spans();
    const auto& hits = *flags.hits;
    const std::vector<int> rows = scene.visibleRows();
    for (const Track& track : panel.timeline->tracks()) {
        const int row = scene.rowOf(flags.hitPanel, track.rank);
        if (row < 0 || std::find(rows.begin(), rows.end(), row) == rows.end()) continue;
        auto at = std::lower_bound(hits.begin(), hits.end(), track.begin);
        const auto end = std::lower_bound(at, hits.end(), track.end);
        const Nanos from = scene.axis.range.begin + panel.origin, to = scene.axis.range.end + panel.origin;
        at = std::partition_point(at, end, [&](SpanId id) { return spans[id].end <= from && spans[id].start < from; });
        while (at != end && *at < spans.size() && spans[*at].start < to) {
            const double x = scene.axis.toX(panel.toAxis(spans[*at].start));
            if (const auto rect = scene.rectOf({flags.hitPanel, *at});
                rect && !scene.isCovered(*rect, {flags.hitPanel, *at})) {
                markHit(p, *rect, theme, *at == flags.current);
                p.fillRect(QRectF(std::max(left(scene), rect->left()) - 0.5, rulerHeight - 4, 2, 4), theme.accent);
            }
            const Nanos next = scene.axis.toTime(x + 1) + panel.origin;
            ++at;
            if (at != end && spans[*at].start < next)
                at = std::partition_point(at, end, [&](SpanId id) { return spans[id].start < next; });
        }
    }
    if (flags.current != noSpan) // over its neighbours
        if (const auto rect = scene.rectOf({flags.hitPanel, flags.current})) markHit(p, *rect, theme, true);
}

} // namespace

void paintFlags(QPainter& painter, const TimelineScene& scene, const Theme& theme, const TimelineFlags& flags)
{
    if (scene.panels.empty()) return;
    paintFinds(painter, scene, theme, flags);
    double painted = -10;
    for (const Nanos moment : flags.moments) {
        const double x = scene.axis.toX(moment);
        if (x < left(scene) || x > right(scene) || x < painted + 1) continue;
        painted = x;
        QColor line = theme.accent;
        line.setAlphaF(0.7F);
        painter.fillRect(QRectF(x - 0.5, rulerHeight, 1, scene.size.height()), line);
    }
    for (const NoteFlag& note : flags.notes)
        if (!note.chosen) paintNote(painter, scene, theme, note);
    for (const NoteFlag& note : flags.notes)
        if (note.chosen) paintNote(painter, scene, theme, note);
}

int flagAt(const TimelineScene& scene, const TimelineFlags& flags, QPointF point)
{
    const QFontMetricsF metrics(fontOf(FontRole::Small));
    int found = -1;
    for (const NoteFlag& note : flags.notes) {
        NoteFlag shown = note;
        shown.text = firstLine(note.text);
        const auto place = flagPlace(scene, shown, metrics);
        if (place && place->flag.contains(point) && (found < 0 || note.chosen)) found = note.number;
    }
    return found;
}

} // namespace stagewright
