#include "traces/compare/gate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/model/kinds.h"
#include "traces/plot/svg_colours.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

constexpr std::size_t fewestInTurn = 12, fewestBlocks = 20, stepsOfBlock = 8; // of runs that took turns
constexpr std::size_t trimmed = 4;    // one block of so many is left out at either end
constexpr std::size_t fewestRuns = 4; // in all, of those that did not take turns
constexpr double falseAlarmsOfPair = 1e-3;
constexpr double stageOfPromise = 0.05; // what a verdict that can't see it says
constexpr std::size_t mostReasons = 2;  // of a comparison's sentences
constexpr double busyMachine = 0.05;    // of the ops' time

// Probability that |t| is larger, with a whole number of degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4).
double outside(double t, int freedom)
{
    const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const bool odd = freedom % 2 != 0;
    double term = 1, sum = 0;
    for (int k = 0; 2 * k < freedom - (odd ? 1 : 0); ++k) {
        if (k > 0) term *= cosine * cosine * (odd ? 2.0 * k / (2 * k + 1) : (2 * k - 1) / (2.0 * k));
        sum += term;
    }
    return 1 - (odd ? 2 / std::numbers::pi * (angle + sine * cosine * sum) : sine * sum);
}

// The t that |t| exceeds with that probability.
double largestLikely(double probability, int freedom)
{
    double low = 0, high = 1;
    while (outside(high, freedom) > probability && high < 1e9) high *= 2;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (outside(middle, freedom) > probability ? low : high) = middle;
    }
    return high;
}

double middleOf(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 != 0) return *middle;
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Sum of the squares around the mean.
struct Scatter {
    double mean = 0, squares = 0;
};
Scatter scatterOf(const std::vector<double>& values)
{
    Scatter out;
    for (const double value : values) out.mean += value / static_cast<double>(values.size());
    for (const double value : values) out.squares += (value - out.mean) * (value - out.mean);
    return out;
}

// log: of the ratio; error: its standard error.
SeriesChange limitsOf(double log, double error, int freedom, double falseAlarms)
{
    const double reach = largestLikely(falseAlarms, freedom) * error;
    return {std::expm1(log), std::expm1(log - reach), std::expm1(log + reach),
            std::expm1(reach + largestLikely(0.1, freedom) * error)};
}

// The measured steps' values of one figure; a run without noise has one, which is certain.
struct Series {
    std::string title;
    std::vector<double> values;
};
using SeriesByKey = std::map<std::tuple<int, int>, Series>; // stage and kind; kind −1: all of its work; stage −1: step

constexpr std::tuple<int, int> wholeStep{-1, -1};

SeriesByKey seriesOf(const Run& run)
{
    SeriesByKey out;
    const Timeline& timeline = *run.timeline;
    Series& times = out[wholeStep];
    times.title = "Step time";
    if (const Metric* metric = run.metric("step_time_ns"); metric != nullptr && hasNoise(run)) {
        const auto skip = static_cast<std::size_t>(std::max(0, run.info.warmupSteps));
        if (metric->values.size() > skip)
            times.values.assign(metric->values.begin() + static_cast<std::ptrdiff_t>(skip), metric->values.end());
    }
    const std::vector<int> steps = stepsFrom(timeline, std::max(0, run.info.warmupSteps));
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const StepOps ops(timeline, steps[i]);
        if (!hasNoise(run)) times.values.push_back(static_cast<double>(ops.windowEnd() - ops.windowBegin()));
        for (int rank = 0; rank < ops.ranks(); ++rank)
            for (const SpanId id : ops.busy(rank)) {
                const Span& span = timeline.spans()[id];
                if ((span.flags & SpanDiscarded) != 0) continue;
                for (const int kind : {-1, static_cast<int>(span.op.kind)}) {
                    Series& work = out[{span.op.stage, kind}];
                    if (kind < 0 && work.title.empty())
                        work.title = fmt::format("Work of stage {} (rank {})", span.op.stage, rank);
                    work.values.resize(steps.size());
                    work.values[i] += static_cast<double>(span.duration());
                }
            }
    }
    return out;
}

// A change counts from `within` on if at least half of that is certain.
GateFigure::Verdict verdictOf(const GateFigure& figure, double within)
{
    return figure.change > within && *figure.least > within / 2    ? GateFigure::Verdict::Worse
           : figure.change < -within && *figure.most < -within / 2 ? GateFigure::Verdict::Better
                                                                   : GateFigure::Verdict::Same;
}

