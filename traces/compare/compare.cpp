#include "traces/compare/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/memory.h"
#include "traces/compare/alignment.h"
#include "traces/compare/why.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

class Metrics {
public:
    explicit Metrics(std::vector<MetricDelta>& out) : m_out(out) {}

    void add(std::string key, std::string title, std::string unit, double a, double b)
    {
        m_out.push_back({std::move(key), std::move(title), std::move(unit), a, b});
    }
    void time(std::string key, std::string title, Nanos a, Nanos b)
    {
        add(std::move(key), std::move(title), "ns", static_cast<double>(a), static_cast<double>(b));
    }

private:
    std::vector<MetricDelta>& m_out;
};

Nanos sumOf(const BubbleReport& report, Nanos RankBubbles::*member)
{
    Nanos sum = 0;
    for (const RankBubbles& rank : report.ranks) sum += rank.*member;
    return sum;
}

// The figures of both reports, under their titles.
class BothFigures {
public:
    explicit BothFigures(Comparison& comparison)
        : m_comparison(comparison), m_a(comparison.reportA.figures()), m_b(comparison.reportB.figures())
    {
    }

    // figure: a key as document::Figure::key.
    std::string title(std::string_view figure) const { return document::findFigure(m_a, figure)->title; }
    bool known(std::string_view figure, std::string key); // in both runs; notes it under the key if one lacks it

private:
    Comparison& m_comparison;
    std::vector<document::Figure> m_a, m_b;
};

bool BothFigures::known(std::string_view figure, std::string key)
{
    const std::string &whyA = document::findFigure(m_a, figure)->unknown,
                      &whyB = document::findFigure(m_b, figure)->unknown;
    if (whyA.empty() && whyB.empty()) return true;
    const std::string why = whyA == whyB   ? "both runs: " + whyA
                            : whyA.empty() ? "run B: " + whyB
                            : whyB.empty() ? "run A: " + whyA
                                           : fmt::format("run A: {}; run B: {}", whyA, whyB);
    m_comparison.unknownMetrics.push_back({std::move(key), title(figure), why});
    return false;
}

void addPeaks(Metrics& metrics, Comparison& comparison, BothFigures& figures)
{
    if (!figures.known("peak_activation", "peak_activation_bytes")) return;
    const std::string title = figures.title("peak_activation");
    const auto peaksA = comparison.reportA.peaks();
    const auto peaksB = comparison.reportB.peaks();
    metrics.add("peak_activation_bytes", title, "bytes", static_cast<double>(comparison.reportA.largestPeak()),
                static_cast<double>(comparison.reportB.largestPeak()));
    for (std::size_t rank = 0; rank < std::min(peaksA.size(), peaksB.size()); ++rank)
        metrics.add(fmt::format("peak_activation_bytes.rank{}", rank), fmt::format("{}, rank {}", title, rank), "bytes",
                    static_cast<double>(peaksA[rank]), static_cast<double>(peaksB[rank]));
}

void fillTimes(Metrics& metrics, const Run& a, const Run& b, Comparison& comparison, BothFigures& figures)
{
    const BubbleReport& reportA = comparison.reportA.bubbles;
    const BubbleReport& reportB = comparison.reportB.bubbles;
    metrics.time("busy_ns", figures.title("busy"), reportA.busy, reportB.busy);
    metrics.time("apart_ns", "Optimizer and collectives", sumOf(reportA, &RankBubbles::apart),
                 sumOf(reportB, &RankBubbles::apart));
    if ((!reportA.partial && !reportB.partial) || figures.known("idle", "idle_ns"))
        metrics.time("idle_ns", figures.title("idle"), reportA.idle, reportB.idle);
    for (std::size_t i = 0; i < idleCauseCount; ++i) {
        if (reportA.byCause[i] == 0 && reportB.byCause[i] == 0) continue;
        const auto cause = static_cast<IdleCause>(i);
        const std::string figure = fmt::format("idle_by_cause.{}", toText(cause)),
                          key = fmt::format("idle_ns.{}", toText(cause));
        if (!figures.known(figure, key)) continue;
        if (cause == IdleCause::Launch && reportA.noArrivals.empty() != reportB.noArrivals.empty()) {
            comparison.unknownMetrics.push_back(
                {key, figures.title(figure),
                 fmt::format("run {}: the time of messages is in it", reportA.noArrivals.empty() ? "B" : "A")});
            continue;
        }
        metrics.time(key, figures.title(figure), reportA.byCause[i], reportB.byCause[i]);
    }
    if ((a.timeline->hasCpuTime() || b.timeline->hasCpuTime()) &&
        figures.known("busy_by_cause.contention", "contention_ns"))
        metrics.time("contention_ns", figures.title("busy_by_cause.contention"),
                     sumOf(reportA, &RankBubbles::contention), sumOf(reportB, &RankBubbles::contention));
    if (!figures.known("overlap.comm_time", "comm_ns")) return;
    const OverlapReport& overlapA = comparison.reportA.overlap;
    const OverlapReport& overlapB = comparison.reportB.overlap;
    metrics.time("comm_ns", figures.title("overlap.comm_time"), overlapA.commTime, overlapB.commTime);
    metrics.time("exposed_comm_ns", figures.title("overlap.exposed_time"), overlapA.exposedTime, overlapB.exposedTime);
}

