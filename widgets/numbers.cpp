#include "widgets/numbers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>

#include <QCoreApplication>

#include "widgets/units_text.h"

namespace stagewright {

namespace {

struct Scale {
    double factor;
    const char* suffix;
};
constexpr std::array<Scale, 4> timeScales{{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}};

std::atomic<TimeUnit> chosenUnit{TimeUnit::Automatic};

const Scale& timeScaleOf(double nanos)
{
    const TimeUnit unit = chosenUnit.load(std::memory_order_relaxed);
    if (unit != TimeUnit::Automatic) return timeScales[static_cast<std::size_t>(unit) - 1];
    for (const Scale& scale : timeScales) {
        // 0.9995 so that nothing rounds up to "1000 µs"
        if (std::abs(nanos) >= 0.9995 * scale.factor) return scale;
    }
    return timeScales.back();
}

int places(double value)
{
    return std::abs(value) >= 9.995 ? 1 : 2;
}

// In a chosen unit: three digits, but nothing below a nanosecond.
int placesIn(double value, double factor)
{
    const int wanted = value == 0 ? 1 : 2 - static_cast<int>(std::floor(std::log10(std::abs(value))));
    return std::clamp(wanted, 0, static_cast<int>(std::lround(std::log10(factor))));
}

} // namespace

void setTimeUnit(TimeUnit unit) { chosenUnit.store(unit, std::memory_order_relaxed); }
TimeUnit timeUnit() { return chosenUnit.load(std::memory_order_relaxed); }
double fixedTimeScale() { return timeUnit() == TimeUnit::Automatic ? 0 : timeScaleOf(0).factor; }

QString withTrueMinus(QString text)
{
    return text.replace(QLatin1Char('-'), QChar(0x2212));
}

QString fixed(double value, int decimals)
{
    if (!std::isfinite(value)) return QStringLiteral("–");
    QString text = QString::number(value, 'f', decimals);
    if (text.startsWith(QLatin1Char('-')) && text.toDouble() == 0) text.remove(0, 1); // no "−0.0"
    return withTrueMinus(text);
}

QString signedFixed(double value, int decimals)
{
    const QString text = fixed(value, decimals);
    const bool isZero = QString::number(value, 'f', decimals).toDouble() == 0;
    return isZero || text.startsWith(QChar(0x2212)) ? text : QLatin1Char('+') + text;
}

QString durationText(Nanos duration, const Units& units, int decimals)
{
    if (units.time != 1) return unitsText(static_cast<double>(duration) / static_cast<double>(units.time), decimals < 0 ? 2 : decimals);
    const bool chosen = timeUnit() != TimeUnit::Automatic;
    if (duration == 0 && !chosen) return QStringLiteral("0 ms");
    const Scale& scale = timeScaleOf(static_cast<double>(duration));
    const double value = static_cast<double>(duration) / scale.factor;
    const int digits = chosen ? placesIn(value, scale.factor) : decimals >= 0   ? decimals
                                                            : scale.factor == 1 ? 0
                                                                                : places(value);
    return fixed(value, digits) + QString::fromUtf8(scale.suffix);
}

QString signedDurationText(Nanos duration, const Units& units)
{
    const QString text = durationText(duration, units);
    return duration > 0 ? QLatin1Char('+') + text : text;
}

QString momentText(Nanos time, double nanosPerPixel, const Units& units)
{
    const double unit = units.time != 1 ? static_cast<double>(units.time)
                                        : timeScaleOf(std::max(std::abs(static_cast<double>(time)), nanosPerPixel * 100)).factor;
    const char* suffix = units.time != 1 ? "" : timeScaleOf(unit).suffix;
    // one decimal more than a pixel resolves, but no digits below a nanosecond
    const double perPixel = std::max(nanosPerPixel, 1e-9) / unit;
    int digits = static_cast<int>(std::ceil(-std::log10(perPixel) + 0.5));
    const int most = units.time != 1 ? 6 : static_cast<int>(std::lround(std::log10(unit)));
    digits = std::clamp(digits, 0, most);
    if (units.time != 1) return unitsText(static_cast<double>(time) / unit, digits);
    return fixed(static_cast<double>(time) / unit, digits) + QString::fromUtf8(suffix);
}

QString bytesText(Bytes bytes, const Units& units)
{
    const double value = static_cast<double>(bytes);
    if (units.memory != 1) return unitsText(value / static_cast<double>(units.memory));
    static constexpr std::array<Scale, 3> scales{{{1073741824.0, " GiB"}, {1048576.0, " MiB"}, {1024.0, " KiB"}}};
    for (const Scale& scale : scales) {
        if (std::abs(value) >= 0.9995 * scale.factor) {
            const double scaled = value / scale.factor;
            return fixed(scaled, std::abs(scaled) >= 99.95 ? 0 : std::abs(scaled) >= 9.995 ? 1
                                                                                           : 2) +
                   QLatin1String(scale.suffix);
        }
    }
    return fixed(value, 0) + QStringLiteral(" B");
}

QString percentText(double fraction, int decimals)
{
    return std::isfinite(fraction) ? QString::fromStdString(formatPercent(fraction, decimals)) : fixed(fraction, decimals);
}

QString changeText(double before, double now)
{
    if (before == 0) return now == 0 ? percentText(0) : QCoreApplication::translate("stagewright::Numbers", "new");
    const double percent = 100 * (now - before) / before;
    if (percent >= 899.95) return QCoreApplication::translate("stagewright::Numbers", "× %1").arg(fixed(now / before, 0));
    return QString::fromStdString(formatChange((now - before) / before));
}

QString countText(qint64 count, const QString& one, const QString& many) { return count == 1 ? one : many.arg(count); }

} // namespace stagewright
