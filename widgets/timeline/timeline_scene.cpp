#include "widgets/timeline/timeline_painter.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stagewright {

Axis TimelineScene::deviceAxis(double ratio) const
{
    Axis device{axis.range, 0, axis.width * ratio};
    if (!columns || device.degenerate()) return device;
    // Whole ns per column: panFrame requests parts of such an axis only.
    const double perColumn = static_cast<double>(axis.range.duration()) / device.width;
    const int last = std::min(columns->second, static_cast<int>(std::ceil(device.width - 1e-6)));
    device.range.begin = axis.range.begin + std::llround(columns->first * perColumn);
    device.range.end = axis.range.begin + std::llround(std::max(columns->first, last) * perColumn);
    device.width = std::max(0, last - columns->first);
    return device;
}

double TimelineScene::rowTop(int row) const { return rulerHeight + place(row).top - (row < rows.pinned ? 0 : scroll); }

std::optional<QRectF> TimelineScene::rowRect(int panel, int rankIndex) const
{
    const int row = rowOf(panel, rankIndex);
    if (row < 0) return std::nullopt;
    return QRectF(axis.left, rowTop(row), axis.width, rows.metrics.height);
}

int TimelineScene::rowUnder(double y) const
{
    if (y < rulerHeight) return -1;
    const bool pinned = y < scrolledRect().top();
    const int row = rows.rowAt(y - rulerHeight + (pinned ? 0 : scroll));
    return (row < rows.pinned) == pinned ? row : -1;
}

int TimelineScene::nearestRow(double y) const
{
    const bool pinned = rows.pinned > 0 && y < scrolledRect().top();
    const int row = rows.nearestRow(y - rulerHeight + (pinned ? 0 : scroll)), all = static_cast<int>(rows.rows.size());
    if (row < 0) return row;
    return pinned ? std::min(row, rows.pinned - 1) : std::min(std::max(row, rows.pinned), all - 1);
}

std::vector<int> TimelineScene::visibleRows() const
{
    const auto& all = rows.rows;
    std::vector<int> visible(static_cast<std::size_t>(rows.pinned));
    std::iota(visible.begin(), visible.end(), 0);
    const double low = scroll + rows.pinnedHeight, high = scroll + rowsRect().height();
    const auto scrolled = all.begin() + rows.pinned;
    const auto first =
        std::partition_point(scrolled, all.end(), [low](const RowPlace& r) { return r.bottom() + 4 < low; });
    const auto last = std::partition_point(first, all.end(), [high](const RowPlace& r) { return r.top < high; });
    for (auto row = first; row != last; ++row) visible.push_back(static_cast<int>(row - all.begin()));
    return visible;
}

std::int64_t TimelineScene::visibleSlices() const
{
    std::int64_t count = 0;
    const auto add = [&](const LaneData& lane) {
        const std::size_t from = lane.firstEndingAfter(axis.range.begin);
        const std::size_t to = lane.firstBeginningAt(axis.range.end);
        if (to > from) count += static_cast<std::int64_t>(to - from);
    };
    for (const int row : visibleRows()) {
        const RowPlace& at = place(row);
        if (at.kind == RowKind::Group) {
            for (const int rank : groupOf(at).ranks)
                add(panels[static_cast<std::size_t>(at.panel)]->ranks[static_cast<std::size_t>(rank)].compute);
            continue;
        }
        const PanelRank& rank = rankOf(at);
        add(rank.compute);
        if (at.track > 0) {
            for (const LaneData& lane : rank.communication) add(lane);
        }
        for (int lane = 0; lane < at.lanes; ++lane) add(rank.lanes[static_cast<std::size_t>(at.firstLane + lane)].data);
    }
    return count;
}

namespace {

struct Found {
    const LaneData* lane = nullptr;
    double y = 0; // from the row's top
    double height = 0;
};

Found laneOf(const PanelRank& rank, const RowPlace& row, SpanId span)
{
    if (rank.compute.sliceOf(span) < rank.compute.size()) return {&rank.compute, 0, row.height};
    for (std::size_t i = 0; i < rank.communication.size(); ++i) {
        const LaneData& lane = rank.communication[i];
        if (lane.sliceOf(span) >= lane.size()) continue;
        if (row.track <= 0) return {};
        const double height = row.track / static_cast<double>(rank.communication.size());
        return {&lane, row.height + row.trackGap + static_cast<double>(i) * height, height};
    }
    for (int i = 0; i < row.lanes; ++i) {
        const LaneData& lane = rank.lanes[static_cast<std::size_t>(row.firstLane + i)].data;
        if (lane.sliceOf(span) < lane.size())
            return {&lane, row.lanesTop() - row.top + row.laneTop(i),
                    row.laneHeight(i) - (row.laneHeight(i) > 6 ? 2 : 1)};
    }
    return {};
}

} // namespace

