// ExploreView: the explorer's page: sliders, the Pareto plot, the charts over one and two parameters, the table, the
// miniature. It shows answers and announces requests; the explorer's controller simulates. GUI thread only.
#pragma once

#include <memory>
#include <set>
#include <string>

#include <QWidget>

#include "schedules/survey/heat.h"
#include "schedules/survey/line.h"
#include "widgets/explore/choose_view.h"
#include "widgets/explore/explore_form.h"
#include "widgets/explore/explore_table.h"
#include "widgets/explore/miniature.h"
#include "widgets/explore/planner_view.h"
#include "widgets/explore/state_view.h"
#include "widgets/explore/survey_chart.h"
#include "widgets/plot/plot_widget.h"

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSplitter;
class QTabWidget;

namespace stagewright {

enum class ExplorePlot {
    Pareto,
    Lines,
    Heat,
    State,
    Choose,
    Levels,
    Keeping,
    Readiness,
    Planner,
};

enum class ExplorePage {
    Schedules,
    State,
    Choose,
    Planners,
};

// The charts below the page Schedules.
enum class ExploreChart {
    Lines,
    Heat,
    Levels, // this and those behind it are surveys (SurveyChart)
    Keeping,
    Readiness,
};

class ExploreView : public QWidget {
    Q_OBJECT
public:
    explicit ExploreView(QWidget* parent = nullptr);

    const ExploreQuestion& question() const { return m_form->question(); }
    ExploreForm* form() { return m_form; }
    // The ids of their items: rows, rows of the lines, cells.
    PlotWidget* pareto() { return m_pareto; }
    PlotWidget* lines() { return m_lines; }
    PlotWidget* heat() { return m_heat; }
    ExploreTable* table() { return m_table; }
    Miniature* miniature() { return m_miniature; }
    StateView* state() { return m_state; }
    ChooseView* ways() { return m_ways; }
    PlannerView* planner() { return m_planner; }
    SurveyChart* survey(ExploreChart chart); // of one that is a survey
    ExplorePage page() const;
    void setPage(ExplorePage page);
    ExploreMeasure measure() const;
    void setMeasure(ExploreMeasure measure);
    ExploreParameter lineParameter() const;
    std::pair<ExploreParameter, ExploreParameter> heatParameters() const; // across, up
    ExploreChart chartShown() const;
    void setChart(ExploreChart chart);
    std::vector<std::string> ticked() const;    // in the table's order of schedules
    int selected() const { return m_selected; } // −1: none
    void select(int row);
    void selectFrontier();                // its fastest; nothing where there is none
    const SweepRow* rowAt(int row) const; // null: none

    // What the page Schedules shows, as the tables of its surveys: all points, and those of the chart below.
    SurveyTable points() const;
    SurveyTable chart() const;

    void setRows(SweepRows rows, const ExploreQuestion& question);
    void setBounds(std::vector<ExploreBound> bounds);
    void setLines(std::shared_ptr<const LinesPicture> picture);
    void setHeat(std::shared_ptr<const HeatPicture> picture);
    void setWork(const QString& text, bool running); // current activity
    void setTheme(const Theme& theme);
    Plot plotOf(ExplorePlot plot) const;     // as it is shown
    QString caption(ExplorePlot plot) const; // what it shows
    // restores the last question; from then on it is saved whenever the page is hidden
    void restore();

signals:
    void questionChanged();
    void surveyChanged();       // another parameter or other schedules
    void stateChanged();        // its page is shown, or asks for something else
    void previewAsked(int row); // −1: none
    void openAsked(const stagewright::Setup& point);
    void saveAsked(const stagewright::Setup& point);
    void csvAsked();
    void pictureAsked(stagewright::ExplorePlot plot);
    void cancelAsked();
    void closeAsked();

protected:
    void hideEvent(QHideEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* buildLeft();
    QWidget* buildCentre();
    void showRow(int row);
    void showPoints();
    void showCharts();

    ExploreForm* m_form;
    PlotWidget* m_pareto;
    PlotWidget* m_lines;
    PlotWidget* m_heat;
    ExploreTable* m_table;
    Miniature* m_miniature;
    QComboBox* m_measure;
    QComboBox* m_lineParameter;
    QComboBox* m_heatAcross;
    QComboBox* m_heatUp;
    QComboBox* m_heatShows;
    QTabWidget* m_charts;
    QTabWidget* m_pages;
    StateView* m_state;
    ChooseView* m_ways;
    PlannerView* m_planner;
    std::vector<SurveyChart*> m_surveys; // from ExploreChart::Levels on
    QSplitter* m_rowsSplit;
    QSplitter* m_columns;
    QLabel* m_work;
    QProgressBar* m_running;
    QPushButton* m_cancel;
    QPushButton* m_open;
    QPushButton* m_save;
    QPushButton* m_plan;
    QLabel* m_over; // why the selected schedule is over the cap
    SweepRows m_rows;
    ExploreQuestion m_asked; // of the rows
    std::vector<ExploreBound> m_bounds;
    int m_selected = -1;
    std::shared_ptr<const LinesPicture> m_linesPicture;
    std::shared_ptr<const HeatPicture> m_heatPicture;
    bool m_restored = false;
    bool m_columnsChosen = false; // by the reader: not shared out again
    std::string m_wanted;         // the selected schedule, kept while shapes change
};

} // namespace stagewright
