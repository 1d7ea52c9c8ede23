#include "widgets/explore/miniature.h"

#include <algorithm>
#include <cmath>

#include <QPainter>

#include "widgets/literals.h"

namespace stagewright {

Miniature::Miniature(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"miniature"_s);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void Miniature::setPanel(std::shared_ptr<const TimelinePanel> panel, const QString& title, const QString& note)
{
    m_panel = std::move(panel);
    m_title = title;
    m_note = note;
    setToolTip(title);
    setAccessibleName(u"Preview of %1"_s.arg(title));
    setAccessibleDescription(note);
    update();
}

void Miniature::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(m_theme->text);
    p.drawText(QRectF(8, 4, width() - 16.0, 16), Qt::AlignLeft | Qt::AlignVCenter,
               QFontMetrics(p.font()).elidedText(m_title, Qt::ElideRight, width() - 16));
    p.setFont(fontOf(FontRole::Small));
    p.setPen(m_theme->secondary);
    const QRectF room(8, 0, width() - 16.0, height() - 4.0);
    const QRectF note = QFontMetricsF(p.font()).boundingRect(room, Qt::AlignBottom | Qt::TextWordWrap, m_note);
    p.drawText(room, Qt::AlignLeft | Qt::AlignBottom | Qt::TextWordWrap, m_note); // on as many lines as it takes
    p.setPen(m_theme->separator);
    p.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    if (!m_panel || m_panel->duration <= 0 || m_panel->ranks.empty()) return;
    const QRectF area(8, 24, width() - 16.0, height() - 24.0 - std::max(24.0, note.height() + 8));
    const double row = area.height() / static_cast<double>(m_panel->ranks.size());
    const double scale = area.width() / static_cast<double>(m_panel->duration);
    const double gap = row >= 4 ? 1 : 0;
    for (std::size_t r = 0; r < m_panel->ranks.size(); ++r) {
        const QRectF line(area.left(), area.top() + static_cast<double>(r) * row, area.width(), row - gap);
        p.fillRect(line, m_theme->bubbleFill);
        const LaneData& lane = m_panel->ranks[r].compute;
        double painted = -1; // slices thinner than a pixel are painted once per pixel
        for (std::size_t i = 0; i < lane.size(); ++i) {
            const TimeSpan span = lane.drawn(i);
            const double from = line.left() + static_cast<double>(span.begin) * scale;
            const double to = line.left() + static_cast<double>(span.end) * scale;
            if (to < painted + 0.5) continue;
            const Slice& slice = lane.slices()[i];
            p.fillRect(QRectF(from, line.top(), std::max(0.5, to - from - (to - from > 3 ? 0.5 : 0)), line.height()),
                       m_theme->of(paintOf(slice.opKind()), static_cast<int>(slice.tint)).fill);
            painted = to - from < 0.5 ? to : painted;
        }
    }
}

} // namespace stagewright
