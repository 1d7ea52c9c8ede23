#include "traces/lessons/check_lesson.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "traces/lessons/check_words.h"
#include "traces/lessons/figure.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

bool schedulePossible(const std::string& name) { return scheduleInfoOf(name).has_value(); }

template <typename Kind>
std::vector<const Kind*> answersOf(const Lesson& lesson, const std::string& check)
{
    std::vector<const Kind*> found;
    for (const Kind* one : lesson.all<Kind>())
        if (one->check == check) found.push_back(one);
    return found;
}

// The comparison made one unit looser.
bool holdsLoosened(const Value& left, const std::string& sign, const Value& right)
{
    if (left.list() || right.list()) {
        const std::size_t size = left.list() ? left.list()->size() : right.list()->size();
        if (left.list() && right.list() && right.list()->size() != size) return false;
        for (std::size_t i = 0; i < size; ++i)
            if (!holdsLoosened(left.list() ? (*left.list())[i] : left, sign, right.list() ? (*right.list())[i] : right))
                return false;
        return true;
    }
    if (!left.number() || !right.number()) return false;
    const double a = *left.number();
    const double b = *right.number();
    if (sign == "<=" || sign == "<") return a <= b + 1 + 1e-9;
    if (sign == ">=" || sign == ">") return a >= b - 1 - 1e-9;
    return std::abs(a - b) <= 1 + 1e-9;
}

class LessonChecker {
public:
    LessonChecker(const Lesson& lesson, const CheckOptions& options) : m_lesson(lesson), m_options(options)
    {
        m_report.lesson = lesson.id;
        m_report.file = lesson.file;
    }

    LessonReport check()
    {
        if (const auto missing = missingNeeds(m_lesson.needs); !missing.empty()) {
            skip({1, 1}, Point::Names, missing);
            return std::move(m_report);
        }
        for (const auto* solution : m_lesson.all<Solution>())
            for (const auto& [id, words] : solution->said) m_told.said[id] = words;
        for (const auto& [name, run] : m_options.recorded.runs) m_told.runs[name] = run;
        for (const auto& [name, why] : m_options.recorded.failures) m_told.failures[name] = why;
        names();
        const auto steps = m_lesson.all<Step>();
        if (steps.empty()) {
            fault({1, 1}, Point::Simulates, "the lesson has no steps");
            return std::move(m_report);
        }
        for (const Step* step : steps) startsOf(*step);
        for (const Check* one : m_lesson.all<Check>())
            if (!skipped(*one)) checks(*one);
        for (const Quiz* one : m_lesson.all<Quiz>())
            if (!skipped(*one)) quizzes(*one);
        texts();
        facts();
        figures();
        if (m_options.judgeRuns) runs();
        checkWords(m_lesson, [&](Severity severity, FilePlace at, std::string message) {
            add(severity, Point::Words, at, std::move(message));
        });
        std::stable_sort(m_report.findings.begin(), m_report.findings.end(),
                         [](const Finding& a, const Finding& b) { return a.point < b.point; });
        return std::move(m_report);
    }

private:
    void add(Severity severity, Point point, FilePlace at, std::string message)
    {
        m_report.findings.push_back({severity, point, at, std::move(message)});
    }
    void fault(FilePlace at, Point point, std::string message) { add(Severity::Fault, point, at, std::move(message)); }
    void skip(FilePlace at, Point point, const std::vector<std::string>& missing)
    {
        std::string text;
        for (const std::string& one : missing) text += (text.empty() ? "needs " : ", ") + one;
        add(Severity::Skipped, point, at, text);
    }
    // A statement; says whether it holds.
    bool state(bool holdsIt, FilePlace at, Point point, const std::string& otherwise)
    {
        ++m_report.statements;
        if (!holdsIt) fault(at, point, otherwise);
        return holdsIt;
    }
    template <typename Asked>
    bool skipped(const Asked& asked)
    {
        const auto missing = missingFor(m_lesson, asked);
        if (!missing.empty()) skip(asked.at, Point::Names, missing);
        return !missing.empty() || m_starts.count(asked.step) == 0;
    }
    const StepState* startState(int step) const
    {
        const auto found = m_starts.find(step);
        return found == m_starts.end() ? nullptr : &found->second;
    }

