#include "widgets/lessons/page_reading.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QRegularExpression>

#include "traces/lessons/check_lesson.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {
namespace {

BlockReading readingOf(const lessons::Grade& grade)
{
    BlockReading reading;
    reading.state = grade.verdict;
    reading.verdict = qs(grade.message);
    reading.medal = qs(grade.medal);
    for (const lessons::Meter& meter : grade.meters) {
        MeterReading row;
        row.subject = figureWords(meter.subject);
        row.yours = qs(lessons::toText(meter.yours));
        row.needed = meter.sign.empty() ? QString() : qs(lessons::toText(meter.needed));
        row.sign = qs(meter.sign);
        row.holds = meter.holds;
        reading.unfinished = reading.unfinished || (meter.subject == "complete" && !meter.holds);
        row.share = -1;
        const double *yours = meter.yours.number(), *needed = meter.needed.number();
        if (meter.sign.starts_with('<') && yours != nullptr && needed != nullptr && *needed > 0 && *yours >= 0)
            row.share = *yours / *needed;
        reading.meters.push_back(row);
    }
    // What keeps below a bound only because ops are missing is not met yet.
    for (MeterReading& row : reading.meters)
        if (reading.unfinished && row.sign.startsWith(u'<')) row.holds = false;
    return reading;
}

QString unmet(const QString& subject)
{
    if (subject == u"order can run"_s) return u"not yet: this order can't run"_s;
    if (subject == u"every op placed"_s) return u"not yet: some ops are not placed"_s;
    if (subject.startsWith("every rank finishes"_L1)) return u"not yet: the ranks still wait for each other"_s;
    return u"not yet: %1"_s.arg(subject);
}

// Which way a wrong answer is off.
QString directionOf(const lessons::Quiz& quiz, const lessons::Meter& meter)
{
    if (!quiz.choices.empty()) return u"Not that one."_s;
    const double *said = meter.yours.number(), *is = meter.needed.number();
    if (said != nullptr && is != nullptr) return *said < *is ? u"Too small."_s : u"Too large."_s;
    const lessons::List *these = meter.yours.list(), *those = meter.needed.list();
    if (those != nullptr && is == nullptr && said != nullptr) return u"More numbers than one are asked for."_s;
    if (these == nullptr || those == nullptr) return u"Not a number."_s;
    if (these->size() != those->size())
        return these->size() < those->size() ? u"Too few numbers."_s : u"Too many numbers."_s;
    int right = 0;
    for (std::size_t i = 0; i < these->size(); ++i) right += lessons::same((*these)[i], (*those)[i]) ? 1 : 0;
    return right == 0 ? u"None of them is in its place."_s : u"%1 of %2 are right."_s.arg(right).arg(those->size());
}

// The letters of a formula in words: "p = 4 ranks, m = 8 microbatches".
QString lettersOf(const QString& formula, const lessons::StepState& state)
{
    QStringList words;
    const std::pair<const char*, const char*> letters[] = {{"p", "p = %1 ranks"},
                                                           {"m", "m = %1 microbatches"},
                                                           {"T", "T = %1, a forward and its backward"},
                                                           {"F", "F = %1, a forward"},
                                                           {"I", "I = %1, an input gradient"},
                                                           {"W", "W = %1, a weight gradient"},
                                                           {"c", "c = %1, a message"},
                                                           {"v", "v = %1 chunks"}};
    for (const auto& [letter, text] : letters) {
        // alone or beside another letter, as in mT: no letter of a word
        const QRegularExpression used(
            u"(?<![a-z])(?<![A-Za-z]{2})%1(?![a-z])(?![A-Za-z]{2})"_s.arg(QLatin1String(letter)));
        const auto parsed = lessons::Expression::parse(letter);
        if (!formula.contains(used) || !parsed) continue;
        if (const auto value = state.evaluate(*parsed))
            words << QString::fromUtf8(text).arg(qs(lessons::toText(*value)));
    }
    return words.join(u"; "_s);
}

// Whether the goal is about the step time: then the rail shows how far it is.
bool onStepTime(const lessons::Check& check)
{
    static const QRegularExpression named(u"\\b(makespan|span)\\b"_s);
    return qs(check.goal.text()).contains(named);
}

// What was guessed beside what it is, with the numbers that the question was asked with.
GuessReading guessOf(const lessons::Predict& predict, const lessons::StepState& asked, const std::string& said)
{
    GuessReading out;
    out.ask = qs(asked.say(predict.ask));
    out.reveal = qs(asked.say(predict.reveal));
    const auto truth = asked.evaluate(predict.truth);
    if (!truth) return out;
    const lessons::Value yours = predict.choices.empty() ? lessons::saidValue(said) : lessons::Value(said);
    const double *guessed = yours.number(), *is = truth->number();
    const bool percent = predict.unit == "percent";
    const auto inUnit = [&](double value) {
        const QString number = qs(lessons::toText(lessons::Value(std::round(value * 1000) / 1000)));
        return percent                                          ? u"%1 %"_s.arg(number)
               : predict.unit.empty() || predict.unit == "mark" ? number
                                                                : u"%1 %2"_s.arg(number, qs(predict.unit));
    };
    if (guessed != nullptr && is != nullptr) {
        // "20 %" is read as 0.2
        const double value = percent && qs(said).trimmed().endsWith(u'%') ? *guessed * 100 : *guessed;
        out.right = std::abs(value - *is) <= 0.005 * std::max(1.0, std::abs(*is));
        out.words = out.right ? u"You guessed **%1**: correct."_s.arg(inUnit(value))
                              : u"You guessed **%1**. It is **%2**."_s.arg(inUnit(value), inUnit(*is));
    } else {
        const QString answer = qs(lessons::toText(*truth)), words = qs(said).trimmed();
        out.right = words == answer;
        out.words = out.right ? u"You guessed **%1**: correct."_s.arg(words)
                              : u"You guessed **%1**. It is **%2**."_s.arg(words, answer);
    }
    return out;
}

// In one line, why a goal is not met: the first comparison that fails.
QString shortOf(const BlockReading& reading)
{
    if (reading.unfinished) return unmet(u"every op placed"_s);
    for (const MeterReading& meter : reading.meters)
        if (!meter.holds)
            return meter.needed.isEmpty() ? unmet(meter.subject)
                                          : u"not yet: %1 is %2"_s.arg(meter.subject, meter.yours);
    return u"not yet"_s;
}

} // namespace

