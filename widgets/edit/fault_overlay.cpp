#include "widgets/edit/fault_overlay.h"

#include <QEvent>
#include <QPainter>

namespace stagewright {

FaultOverlay::FaultOverlay(TimelineView* view, ViewState* state) : QWidget(view), m_view(view)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    resize(view->size());
    view->installEventFilter(this);
    connect(state, &ViewState::visibleChanged, this, qOverload<>(&QWidget::update));
    hide();
}

void FaultOverlay::setFaults(std::vector<SpanId> spans)
{
    m_faults = std::move(spans);
    setVisible(!m_faults.empty());
    raise();
    update();
}

void FaultOverlay::setTheme(const Theme& theme)
{
    m_theme = &theme;
    update();
}

bool FaultOverlay::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Resize) resize(m_view->size());
    if (event->type() == QEvent::Wheel) update();
    return QWidget::eventFilter(watched, event);
}

void FaultOverlay::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(QRectF(gutterWidth, rulerHeight, width() - gutterWidth, height() - rulerHeight));
    for (std::size_t i = 0; i < m_faults.size(); ++i) {
        const auto rect = m_view->rectOf({0, m_faults[i]});
        if (!rect) continue;
        // The op at fault is solid, its counterpart dashed; a halo keeps both visible on every fill.
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(m_theme->canvas, 5));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
        painter.setPen(QPen(m_theme->critical, 2.5, i == 0 ? Qt::SolidLine : Qt::DashLine));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
    }
}

} // namespace stagewright
