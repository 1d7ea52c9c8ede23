// Geometry of the timeline: time ↔ pixels, rows ↔ pixels, ruler steps. Stateless free functions; logical pixels.
#pragma once

#include <memory>
#include <vector>

#include <QLineF>
#include <QRectF>

#include "schedules/base/units.h"
#include "widgets/timeline/row_plan.h"
#include "widgets/timeline/view_state.h"

class QColor;
class QPainter;

namespace stagewright {

inline constexpr double gutterWidth = 152;
// for narrower views: a small window, a one-column picture
inline constexpr double narrowView = 560, narrowGutter = 104;
constexpr double gutterFor(double viewWidth) { return viewWidth < narrowView ? narrowGutter : gutterWidth; }
inline constexpr double rulerHeight = 28;
inline constexpr double rightMargin = 16;
inline constexpr double panelHeaderHeight = 28; // bars "A", "B" of compare mode
inline constexpr double minRoundedWidth = 5;    // narrower slices are square and gapless
inline constexpr double minPillGap = 58;
inline constexpr double dragThreshold = 4;
inline constexpr double leastRowScale = 0.06, mostRowScale = 3;

// The time axis of a plot: `range` covers [left, left + width).
struct Axis {
    TimeRange range;
    double left = 0;
    double width = 0;

    // Widths ≤ 0 and empty ranges are degenerate: everything maps to `left`, and back to range.begin.
    bool degenerate() const { return width <= 0 || range.empty(); }
    double nanosPerPixel() const { return degenerate() ? 0 : static_cast<double>(range.duration()) / width; }
    double toX(Nanos t) const;    // unclamped: a time outside the range gives a place outside the plot
    Nanos toTime(double x) const; // rounded to the nearest ns, unclamped; |toX(toTime(x)) − x| ≤ half a ns
};
Axis axisIn(const QRectF& view, const TimeRange& range); // without gutter and right margin

// Zoom about an anchor (which keeps its pixel); factor > 1 shows more time. Never under 10 ns.
TimeRange zoomed(const TimeRange& range, double factor, Nanos anchor);
// Shifted by a share of its duration.
TimeRange panned(const TimeRange& range, double share);

// Shifted by logical pixels of an axis, in whole device pixels. The range becomes a whole number of ns per device pixel
// long if that changes it by less than 0.1 %, so that the same pixels mean the same times after the shift.
TimeRange pannedBy(const TimeRange& range, double pixels, double axisWidth, double ratio);

struct RulerTick {
    Nanos time = 0;
    bool major = false; // labelled
};
// Major step: the smallest of 1, 2, 5 × 10^k units with at least minSpacing px; five (or four, for 2) minor steps
// within it. Empty for a degenerate axis.
Nanos rulerStep(const Axis& axis, double minSpacing, Nanos unit = 1);
std::vector<RulerTick> rulerTicks(const Axis& axis, double minSpacing, Nanos unit = 1);

// Row heights for one way of drawing. Rows thinner than 16 px lose their communication track, under 4 px their gap.
struct RowMetrics {
    double height = 48;
    double gap = 9;
    double track = 9;    // communication track, 0: none
    double trackGap = 2; // between a row and its track
    double pitch() const { return height + gap + (track > 0 ? track + trackGap : 0); }
};
RowMetrics rowMetrics(double rowHeight, bool communication);

// The place of everything, pinned rows first, then panels stacked; y counts from below the ruler, ignoring scrolling.
struct RowPlace {
    RowKind kind = RowKind::Rank;
    int panel = 0;
    int rankIndex = 0; // index into TimelinePanel::ranks; of a group the first of its ranks
    int group = -1;    // as in RowItem
    double top = 0;
    double height = 0; // of the bar
    double track = 0;  // of the communication track under it, 0: none
    double trackGap = 0;
    int firstLane = 0; // of PanelRank::lanes …
    int lanes = 0;     // … so many sub-lanes under that
    double lanePitch = 0;
    std::vector<double> laneTops; // of each lane below lanesTop(), and their end, where streams are folded; else empty
    bool device = false;          // as in RowItem
    double lanesTop() const { return top + height + (track > 0 ? trackGap + track : 0) + (lanes > 0 ? 2 : 0); }
    double laneTop(int lane) const
    {
        return laneTops.empty() ? lane * lanePitch : laneTops[static_cast<std::size_t>(lane)];
    }
    // Lanes of a folded stream lie over each other.
    bool thin(int lane) const { return !thins.empty() && thins[static_cast<std::size_t>(lane)]; }
    double laneHeight(int lane) const { return thin(lane) ? foldedLane : lanePitch; }
    double bottom() const { return lanesTop() + laneTop(lanes); }
    std::vector<bool> thins;                // lanes of folded streams; empty: none
    static constexpr double foldedLane = 6; // with the gap below it
    int firstPosition = 0;                  // as in RowItem
    int lastPosition = 0;
};
struct PanelPlace {
    double headerTop = 0;
    double headerHeight = 0; // 0: no header
    double top = 0;          // of its first row
    double bottom = 0;       // of its last row with its gap
};
struct RowLayout {
    RowMetrics metrics; // of a rank that is neither folded nor in a group
    std::vector<PanelPlace> panels;
    std::vector<RowPlace> rows;          // every row, in drawing order: the pinned ones first
    int pinned = 0;                      // rows that don't scroll
    double pinnedHeight = 0;             // and the room they take
    double height = 0;                   // of everything
    std::shared_ptr<const RowPlan> plan; // null only in a default-constructed layout

    int rowAt(double y) const;                 // −1: none (headers, gaps; track and sub-lanes belong to the row)
    int nearestRow(double y) const;            // −1 only if there are no rows
    int rowOf(int panel, int rankIndex) const; // the row that shows a rank, or its folded group; −1: none
};
RowLayout layoutRows(std::shared_ptr<const RowPlan> plan, const RowMetrics& metrics, bool headers);
RowLayout layoutRows(const std::vector<int>& ranksByPanel, const RowMetrics& metrics, bool headers); // one row per rank

// A hatch of 45° lines, pitch px apart along x, clipped arithmetically to the rectangle (no painter clip: vector export
// ignores it). The lines are on a grid anchored at `anchor`, so that neighbouring rectangles join. Empty for an empty
// rectangle.
std::vector<QLineF> hatchLines(const QRectF& rect, QPointF anchor, double pitch = 6);
void drawHatch(QPainter& painter, const QRectF& rect, const QColor& line); // those from its top left

} // namespace stagewright