std::string valueText(const GateFigure& figure, double value, const Units& units)
{
    const auto whole = std::llround(value);
    return figure.size ? formatBytes(whole, units.memory) : formatDuration(whole, units.time);
}

// The recording in which runs took turns; "": the run was recorded alone, or elsewhere.
std::string turnsOf(const Run& run)
{
    for (const auto& [key, value] : run.environment)
        if (key == "in_turn") return value;
    return {};
}

class Judge {
public:
    Judge(std::span<const Run* const> runs, double within, std::size_t judged)
        : m_runs(runs), m_before(runs.size() - judged), m_within(within)
    {
        for (const Run* run : runs) m_series.push_back(seriesOf(*run));
        const auto figures = std::count_if(m_series.back().begin(), m_series.back().end(),
                                           [](const auto& one) { return std::get<1>(one.first) < 0; });
        m_falseAlarms = falseAlarmsOfPair / static_cast<double>(figures);
        m_certain = std::none_of(runs.begin(), runs.end(), [](const Run* run) { return hasNoise(*run); });
        m_inTurn = runs.size() == 2 && !turnsOf(*runs[0]).empty() && turnsOf(*runs[0]) == turnsOf(*runs[1]);
    }

    GateFigure judged(const std::tuple<int, int>& key, std::string name) const
    {
        GateFigure figure{std::move(name), {}};
        const auto own = m_series.back().find(key);
        if (own == m_series.back().end()) return figure;
        figure.title = own->second.title;
        std::vector<double> before, after; // each run's
        for (std::size_t i = 0; i < m_runs.size(); ++i) {
            const auto found = m_series[i].find(key);
            if (found == m_series[i].end() || found->second.values.empty()) return figure;
            (i < m_before ? before : after).push_back(middleOf(found->second.values));
        }
        figure.before = middleOf(before);
        figure.after = middleOf(after);
        if (figure.before <= 0) return figure;
        std::optional<SeriesChange> change;
        if (m_certain) {
            const double exact = figure.after / figure.before - 1;
            change = SeriesChange{exact, exact, exact, 0};
        } else if (m_inTurn) {
            change = changeInTurn(m_series.front().find(key)->second.values, own->second.values, m_falseAlarms);
        } else {
            change = changeOfRuns(before, after, m_falseAlarms);
        }
        if (!change) return figure;
        figure.change = change->change;
        figure.least = change->least;
        figure.most = change->most;
        figure.shows = std::max(m_within, change->shows + m_within / 2);
        figure.verdict = verdictOf(figure, m_within);
        return figure;
    }

    const SeriesByKey& series() const { return m_series.back(); }
    bool inTurn() const { return m_inTurn; }
    bool certain() const { return m_certain; }
    std::size_t steps() const { return m_series.back().at(wholeStep).values.size(); }

private:
    std::span<const Run* const> m_runs;
    std::size_t m_before;
    double m_within;
    double m_falseAlarms = 0;
    bool m_certain = false, m_inTurn = false;
    std::vector<SeriesByKey> m_series;
};

void addPeaks(Gate& gate, std::span<const Comparison> comparisons, std::size_t judged)
{
    for (const MetricDelta& metric : comparisons.back().metrics) {
        if (metric.unit != "bytes" || !metric.key.starts_with("peak_")) continue;
        GateFigure figure{metric.key, metric.title, true, metric.a, metric.b};
        for (const Comparison& one : comparisons.first(comparisons.size() - judged))
            for (const MetricDelta& other : one.metrics)
                if (other.key == metric.key) figure.before = std::max(figure.before, other.b);
        if (figure.before <= 0) continue;
        figure.change = figure.after / figure.before - 1;
        figure.least = figure.most = figure.change;
        figure.verdict = verdictOf(figure, gate.within);
        gate.figures.push_back(std::move(figure));
    }
}

bool isStage(const GateFigure& figure) { return figure.key.starts_with("stage_work_ns."); }
bool isWorse(const GateFigure& figure) { return figure.verdict == GateFigure::Verdict::Worse; }

// Which kinds of a stage's ops take longer, largest change first.
std::string kindsOf(const Judge& judge, int stage)
{
    std::vector<std::pair<double, std::string>> kinds;
    for (const auto& [key, series] : judge.series()) {
        const auto& [at, kind] = key;
        if (at != stage || kind < 0) continue;
        const GateFigure figure = judge.judged(key, {});
        if (isWorse(figure))
            kinds.emplace_back(-figure.change, fmt::format("{} {}", ruleOf(static_cast<OpKind>(kind)).plural,
                                                           formatChange(figure.change)));
    }
    std::sort(kinds.begin(), kinds.end());
    std::string text;
    for (const auto& [change, words] : kinds) text += (text.empty() ? "" : ", ") + words;
    return text;
}

