// PlannerPanel: the dialog of the planner: what is planned, within which memory, for how long; while it searches the best
// order so far and the bound; then the order before and after, with what is proven of it. It searches nothing itself.
// GUI thread only.
#pragma once

#include <memory>
#include <optional>

#include <QDialog>

#include "schedules/plan/plan.h"
#include "widgets/memory/memory_budget.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/timeline/timeline_panel.h"

class QCheckBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace stagewright {

class Miniature;

// An order as it is timed: its picture and what is said of it.
struct PlannedOrder {
    std::shared_ptr<const TimelinePanel> panel; // null: it can't be drawn
    Nanos step = 0;
    Bytes peak = 0; // of the fullest rank; 0: unknown
    double bubble = 0;
};

class PlannerPanel : public QDialog {
    Q_OBJECT
public:
    PlannerPanel(const Theme& theme, QWidget* parent);

    // splits: the order parts its backward already; canSplit: the costs know I and W.
    void setSubject(const QString& name, const QString& costs, const Units& units, const PlannedOrder& before,
                    std::optional<Bytes> cap, bool splits, bool canSplit);
    Result<std::optional<Bytes>> cap() const; // of a rank's activations, as typed; Usage: not a size
    bool split() const;
    int seconds() const;

    void setSearching(); // until an answer or a fault comes
    // In units of time of the subject, ms of the budget.
    void setProgress(Nanos best, Nanos bound, qint64 done, qint64 total);
    void setAnswer(const Plan& plan, const PlannedOrder& after);
    void setFault(const Error& error);
    bool searching() const { return m_searching; }
    QString plainText() const; // all that is said, for tests

signals:
    void searchAsked();
    void stopAsked();
    void useAsked();

private:
    void refresh();

    MemoryBudget m_cap;
    Units m_units;
    PlannedOrder m_before;
    bool m_searching = false, m_found = false;
    QLabel *m_what, *m_fault, *m_state;
    QLineEdit* m_memory;
    QSpinBox* m_time;
    QCheckBox* m_split;
    QProgressBar* m_bar;
    Miniature *m_old, *m_new;
    PanelSection* m_figures;
    QPushButton *m_search, *m_stop, *m_use;
};

} // namespace stagewright
