// ChooseView: the explorer's page Choose: a model, a cluster and what is pinned; time and memory of the best ways as stacked
// bars, the best way of each t and p, all of them as rows, why a way loses and the commands that run it. It shows answers and announces
// requests; the explorer's controller computes. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QWidget>

#include "schedules/survey/choose.h"
#include "widgets/explore/survey_fields.h"
#include "widgets/plot/plot_widget.h"

class QLabel;
class QStandardItemModel;

namespace stagewright {

class ChooseView : public QWidget {
    Q_OBJECT
public:
    explicit ChooseView(QWidget* parent = nullptr);
    QWidget* form() { return m_form; } // its fields, to be put beside it
    // A usage error names the field.
    Result<WaysQuestion> question() const;
    void setAnswer(std::shared_ptr<const WaysAnswer> answer); // keeps the chosen way by its place
    void setError(const QString& text);                       // instead of an answer
    const std::shared_ptr<const WaysAnswer>& answer() const { return m_answer; }
    int chosen() const { return m_chosen; } // way; −1: none
    void choose(int way);
    void setField(const char* name, const QString& value);
    PlotWidget* time() { return m_time; }
    PlotWidget* memory() { return m_memory; }
    PlotWidget* degrees() { return m_degrees; }
    QTableView* table() { return m_table; }
    QPushButton* pinButton() { return m_pin; }
    QPushButton* freeButton() { return m_free; }
    QPushButton* measuredButton() { return m_measured; }
    QPushButton* trainButton() { return m_train; }
    QString said() const;    // of the chosen way
    QString command() const; // that asks for it
    Plot plot() const;       // as it is shown
    void setTheme(const Theme& theme);
    void restore(); // the last question

signals:
    void questionChanged();
    void openAsked(int way); // on the timeline
    void trainAsked(const QString& command);
    void measuredAsked(); // the layers of the run that is shown

protected:
    void hideEvent(QHideEvent* event) override;

private:
    void pinDegrees(int tensor, int pipeline);
    void showTable();
    void showChoice();

    QWidget* m_form;
    std::vector<SurveyControl> m_fields;
    QPushButton* m_measured;
    PlotWidget* m_time;
    PlotWidget* m_memory;
    PlotWidget* m_degrees;
    QTableView* m_table;
    QStandardItemModel* m_rows;
    QLabel* m_setup;
    QLabel* m_said;
    QLineEdit* m_command;
    QLineEdit* m_megatron;
    QLineEdit* m_training; // the command that trains it here, or why there is none
    QPushButton* m_pin;
    QPushButton* m_free;
    QPushButton* m_open;
    QPushButton* m_train;
    std::shared_ptr<const WaysAnswer> m_answer;
    int m_chosen = -1;
};

} // namespace stagewright
