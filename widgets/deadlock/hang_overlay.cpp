#include "widgets/deadlock/hang_overlay.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include "schedules/model/kinds.h"
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

void HangOverlay::setHang(std::shared_ptr<const Schedule> order, std::shared_ptr<const Deadlock> hang)
{
    if (m_hang == hang) return;
    m_order = std::move(order);
    m_hang = m_order != nullptr ? std::move(hang) : nullptr;
    update();
}

std::optional<QRectF> HangOverlay::rectAt(const TimelineScene& scene, int rank, int position) const
{
    if (rank < 0 || position < 0 || static_cast<std::size_t>(rank) >= m_order->order.size()) return std::nullopt;
    const auto& list = m_order->order[static_cast<std::size_t>(rank)];
    for (auto at = static_cast<std::size_t>(position); at < list.size(); ++at)
        if (isCompute(list[at].kind)) return rectOf(scene, rank, list[at]);
    return std::nullopt;
}

std::vector<HangOverlay::Stopped> HangOverlay::stopped(const TimelineScene& scene) const
{
    std::vector<Stopped> rects;
    if (!m_hang || scene.panels.empty()) return rects;
    for (const BlockedRank& blocked : m_hang->blocked) {
        const auto& list = m_order->order[static_cast<std::size_t>(blocked.rank)];
        for (auto at = static_cast<std::size_t>(std::max(0, blocked.position));
             at < list.size() && rects.size() < mostStopped; ++at)
            if (isCompute(list[at].kind))
                if (const auto rect = rectOf(scene, blocked.rank, list[at])) rects.push_back({*rect, list[at]});
    }
    return rects;
}

std::vector<std::pair<QRectF, QRectF>> HangOverlay::waits(const TimelineScene& scene) const
{
    std::vector<std::pair<QRectF, QRectF>> arrows;
    if (!m_hang || scene.panels.empty()) return arrows;
    std::vector<QRectF> places; // of the cycle, in waiting order
    for (const CycleOp& one : m_hang->cycleOps)
        if (const auto rect = rectAt(scene, one.rank, one.position); rect && (places.empty() || places.back() != *rect))
            places.push_back(*rect);
    if (places.size() > 1 && places.front() == places.back()) places.pop_back();
    for (std::size_t i = 0; places.size() > 1 && i < places.size(); ++i)
        arrows.emplace_back(places[i], places[(i + 1) % places.size()]);
    return arrows;
}

void HangOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (!m_hang || scene.panels.empty() || scene.preview) return;
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
    if (!m_hang || view() == nullptr) return card;
    const auto rects = stopped(scene());
    if (std::none_of(rects.begin(), rects.end(), [&](const Stopped& one) { return one.rect.contains(at); }))
        return card;
    card.title = u"Never runs"_s;
    const int row = scene().rowUnder(at.y());
    if (row < 0) return card;
    const int rank = scene().rankOf(scene().place(row)).rank;
    for (const BlockedRank& blocked : m_hang->blocked)
        if (blocked.rank == rank) card.note = sentence(QString::fromStdString(blocked.sentence));
    return card;
}

} // namespace stagewright
