#include "traces/lessons/step_scope.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/execute/deadlock.h"
#include "schedules/execute/perturb.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/text/diff.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

tl::unexpected<Error> wrongUse(std::string message, std::string remedy = {})
{
    return fail(ErrorCode::Usage, std::move(message), std::move(remedy));
}

Result<std::string> textOf(std::string_view function, const std::vector<Argument>& arguments, std::size_t i)
{
    if (i < arguments.size() && arguments[i].name.empty())
        if (const std::string* text = arguments[i].value.text()) return *text;
    return wrongUse(fmt::format("{}() needs a name", function), "such as sim(\"1f1b\") or answer(total)");
}

// A setting of sim(…) as a word of settings.h; "" if it is not a setting.
std::string settingWord(const std::string& name, const std::string& value)
{
    static constexpr std::pair<std::string_view, std::string_view> same[] = {
        {"p", "ranks"}, {"m", "microbatches"}, {"v", "chunks"}, {"c", "comm"}};
    for (const auto& [from, to] : same)
        if (name == from) return fmt::format("{}={}", to, value);
    for (const char* kind : {"F", "I", "W", "B", "UNSHARD", "REDUCE_GRAD", "COPY", "FACTOR_A", "FACTOR_G", "INVERT"})
        if (name == kind) return fmt::format("costs={}={}", name, value);
    return isSetting(name) ? fmt::format("{}={}", name, value) : std::string();
}

bool takesList(const std::string& name)
{
    return name == "layers" || name == "slow" || name == "warmup" || name == "lag";
}

std::string plainText(const Value& value) // numbers in full, lists with commas
{
    if (const double* number = value.number()) return fmt::format("{}", *number);
    if (const bool* truth = value.truth()) return *truth ? "yes" : "no";
    if (const List* list = value.list()) {
        std::string text;
        for (const Value& one : *list) text += (text.empty() ? "" : ",") + plainText(one);
        return text;
    }
    return toText(value);
}

// The length of the lists that a call goes over one by one; 0: none. −1: lists of different lengths.
int broadcastLength(const std::vector<Argument>& arguments)
{
    int length = 0;
    for (const Argument& argument : arguments) {
        const List* list = takesList(argument.name) ? nullptr : argument.value.list();
        if (!list) continue;
        const int size = static_cast<int>(list->size());
        if (length != 0 && size != length) return -1;
        length = size;
    }
    return length;
}

constexpr std::size_t mostToSearch = 400; // ops: beyond, no schedule that searches is tried

// Whether `other` runs the stages where `own` does, with microbatches and backwards cut no finer.
bool sameTask(const Schedule& other, const Schedule& own)
{
    const auto any = [](const Schedule& schedule, const auto& is) {
        return std::any_of(schedule.order.begin(), schedule.order.end(),
                           [&](const auto& row) { return std::any_of(row.begin(), row.end(), is); });
    };
    const auto splits = [](const Op& op) { return isWeightGrad(op.kind); };
    const auto cuts = [](const Op& op) { return op.slice >= 0 || op.half != 0; };
    return other.ranks == own.ranks && other.stages == own.stages && other.microbatches == own.microbatches &&
           other.placement == own.placement && (any(own, splits) || !any(other, splits)) &&
           (any(own, cuts) || !any(other, cuts));
}

Value reportValue(std::shared_ptr<const SimulatedReport> report)
{
    return Value(std::shared_ptr<const Report>(std::move(report)));
}

} // namespace

StepState::Inside::Inside(const Lesson& ofLesson, const Step& ofStep, Canvas on, Learner by)
    : lesson(ofLesson), step(ofStep), canvas(std::move(on)), learner(std::move(by)),
      report(SimulatedReport::create(canvas))
{
}

Result<std::shared_ptr<const SimulatedReport>>
StepState::Inside::reportOf(const std::string& key, const std::function<Result<Canvas>()>& make) const
{
    const std::lock_guard lock(mutex);
    const auto found = simulated.find(key);
    if (found != simulated.end()) return found->second;
    auto made = make();
    Result<std::shared_ptr<const SimulatedReport>> out =
        made ? SimulatedReport::create(*made) : tl::unexpected(std::move(made.error()));
    simulated.emplace(key, out);
    return out;
}

Result<Canvas> StepState::Inside::solved(const Check* check) const
{
    const Solution* solution = check ? lesson.solutionOf(check->id) : nullptr;
    if (!solution) return canvas;
    return canvasOf(lesson, *solution);
}

