#include "widgets/numbers.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <QCoreApplication>

#include "widgets/literals.h"

namespace stagewright {

namespace {

std::atomic<TimeUnit> chosenUnit{TimeUnit::Automatic};

NumberScale scaleOf(double nanos) { return timeScale(nanos, chosenUnit.load(std::memory_order_relaxed)); }

QString utf8(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

// A number of five digits or more before its word, as counts are written: "12,297.5 units"; whole: without what is behind
// the point, which says nothing beside them.
QString grouped(QString text, bool whole)
{
    qsizetype first = 0;
    while (first < text.size() && !text[first].isDigit()) ++first;
    qsizetype end = first;
    while (end < text.size() && text[end].isDigit()) ++end;
    if (end - first < 5) return text;
    qsizetype behind = end;
    if (behind < text.size() && text[behind] == u'.') do
            ++behind;
        while (behind < text.size() && text[behind].isDigit());
    if (whole) text.remove(end, behind - end);
    for (qsizetype at = end - 3; at > first; at -= 3) text.insert(at, u',');
    return text;
}

} // namespace

void setTimeUnit(TimeUnit unit) { chosenUnit.store(unit, std::memory_order_relaxed); }
TimeUnit timeUnit() { return chosenUnit.load(std::memory_order_relaxed); }
double fixedTimeScale() { return timeUnit() == TimeUnit::Automatic ? 0 : scaleOf(0).size; }

QString withTrueMinus(QString text) { return text.replace(u'-', QChar(0x2212)); }

QString fixed(double value, int decimals) { return utf8(fixedNumber(value, decimals)); }

QString shortText(double value, int most) { return utf8(shortNumber(value, most)); }

QString signedFixed(double value, int decimals)
{
    const QString text = fixed(value, decimals);
    return value <= 0 || text == fixed(0, decimals) || !std::isfinite(value) ? text : u'+' + text;
}

QString durationText(Nanos duration, const Units& units)
{
    const QString text = utf8(formatDuration(duration, units.time, timeUnit()));
    return units.shares() ? grouped(text, true) : text;
}

QString signedDurationText(Nanos duration, const Units& units)
{
    const QString text = durationText(duration, units);
    return duration > 0 ? u'+' + text : text;
}

QString momentText(Nanos time, double nanosPerPixel, const Units& units)
{
    const NumberScale scale = units.shares()
                                  ? NumberScale{static_cast<double>(units.time), {}}
                                  : scaleOf(std::max(std::abs(static_cast<double>(time)), nanosPerPixel * 100));
    // one decimal more than a pixel resolves, but no digits below a nanosecond
    const double perPixel = std::max(nanosPerPixel, 1e-9) / scale.size;
    const int most = units.shares() ? 6 : static_cast<int>(std::lround(std::log10(scale.size)));
    const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(perPixel) + 0.5)), 0, most);
    const double value = static_cast<double>(time) / scale.size;
    return units.shares() ? unitsText(value, digits) : fixed(value, digits) + u' ' + utf8(scale.name);
}

QString unitsText(double value, int most) { return grouped(utf8(formatUnits(value, most)), false); }

QString bytesText(Bytes bytes, const Units& units)
{
    const QString text = utf8(formatBytes(bytes, units.memory));
    return units.memory != 1 ? grouped(text, true) : text;
}

QString percentText(double fraction, int decimals) { return utf8(formatPercent(fraction, decimals)); }

QString changeText(double before, double now)
{
    if (before == 0) return now == 0 ? percentText(0) : u"new"_s;
    return utf8(formatChange((now - before) / before));
}

QString countText(qint64 count, const QString& one, const QString& many) { return count == 1 ? one : many.arg(count); }

} // namespace stagewright
