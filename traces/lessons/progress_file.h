// A learner's progress: one small file per user, keyed by lesson, check and the lesson file's hash. It keeps the
// answers, so an edited lesson grades old answers again instead of forgetting them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/lesson.h"

namespace stagewright::lessons {

enum class Mark {
    None,
    Guessed,
    Shown,
    Done,
    Proved,
};                                  // Shown: the program solved it; Proved: a real run met its goals
std::string_view toText(Mark mark); // "none", "guessed", "shown", "done", "proved"

struct KeptAnswer {
    std::string lesson;
    std::string check;      // id of a check, quiz, predict or run block
    std::uint64_t hash = 0; // of the lesson's text when it was graded
    Mark mark = Mark::None;
    std::string csv;      // the schedule, "": none
    std::string settings; // changes of the step's settings
    std::string said;     // answer to a question
    std::string figure;   // path of the figure the learner kept; "" none
    std::int64_t unixMs = 0;
};

class LearnerProgress {
public:
    // An absent file is an empty progress; a damaged one is an error naming it and the remedy.
    static Result<LearnerProgress> read(const std::string& path);
    static std::string defaultPath();
    Result<void> write(const std::string& path) const; // completely or not at all
    // Reads, changes and writes what is there now, and gives it back: answers that other programs of the learner keep
    // meanwhile stay.
    static Result<LearnerProgress> change(const std::string& path, const std::function<void(LearnerProgress&)>& change);

    const KeptAnswer* find(const std::string& lesson, const std::string& check) const;
    // replaces the answer for the same lesson and check; never a Done by a Shown of the same answer
    void keep(KeptAnswer answer);
    void forget(const std::string& lesson); // "start over"
    const std::vector<KeptAnswer>& answers() const { return m_answers; }

    // The lesson's mark: Proved where all its checks are Done and a run block is Proved, Done where all checks are,
    // Guessed if anything was answered.
    Mark markOf(const Lesson& lesson) const;
    // Grades answers again if the lesson's text has changed since: passes keep their mark, others fall to Guessed.
    void regrade(const Lesson& lesson);

private:
    std::vector<KeptAnswer> m_answers;
};

} // namespace stagewright::lessons
