// Every cause of idle time, provoked and found again; sums, chains, experiments and slack on simulated steps of all
// schedules.
#include <QtTest/QtTest>

#include <numeric>
#include <random>

#include "sample_runs.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/execute/perturb.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/model/mesh.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/analysis/slack.h"
#include "traces/fit/fit_costs.h"
#include "traces/step/step_graph.h"
#include "traces/step/step_ops.h"
#include "traces/store/run_file.h"
#include "traces/store/schedule_text.h"

using namespace stagewright;

namespace {

constexpr Nanos oneUnit = rankShare;

Nanos of(const BubbleReport& report, IdleCause cause) { return report.byCause[static_cast<std::size_t>(cause)]; }

struct Timed {
    Schedule schedule;
    CostModel costs;
    std::shared_ptr<const Timeline> timeline;
    BubbleReport report;
};

Timed timed(const Schedule& schedule, const CostModel& costs, std::optional<Bytes> cap = {})
{
    Timed out{schedule, costs, simulatedTimeline(schedule, costs).value(), {}};
    out.report = analyseBubbles(*out.timeline, 0, {cap}).value();
    return out;
}

Timed disturbed(const char* name, const char* text, double latency = 0)
{
    const Schedule schedule = samples::schedule(name, 4, 8);
    return timed(schedule, perturbed(schedule, samples::unitCosts(schedule, latency),
                                     parsePerturbation(text, 4).value(), oneUnit));
}

const Gap& largest(const BubbleReport& report, IdleCause cause)
{
    const Gap* found = nullptr;
    for (const Gap& gap : report.gaps)
        if (gap.cause == cause && (!found || gap.end - gap.start > found->end - found->start)) found = &gap;
    if (!found) qFatal("no gap of cause %s", std::string(toText(cause)).c_str());
    return *found;
}

std::string nameOf(const Timeline& timeline, SpanId id) { return timeline.nameOf(timeline.spans()[id]); }

// Sums, tiling, and that the step run again with nothing changed is the step.
void checkStep(const Timeline& timeline, const BubbleReport& report, bool explain)
{
    Nanos idle = 0;
    for (const Nanos part : report.byCause) {
        QVERIFY(part >= 0);
        idle += part;
    }
    QCOMPARE(idle, report.idle);
    for (const RankBubbles& rank : report.ranks) QCOMPARE(rank.busy + rank.apart + rank.idle, report.makespan());
    for (std::size_t i = 0; i < report.gaps.size(); ++i) {
        QVERIFY(report.gaps[i].start < report.gaps[i].end);
        if (i > 0 && report.gaps[i].rank == report.gaps[i - 1].rank)
            QVERIFY(report.gaps[i - 1].end <= report.gaps[i].start);
    }
    const StepOps ops(timeline, report.step);
    const StepGraph graph(timeline, ops);
    const auto replay = graph.run(graph.asItWas());
    QVERIFY(replay.has_value());
    QCOMPARE(replay->makespan, report.makespan());
    for (SlotId id = 0; id < graph.size(); ++id)
        QCOMPARE(replay->start[id], timeline.spans()[graph.slot(id).first].start);
    const StepContext context(timeline, report.step);
    for (const OpSlack& op : context.slack()) QVERIFY2(op.slack >= 0, nameOf(timeline, op.span).c_str());
    for (const CriticalLink& link : criticalPath(StepOps(timeline, report.step)))
        QCOMPARE(graph.slack()[graph.slotOf(link.span)], Nanos{0});
    if (!explain) return;
    const GapExplainer explainer(context);
    for (const Gap& gap : report.gaps) {
        const GapExplanation explanation = explainer.explain(gap);
        QVERIFY(!explanation.sentence.empty());
        QVERIFY2(explanation.experiment || gap.next == noSpan, explanation.sentence.c_str()); // what would remove it
        if (explanation.experiment) QCOMPARE(explanation.experiment->before, report.makespan());
        const bool late =
            gap.cause == IdleCause::Launch || (gap.cause == IdleCause::Warmup && ops.inputs(gap.next).empty());
        QVERIFY2(!explanation.chain.empty() || late, explanation.sentence.c_str());
        for (const GapLink& link : explanation.chain) QVERIFY(link.span != noSpan && !link.why.empty());
    }
}

CostModel randomCosts(const Schedule& schedule, std::mt19937& random)
{
    const auto pick = [&](int most) { return static_cast<Nanos>(random() % static_cast<unsigned>(most)); };
    CostModel costs = CostModel::uniform(schedule);
    for (int stage = 0; stage < schedule.stages; ++stage)
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad,
                                  OpKind::Recompute, OpKind::Optimizer, OpKind::ReduceGrad})
            costs.setDuration(kind, stage, 1 + pick(1000));
    costs.links.all.latency = pick(300);
    if (random() % 2 == 0) {
        costs.links.overrides[{0, 1}] = {pick(900), 0};
        costs.links.overrides[{1, 0}] = {pick(900), 0};
    }
    if (random() % 3 == 0)
        for (int rank = 0; rank < schedule.ranks; ++rank) costs.launch.push_back(pick(50));
    return costs;
}