    void names()
    {
        for (const std::string& one : m_lesson.after)
            if (!m_options.lessons.empty())
                state(std::find(m_options.lessons.begin(), m_options.lessons.end(), one) != m_options.lessons.end(),
                      {1, 1}, Point::Names, fmt::format("after: there is no lesson '{}'", one));
        for (const std::string& one : m_lesson.uses)
            state(schedulePossible(one), {1, 1}, Point::Names, fmt::format("uses: there is no schedule '{}'", one));
        for (const Step* step : m_lesson.all<Step>()) {
            for (const std::string& one : step->allow)
                state(std::any_of(tools().begin(), tools().end(), [&](const Tool& tool) { return tool.name == one; }),
                      step->at, Point::Names, fmt::format("there is no tool '{}'", one));
            for (const std::string& one : step->watch)
                state(Expression::parse(one).has_value(), step->at, Point::Names,
                      fmt::format("watch: '{}' is not a figure", one));
            if (!step->compare.empty())
                state(schedulePossible(step->compare), step->at, Point::Names,
                      fmt::format("compare: there is no schedule '{}'", step->compare));
        }
        const auto shownWith = [this](const auto& asked, const std::vector<std::string>& with) {
            const Step* step = m_lesson.step(asked.step);
            for (const std::string& one : with)
                state(step != nullptr && allowsTool(step->allow, one), asked.at, Point::Names,
                      fmt::format("with: its step does not allow the tool '{}' for '{}'", one, asked.id));
        };
        for (const Quiz* quiz : m_lesson.all<Quiz>()) shownWith(*quiz, quiz->with);
        for (const Check* check : m_lesson.all<Check>()) {
            if (check->with) shownWith(*check, *check->with);
            if (!check->par.empty())
                state(schedulePossible(check->par), check->at, Point::Names,
                      fmt::format("par: there is no schedule '{}'", check->par));
            if (!check->graded) continue;
            const auto hints = m_lesson.hintsOf(check->id).size();
            state(hints == 3, check->at, Point::Names, fmt::format("check '{}' has {} hints, not 3", check->id, hints));
            state(!answersOf<Solution>(m_lesson, check->id).empty(), check->at, Point::SolutionPasses,
                  fmt::format("check '{}' has no solution", check->id));
            state(!answersOf<Wrong>(m_lesson, check->id).empty(), check->at, Point::WrongFails,
                  fmt::format("check '{}' has no wrong answer", check->id));
        }
        for (const Quiz* quiz : m_lesson.all<Quiz>()) {
            state(!answersOf<Solution>(m_lesson, quiz->id).empty(), quiz->at, Point::SolutionPasses,
                  fmt::format("quiz '{}' has no solution", quiz->id));
            state(!answersOf<Wrong>(m_lesson, quiz->id).empty(), quiz->at, Point::WrongFails,
                  fmt::format("quiz '{}' has no wrong answer", quiz->id));
        }
        for (const RunBlock* run : m_lesson.all<RunBlock>()) {
            runNames(*run);
            if (const auto missing = missingNeeds(run->needs); !missing.empty()) skip(run->at, Point::Runs, missing);
        }
    }

