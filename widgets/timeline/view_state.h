// ViewState: what all views of a run share. One object per window; views read it and follow its signals.
//
// Times here are axis time: ns from a panel's origin (TimelinePanel::origin), so that two runs share one axis.
// GUI thread only.
#pragma once

#include <optional>
#include <vector>

#include <QObject>

#include "schedules/timeline/timeline.h"
#include "widgets/timeline/row_plan.h"

namespace stagewright {

struct TimeRange {
    Nanos begin = 0;
    Nanos end = 0;
    Nanos duration() const { return end - begin; }
    bool empty() const { return end <= begin; }
    bool contains(Nanos t) const { return t >= begin && t < end; }
    bool operator==(const TimeRange&) const = default;
};

// A span of a panel (panel 0 is A, or the only one).
struct SpanRef {
    int panel = -1;
    SpanId span = noSpan;
    bool valid() const { return panel >= 0 && span != noSpan; }
    bool operator==(const SpanRef&) const = default;
};

// What hovering highlights everywhere: one microbatch of one step (of every stage, rank and kind).
struct MicrobatchRef {
    int microbatch = -1;
    int step = -1;
    bool valid() const { return microbatch >= 0; }
    bool operator==(const MicrobatchRef&) const = default;
};

// A selected area: a time range over ranks. Rows are positions: (panel, rank) pairs counted in drawing order, panels
// stacked, as if nothing were pinned or folded (RowPlan::positionOf).
struct AreaSelection {
    TimeRange range;
    int firstRow = 0;
    int lastRow = 0; // inclusive
    bool operator==(const AreaSelection&) const = default;
};

// Where moments are counted from. Relative: the start of their step; absolute: the start of the run.
enum class TimeOrigin : std::uint8_t {
    Step,
    Run,
};

struct ShownParts {
    bool criticalPath = true;
    bool communication = true;
    bool memory = true;
    bool operator==(const ShownParts&) const = default;
};

class ViewState : public QObject {
    Q_OBJECT

public:
    explicit ViewState(QObject* parent = nullptr) : QObject(parent) {}

    // The loaded extent (union of the panels, from 0) and the part of it in view. The visible range is kept
    // within the extent plus 10 % on either side and never under 10 ns.
    TimeRange extent() const { return m_extent; }
    void setExtent(const TimeRange& extent);
    // The extent reaches at least to here, however short the panels are, so that the axis stays while ops are placed;
    // 0: it ends with them.
    void setLeastEnd(Nanos end);
    Nanos leastEnd() const { return m_leastEnd; }
    TimeRange visible() const { return m_visible; }
    void setVisible(const TimeRange& range, bool remember = true); // remember: a new entry in the history
    void rememberVisible();                                        // ends a series of unremembered changes (a drag)
    void fitAll();
    void fit(const TimeRange& range); // with a margin of 4 %
    TimeRange fittedExtent() const;   // what fitAll() shows
    bool isFitted() const { return m_visible == fittedExtent(); }

    bool canGoBack() const { return m_at > 0; }
    bool canGoForward() const { return m_at + 1 < m_history.size(); }
    void goBack();
    void goForward();
    void clearHistory();

    std::optional<Nanos> hoverTime() const { return m_hoverTime; }
    void setHoverTime(std::optional<Nanos> time);
    SpanRef hovered() const { return m_hovered; }
    MicrobatchRef hoveredMicrobatch() const { return m_hoveredMicrobatch; }
    void setHovered(const SpanRef& ref, const MicrobatchRef& microbatch = {});

    SpanRef selected() const { return m_selected; }
    void select(const SpanRef& ref); // clears the area
    const std::vector<AreaSelection>& areas() const { return m_areas; }
    void setAreas(std::vector<AreaSelection> areas); // Ctrl+drag adds; clears the selected span if not empty
    std::optional<TimeRange> selectedRange() const;  // union of the areas; a range filters every other view
    void clearSelection();

    const ShownParts& shows() const { return m_shows; }
    void setShows(const ShownParts& parts);

    const RowSettings& rows() const { return m_rows; }
    void setRows(const RowSettings& rows); // another grouping clears the areas, since they covered other ranks
    TimeOrigin timeOrigin() const { return m_timeOrigin; }
    void setTimeOrigin(TimeOrigin origin);
    void notifyUnits() { emit timeDisplayChanged(); } // the unit of times (numbers.h) changed

signals:
    void extentChanged();
    void visibleChanged();
    void historyChanged();
    void hoverTimeChanged();
    void hoveredChanged();
    void selectionChanged(); // span or areas
    void shownChanged();     // those parts
    void rowsChanged();
    void timeDisplayChanged(); // origin or unit of times

private:
    TimeRange bounded(TimeRange range) const;

    TimeRange m_given; // of the panels
    Nanos m_leastEnd = 0;
    TimeRange m_extent;
    TimeRange m_visible;
    std::vector<TimeRange> m_history;
    std::size_t m_at = 0;
    std::optional<Nanos> m_hoverTime;
    SpanRef m_hovered;
    MicrobatchRef m_hoveredMicrobatch;
    SpanRef m_selected;
    std::vector<AreaSelection> m_areas;
    ShownParts m_shows;
    RowSettings m_rows;
    TimeOrigin m_timeOrigin = TimeOrigin::Step;
};

} // namespace stagewright