std::optional<StepState::Inside::Best> StepState::Inside::par(const Check* check) const
{
    if (!check) return std::nullopt;
    auto made = reportOf("par " + check->id, [&]() -> Result<Canvas> {
        if (check->par.empty()) return solved(check);
        STAGEWRIGHT_TRY(auto schedule, makeFor(check->par, canvas.settings));
        return Canvas{std::move(schedule), canvas.settings};
    });
    if (!made || !(*made)->makespan()) return std::nullopt;
    return Best{*(*made)->makespan(), check->par.empty() ? (*made)->schedule().name : check->par};
}

Bound StepState::Inside::boundFor(const Check* check) const
{
    auto made = reportOf("bound " + (check ? check->id : std::string()), [&] { return solved(check); });
    if (!made) return {};
    return boundOf((*made)->schedule(), (*made)->costs());
}

std::optional<StepState::Inside::Best> StepState::Inside::bestKnown(const Check* check) const
{
    std::optional<Best> best;
    // As the bound is one of these ops on these ranks, so is the best: a split backward or another placement is another
    // task.
    const auto answer = reportOf("bound " + (check ? check->id : std::string()), [&] { return solved(check); });
    const auto offer = [&](const std::shared_ptr<const SimulatedReport>& one, const std::string& name) {
        const auto makespan = one->makespan();
        if (!makespan || !one->validation().valid()) return;
        if (answer && !sameTask(one->schedule(), (*answer)->schedule())) return;
        if (canvas.settings.cap())
            for (const double peak : one->peaks())
                if (peak > *canvas.settings.cap() + 1e-9) return;
        if (!best || *makespan < best->value - 1e-9) best = Best{*makespan, name};
    };
    for (const ScheduleInfo& info : allSchedules()) {
        if (info.searches && (canvas.schedule.opCount() > mostToSearch || info.fixedChunks > 1)) continue;
        const std::string name(info.name);
        auto made = reportOf("best " + name, [&]() -> Result<Canvas> {
            STAGEWRIGHT_TRY(auto schedule, makeFor(name, canvas.settings));
            if (schedule.weights != WeightRule::Synchronous || schedule.placement.hasCopies())
                return wrongUse(name + " is not comparable: it changes the mathematics or doubles the weights");
            return Canvas{std::move(schedule), canvas.settings};
        });
        if (made) offer(*made, name);
    }
    for (const Check* one : lesson.all<Check>()) { // of this step, and of the check that is meant
        if ((one != check && lesson.step(one->step) != &step) || !lesson.solutionOf(one->id)) continue;
        auto made = reportOf("solved " + one->id, [&] { return solved(one); });
        if (made) offer(*made, "the lesson's solution");
    }
    return best;
}

std::vector<std::string> StepScope::names()
{
    return {"p",          "m",           "v",     "r",       "F",      "I",     "W",          "B",
            "T",          "c",           "cap",   "comm",    "par",    "bound", "best_known", "edits",
            "worst_rank", "largest_gap", "cycle", "victims", "circle", "host"};
}

std::vector<std::string> StepScope::functions()
{
    return {"sim",      "possible", "run",     "fit",    "is",     "before", "count",   "valid",
            "deadlock", "cycle",    "victims", "circle", "answer", "value",  "explain", "secret"};
}

Result<Value> StepScope::name(std::string_view name) const
{
    const Settings& settings = m_in.canvas.settings;
    const auto maybe = [](const std::optional<StepState::Inside::Best>& best) {
        return best ? Value(best->value) : Value();
    };
    if (name == "p") return Value(settings.ranks);
    if (name == "m") return Value(settings.microbatches);
    if (name == "v") {
        const Schedule& schedule = m_in.canvas.schedule;
        return Value(schedule.ranks > 0 ? static_cast<double>(schedule.stages) / schedule.ranks : 1);
    }
    if (name == "r") {
        List ranks;
        for (int rank = 0; rank < settings.ranks; ++rank) ranks.push_back(Value(rank));
        return Value(std::move(ranks));
    }
    const SetupUnits units = settings.units();
    const double backward = units.backward < 0 ? units.inputGrad + units.weightGrad : units.backward;
    if (name == "F") return Value(units.forward);
    if (name == "I") return Value(units.inputGrad);
    if (name == "W") return Value(units.weightGrad);
    if (name == "B") return Value(backward);
    if (name == "T") return Value(units.forward + backward);
    if (name == "c" || name == "comm") return Value(settings.comm);
    if (name == "cap") return settings.cap() ? Value(*settings.cap()) : Value();
    if (name == "par") return maybe(m_in.par(m_check));
    if (name == "bound") return Value(m_in.boundFor(m_check).value);
    if (name == "best_known") return maybe(m_in.bestKnown(m_check));
    if (name == "host") return Value("this computer");
    if (name == "edits" || name == "worst_rank" || name == "largest_gap") return ofOrder(name, {});
    if (!m_in.report) return tl::unexpected(m_in.report.error());
    auto figure = (*m_in.report)->figure(name);
    if (figure) return figure;
    std::string known;
    for (const std::string& one : names()) known += (known.empty() ? "" : ", ") + one;
    return wrongUse(fmt::format("there is no name '{}'", name),
                    "names are " + known + " and the keys of simulate --json");
}

