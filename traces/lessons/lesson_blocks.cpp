#include "traces/lessons/lesson_blocks.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

// "condition -> text"; a line without an arrow is a condition alone.
std::pair<std::string, std::string> arrowParts(const std::string& value, std::size_t& textAt)
{
    const std::size_t arrow = value.find("->");
    if (arrow == std::string::npos) {
        textAt = value.size();
        return {value, {}};
    }
    textAt = std::min(value.find_first_not_of(" \t", arrow + 2), value.size());
    return {std::string(trimmed(std::string_view(value).substr(0, arrow))), value.substr(textAt)};
}

std::vector<std::string> choicesOf(const std::string& value) { return partsOf(value, "|"); }

// "p=2..8 m=4..16"
bool readRanges(const std::string& value, Check& check)
{
    for (const std::string& part : partsOf(value, " ")) {
        const auto [key, range] = keyValueOf(part);
        const auto [from, to] = keyValueOf(range.value_or(""), '.');
        const auto first = wholeOf(from),
                   last = wholeOf(to && to->starts_with('.') ? to->substr(1) : std::string_view());
        if (!first || !last || *first < 1 || *last < *first || *last > 64) return false;
        if (key == "p")
            check.generaliseRanks = {{*first, *last}};
        else if (key == "m")
            check.generaliseMicrobatches = {{*first, *last}};
        else
            return false;
    }
    return !check.generaliseRanks.empty() || !check.generaliseMicrobatches.empty();
}

} // namespace

bool LessonBlocks::isTyped(std::string_view kind)
{
    static constexpr std::array<std::string_view, 10> typed = {"predict", "step",   "check",    "quiz",  "hint",
                                                               "run",     "figure", "solution", "wrong", "fact"};
    return std::find(typed.begin(), typed.end(), kind) != typed.end();
}

Result<void> LessonBlocks::newId(const std::string& id, FilePlace at)
{
    const auto [found, added] = m_ids.try_emplace(id, at);
    if (added) return {};
    return faultAt(path, at, fmt::format("the id '{}' is already used in line {}", id, found->second.line),
                   "give every block its own id");
}

Result<void> LessonBlocks::remarks(const Fields& fields, std::string_view key, std::vector<Remark>& out) const
{
    for (const Field* field : fields.all(key)) {
        std::size_t textAt = 0;
        const auto [condition, words] = arrowParts(field->value, textAt);
        if (words.empty())
            return faultAt(path, field->at, fmt::format("'{}' has no text", key),
                           "write 'condition -> text', or '-> text' for all other cases");
        Remark remark;
        remark.at = field->keyAt;
        if (!condition.empty()) {
            STAGEWRIGHT_TRY(remark.condition, readExpression(path, condition, field->at));
        }
        STAGEWRIGHT_TRY(remark.text,
                        readText(path, words, {field->at.line, field->at.column + static_cast<int>(textAt)}));
        out.push_back(std::move(remark));
    }
    return {};
}

Result<Block> LessonBlocks::read(const std::string& kind, const std::vector<Line>& lines, FilePlace at)
{
    STAGEWRIGHT_TRY(auto fields, Fields::read(path, kind, lines, at));
    if (kind == "predict") return predict(fields);
    if (kind == "step") return step(fields);
    if (kind == "check") return check(fields);
    if (kind == "quiz") return quiz(fields);
    if (kind == "hint") return hint(fields);
    if (kind == "run") return run(fields);
    if (kind == "figure") return figure(fields);
    if (kind == "fact") return fact(fields);
    if (kind == "solution") return answer<Solution>(fields, false);
    return answer<Wrong>(fields, true);
}

// Every step of reading a block may fail; the first fault is the block's.
#define STAGEWRIGHT_TAKE(expression)                                                                                   \
    if (auto taken = (expression); !taken) return tl::unexpected(std::move(taken.error()))

