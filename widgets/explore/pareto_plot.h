// ParetoPlot: schedules by the activation peak of their fullest rank and their step time (or bubble). The frontier is a
// line, proven bounds are dashed, schedules over the cap are grey. A click selects, a double click or Enter opens; the
// arrow keys move. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "schedules/survey/explore_question.h"
#include "widgets/explore/plot_frame.h"
#include "widgets/themed_widget.h"

namespace stagewright {

using SweepRows = std::shared_ptr<const std::vector<SweepRow>>;

class ParetoPlot : public ThemedWidget {
    Q_OBJECT
public:
    explicit ParetoPlot(QWidget* parent = nullptr);
    void setRows(SweepRows rows, const ExploreQuestion& question, ExploreMeasure measure);
    void setBounds(std::vector<ExploreBound> bounds);
    void setSelected(int row); // −1: none
    int selected() const { return m_selected; }

    QPointF placeOf(int row) const; // of a valid row, in widget coordinates
    int markCount() const { return static_cast<int>(m_marks.size()); }
    std::vector<QRectF> labels() const; // as painted, in widget coordinates
    const std::vector<std::size_t>& frontier() const { return m_frontier; }
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    QSize sizeHint() const override { return {640, 420}; }
    QSize minimumSizeHint() const override { return {300, 200}; }

signals:
    void rowChosen(int row);
    void rowActivated(int row);
    void rowHovered(int row); // −1: none

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override; // tooltips, and keys that are shortcuts outside

private:
    struct Mark { // the rows at one place
        double x = 0, y = 0;
        std::vector<int> rows;
        bool onFrontier = false;
        bool over = false;  // the cap
        bool stale = false; // every row has stale weights
        bool copies = false;
    };
    struct ExploreLine {
        QPolygonF points;
        int chunks = 0; // 0: the frontier, else a bound's
    };
    PlotFrame frameIn(const QRectF& rect) const;
    std::vector<ExploreLine> linesIn(const PlotFrame& frame) const;
    void makeMarks();
    int markAt(QPointF point) const;
    int markOf(int row) const;
    QString nameOf(const Mark& mark, int most) const;
    QString tipOf(const Mark& mark) const;
    std::vector<std::pair<QRectF, int>> placeLabels(const PlotFrame& frame) const; // rectangle, mark
    // its lines; the first is beside the title of the axis
    QStringList legendIn(double width) const;
    QRectF workLabel(const PlotFrame& frame) const;
    QRectF capLabel(const PlotFrame& frame) const;
    void paintBounds(QPainter& painter, const PlotFrame& frame, const Theme& theme) const;

    SweepRows m_rows;
    ExploreQuestion m_question;
    ExploreMeasure m_measure = ExploreMeasure::StepTime;
    std::vector<ExploreBound> m_bounds;
    std::vector<Mark> m_marks;           // by rising x, then y
    std::vector<std::size_t> m_frontier; // rows
    int m_selected = -1;
    int m_hovered = -1; // mark
};

} // namespace stagewright