Result<Value> StepScope::call(std::string_view function, const std::vector<Argument>& arguments) const
{
    if (function == "sim" || function == "possible") return simulate(arguments, function == "possible");
    if (function == "run" || function == "fit") {
        auto key = textOf(function, arguments, 0);
        return key ? runOf(*key, function == "fit") : tl::unexpected(std::move(key.error()));
    }
    if (function == "secret") {
        auto id = textOf(function, arguments, 0);
        return id ? secretOf(*id) : tl::unexpected(std::move(id.error()));
    }
    if (function == "answer") {
        auto id = textOf(function, arguments, 0);
        return id ? said(*id) : tl::unexpected(std::move(id.error()));
    }
    if (function == "value") return goalValue(arguments);
    if (function == "explain") return explained(arguments);
    if (function == "is" || function == "before" || function == "count") return ofOrder(function, arguments);
    if (function == "deadlock" || function == "valid" || function == "cycle" || function == "victims" ||
        function == "circle")
        return underChannels(function, arguments);
    std::string known;
    for (const std::string& one : functions()) known += (known.empty() ? "" : ", ") + one;
    return wrongUse(fmt::format("there is no function '{}'", function), "besides arithmetic there are " + known);
}

Result<Value> StepScope::simulate(const Arguments& arguments, bool possibleOnly) const
{
    if (arguments.empty() || !arguments[0].name.empty())
        return wrongUse("sim() needs a schedule", "sim(\"1f1b\", c=0.5)");
    const int length = broadcastLength(arguments);
    if (length < 0) return wrongUse("sim() has lists of different lengths", "lists must have the same length");
    if (length == 0) {
        STAGEWRIGHT_TRY(auto name, textOf("sim", arguments, 0));
        return simulateOne(name, arguments, possibleOnly);
    }
    if (length > 256) return wrongUse(fmt::format("sim() has {} points, at most 256 are simulated", length));
    List out;
    for (int i = 0; i < length; ++i) {
        Arguments one = arguments;
        for (Argument& argument : one)
            if (const List* list = takesList(argument.name) ? nullptr : argument.value.list()) {
                const Value element = (*list)[static_cast<std::size_t>(i)];
                argument.value = element;
            }
        auto value = simulate(one, possibleOnly);
        if (!value) return value;
        out.push_back(std::move(*value));
    }
    return Value(std::move(out));
}

Result<Value> StepScope::simulateOne(const std::string& name, const Arguments& arguments, bool possibleOnly) const
{
    const bool mine = name == "mine";
    std::string words, edits;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string value = plainText(arguments[i].value);
        const std::string& key = arguments[i].name;
        if (key == "T") {
            const double* total = arguments[i].value.number();
            if (!total) return wrongUse("sim(): T must be a number");
            words += fmt::format(" costs=F={0},I={0},W={0}", *total / 3);
        } else if (key == "do" || key == "warmup" || key == "flush" || key == "lag") {
            edits +=
                fmt::format("{}{}", edits.empty() ? "" : ";", key == "do" ? value : fmt::format("{} {}", key, value));
        } else if (const std::string word = settingWord(key, value); !word.empty()) {
            words += " " + word;
        } else {
            return wrongUse(fmt::format("sim() has no '{}'", key),
                            "it takes p, m, v, c, F, I, W, B, T, UNSHARD, REDUCE_GRAD, warmup, flush, lag, do, " +
                                settingList());
        }
    }
    auto made = m_in.reportOf(
        fmt::format("sim {} {} {} {}", name, mine ? "" : changesOf(m_in.step.settings), words, edits),
        [&]() -> Result<Canvas> {
            STAGEWRIGHT_TRY(auto settings, withSettings(mine ? m_in.canvas.settings : m_in.step.settings, words));
            Canvas canvas{{}, std::move(settings)};
            if (mine) {
                canvas.schedule = m_in.canvas.schedule;
            } else {
                STAGEWRIGHT_TRY(canvas.schedule, makeFor(name, canvas.settings));
            }
            if (edits.empty()) return canvas;
            STAGEWRIGHT_TRY(auto commands, parseEdits(edits));
            return applyEdits(commands, std::move(canvas));
        });
    if (possibleOnly) return Value(made.has_value());
    if (!made) return tl::unexpected(std::move(made.error()).with(fmt::format("sim(\"{}\")", name)));
    return reportValue(*made);
}