// What is blamed for a wait by straggler or imbalance, searched again op by op from the awaited producer; `most` ops,
// 0: all.
SpanId worstOnTheWay(const StepGraph& graph, const StepLevels& levels, SpanId producer, bool straggler,
                     std::size_t most)
{
    SpanId worst = producer;
    Nanos largest = 0;
    std::size_t seen = 0;
    for (SlotId at = graph.slotOf(producer); at != noSlot && (most == 0 || seen < most);
         at = graph.releasedBy(at), ++seen) {
        const Nanos excess = straggler ? levels.alike[at] - levels.even[at] : levels.even[at] - levels.mean[at];
        if (graph.slot(at).busy && excess > largest) largest = excess, worst = graph.slot(at).first;
    }
    return worst;
}

struct BlameSeen {
    int gaps = 0;    // compared
    int further = 0; // whose blamed op lies more than `near` ops up the way
};

// Every n-th gap with such a cause names the worst op of its whole way; where that is not the worst of the nearest
// `near` ops, it exceeds that one's time.
BlameSeen checkBlame(const Timeline& timeline, int step, const BubbleReport& report, std::size_t near, int every = 1)
{
    const StepOps ops(timeline, step);
    const StepGraph graph(timeline, ops);
    const StepLevels levels = graph.levels();
    BlameSeen seen;
    int count = 0;
    for (const Gap& gap : report.gaps) {
        const bool straggler = gap.cause == IdleCause::Straggler;
        if ((!straggler && gap.cause != IdleCause::Imbalance) || count++ % every != 0) continue;
        const auto& busy = ops.busy(gap.rank);
        const auto position = static_cast<std::size_t>(std::find(busy.begin(), busy.end(), gap.next) - busy.begin());
        Input last{noSpan, 0, 0};
        for (const Input& input : graph.stepInputs().of(gap.rank, position))
            if (timeline.spans()[input.from].op.kind != OpKind::Reload &&
                (last.from == noSpan || input.ready > last.ready))
                last = input;
        const SpanId worst = worstOnTheWay(graph, levels, last.from, straggler, 0);
        const SpanId worstNear = worstOnTheWay(graph, levels, last.from, straggler, near);
        ++seen.gaps;
        if (gap.blamed != worst)
            qFatal("%s is blamed, not %s", nameOf(timeline, gap.blamed).c_str(), nameOf(timeline, worst).c_str());
        if (worst == worstNear) continue;
        const auto excess = [&](SpanId span) {
            const SlotId at = graph.slotOf(span);
            return straggler ? levels.alike[at] - levels.even[at] : levels.even[at] - levels.mean[at];
        };
        if (excess(worst) <= excess(worstNear))
            qFatal("%s does not exceed more than %s", nameOf(timeline, worst).c_str(),
                   nameOf(timeline, worstNear).c_str());
        ++seen.further;
    }
    return seen;
}

// Every op takes a little longer or shorter than its kind, one of them much longer.
std::shared_ptr<const Timeline> unevenStep(const char* name, int ranks, int microbatches, int slowRank,
                                           std::uint32_t slowAt)
{
    const Schedule schedule = samples::schedule(name, ranks, microbatches);
    const CostModel costs = samples::unitCosts(schedule, 0.05);
    std::vector<Nanos> durations = durationsOf(schedule, costs);
    std::mt19937 random(1);
    for (Nanos& duration : durations) duration += duration / 100 * static_cast<Nanos>(random() % 21);
    durations[place(schedule, durations, costs.links).value().indexOf(slowRank, slowAt)] *= 3;
    return timelineOf(schedule, place(schedule, durations, costs.links).value(), costs).value();
}

} // namespace

