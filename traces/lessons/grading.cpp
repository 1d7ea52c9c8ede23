#include "traces/lessons/grading.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "traces/lessons/step_scope.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

// "0F0 0F1 / 1F0 1F1" → orders of the schedule's ranks.
Result<Schedule> withRows(Schedule schedule, const std::string& rows)
{
    std::vector<std::vector<Op>> order;
    for (const std::string_view row : split(rows, "/")) {
        auto& list = order.emplace_back();
        for (const std::string& word : partsOf(row, " ,")) {
            auto op = parseOp(word);
            if (!op) return tl::unexpected(std::move(op.error()).with("rows"));
            if (op->stage >= schedule.stages)
                return fail(ErrorCode::Usage, fmt::format("rows: {} names stage {}, stages are 0 to {}", word,
                                                          op->stage, schedule.stages - 1));
            list.push_back(*op);
        }
    }
    if (order.size() != static_cast<std::size_t>(schedule.ranks))
        return fail(ErrorCode::Usage, fmt::format("rows: {} ranks, the step has {}", order.size(), schedule.ranks),
                    "separate ranks by /");
    schedule.order = std::move(order);
    schedule.paired.clear();
    schedule.name = "rows";
    return schedule;
}

const Step* stepOf(const Lesson& lesson, const std::string& check)
{
    if (const Check* one = lesson.check(check)) return lesson.step(one->step);
    if (const Quiz* one = lesson.quiz(check)) return lesson.step(one->step);
    return nullptr;
}

const char* wordOf(const Value& value) { return value.list() ? "are" : "is"; }

} // namespace

std::string_view toText(Verdict verdict)
{
    return verdict == Verdict::Pass ? "pass" : verdict == Verdict::Fail ? "fail" : "open";
}