void addCauses(Gate& gate, const Judge& judge, std::span<const Comparison> comparisons)
{
    std::vector<const GateFigure*> slower;
    std::size_t stages = 0;
    for (const GateFigure& figure : gate.figures) {
        if (!isStage(figure)) continue;
        ++stages;
        if (isWorse(figure)) slower.push_back(&figure);
    }
    std::sort(slower.begin(), slower.end(), [](const auto* a, const auto* b) { return a->change > b->change; });
    const bool alike = stages > 1 && slower.size() == stages && *slower.back()->most >= *slower.front()->least &&
                       2 * slower.back()->change >= slower.front()->change;
    if (alike)
        gate.causes.push_back(fmt::format("every stage works longer by about as much ({} to {}): it is the machine, or "
                                          "what all stages share",
                                          formatChange(slower.back()->change), formatChange(slower.front()->change)));
    else
        for (const GateFigure* figure : slower) {
            const std::string kinds = kindsOf(judge, std::stoi(figure->key.substr(figure->key.find('.') + 1)));
            gate.causes.push_back(fmt::format("{}: {}{}", figure->title, formatChange(figure->change),
                                              kinds.empty() ? "" : " (" + kinds + ")"));
        }
    const std::vector<std::string>& why = comparisons.back().why;
    gate.causes.insert(gate.causes.end(), why.begin(),
                       why.begin() + static_cast<std::ptrdiff_t>(std::min(why.size(), mostReasons)));
}

Result<void> comparable(std::span<const Run* const> runs)
{
    const Run& judged = *runs.back();
    for (const Run* run : runs) {
        if (!hasOps(*run->timeline))
            return fail(ErrorCode::Usage,
                        fmt::format("--gate: {} can't be judged: {}", run->info.name, whyNoOps(*run->timeline)));
        if (run->timeline->timeUnit() != judged.timeline->timeUnit() ||
            run->timeline->clock() != judged.timeline->clock())
            return fail(ErrorCode::Usage,
                        fmt::format("--gate: {} was timed by {}, {} by {}", run->info.name, clockText(*run),
                                    judged.info.name, clockText(judged)),
                        "compare runs of the same clock and unit");
    }
    return {};
}

} // namespace

std::string_view toText(GateFigure::Verdict verdict)
{
    switch (verdict) {
    case GateFigure::Verdict::Same: return "same";
    case GateFigure::Verdict::Better: return "better";
    case GateFigure::Verdict::Worse: return "worse";
    case GateFigure::Verdict::Unknown: break;
    }
    return "unknown";
}

std::optional<SeriesChange> changeInTurn(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms)
{
    const std::size_t steps = std::min(before.size(), after.size());
    if (steps < fewestInTurn) return std::nullopt;
    std::vector<double> ratios, blocks;
    for (std::size_t i = 0; i < steps; ++i) {
        if (before[i] <= 0 || after[i] <= 0) return std::nullopt;
        ratios.push_back(std::log(after[i] / before[i]));
    }
    const std::size_t count = std::max(steps / stepsOfBlock, std::min(steps, fewestBlocks));
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = [&](std::size_t block) {
            return ratios.begin() + static_cast<std::ptrdiff_t>(block * steps / count);
        };
        blocks.push_back(middleOf(std::vector<double>(at(i), at(i + 1))));
    }
    // Yuen's: the mean without the blocks at the ends, its error from all with those at the ends drawn in.
    std::sort(blocks.begin(), blocks.end());
    const std::size_t cut = count / trimmed, kept = count - 2 * cut;
    const double mean = scatterOf(std::vector<double>(blocks.begin() + static_cast<std::ptrdiff_t>(cut),
                                                      blocks.end() - static_cast<std::ptrdiff_t>(cut)))
                            .mean;
    for (double& block : blocks) block = std::clamp(block, blocks[cut], blocks[count - 1 - cut]);
    const double variance = scatterOf(blocks).squares / static_cast<double>(count - 1);
    const double error = std::sqrt(variance * static_cast<double>(count)) / static_cast<double>(kept);
    return limitsOf(mean, error, static_cast<int>(kept) - 1, falseAlarms);
}