// Times become shares of ranks × makespan: those of a unit-cost run and of a measured one can't be subtracted.
void toShares(std::vector<MetricDelta>& times, const BubbleReport& a, const BubbleReport& b)
{
    const auto whole = [](const BubbleReport& report) {
        return static_cast<double>(report.makespan()) * std::max<double>(1, static_cast<double>(report.ranks.size()));
    };
    const auto share = [](double value, double of) { return of > 0 ? value / of : 0.0; };
    for (MetricDelta& metric : times) {
        if (const std::size_t at = metric.key.find("_ns"); at != std::string::npos) metric.key.replace(at, 3, "_share");
        metric.unit = "fraction";
        metric.a = share(metric.a, whole(a));
        metric.b = share(metric.b, whole(b));
    }
}

void fillMetrics(Comparison& comparison, const Run& a, const Run& b)
{
    Metrics metrics(comparison.metrics);
    BothFigures figures(comparison);
    const BubbleReport& reportA = comparison.reportA.bubbles;
    const BubbleReport& reportB = comparison.reportB.bubbles;
    if (comparison.sameUnits) {
        const bool outside = reportA.outside() > 0 || reportB.outside() > 0;
        if (outside) metrics.time("whole_step_ns", figures.title("whole_step"), reportA.stepTime(), reportB.stepTime());
        metrics.time("makespan_ns", outside ? "Its ops alone" : figures.title("makespan"), reportA.makespan(),
                     reportB.makespan());
        metrics.time("span_ns", figures.title("span"), reportA.span, reportB.span);
    }
    const bool partial = reportA.partial || reportB.partial;
    if (!partial || figures.known("bubble_fraction", "bubble_fraction"))
        metrics.add("bubble_fraction", figures.title("bubble_fraction"), "fraction", reportA.bubbleFraction,
                    reportB.bubbleFraction);
    if (!partial || figures.known("bubble_rate_span", "bubble_rate_span"))
        metrics.add("bubble_rate_span", figures.title("bubble_rate_span"), "fraction", reportA.bubbleRateSpan,
                    reportB.bubbleRateSpan);
    std::vector<MetricDelta> times;
    Metrics timed(times);
    fillTimes(timed, a, b, comparison, figures);
    if (!comparison.sameUnits) toShares(times, reportA, reportB);
    comparison.metrics.insert(comparison.metrics.end(), times.begin(), times.end());
    if (a.timeline->memoryUnit() == b.timeline->memoryUnit()) addPeaks(metrics, comparison, figures);
    const Metric* lossA = a.metric("loss");
    const Metric* lossB = b.metric("loss");
    if (lossA != nullptr && lossB != nullptr && !lossA->values.empty() && !lossB->values.empty())
        metrics.add("loss", "Loss after the last step", lossA->unit, lossA->values.back(), lossB->values.back());
    const auto deviationOf = [](const Run& run) {
        const Metric* deviation = run.metric("deviation");
        return deviation == nullptr || deviation->values.empty() ? 0.0 : deviation->values.back();
    };
    if (deviationOf(a) != 0 || deviationOf(b) != 0) // of synchronous training there is none
        metrics.add("deviation", "Weights from synchronous", "", deviationOf(a), deviationOf(b));
}

ChangeSplit splitOf(const BubbleReport& a, const BubbleReport& b)
{
    ChangeSplit change;
    change.stepDelta = b.stepTime() - a.stepTime();
    change.makespanDelta = b.makespan() - a.makespan();
    change.busyDelta = b.busy - a.busy;
    change.apartDelta = sumOf(b, &RankBubbles::apart) - sumOf(a, &RankBubbles::apart);
    change.unexplained =
        static_cast<Nanos>(a.ranks.size()) * change.makespanDelta - change.busyDelta - change.apartDelta;
    for (std::size_t i = 0; i < idleCauseCount; ++i) {
        change.idleDelta[i] = b.byCause[i] - a.byCause[i];
        change.unexplained -= change.idleDelta[i];
    }
    return change;
}

