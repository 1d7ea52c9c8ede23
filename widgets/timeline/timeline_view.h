// TimelineView: ranks as rows on one time axis, one panel or several stacked (compare mode). It reads and writes a
// shared ViewState and owns no run. It paints the lanes and moves the axis; what lies over them is painted, and the
// pointer and the keys are answered, by overlays, which features add. Keys and mouse: timeline_input.h and the window's
// docs. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QWidget>

#include "widgets/theme.h"
#include "widgets/timeline/overlay.h"
#include "widgets/timeline/row_cursor.h"
#include "widgets/timeline/selection_overlay.h"
#include "widgets/timeline/span_card.h"
#include "widgets/timeline/timeline_input.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

class QTimer;

namespace stagewright {

class FrameWorker;

struct RowSizes {
    double height = 0; // px; 0: default (48, in compare 38), which is scaled
    double scale = 1;  // leastRowScale to mostRowScale
    double track = 0;  // px of the communication tracks; 0: default (9)
    bool operator==(const RowSizes&) const = default;
};

class TimelineView : public QWidget {
    Q_OBJECT

public:
    explicit TimelineView(ViewState* state, QWidget* parent = nullptr); // state must outlive the view
    ~TimelineView() override;
    ViewState* viewState() const { return m_state; }

    // The first call fits the view; later ones keep it if it is still inside, so that a live run may grow. Headers with
    // badges A, B … appear with two or more panels. Selections that no longer exist are dropped.
    void setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels);
    void setRun(std::shared_ptr<const Timeline> timeline, const PanelOptions& options = {}); // one panel; null: none
    const std::vector<std::shared_ptr<const TimelinePanel>>& panels() const { return m_scene.panels; }
    // Drawn in place of panel 0, with the same ranks; null: panel 0 again. The pointer's place is given in panel 0
    // anyway, so that the preview does not run away from it. New panels drop it.
    void setPreview(std::shared_ptr<const TimelinePanel> panel);
    void setFaded(SpanRef ref); // of what is drawn; invalid: none. New panels drop it

    void setTheme(const Theme& theme);
    const Theme& theme() const { return *m_theme; }
    void setRowSizes(const RowSizes& sizes);
    const RowSizes& rowSizes() const { return m_sizes; }
    void setTitle(const QString& title); // over the gutter: "Timeline", "Shared time axis"

    void add(Overlay* overlay); // over those of its layer that are there
    void remove(Overlay* overlay);
    const std::vector<Overlay*>& overlays() const { return m_overlays; } // from the lowest
    SelectionOverlay& selection() const { return *m_selection; }
    RowCursor& rowCursor() const { return *m_rowCursor; }
    TimelineInput& input() const { return *m_input; }

    // What is where, as it was laid out last: rows, axis, selection.
    const TimelineScene& scene() const { return m_scene; }
    std::optional<QRectF> rectOf(SpanRef ref) const { return m_scene.rectOf(ref); } // unclipped; nullopt: not shown
    void setScrollTop(double top);
    void showRows(double top, double bottom);        // y in the view: scrolls as little as shows them
    void setZoomBox(std::optional<TimeRange> range); // the part that a zoom would show; all else is veiled

    bool showsDraft() const { return m_canvas.detail == Detail::Draft; } // until the exact frame arrives
    // "100 slices, 4 ranks · view 0.0 – 282.6 ms · 1 px = 253 µs, about 40 ops per px"
    QString statusText() const;
    CardText cardOf(SpanRef ref) const;                         // the hover card of an op
    CardText idleCardOf(const RowPlace& row, Nanos time) const; // and of a rank's idle time; empty: it is not idle
    CardText cardAt(QPointF point) const; // of whatever is there, that of the highest overlay first

    // Paints everything with the requested marks into the rectangle; any painter, any pixel ratio.
    // In a rectangle narrower than narrowView rows shrink until all fit, without communication tracks.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, const PaintedMarks& marks = {}) const;
    double paintedHeight(double width) const; // preferred height of such a picture: as on screen, less if it is narrow
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {420, 140}; }

signals:
    void statusChanged(const QString& text);
    void rowsLaidOut(); // the rows changed

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void layOut();
    void moved();      // the axis: most of the frame stays
    void invalidate(); // the frame: a draft now, the exact one when input rests
    void settle();
    void acceptFrame(const QImage& image, std::uint64_t generation);
    void planAgain();
    TimelineScene sceneFor(const QSizeF& size) const;

    ViewState* m_state;
    TimelineScene m_scene;
    const Theme* m_theme = &Theme::light();
    RowSizes m_sizes;
    std::shared_ptr<const RowPlan> m_plan;
    bool m_started = false; // a run has been set
    TimelineCanvas m_canvas;
    bool m_frameStale = true;
    bool m_frameMoved = false; // only the axis has moved since
    std::uint64_t m_generation = 0;
    QTimer* m_settle;
    std::unique_ptr<FrameWorker> m_worker;
    std::vector<Overlay*> m_overlays; // not owned, but for the first two
    SelectionOverlay* m_selection;
    RowCursor* m_rowCursor;
    TimelineInput* m_input;
    mutable CauseCache m_causes;
};

} // namespace stagewright