    void runNames(const RunBlock& run)
    {
        std::set<std::string> keys;
        for (const RunBlock* one : m_lesson.all<RunBlock>()) keys.insert(one->id);
        for (const RunBlock* one : m_lesson.all<RunBlock>())
            for (const std::string& name : partsOf(one->valueOf("--schedule"), ",")) {
                keys.insert(name);
                keys.insert(one->id + "/" + name);
                if (one == &run)
                    state(schedulePossible(name) || name == "mine" || m_lesson.check(name), run.at, Point::Names,
                          fmt::format("run '{}': there is no schedule '{}'", run.id, name));
            }
        for (const std::string& word : run.arguments)
            if (const SetupKey* key = findSetupKey(word); word.starts_with("--"))
                state(key != nullptr && (key->users & SetupLesson) != 0, run.at, Point::Names,
                      fmt::format("run '{}': record has no option '{}'", run.id, word));
        for (const auto& [goal, text] : run.goals)
            for (const std::string_view call : {"run(\"", "fit(\""})
                for (std::size_t at = goal.text().find(call); at != std::string::npos;
                     at = goal.text().find(call, at + 1)) {
                    const std::size_t from = at + call.size();
                    const std::string key = goal.text().substr(from, goal.text().find('"', from) - from);
                    state(keys.count(key) > 0, run.at, Point::Names,
                          fmt::format("run '{}': nothing named '{}' is recorded", run.id, key));
                }
    }

    void startsOf(const Step& step)
    {
        const auto steps = m_lesson.all<Step>();
        const int index = static_cast<int>(std::find(steps.begin(), steps.end(), &step) - steps.begin());
        if (!missingNeeds(step.needs).empty()) return;
        auto canvas = startOf(m_lesson, step);
        if (!state(canvas.has_value(), step.at, Point::Simulates,
                   canvas ? std::string() : fmt::format("step '{}': {}", step.id, canvas.error().message)))
            return;
        const auto made = m_starts.emplace(index, StepState(m_lesson, step, std::move(*canvas), m_told));
        const StepState& start = made.first->second;
        const auto report = start.report();
        if (!state(report != nullptr, step.at, Point::Simulates,
                   fmt::format("step '{}': its settings don't fit its schedule", step.id)))
            return;
        if (step.expectInvalid.empty()) {
            state(report->validation().valid() || !report->complete(), step.at, Point::Simulates,
                  fmt::format("step '{}' starts invalid: {}", step.id,
                              report->validation().valid() ? "" : report->validation().faults.front().message));
            return;
        }
        std::string found = "no fault";
        if (!report->validation().valid())
            found = stagewright::toText(report->validation().faults.front().op);
        else if (const auto over = start.capFault())
            found = stagewright::toText(over->op);
        if (!report->validation().valid() && step.expectInvalid == "deadlock")
            found = report->validation().cycle.empty() ? found : "deadlock";
        state(found == step.expectInvalid, step.at, Point::Simulates,
              fmt::format("step '{}' expects the fault {}; found: {}", step.id, step.expectInvalid, found));
    }

    void checks(const Check& check)
    {
        const StepState& start = *startState(check.step);
        const Step& step = *m_lesson.step(check.step);
        std::set<int> said;
        if (const Grade grade = start.grade(check); check.graded) {
            state(grade.verdict != Verdict::Pass, check.at, Point::StartFails,
                  fmt::format("check '{}' passes without any change", check.id));
            if (grade.remark >= 0) said.insert(grade.remark);
        }
        for (const Solution* solution : answersOf<Solution>(m_lesson, check.id)) solutions(check, step, *solution);
        for (const Wrong* wrong : answersOf<Wrong>(m_lesson, check.id)) {
            auto canvas = canvasOf(m_lesson, *wrong);
            if (!state(canvas.has_value(), wrong->at, Point::WrongFails,
                       canvas ? std::string() : canvas.error().message))
                continue;
            Learner learner = m_told;
            for (const auto& [id, words] : wrong->said) learner.said[id] = words;
            const Grade grade = StepState(m_lesson, step, std::move(*canvas), std::move(learner)).grade(check);
            if (grade.remark >= 0) said.insert(grade.remark);
            if (!state(grade.verdict == Verdict::Fail, wrong->at, Point::WrongFails,
                       fmt::format("a wrong answer to '{}' passes", check.id)))
                continue;
            state(grade.message.find(wrong->says) != std::string::npos, wrong->at, Point::WrongFails,
                  fmt::format("a wrong answer to '{}' should get '{}'; it gets: {}", check.id, wrong->says,
                              grade.message));
        }
        for (std::size_t i = 0; i + 1 < check.fails.size(); ++i)
            state(said.count(static_cast<int>(i)) > 0, check.fails[i].at, Point::WrongFails,
                  fmt::format("no wrong answer to '{}' gets this message", check.id));
        hints(check, step);
        tight(check, step);
        generalises(check, step);
    }