Result<Block> LessonBlocks::predict(const Fields& fields)
{
    Predict out;
    out.at = fields.at();
    STAGEWRIGHT_TAKE(fields.allow({"id", "ask", "choose", "number", "truth", "reveal"}));
    STAGEWRIGHT_TAKE(fields.require({"id", "ask", "truth"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({}));
    STAGEWRIGHT_TAKE(fields.takeId("id", out.id));
    STAGEWRIGHT_TAKE(newId(out.id, out.at));
    STAGEWRIGHT_TAKE(fields.take("ask", out.ask));
    if (const Field* field = fields.find("choose")) out.choices = choicesOf(field->value);
    STAGEWRIGHT_TAKE(fields.take("number", out.unit));
    STAGEWRIGHT_TAKE(fields.take("truth", out.truth));
    STAGEWRIGHT_TAKE(fields.take("reveal", out.reveal));
    return Block(std::move(out));
}

Result<Block> LessonBlocks::step(const Fields& fields)
{
    Step out;
    out.at = fields.at();
    out.settings = settings;
    STAGEWRIGHT_TAKE(fields.allow(
        {"id", "show", "do", "compare", "allow", "set", "cap", "expect", "view", "targets", "axis", "watch", "needs"}));
    STAGEWRIGHT_TAKE(fields.require({"show"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({"do", "set"}));
    out.id = fmt::format("step-{}", ++m_steps);
    STAGEWRIGHT_TAKE(fields.takeId("id", out.id));
    STAGEWRIGHT_TAKE(newId(out.id, out.at));
    STAGEWRIGHT_TAKE(fields.take("show", out.show));
    STAGEWRIGHT_TAKE(fields.takeEdits("do", out.edits));
    STAGEWRIGHT_TAKE(fields.take("compare", out.compare));
    STAGEWRIGHT_TAKE(fields.takeList("allow", out.allow));
    STAGEWRIGHT_TAKE(fields.takeSettings("set", out.settings));
    if (const Field* field = fields.find("cap")) {
        auto capped = withSettings(out.settings, "cap=" + field->value);
        if (!capped) return faultAt(path, field->at, std::move(capped.error()));
        out.settings = std::move(*capped);
    }
    if (const Field* field = fields.find("expect")) {
        const auto words = partsOf(field->value, " \"");
        if (words.size() != 2 || words[0] != "invalid")
            return faultAt(path, field->at, "the expectation is not understood", "write expect: invalid \"0F4\"");
        out.expectInvalid = words[1];
    }
    STAGEWRIGHT_TAKE(fields.take("view", out.view));
    STAGEWRIGHT_TAKE(fields.take("targets", out.targets));
    STAGEWRIGHT_TAKE(fields.take("axis", out.axis));
    STAGEWRIGHT_TAKE(fields.takeList("watch", out.watch));
    STAGEWRIGHT_TAKE(fields.takeList("needs", out.needs));
    return Block(std::move(out));
}

Result<Block> LessonBlocks::check(const Fields& fields)
{
    Check out;
    out.at = fields.at();
    out.step = m_steps - 1;
    STAGEWRIGHT_TAKE(fields.allow(
        {"id", "goal", "say", "pass", "fail", "grade", "par", "formula", "generalise", "graded", "with", "needs"}));
    STAGEWRIGHT_TAKE(fields.require({"id", "goal", "say", "pass", "fail"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({"fail", "grade"}));
    STAGEWRIGHT_TAKE(fields.takeId("id", out.id));
    STAGEWRIGHT_TAKE(newId(out.id, out.at));
    if (out.step < 0)
        return faultAt(path, out.at, fmt::format("the check '{}' comes before the first step", out.id),
                       "put a step block before it");
    STAGEWRIGHT_TAKE(fields.take("goal", out.goal));
    STAGEWRIGHT_TAKE(fields.take("say", out.say));
    STAGEWRIGHT_TAKE(fields.take("pass", out.pass));
    STAGEWRIGHT_TAKE(remarks(fields, "fail", out.fails));
    if (!out.fails.back().condition.empty())
        return faultAt(path, out.fails.back().at, "the last 'fail' has a condition, so some answers get no message",
                       "end with 'fail: -> text'");
    for (std::size_t i = 0; i + 1 < out.fails.size(); ++i)
        if (out.fails[i].condition.empty())
            return faultAt(path, out.fails[i].at, "this 'fail' takes all cases, so those after it never apply",
                           "put it last");
    STAGEWRIGHT_TAKE(remarks(fields, "grade", out.grades));
    STAGEWRIGHT_TAKE(fields.take("par", out.par));
    STAGEWRIGHT_TAKE(fields.take("formula", out.formula));
    if (const Field* field = fields.find("generalise"); field && !readRanges(field->value, out))
        return faultAt(path, field->at, fmt::format("'{}' gives no ranges", field->value), "write p=2..8 m=4..16");
    if (const Field* field = fields.find("graded")) {
        if (field->value != "yes" && field->value != "no") return faultAt(path, field->at, "it takes yes or no");
        out.graded = field->value == "yes";
    }
    if (fields.find("with") != nullptr) STAGEWRIGHT_TAKE(fields.takeList("with", out.with.emplace()));
    STAGEWRIGHT_TAKE(fields.takeList("needs", out.needs));
    m_lastChecked = out.id;
    return Block(std::move(out));
}

Result<Block> LessonBlocks::quiz(const Fields& fields)
{
    Quiz out;
    out.at = fields.at();
    out.step = m_steps - 1;
    STAGEWRIGHT_TAKE(fields.allow({"id", "ask", "choose", "truth", "within", "pass", "fail", "with", "needs"}));
    STAGEWRIGHT_TAKE(fields.require({"id", "ask", "truth", "pass", "fail"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({"fail"}));
    STAGEWRIGHT_TAKE(fields.takeId("id", out.id));
    STAGEWRIGHT_TAKE(newId(out.id, out.at));
    if (out.step < 0)
        return faultAt(path, out.at, fmt::format("the quiz '{}' comes before the first step", out.id),
                       "put a step block before it");
    STAGEWRIGHT_TAKE(fields.take("ask", out.ask));
    if (const Field* field = fields.find("choose")) out.choices = choicesOf(field->value);
    STAGEWRIGHT_TAKE(fields.take("truth", out.truth));
    if (const Field* field = fields.find("within")) {
        const auto number = numberOf(field->value);
        if (!number || *number < 0)
            return faultAt(path, field->at, fmt::format("'{}' is not a number from 0", field->value));
        out.within = *number;
    }
    STAGEWRIGHT_TAKE(fields.take("pass", out.pass));
    STAGEWRIGHT_TAKE(remarks(fields, "fail", out.fails));
    if (!out.fails.back().condition.empty())
        return faultAt(path, out.fails.back().at, "the last 'fail' has a condition, so some answers get no message",
                       "end with 'fail: -> text'");
    STAGEWRIGHT_TAKE(fields.takeList("with", out.with));
    STAGEWRIGHT_TAKE(fields.takeList("needs", out.needs));
    m_lastChecked = out.id;
    return Block(std::move(out));
}

Result<Block> LessonBlocks::hint(const Fields& fields)
{
    Hints out;
    out.at = fields.at();
    STAGEWRIGHT_TAKE(fields.allow({"of", "1", "2", "3"}));
    STAGEWRIGHT_TAKE(fields.require({"1"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({}));
    out.of = m_lastChecked;
    STAGEWRIGHT_TAKE(fields.take("of", out.of));
    if (out.of.empty())
        return faultAt(path, out.at, "hints without a check or quiz", "put them after their check or quiz");
    for (const char* key : {"1", "2", "3"}) {
        const Field* field = fields.find(key);
        if (!field) continue;
        Hints::Hint hint;
        std::size_t textAt = 0;
        std::string words = field->value;
        if (words.starts_with("do ")) {
            const auto [edit, text] = arrowParts(words, textAt);
            auto edits = parseEdits(std::string_view(edit).substr(3));
            if (!edits) return faultAt(path, {field->at.line, field->at.column + 3}, std::move(edits.error()));
            hint.edits = std::move(*edits);
            words = text;
        }
        STAGEWRIGHT_TRY(hint.text,
                        readText(path, words, {field->at.line, field->at.column + static_cast<int>(textAt)}));
        out.hints.push_back(std::move(hint));
    }
    return Block(std::move(out));
}

Result<Block> LessonBlocks::run(const Fields& fields)
{
    RunBlock out;
    out.at = fields.at();
    out.step = m_steps - 1;
    STAGEWRIGHT_TAKE(fields.allow({"id", "title", "record", "do", "look", "goal", "fit", "expect", "clock", "needs"}));
    STAGEWRIGHT_TAKE(fields.require({"id", "record"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({"do", "goal"}));
    STAGEWRIGHT_TAKE(fields.takeId("id", out.id));
    STAGEWRIGHT_TAKE(newId(out.id, out.at));
    STAGEWRIGHT_TAKE(fields.take("title", out.title));
    STAGEWRIGHT_TAKE(fields.takeList("record", out.arguments, " "));
    STAGEWRIGHT_TAKE(fields.takeEdits("do", out.edits));
    STAGEWRIGHT_TAKE(fields.take("look", out.look));
    for (const Field* field : fields.all("goal")) {
        std::size_t textAt = 0;
        const auto [goal, words] = arrowParts(field->value, textAt);
        STAGEWRIGHT_TRY(auto expression, readExpression(path, goal, field->at));
        STAGEWRIGHT_TRY(auto text,
                        readText(path, words, {field->at.line, field->at.column + static_cast<int>(textAt)}));
        out.goals.emplace_back(std::move(expression), std::move(text));
    }
    if (const Field* field = fields.find("fit")) {
        const bool percent = field->value.ends_with("%");
        const auto number = numberOf(std::string_view(field->value).substr(0, field->value.size() - (percent ? 1 : 0)));
        if (!number || *number <= 0)
            return faultAt(path, field->at, fmt::format("'{}' is not a tolerance", field->value), "write 5%");
        out.fit = percent ? *number / 100 : *number;
    }
    if (const Field* field = fields.find("expect")) {
        if (field->value != "failure")
            return faultAt(path, field->at, fmt::format("'{}' is not an expectation for a run", field->value),
                           "write expect: failure");
        out.expectFailure = true;
    }
    if (const Field* field = fields.find("clock")) {
        if (field->value != "wall" && field->value != "virtual")
            return faultAt(path, field->at, "it takes wall or virtual");
        out.wallClock = field->value == "wall";
    }
    STAGEWRIGHT_TAKE(fields.takeList("needs", out.needs));
    return Block(std::move(out));
}

Result<Block> LessonBlocks::figure(const Fields& fields)
{
    Figure out;
    out.at = fields.at();
    out.step = m_steps - 1;
    STAGEWRIGHT_TAKE(fields.allow({"file", "of", "caption"}));
    STAGEWRIGHT_TAKE(fields.require({"file", "of"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({}));
    STAGEWRIGHT_TAKE(fields.take("file", out.file));
    STAGEWRIGHT_TAKE(fields.take("of", out.of));
    STAGEWRIGHT_TAKE(fields.take("caption", out.caption));
    if (out.file.find('/') != std::string::npos || !out.file.ends_with(".svg"))
        return faultAt(path, fields.find("file")->at, fmt::format("'{}' is not a figure's file name", out.file),
                       "write a name such as fig-6.svg");
    return Block(std::move(out));
}

Result<Block> LessonBlocks::fact(const Fields& fields)
{
    Fact out;
    out.at = fields.at();
    out.step = m_steps - 1;
    STAGEWRIGHT_TAKE(fields.allow({"that"}));
    STAGEWRIGHT_TAKE(fields.require({"that"}));
    for (const Field* field : fields.all("that")) {
        STAGEWRIGHT_TRY(auto expression, readExpression(path, field->value, field->at));
        out.that.emplace_back(std::move(expression), field->at);
    }
    return Block(std::move(out));
}

template <typename Kind>
Result<Block> LessonBlocks::answer(const Fields& fields, bool wrong)
{
    Kind out;
    out.at = fields.at();
    STAGEWRIGHT_TAKE(fields.allow({"check", "schedule", "rows", "do", "answer", "says"}));
    STAGEWRIGHT_TAKE(fields.onlyOnce({"do", "answer"}));
    if (wrong) STAGEWRIGHT_TAKE(fields.require({"says"}));
    out.check = m_lastChecked;
    STAGEWRIGHT_TAKE(fields.take("check", out.check));
    STAGEWRIGHT_TAKE(fields.take("schedule", out.schedule));
    STAGEWRIGHT_TAKE(fields.take("rows", out.rows));
    STAGEWRIGHT_TAKE(fields.takeEdits("do", out.edits));
    for (const Field* field : fields.all("answer")) {
        const auto [id, said] = keyValueOf(field->value);
        if (said)
            out.said.emplace_back(trimmed(id), trimmed(*said));
        else // of the quiz it belongs to
            out.said.emplace_back(out.check, field->value);
    }
    STAGEWRIGHT_TAKE(fields.take("says", out.says));
    if (out.check.empty()) return faultAt(path, out.at, "an answer without a check", "add a line 'check: id'");
    return Block(std::move(out));
}

Result<void> LessonBlocks::finish(const Lesson& lesson) const
{
    const auto known = [&](const std::string& id) { return lesson.check(id) || lesson.quiz(id); };
    const auto unknown = [&](const std::string& id, FilePlace at) {
        std::string ids;
        for (const Check* check : lesson.all<Check>()) ids += (ids.empty() ? "" : ", ") + check->id;
        for (const Quiz* quiz : lesson.all<Quiz>()) ids += (ids.empty() ? "" : ", ") + quiz->id;
        return faultAt(path, at, fmt::format("there is no check or quiz '{}'", id),
                       ids.empty() ? "the lesson has none" : "there are " + ids);
    };
    for (const Hints* hints : lesson.all<Hints>())
        if (!known(hints->of)) return unknown(hints->of, hints->at);
    for (const Solution* one : lesson.all<Solution>())
        if (!known(one->check)) return unknown(one->check, one->at);
    for (const Wrong* one : lesson.all<Wrong>())
        if (!known(one->check)) return unknown(one->check, one->at);
    return {};
}

#undef STAGEWRIGHT_TAKE

} // namespace stagewright::lessons
