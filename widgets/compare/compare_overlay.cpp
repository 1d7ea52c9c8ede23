#include "widgets/compare/compare_overlay.h"

#include <algorithm>

#include <QFontMetricsF>

#include "widgets/literals.h"
#include "widgets/numbers.h"

namespace stagewright {

std::pair<Nanos, Nanos> comparedTimes(const TimelinePanel& a, const TimelinePanel& b)
{
    if (a.stepTime() > 0 && b.stepTime() > 0) return {a.stepTime(), b.stepTime()};
    return {a.duration, b.duration};
}

namespace {

// What a further panel saves or costs compared with the first, painted from the end of the shorter to the end of the
// longer one: with two panels on the shorter, with more on the further one, so that each band is beside its run.
void paintDifference(QPainter& p, const TimelineScene& scene, const Theme& theme, std::size_t other,
                     const QString& unclaimed)
{
    const TimelinePanel& a = *scene.panels.front();
    const TimelinePanel& b = scene.panel(static_cast<int>(other));
    const Nanos delta = b.duration - a.duration;
    if (delta == 0 || a.duration <= 0) return;
    if (a.units.time != b.units.time || a.lead != 0 || b.lead != 0) return; // neither a sum nor a common start
    const bool faster = delta < 0, pair = scene.panels.size() == 2;
    const QColor colour = !unclaimed.isEmpty() ? theme.secondary : faster ? theme.better : theme.worse;
    const Axis& axis = scene.axis;
    const QRectF plot = scene.plotRect().adjusted(4, 0, 0, 0);
    const double x0 = axis.toX(std::min(a.duration, b.duration)), x1 = axis.toX(std::max(a.duration, b.duration));
    const auto rowsOf = [&](std::size_t panel) {
        const PanelPlace& place = scene.rows.panels[panel];
        const double top = rulerHeight + place.top - scene.scroll - 2;
        return QRectF(x0, top, x1 - x0, place.bottom - place.top - scene.rows.metrics.gap + 4);
    };
    const QRectF whole = rowsOf(pair && !faster ? 0 : other), region = whole.intersected(plot);
    QColor tint = colour;
    tint.setAlphaF(theme.dark ? 0.22f : 0.13f);
    if (!region.isEmpty()) p.fillRect(region, tint);
    if (x0 >= plot.left() && x0 <= plot.right())
        p.fillRect(QRectF(x0 - 0.75, whole.top(), 1.5, whole.height()), colour);
    if (x1 >= plot.left() && x1 <= plot.right()) {
        QPen dashed(colour, 1.5);
        dashed.setDashPattern({4, 2.5});
        dashed.setCapStyle(Qt::FlatCap);
        p.setPen(dashed);
        const std::vector<std::size_t> ended =
            pair ? std::vector<std::size_t>{0, other} : std::vector<std::size_t>{other};
        for (const std::size_t panel : ended) {
            const QRectF rect = rowsOf(panel);
            p.drawLine(QPointF(x1, rect.top()), QPointF(x1, rect.bottom()));
        }
    }
    if (!pair && !faster) return; // its ops are in the way; the figures in its bar say it
    const auto [before, after] = comparedTimes(a, b);
    const QString text = signedDurationText(after - before, a.units);
    const QString share =
        !unclaimed.isEmpty() ? unclaimed : changeText(static_cast<double>(before), static_cast<double>(after));
    QFont big = fontOf(FontRole::Rank);
    big.setPixelSize(15);
    const double needs = QFontMetricsF(big).horizontalAdvance(text) + 16;
    if (region.width() < needs || region.height() < 40) return;
    p.setPen(colour);
    p.setFont(big);
    p.drawText(QRectF(region.left(), region.center().y() - 20, region.width(), 20), Qt::AlignCenter, text);
    p.setFont(fontOf(FontRole::Body));
    p.drawText(QRectF(region.left(), region.center().y() + 2, region.width(), 18), Qt::AlignCenter, share);
}

} // namespace

void CompareOverlay::setUnclaimed(std::vector<QString> why)
{
    m_unclaimed = std::move(why);
    update();
}

void CompareOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    painter.setClipRect(scene.scrolledRect(), Qt::IntersectClip);
    for (std::size_t other = 1; other < scene.panels.size(); ++other)
        paintDifference(painter, scene, theme, other, other > m_unclaimed.size() ? QString() : m_unclaimed[other - 1]);
}

} // namespace stagewright
