// RowsController: the timeline's rows as the user wants them: pinned, folded and grouped ranks, their sub-lanes, and how
// times are written. Connects the actions of the menus Rows and Times, the menus of the gutter and of idle time, and
// remembers what was chosen: groups and times for good, ranks for runs with as many ranks.
#pragma once

#include <QObject>
#include <QPoint>

#include "app/ui/actions.h"
#include "widgets/numbers.h"
#include "widgets/view_state.h"

class QMenu;

namespace stagewright {

class MainWindow;

class RowsController : public QObject {
    Q_OBJECT
public:
    explicit RowsController(MainWindow& window);
    void fitRows(); // as tall as the user wants them, else as the window has room for

    void fillRowMenu(QMenu& menu, int row); // what a right click on the gutter offers
    void fillGapMenu(QMenu& menu, int panel, int rank, Nanos axisTime);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // the views' room

private:
    void scaleRows(double notches);
    void setRowScale(double scale); // 0: as the window needs; remembered
    double suitableScale() const;
    void restore();
    void remember() const;
    void runChanged(); // another number of ranks: what was chosen for it
    void refresh();    // which actions are checked and can be used
    void toggleRanks(std::set<int> RowSettings::*of);
    void setUnit(TimeUnit unit);
    void refreshUnit();
    void setGrouping(Grouping grouping, int size = 0);

    MainWindow& m_window;
    int m_ranks = 0; // of the run shown
    double m_rowScale = 0; // chosen; 0: as the window needs
};

} // namespace stagewright
