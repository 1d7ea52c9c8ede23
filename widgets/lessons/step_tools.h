// StepTools: what a lesson step lets the learner change besides dragging: warm-ups, settings and a field for typed
// edits. Only what the step allows is there. Everything is emitted as edit commands.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <QWidget>

#include "traces/lessons/grading.h"

class QGridLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QVBoxLayout;

namespace stagewright {

class StepTools : public QWidget {
    Q_OBJECT
public:
    explicit StepTools(QWidget* parent = nullptr);
    // The tools among those that a step allows, for the schedules of the lesson; null: no step. The same again changes
    // nothing, so that a field keeps the focus.
    void setStep(const lessons::Lesson* lesson, const lessons::Step* step, const std::vector<std::string>& tools,
                 const lessons::Canvas& canvas);
    // Figures of the canvas: names and values; above the tools.
    void setWatched(const std::vector<std::pair<QString, QString>>& figures);
    void setCanvas(const lessons::Canvas& canvas); // after a change
    void setRefusal(const QString& why);           // of the last edit; empty: it was applied

signals:
    void editAsked(const QString& command); // "warmup 7,5,3,1"
    void viewAsked(const QString& view);    // the step's view: value, or "compare"
    void resetAsked();
    void undoAsked();

private:
    void clear();
    void addRow(const QString& label, QWidget* field, const QString& tip);
    struct RankBoxes {
        QString label, name, tip; // name: of the box of rank %1
    };
    // A number for each rank, at most eight; the command with all of them is asked when one changes.
    void addRankBoxes(const RankBoxes& words, const QString& command, int ranks,
                      std::function<std::vector<int>(const lessons::Canvas&)> valuesOf);
    QPushButton* button(const QString& text, const QString& tip, const QString& command);

    lessons::Canvas m_canvas;
    bool m_filling = false;
    QVBoxLayout* m_layout;
    QObject* m_wheel;
    QWidget* m_form = nullptr;
    QGridLayout* m_grid = nullptr;
    QLabel *m_title, *m_watched;
    const lessons::Step* m_step = nullptr;
    std::vector<std::string> m_tools;
    QLabel* m_refusal;
    QLineEdit* m_words;
    std::vector<std::function<void(const lessons::Canvas&)>> m_fill; // values of the fields from a canvas
};

} // namespace stagewright
