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
#include "widgets/timeline/timeline_flags.h"
#include "widgets/timeline/timeline_notes.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

// The marks of a timeline picture in addition to its frame.
struct PaintedMarks {
    bool hover = false;
    bool selection = true; // op, areas, arrows
    bool notes = true;
};

// What edit mode shows during a drag: where the op would go and whether that order is valid.
struct DragFeedback {
    SpanRef span;    // the dragged op, painted faded at its place
    int toRank = -1; // the row the ghost is painted on
    Nanos begin = 0; // axis time of the ghost (of the re-simulated op, or under the pointer)
    Nanos end = 0;
    std::optional<Nanos> insertAt; // axis time of the insertion bar on toRank
    bool valid = true;
    QString message; // under the ghost: "+3.0 ms", "2B4 would come before its forward"
};

struct TimelineScene {
    std::vector<std::shared_ptr<const TimelinePanel>> panels;
    RowLayout rows;
    Axis axis;
    QSizeF size;
    double scroll = 0; // px of the rows scrolled off
    QString title = u"Timeline"_s;
    bool smallLabels = false; // if normal labels don't fit, in narrow pictures, which can't be zoomed
    // per panel from the second: its change against the first exceeds the noise; absent: true
    std::vector<bool> differenceShows;
    bool showCritical = true;
    bool showCommunication = true;
    GroupLook groupLook = GroupLook::Kinds;
    TimeOrigin timeOrigin = TimeOrigin::Step;
    int cursor = -1; // the row that row keys act on; −1: not shown
    SpanRef selected;
    std::vector<AreaSelection> areas;
    SpanRef hovered;
    MicrobatchRef microbatch;
    std::optional<Nanos> hoverTime;
    std::optional<DragFeedback> drag;
    std::optional<TimeRange> zoomBox;
    std::shared_ptr<const TimelineNotes> notes; // may be null
    std::shared_ptr<const TimelineFlags> flags; // as above

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
