#include "widgets/themed_widget.h"

#include <QPainter>

namespace stagewright {

void ThemedWidget::setTheme(const Theme& theme)
{
    m_theme = &theme;
    update();
}

void ThemedWidget::paintFocus(QPainter& painter) const
{
    if (!hasFocus()) return;
    painter.setPen(QPen(m_theme->accent, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
}

} // namespace stagewright
