// TimelineView: ranks as rows on one time axis, one panel or several stacked (compare mode). It reads and writes a
// shared ViewState and owns no run. Keys and mouse: widgets/timeline/key_map.h and the window's docs. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPointer>
#include <QWidget>

#include "widgets/theme.h"
#include "widgets/timeline/aggregation.h"
#include "widgets/timeline/key_map.h"
#include "widgets/timeline/span_card.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

class QTimer;

namespace stagewright {

class FrameWorker;
class HoverCard;

class TimelineView : public QWidget {
    Q_OBJECT

public:
    explicit TimelineView(ViewState* state, QWidget* parent = nullptr); // state must outlive the view
    ~TimelineView() override;
    ViewState* viewState() const { return m_state; }
    std::shared_ptr<const RowPlan> rowPlan() const { return m_plan; } // null before the first panels

    // The first call fits the view; later ones keep it if it is still inside, so that a live run may grow. Headers with
    // badges A, B … appear with two or more panels. Selections that no longer exist are dropped.
    void setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels);
    void setRun(std::shared_ptr<const Timeline> timeline, const PanelOptions& options = {}); // one panel; null: none
    const std::vector<std::shared_ptr<const TimelinePanel>>& panels() const { return m_scene.panels; }

    void setTheme(const Theme& theme);
    void setKeyMap(KeyMapName name) { m_keyMap = name; }
    KeyMapName keyMap() const { return m_keyMap; }
    void setRowHeight(double pixels); // 0: default (48, in compare 38)
    // Scales all row heights by a factor, 0.35 to 3; without setRowHeight.
    void setRowScale(double scale);
    double rowScale() const { return m_rowScale; }
    void setTrackHeight(double pixels); // of the communication tracks; 0: default (9)
    // Per panel after the first: its change exceeds the noise; otherwise the band says so. Empty: all do.
    void setDifferenceShows(std::vector<bool> shows);
    void setTitle(const QString& title); // over the gutter: "Timeline", "Shared time axis"

    // Edit mode: dragging an op emits opPressed, opDragged …, then opDropped or opDragCancelled, and moves nothing
    // itself; the model responds with setDragFeedback and, after the drop, new panels.
    void setEditMode(bool on);
    bool editMode() const { return m_editMode; }
    void setNotes(std::shared_ptr<const TimelineNotes> notes); // of panel 0; null: none. New panels drop them
    std::shared_ptr<const TimelineNotes> notes() const { return m_scene.notes; }
    void setFlags(std::shared_ptr<const TimelineFlags> flags); // notes and finds; null: none. New panels keep them
    std::shared_ptr<const TimelineFlags> flags() const { return m_scene.flags; }
    int flagAt(QPointF point) const; // the number of the note with its flag there; −1: none
    void setDragFeedback(const std::optional<DragFeedback>& feedback);
    // Where a new op dropped at this point would be placed: on the rank of the row there, before the first op with its
    // middle to the right. nullopt: no rank's row is there.
    struct DropPlace {
        int panel = 0;
        int rank = 0;
        int position = 0; // in the rank's list
    };
    std::optional<DropPlace> dropPlace(QPointF at) const;
    // Drawn in place of panel 0 while an op is dragged, with the same ranks; null: panel 0 again. The pointer's place
    // is given in panel 0 anyway, so that the preview does not run away from it. New panels drop it.
    void setPreview(std::shared_ptr<const TimelinePanel> panel);
    std::shared_ptr<const TimelinePanel> preview() const { return m_preview; }

    SpanRef spanAt(QPointF point) const;             // compute or communication; invalid over idle
    std::optional<QRectF> rectOf(SpanRef ref) const; // in widget coordinates, unclipped; nullopt: not shown
    Axis axis() const { return m_scene.axis; }
    void fitSelection(); // fits the selection; again, or without one: everything
    void fitSpan(SpanRef ref);
    void ensureVisible(SpanRef ref);
    void ensureRowVisible(int panel, int rank); // scrolls the rows, not the time
    // Rows. The target of row keys: the ranks of the selected areas, else the row of the cursor, else that of the
    // selected op.
    const RowLayout& layout() const { return m_scene.rows; }
    std::vector<int> chosenRanks() const; // their ranks, ascending
    int cursorRow() const;                // −1: none
    void setCursorRow(int row);           // shown and scrolled to
    void moveCursor(int by);
    void toggleGroup(int row);      // opens or folds the group, or the group of its rank
    QString rowText(int row) const; // "Rank 3, pinned", "Ranks 0 to 31, folded": for screen readers and menus
    double scrollTop() const { return m_scene.scroll; }
    void setScrollTop(double top);
    double contentHeight() const; // of the ruler and all rows
    // A rank's compute row, by its index in the panel; in widget coordinates, unclipped; nullopt: none.
    std::optional<QRectF> rowRect(int panel, int rankIndex) const;
    double trackHeight() const; // of the communication track below a row, including the gap; 0: none

    bool showsDraft() const { return m_canvas.detail == Detail::Draft; } // until the exact frame arrives
    // "100 slices, 4 ranks · view 0.0 – 282.6 ms · 1 px = 253 µs, about 40 ops per px"
    QString statusText() const;
    Aggregation aggregation() const;    // of the selected areas
    CardText cardOf(SpanRef ref) const; // text of the hover card