Result<Value> StepScope::runOf(const std::string& key, bool fitted) const
{
    const auto& runs = m_in.learner.runs;
    auto found = runs.find(key);
    if (found == runs.end() && m_block) found = runs.find(m_block->id + "/" + key);
    if (found == runs.end()) { // a block with one schedule, or a schedule of another block
        const auto alone =
            std::find_if(runs.begin(), runs.end(), [&](const auto& one) { return one.first.starts_with(key + "/"); });
        const auto named =
            std::find_if(runs.begin(), runs.end(), [&](const auto& one) { return one.first.ends_with("/" + key); });
        found = alone != runs.end() ? alone : named;
    }
    if (found == runs.end()) {
        const auto failed = m_in.learner.failures.find(key);
        if (failed == m_in.learner.failures.end() || fitted) return Value();
        const RunFailure& why = failed->second;
        const auto ranks = [](const std::vector<int>& numbers) { return Value(List(numbers.begin(), numbers.end())); };
        return Value(std::shared_ptr<const Report>(std::make_shared<Figures>(
            std::vector<std::pair<std::string, Value>>{{"hung", why.hung},
                                                       {"refused", !why.hung},
                                                       {"complete", false},
                                                       {"message", why.message},
                                                       {"cycle", ranks(why.cycle)},
                                                       {"victims", ranks(why.victims)}})));
    }
    const std::shared_ptr<const Run>& run = found->second;
    if (!fitted) return Value(std::shared_ptr<const Report>(std::make_shared<RecordedReport>(run)));
    auto predicted = SimulatedReport::predicted(*run);
    return predicted ? reportValue(std::move(predicted)) : Value();
}

// What a run block's `--perturb secret=SEED` is, without recording it.
Result<Value> StepScope::secretOf(const std::string& id) const
{
    const auto blocks = m_in.lesson.all<RunBlock>();
    const auto block = std::find_if(blocks.begin(), blocks.end(), [&](const RunBlock* one) { return one->id == id; });
    if (block == blocks.end()) return wrongUse(fmt::format("secret({}): the lesson has no run with that id", id));
    const Step* step = m_in.lesson.step((*block)->step);
    const int ranks =
        wholeOf((*block)->valueOf("--ranks")).value_or(step ? step->settings.ranks : m_in.lesson.settings.ranks);
    const auto asked = parsePerturbation((*block)->valueOf("--perturb"), ranks);
    if (!asked || !asked->secret)
        return wrongUse(fmt::format("secret({}): the run has no secret disturbance", id),
                        "record it with --perturb secret=SEED");
    const Perturbation is = revealed(*asked, ranks);
    const bool link = !is.links.empty(), rank = !is.ranks.empty();
    const Value where = link   ? Value(List{Value(is.links.front().from), Value(is.links.front().to)})
                        : rank ? Value(is.ranks.front().first)
                               : Value(is.launches.front().first);
    return Value(std::shared_ptr<const Report>(std::make_shared<Figures>(
        std::vector<std::pair<std::string, Value>>{{"cause", Value(std::string(link   ? "a slow link"
                                                                               : rank ? "a slow rank"
                                                                                      : "launch gaps"))},
                                                   {"where", where},
                                                   {"text", Value(toText(is))}})));
}

Result<Value> StepScope::said(const std::string& id) const
{
    const auto found = m_in.learner.said.find(id);
    if (found != m_in.learner.said.end()) return saidValue(found->second);
    for (const Predict* predict : m_in.lesson.all<Predict>())
        if (predict->id == id) return Value();
    if (m_in.lesson.quiz(id)) return Value();
    return wrongUse(fmt::format("answer({}): the lesson has no question with that id", id));
}

Result<Value> StepScope::goalValue(const Arguments& arguments) const
{
    const double* number = arguments.size() == 2 ? arguments[1].value.number() : nullptr;
    if (!number)
        return wrongUse("value() takes 'goal' and a number", "value(goal,2): what the goal's second comparison needs");
    if (!m_check) return wrongUse("value(goal, …) is only valid in a check");
    const auto parts = m_check->goal.conjuncts();
    if (!(*number >= 1) || *number > static_cast<double>(parts.size()))
        return wrongUse(fmt::format("value(goal,{}): the goal has {} parts", *number, parts.size()));
    const auto comparison = parts[static_cast<std::size_t>(*number) - 1].comparison();
    if (comparison.sign.empty()) return wrongUse(fmt::format("value(goal,{}): that part is not a comparison", *number));
    return comparison.right.evaluate(*this);
}

