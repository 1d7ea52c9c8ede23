// FlameView: stacks of ranges and kernels as a flame graph, the outermost range at the top, every node as wide as its
// share of the time. A click makes a node fill the width, one on the row of its holders goes back; arrows walk, Return
// chooses, Backspace goes back. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QAbstractScrollArea>

#include "traces/analysis/range_stacks.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

namespace stagewright {

class FlameView : public QAbstractScrollArea {
    Q_OBJECT
public:
    explicit FlameView(QWidget* parent = nullptr);

    // null: nothing is shown, and `reason` says why. `about`: what it is of, for the line above.
    void setStacks(std::shared_ptr<const RangeStacks> stacks, const Units& units, const QString& about,
                   const QString& reason = {});
    void setTheme(const Theme& theme);
    const RangeStacks* stacks() const { return m_stacks.get(); }
    int root() const { return m_root; }       // the node that fills the width; −1: everything
    int current() const { return m_current; } // −1: none
    void zoomTo(int node);
    QRectF place(int node) const; // on the viewport; empty: not drawn
    QString lineText() const;     // above the graph: what is pointed at, else what it is of

signals:
    void spanChosen(stagewright::SpanId span); // the longest of the node that was chosen

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Box {
        double left = 0, right = 0; // shares of the width
        int row = 0;
        bool drawn = false;
    };
    void arrange();
    int nodeAt(const QPointF& at) const;
    void setCurrent(int node);
    QString textOf(int node) const;

    std::shared_ptr<const RangeStacks> m_stacks;
    std::vector<std::vector<int>> m_children; // by node + 1
    std::vector<Box> m_boxes;                 // by node
    int m_rows = 0;
    int m_root = -1, m_current = -1, m_hovered = -1;
    Units m_units;
    QString m_about, m_reason;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