std::optional<SeriesChange> changeOfRuns(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms)
{
    if (before.empty() || after.empty() || before.size() + after.size() < fewestRuns) return std::nullopt;
    const auto logs = [](const std::vector<double>& values) {
        std::vector<double> out;
        for (const double value : values) out.push_back(std::log(value));
        return out;
    };
    for (const double value : before)
        if (value <= 0) return std::nullopt;
    for (const double value : after)
        if (value <= 0) return std::nullopt;
    const Scatter a = scatterOf(logs(before)), b = scatterOf(logs(after));
    const int freedom = static_cast<int>(before.size() + after.size()) - 2;
    const double variance = (a.squares + b.squares) / freedom;
    return limitsOf(
        b.mean - a.mean,
        std::sqrt(variance * (1.0 / static_cast<double>(before.size()) + 1.0 / static_cast<double>(after.size()))),
        freedom, falseAlarms);
}

bool Gate::worse() const { return std::any_of(figures.begin(), figures.end(), isWorse); }

std::string Gate::sentence() const
{
    std::string text;
    int more = 0;
    for (const GateFigure& figure : figures) {
        if (!isWorse(figure)) continue;
        if (text.empty())
            text = fmt::format("worse: {} {}, at least {}", figure.title, formatChange(figure.change),
                               formatChange(*figure.least));
        else
            ++more;
    }
    if (text.empty())
        return fmt::format("not worse: no figure is certainly more than {} above those before", formatPercent(within));
    return more == 0 ? text : text + ", and " + counted(more, "more figure");
}

namespace {

// What to record, so that a change of 5 % shows.
void addNeeds(Gate& gate, const Judge& judge, std::size_t before, std::size_t judged)
{
    double shows = 0;
    for (const GateFigure& figure : gate.figures)
        if (!figure.size && figure.verdict != GateFigure::Verdict::Unknown) shows = std::max(shows, figure.shows);
    if (judge.certain() || shows <= std::max(stageOfPromise, gate.within)) return;
    std::string need;
    if (judge.inTurn()) {
        const double more = std::max(0.0, shows - gate.within / 2) / (stageOfPromise - gate.within / 2);
        need = gate.within / 2 >= stageOfPromise
                   ? ""
                   : fmt::format("; some {} steps would show {}",
                                 std::lround(static_cast<double>(judge.steps()) * more * more),
                                 formatPercent(stageOfPromise));
    } else {
        need = fmt::format(": {} before and {} to judge differ too much among themselves. Record both in turn "
                           "(record -s BEFORE,NEW), or more of each",
                           counted(static_cast<long long>(before), "run"), judged);
    }
    gate.doubts.push_back(fmt::format("changes of less than {} may not show{}", formatPercent(shows), need));
}

Error tooFew(std::span<const Run* const> runs, const Judge& judge)
{
    if (judge.inTurn() || runs.size() >= fewestRuns)
        return {
            ErrorCode::Usage,
            fmt::format("--gate: {} measured steps of each run are needed to tell noise from a change", fewestInTurn),
            "record more steps: record --steps 100"};
    return {
        ErrorCode::Usage,
        fmt::format("--gate: {} and {} were recorded one by one, and how much such runs differ is unknown from {} of "
                    "them",
                    runs.front()->info.name, runs.back()->info.name, runs.size()),
        "record both in turn (record -s BEFORE,NEW), or name several runs: BEFORE… NEW…, with --new N for how many "
        "of them are new"};
}

} // namespace

