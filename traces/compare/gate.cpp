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

constexpr std::size_t mostBlocks = 10;
constexpr double falseAlarmsOfPair = 1e-4;
constexpr std::size_t mostReasons = 2; // of a comparison's sentences
constexpr double busyMachine = 0.05;   // of the ops' time

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

// Centre of a series, and how far off it may be.
struct Centre {
    double mean = 0;
    double variance = 0; // of the mean
    int freedom = 0;
};

Centre centreOf(const std::vector<double>& series)
{
    const std::size_t count = std::min(series.size(), mostBlocks);
    std::vector<double> blocks;
    for (std::size_t i = 0; i < count; ++i) {
        const auto at = [&](std::size_t block) {
            return series.begin() + static_cast<std::ptrdiff_t>(block * series.size() / count);
        };
        blocks.push_back(lowerMedian(std::vector<double>(at(i), at(i + 1))));
    }
    Centre centre;
    for (const double block : blocks) centre.mean += block / static_cast<double>(count);
    for (const double block : blocks) centre.variance += (block - centre.mean) * (block - centre.mean);
    centre.freedom = static_cast<int>(count) - 1;
    centre.variance /= static_cast<double>(count) * centre.freedom;
    return centre;
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

std::optional<SeriesChange> changeOf(const Run& before, const std::vector<double>& a, const Run& after,
                                     const std::vector<double>& b, double falseAlarms)
{
    const auto steps = [](const Run& run, const std::vector<double>& values) { // a certain value occurs in every step
        return hasNoise(run) || values.empty() ? values : std::vector<double>(fewestSteps, values.front());
    };
    return seriesChange(steps(before, a), steps(after, b), falseAlarms);
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

// The largest value of several runs before counts; how far these are from each other is noise.
class Judge {
public:
    Judge(std::span<const Run* const> runs, double within) : m_runs(runs), m_within(within)
    {
        for (const Run* run : runs) m_series.push_back(seriesOf(*run));
        const auto figures = std::count_if(m_series.back().begin(), m_series.back().end(),
                                           [](const auto& one) { return std::get<1>(one.first) < 0; });
        m_falseAlarms = falseAlarmsOfPair / static_cast<double>(figures);
    }

    GateFigure judged(const std::tuple<int, int>& key, std::string name) const
    {
        GateFigure figure{std::move(name), {}};
        const auto own = m_series.back().find(key);
        if (own == m_series.back().end()) return figure;
        figure.title = own->second.title;
        double smallest = 0, reach = 0;
        for (std::size_t i = 0; i + 1 < m_runs.size(); ++i) {
            const auto other = m_series[i].find(key);
            if (other == m_series[i].end()) continue;
            const auto change =
                changeOf(*m_runs[i], other->second.values, *m_runs.back(), own->second.values, m_falseAlarms);
            if (!change) return {figure.key, figure.title};
            smallest = figure.before == 0 ? change->before : std::min(smallest, change->before);
            reach = std::max(reach, change->most - change->change);
            figure.before = std::max(figure.before, change->before);
            figure.after = change->after;
        }
        if (figure.before <= 0) return figure;
        figure.change = figure.after / figure.before - 1;
        reach += (figure.before - smallest) / figure.before;
        figure.least = figure.change - reach;
        figure.most = figure.change + reach;
        figure.verdict = verdictOf(figure, m_within);
        return figure;
    }

    const SeriesByKey& series() const { return m_series.back(); }

private:
    std::span<const Run* const> m_runs;
    double m_within;
    double m_falseAlarms = 0;
    std::vector<SeriesByKey> m_series;
};

void addPeaks(Gate& gate, std::span<const Comparison> comparisons)
{
    for (const MetricDelta& metric : comparisons.back().metrics) {
        if (metric.unit != "bytes" || !metric.key.starts_with("peak_")) continue;
        GateFigure figure{metric.key, metric.title, true, metric.a, metric.b};
        for (const Comparison& one : comparisons.first(comparisons.size() - 1))
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

std::optional<SeriesChange> seriesChange(const std::vector<double>& before, const std::vector<double>& after,
                                         double falseAlarms)
{
    if (before.size() < fewestSteps || after.size() < fewestSteps) return std::nullopt;
    const Centre a = centreOf(before), b = centreOf(after);
    if (a.mean <= 0) return std::nullopt;
    const double variance = a.variance + b.variance;
    double reach = 0;
    if (variance > 0) {
        const double freedom =
            variance * variance / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
        reach = largestLikely(falseAlarms, std::max(1, static_cast<int>(freedom))) * std::sqrt(variance);
    }
    const double change = b.mean - a.mean;
    return SeriesChange{a.mean, b.mean, change / a.mean, (change - reach) / a.mean, (change + reach) / a.mean};
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

Result<Gate> gateOf(std::span<const Run* const> runs, std::span<const Comparison> comparisons, double within)
{
    STAGEWRIGHT_CHECK(comparable(runs));
    const Judge judge(runs, within);
    Gate gate{within};
    gate.figures.push_back(judge.judged(wholeStep, "step_time_ns"));
    if (gate.figures.front().verdict == GateFigure::Verdict::Unknown)
        return fail(
            ErrorCode::Usage,
            fmt::format("--gate: {} measured steps of each run are needed to tell noise from a change", fewestSteps),
            "record more steps: record --steps 40");
    for (const auto& [key, series] : judge.series())
        if (const auto& [stage, kind] = key; stage >= 0 && kind < 0)
            gate.figures.push_back(judge.judged(key, fmt::format("stage_work_ns.{}", stage)));
    addPeaks(gate, comparisons);
    if (gate.worse()) addCauses(gate, judge, comparisons);
    for (const RunDifference& one : comparisons.back().differences)
        gate.doubts.push_back(fmt::format("{} differs: {} before, {} now", one.title, one.a.empty() ? "unknown" : one.a,
                                          one.b.empty() ? "unknown" : one.b));
    for (const Run* run : runs)
        if (const auto contention = contentionOf(*run); contention.value_or(0) > busyMachine)
            gate.doubts.push_back(fmt::format("the machine was busy with other work: ops of {} were off the processor "
                                              "for {} of their time",
                                              run->info.name, formatPercent(*contention)));
    if (runs.size() == 2 && hasNoise(*runs.back()))
        gate.doubts.emplace_back("with one run before, only the noise within runs counts, not that between them: name "
                                 "up to three");
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
                 Column({"most", "at most", ColumnKind::Share}, Sign::Relative), TableColumn{"verdict", "verdict"}}};
    for (const GateFigure& figure : gate.figures) {
        const bool known = figure.verdict != GateFigure::Verdict::Unknown;
        const auto value = [&](double of) { return known ? TableCell(of) : TableCell(); };
        const auto words = [&](double of) { return known ? TableCell(valueText(figure, of, units)) : TableCell(); };
        table.add({figure.key, figure.title, value(figure.before), value(figure.after), words(figure.before),
                   words(figure.after), value(figure.change), cellOf(figure.least), cellOf(figure.most),
                   std::string(toText(figure.verdict))},
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
        if (figure.verdict == GateFigure::Verdict::Unknown) out += "<skipped message=\"too few measured steps\"/>";
        if (isWorse(figure))
            out += fmt::format("\n    <failure message=\"{}, at least {}\">{}</failure>\n  ",
                               escaped(formatChange(figure.change)), escaped(formatChange(*figure.least)),
                               escaped(causes));
        out += "</testcase>\n";
    }
    return out + "</testsuite>\n";
}

} // namespace stagewright