    void solutions(const Check& check, const Step& step, const Solution& solution)
    {
        auto canvas = canvasOf(m_lesson, solution);
        if (!state(canvas.has_value(), solution.at, Point::SolutionPasses,
                   canvas ? std::string() : canvas.error().message))
            return;
        reachable(check, step, solution, *canvas);
        const StepState solved(m_lesson, step, *canvas, m_told);
        const Grade grade = solved.grade(check);
        state(grade.verdict == Verdict::Pass, solution.at, Point::SolutionPasses,
              fmt::format("the solution of '{}' does not pass: {}", check.id, grade.message));
        evaluates(check.pass, solved, &check);
        for (const Remark& remark : check.grades) evaluates(remark.text, solved, &check);
        evaluates(check.formula, solved, &check);
        // A goal on the makespan may not ask for more than is possible; who reaches it is named.
        for (const Expression& part : check.goal.conjuncts()) {
            const auto comparison = part.comparison();
            if (comparison.left.text() != "makespan" ||
                (comparison.sign != "<=" && comparison.sign != "==" && comparison.sign != "<"))
                continue;
            auto needed = solved.evaluate(comparison.right, &check);
            if (!needed || !needed->number()) continue;
            const ScoreRail rail = solved.rail(check);
            if (!std::isnan(rail.bound))
                state(*needed->number() >= rail.bound - 1e-9, check.at, Point::AboveBound,
                      fmt::format("the goal {} of '{}' is below the bound {}: {}", lessons::toText(*needed), check.id,
                                  lessons::toText(Value(rail.bound)), rail.boundReason));
            const bool ours = solution.schedule.empty() || !solution.edits.empty();
            if (ours && check.graded && !rail.bestKnownName.empty() && rail.bestKnown > *needed->number() + 1e-9)
                add(Severity::Warning, Point::AboveBound, check.at,
                    fmt::format("no library schedule reaches the goal of '{}'; best known is {} ({})", check.id,
                                lessons::toText(Value(rail.bestKnown)), rail.bestKnownName));
        }
    }

    // The step's tools can turn its canvas into the solution's.
    void reachable(const Check& check, const Step& step, const Solution& solution, const Canvas& solved)
    {
        const auto allows = [&](std::string_view tool) { return allowsTool(step.allow, tool); };
        const Canvas& start = startState(check.step)->canvas();
        const bool free = allows("text") || allows("library") || allows("plan");
        std::string missing;
        const auto need = [&](bool needed, std::string_view tool) {
            if (needed && !allows(tool) && missing.empty()) missing = std::string(tool);
        };
        for (const EditCommand& edit : solution.edits)
            if (!free || edit.verb == "set") need(edit.tool() != "library" && edit.tool() != "text", edit.tool());
        const bool other = !(start.schedule == solved.schedule);
        if (!free) {
            need(start.schedule.splitsBackward() != solved.schedule.splitsBackward() && start.schedule.opCount() > 0,
                 "split");
            need(!(start.schedule.placement == solved.schedule.placement) &&
                     start.schedule.stages != solved.schedule.stages,
                 "placement");
            if (other && solution.edits.empty() && missing.empty() && !allows("move") && !allows("place") &&
                !allows("warmup"))
                missing = "move";
        }
        state(missing.empty(), solution.at, Point::StartFails,
              fmt::format("the solution of '{}' needs the tool '{}', which step '{}' does not allow", check.id, missing,
                          step.id));
    }

