#include "widgets/notes/notes_overlay.h"

#include <algorithm>
#include <optional>

#include <QFontMetricsF>

#include "widgets/literals.h"

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

double leftEdge(const TimelineScene& scene) { return scene.axis.left; }
double rightEdge(const TimelineScene& scene) { return scene.axis.left + scene.axis.width + rightMargin; }

std::optional<Place> flagPlace(const TimelineScene& scene, const NoteFlag& note, const QFontMetricsF& metrics)
{
    if (note.panel < 0 || note.panel >= static_cast<int>(scene.panels.size())) return std::nullopt;
    Place place;
    if (note.span != noSpan) {
        const auto rect = scene.rectOf({note.panel, note.span});
        if (!rect || scene.isCovered(*rect, {note.panel, note.span})) return std::nullopt;
        place.foot = rect->topLeft() + QPointF(std::min(6.0, rect->width() / 2), 0);
    } else {
        const int ranks = static_cast<int>(scene.panel(note.panel).ranks.size());
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
    if (!place.range.isNull())
        x = std::clamp(x, leftEdge(scene), std::max(leftEdge(scene), place.range.right() - width));
    // and that of an op at the edge
    if (place.foot.x() <= rightEdge(scene)) x = std::max(leftEdge(scene), std::min(x, scene.size.width() - width - 2));
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
    if (!place || place->flag.left() > rightEdge(scene) ||
        std::max(place->flag.right(), place->range.right()) < leftEdge(scene))
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
    } else if (place->foot.x() < leftEdge(scene) - 1) {
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

} // namespace

void NotesOverlay::set(std::vector<NoteFlag> flags)
{
    m_flags = std::move(flags);
    update();
}

void NotesOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    for (const bool chosen : {false, true})
        for (const NoteFlag& note : m_flags)
            if (note.chosen == chosen) paintNote(painter, scene, theme, note);
}

const NoteFlag* NotesOverlay::flagAt(QPointF point) const
{
    const QFontMetricsF metrics(fontOf(FontRole::Small));
    const NoteFlag* found = nullptr;
    for (const NoteFlag& note : m_flags) {
        NoteFlag shown = note;
        shown.text = firstLine(note.text);
        const auto place = flagPlace(scene(), shown, metrics);
        if (place && place->flag.contains(point) && (found == nullptr || note.chosen)) found = &note;
    }
    return found;
}

std::optional<OverlayHit> NotesOverlay::hit(const OverlayPress& press)
{
    const NoteFlag* flag = press.button == Qt::LeftButton ? flagAt(press.at) : nullptr;
    if (flag == nullptr) return std::nullopt;
    OverlayHit hit;
    hit.click = [this, number = flag->number] { emit clicked(number); };
    return hit;
}

CardText NotesOverlay::describe(QPointF at) const
{
    CardText card;
    if (const NoteFlag* flag = flagAt(at)) {
        card.title = u"Note"_s;
        card.note = flag->text;
    }
    return card;
}

} // namespace stagewright
