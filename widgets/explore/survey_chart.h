// SurveyChart: what a survey answers about the explorer's question, as a chart of the page Schedules: plot and
// sentence. It knows no survey by name. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "schedules/survey/survey.h"
#include "widgets/plot/plot_widget.h"

class QLabel;

namespace stagewright {

class SurveyChart : public QWidget {
    Q_OBJECT
public:
    explicit SurveyChart(const SurveyInfo& survey, QWidget* parent = nullptr); // objects are named by it: "levelsPlot"
    const SurveyInfo& survey() const { return m_survey; }
    void setAnswer(std::shared_ptr<const SurveyAnswer> answer); // null: being simulated
    PlotWidget* plot() { return m_plot; }
    SurveyTable table() const; // empty where there is no answer

private:
    const SurveyInfo& m_survey;
    PlotWidget* m_plot;
    QLabel* m_said; // what it comes to
    std::shared_ptr<const SurveyAnswer> m_answer;
};

} // namespace stagewright
