// What makes text readable: its size as the user set it, and its contrast.
#pragma once

#include <QColor>

namespace stagewright {

// The user's text size (QT_FONT_DPI, the desktop's font resolution) relative to 96 dpi, from 1 to 2; fixed at the first
// call.
double textScale();
int textPixels(int pixels);                        // a size of the design at the user's text size, as fontOf()
double luminance(const QColor& colour);            // relative, as WCAG defines it
double contrast(const QColor& a, const QColor& b); // as WCAG defines it, 1 to 21
QColor fieldBorder(bool dark, bool highContrast);  // 3:1 or more on a theme's canvas, panels and fields

} // namespace stagewright