class TestCauses : public QObject {
    Q_OBJECT

private slots:
    // Weights that are gathered for each microbatch hold up every op; idle sums, each wait names its collective, and
    // fitted costs give the same step again.
    void collectives()
    {
        const std::pair<const char*, ReduceRule> cases[] = {
            {"1f1b", ReduceRule::Late}, {"zb-h1", ReduceRule::Overlapped}, {"bfs", ReduceRule::Microbatch}};
        for (const auto& [name, reduce] : cases) {
            ShardRules rules;
            rules.gather = GatherRule::Microbatch;
            rules.reduce = reduce;
            const Schedule sharded = addShardOps(samples::schedule(name, 4, 8), ShardLevel::Weights, rules).value();
            CostModel costs = samples::unitCosts(sharded, 0);
            costs.links.collectives = ResourceUse::Beside;
            costs.replicas = 2;
            costs.sharding.level = ShardLevel::Weights;
            for (int s = 0; s < sharded.stages; ++s) {
                costs.setDuration(OpKind::Unshard, s, oneUnit / 2);
                costs.setDuration(OpKind::ReduceGrad, s, oneUnit / 4);
            }
            const Timed step = timed(sharded, costs);
            QCOMPARE(std::accumulate(step.report.byCause.begin(), step.report.byCause.end(), Nanos(0)),
                     step.report.idle);
            QCOMPARE(
                step.report.busy + step.report.idle, 4 * step.report.makespan() - [&] {
                    Nanos apart = 0;
                    for (const RankBubbles& rank : step.report.ranks) apart += rank.apart;
                    return apart;
                }());
            QVERIFY(of(step.report, IdleCause::Collective) >= 4 * 8 * oneUnit / 2);
            const Gap& gap = largest(step.report, IdleCause::Collective);
            QCOMPARE(step.timeline->spans()[gap.blamed].op.kind, OpKind::Unshard);
            QVERIFY(explainGap(*step.timeline, gap).find("are still being gathered by") != std::string::npos);
            QVERIFY(scheduleOf(*step.timeline, 0).value() == sharded);
            const CostModel fitted = fitCosts(*step.timeline).value();
            for (int s = 0; s < sharded.stages; ++s) {
                QCOMPARE(fitted.duration(OpKind::Unshard, s, sharded.placement.rankOf(s, -1)), oneUnit / 2);
                QCOMPARE(fitted.duration(OpKind::ReduceGrad, s, sharded.placement.rankOf(s, -1)), oneUnit / 4);
            }
            QVERIFY(fitted.launch.empty());
            QCOMPARE(simulate(sharded, fitted)->makespan, simulate(sharded, costs)->makespan);
            // kept in a run file
            const Schedule job = overReplicas(sharded, 3).value();
            QVERIFY(readScheduleText(writeScheduleText(job)).value() == job);
        }
    }

