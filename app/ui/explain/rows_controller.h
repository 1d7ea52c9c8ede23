// RowsController: the timeline's rows: pinned, folded and grouped ranks, their sub-lanes, and how times are printed.
// Connects the actions of the Rows and Times menus and the context menus of the gutter and of idle time, and remembers
// the settings: groups and times for all runs, ranks for runs with the same number of ranks.
#pragma once

#include <QObject>
#include <QPoint>

#include "app/ui/workspace/actions.h"
#include "app/ui/workspace/feature.h"
#include "widgets/numbers.h"
#include "widgets/timeline/view_state.h"

class QMenu;

namespace stagewright {

class RowsController : public Feature {
    Q_OBJECT
public:
    explicit RowsController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    void fitRows(); // uses the chosen height, else fits the window

    void fillRowMenu(QMenu& menu, int row); // context menu of the gutter
    void fillGapMenu(QMenu& menu, int panel, int rank, Nanos axisTime);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // the views' room

private:
    void scaleRows(double notches);
    void setRowScale(double scale); // 0: automatic; remembered
    double suitableScale() const;
    double wholeScale() const; // at which every row is in view, as far as rows may shrink
    void restore();
    void remember() const;
    void runChanged(); // restores the settings for its number of ranks
    void refresh();    // checks and enables actions
    void toggleRanks(std::set<int> RowSettings::*of);
    void setUnit(TimeUnit unit);
    void refreshUnit();
    void setGrouping(Grouping grouping, int size = 0);

    int m_ranks = 0;        // of the run shown
    bool m_fitsAll = false; // every row is kept in view, until another height is chosen
    double m_rowScale = 0;  // chosen; 0: automatic
};

} // namespace stagewright