// Where one of the runs says nothing of messages, their time is in its launches: so it is in the other's.
template <typename Times, typename Part>
void joinInto(Times& times, Part into, std::initializer_list<Part> parts)
{
    for (const Part part : parts) {
        times[static_cast<std::size_t>(into)] += times[static_cast<std::size_t>(part)];
        times[static_cast<std::size_t>(part)] = 0;
    }
}

void chooseStepTimes(Comparison& comparison, const Run& a, const Run& b)
{
    comparison.stepTimeA = comparison.reportA.bubbles.stepTime();
    comparison.stepTimeB = comparison.reportB.bubbles.stepTime();
    const auto timesA = profilerTimesOf(a), timesB = profilerTimesOf(b);
    if (timesA.has_value() == timesB.has_value() || !hasNoise(a) || !hasNoise(b)) return;
    comparison.withoutProfilerA = timesA.has_value();
    comparison.withoutProfilerB = timesB.has_value();
    if (timesA) comparison.stepTimeA = timesA->without;
    if (timesB) comparison.stepTimeB = timesB->without;
}

void judgeNoise(Comparison& comparison, const Run& a, const Run& b, const std::stop_token& stop)
{
    const NoiseVerdict verdict =
        verdictOn(comparison.stepTimeB - comparison.stepTimeA, stepTimesOf(a, comparison.reportA.bubbles.stepTime()),
                  stepTimesOf(b, comparison.reportB.bubbles.stepTime()));
    if (hasNoise(a) || hasNoise(b)) comparison.spread = verdict.spread;
    comparison.tooFewSteps = !verdict.spread;
    comparison.withinSpread = verdict.spread && !verdict.shows;
    comparison.historyA = OpHistory::of(a, stop);
    comparison.historyB = OpHistory::of(b, stop);
    const auto sample = [](const Run& run, const std::shared_ptr<const OpHistory>& history, SpanId id, int rank,
                           bool start) {
        if (!hasNoise(run)) return certain(0);
        if (!history) return StepSample();
        const Op& op = run.timeline->spans()[id].op;
        return start ? history->start(op, rank) : history->duration(op, rank);
    };
    for (OpDelta& op : comparison.ops) {
        if (stop.stop_requested()) return;
        if (!op.inBoth()) continue;
        op.start = verdictOn(op.startDelta, sample(a, comparison.historyA, op.a, op.rank, true),
                             sample(b, comparison.historyB, op.b, op.rank, true));
        op.duration = verdictOn(op.durationDelta, sample(a, comparison.historyA, op.a, op.rank, false),
                                sample(b, comparison.historyB, op.b, op.rank, false));
    }
}

std::vector<RunDifference> differencesOf(const Run& a, const Run& b)
{
    std::vector<RunDifference> differences;
    const std::vector<RunFact> factsA = factsOf(a);
    const std::vector<RunFact> factsB = factsOf(b);
    for (std::size_t i = 0; i < factsA.size(); ++i)
        if (factsA[i].value != factsB[i].value)
            differences.push_back({factsA[i].key, factsA[i].title, factsA[i].value, factsB[i].value});
    for (RunDifference& one : differences)
        if (one.key == "samples") one.title += " (the data differ)";
    // a fact missing in one run does not count as a difference, except for the model and the batch
    std::erase_if(differences, [](const RunDifference& one) {
        // no limit there either
        if (one.key == "channels" && (one.a.empty() || one.b.empty()) && (one.a == "shared" || one.b == "shared"))
            return true;
        return (one.a.empty() || one.b.empty()) && one.key != "model" && one.key != "microbatch_size" &&
               one.key != "perturb" && one.key != "recomputed_layers" && one.key != "sends" && one.key != "channels";
    });
    return differences;
}

Result<int> stepOf(const Run& run, int wanted, const char* which)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", which));
    const int step = wanted < 0 ? run.representativeStep() : wanted;
    if (step >= std::max(1, run.timeline->steps()))
        return fail(ErrorCode::Usage,
                    fmt::format("run {}: no step {}, it has {}", which, stepNumber(step), run.timeline->steps()),
                    "choose a step of the run");
    return step;
}

