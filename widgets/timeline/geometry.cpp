#include "widgets/timeline/geometry.h"

#include <algorithm>
#include <cmath>

#include <QLineF>

namespace stagewright {

double Axis::toX(Nanos t) const
{
    if (degenerate()) return left;
    return left + static_cast<double>(t - range.begin) * (width / static_cast<double>(range.duration()));
}

Nanos Axis::toTime(double x) const
{
    if (degenerate()) return range.begin;
    return range.begin + static_cast<Nanos>(std::llround((x - left) * (static_cast<double>(range.duration()) / width)));
}

Axis axisIn(const QRectF& view, const TimeRange& range)
{
    return {range, view.left() + gutterWidth, std::max(0.0, view.width() - gutterWidth - rightMargin)};
}

TimeRange zoomed(const TimeRange& range, double factor, Nanos anchor)
{
    const double duration = std::max(10.0, static_cast<double>(range.duration()) * factor);
    const double share = range.empty() ? 0.5 : static_cast<double>(anchor - range.begin) / static_cast<double>(range.duration());
    const Nanos begin = anchor - static_cast<Nanos>(std::llround(share * duration));
    return {begin, begin + static_cast<Nanos>(std::llround(duration))};
}

TimeRange panned(const TimeRange& range, double share)
{
    const Nanos by = static_cast<Nanos>(std::llround(static_cast<double>(range.duration()) * share));
    return {range.begin + by, range.end + by};
}

namespace {

// 1, 2 or 5 × 10^k, at least `least`; in units where one may be a fraction of a nanosecond-unit pair.
struct Step {
    double size = 0;
    int lead = 1;
};
Step niceStep(double least)
{
    const double power = std::pow(10.0, std::floor(std::log10(least)));
    for (const int lead : {1, 2, 5}) {
        if (lead * power >= least * (1 - 1e-9)) return {lead * power, lead};
    }
    return {10 * power, 1};
}

} // namespace

Nanos rulerStep(const Axis& axis, double minSpacing, Nanos unit)
{
    if (axis.degenerate()) return 0;
    const double least = axis.nanosPerPixel() * minSpacing / static_cast<double>(unit);
    const double step = niceStep(std::max(least, 1.0 / static_cast<double>(unit))).size * static_cast<double>(unit);
    return std::max<Nanos>(1, std::llround(step));
}

std::vector<RulerTick> rulerTicks(const Axis& axis, double minSpacing, Nanos unit)
{
    std::vector<RulerTick> ticks;
    const Nanos step = rulerStep(axis, minSpacing, unit);
    if (step <= 0) return ticks;
    const double inUnits = static_cast<double>(step) / static_cast<double>(unit);
    const double power = std::pow(10.0, std::floor(std::log10(inUnits) + 1e-9));
    const int parts = std::lround(inUnits / power) == 2 ? 4 : 5;
    const auto floorDiv = [](Nanos a, Nanos b) { return a / b - (a % b < 0 ? 1 : 0); };
    for (Nanos n = floorDiv(axis.range.begin, step); n * step <= axis.range.end; ++n) {
        for (int part = 0; part < parts; ++part) {
            const Nanos time = n * step + step * part / parts;
            if (part > 0 && step < parts) continue;
            if (time >= axis.range.begin && time <= axis.range.end) ticks.push_back({time, part == 0});
        }
    }
    return ticks;
}

RowMetrics rowMetrics(double rowHeight, bool communication)
{
    RowMetrics m;
    m.height = std::max(1.0, rowHeight);
    if (!communication || m.height < 16) m.track = m.trackGap = 0;
    if (m.height < 16) m.gap = m.height < 4 ? 0 : 1;
    return m;
}

RowLayout layoutRows(const std::vector<int>& ranksByPanel, const RowMetrics& metrics, bool headers)
{
    RowLayout layout;
    layout.metrics = metrics;
    double y = 0;
    for (std::size_t p = 0; p < ranksByPanel.size(); ++p) {
        PanelPlace place;
        place.headerTop = y;
        place.headerHeight = headers ? panelHeaderHeight : 0;
        y += place.headerHeight + std::min(metrics.gap + 2, 12.0);
        place.top = y;
        place.firstRow = static_cast<int>(layout.rows.size());
        place.rows = ranksByPanel[p];
        for (int r = 0; r < ranksByPanel[p]; ++r) {
            layout.rows.push_back({static_cast<int>(p), r, y});
            y += metrics.pitch();
        }
        place.bottom = y;
        layout.panels.push_back(place);
    }
    layout.height = y;
    return layout;
}

int RowLayout::nearestRow(double y) const
{
    if (rows.empty()) return -1;
    const auto after = std::upper_bound(rows.begin(), rows.end(), y, [](double v, const RowPlace& r) { return v < r.top; });
    if (after == rows.begin()) return 0;
    const int before = static_cast<int>(after - rows.begin()) - 1;
    if (after == rows.end()) return before;
    const double bottom = rows[static_cast<std::size_t>(before)].top + metrics.pitch() - metrics.gap;
    return y - bottom > after->top - y ? before + 1 : before;
}

int RowLayout::rowAt(double y) const
{
    const auto after = std::upper_bound(rows.begin(), rows.end(), y, [](double v, const RowPlace& r) { return v < r.top; });
    if (after == rows.begin()) return -1;
    const auto row = after - 1;
    return y < row->top + metrics.pitch() - metrics.gap ? static_cast<int>(row - rows.begin()) : -1;
}

std::vector<QLineF> hatchLines(const QRectF& rect, QPointF anchor, double pitch)
{
    std::vector<QLineF> lines;
    if (rect.width() <= 0 || rect.height() <= 0 || pitch <= 0) return lines;
    // Lines x + y = anchor + n × pitch rise to the right; each meets the rectangle in one segment.
    const double base = anchor.x() + anchor.y();
    const double low = rect.left() + rect.top(), high = rect.right() + rect.bottom();
    for (double n = std::ceil((low - base) / pitch); base + n * pitch < high; n += 1) {
        const double sum = base + n * pitch;
        const double x1 = std::max(rect.left(), sum - rect.bottom());
        const double x2 = std::min(rect.right(), sum - rect.top());
        if (x2 > x1) lines.emplace_back(x1, sum - x1, x2, sum - x2);
    }
    return lines;
}

} // namespace stagewright
