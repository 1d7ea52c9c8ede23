// A lesson goes page by page: its guesses, each step that sets the canvas, its runs, its figures. Reading a page
// evaluates it against the learner's canvas and answers and gives everything the panel prints: a pure function for any
// thread, recomputed with every change, so that a verdict never outlives the schedule that earned it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <QString>

#include "traces/lessons/figure.h"
#include "traces/lessons/grading.h"
#include "traces/lessons/lesson.h"

namespace stagewright {

struct LessonPage {
    lessons::Part part = lessons::Part::Do;
    QString title; // "Do", "Do 2 of 3"
    int step = -1; // index into the lesson's steps whose canvas is shown; −1: none
    // without hints, solutions and wrong answers; pointers into the lesson
    std::vector<const lessons::Block*> blocks;
    // the first blocks: prose after the last goal of the step before, with that step's numbers
    int carried = 0;
    std::vector<const lessons::Predict*> guesses; // made before; answered here once the goals are met
};

// Pages in the order of the file. A page before any step shows the canvas of the first one. What is said after the last
// goal of a step opens the next page, so that it gives nothing away.
std::vector<LessonPage> pagesOf(const lessons::Lesson& lesson);

struct MeterReading {
    QString subject; // "step time"
    QString yours;
    QString needed; // "39", "7, 5, 3, 1"
    QString sign;
    bool holds = false;
    bool said = false; // the subject is a sentence with the numbers that matter
    double share = 0;  // yours ÷ needed, may exceed 1; < 0: no bar
};

struct BlockReading {
    QString text;         // prose, question, goal; Markdown
    QString verdict;      // the verdict on the answer; Markdown
    QString direction;    // of a wrong answer: "Too small."; empty: none
    bool general = false; // the verdict is for all wrong answers that no other is for: a hint, not for the first one
    QString formula;
    lessons::Verdict state = lessons::Verdict::Open;
    QString medal;
    bool unfinished = false; // ops are missing: not met, and not a mistake
    bool waits = false;      // for the goals before it on the page: not shown yet
    std::vector<MeterReading> meters;
    std::vector<BlockReading> goals;                   // of a run, each separately
    std::shared_ptr<const lessons::FigureData> figure; // null: it can't be drawn yet; `verdict` says why
};

// A guess beside its answer.
struct GuessReading {
    QString ask;
    QString words; // "You guessed 20 %. It is 27.3 %."; Markdown
    QString reveal;
    bool right = false;
};

struct PageReading {
    std::vector<BlockReading> blocks;                  // as LessonPage::blocks
    std::vector<GuessReading> guesses;                 // once the page's goals are met
    std::map<std::string, std::vector<QString>> hints; // texts by check
    std::optional<lessons::ScoreRail> rail;            // of the page's first goal on the step time
    QString railCheck;                                 // its id
    std::vector<double> targets;                       // activations to stay under, by rank; empty: none
    std::vector<std::pair<QString, QString>> watched;  // figures of the canvas beside the tools, with their values
    double axis = 0;                                   // units that the axis shows at least
    int open = -1;                                     // the question or goal that is to be met now; −1: none
    std::vector<std::string> tools;                    // that it takes
    double makespan = 0;                               // of the canvas, in rank shares; NaN: it can't run
    // numbers of guesses made and not answered yet: nothing on the page says them
    std::vector<double> openAnswers;
    QString missing;    // why Next is disabled; empty: it is enabled
    bool passed = true; // every graded question of the page is met
};

// What the panel says of a block's answer after so many wrong ones: at first the direction and what its author says of
// just this mistake, then also what is said of every other.
QString replyOf(const BlockReading& reading, int misses);

PageReading readPage(const lessons::Lesson& lesson, const LessonPage& page, const lessons::Canvas& canvas,
                     const lessons::Learner& learner, bool withRail);

// "makespan" → "step time": names of figures as the panel prints them; others unchanged.
QString figureWords(const std::string& name);
QString runWords(const lessons::RunBlock& run);      // its title, or of its id: "patient-a" → "Patient A"
QString recordedWords(const lessons::RunBlock& run); // "GPipe, 1F1B, 2 ranks"
QString qs(const std::string& text);                 // from UTF-8

} // namespace stagewright