std::string whyUnknown(const Comparison& comparison)
{
    if (!comparison.reportA.noOps.empty()) return "run A: " + comparison.reportA.noOps;
    return comparison.reportB.noOps.empty() ? std::string() : "run B: " + comparison.reportB.noOps;
}

} // namespace

Result<Comparison> compareRuns(const Run& a, const Run& b, int stepA, int stepB, const Progress& progress)
{
    const auto goesOn = [&progress](int part) { // before each
        constexpr int parts = 5;
        progress.tell("comparing", part, parts);
        return !progress.cancelled();
    };
    const auto cancelled = [] { return fail(ErrorCode::Cancelled, "comparing was cancelled"); };
    const std::stop_token& stop = progress.stop;
    Comparison comparison;
    STAGEWRIGHT_TRY(const auto chosenA, stepOf(a, stepA, "A"));
    STAGEWRIGHT_TRY(const auto chosenB, stepOf(b, stepB, "B"));
    comparison.stepA = chosenA;
    comparison.stepB = chosenB;
    const auto report = [&stop](const Run& run, int step) {
        return reportOf(run, {.step = step, .ownCap = false, .stop = stop, .withoutSteps = true});
    };
    auto reportA = report(a, comparison.stepA);
    if (!reportA) return tl::unexpected(std::move(reportA.error()).with("run A"));
    if (!goesOn(1)) return cancelled();
    auto reportB = report(b, comparison.stepB);
    if (!reportB) return tl::unexpected(std::move(reportB.error()).with("run B"));
    comparison.reportA = std::move(*reportA);
    comparison.reportB = std::move(*reportB);
    comparison.sameUnits = a.timeline->timeUnit() == b.timeline->timeUnit();
    if (const std::string why = whyUnknown(comparison); !why.empty()) {
        comparison.unknown = why;
        comparison.noLadder = why;
        comparison.tooFewSteps = true;
        comparison.differences = differencesOf(a, b);
        if (hasKernels(*a.timeline) && hasKernels(*b.timeline))
            comparison.devices = compareDevices(*a.timeline, comparison.stepA, *b.timeline, comparison.stepB, stop);
        if (progress.cancelled()) return cancelled();
        comparison.headline = comparison.devices ? comparison.devices->headline : "the steps can't be compared: " + why;
        return comparison;
    }
    chooseStepTimes(comparison, a, b);
    const bool arrivals =
        comparison.reportA.bubbles.noArrivals.empty() && comparison.reportB.bubbles.noArrivals.empty();
    if (comparison.sameUnits) comparison.change = splitOf(comparison.reportA.bubbles, comparison.reportB.bubbles);
    if (!arrivals)
        joinInto(comparison.change.idleDelta, IdleCause::Launch,
                 {IdleCause::Transfer, IdleCause::PeerWait, IdleCause::HeadOfLine});
    comparison.differences = differencesOf(a, b);
    fillMetrics(comparison, a, b);
    if (!goesOn(2)) return cancelled();
    const Alignment alignment(*a.timeline, comparison.stepA, *b.timeline, comparison.stepB);
    if (progress.cancelled()) return cancelled();
    comparison.ledgerA = ledgerOf(*a.timeline, alignment.opsA(), a.info.warmupSteps);
    comparison.ledgerB = ledgerOf(*b.timeline, alignment.opsB(), b.info.warmupSteps);
    if (!arrivals)
        for (PathLedger* ledger : {&comparison.ledgerA, &comparison.ledgerB})
            joinInto(ledger->byClass, PathClass::Launch, {PathClass::Wire});
    if (!goesOn(3)) return cancelled();
    if (auto ladder =
            ladderOf(a, comparison.reportA.bubbles.stepTime(), b, comparison.reportB.bubbles.stepTime(), stop))
        comparison.ladder = std::move(*ladder);
    else
        comparison.noLadder = ladder.error().message;
    if (!goesOn(4)) return cancelled();
    comparison.ops = alignment.ops();
    if (!comparison.sameUnits)
        for (OpDelta& op : comparison.ops) op.startDelta = op.durationDelta = 0;
    if (comparison.sameUnits) judgeNoise(comparison, a, b, stop);
    if (progress.cancelled()) return cancelled();
    std::stable_sort(comparison.ops.begin(), comparison.ops.end(), [](const OpDelta& x, const OpDelta& y) {
        return std::llabs(x.startDelta) > std::llabs(y.startDelta);
    });
    comparison.headline = headlineOf(comparison, a, b);
    comparison.why = whyOf(comparison, alignment, a, b);
    return comparison;
}

} // namespace stagewright
