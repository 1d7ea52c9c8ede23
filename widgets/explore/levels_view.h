// LevelsView: the explorer's chart How much is counted: places of schedules by level, and what changes them. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "schedules/survey/levels.h"
#include "widgets/plot/plot_widget.h"

class QLabel;

namespace stagewright {

class LevelsView : public QWidget {
    Q_OBJECT
public:
    explicit LevelsView(QWidget* parent = nullptr);
    void setAnswer(std::shared_ptr<const LevelsAnswer> answer); // null: being simulated
    PlotWidget* plot() { return m_plot; }
    SurveyTable table() const; // empty where there is no answer

private:
    PlotWidget* m_plot;
    QLabel* m_flips; // which change places, and why
    std::shared_ptr<const LevelsAnswer> m_answer;
};

} // namespace stagewright
