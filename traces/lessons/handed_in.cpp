#include "traces/lessons/handed_in.h"

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/text/csv.h"
#include "traces/lessons/check_lesson.h"

namespace stagewright::lessons {

namespace {

// The canvas of a check: the order that was handed in, or for a question of settings alone its step's start with them.
// Nothing: it was not answered, or the settings don't fit.
std::optional<Canvas> canvasFor(const Step& step, const Schedule* order, const std::string& set, const Lesson& lesson)
{
    if (order == nullptr && set.empty()) return std::nullopt;
    if (order == nullptr) {
        auto start = startOf(lesson, step);
        auto edited = start ? applyEdits({EditCommand{"set", set}}, std::move(*start)) : std::move(start);
        return edited ? std::optional(std::move(*edited)) : std::nullopt;
    }
    auto settings = withSettings(step.settings, set);
    if (!settings) return std::nullopt;
    settings->ranks = order->ranks;
    settings->microbatches = order->microbatches;
    return Canvas{*order, std::move(*settings)};
}

} // namespace

Result<void> HandedIn::take(const Lesson& lesson, const KeptAnswer& answer)
{
    if (!answer.said.empty()) learner.said[answer.check] = answer.said;
    if (answer.csv.empty() || lesson.check(answer.check) == nullptr) return {};
    STAGEWRIGHT_TRY(orders[answer.check], readScheduleCsv(answer.csv, {.everyRow = true}, answer.check));
    if (!answer.settings.empty()) settings[answer.check] = answer.settings;
    return {};
}

const Schedule* HandedIn::orderOf(const std::string& check) const
{
    auto order = orders.find(check);
    if (order == orders.end()) order = orders.find("");
    return order == orders.end() ? nullptr : &order->second;
}

std::vector<GradedBlock> gradeAll(const Lesson& lesson, const HandedIn& given)
{
    std::vector<GradedBlock> out;
    for (const Check* check : lesson.all<Check>()) {
        const Step* step = lesson.step(check->step);
        if (!step || !missingFor(lesson, *check).empty()) continue;
        const auto own = given.settings.find(check->id);
        const std::string& set = own != given.settings.end() ? own->second : given.set;
        const Schedule* order = given.orderOf(check->id);
        const auto canvas = canvasFor(*step, order, set, lesson);
        if (!canvas) continue;
        Grade grade = StepState(lesson, *step, *canvas, given.learner).grade(*check);
        const Settings &is = canvas->settings, &asked = step->settings;
        const bool reshaped = is.ranks != asked.ranks || is.microbatches != asked.microbatches;
        if (order != nullptr && set.empty() && reshaped && grade.verdict != Verdict::Open) {
            grade.verdict = Verdict::Fail;
            grade.message = fmt::format("the answer has {} and {}, the step has {} and {}", counted(is.ranks, "rank"),
                                        counted(is.microbatches, "microbatch"), asked.ranks, asked.microbatches);
        }
        out.push_back({check->id, "check", std::move(grade)});
    }
    const auto startWith = [&](int index) -> std::optional<StepState> {
        const Step* step = lesson.step(index);
        auto start = step ? startOf(lesson, *step) : tl::unexpected(Error{});
        return start ? std::optional<StepState>(std::in_place, lesson, *step, std::move(*start), given.learner)
                     : std::nullopt;
    };
    for (const Quiz* quiz : lesson.all<Quiz>()) {
        if (given.learner.said.count(quiz->id) == 0 || !missingFor(lesson, *quiz).empty()) continue;
        if (const auto state = startWith(quiz->step)) out.push_back({quiz->id, "quiz", state->grade(*quiz)});
    }
    if (!given.learner.runs.empty() || !given.learner.failures.empty())
        for (const RunBlock* run : lesson.all<RunBlock>()) {
            if (!missingNeeds(run->needs).empty()) continue;
            if (const auto state = startWith(std::max(run->step, 0)))
                for (Grade& grade : state->grade(*run)) out.push_back({run->id, "run", std::move(grade)});
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

std::vector<KeptAnswer> keptOf(const Lesson& lesson, const HandedIn& given, const std::vector<GradedBlock>& graded,
                               std::int64_t unixMs)
{
    std::vector<KeptAnswer> answers;
    std::map<std::string, bool> runHolds;
    for (const GradedBlock& one : graded) {
        const Verdict verdict = one.grade.verdict;
        if (one.kind == "run") {
            const auto [holds, first] = runHolds.try_emplace(one.id, true);
            holds->second = holds->second && verdict == Verdict::Pass;
            continue;
        }
        const bool unnamed = one.kind == "check" && given.orders.count(one.id) == 0;
        if (verdict == Verdict::Open || (verdict == Verdict::Fail && unnamed)) continue;
        KeptAnswer kept{lesson.id, one.id,    lesson.hash, verdict == Verdict::Pass ? Mark::Done : Mark::Guessed,
                        {},        given.set, {},          {},
                        unixMs};
        if (const auto said = given.learner.said.find(one.id); said != given.learner.said.end())
            kept.said = said->second;
        if (const Schedule* order = given.orderOf(one.id); order != nullptr && one.kind == "check")
            kept.csv = writeScheduleCsv(*order).value_or("");
        answers.push_back(std::move(kept));
    }
    for (const auto& [id, holds] : runHolds)
        if (holds) answers.push_back({lesson.id, id, lesson.hash, Mark::Proved, {}, {}, {}, {}, unixMs});
    return answers;
}

} // namespace stagewright::lessons
