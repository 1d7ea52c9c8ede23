#include "widgets/timeline/timeline_painter.h"

#include <algorithm>

namespace stagewright {

double TimelineScene::rowTop(int row) const
{
    return rulerHeight + rows.rows[static_cast<std::size_t>(row)].top - scroll;
}

int TimelineScene::rowOf(int panel, int rank) const
{
    if (panel < 0 || panel >= static_cast<int>(rows.panels.size())) return -1;
    const PanelPlace& place = rows.panels[static_cast<std::size_t>(panel)];
    return rank >= 0 && rank < place.rows ? place.firstRow + rank : -1;
}

std::pair<int, int> TimelineScene::visibleRows() const
{
    if (rows.rows.empty()) return {0, 0};
    const auto& all = rows.rows;
    const double low = scroll - rows.metrics.pitch(), high = scroll + rowsRect().height();
    const auto first = std::partition_point(all.begin(), all.end(), [low](const RowPlace& r) { return r.top < low; });
    const auto last = std::partition_point(first, all.end(), [high](const RowPlace& r) { return r.top < high; });
    return {static_cast<int>(first - all.begin()), static_cast<int>(last - all.begin())};
}

std::int64_t TimelineScene::visibleSlices() const
{
    std::int64_t count = 0;
    const auto [first, last] = visibleRows();
    for (int row = first; row < last; ++row) {
        const RowPlace& place = rows.rows[static_cast<std::size_t>(row)];
        const PanelRank& rank = panels[static_cast<std::size_t>(place.panel)]->ranks[static_cast<std::size_t>(place.rankIndex)];
        const auto add = [&](const LaneData& lane) {
            const std::size_t from = lane.firstEndingAfter(axis.range.begin);
            const std::size_t to = lane.firstBeginningAt(axis.range.end);
            if (to > from) count += static_cast<std::int64_t>(to - from);
        };
        add(rank.compute);
        if (rows.metrics.track > 0) {
            for (const LaneData& lane : rank.communication) add(lane);
        }
    }
    return count;
}

namespace {

struct Found {
    const LaneData* lane = nullptr; // compute, or a communication sub-lane
    int sublane = -1;               // −1: compute
    int sublanes = 0;
};

Found laneOf(const PanelRank& rank, SpanId span)
{
    if (rank.compute.sliceOf(span) < rank.compute.size()) return {&rank.compute, -1, 0};
    for (std::size_t i = 0; i < rank.communication.size(); ++i) {
        const LaneData& lane = rank.communication[i];
        if (lane.sliceOf(span) < lane.size()) return {&lane, static_cast<int>(i), static_cast<int>(rank.communication.size())};
    }
    return {};
}

} // namespace

std::optional<QRectF> TimelineScene::rectOf(SpanRef ref) const
{
    if (!ref.valid() || ref.panel >= static_cast<int>(panels.size())) return std::nullopt;
    const TimelinePanel& panel = *panels[static_cast<std::size_t>(ref.panel)];
    if (ref.span >= panel.timeline->spans().size()) return std::nullopt;
    const int row = rowOf(ref.panel, panel.timeline->trackOf(ref.span).rank);
    if (row < 0) return std::nullopt;
    const Found found = laneOf(panel.ranks[static_cast<std::size_t>(rows.rows[static_cast<std::size_t>(row)].rankIndex)], ref.span);
    if (found.lane == nullptr) return std::nullopt;
    const std::size_t at = found.lane->sliceOf(ref.span);
    const Slice& slice = found.lane->slices()[at];
    const TimeSpan drawn = found.lane->drawn(at);
    const double x0 = axis.toX(drawn.begin), x1 = axis.toX(drawn.end);
    double y = rowTop(row), height = rows.metrics.height;
    if (slice.upper != 0 || slice.lower != 0) {
        height /= 2;
        if (slice.lower != 0) y += height;
    }
    if (found.sublane >= 0) {
        if (rows.metrics.track <= 0) return std::nullopt;
        height = rows.metrics.track / found.sublanes;
        y += rows.metrics.height + rows.metrics.trackGap + found.sublane * height;
    }
    return QRectF(x0, y, x1 - x0, height);
}

SpanRef TimelineScene::spanAt(QPointF point) const
{
    if (point.x() < axis.left || point.x() >= axis.left + axis.width || point.y() < rulerHeight) return {};
    const int row = rows.rowAt(point.y() - rulerHeight + scroll);
    if (row < 0) return {};
    const RowPlace& place = rows.rows[static_cast<std::size_t>(row)];
    const PanelRank& rank = panels[static_cast<std::size_t>(place.panel)]->ranks[static_cast<std::size_t>(place.rankIndex)];
    const double inside = point.y() - rowTop(row);
    const LaneData* lane = &rank.compute;
    if (inside >= rows.metrics.height) {
        const double track = inside - rows.metrics.height - rows.metrics.trackGap;
        if (track < 0 || rows.metrics.track <= 0 || rank.communication.empty()) return {};
        const auto count = static_cast<double>(rank.communication.size());
        lane = &rank.communication[static_cast<std::size_t>(std::min(count - 1, track / rows.metrics.track * count))];
    }
    // What covers the pointer's pixel; the one under its middle first.
    const Nanos t = axis.toTime(point.x());
    const Nanos half = static_cast<Nanos>(axis.nanosPerPixel() / 2);
    const auto& slices = lane->slices();
    std::size_t at = lane->firstEndingAfter(t);
    if (at < slices.size() && slices[at].begin() <= t) {
        const bool low = inside >= rows.metrics.height / 2; // of a pair the first op lies above the second
        if (slices[at].upper != 0 && low && at + 1 < slices.size()) ++at;
        else if (slices[at].lower != 0 && !low && at > 0) --at;
        return {place.panel, lane->spanOf(at)};
    }
    if (at > 0 && slices[at - 1].end() >= t - half) return {place.panel, lane->spanOf(at - 1)};
    if (at < slices.size() && slices[at].begin() <= t + half) return {place.panel, lane->spanOf(at)};
    return {};
}

} // namespace stagewright