    void hints(const Check& check, const Step& step)
    {
        const StepState& start = *startState(check.step);
        for (const Hints::Hint* hint : m_lesson.hintsOf(check.id)) {
            evaluates(hint->text, start, &check);
            if (hint->edits.empty()) continue;
            Canvas canvas = start.canvas();
            for (int times = 0; times < 3; ++times) {
                auto edited = applyEdits(hint->edits, canvas);
                if (!state(edited.has_value(), check.at, Point::SolutionPasses,
                           fmt::format("hint 3 of '{}'{}: {}", check.id, times > 0 ? ", applied a second time" : "",
                                       edited ? std::string() : edited.error().message)))
                    return;
                canvas = std::move(*edited);
            }
            const StepState hinted(m_lesson, step, canvas, m_told);
            const auto report = hinted.report();
            bool sound = report != nullptr;
            if (report)
                for (const Fault& one : report->validation().faults)
                    sound = sound && (one.kind != FaultKind::Duplicate && one.kind != FaultKind::WrongRank &&
                                      one.kind != FaultKind::BadOp);
            state(sound, check.at, Point::SolutionPasses,
                  fmt::format("hint 3 of '{}' leaves a canvas that can't be completed", check.id));
            evaluates(hint->text, hinted, &check);
        }
    }