std::optional<QRectF> TimelineScene::rectOf(SpanRef ref) const
{
    if (!ref.valid() || ref.panel >= static_cast<int>(panels.size())) return std::nullopt;
    const TimelinePanel& panel = *panels[static_cast<std::size_t>(ref.panel)];
    if (ref.span >= panel.timeline->spans().size()) return std::nullopt;
    const int rankIndex = panel.timeline->trackOf(ref.span).rank;
    const int row = rowOf(ref.panel, rankIndex);
    if (row < 0) return std::nullopt;
    const RowPlace& at = place(row);
    const Found found = laneOf(panel.ranks[static_cast<std::size_t>(rankIndex)], at, ref.span);
    if (found.lane == nullptr) return std::nullopt;
    const std::size_t index = found.lane->sliceOf(ref.span);
    const Slice& slice = found.lane->slices()[index];
    const TimeSpan drawn = found.lane->drawn(index);
    const double x0 = axis.toX(drawn.begin), x1 = axis.toX(drawn.end);
    double y = rowTop(row) + found.y, height = found.height;
    if ((slice.upper != 0 || slice.lower != 0) && at.kind != RowKind::Group) {
        height /= 2;
        if (slice.lower != 0) y += height;
    }
    return QRectF(x0, y, x1 - x0, height);
}

std::vector<QRectF> TimelineScene::rectsOf(const AreaSelection& area, bool pinned) const
{
    std::vector<QRectF> rects;
    const double x0 = axis.toX(area.range.begin), x1 = axis.toX(area.range.end);
    int last = -2;
    for (int row = pinned ? 0 : rows.pinned; row < (pinned ? rows.pinned : static_cast<int>(rows.rows.size())); ++row) {
        const RowPlace& at = place(row);
        if (at.lastPosition < area.firstRow || at.firstPosition > area.lastRow) continue;
        const bool isOpenGroup = at.kind == RowKind::Group && groupOf(at).expanded;
        if (isOpenGroup && (at.firstPosition < area.firstRow || at.lastPosition > area.lastRow)) continue;
        const double top = rowTop(row) - 3, bottom = rowTop(row) + at.bottom() - at.top + 3;
        const bool joins = row == last + 1 && !rects.empty() && at.panel == place(last).panel;
        if (joins) {
            rects.back().setBottom(bottom);
        } else {
            rects.emplace_back(x0, top, x1 - x0, bottom - top);
        }
        last = row;
    }
    return rects;
}

bool TimelineScene::isCovered(const QRectF& rect, SpanRef ref) const
{
    const int row =
        ref.valid() ? rowOf(ref.panel, panels[static_cast<std::size_t>(ref.panel)]->timeline->trackOf(ref.span).rank)
                    : -1;
    return row >= rows.pinned && rect.bottom() < scrolledRect().top();
}

SpanRef TimelineScene::spanAt(QPointF point) const
{
    if (point.x() < axis.left || point.x() >= axis.left + axis.width || point.y() < rulerHeight) return {};
    const int row = rowUnder(point.y());
    if (row < 0 || place(row).kind == RowKind::Group) return {};
    const RowPlace& at0 = place(row);
    const PanelRank& rank = rankOf(at0);
    const double inside = point.y() - rowTop(row);
    const LaneData* lane = &rank.compute;
    if (at0.lanes > 0 && inside >= at0.lanesTop() - at0.top) {
        const Nanos t = axis.toTime(point.x());
        lane = nullptr;
        for (int i = 0; i < at0.lanes; ++i) { // of lanes over each other the one with work there
            const double y = inside - (at0.lanesTop() - at0.top) - at0.laneTop(i);
            if (y < 0 || (y >= at0.laneHeight(i) && i + 1 < at0.lanes)) continue;
            const LaneData& data = rank.lanes[static_cast<std::size_t>(at0.firstLane + i)].data;
            const std::size_t next = data.firstEndingAfter(t);
            if (lane == nullptr || (next < data.slices().size() && data.slices()[next].begin() <= t)) lane = &data;
        }
        if (lane == nullptr) return {};
    } else if (inside >= at0.height) {
        const double track = inside - at0.height - at0.trackGap;
        if (track < 0 || at0.track <= 0 || rank.communication.empty()) return {};
        const auto count = static_cast<double>(rank.communication.size());
        lane = &rank.communication[static_cast<std::size_t>(std::min(count - 1, track / at0.track * count))];
    }
    // The slices that cover the pointer's pixel; the one under its middle first.
    const Nanos t = axis.toTime(point.x());
    const Nanos half = static_cast<Nanos>(axis.nanosPerPixel() / 2);
    const auto& slices = lane->slices();
    std::size_t at = lane->firstEndingAfter(t);
    if (at < slices.size() && slices[at].begin() <= t) {
        const bool low = inside >= at0.height / 2; // of a pair the first op lies above the second
        if (slices[at].upper != 0 && low && at + 1 < slices.size())
            ++at;
        else if (slices[at].lower != 0 && !low && at > 0)
            --at;
        return {at0.panel, lane->spanOf(at)};
    }
    if (at > 0 && slices[at - 1].end() >= t - half) return {at0.panel, lane->spanOf(at - 1)};
    if (at < slices.size() && slices[at].begin() <= t + half) return {at0.panel, lane->spanOf(at)};
    return {};
}

} // namespace stagewright
