// StatePicture: the ZeRO stages of one schedule as bars, above time and memory of every schedule, which scroll. A choice in
// the grid shows its schedule in the bars. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include "schedules/survey/state.h"
#include "widgets/plot/plot_widget.h"

class QLabel;
class QScrollArea;

namespace stagewright {

using StateRows = std::shared_ptr<const std::vector<StateRow>>;

class StatePicture : public QWidget {
    Q_OBJECT
public:
    explicit StatePicture(QWidget* parent = nullptr);
    void setRows(StateRows rows, const StateQuestion& question); // null: nothing yet
    void choose(int row, int level);
    int row() const { return m_row; }
    int level() const { return m_level; }
    PlotWidget* bars() { return m_bars; }
    PlotWidget* grid() { return m_grid; }
    SurveyTable answer() const; // every cell that is done
    void setTheme(const Theme& theme);

signals:
    void activated(const QString& schedule); // Enter or a double click on its row

private:
    void showChoice();

    PlotWidget* m_bars;
    QLabel* m_why; // a ZeRO stage holds more than the one before
    PlotWidget* m_grid;
    QScrollArea* m_scroll;
    StateRows m_rows;
    StateQuestion m_question;
    bool m_chosen = false; // a cell, by the user; before: 1F1B
    int m_row = 0;
    int m_level = 0;
};

} // namespace stagewright