QString qs(const std::string& text) { return QString::fromStdString(text); }

QString figureWords(const std::string& name)
{
    static const std::map<std::string, const char*> words{
        {"makespan", "step time"},
        {"span", "span"},
        {"bubble_fraction", "bubble ratio"},
        {"peak_activation", "peak"},
        {"idle_by_cause.warmup", "idle in warm-up"},
        {"idle_by_cause.drain", "idle in drain"},
        {"state[0]", "state of rank 0 in GB"},
        {"step", "whole step"},
        {"complete", "every op placed"},
        {"valid", "order can run"},
        {"comm", "latency"},
        {"max_stage_cost", "costliest stage"},
        {"sum(stage_costs)", "all stages together"},
        {"m", "microbatches"},
        {"c", "latency"},
        {"count(B)", "backwards not split"},
        {"count(INVERT)", "pieces of inversions"},
        {"not deadlock()", "every rank finishes"},
        {"not deadlock(sends=rendezvous)", "every rank finishes without buffers"},
        {"idle", "idle time"},
        {"valid(sends=buffered)", "order can run with buffered sends"},
    };
    const QString trimmed = qs(name).trimmed();
    const auto found = words.find(trimmed.toStdString());
    if (found != words.end()) return QString::fromUtf8(found->second);
    static const QRegularExpression atMost(u"^not \\(m > .+\\)$"_s); // the number would be the answer
    if (atMost.match(trimmed).hasMatch()) return u"no more microbatches than needed"_s;
    static const QRegularExpression named(u"^is\\(\"([^\"]+)\"\\)$"_s);
    const auto match = named.match(trimmed);
    return match.hasMatch() ? u"order is %1"_s.arg(scheduleTitle(match.captured(1).toStdString())) : trimmed;
}

