#include "app/cli/verbs/lesson_answers.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "app/cli/text/figures.h"
#include "schedules/base/text.h"
#include "schedules/text/csv.h"
#include "traces/lessons/check_lesson.h"

namespace stagewright {

using namespace lessons;

Result<void> readAnswer(const Lesson& lesson, const std::string& text, HandedIn& given)
{
    const auto [key, file] = keyValueOf(text);
    const std::string id(file ? key : "");
    const bool named = !id.empty() && lesson.check(id);
    if (file && !named && !fileExists(text))
        return fail(ErrorCode::Usage, fmt::format("--answer {}: the lesson has no check '{}'", text, id),
                    "checks are " + joined(idsOf<Check>(lesson)));
    const std::string path(named ? *file : text);
    STAGEWRIGHT_TRY(auto schedule, readCsvFile(path, {.everyRow = true}));
    given.orders[named ? id : std::string()] = std::move(schedule);
    return {};
}

Result<void> readSaid(const Lesson& lesson, const std::string& text, Learner& learner)
{
    const auto [id, value] = keyValueOf(text);
    std::vector<std::string> ids = idsOf<Quiz>(lesson);
    for (std::string& one : idsOf<Predict>(lesson)) ids.push_back(std::move(one));
    if (value && std::find(ids.begin(), ids.end(), id) != ids.end()) {
        learner.said[std::string(id)] = *value;
        return {};
    }
    return fail(ErrorCode::Usage, fmt::format("--say {}: the lesson has no such question", text),
                ids.empty() ? "it has none" : "write ID=VALUE; questions are " + joined(ids));
}

std::vector<GradedBlock> gradeAll(const Lesson& lesson, const HandedIn& given)
{
    std::vector<GradedBlock> out;
    for (const Check* check : lesson.all<Check>()) {
        const Step* step = lesson.step(check->step);
        auto order = given.orders.find(check->id);
        if (order == given.orders.end()) order = given.orders.find("");
        if (!step || !missingFor(lesson, *check).empty()) continue;
        const auto own = given.settings.find(check->id);
        const std::string& set = own != given.settings.end() ? own->second : given.set;
        auto settings = withSettings(step->settings, set);
        if (!settings) continue;
        Canvas canvas{{}, *settings};
        if (order != given.orders.end()) {
            canvas.schedule = order->second;
            canvas.settings.ranks = order->second.ranks;
            canvas.settings.microbatches = order->second.microbatches;
        } else if (!set.empty()) { // a question of settings alone
            auto start = startOf(lesson, *step);
            if (!start) continue;
            auto edited = applyEdits({EditCommand{"set", set}}, std::move(*start));
            if (!edited) continue;
            canvas = std::move(*edited);
        } else {
            continue;
        }
        Grade grade = StepState(lesson, *step, canvas, given.learner).grade(*check);
        if (order != given.orders.end() &&
            (canvas.settings.ranks != step->settings.ranks ||
             canvas.settings.microbatches != step->settings.microbatches) &&
            set.empty() && grade.verdict == Verdict::Pass) {
            grade.verdict = Verdict::Fail;
        }
        if (order != given.orders.end() && grade.verdict == Verdict::Fail && set.empty() &&
            (canvas.settings.ranks != step->settings.ranks ||
             canvas.settings.microbatches != step->settings.microbatches))
            grade.message = fmt::format(
                "the answer has {} and {}, the step has {} and {}", plural(canvas.settings.ranks, "rank"),
                canvas.settings.microbatches == 1 ? "1 microbatch"
                                                  : fmt::format("{} microbatches", canvas.settings.microbatches),
                step->settings.ranks, step->settings.microbatches);
        out.push_back({check->id, "check", std::move(grade)});
    }
    const Step* last = nullptr;
    for (const Quiz* quiz : lesson.all<Quiz>()) {
        const Step* step = lesson.step(quiz->step);
        if (!step || given.learner.said.count(quiz->id) == 0 || !missingFor(lesson, *quiz).empty()) continue;
        auto start = startOf(lesson, *step);
        if (start)
            out.push_back({quiz->id, "quiz", StepState(lesson, *step, std::move(*start), given.learner).grade(*quiz)});
    }
    if (!given.learner.runs.empty() || !given.learner.failures.empty())
        for (const RunBlock* run : lesson.all<RunBlock>()) {
            last = lesson.step(std::max(run->step, 0));
            if (!last || !missingNeeds(run->needs).empty()) continue;
            auto start = startOf(lesson, *last);
            if (!start) continue;
            const StepState state(lesson, *last, std::move(*start), given.learner);
            for (Grade& grade : state.grade(*run)) out.push_back({run->id, "run", std::move(grade)});
        }
    return out;
}

bool passed(const HandedIn& given, const std::vector<GradedBlock>& graded)
{
    const bool any = given.orders.count("") > 0;
    bool some = false, wrong = false;
    for (const GradedBlock& one : graded) {
        const bool free = any && one.kind == "check" && given.orders.count(one.id) == 0;
        if (one.grade.verdict == Verdict::Pass)
            some = true;
        else if (!free && one.grade.verdict == Verdict::Fail)
            wrong = true;
    }
    return some && !wrong;
}

} // namespace stagewright
