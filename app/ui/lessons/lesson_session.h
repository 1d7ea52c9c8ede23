// LessonSession: a lesson in progress: its page, its canvas, and the learner's answers, hints and runs. It keeps the
// progress file, so that a lesson continues where it was left. No widgets; GUI thread only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <QObject>

#include "traces/lessons/progress_file.h"
#include "widgets/lessons/page_reading.h"

namespace stagewright {

class LessonSession : public QObject {
    Q_OBJECT
public:
    // Restores the lesson's progress. With a damaged progress file it continues without it (see fault()), and
    // writes nothing over it.
    LessonSession(std::shared_ptr<const lessons::Lesson> lesson, QObject* parent = nullptr);

    const lessons::Lesson& lesson() const { return *m_lesson; }
    std::shared_ptr<const lessons::Lesson> shared() const { return m_lesson; }
    const std::optional<Error>& fault() const { return m_fault; }
    const std::vector<LessonPage>& pages() const { return m_pages; }
    int pageIndex() const { return m_page; }
    const LessonPage& page() const { return m_pages[static_cast<std::size_t>(m_page)]; }
    const lessons::Step* step() const { return m_lesson->step(page().step); }
    void goTo(int page); // resets the canvas if the step changes; remembered

    const lessons::Canvas& canvas() const { return m_canvas; }
    void setOrder(const Schedule& schedule); // the learner's order
    // Edit commands of tools that the step allows. A change that would stop a running order is refused with the reason.
    Result<void> apply(const std::string& edits);
    static bool runs(const Schedule& schedule); // whether the placed part can run
    static Error whyNot(const Schedule& schedule);
    bool touched() const; // the canvas is not as the step starts
    void reset();         // back to the start of the step
    bool allows(std::string_view tool) const;

    const lessons::Learner& learner() const { return m_learner; }
    void say(const std::string& id, const std::string& words);
    int hintsOf(const std::string& check) const;
    int nextHint(const std::string& check);      // number of hints shown by now; the third performs its edit
    int missesOf(const std::string& quiz) const; // different wrong answers given since the lesson was opened
    // Plays the solution and marks the check or quiz shown: whatever is answered later, its answer was not found.
    Result<void> show(const std::string& check);
    bool shown(const std::string& check) const { return m_shown.count(check) > 0; }
    void adopt(const std::string& block, const std::vector<std::pair<std::string, std::shared_ptr<const Run>>>& runs,
               const std::optional<lessons::RunFailure>& failure);
    void keepFigure(const std::string& file);
    void startOver();

    void read(const PageReading& reading); // saves the current verdicts to the progress file
    lessons::Mark markOf(const std::string& check) const;
    std::map<std::string, Schedule> orders() const; // saved answers, by check

signals:
    void pageChanged();
    void canvasChanged(); // by this object, not by setOrder
    void answersChanged();

private:
    std::string allowed() const;
    void begin(); // sets the canvas of the page's step, from the progress if it has one
    void keep(const std::string& check, lessons::Mark mark, bool withCanvas);
    void write();

    std::shared_ptr<const lessons::Lesson> m_lesson;
    std::vector<LessonPage> m_pages;
    int m_page = 0;
    lessons::Canvas m_canvas;
    lessons::Learner m_learner;
    lessons::LearnerProgress m_progress; // as it was last read or written, with the answers of here
    std::set<std::string> m_changed;     // checks of it that are not written yet
    bool m_forgotten = false;            // it starts over, and that is not written yet
    std::optional<Error> m_fault;
    std::map<std::string, int> m_hints;
    std::map<std::string, std::set<std::string>> m_misses; // by quiz, as they were said
    std::map<std::string, lessons::Canvas> m_shown;        // solutions that the program showed
    std::string m_startCsv;                                // of the step, to detect changes
};

} // namespace stagewright