QString runWords(const lessons::RunBlock& run)
{
    if (!run.title.empty()) return qs(run.title);
    QStringList words = qs(run.id).split(u'-', Qt::SkipEmptyParts);
    for (QString& word : words)
        if (word.size() == 1 || &word == &words.front()) word[0] = word[0].toUpper();
    return words.join(u' ');
}

QString recordedWords(const lessons::RunBlock& run)
{
    const auto valueOf = [&run](std::string_view option) { return qs(run.valueOf(option)); };
    QStringList names;
    for (const QString& name : valueOf("--schedule").split(u',', Qt::SkipEmptyParts))
        names << (name == "mine"_L1 ? u"your order"_s : scheduleTitle(name.toStdString()));
    QString words = names.join(u", "_s);
    if (const QString ranks = valueOf("--ranks"); !ranks.isEmpty())
        words += ranks == "1"_L1 ? u", 1 rank"_s : u", %1 ranks"_s.arg(ranks);
    if (const QString batches = valueOf("--microbatches"); !batches.isEmpty())
        words += batches == "1"_L1 ? u", 1 microbatch"_s : u", %1 microbatches"_s.arg(batches);
    if (const QString comm = valueOf("--comm"); !comm.isEmpty()) words += u", latency %1"_s.arg(comm);
    if (const QString limit = valueOf("--memory-limit"); !limit.isEmpty()) words += u", memory cap %1"_s.arg(limit);
    if (const QString stages = valueOf("--recompute"); !stages.isEmpty())
        words += stages == "all"_L1    ? u", every stage recomputes"_s
                 : stages == "none"_L1 ? u", no stage recomputes"_s
                                       : u", stages %1 recompute"_s.arg(stages);
    if (const QString rule = valueOf("--lower"); !rule.isEmpty()) words += u", messages %1"_s.arg(rule);
    return words;
}

std::vector<LessonPage> pagesOf(const lessons::Lesson& lesson)
{
    std::vector<LessonPage> pages;
    int step = -1;
    std::vector<const lessons::Block*> opening; // before the first heading: on the first page
    for (const lessons::Section& section : lesson.sections) {
        if (section.part == lessons::Part::Question) {
            for (const lessons::Block& block : section.blocks) {
                if (std::holds_alternative<lessons::Step>(block)) ++step;
                if (std::holds_alternative<lessons::Prose>(block)) opening.push_back(&block);
            }
            continue;
        }
        const std::size_t first = pages.size();
        auto begin = [&] {
            LessonPage page;
            page.part = section.part;
            page.step = step;
            page.blocks = std::exchange(opening, {});
            pages.push_back(std::move(page));
        };
        begin();
        bool asked = false;      // the page has something to answer: another step starts a new page
        const auto carry = [&] { // the prose after the last goal goes with what follows
            std::vector<const lessons::Block*> moved;
            auto& before = pages[pages.size() - 2].blocks;
            while (!before.empty() && std::holds_alternative<lessons::Prose>(*before.back())) {
                moved.insert(moved.begin(), before.back());
                before.pop_back();
            }
            pages.back().carried = static_cast<int>(moved.size());
            pages.back().blocks = std::move(moved);
        };
        for (const lessons::Block& block : section.blocks) {
            if (std::holds_alternative<lessons::Hints>(block) || std::holds_alternative<lessons::Solution>(block) ||
                std::holds_alternative<lessons::Wrong>(block))
                continue;
            if (std::holds_alternative<lessons::Step>(block)) {
                ++step;
                if (asked) {
                    begin();
                    carry();
                }
                pages.back().step = step;
                asked = false;
                continue;
            }
            asked = asked || !std::holds_alternative<lessons::Prose>(block);
            pages.back().blocks.push_back(&block);
        }
        const std::size_t count = pages.size() - first;
        for (std::size_t i = first; i < pages.size(); ++i) {
            pages[i].title = section.title.empty() ? qs(std::string(lessons::toText(section.part))) : qs(section.title);
            if (count > 1) pages[i].title = u"%1, %2 of %3"_s.arg(pages[i].title).arg(i - first + 1).arg(count);
        }
    }
    // Guesses are answered on the first page with a goal.
    const auto first = std::find_if(pages.begin(), pages.end(), [](const LessonPage& page) {
        return page.part == lessons::Part::Do &&
               std::any_of(page.blocks.begin(), page.blocks.end(),
                           [](const lessons::Block* block) { return !std::holds_alternative<lessons::Prose>(*block); });
    });
    if (first != pages.end())
        for (const LessonPage& page : pages)
            for (const lessons::Block* block : page.blocks)
                if (const auto* predict = std::get_if<lessons::Predict>(block);
                    predict != nullptr && page.part == lessons::Part::Guess)
                    first->guesses.push_back(predict);
    const bool any = !lesson.all<lessons::Step>().empty();
    for (LessonPage& page : pages)
        if (page.step < 0 && any) page.step = 0;
    return pages;
}