    void tight(const Check& check, const Step& step)
    {
        if (!check.graded) return;
        const auto parts = check.goal.conjuncts();
        const auto wrongs = answersOf<Wrong>(m_lesson, check.id);
        std::vector<StepState> states;
        for (const Wrong* wrong : wrongs)
            if (auto canvas = canvasOf(m_lesson, *wrong))
                states.emplace_back(m_lesson, step, std::move(*canvas), m_told);
        const auto value = [&](const StepState& at, const Expression& expression) {
            auto out = at.evaluate(expression, &check);
            return out ? *out : Value();
        };
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const auto loosened = parts[i].comparison();
            if (loosened.sign.empty() || loosened.sign == "!=" || loosened.sign == "~") continue;
            const bool passes = std::any_of(states.begin(), states.end(), [&](const StepState& at) {
                for (std::size_t k = 0; k < parts.size(); ++k)
                    if (k == i ? !holdsLoosened(value(at, loosened.left), loosened.sign, value(at, loosened.right))
                               : !holds(value(at, parts[k])).value_or(false))
                        return false;
                return true;
            });
            ++m_report.statements;
            if (!passes)
                add(Severity::Warning, Point::Tight, check.at,
                    fmt::format("'{}' may be too loose: no wrong answer passes with '{}' one unit looser", check.id,
                                parts[i].text()));
        }
    }

    void generalises(const Check& check, const Step& step)
    {
        if (check.generaliseRanks.empty() && check.generaliseMicrobatches.empty()) return;
        const auto solutions = answersOf<Solution>(m_lesson, check.id);
        if (!state(!solutions.empty() && !solutions.front()->schedule.empty(), check.at, Point::Generalises,
                   fmt::format("'{}' generalises, so its solution must be a library schedule", check.id)))
            return;
        const auto ranks = check.generaliseRanks.empty() ? std::pair(step.settings.ranks, step.settings.ranks)
                                                         : check.generaliseRanks.front();
        const auto batches = check.generaliseMicrobatches.empty()
                                 ? std::pair(step.settings.microbatches, step.settings.microbatches)
                                 : check.generaliseMicrobatches.front();
        int tried = 0;
        for (int p = ranks.first; p <= ranks.second; ++p)
            for (int m = batches.first; m <= batches.second; ++m) {
                if (p == step.settings.ranks && m == step.settings.microbatches) continue;
                Step other = step;
                other.settings.ranks = p;
                other.settings.microbatches = m;
                auto made = makeFor(solutions.front()->schedule, other.settings);
                if (!made) continue; // not for this shape
                auto canvas = applyEdits(solutions.front()->edits, {std::move(*made), other.settings});
                if (!canvas) continue;
                ++tried;
                const Grade grade = StepState(m_lesson, other, std::move(*canvas), m_told).grade(check);
                if (!state(
                        grade.verdict == Verdict::Pass, check.at, Point::Generalises,
                        fmt::format("the goal of '{}' does not hold at p={}, m={}: {}", check.id, p, m, grade.message)))
                    return;
            }
        state(tried > 0, check.at, Point::Generalises,
              fmt::format("'{}' can't be tested at any other shape", check.id));
    }

    void quizzes(const Quiz& quiz)
    {
        const Step& step = *m_lesson.step(quiz.step);
        std::set<int> said;
        const auto graded = [&](const GivenAnswer& answer) {
            Learner learner = m_told;
            learner.said.erase(quiz.id);
            for (const auto& [id, words] : answer.said) learner.said[id] = words;
            auto canvas = canvasOf(m_lesson, answer);
            return canvas ? StepState(m_lesson, step, std::move(*canvas), std::move(learner)).grade(quiz)
                          : Grade{Verdict::Open, canvas.error().message, {}, -1, {}};
        };
        for (const Solution* solution : answersOf<Solution>(m_lesson, quiz.id)) {
            const Grade grade = graded(*solution);
            std::string needed = grade.meters.empty() ? std::string() : lessons::toText(grade.meters.front().needed);
            state(grade.verdict == Verdict::Pass, solution->at, Point::SolutionPasses,
                  fmt::format("the answer to '{}' is wrong: the truth is {}; {}", quiz.id, needed, grade.message));
        }
        for (const Wrong* wrong : answersOf<Wrong>(m_lesson, quiz.id)) {
            const Grade grade = graded(*wrong);
            if (grade.remark >= 0) said.insert(grade.remark);
            if (!state(grade.verdict == Verdict::Fail, wrong->at, Point::WrongFails,
                       fmt::format("a wrong answer to '{}' passes", quiz.id)))
                continue;
            state(grade.message.find(wrong->says) != std::string::npos, wrong->at, Point::WrongFails,
                  fmt::format("a wrong answer to '{}' should get '{}'; it gets: {}", quiz.id, wrong->says,
                              grade.message));
        }
        for (std::size_t i = 0; i + 1 < quiz.fails.size(); ++i)
            state(said.count(static_cast<int>(i)) > 0, quiz.fails[i].at, Point::WrongFails,
                  fmt::format("no wrong answer to '{}' gets this message", quiz.id));
        const StepState& start = *startState(quiz.step);
        withholds(quiz, step, start);
        for (const Hints::Hint* hint : m_lesson.hintsOf(quiz.id)) evaluates(hint->text, start, nullptr);
        evaluates(quiz.ask, start, nullptr);
        evaluates(quiz.pass, start, nullptr);
        for (const Remark& remark : quiz.fails) evaluates(remark.text, start, nullptr);
    }

    // Whether the text has the words, not as a part of others.
    static bool says(const std::string& text, const std::string& words)
    {
        for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
            const auto joins = [&](std::size_t beside) {
                return beside < text.size() && (std::isalnum(static_cast<unsigned char>(text[beside])) != 0 ||
                                                text[beside] == '.' || text[beside] == '/');
            };
            const std::size_t end = at + words.size();
            const bool stop = end < text.size() && text[end] == '.' && (end + 1 == text.size() || text[end + 1] == ' ');
            if ((at == 0 || !joins(at - 1)) && (!joins(end) || stop)) return true;
        }
        return false;
    }

    // The answer comes by "Show the solution" only: no reply to a wrong answer has it, nor a hint, nor a figure that
    // the panel shows from the start.
    void withholds(const Quiz& quiz, const Step& step, const StepState& start)
    {
        const auto truth = start.evaluate(quiz.truth);
        if (!truth) return; // the solution's finding
        const auto isIt = [&](const Value& value) {
            if (same(value, *truth)) return true;
            return value.list() != nullptr && truth->number() != nullptr &&
                   static_cast<double>(value.list()->size()) == *truth->number(); // to be counted
        };
        const std::string words = lessons::toText(*truth);
        const auto has = [&](const std::string& text) { return says(text, words); };
        const auto tell = [&](const Text& text, const StepState& at, FilePlace place, const std::string& what) {
            bool given = has(at.say(text));
            for (const Text::Piece& piece : text.pieces)
                if (!piece.expression.empty())
                    if (const auto value = at.evaluate(piece.expression)) given = given || isIt(*value);
            state(!given, place, Point::Withholds, fmt::format("{} of '{}' gives its answer away", what, quiz.id));
        };
        for (const Wrong* wrong : answersOf<Wrong>(m_lesson, quiz.id)) {
            Learner learner = m_told;
            for (const auto& [id, said] : wrong->said) learner.said[id] = said;
            const StepState at(m_lesson, step, start.canvas(), std::move(learner));
            const Grade grade = at.grade(quiz);
            if (grade.remark >= 0)
                tell(quiz.fails[static_cast<std::size_t>(grade.remark)].text, at, wrong->at,
                     "the reply to a wrong answer");
        }
        for (const Hints::Hint* hint : m_lesson.hintsOf(quiz.id)) tell(hint->text, start, quiz.at, "a hint");
        for (const std::string& figure : step.watch)
            if (const auto parsed = Expression::parse(figure))
                if (const auto value = start.evaluate(*parsed))
                    state(!same(*value, *truth), quiz.at, Point::Withholds,
                          fmt::format("the figure {} beside the tools gives the answer of '{}' away", figure, quiz.id));
    }

    void evaluates(const Text& text, const StepState& at, const Check* within)
    {
        for (const Text::Piece& piece : text.pieces) {
            if (piece.expression.empty()) continue;
            auto value = at.evaluate(piece.expression, within);
            state(value.has_value(), piece.at, Point::Evaluates,
                  fmt::format("{{{{{}}}}} can't be evaluated: {}", piece.expression.text(),
                              value ? std::string() : value.error().message));
        }
    }

    void evaluates(const Expression& expression, const StepState& at, FilePlace place)
    {
        if (expression.empty()) return;
        auto value = at.evaluate(expression);
        state(value.has_value(), place, Point::Evaluates,
              fmt::format("'{}' can't be evaluated: {}", expression.text(),
                          value ? std::string() : value.error().message));
    }

    // Prose and questions, each with the canvas of the previous step.
    void texts()
    {
        int step = -1;
        for (const Section& section : m_lesson.sections)
            for (const Block& block : section.blocks) {
                if (std::holds_alternative<Step>(block)) ++step;
                const StepState* at = startState(std::max(step, 0));
                if (!at) continue;
                if (const auto* prose = std::get_if<Prose>(&block)) evaluates(prose->text, *at, nullptr);
                if (const auto* predict = std::get_if<Predict>(&block)) {
                    evaluates(predict->ask, *at, nullptr);
                    evaluates(predict->reveal, *at, nullptr);
                    evaluates(predict->truth, *at, predict->at);
                    truthIsChoice(*predict, *at);
                }
                if (const auto* check = std::get_if<Check>(&block)) evaluates(check->say, *at, check);
                if (const auto* figure = std::get_if<Figure>(&block)) evaluates(figure->caption, *at, nullptr);
                if (const auto* run = std::get_if<RunBlock>(&block); run && missingNeeds(run->needs).empty())
                    for (const auto& [goal, words] : run->goals) {
                        evaluates(goal, *at, run->at);
                        evaluates(words, *at, nullptr);
                    }
            }
    }

    void facts()
    {
        for (const Fact* fact : m_lesson.all<Fact>()) {
            const StepState* at = startState(std::max(fact->step, 0));
            if (!at) continue;
            for (const auto& [that, place] : fact->that) {
                auto value = at->evaluate(that);
                auto truth = value ? holds(*value) : tl::unexpected(value.error());
                std::string found = truth ? std::string() : truth.error().message;
                if (const auto comparison = that.comparison(); truth && !comparison.sign.empty()) {
                    auto left = at->evaluate(comparison.left);
                    if (left) found = fmt::format("{} is {}", comparison.left.text(), lessons::toText(*left));
                }
                state(truth && *truth, place, Point::Evaluates,
                      fmt::format("'{}' does not hold: {}", that.text(), found));
            }
        }
    }

    void truthIsChoice(const Predict& predict, const StepState& at)
    {
        auto truth = at.evaluate(predict.truth);
        if (!truth) return;
        const std::string words = lessons::toText(*truth);
        state(!says(m_lesson.title, words), predict.at, Point::Withholds,
              fmt::format("the title gives the answer of '{}' away", predict.id));
        if (predict.choices.empty()) return;
        state(std::find(predict.choices.begin(), predict.choices.end(), words) != predict.choices.end(), predict.at,
              Point::Names,
              fmt::format("the truth of '{}' is '{}', which is not among the choices", predict.id, words));
    }

    void figures()
    {
        for (const Figure* figure : m_lesson.all<Figure>()) {
            const StepState* at = startState(std::max(figure->step, 0));
            if (!at) continue;
            auto data = figureOf(*at, m_lesson, *figure, m_told);
            if (!state(data.has_value(), figure->at, Point::Figures, data ? std::string() : data.error().message))
                continue;
            state(!data->empty() && figureSvg(*data).size() > 200, figure->at, Point::Figures,
                  fmt::format("figure {} is empty", figure->file));
        }
    }

    void runs()
    {
        for (const RunBlock* run : m_lesson.all<RunBlock>()) {
            if (!missingNeeds(run->needs).empty()) continue; // already reported
            const StepState* at = startState(std::max(run->step, 0));
            if (!at) continue;
            if (const auto failed = m_told.failures.find(run->id);
                failed != m_told.failures.end() && !run->expectFailure) {
                if (failed->second.skipped)
                    add(Severity::Skipped, Point::Runs, run->at, failed->second.message);
                else
                    fault(run->at, Point::Runs, fmt::format("run '{}' failed: {}", run->id, failed->second.message));
                continue;
            }
            for (const Grade& grade : at->grade(*run)) {
                const Meter& meter = grade.meters.front();
                const std::string values = meter.sign.empty() ? meter.subject
                                                              : fmt::format("{} is {}, needed {} {}", meter.subject,
                                                                            lessons::toText(meter.yours), meter.sign,
                                                                            lessons::toText(meter.needed));
                state(grade.verdict == Verdict::Pass, run->at, Point::Runs,
                      fmt::format("run '{}': {}", run->id,
                                  grade.verdict == Verdict::Open ? "it was not recorded" : values));
            }
        }
    }

    const Lesson& m_lesson;
    const CheckOptions& m_options;
    LessonReport m_report;
    Learner m_told; // the right answers to all questions, and the recordings
    std::map<int, StepState> m_starts;
};

} // namespace