    void knownNumbers_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("dependency");
        QTest::addColumn<int>("drain");
        QTest::addColumn<int>("order");
        QTest::newRow("gpipe") << "gpipe" << 18 << 12 << 0;
        QTest::newRow("1f1b") << "1f1b" << 6 << 12 << 12;
        QTest::newRow("zb-h1") << "zb-h1" << 0 << 0 << 6;
        if (findSchedule("zb-h2")) QTest::newRow("zb-h2") << "zb-h2" << 0 << 6 << 0;
    }
    void knownNumbers()
    {
        QFETCH(QString, name);
        QFETCH(int, dependency);
        QFETCH(int, drain);
        QFETCH(int, order);
        const auto report = analyseBubbles(*samples::simulated(name.toStdString(), 4, 8), 0).value();
        QCOMPARE(of(report, IdleCause::Warmup), 6 * oneUnit);
        QCOMPARE(of(report, IdleCause::Dependency), dependency * oneUnit);
        QCOMPARE(of(report, IdleCause::Drain), drain * oneUnit);
        QCOMPARE(of(report, IdleCause::Order), order * oneUnit);
        QCOMPARE(report.idle, (6 + dependency + drain + order) * oneUnit);
    }

    void withACapOrderBecomesMemory()
    {
        const Schedule schedule = samples::schedule("1f1b", 4, 8);
        const Timed run = timed(schedule, samples::unitCosts(schedule), 4 * activationShare);
        QCOMPARE(run.report.ranks[0].byCause[static_cast<std::size_t>(IdleCause::Order)], Nanos{0});
        QCOMPARE(run.report.ranks[0].byCause[static_cast<std::size_t>(IdleCause::Memory)], 6 * oneUnit);
        QCOMPARE(run.report.ranks[1].byCause[static_cast<std::size_t>(IdleCause::Memory)], Nanos{0}); // holds 3 of 4
        QCOMPARE(of(run.report, IdleCause::Order) + of(run.report, IdleCause::Memory), 12 * oneUnit);
    }

    void sumsOverAllSchedules()
    {
        std::mt19937 random(11);
        int steps = 0;
        for (const std::string& name : everyVariant())
            for (const auto& [ranks, microbatches] :
                 {std::pair(1, 3), std::pair(2, 4), std::pair(3, 7), std::pair(4, 8)}) {
                const auto schedule = makeOnNearShape(name, {ranks, microbatches});
                if (!schedule) continue;
                for (int round = 0; round < 4; ++round) {
                    Schedule tried = *schedule;
                    if (round == 3)
                        tried = withRecompute(tried, std::vector<bool>(static_cast<std::size_t>(tried.stages), true),
                                              random() % 2 == 0);
                    CostModel costs = randomCosts(tried, random);
                    if (round == 1)
                        costs =
                            perturbed(tried, costs, parsePerturbation("rank=0:1.5,launch=0:0.1", ranks).value(), 500);
                    const auto timeline = simulatedTimeline(tried, costs);
                    if (!timeline) continue; // some recomputations do not fit some orders
                    const auto report = analyseBubbles(
                        **timeline, 0, {round == 2 ? std::optional<Bytes>(2 * activationShare) : std::nullopt});
                    checkStep(**timeline, report.value(), round != 3);
                    const double predicted = figuresOf(tried, simulate(tried, costs).value()).bubbleFraction;
                    QVERIFY2(std::abs(predicted - report->bubbleFraction) < 1e-12,
                             qPrintable(QString("%1 p=%2 round %3: %4 against %5")
                                            .arg(name.c_str())
                                            .arg(ranks)
                                            .arg(round)
                                            .arg(predicted)
                                            .arg(report->bubbleFraction)));
                    if (costs.launch.empty()) QCOMPARE(of(*report, IdleCause::Launch), Nanos{0});
                    if (QTest::currentTestFailed())
                        QFAIL(qPrintable(QString("%1 at p=%2, round %3").arg(name.c_str()).arg(ranks).arg(round)));
                    ++steps;
                }
            }
        QVERIFY(steps >= 500);
    }

    void sumsOverAnyTimeline()
    {
        for (std::uint32_t seed = 1; seed <= 60; ++seed) {
            const auto timeline = samples::randomTimeline(seed, 3, 2, 40);
            for (int step = 0; step < timeline->steps(); ++step) {
                const auto report = analyseBubbles(*timeline, step).value();
                Nanos idle = 0;
                for (const Nanos part : report.byCause) idle += part;
                QCOMPARE(idle, report.idle);
                const StepContext context(*timeline, step);
                const GapExplainer explainer(context);
                for (const Gap& gap : report.gaps) QVERIFY(!explainer.explain(gap).sentence.empty());
            }
        }
    }

    void aSlowRankIsImbalance()
    {
        for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
            const Timed even = disturbed(name, "");
            QCOMPARE(of(even.report, IdleCause::Imbalance), Nanos{0});
            const Timed run = disturbed(name, "rank=2:1.5");
            QVERIFY(of(run.report, IdleCause::Imbalance) > 0);
            QCOMPARE(of(run.report, IdleCause::Straggler), Nanos{0});
            const Gap& gap = largest(run.report, IdleCause::Imbalance);
            QCOMPARE(run.timeline->trackOf(gap.blamed).rank, 2);
        }
        const Schedule schedule = samples::schedule("gpipe", 4, 8);
        const std::vector<int> layers{2, 2, 2, 6};
        const Timed run = timed(schedule, withStageLayers(schedule, samples::unitCosts(schedule), layers).value());
        const Gap& gap = largest(run.report, IdleCause::Imbalance);
        QCOMPARE(run.timeline->spans()[gap.blamed].op.stage, std::uint16_t{3});
        const GapExplanation explanation = GapExplainer(StepContext(*run.timeline, 0)).explain(gap);
        QVERIFY2(QString::fromStdString(explanation.sentence).contains("stage 3 costs more than the average stage"),
                 explanation.sentence.c_str());
        QVERIFY(explanation.experiment->after < explanation.experiment->before);
    }

    void oneSlowOpIsAStraggler()
    {
        const Schedule schedule = samples::schedule("gpipe", 4, 8);
        const CostModel costs = samples::unitCosts(schedule);
        std::vector<Nanos> durations = durationsOf(schedule, costs);
        const SimResult even = place(schedule, durations, costs.links).value();
        const std::size_t slow = even.indexOf(3, 3); // 3F3
        durations[slow] *= 4;
        const auto timeline = timelineOf(schedule, place(schedule, durations, costs.links).value(), costs).value();
        const auto report = analyseBubbles(*timeline, 0).value();
        // Ranks 0 to 2 wait three units longer each for their first gradient: no more than that is the slow op's.
        QCOMPARE(of(report, IdleCause::Straggler), 9 * oneUnit);
        QCOMPARE(of(report, IdleCause::Imbalance), Nanos{0});
        QCOMPARE(of(report, IdleCause::Dependency), 18 * oneUnit);
        const Gap& gap = largest(report, IdleCause::Straggler);
        QCOMPARE(nameOf(*timeline, gap.blamed), std::string("3F3"));
        const GapExplanation explanation = GapExplainer(StepContext(*timeline, 0)).explain(gap);
        QCOMPARE(explanation.experiment->after, 33 * oneUnit);
        QCOMPARE(explanation.experiment->before, 36 * oneUnit);
        QCOMPARE(nameOf(*timeline, explanation.chain.back().span), std::string("3F3"));
    }

    // The op that a wait is blamed on is the worst upstream, however far that is: up to 4,096 ops and beyond.
    void blameIsTheWorstUpstream()
    {
        BlameSeen stored;
        for (const char* name : {"shards", "version1", "version2", "version3", "version4"}) {
            auto file = RunFile::open(std::string(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/") + name + ".stagewright",
                                      OpenMode::Read);
            QVERIFY2(file, file ? "" : file.error().message.c_str());
            const auto runs = (*file)->runs();
            QVERIFY(runs);
            for (const RunInfo& info : *runs) {
                const auto run = (*file)->read(info.id);
                QVERIFY2(run, run ? "" : run.error().message.c_str());
                for (int step = 0; step < run->timeline->steps(); ++step) {
                    const BlameSeen seen =
                        checkBlame(*run->timeline, step, analyseBubbles(*run->timeline, step).value(), 4096);
                    stored.gaps += seen.gaps, stored.further += seen.further;
                }
            }
        }
        QVERIFY(stored.gaps > 0 && stored.further == 0);
        const auto check = [](const std::shared_ptr<const Timeline>& timeline, int every = 1) {
            return checkBlame(*timeline, 0, analyseBubbles(*timeline, 0).value(), 4096, every);
        };
        for (const char* name : {"gpipe", "1f1b", "zb-h1"}) {
            const BlameSeen seen = check(unevenStep(name, 16, 32, 5, 3));
            QVERIFY2(seen.gaps > 50 && seen.further == 0,
                     qPrintable(QStringLiteral("%1 of %2 gaps of %3").arg(seen.further).arg(seen.gaps).arg(name)));
        }
        const BlameSeen wide = check(unevenStep("1f1b", 64, 128, 3, 1));
        QVERIFY2(wide.gaps > 1000 && wide.further == 0,
                 qPrintable(QStringLiteral("%1 of %2 gaps").arg(wide.further).arg(wide.gaps)));
        const BlameSeen most = check(unevenStep("1f1b", 4096, 4, 3000, 0), 97);
        QVERIFY2(most.gaps > 50 && most.further > 0,
                 qPrintable(QStringLiteral("%1 of %2 gaps").arg(most.further).arg(most.gaps)));
        const BlameSeen tall = check(unevenStep("1f1b", 2, 3000, 1, 0), 7); // its ways have up to 6,000 ops
        QVERIFY2(tall.gaps > 100 && tall.further > 10,
                 qPrintable(QStringLiteral("%1 of %2 gaps").arg(tall.further).arg(tall.gaps)));
    }

    void aSlowLinkIsTransfer()
    {
        const Timed run = disturbed("gpipe", "link=1-2:1.0");
        QCOMPARE(of(run.report, IdleCause::Transfer), of(run.report, IdleCause::Transfer));
        const Gap& gap = largest(run.report, IdleCause::Transfer);
        QCOMPARE(run.timeline->trackOf(gap.blamed).rank, 2); // a gradient on its way to rank 1
        QCOMPARE(gap.rank, 1);
        const GapExplanation explanation = GapExplainer(StepContext(*run.timeline, 0)).explain(gap);
        QCOMPARE(explanation.experiment->before, 35 * oneUnit);
        QCOMPARE(explanation.experiment->after, 34 * oneUnit); // the way there still takes one
    }

    void lateLaunchesAreLaunch()
    {
        const Timed run = disturbed("gpipe", "launch=3:0.25");
        QVERIFY(of(run.report, IdleCause::Launch) > 0);
        for (const Gap& gap : run.report.gaps)
            if (gap.cause == IdleCause::Launch) QCOMPARE(gap.rank, 3);
        const GapExplanation explanation =
            GapExplainer(StepContext(*run.timeline, 0)).explain(largest(run.report, IdleCause::Launch));
        QCOMPARE(explanation.experiment->after, 33 * oneUnit);
    }

    void heldBackRecomputations()
    {
        const Schedule plain = samples::schedule("1f1b", 4, 8);
        const Schedule schedule = withRecompute(plain, {true, true, true, false});
        const Timed run = timed(schedule, samples::unitCosts(schedule));
        QVERIFY(of(run.report, IdleCause::RecomputeWait) > 0);
        QCOMPARE(of(run.report, IdleCause::Launch), Nanos{0});
        const Gap& gap = largest(run.report, IdleCause::RecomputeWait);
        QCOMPARE(run.timeline->spans()[gap.next].op.kind, OpKind::Recompute);
        QVERIFY(gap.end - gap.start <= oneUnit);
        const Schedule hoisted = withRecompute(plain, {true, true, true, false}, true);
        QCOMPARE(of(timed(hoisted, samples::unitCosts(hoisted)).report, IdleCause::RecomputeWait), Nanos{0});
        checkStep(*run.timeline, run.report, true);
    }

    void lateReloads()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int compute = builder.addTrack(0, Lane::Compute);
        const int copy = builder.addTrack(0, Lane::Copy);
        const auto add = [&](int track, const char* text, Nanos start, Nanos end) {
            Span span;
            span.op = parseOp(text).value();
            span.start = start;
            span.end = end;
            return builder.addSpan(track, span);
        };
        const SpanId forward = add(compute, "0F0", 0, 10);
        const SpanId reload = add(copy, "0RELOAD0", 12, 30);
        const SpanId backward = add(compute, "0B0", 30, 50);
        builder.addEdge(forward, backward, EdgeKind::Data, 10);
        builder.addEdge(reload, backward, EdgeKind::Data, 30);
        const auto timeline = builder.build().value();
        const auto report = analyseBubbles(*timeline, 0).value();
        QCOMPARE(of(report, IdleCause::ReloadWait), Nanos{20});
        QCOMPARE(report.idle, Nanos{20});
    }

    // Without buffers a rank waits in its send until the other one receives.
    void peersThatComeLate()
    {
        const Schedule schedule = lower(samples::schedule("gpipe", 4, 8), {LoweringRule::JustInTime, 0, false}).value();
        const CostModel costs = samples::unitCosts(schedule, 1.5);
        const auto timeline =
            simulatedTimeline(schedule, costs, {SendMode::Rendezvous, 0, ReceiveMode::Blocking}).value();
        const auto report = analyseBubbles(*timeline, 0).value();
        QVERIFY(of(report, IdleCause::PeerWait) > 0);
        const GapExplanation explanation =
            GapExplainer(StepContext(*timeline, 0)).explain(largest(report, IdleCause::PeerWait));
        QVERIFY2(QString::fromStdString(explanation.sentence).contains("until the other side is ready"),
                 explanation.sentence.c_str());
        const auto buffered =
            simulatedTimeline(schedule, costs, {SendMode::Buffered, 0, ReceiveMode::Blocking}).value();
        QCOMPARE(of(analyseBubbles(*buffered, 0).value(), IdleCause::PeerWait), Nanos{0});
        checkStep(*timeline, report, true);
    }

    // Odd ranks receive first: their gradients are behind that in their lists, until the receive is done.
    void messagesBehindOthers()
    {
        const Schedule schedule = lower(samples::schedule("1f1b", 4, 8), {LoweringRule::RankParity, 0, false}).value();
        const CostModel costs = samples::unitCosts(schedule, 1.5);
        const auto strict =
            simulatedTimeline(schedule, costs, {SendMode::Rendezvous, 0, ReceiveMode::Blocking}).value();
        const auto report = analyseBubbles(*strict, 0).value();
        QVERIFY(of(report, IdleCause::HeadOfLine) > 0);
        QVERIFY(of(report, IdleCause::PeerWait) > 0);
        const GapExplanation explanation =
            GapExplainer(StepContext(*strict, 0)).explain(largest(report, IdleCause::HeadOfLine));
        QVERIFY2(QString::fromStdString(explanation.sentence).contains("behind other messages"),
                 explanation.sentence.c_str());
        const auto buffered = simulatedTimeline(schedule, costs, {SendMode::Buffered, 0, ReceiveMode::Posted}).value();
        QCOMPARE(of(analyseBubbles(*buffered, 0).value(), IdleCause::HeadOfLine), Nanos{0});
        checkStep(*strict, report, true);
    }

    // One channel: the second message arrives two units later than it would on a channel of its own, and so long its
    // receiver waits.
    void queueForAChannel()
    {
        const Schedule schedule = lower(samples::schedule("gpipe", 3, 2), {LoweringRule::JustInTime, 0, false}).value();
        const CostModel costs = samples::unitCosts(schedule, 3);
        const auto one = simulatedTimeline(schedule, costs, {SendMode::Buffered, 1, ReceiveMode::Posted}).value();
        const auto report = analyseBubbles(*one, 0).value();
        const auto gap = std::find_if(report.gaps.begin(), report.gaps.end(),
                                      [](const Gap& g) { return g.rank == 1 && g.cause == IdleCause::HeadOfLine; });
        QVERIFY(gap != report.gaps.end());
        QCOMPARE(gap->start, 5 * rankShare);
        QCOMPARE(gap->end, 7 * rankShare);
        checkStep(*one, report, true);
        const auto two = simulatedTimeline(schedule, costs, {SendMode::Buffered, 2, ReceiveMode::Posted}).value();
        QCOMPARE(of(analyseBubbles(*two, 0).value(), IdleCause::HeadOfLine), Nanos{0});
    }

    void sumsOverLoweredSchedules()
    {
        std::mt19937 random(3);
        int steps = 0;
        for (const std::string& name : everyVariant()) {
            const auto plain = makeSchedule(name, {4, 8});
            if (!plain) continue;
            for (const LoweringRule rule : {LoweringRule::JustInTime, LoweringRule::PyTorch, LoweringRule::Grouped}) {
                const auto schedule = lower(*plain, {rule, 0, false});
                if (!schedule) continue;
                for (const Channels& channels : {Channels{SendMode::Buffered, 0, receivesOf(rule)},
                                                 Channels{SendMode::Buffered, 1, receivesOf(rule)},
                                                 Channels{SendMode::Rendezvous, 1, receivesOf(rule)}}) {
                    const auto timeline = simulatedTimeline(*schedule, randomCosts(*schedule, random), channels);
                    if (!timeline) continue; // a deadlock without buffers
                    checkStep(**timeline, analyseBubbles(**timeline, 0).value(), true);
                    if (QTest::currentTestFailed()) QFAIL(name.c_str());
                    ++steps;
                }
            }
        }
        QVERIFY(steps >= 20);
    }

    // A reduction over copies starts when the last copy is done: until then the others wait.
    void reductionsThatWait()
    {
        Schedule schedule = samples::schedule("chimera:sync=eager", 4, 8);
        auto& late = schedule.order[3]; // it comes six units late to the reduction of stage 3
        late.insert(std::find(late.begin(), late.end(), makeOp(OpKind::ReduceGrad, 3)), makeFiller(3, 6 * oneUnit));
        CostModel costs = samples::unitCosts(schedule);
        for (int stage = 0; stage < 4; ++stage) costs.setDuration(OpKind::ReduceGrad, stage, oneUnit / 4);
        const Timed run = timed(schedule, costs);
        checkStep(*run.timeline, run.report, true);
        QCOMPARE(of(run.report, IdleCause::Launch), Nanos{0});
        const Gap& gap = largest(run.report, IdleCause::PeerWait);
        const GapExplanation explanation = GapExplainer(StepContext(*run.timeline, 0)).explain(gap);
        QVERIFY2(QString::fromStdString(explanation.sentence).contains("a reduction starts only when rank"),
                 explanation.sentence.c_str());
        QVERIFY(run.timeline->trackOf(gap.blamed).rank != gap.rank);
        QCOMPARE(explanation.chain.front().span, gap.blamed);
    }

    void experimentsAreSimulations()
    {
        // Moving a forward into the order gap: the same as the editor's move, simulated.
        const Schedule schedule = samples::schedule("1f1b", 4, 8);
        const Timed run = timed(schedule, samples::unitCosts(schedule, 0.5));
        const Gap& gap = largest(run.report, IdleCause::Order);
        const GapExplanation explanation = GapExplainer(StepContext(*run.timeline, 0)).explain(gap);
        const auto& row = schedule.order[static_cast<std::size_t>(gap.rank)];
        const auto to = std::find(row.begin(), row.end(), run.timeline->spans()[gap.next].op) - row.begin();
        const auto from = std::find(row.begin(), row.end(), gap.readyOp) - row.begin();
        const Schedule moved =
            moveOps(schedule, {{gap.rank, static_cast<int>(from)}}, static_cast<int>(to - from)).value().schedule;
        QCOMPARE(explanation.experiment->after, simulate(moved, run.costs).value().makespan);
        QVERIFY2(QString::fromStdString(explanation.sentence).contains("with 0F4 here"), explanation.sentence.c_str());
    }

    // What an experiment promises is what simulating the change gives.
    void promisesAreKept()
    {
        std::mt19937 random(17);
        std::array<int, idleCauseCount> tried{};
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "hanayo", "dualpipev", "chimera"}) {
            const Schedule schedule = samples::schedule(name, 4, 8);
            const bool unpaired = std::all_of(schedule.paired.begin(), schedule.paired.end(),
                                              [](const auto& pairs) { return pairs.empty(); });
            for (int round = 0; round < 3; ++round) {
                CostModel costs = randomCosts(schedule, random);
                costs.launch.clear();
                if (round == 2) costs.launch = {0, 40, 0, 25};
                const Timed run = timed(schedule, costs);
                const StepContext context(*run.timeline, 0);
                const GapExplainer explainer(context);
                for (const Gap& gap : run.report.gaps) {
                    const auto experiment = explainer.explain(gap).experiment;
                    std::optional<Nanos> promised;
                    CostModel changed = costs;
                    if (gap.cause == IdleCause::Transfer) {
                        changed.links.overrides[{run.timeline->trackOf(gap.blamed).rank, gap.rank}] = {0, 0};
                        promised = simulate(schedule, changed)->makespan;
                    } else if (gap.cause == IdleCause::Launch) {
                        changed.launch[static_cast<std::size_t>(gap.rank)] = 0;
                        promised = simulate(schedule, changed)->makespan;
                    } else if (gap.cause == IdleCause::Order && gap.hasReadyOp && unpaired) {
                        const auto& row = schedule.order[static_cast<std::size_t>(gap.rank)];
                        const auto to =
                            std::find(row.begin(), row.end(), run.timeline->spans()[gap.next].op) - row.begin();
                        const auto from = std::find(row.begin(), row.end(), gap.readyOp) - row.begin();
                        const auto moved =
                            moveOps(schedule, {{gap.rank, static_cast<int>(from)}}, static_cast<int>(to - from));
                        if (moved && validate(moved->schedule).valid())
                            promised = simulate(moved->schedule, costs)->makespan;
                    } else if (gap.cause == IdleCause::Dependency && costs.launch.empty()) {
                        std::vector<Nanos> durations = durationsOf(schedule, costs);
                        std::size_t at = 0;
                        const auto rank = static_cast<std::size_t>(run.timeline->trackOf(gap.blamed).rank);
                        for (std::size_t r = 0; r < rank; ++r) at += schedule.order[r].size();
                        const auto& row = schedule.order[rank];
                        at += static_cast<std::size_t>(
                            std::find(row.begin(), row.end(), run.timeline->spans()[gap.blamed].op) - row.begin());
                        Nanos& producer = durations[at];
                        if (unpaired) {
                            producer -= std::min(producer, gap.end - gap.start);
                            promised = place(schedule, durations, costs.links)->makespan;
                        }
                    } else if (gap.cause == IdleCause::Imbalance && unpaired && costs.launch.empty()) {
                        const int stage = run.timeline->spans()[gap.blamed].op.stage;
                        for (const OpKind kind :
                             {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad}) {
                            Nanos sum = 0;
                            for (int each = 0; each < schedule.stages; ++each) { // on ranks of one speed
                                const RankSlowness& slow =
                                    run.report.slowness[static_cast<std::size_t>(schedule.placement.rankOf(each, 0))];
                                const auto own = static_cast<double>(costs.duration(kind, each, 0));
                                sum += std::llround(slow.known && slow.factor > slowRank ? own / slow.factor : own);
                            }
                            changed.setDuration(kind, stage, (sum + schedule.stages / 2) / schedule.stages);
                        }
                        promised = simulate(schedule, changed)->makespan;
                    }
                    if (!promised) continue;
                    // a late first op starts the window late
                    const Nanos begin = costs.launch.empty() ? 0 : run.report.windowBegin;
                    QVERIFY2(experiment && experiment->after == *promised - begin,
                             qPrintable(QString("%1 round %2: %3, simulated %4")
                                            .arg(name)
                                            .arg(round)
                                            .arg(explainer.explain(gap).sentence.c_str())
                                            .arg(*promised - begin)));
                    ++tried[static_cast<std::size_t>(gap.cause)];
                }
            }
        }
        for (const IdleCause cause :
             {IdleCause::Transfer, IdleCause::Launch, IdleCause::Order, IdleCause::Dependency, IdleCause::Imbalance})
            QVERIFY2(tried[static_cast<std::size_t>(cause)] >= 5, std::string(toText(cause)).c_str());
    }

    void chainsEndAtTheirRoot()
    {
        const auto timeline = samples::simulated("gpipe", 4, 8);
        const auto report = analyseBubbles(*timeline, 0).value();
        const Gap& gap = largest(report, IdleCause::Dependency);
        QCOMPARE(gap.rank, 0);
        const GapChain chain = GapExplainer(StepContext(*timeline, 0)).chainOf(gap);
        QStringList names;
        for (const GapLink& link : chain) names << QString::fromStdString(nameOf(*timeline, link.span));
        QCOMPARE(names.mid(0, 4).join(' '), QString("1B0 2B0 3B0 3F7"));
        QCOMPARE(names.back(), QString("0F0"));
        QVERIFY(QString::fromStdString(chain.back().why).contains("round trip"));
    }

    // An op begun later by its slack leaves the makespan; by a nanosecond more it does not.
    void slackIsExact_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("lowered");
        for (const char* name :
             {"zb-h1", "dualpipe", "terapipe:slices=3", "chimera:join=halving", "2bp-1f1b", "merak", "hanayo"})
            QTest::newRow(name) << name << false;
        QTest::newRow("1f1b, lowered") << "1f1b" << true;
        QTest::newRow("zbv, lowered") << "zbv" << true;
    }
    void slackIsExact()
    {
        QFETCH(QString, name);
        QFETCH(bool, lowered);
        Schedule schedule = makeOnNearShape(name.toStdString(), {4, 8}).value();
        if (lowered) schedule = lower(schedule, {LoweringRule::Grouped, 0, false}).value();
        std::mt19937 random(5);
        const CostModel costs = randomCosts(schedule, random);
        const Channels channels{lowered && name.startsWith("1f1b") ? SendMode::Rendezvous : SendMode::Buffered,
                                lowered ? 1 : 0, receivesOf(LoweringRule::Grouped)};
        const auto timeline = simulatedTimeline(schedule, costs, channels).value();
        const StepOps ops(*timeline, 0);
        const StepGraph graph(*timeline, ops);
        const std::vector<Nanos> slack = graph.slack();
        int free = 0;
        for (SlotId id = 0; id < graph.size(); ++id) {
            StepScenario scenario = graph.asItWas();
            scenario.delay[id] += slack[id];
            QCOMPARE(graph.run(scenario)->makespan, graph.makespan());
            scenario.delay[id] += 1;
            // The first op of all moves the window's begin with it; what is not busy may end after the window.
            const bool first = timeline->spans()[graph.slot(id).first].start == ops.windowBegin();
            if (!first && graph.slot(id).busy) QCOMPARE(graph.run(scenario)->makespan, graph.makespan() + 1);
            free += slack[id] > 0;
        }
        QVERIFY(free > 0);
    }
};

QTEST_APPLESS_MAIN(TestCauses)
#include "tst_causes.moc"