QString replyOf(const BlockReading& reading, int misses)
{
    if (reading.direction.isEmpty()) return reading.verdict;
    if (reading.general && misses < 2) return reading.direction;
    return reading.direction + u' ' + reading.verdict;
}

PageReading readPage(const lessons::Lesson& lesson, const LessonPage& page, const lessons::Canvas& canvas,
                     const lessons::Learner& learner, bool withRail)
{
    PageReading out;
    static const lessons::Step none;
    const lessons::Step* step = lesson.step(page.step);
    const lessons::StepState state(lesson, step != nullptr ? *step : none, canvas, learner);
    // Questions are about the canvas that the step starts with, whatever has been done to it since.
    const auto startState = [&](int index) -> std::optional<lessons::StepState> {
        const lessons::Step* of = lesson.step(index);
        if (of == nullptr) return std::nullopt;
        auto start = lessons::startOf(lesson, *of);
        if (!start) return std::nullopt;
        return lessons::StepState(lesson, *of, std::move(*start), learner);
    };
    const std::optional<lessons::StepState> startsWith = startState(page.step),
                                            before = page.carried > 0 ? startState(page.step - 1) : std::nullopt;
    const lessons::StepState& asked = startsWith ? *startsWith : state;
    static const auto stepTime = lessons::Expression::parse("makespan");
    const auto time = state.evaluate(*stepTime);
    out.makespan = time && time->number() != nullptr ? *time->number() : std::nan("");
    if (page.part == lessons::Part::Do && step != nullptr) {
        for (const std::string& figure : step->watch)
            if (const auto parsed = lessons::Expression::parse(figure))
                if (const auto value = state.evaluate(*parsed))
                    out.watched.emplace_back(figureWords(figure), qs(lessons::toText(*value)));
        if (const auto axis =
                step->axis.empty() ? Result<lessons::Value>(lessons::Value()) : asked.evaluate(step->axis);
            axis && axis->number() != nullptr)
            out.axis = *axis->number();
        if (!step->targets.empty()) {
            if (const auto targets = state.evaluate(step->targets); targets && targets->list() != nullptr)
                for (const lessons::Value& one : *targets->list())
                    if (one.number() != nullptr) out.targets.push_back(*one.number());
        } else if (canvas.settings.cap()) {
            out.targets.assign(static_cast<std::size_t>(canvas.settings.ranks), *canvas.settings.cap());
        }
    }
    auto miss = [&](const QString& why) {
        if (out.missing.isEmpty()) out.missing = why;
        out.passed = false;
    };
    auto hintsOf = [&](const std::string& id) {
        for (const lessons::Hints::Hint* hint : lesson.hintsOf(id)) out.hints[id].push_back(qs(state.say(hint->text)));
    };
    auto lacks = [](const std::vector<std::string>& needs) {
        QStringList words;
        for (const std::string& one : lessons::missingNeeds(needs)) words << qs(one);
        return words.join(u", "_s);
    };
    std::size_t number = 0;
    bool ran = false;
    for (const lessons::Block* block : page.blocks) {
        BlockReading reading;
        const int at = static_cast<int>(number);
        const bool carried = number++ < static_cast<std::size_t>(page.carried);
        const bool sheet =
            page.part == lessons::Part::Prove && ran &&
            (std::holds_alternative<lessons::Quiz>(*block) || std::holds_alternative<lessons::Prose>(*block));
        // one question at a time, and those about runs after them
        reading.waits = (page.part == lessons::Part::Do || sheet) && !out.passed;
        ran = ran || std::holds_alternative<lessons::RunBlock>(*block);
        // What needs a missing feature is named and not waited for.
        QString lacking;
        if (const auto* check = std::get_if<lessons::Check>(block)) lacking = lacks(check->needs);
        if (const auto* quiz = std::get_if<lessons::Quiz>(block)) lacking = lacks(quiz->needs);
        if (const auto* run = std::get_if<lessons::RunBlock>(block)) lacking = lacks(run->needs);
        if (!lacking.isEmpty()) {
            reading.text = u"Not available here: %1."_s.arg(lacking);
            out.blocks.push_back(std::move(reading));
            continue;
        }
        if (const auto* prose = std::get_if<lessons::Prose>(block)) {
            reading.text = qs((carried && before ? *before : state).say(prose->text));
        } else if (const auto* predict = std::get_if<lessons::Predict>(block)) {
            reading.text = qs(state.say(predict->ask));
            const auto said = learner.said.find(predict->id);
            if (said == learner.said.end() || said->second.empty())
                miss(u"make a guess first"_s);
            else
                reading.state = lessons::Verdict::Pass;
        } else if (const auto* check = std::get_if<lessons::Check>(block)) {
            const bool waits = reading.waits;
            reading = readingOf(state.grade(*check));
            reading.waits = waits;
            reading.text = qs(state.say(check->say, check));
            reading.formula = qs(state.say(check->formula, check));
            if (!reading.formula.isEmpty())
                if (const QString letters = lettersOf(reading.formula, state); !letters.isEmpty())
                    reading.formula += u"\n\n"_s + letters;
            hintsOf(check->id);
            if (check->graded && reading.state != lessons::Verdict::Pass) miss(shortOf(reading));
            if (out.open < 0 && !waits && reading.state != lessons::Verdict::Pass && check->graded) {
                out.open = at;
                if (step != nullptr) out.tools = check->with ? *check->with : step->allow;
            }
            if (withRail && !out.rail && onStepTime(*check)) {
                out.rail = state.rail(*check);
                out.railCheck = qs(check->id);
            }
        } else if (const auto* quiz = std::get_if<lessons::Quiz>(block)) {
            const bool waits = reading.waits;
            const lessons::Grade grade = state.grade(*quiz);
            reading = readingOf(grade);
            reading.waits = waits;
            reading.text = qs(asked.say(quiz->ask));
            if (grade.verdict == lessons::Verdict::Fail && !grade.meters.empty()) {
                reading.direction = directionOf(*quiz, grade.meters.front());
                reading.general =
                    grade.remark >= 0 && quiz->fails[static_cast<std::size_t>(grade.remark)].condition.empty();
            }
            if (out.open < 0 && !waits && reading.state != lessons::Verdict::Pass) {
                out.open = at;
                out.tools = quiz->with;
            }
            hintsOf(quiz->id);
            if (reading.state != lessons::Verdict::Pass)
                miss(reading.state == lessons::Verdict::Open ? u"answer the question first"_s
                                                             : u"the answer is not right yet"_s);
        } else if (const auto* run = std::get_if<lessons::RunBlock>(block)) {
            reading.text = run->look.empty() ? QString() : u"After the run, look at %1."_s.arg(qs(run->look));
            reading.state = lessons::Verdict::Pass;
            for (const lessons::Grade& grade : state.grade(*run)) {
                reading.goals.push_back(readingOf(grade));
                if (grade.verdict == lessons::Verdict::Open && reading.state == lessons::Verdict::Pass)
                    reading.state = lessons::Verdict::Open;
                if (grade.verdict == lessons::Verdict::Fail) reading.state = lessons::Verdict::Fail;
            }
            // A finished run is enough to continue: why a goal fails is the lesson.
            const bool came = std::any_of(learner.runs.begin(), learner.runs.end(),
                                          [&](const auto& one) { return one.first.rfind(run->id + "/", 0) == 0; }) ||
                              learner.failures.count(run->id) > 0;
            if (!came) {
                reading.state = lessons::Verdict::Open;
                miss(u"run it first"_s);
            }
            const std::size_t count = reading.goals.size();
            for (std::size_t i = 0; i < count; ++i)
                reading.goals[i].text = i < run->goals.size()
                                            ? (run->goals[i].second.empty() ? qs(run->goals[i].first.text())
                                                                            : qs(state.say(run->goals[i].second)))
                                            : u"model against measured"_s;
        } else if (const auto* figure = std::get_if<lessons::Figure>(block)) {
            // the lesson's, or the learner's
            const lessons::StepState& of = figure->of.find("mine") == std::string::npos ? asked : state;
            reading.text = qs(of.say(figure->caption));
            if (auto drawn = lessons::figureOf(of, lesson, *figure, learner); drawn && !drawn->empty())
                reading.figure = std::make_shared<const lessons::FigureData>(std::move(*drawn));
            else if (!drawn)
                reading.verdict = qs(drawn.error().message);
        }
        out.blocks.push_back(std::move(reading));
    }
    if (out.open < 0 && page.part == lessons::Part::Do && step != nullptr) out.tools = step->allow; // to play with
    if (!out.passed) {
        const std::optional<lessons::StepState> first = startState(0);
        const auto open = [&](const lessons::Predict& predict, const lessons::StepState& with) {
            if (const auto truth = with.evaluate(predict.truth); truth && truth->number() != nullptr)
                out.openAnswers.push_back(*truth->number());
        };
        for (const lessons::Predict* predict : page.guesses) open(*predict, first ? *first : state);
        if (page.part == lessons::Part::Do)
            for (const lessons::Block* block : page.blocks)
                if (const auto* predict = std::get_if<lessons::Predict>(block)) open(*predict, asked);
        for (const double answer : out.openAnswers)
            for (BlockReading& reading : out.blocks)
                for (MeterReading& meter : reading.meters)
                    if (meter.needed == qs(lessons::toText(lessons::Value(answer)))) {
                        meter.needed.clear();
                        meter.share = -1;
                    }
        return out;
    }
    const auto answered = [&](const lessons::Predict& predict, const std::optional<lessons::StepState>& with) {
        const auto said = learner.said.find(predict.id);
        if (said != learner.said.end() && !said->second.empty())
            out.guesses.push_back(guessOf(predict, with ? *with : state, said->second));
    };
    if (!page.guesses.empty()) {
        const std::optional<lessons::StepState> first = startState(0);
        for (const lessons::Predict* predict : page.guesses) answered(*predict, first);
    }
    if (page.part == lessons::Part::Do)
        for (const lessons::Block* block : page.blocks)
            if (const auto* predict = std::get_if<lessons::Predict>(block)) answered(*predict, startsWith);
    return out;
}

} // namespace stagewright