std::string_view toText(Point point)
{
    static constexpr std::string_view names[] = {"",      "names", "simulates", "start",       "solution",
                                                 "wrong", "bound", "evaluates", "generalises", "figures",
                                                 "words", "runs",  "tight",     "withholds"};
    return names[static_cast<std::size_t>(point)];
}

std::string_view toText(Severity severity)
{
    static constexpr std::string_view names[] = {"note", "warning", "fault", "skipped"};
    return names[static_cast<std::size_t>(severity)];
}

bool LessonReport::sound() const { return count(Severity::Fault) == 0; }

int LessonReport::count(Severity severity) const
{
    return static_cast<int>(
        std::count_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.severity == severity; }));
}

std::vector<std::string> missingNeeds(const std::vector<std::string>& needs)
{
    static constexpr std::string_view features[] = {"rendezvous",   "recompute", "perturb", "plan",
                                                    "stage-layers", "record",    "compare"};
    std::vector<std::string> missing;
    for (const std::string& need : needs)
        if (!schedulePossible(need) && std::find(std::begin(features), std::end(features), need) == std::end(features))
            missing.push_back(need);
    return missing;
}

LessonReport checkLesson(const Lesson& lesson, const CheckOptions& options)
{
    return LessonChecker(lesson, options).check();
}

} // namespace stagewright::lessons
