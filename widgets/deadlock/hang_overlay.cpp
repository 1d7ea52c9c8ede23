#include "widgets/deadlock/hang_overlay.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/arrows.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/slice_painter.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr std::size_t mostStopped = 20000; // of a longer order the first ones

std::optional<QRectF> rectOf(const TimelineScene& scene, int rank, const Op& op)
{
    const auto& timeline = scene.panels.front()->timeline;
    const Track* track = timeline != nullptr ? timeline->trackOf(rank, Lane::Compute) : nullptr;
    if (track == nullptr) return std::nullopt;
    for (SpanId id = track->begin; id < track->end; ++id)
        if (timeline->spans()[id].op == op) return scene.rectOf({0, id});
    return std::nullopt;
}

} // namespace

void HangOverlay::setMarks(std::shared_ptr<const Marks> marks)
{
    if (m_marks == marks) return;
    m_marks = std::move(marks);
    update();
}

std::vector<HangOverlay::Stopped> HangOverlay::stopped(const TimelineScene& scene) const
{
    std::vector<Stopped> rects;
    if (!m_marks || scene.panels.empty()) return rects;
    for (const RankOp& one : m_marks->stopped) {
        if (rects.size() >= mostStopped) break;
        if (const auto rect = rectOf(scene, one.rank, one.op)) rects.push_back({*rect, one.op});
    }
    return rects;
}

std::vector<std::pair<QRectF, QRectF>> HangOverlay::waits(const TimelineScene& scene) const
{
    std::vector<std::pair<QRectF, QRectF>> arrows;
    if (!m_marks || scene.panels.empty()) return arrows;
    std::vector<QRectF> places; // of the cycle, in waiting order
    for (const RankOp& one : m_marks->cycle)
        if (const auto rect = rectOf(scene, one.rank, one.op); rect && (places.empty() || places.back() != *rect))
            places.push_back(*rect);
    if (places.size() > 1 && places.front() == places.back()) places.pop_back();
    for (std::size_t i = 0; places.size() > 1 && i < places.size(); ++i)
        arrows.emplace_back(places[i], places[(i + 1) % places.size()]);
    return arrows;
}

void HangOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (!m_marks || scene.panels.empty() || scene.preview) return;
    painter.save();
    painter.setClipRect(scene.plotRect().adjusted(4, 0, 0, 0), Qt::IntersectClip);
    QColor veil = theme.canvas;
    veil.setAlphaF(0.5F);
    painter.setFont(fontOf(FontRole::Label));
    const QFontMetricsF metrics(painter.font());
    for (const auto& [rect, op] : stopped(scene)) {
        painter.fillRect(rect, veil);
        painter.setPen(QPen(theme.critical, 1));
        for (const QLineF& line : hatchLines(rect, rect.topLeft(), 8)) painter.drawLine(line);
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(rect.adjusted(0.5, 0.5, -0.5, -0.5));
        const QString label = sliceLabel(op, 100); // with its kind, which the hatch makes hard to see
        const double width = metrics.horizontalAdvance(label) + 8;
        if (width > rect.width() || rect.height() < 16) continue;
        const QRectF pill(rect.center().x() - width / 2, rect.center().y() - 8, width, 16);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.canvas);
        painter.drawRoundedRect(pill, 3, 3);
        painter.setPen(theme.text);
        painter.drawText(pill, Qt::AlignCenter, label);
    }
    // From the middle of the waiting op to the middle of what it waits for; the two ways between two ops side by side.
    painter.setRenderHint(QPainter::Antialiasing);
    const auto arrows = waits(scene);
    for (const auto& [from, to] : arrows) {
        const QPointF a = from.center(), b = to.center();
        const double length = std::max(1.0, std::hypot(b.x() - a.x(), b.y() - a.y()));
        const QPointF along((b.x() - a.x()) / length, (b.y() - a.y()) / length), aside(-along.y() * 14, along.x() * 14);
        QPainterPath path;
        path.moveTo(a + aside);
        const QPointF tip = b + aside;
        path.lineTo(tip);
        paintArrow(painter, path, tip, along, theme.critical, theme.canvas);
    }
    painter.restore();
}

CardText HangOverlay::describe(QPointF at) const
{
    CardText card;
    if (!m_marks || view() == nullptr) return card;
    const auto rects = stopped(scene());
    if (std::none_of(rects.begin(), rects.end(), [&](const Stopped& one) { return one.rect.contains(at); }))
        return card;
    card.title = u"Never runs"_s;
    const int row = scene().rowUnder(at.y());
    if (row < 0) return card;
    const int rank = scene().rankOf(scene().place(row)).rank;
    if (const auto why = m_marks->why.find(rank); why != m_marks->why.end()) card.note = sentence(why->second);
    return card;
}

} // namespace stagewright