Result<Value> StepScope::explained(const Arguments& arguments) const
{
    STAGEWRIGHT_TRY(auto report, own());
    const std::string* quoted = arguments.size() == 1 ? arguments[0].value.text() : nullptr;
    auto index = quoted && *quoted == "largest_gap" ? name(*quoted)
                                                    : Result<Value>(arguments.empty() ? Value() : arguments[0].value);
    if (!index) return index;
    if (!report->validation().valid()) {
        auto valid = report->validation().toResult();
        return Value(valid ? std::string() : valid.error().message);
    }
    const double* at = index->number();
    const auto& gaps = report->bubbles().gaps;
    if (!at || *at < 0 || static_cast<std::size_t>(*at) >= gaps.size()) return Value("no rank waits");
    const auto timeline = report->timeline();
    return Value(GapExplainer(StepContext(*timeline, 0)).explain(gaps[static_cast<std::size_t>(*at)]).sentence);
}

Result<Value> StepScope::ofOrder(std::string_view function, const Arguments& arguments) const
{
    STAGEWRIGHT_TRY(auto report, own());
    const Schedule& schedule = report->schedule();
    if (function == "edits") {
        auto start = startOf(m_in.lesson, m_in.step);
        return start ? Value(static_cast<double>(diffSchedules(start->schedule, m_in.canvas.schedule).distance()))
                     : Value();
    }
    if (function == "worst_rank" || function == "largest_gap") {
        const BubbleReport& bubbles = report->bubbles();
        if (bubbles.ranks.empty()) return Value();
        if (function == "worst_rank")
            return Value(static_cast<double>(
                std::max_element(bubbles.ranks.begin(), bubbles.ranks.end(),
                                 [](const RankBubbles& a, const RankBubbles& b) { return a.idle < b.idle; }) -
                bubbles.ranks.begin()));
        std::size_t best = bubbles.gaps.size();
        for (std::size_t i = 0; i < bubbles.gaps.size(); ++i) { // inside a rank's own span
            const Gap& gap = bubbles.gaps[i];
            if (gap.cause == IdleCause::Warmup || gap.cause == IdleCause::Drain) continue;
            if (best == bubbles.gaps.size() || gap.end - gap.start > bubbles.gaps[best].end - bubbles.gaps[best].start)
                best = i;
        }
        return best < bubbles.gaps.size() ? Value(static_cast<double>(best)) : Value();
    }
    STAGEWRIGHT_TRY(auto first, textOf(function, arguments, 0));
    if (function == "is") {
        const std::string known = recognise(schedule);
        return Value(known == first || known.substr(0, known.find_first_of(": ,")) == first);
    }
    if (function == "count") {
        int count = 0;
        const double* rank = arguments.size() > 1 ? arguments[1].value.number() : nullptr;
        for (std::size_t r = 0; r < schedule.order.size(); ++r)
            for (const Op& op : schedule.order[r])
                if (ruleOf(op.kind).text == first && (!rank || static_cast<double>(r) == *rank)) count += op.count;
        return Value(count);
    }
    STAGEWRIGHT_TRY(auto second, textOf(function, arguments, 1));
    for (const auto& list : schedule.order) {
        const auto at = [&](const std::string& text) {
            return std::find_if(list.begin(), list.end(),
                                [&](const Op& op) { return stagewright::toText(op) == text; });
        };
        const auto a = at(first);
        const auto b = at(second);
        if (a != list.end() && b != list.end()) return Value(a < b);
    }
    return wrongUse(fmt::format("before({},{}): no rank has both", first, second));
}

Result<Value> StepScope::underChannels(std::string_view function, const Arguments& arguments) const
{
    Canvas canvas = m_in.canvas;
    std::string words;
    for (const Argument& argument : arguments) {
        const std::string word = settingWord(argument.name, plainText(argument.value));
        if (word.empty())
            return wrongUse(fmt::format("{}() has no '{}'", function, argument.name), "it takes sends and lower");
        words += " " + word;
    }
    STAGEWRIGHT_TRY(canvas.settings, withSettings(canvas.settings, words));
    STAGEWRIGHT_TRY(auto report, words.empty() ? own() : SimulatedReport::create(canvas));
    return (report)->figure(function == "deadlock" ? "hung" : function);
}

} // namespace stagewright::lessons
