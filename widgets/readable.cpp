#include "widgets/readable.h"

#include <algorithm>
#include <cmath>

#include <QGuiApplication>
#include <QScreen>

namespace stagewright {

double luminance(const QColor& colour)
{
    const auto linear = [](double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); };
    return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) + 0.0722 * linear(colour.blueF());
}

double contrast(const QColor& a, const QColor& b)
{
    const double x = luminance(a), y = luminance(b);
    return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

QColor fieldBorder(bool dark, bool highContrast)
{
    return QColor(highContrast ? "#C2C2C2" : dark ? "#6A7382" : "#848C99");
}

double textScale()
{
    static const double scale = [] {
        const QScreen* screen = QGuiApplication::primaryScreen();
        return screen == nullptr ? 1.0 : std::clamp(screen->logicalDotsPerInchY() / 96, 1.0, 2.0);
    }();
    return scale;
}

int textPixels(int pixels) { return static_cast<int>(std::lround(pixels * textScale())); }

} // namespace stagewright
