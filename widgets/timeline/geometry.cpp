#include "widgets/timeline/geometry.h"

#include <algorithm>
#include <cmath>

#include <QLineF>
#include <QPainter>

#include "schedules/base/ticks.h"

namespace stagewright {

double Axis::toX(Nanos t) const
{
    if (degenerate()) return left;
    return left + static_cast<double>(t - range.begin) * width / static_cast<double>(range.duration());
}

Nanos Axis::toTime(double x) const
{
    if (degenerate()) return range.begin;
    return range.begin + static_cast<Nanos>(std::llround((x - left) * (static_cast<double>(range.duration()) / width)));
}

Axis axisIn(const QRectF& view, const TimeRange& range)
{
    const double gutter = gutterFor(view.width());
    return {range, view.left() + gutter, std::max(0.0, view.width() - gutter - rightMargin)};
}

TimeRange zoomed(const TimeRange& range, double factor, Nanos anchor)
{
    const double duration = std::max(10.0, static_cast<double>(range.duration()) * factor);
    const double share =
        range.empty() ? 0.5 : static_cast<double>(anchor - range.begin) / static_cast<double>(range.duration());
    const Nanos begin = anchor - static_cast<Nanos>(std::llround(share * duration));
    return {begin, begin + static_cast<Nanos>(std::llround(duration))};
}

TimeRange panned(const TimeRange& range, double share)
{
    const Nanos by = static_cast<Nanos>(std::llround(static_cast<double>(range.duration()) * share));
    return {range.begin + by, range.end + by};
}

TimeRange pannedBy(const TimeRange& range, double pixels, double axisWidth, double ratio)
{
    const double columns = std::round(axisWidth * ratio);
    if (columns < 1 || range.empty()) return range;
    const double exact = static_cast<double>(range.duration()) / columns;
    const bool isWhole = std::abs(axisWidth * ratio - columns) < 1e-9 && exact >= 1000;
    const double perColumn = isWhole ? std::round(exact) : exact;
    const Nanos duration = isWhole ? static_cast<Nanos>(std::llround(perColumn * columns)) : range.duration();
    const Nanos begin = range.begin + static_cast<Nanos>(std::llround(std::round(pixels * ratio) * perColumn));
    return {begin, begin + duration};
}

Nanos rulerStep(const Axis& axis, double minSpacing, Nanos unit)
{
    if (axis.degenerate()) return 0;
    const double least = axis.nanosPerPixel() * minSpacing / static_cast<double>(unit);
    const double step = roundStep(std::max(least, 1.0 / static_cast<double>(unit))).size * static_cast<double>(unit);
    return std::max<Nanos>(1, std::llround(step));
}

std::vector<RulerTick> rulerTicks(const Axis& axis, double minSpacing, Nanos unit)
{
    std::vector<RulerTick> ticks;
    const Nanos step = rulerStep(axis, minSpacing, unit);
    if (step <= 0) return ticks;
    const int parts = roundStep(static_cast<double>(step) / static_cast<double>(unit)).lead == 2 ? 4 : 5;
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

namespace {

constexpr double collapsedHeight = 7;
constexpr double laneHeight = 14;     // with the gap over the next one; names fit
constexpr double lanesRoom = 112;     // more than this and they become thinner …
constexpr double leastLaneHeight = 4; // … down to this
// Rows whose lanes are all that is known: the lanes of a rank take about this room, each at least so much that names
// fit.
constexpr double deviceBar = 30, deviceRoom = 280, leastDeviceLane = 14, mostDeviceLane = 20;

RowPlace placeOf(const RowItem& item, const RowMetrics& metrics, double y)
{
    RowPlace place;
    place.kind = item.kind;
    place.panel = item.panel;
    place.rankIndex = item.rankIndex;
    place.group = item.group;
    place.firstPosition = item.firstPosition;
    place.lastPosition = item.lastPosition;
    place.top = y;
    place.height = metrics.height;
    if (item.kind == RowKind::Collapsed) place.height = std::min(metrics.height, collapsedHeight);
    if (item.kind == RowKind::Group)
        place.height = metrics.height < 16 ? metrics.height : std::clamp(std::round(metrics.height * 0.46), 14.0, 24.0);
    if (item.track && item.kind == RowKind::Rank) {
        place.track = metrics.track;
        place.trackGap = metrics.trackGap;
    }
    if (item.lanes > 0 && metrics.height >= 16) {
        place.firstLane = item.firstLane;
        place.lanes = item.lanes;
        place.lanePitch = std::clamp(lanesRoom / item.lanes, leastLaneHeight, laneHeight);
        if (item.device)
            place.lanePitch = std::round(std::clamp(deviceRoom / item.lanes, leastDeviceLane, mostDeviceLane) *
                                         std::clamp(metrics.height / 48, 0.5, 1.5));
        if (std::find(item.thin.begin(), item.thin.end(), true) != item.thin.end() &&
            place.lanePitch > RowPlace::foldedLane) {
            place.thins = item.thin;
            double top = 0;
            for (int lane = 0; lane < item.lanes; ++lane) {
                const bool again = lane > 0 && item.thin[static_cast<std::size_t>(lane)] && item.joins(lane);
                place.laneTops.push_back(again ? place.laneTops.back() : top);
                if (!again) top += place.laneHeight(lane);
            }
            place.laneTops.push_back(top);
        }
    }
    place.device = item.device;
    if (item.device && item.kind == RowKind::Rank) place.height = std::min(place.height, deviceBar);
    return place;
}

double gapOf(RowKind kind, const RowMetrics& metrics)
{
    return kind == RowKind::Rank ? metrics.gap : std::min(metrics.gap, kind == RowKind::Group ? 4.0 : 6.0);
}

} // namespace

RowLayout layoutRows(std::shared_ptr<const RowPlan> plan, const RowMetrics& metrics, bool headers)
{
    RowLayout layout;
    layout.metrics = metrics;
    layout.plan = std::move(plan);
    const std::vector<RowItem>& items = layout.plan->items;
    layout.rows.reserve(items.size());
    const double lead = std::min(metrics.gap + 2, 12.0);
    double y = 0;
    const auto add = [&](const RowItem& item) {
        layout.rows.push_back(placeOf(item, metrics, y));
        y = layout.rows.back().bottom() + gapOf(item.kind, metrics);
    };
    std::size_t at = 0;
    layout.pinned = layout.plan->pinned;
    if (layout.pinned > 0) {
        y += lead;
        for (; at < static_cast<std::size_t>(layout.pinned); ++at) add(items[at]);
        layout.pinnedHeight = y;
    }
    for (std::size_t p = 0; p < layout.plan->groups.size(); ++p) {
        PanelPlace place;
        place.headerTop = y;
        place.headerHeight = headers ? panelHeaderHeight : 0;
        y += place.headerHeight + lead;
        place.top = y;
        for (; at < items.size() && items[at].panel == static_cast<int>(p); ++at) add(items[at]);
        place.bottom = y;
        layout.panels.push_back(place);
    }
    layout.height = y;
    return layout;
}

RowLayout layoutRows(const std::vector<int>& ranksByPanel, const RowMetrics& metrics, bool headers)
{
    return layoutRows(std::make_shared<const RowPlan>(plainPlan(ranksByPanel)), metrics, headers);
}

int RowLayout::nearestRow(double y) const
{
    if (rows.empty()) return -1;
    const auto after =
        std::upper_bound(rows.begin(), rows.end(), y, [](double v, const RowPlace& r) { return v < r.top; });
    if (after == rows.begin()) return 0;
    const int before = static_cast<int>(after - rows.begin()) - 1;
    if (after == rows.end()) return before;
    const double bottom = rows[static_cast<std::size_t>(before)].bottom();
    return y - bottom > after->top - y ? before + 1 : before;
}

int RowLayout::rowAt(double y) const
{
    const auto after =
        std::upper_bound(rows.begin(), rows.end(), y, [](double v, const RowPlace& r) { return v < r.top; });
    if (after == rows.begin()) return -1;
    const auto row = after - 1;
    return y < row->bottom() ? static_cast<int>(row - rows.begin()) : -1;
}

int RowLayout::rowOf(int panel, int rankIndex) const
{
    if (!plan || panel < 0 || panel >= static_cast<int>(plan->itemOf.size())) return -1;
    const auto& items = plan->itemOf[static_cast<std::size_t>(panel)];
    return rankIndex >= 0 && rankIndex < static_cast<int>(items.size()) ? items[static_cast<std::size_t>(rankIndex)]
                                                                        : -1;
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

void drawHatch(QPainter& painter, const QRectF& rect, const QColor& line)
{
    painter.setPen(QPen(line, 1));
    const std::vector<QLineF> lines = hatchLines(rect, rect.topLeft());
    painter.drawLines(lines.data(), static_cast<int>(lines.size()));
}

} // namespace stagewright
