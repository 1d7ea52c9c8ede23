// LessonPanel: a page of a lesson at the right of the window: the position in the lesson, its text with live numbers,
// guesses, goals with meters, hints, real runs and figures, and Next, which waits for the goal and says so. It shows
// readings and emits requests; others own the canvas and the answers. GUI thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <vector>

#include <QWidget>

#include "widgets/lessons/page_reading.h"
#include "widgets/lessons/step_tools.h"
#include "widgets/theme.h"

class QFrame;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QVBoxLayout;

namespace stagewright {

class SteadyScroll;

// What the panel needs besides the reading; copied.
struct LessonState {
    std::map<std::string, std::string> said;
    std::map<std::string, int> hints;     // number shown so far
    std::map<std::string, int> misses;    // wrong answers to questions so far
    bool touched = false;                 // the learner has changed the canvas: a goal that is not met is a mistake
    std::set<std::string> shown;          // solutions shown by the program
    std::map<std::string, QString> notes; // of a run block: fitted costs, gradient check; Markdown
    QString running;                      // id of the running run block; empty: none
    QString runningWords;
    int runningShare = -1;                  // percent; −1: unknown
    std::map<std::string, double> expected; // of run blocks: seconds that they are likely to take; absent or 0: unknown
    std::map<std::string, QPixmap> figures; // by file name
};

class LessonPanel : public QWidget {
    Q_OBJECT
public:
    explicit LessonPanel(QWidget* parent = nullptr);
    // Pages with their parts, the current one, and its first canvas. The caller keeps the lesson while it is shown.
    void setPage(const lessons::Lesson* lesson, const std::vector<LessonPage>& pages, int page,
                 const lessons::Canvas& canvas);
    void setReading(const PageReading& reading, const LessonState& state);
    void setCanvas(const lessons::Canvas& canvas);
    void setTheme(const Theme& theme);
    StepTools* tools() { return m_tools; }
    void setNext(const QString& text) { m_nextLesson = text; } // what Next does on the last page; before setPage
    // the field, choice or button of the open question or run; none: the focus stays
    void focusFirst(); // what can be answered or run, else Next
    QString plainText() const;
    QString nextReason() const; // why Next is disabled; empty: it is not
    void stressReason();        // it was asked for nevertheless

signals:
    void said(const QString& id, const QString& words);
    void hintAsked(const QString& check);
    void showAsked(const QString& check);
    void pageAsked(int page);
    void finished();    // Next on the last page
    void keysNotUsed(); // there is nothing to answer, to run or to go on to
    void runAsked(const QString& block);
    void runAllAsked(); // every run of the page, in order
    void cancelAsked();
    void figureAsked(const QString& file, const QString& format, const QString& caption);
    void runOpened(const QString& block);
    void checkAsked(const QString& block); // the gradient check
    void termAsked(const QString& id);

private:
    struct Row { // widgets of a block
        QLabel *text = nullptr, *verdict = nullptr, *formula = nullptr, *note = nullptr;
        QWidget* meters = nullptr;
        QPushButton *hint = nullptr, *run = nullptr, *open = nullptr;
        QVBoxLayout* hints = nullptr;
        QProgressBar* progress = nullptr;
        QLineEdit* field = nullptr;
        std::vector<QPushButton*> choices;
        QWidget* answer = nullptr; // field or choices: away once it is right
        QLabel* picture = nullptr;
        QLineEdit* caption = nullptr;
        const char* plain = "value"; // role of a verdict that is neither right nor wrong
        QWidget* card = nullptr;     // all of the block but a prose's text
        int hintsShown = -1;
        QString metersShown;
    };
    void build();
    Row buildBlock(const lessons::Block& block, QVBoxLayout* layout);
    void buildAnswer(Row& row, QVBoxLayout* layout, const std::string& id, const std::vector<std::string>& choices,
                     const QString& unit);
    QLabel* prose(QVBoxLayout* layout, const char* role = "value");
    void setProse(QLabel* label, const QString& markdown);
    void setMeters(Row& row, const std::vector<MeterReading>& meters);
    void showRow(Row& row, const lessons::Block& block, const BlockReading& now);
    void showHints(Row& row, const std::string& id, bool passed);
    void showRun(Row& row, const std::string& id, const BlockReading& now);
    double expectedSeconds() const; // of all runs of the page; 0: unknown
    void showOpen();
    void placeTools(); // under the question that takes them
    QString verdictOf(const lessons::Block& block, const BlockReading& now) const;
    void showFigure(Row& row, const lessons::Figure& figure, const BlockReading& now);
    void setGuesses(const std::vector<GuessReading>& guesses);

    const lessons::Lesson* m_lesson = nullptr;
    std::vector<LessonPage> m_pages;
    int m_page = 0;
    const Theme* m_theme = &Theme::light();
    QLabel* m_title;
    QHBoxLayout* m_crumbs;
    SteadyScroll* m_scroll;
    QWidget* m_body = nullptr;
    StepTools* m_tools;
    QLabel* m_reason;
    QPushButton *m_show, *m_back, *m_next;
    QString m_nextLesson;
    QPushButton* m_runAll = nullptr; // where the page has several runs
    std::vector<Row> m_rows;
    int m_open = -1; // the row of the question that was open at the last reading
    lessons::Canvas m_canvas;
    QFrame* m_guessCard = nullptr; // of the page
    QVBoxLayout* m_guesses = nullptr;
    QString m_guessesShown;
    std::set<std::string> m_linked;
    PageReading m_reading;
    LessonState m_state;
};

} // namespace stagewright
