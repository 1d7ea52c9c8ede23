// Painting the timeline: a scene (what to show, where) and functions that paint it with any QPainter at any pixel
// ratio.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QImage>
#include <QPainter>
#include <QStringList>

#include "widgets/literals.h"
#include "widgets/theme.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/lane_raster.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct TimelineScene {
    std::vector<std::shared_ptr<const TimelinePanel>> panels;
    RowLayout rows;
    Axis axis;
    QSizeF size;
    double scroll = 0; // px of the rows scrolled off
    QString title = u"Timeline"_s;
    bool smallLabels = false; // if normal labels don't fit, in narrow pictures, which can't be zoomed
    bool showFolds = true;    // triangles that fold rows; not in pictures, where nothing can be folded
    bool showCritical = true;
    bool showCommunication = true;
    GroupLook groupLook = GroupLook::Kinds;
    TimeOrigin timeOrigin = TimeOrigin::Step;
    SpanRef selected;
    std::vector<AreaSelection> areas;
    MicrobatchRef microbatch;
    std::optional<Nanos> hoverTime;
    SpanRef faded; // an op that is being dragged
    std::optional<TimeRange> zoomBox;
    std::shared_ptr<const TimelinePanel> preview; // drawn in place of the first panel; may be null

    // What the ruler prints at an axis time. Compared runs share an axis from their start.
    Nanos shownTime(Nanos axisTime) const
    {
        return panels.size() == 1 ? panels.front()->shownTime(axisTime, timeOrigin) : axisTime;
    }
    // only these device pixels of the plot are painted, [first, last) from its left edge
    std::optional<std::pair<int, int>> columns;

    // The axis in device pixels for rasterising: its range starts at column firstColumn(ratio).
    Axis deviceAxis(double ratio) const;
    int firstColumn() const { return columns ? columns->first : 0; }
    QRectF rowsRect() const { return {0, rulerHeight, size.width(), std::max(0.0, size.height() - rulerHeight)}; }
    QRectF plotRect() const // of the rows, right of the gutter, with room for outlines
    {
        const double gutter = gutterFor(size.width());
        return {gutter - 4, rulerHeight, std::max(0.0, size.width() - gutter + 4), rowsRect().height()};
    }
    const TimelinePanel& panel(int index) const { return *panels[static_cast<std::size_t>(index)]; }
    int rankNumber(SpanRef ref) const { return panel(ref.panel).timeline->trackOf(ref.span).rank; }
    // A rank's compute row, by its index in the panel; unclipped; nullopt: none.
    std::optional<QRectF> rowRect(int panel, int rankIndex) const;
    // The height of the communication track below a row, including the gap; 0: none.
    double trackHeight() const { return rows.metrics.track > 0 ? rows.metrics.track + rows.metrics.trackGap : 0; }
    double contentHeight() const { return rulerHeight + rows.height; } // of the ruler and all rows
    const RowPlace& place(int row) const { return rows.rows[static_cast<std::size_t>(row)]; }
    double rowTop(int row) const;   // in the view, scrolled
    int rowUnder(double y) const;   // y in the view; −1: none
    int nearestRow(double y) const; // −1 only if there are no rows
    const PanelRank& rankOf(const RowPlace& row) const
    {
        return panels[static_cast<std::size_t>(row.panel)]->ranks[static_cast<std::size_t>(row.rankIndex)];
    }
    const RankGroup& groupOf(const RowPlace& row) const
    {
        return rows.plan->groups[static_cast<std::size_t>(row.panel)][static_cast<std::size_t>(row.group)];
    }
    // The part of the view for pinned rows, or for scrolling rows.
    QRectF pinnedRect() const
    {
        return {0, rulerHeight, size.width(), std::min(rows.pinnedHeight, rowsRect().height())};
    }
    QRectF scrolledRect() const { return rowsRect().adjusted(0, pinnedRect().height(), 0, 0); }
    std::optional<QRectF> rectOf(SpanRef ref) const;
    SpanRef spanAt(QPointF point) const;
    // The place of an area: one rectangle over neighbouring pinned or scrolling rows.
    std::vector<QRectF> rectsOf(const AreaSelection& area, bool pinned) const;
    bool isCovered(const QRectF& rect, SpanRef ref) const;                             // scrolled under the pinned rows
    int rowOf(int panel, int rankIndex) const { return rows.rowOf(panel, rankIndex); } // −1: none
    // of the rows in view; O(rows × log slices)
    std::int64_t visibleSlices() const;
    std::vector<int> visibleRows() const; // in drawing order
};

// The frame below hover marks: grid, rows, slices, labels, critical path, header bars, difference region, gutter,
// ruler. `own`: the RGB32 image that the painter paints on from its top left corner, if it may be written to directly
// (faster).
void paintFrame(QPainter& painter, const TimelineScene& scene, const Theme& theme, Detail detail,
                QImage* own = nullptr);
void paintRulerOf(QPainter& painter, const TimelineScene& scene, const Theme& theme); // only the ruler of a frame
// A painted frame kept between paint events.
struct TimelineCanvas {
    QImage image;
    Detail detail = Detail::Exact;
    Axis axis; // the axis it was painted for
};

} // namespace stagewright
