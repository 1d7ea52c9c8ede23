// AggregationPanel: the table of the selected area under the charts: what ran there, by kind, stage, microbatch, rank
// or name, every op trimmed to the range, and how long the ops of the current row took. Sorted by any column, copied
// with Ctrl+C. Hidden while nothing is selected. GUI thread only; large areas are summed on a worker.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "widgets/job.h"
#include "widgets/theme.h"
#include "widgets/timeline/aggregate_table.h"

class QComboBox;
class QLabel;
class QTableView;

namespace stagewright {

class AggregateModel;
class DurationBars;

class AggregationPanel : public QWidget {
    Q_OBJECT
public:
    explicit AggregationPanel(QWidget* parent = nullptr);

    void setAreas(std::vector<std::shared_ptr<const TimelinePanel>> panels, std::vector<AreaSelection> areas,
                  std::shared_ptr<const RowPlan> plan);
    void setBy(AggregateBy by);
    AggregateBy by() const { return m_by; }
    void setTheme(const Theme& theme);
    const AggregateTable& table() const { return m_table; } // what is shown
    bool ready() const { return !m_summing.running(); }     // the table is of the areas
    QTableView* view() const { return m_view; }
    const DurationBars* bars() const { return m_bars; }
    QSize sizeHint() const override { return {600, 180}; }

signals:
    void cleared(); // the button: clears the selection
    void byChanged(stagewright::AggregateBy by);

protected:
    void paintEvent(QPaintEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void ask();
    void fill(AggregateTable table);
    void showDurations(); // of the current row; without one, of the longest line
    void placeBars();     // beside the table, where there is room

    std::vector<std::shared_ptr<const TimelinePanel>> m_panels;
    std::vector<AreaSelection> m_areas;
    std::shared_ptr<const RowPlan> m_plan;
    AggregateBy m_by = AggregateBy::Kind;
    AggregateTable m_table;
    Job m_summing;
    const Theme* m_theme = &Theme::light();
    QLabel* m_title;
    QComboBox* m_choice;
    QTableView* m_view;
    AggregateModel* m_model;
    DurationBars* m_bars;
};

} // namespace stagewright
