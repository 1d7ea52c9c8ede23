// PlannerView: the explorer's page Planners: a problem of any planner (schedules/planner/problem.h), sliders for its
// numbers, what the plan comes to, its picture, and the problem and the answer as text. It knows no planner by name. It
// shows answers and announces requests; the explorer's controller solves. GUI thread only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QPlainTextEdit>
#include <QWidget>

#include "schedules/planner/problem.h"
#include "widgets/plot/plot_widget.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSlider;
class QVBoxLayout;

namespace stagewright {

class PlannerView : public QWidget {
    Q_OBJECT
public:
    explicit PlannerView(QWidget* parent = nullptr);
    QWidget* form() { return m_form; }                       // to be put beside it
    void choose(const QString& program);                     // its example
    QString program() const;                                 // of the problem that is shown
    const std::string& problem() const { return m_problem; } // JSON, as it is edited
    void setProblem(const QString& text);
    // The slider of a number, by its key; null: it has none.
    QSlider* slider(const QString& key) const { return m_form->findChild<QSlider*>(key); }
    void setAnswer(const Result<PlannerAnswer>& answer);
    const std::optional<PlannerAnswer>& answer() const { return m_answer; }
    PlotWidget* picture() { return m_picture; }
    QPlainTextEdit* text() { return m_text; }
    QPushButton* layoutButton() { return m_layout; } // there for problems whose plan is a layout
    QPushButton* runsButton() { return m_runs; }     // there for problems that recorded runs make
    QString said() const;
    QString caption() const; // the planner's title
    void setTheme(const Theme& theme);
    void restore(); // the last problem

signals:
    void questionChanged(); // to be solved at once
    void openAsked();       // a problem's file
    void layoutAsked();     // the plan as a layout's file
    void runsAsked();       // a problem of the shown run's file

protected:
    void hideEvent(QHideEvent* event) override;

private:
    void take(std::string problem, bool writes);
    void makeSliders();
    void moved(const ProblemNumber& number, double value);

    QWidget* m_form;
    QComboBox* m_programs;
    QPushButton* m_layout;
    QPushButton* m_runs;
    QWidget* m_sliders = nullptr;
    QVBoxLayout* m_column;
    QLabel* m_said;
    PlotWidget* m_picture;
    QPlainTextEdit* m_text;
    QPlainTextEdit* m_answerText;
    std::string m_problem;
    std::optional<PlannerAnswer> m_answer;
};

} // namespace stagewright