Value saidValue(const std::string& words)
{
    std::string text(trimmed(words));
    const bool percent = text.ends_with("%");
    if (percent) text.pop_back();
    if (!text.empty() && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
    if (const auto slash = text.find('/'); slash != std::string::npos) { // one fraction, as 3/4
        const auto above = numbersOf(text.substr(0, slash)), below = numbersOf(text.substr(slash + 1));
        if (above && below && above->size() == 1 && below->size() == 1 && below->front() != 0)
            return Value(above->front() / below->front());
    }
    const auto numbers = numbersOf(text, ", ;\t");
    if (!numbers || numbers->empty()) return Value(std::string(trimmed(words)));
    if (numbers->size() == 1) return Value(percent ? numbers->front() / 100 : numbers->front());
    List list;
    for (const double number : *numbers) list.push_back(Value(number));
    return Value(std::move(list));
}

Result<Canvas> startOf(const Lesson& lesson, const Step& step, const std::map<std::string, Schedule>& kept)
{
    Canvas canvas{{}, step.settings};
    if (step.show == "empty") {
        canvas.schedule = emptySchedule(step.settings);
    } else if (const auto found = kept.find(step.show); found != kept.end()) {
        canvas.schedule = found->second;
    } else if (const Solution* solution = lesson.solutionOf(step.show)) {
        if (stepOf(lesson, step.show) == &step)
            return fail(ErrorCode::Usage, fmt::format("step '{}' shows its own answer '{}'", step.id, step.show));
        auto solved = canvasOf(lesson, *solution);
        if (!solved) return solved;
        canvas.schedule = std::move(solved->schedule);
    } else {
        auto made = makeFor(step.show, step.settings);
        if (!made) return tl::unexpected(std::move(made.error()).with(fmt::format("step '{}'", step.id)));
        canvas.schedule = std::move(*made);
    }
    return applyEdits(step.edits, std::move(canvas));
}

Result<Canvas> canvasOf(const Lesson& lesson, const GivenAnswer& answer)
{
    const Step* step = stepOf(lesson, answer.check);
    if (!step) return fail(ErrorCode::Usage, fmt::format("there is no check '{}' with a step", answer.check));
    auto canvas = startOf(lesson, *step);
    if (!canvas) return canvas;
    if (!answer.schedule.empty()) {
        STAGEWRIGHT_TRY(canvas->schedule, makeFor(answer.schedule, canvas->settings));
    }
    if (!answer.rows.empty()) {
        STAGEWRIGHT_TRY(canvas->schedule, withRows(std::move(canvas->schedule), answer.rows));
    }
    return applyEdits(answer.edits, std::move(*canvas));
}

StepState::StepState(const Lesson& lesson, const Step& step, Canvas canvas, Learner learner)
    : m_inside(std::make_unique<Inside>(lesson, step, std::move(canvas), std::move(learner)))
{
}
StepState::~StepState() = default;
StepState::StepState(StepState&&) noexcept = default;

const Canvas& StepState::canvas() const { return m_inside->canvas; }

std::shared_ptr<const SimulatedReport> StepState::report() const
{
    return m_inside->report ? *m_inside->report : nullptr;
}

std::optional<CapFault> StepState::capFault() const
{
    const auto& cap = m_inside->canvas.settings.cap();
    const auto one = report();
    if (!cap || !one) return std::nullopt;
    return firstOverCap(one->schedule(), one->costs(),
                        static_cast<Bytes>(std::llround(*cap * static_cast<double>(one->costs().memoryUnit))));
}

Result<Value> StepState::evaluate(const Expression& expression, const Check* within) const
{
    return expression.evaluate(StepScope(*m_inside, within, nullptr));
}

std::string StepState::say(const Text& text, const Check* within) const
{
    std::string out;
    for (const Text::Piece& piece : text.pieces) {
        if (piece.expression.empty()) {
            out += piece.words;
            continue;
        }
        auto value = evaluate(piece.expression, within);
        out += value ? toText(*value) : "?";
    }
    return out;
}

std::vector<LiveValue> StepState::values(const Text& text, const Check* within) const
{
    std::vector<LiveValue> out;
    for (const Text::Piece& piece : text.pieces) {
        if (piece.expression.empty()) continue;
        auto value = evaluate(piece.expression, within);
        out.push_back(
            {piece.expression.text(), value ? toText(*value) : "?", value ? std::string() : value.error().message});
    }
    return out;
}

Grade StepState::grade(const Check& check) const
{
    Grade out;
    bool every = true;
    bool unanswered = false;
    std::string fault;
    for (const Expression& part : check.goal.conjuncts()) {
        Meter meter;
        auto value = evaluate(part, &check);
        auto truth = value ? holds(*value) : tl::unexpected(value.error());
        if (!truth && fault.empty()) fault = truth.error().message;
        meter.holds = truth && *truth;
        const auto comparison = part.comparison();
        meter.subject = comparison.sign.empty() ? part.text() : comparison.left.text();
        meter.sign = comparison.sign;
        if (!comparison.sign.empty()) {
            if (auto left = evaluate(comparison.left, &check)) meter.yours = std::move(*left);
            if (auto right = evaluate(comparison.right, &check)) meter.needed = std::move(*right);
            const auto functions = comparison.left.functions();
            unanswered = unanswered || (meter.yours.isNothing() &&
                                        std::find(functions.begin(), functions.end(), "answer") != functions.end());
        } else if (value) {
            meter.yours = *value;
        }
        every = every && meter.holds;
        out.meters.push_back(std::move(meter));
    }
    if (unanswered) return out;
    out.verdict = every ? Verdict::Pass : Verdict::Fail;
    if (every) {
        out.message = say(check.pass, &check);
        for (const Remark& remark : check.grades) {
            auto value = evaluate(remark.condition, &check);
            if (value && holds(*value).value_or(false)) out.medal = say(remark.text, &check);
        }
        return out;
    }
    if (!fault.empty()) {
        out.message = fault;
        return out;
    }
    for (const Remark& remark : check.fails) {
        auto value = evaluate(remark.condition, &check);
        if (!remark.condition.empty() && !(value && holds(*value).value_or(false))) continue;
        out.message = say(remark.text, &check);
        out.remark = static_cast<int>(&remark - check.fails.data());
        break;
    }
    return out;
}

Grade StepState::grade(const Quiz& quiz) const
{
    Grade out;
    const auto found = m_inside->learner.said.find(quiz.id);
    if (found == m_inside->learner.said.end() || trimmed(found->second).empty()) return out;
    // It is about the canvas that its step starts with, whatever has been done to it since.
    if (auto start = startOf(m_inside->lesson, m_inside->step);
        start && !(start->schedule == canvas().schedule && start->settings == canvas().settings))
        return StepState(m_inside->lesson, m_inside->step, std::move(*start), m_inside->learner).grade(quiz);
    auto truth = evaluate(quiz.truth);
    if (!truth) {
        out.verdict = Verdict::Fail;
        out.message = truth.error().message;
        return out;
    }
    Value said = saidValue(found->second);
    Value needed = *truth;
    // 50 for 50 %
    const bool bare =
        say(quiz.ask).find("in percent") != std::string::npos && found->second.find('%') == std::string::npos;
    if (!quiz.choices.empty()) said = Value(std::string(trimmed(found->second)));
    if (!quiz.choices.empty() && !needed.text()) needed = Value(toText(needed));
    bool right = same(said, needed);
    const auto near = [&](double value) {
        return std::abs(value - *needed.number()) <= quiz.within * (1 + 1e-12) + 1e-9;
    };
    if (!right && said.number() && needed.number())
        right = near(*said.number()) || (bare && near(*said.number() / 100));
    out.meters.push_back({quiz.id, said, "==", needed, right});
    out.verdict = right ? Verdict::Pass : Verdict::Fail;
    if (right) {
        out.message = say(quiz.pass);
        return out;
    }
    for (const Remark& remark : quiz.fails) {
        auto value = evaluate(remark.condition);
        if (!remark.condition.empty() && !(value && holds(*value).value_or(false))) continue;
        out.message = say(remark.text);
        out.remark = static_cast<int>(&remark - quiz.fails.data());
        break;
    }
    return out;
}

std::vector<Grade> StepState::grade(const RunBlock& run) const
{
    const auto& learner = m_inside->learner;
    const bool recorded = std::any_of(learner.runs.begin(), learner.runs.end(),
                                      [&](const auto& one) { return one.first.starts_with(run.id + "/"); });
    const bool failed = learner.failures.count(run.id) > 0;
    const StepScope scope(*m_inside, nullptr, &run);
    std::vector<Grade> out;
    for (const auto& [goal, text] : run.goals) {
        Grade one;
        const auto comparison = goal.comparison();
        Meter meter{comparison.sign.empty() ? goal.text() : comparison.left.text(), {}, comparison.sign, {}, false};
        if (recorded || failed) {
            auto value = goal.evaluate(scope);
            auto truth = value ? holds(*value) : tl::unexpected(value.error());
            meter.holds = truth && *truth;
            if (!comparison.sign.empty()) {
                if (auto left = comparison.left.evaluate(scope)) meter.yours = std::move(*left);
                if (auto right = comparison.right.evaluate(scope)) meter.needed = std::move(*right);
            }
            one.verdict = meter.holds ? Verdict::Pass : Verdict::Fail;
            one.message = truth ? say(text) : truth.error().message;
            if (one.message.empty())
                one.message = meter.sign.empty()
                                  ? fmt::format("{}: {}", goal.text(), meter.holds ? "yes" : "no")
                                  : fmt::format("{} {} {}, needed {} {}", meter.subject, wordOf(meter.yours),
                                                toText(meter.yours), meter.sign, toText(meter.needed));
        }
        one.meters.push_back(std::move(meter));
        out.push_back(std::move(one));
    }
    if (run.fit <= 0) return out;
    Grade fit;
    Meter meter{"model against measured", {}, "<=", Value(run.fit), true};
    double worst = 0;
    for (const auto& [name, one] : learner.runs) {
        if (!name.starts_with(run.id + "/")) continue;
        const auto model = SimulatedReport::predicted(*one);
        if (!model) continue;
        const auto measured = RecordedReport(one).figure("makespan");
        const auto predicted = model->figure("makespan");
        if (!measured || !predicted || !measured->number() || !predicted->number() || *measured->number() <= 0)
            continue;
        worst = std::max(worst, std::abs(*predicted->number() / *measured->number() - 1));
        fit.verdict = Verdict::Pass;
    }
    meter.yours = Value(worst);
    meter.holds = worst <= run.fit;
    if (fit.verdict == Verdict::Pass && !meter.holds) fit.verdict = Verdict::Fail;
    if (fit.verdict != Verdict::Open)
        fit.message = fmt::format("model against measured {:.1f} %, allowed {:.1f} %", worst * 100, run.fit * 100);
    fit.meters.push_back(std::move(meter));
    out.push_back(std::move(fit));
    return out;
}

ScoreRail StepState::rail(const Check& check) const
{
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    ScoreRail out;
    const auto own = report();
    out.yours = own ? own->makespan().value_or(none) : none;
    out.guess = none;
    const auto par = m_inside->par(&check);
    out.par = par ? par->value : none;
    out.parName = par ? par->name : std::string();
    const Bound bound = m_inside->boundFor(&check);
    out.bound = bound.why.empty() ? none : bound.value;
    out.boundReason = bound.why;
    const auto best = m_inside->bestKnown(&check);
    out.bestKnown = best ? best->value : none;
    out.bestKnownName = best ? best->name : std::string();
    out.boundReached = !(out.par > out.bound + 1e-9) || !(out.bestKnown > out.bound + 1e-9);
    // A guess is on this axis if it was of this step time: one of the marks is its truth.
    for (const Predict* predict : m_inside->lesson.all<Predict>()) {
        const auto said = m_inside->learner.said.find(predict->id);
        if (said == m_inside->learner.said.end() || predict->unit != "units" || !predict->choices.empty()) continue;
        const auto truth = evaluate(predict->truth);
        const Value value = saidValue(said->second);
        if (!truth || !truth->number() || !value.number()) continue;
        for (const double mark : {out.par, out.bound, out.bestKnown})
            if (std::abs(mark - *truth->number()) < 1e-9) out.guess = *value.number();
    }
    return out;
}

} // namespace stagewright::lessons