Result<Gate> gateOf(std::span<const Run* const> runs, std::span<const Comparison> comparisons, double within,
                    std::size_t judged)
{
    STAGEWRIGHT_CHECK(comparable(runs));
    const Judge judge(runs, within, judged);
    Gate gate{within};
    gate.figures.push_back(judge.judged(wholeStep, "step_time_ns"));
    if (gate.figures.front().verdict == GateFigure::Verdict::Unknown) return tl::unexpected(tooFew(runs, judge));
    for (const auto& [key, series] : judge.series())
        if (const auto& [stage, kind] = key; stage >= 0 && kind < 0)
            gate.figures.push_back(judge.judged(key, fmt::format("stage_work_ns.{}", stage)));
    addPeaks(gate, comparisons, judged);
    if (gate.worse()) addCauses(gate, judge, comparisons);
    for (const RunDifference& one : comparisons.back().differences)
        gate.doubts.push_back(fmt::format("{} differs: {} before, {} now", one.title, one.a.empty() ? "unknown" : one.a,
                                          one.b.empty() ? "unknown" : one.b));
    for (const Run* run : runs)
        if (const auto contention = contentionOf(*run); contention.value_or(0) > busyMachine)
            gate.doubts.push_back(fmt::format("the machine was busy with other work: ops of {} were off the processor "
                                              "for {} of their time",
                                              run->info.name, formatPercent(*contention)));
    addNeeds(gate, judge, runs.size() - judged, judged);
    const auto created = [](const Run* one, const Run* other) {
        return one->info.createdUnixMs < other->info.createdUnixMs;
    };
    const auto news = runs.last(judged), olds = runs.first(runs.size() - judged);
    if (!judge.certain() && !judge.inTurn() &&
        created(*std::max_element(olds.begin(), olds.end(), created),
                *std::min_element(news.begin(), news.end(), created)))
        gate.doubts.emplace_back(
            "all runs before were recorded before the new ones: what changed on the machine in between "
            "counts as theirs; record them alternately");
    return gate;
}

document::Section gateSection(const Gate& gate, const Units& units)
{
    using namespace document;
    Section section{"Verdict"};
    section.fact("gate.worse", ColumnKind::Truth, gate.worse());
    section.fact("gate.within", ColumnKind::Share, gate.within);
    section.add(Sentences{"gate.sentence", {gate.sentence()}, false, gate.worse() ? Tone::Bad : Tone::Good});
    Table table{"gate.figures.#",
                {unshown("key"), TableColumn{"title", "Figure"}, unshown("before", ColumnKind::Real),
                 unshown("after", ColumnKind::Real), TableColumn{{}, "before"}, TableColumn{{}, "now"},
                 Column({"change", "change", ColumnKind::Share}, Sign::Relative),
                 Column({"least", "at least", ColumnKind::Share}, Sign::Relative),
                 Column({"most", "at most", ColumnKind::Share}, Sign::Relative),
                 Column({"shows", "shows from", ColumnKind::Share}, Sign::Relative),
                 TableColumn{"verdict", "verdict"}}};
    for (const GateFigure& figure : gate.figures) {
        const bool known = figure.verdict != GateFigure::Verdict::Unknown;
        const auto value = [&](double of) { return known ? TableCell(of) : TableCell(); };
        const auto words = [&](double of) { return known ? TableCell(valueText(figure, of, units)) : TableCell(); };
        table.add({figure.key, figure.title, value(figure.before), value(figure.after), words(figure.before),
                   words(figure.after), value(figure.change), cellOf(figure.least), cellOf(figure.most),
                   value(figure.shows), std::string(toText(figure.verdict))},
                  isWorse(figure)                                 ? Tone::Bad
                  : figure.verdict == GateFigure::Verdict::Better ? Tone::Good
                                                                  : Tone::Plain);
    }
    section.add(std::move(table));
    section.add(Sentences{"gate.causes", gate.causes, true});
    section.add(Sentences{"gate.doubts", gate.doubts, true, Tone::Faint});
    return section;
}

std::string gateJunit(const Gate& gate, const Run& judged)
{
    const auto worse = std::count_if(gate.figures.begin(), gate.figures.end(), isWorse);
    const auto unknown = std::count_if(gate.figures.begin(), gate.figures.end(), [](const GateFigure& figure) {
        return figure.verdict == GateFigure::Verdict::Unknown;
    });
    std::string out = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                                  "<testsuite name=\"stagewright compare --gate\" tests=\"{}\" failures=\"{}\" "
                                  "errors=\"0\" skipped=\"{}\">\n",
                                  gate.figures.size(), worse, unknown);
    std::string causes;
    for (const std::string& cause : gate.causes) causes += cause + "\n";
    for (const GateFigure& figure : gate.figures) {
        out +=
            fmt::format("  <testcase classname=\"{}\" name=\"{}\">", escaped(judged.info.name), escaped(figure.title));
        if (figure.verdict == GateFigure::Verdict::Unknown) out += "<skipped message=\"not in each run\"/>";
        if (isWorse(figure))
            out += fmt::format("\n    <failure message=\"{}, at least {}\">{}</failure>\n  ",
                               escaped(formatChange(figure.change)), escaped(formatChange(*figure.least)),
                               escaped(causes));
        out += "</testcase>\n";
    }
    return out + "</testsuite>\n";
}

} // namespace stagewright