    // Paints everything with the requested marks into the rectangle; any painter, any pixel ratio.
    // In a rectangle narrower than narrowView rows shrink until all fit, without communication tracks.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, const PaintedMarks& marks = {}) const;
    double paintedHeight(double width) const; // preferred height of such a picture: as on screen, less if it is narrow
    std::int64_t visibleSlices() const { return m_scene.visibleSlices(); }
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {420, 140}; }

signals:
    void spanActivated(stagewright::SpanRef ref);                       // double click or Enter
    void idleClicked(int panel, int rank, stagewright::Nanos axisTime); // a click on a row without an op there
    // The keys reached an op of a step without loaded spans.
    void sliceAsked(int panel, int rank, stagewright::Nanos axisTime);
    void areaAggregated(const stagewright::Aggregation& aggregation); // live while dragging; empty when cleared
    void statusChanged(const QString& text);
    void contextMenuAsked(const QPoint& globalPosition, stagewright::SpanRef ref);
    void gapMenuAsked(const QPoint& globalPosition, int panel, int rank, stagewright::Nanos axisTime); // on idle time
    // Ctrl+Shift+wheel: > 0 taller
    void rowScaleAsked(double notches);
    // on the gutter; the cursor is there
    void rowMenuAsked(const QPoint& globalPosition, int row);
    // the rows changed
    void rowsLaidOut();
    void cursorMoved();
    // Positions index the rank's compute spans of the step, as Schedule::order does. `to` counts without the dragged op
    // where toRank is its own rank (place in the list without it), else with all ops of toRank.
    void opPressed(stagewright::SpanRef ref, int rank, int position);
    void opDragged(stagewright::SpanRef ref, int rank, int from, int toRank, int to);
    void opDropped(stagewright::SpanRef ref, int rank, int from, int toRank, int to);
    void opDragCancelled();
    // Ctrl+click in edit mode; the selection stays
    void opToggled(stagewright::SpanRef ref);
    void opNudged(stagewright::SpanRef ref, int rank, int position, int by); // Ctrl+Left/Right in edit mode: −1, +1

protected:
    bool event(QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void contextMenuEvent(QContextMenuEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    enum class Drag {
        None,
        Pending,
        Area,
        AreaEdge,
        Pan,
        Zoom,
        Op,
    };
    struct DragState {
        Drag kind = Drag::None;
        Qt::MouseButton button = Qt::NoButton;
        Qt::KeyboardModifiers modifiers;
        QPointF from;
        SpanRef span; // Op
        int rank = -1;
        int position = -1;
        int toRank = -1;
        int to = -1;
        std::size_t area = 0; // AreaEdge
        bool movesEnd = false;
        TimeRange rangeAtStart;
        double scrollAtStart = 0;
        std::vector<AreaSelection> areasAtStart;
    };

    void layOut();
    void moved();      // the axis: most of the frame stays
    void invalidate(); // the frame: a draft now, the exact one when input rests
    void hoverAt(QPointF point);
    void beginDrag();
    void moveDrag(QPointF at);
    void endDrag(QPointF at);
    void cancelDrag();
    void dragOp(QPointF at);
    int positionAt(const TimelinePanel& panel, int rank, QPointF at, SpanId dragged) const; // noSpan: none of them
    AreaSelection areaBetween(QPointF a, QPointF b) const;
    // to an op edge within 6 px, of the ranks at these positions
    Nanos snapped(double x, int first, int last) const;
    std::optional<std::pair<std::size_t, bool>> areaEdgeAt(QPointF point) const; // area, whether its end
    void updateCursor(QPointF point);
    void emitAreas();
    bool perform(ViewAction action);
    void walkOnRank(int by);
    void walkStage(int by);
    void walkDependency(bool forward);
    void showRows(double top, double bottom); // y in the view
    void choose(SpanRef ref);                 // selects it and scrolls to it
    void settle();
    void acceptFrame(const QImage& image, std::uint64_t generation);
    TimelineScene sceneFor(const QSizeF& size) const;
    int rowHeightFor(std::size_t panelCount) const;
    void planAgain();
    CardText groupCard(const RowPlace& row, Nanos axisTime) const;
    void gutterClicked(QPointF at);

    ViewState* m_state;
    TimelineScene m_scene;
    const Theme* m_theme = &Theme::light();
    KeyMapName m_keyMap = KeyMapName::Perfetto;
    double m_rowHeight = 0;
    double m_rowScale = 1;
    double m_trackHeight = 0;
    bool m_editMode = false;
    std::shared_ptr<const RowPlan> m_plan;
    // position of its first rank, and whether it is a group (1) or a rank (0)
    std::optional<std::pair<int, int>> m_cursor;
    std::shared_ptr<const TimelinePanel> m_preview;
    bool m_started = false; // a run has been set
    DragState m_drag;
    TimelineCanvas m_canvas;
    bool m_frameStale = true;
    bool m_frameMoved = false; // only the axis has moved since
    std::uint64_t m_generation = 0;
    QTimer* m_settle;
    std::unique_ptr<FrameWorker> m_worker;
    QPointer<HoverCard> m_card;
    mutable CauseCache m_causes;
};

} // namespace stagewright
