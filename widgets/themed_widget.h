// ThemedWidget: a widget that paints itself in a theme's colours. GUI thread only.
#pragma once

#include <QWidget>

#include "widgets/theme.h"

namespace stagewright {

class ThemedWidget : public QWidget {
public:
    using QWidget::QWidget;
    void setTheme(const Theme& theme); // which outlives the widget

protected:
    void paintFocus(QPainter& painter) const; // a frame, where the widget has the focus

    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
