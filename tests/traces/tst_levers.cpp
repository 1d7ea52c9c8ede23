// What would help: every lever against the step without what was injected; causes by gain; slow ranks separated from
// expensive stages; figures over steps.
#include <QtTest/QtTest>

#include "sample_runs.h"
#include "schedules/execute/perturb.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/lower.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "schedules/plan/what_if.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/lever_subject.h"
#include "traces/analysis/levers.h"
#include "traces/analysis/step_context.h"
#include "traces/analysis/step_sample.h"
#include "traces/compare/compare.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/residuals.h"
#include "traces/report/run_document.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

Schedule scheduleFor(const std::string& name, int chunks = 0)
{
    return makeSchedule(name, Shape(4, 8, chunks)).value();
}

Run disturbed(const Schedule& schedule, const char* text, double latency = 0)
{
    Run run = simulatedRun(schedule, perturbed(schedule, samples::unitCosts(schedule, latency),
                                               parsePerturbation(text, schedule.ranks).value(), rankShare))
                  .value();
    run.configuration.emplace_back("perturb", text);
    return run;
}

const Lever* find(const LeverTable& table, const std::string& name)
{
    for (const Lever& lever : table.levers)
        if (lever.name == name) return &lever;
    return nullptr;
}

Nanos idleOf(const BubbleReport& report, IdleCause cause) { return report.byCause[static_cast<std::size_t>(cause)]; }

// A run of `steps` steps like the first of `run`, each `pace(step)` times as long.
template <typename Pace>
Run repeated(const Run& run, int steps, Pace pace)
{
    const Timeline& base = *run.timeline;
    TimelineBuilder builder(base.provenance(), "virtual", base.ranks());
    builder.setUnits(base.timeUnit(), base.memoryUnit());
    builder.setSchedule(base.schedule());
    std::vector<int> tracks;
    for (const Track& track : base.tracks()) tracks.push_back(builder.addTrack(track.rank, track.lane, track.name));
    Metric times{"step_time_ns", "ns", {}};
    Nanos begin = 0;
    for (int step = 0; step < steps; ++step) {
        std::vector<SpanId> ids(base.spans().size(), noSpan);
        const auto at = [&](Nanos t) {
            return begin + static_cast<Nanos>(static_cast<double>(t - base.begin()) * pace(step));
        };
        Nanos end = begin;
        for (std::size_t t = 0; t < base.tracks().size(); ++t) {
            const Track& track = base.tracks()[t];
            for (SpanId id = track.begin; id < track.end; ++id) {
                Span span = base.spans()[id];
                span.start = at(span.start);
                span.end = at(span.end);
                span.step = step;
                span.label = 0;
                end = std::max(end, span.end);
                ids[id] = builder.addSpan(tracks[t], span);
            }
        }
        for (const Edge& edge : base.edges())
            builder.addEdge(ids[edge.from], ids[edge.to], edge.kind, at(edge.arrival));
        times.values.push_back(static_cast<double>(end - begin));
        begin = end;
    }
    Run out = run;
    out.metrics = {times};
    out.timeline = builder.build().value();
    out.info.steps = steps;
    out.info.clock = "virtual";
    out.info.provenance = Provenance::Measured;
    return out;
}

} // namespace

class TestLevers : public QObject {
    Q_OBJECT

private slots:
    // The gain of free collectives is the step less that of the same lists whose gathers and reductions take no time.
    // On the compute lane they are work of the rank, and there is no such lever.
    void freeCollectives()
    {
        ShardRules rules;
        rules.gather = GatherRule::Microbatch;
        const Schedule schedule = addShardOps(scheduleFor("1f1b"), ShardLevel::Weights, rules).value();
        CostModel costs = samples::unitCosts(schedule);
        costs.links.collectives = ResourceUse::Beside;
        const Nanos free = figuresOf(schedule, simulate(schedule, costs).value()).makespan;
        for (int stage = 0; stage < schedule.stages; ++stage) {
            costs.setDuration(OpKind::Unshard, stage, rankShare / 2);
            costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
        }
        for (const ResourceUse lane : {ResourceUse::Beside, ResourceUse::Compute}) {
            costs.links.collectives = lane;
            const Run run = simulatedRun(schedule, costs).value();
            const LeverTable table = leversOf(StepContext(run, 0));
            const Lever* lever = find(table, "collectives");
            QCOMPARE(lever != nullptr, lane == ResourceUse::Beside);
            if (lever == nullptr) continue;
            QVERIFY(lever->makespan && *lever->makespan < *table.simulated);
            QCOMPARE(lever->gain, *table.simulated - *lever->makespan);
            QCOMPARE(*lever->makespan, free);
            QVERIFY(idleOf(analyseBubbles(*run.timeline, 0).value(), IdleCause::Collective) > 0);
            QCOMPARE(table.gainOf(IdleCause::Collective), std::optional(lever->gain));
        }
    }
    // Gathers alone at no time; and the gather of one stage that takes four times what the others take.
    void slowGathers()
    {
        ShardRules rules;
        rules.gather = GatherRule::Microbatch;
        const Schedule schedule = addShardOps(scheduleFor("1f1b"), ShardLevel::Weights, rules).value();
        CostModel costs = samples::unitCosts(schedule);
        costs.links.collectives = ResourceUse::Beside;
        for (StageMemory& memory : costs.memory) memory.weight = 1'000'000;
        for (int stage = 0; stage < schedule.stages; ++stage) {
            costs.setDuration(OpKind::Unshard, stage, stage == 2 ? 2 * rankShare : rankShare / 2);
            costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
        }
        const LeverTable table = leversOf(StepContext(simulatedRun(schedule, costs).value(), 0));
        CostModel with = costs;
        with.setDuration(OpKind::Unshard, 2, rankShare / 2);
        const Lever* slow = find(table, "gather:2");
        QVERIFY(slow != nullptr && slow->makespan);
        QCOMPARE(*slow->makespan, figuresOf(schedule, simulate(schedule, with).value()).step);
        QVERIFY(slow->gain > 0);
        for (const char* other : {"gather:0", "gather:1", "gather:3"}) QVERIFY(find(table, other) == nullptr);
        for (int stage = 0; stage < schedule.stages; ++stage) with.setDuration(OpKind::Unshard, stage, 0);
        const Lever* gathers = find(table, "gathers");
        QVERIFY(gathers != nullptr && gathers->makespan);
        QCOMPARE(*gathers->makespan, figuresOf(schedule, simulate(schedule, with).value()).step);
        QVERIFY(gathers->gain >= slow->gain && gathers->gain <= find(table, "collectives")->gain);
        costs.memory[2].weight = 4'000'000; // then it is long, not slow
        QVERIFY(find(leversOf(StepContext(simulatedRun(schedule, costs).value(), 0)), "gather:2") == nullptr);
    }

    // Lists that came with their sends and receives in Megatron-LM's batches keep that rule with other orders: just in
    // time they hang.
    void batchedStaysBatched()
    {
        const Lowering batched = parseLowering("batched").value();
        const Schedule lists = lower(scheduleFor("interleaved-1f1b", 2), batched).value();
        CostModel costs = samples::unitCosts(lists, 0.3);
        Channels channels;
        channels.sends = SendMode::Rendezvous;
        for (const bool said : {true, false}) {
            const Run run = simulatedRun(lists, costs, channels, said ? std::optional(batched) : std::nullopt).value();
            const LeverTable table = leversOf(StepContext(run, 0));
            QCOMPARE(*table.simulated, table.measured);
            QVERIFY(executedRun(run)->lowering == std::optional(batched));
            const Lever* order = find(table, "order");
            QVERIFY(order != nullptr && order->makespan);
        }
        QVERIFY(!simulate(lower(withoutMessages(lists), Lowering{}).value(), costs, channels));
    }

    // Behind the last op: 30 units of reductions, of which 29 are their buckets'.
    void bucketsAndLateReductions()
    {
        ShardRules rules;
        rules.reduce = ReduceRule::Late;
        const Schedule schedule = addShardOps(scheduleFor("bfs", 2), ShardLevel::Gradients, rules).value();
        CostModel costs = samples::unitCosts(schedule, 0);
        costs.replicas = 2;
        costs.sharding.level = ShardLevel::Gradients;
        costs.links.collectives = ResourceUse::Beside;
        costs.links.all = {1000, 1e9};
        CollectiveCosts ring;
        ring.within = costs.links.all;
        for (StageMemory& memory : costs.memory) memory.gradient = memory.weight = 1'000'000;
        costs.sharding.bucket = 1000;
        setCollectiveTimes(costs, schedule, ring);
        QCOMPARE(costs.duration(OpKind::ReduceGrad, 0, -1), Nanos{1000 * (1000 + 500)});
        Run run = simulatedRun(schedule, costs).value();
        run.configuration.insert(run.configuration.end(),
                                 {{"shard", "gradients"}, {"bucket_bytes", "1000"}, {"collectives", "ring"}});
        const LeverTable table = leversOf(StepContext(run, 0));
        QVERIFY(table.simulated.has_value());
        QCOMPARE(*table.simulated, table.measured);
        const Lever* buckets = find(table, "buckets");
        QVERIFY(buckets != nullptr && buckets->makespan);
        CostModel whole = costs;
        whole.sharding.bucket = 0;
        setCollectiveTimes(whole, schedule, ring);
        QCOMPARE(buckets->gain, *table.simulated - figuresOf(schedule, simulate(schedule, whole).value()).step);
        QVERIFY(buckets->gain > 0);
        const Lever* reductions = find(table, "reductions");
        QVERIFY(reductions != nullptr && reductions->makespan);
        rules.reduce = ReduceRule::Overlapped;
        const Schedule early = addShardOps(scheduleFor("bfs", 2), ShardLevel::Gradients, rules).value();
        QCOMPARE(*reductions->makespan, figuresOf(early, simulate(early, costs).value()).step);
        QVERIFY(reductions->gain > 0);
    }

    void nothingToGain()
    {
        const Run run = disturbed(scheduleFor("1f1b"), "");
        const LeverTable table = leversOf(StepContext(run, 0));
        QVERIFY(table.simulated.has_value());
        QCOMPARE(*table.simulated, 33 * rankShare);
        QCOMPARE(table.measured, 33 * rankShare);
        QCOMPARE(table.error(), 0.0);
        QVERIFY(find(table, "order") != nullptr);
        QVERIFY(find(table, "links") == nullptr);
        for (const Lever& lever : table.levers) QVERIFY(lever.gain <= 0);
        QCOMPARE(table.shown().size(), table.levers.size()); // where nothing gains, all are shown
    }

    // The step with the lever is the step that was not disturbed.
    void takesTheDisturbanceAway_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("lever");
        QTest::newRow("slow rank") << "rank=2:1.5"
                                   << "rank:2";
        QTest::newRow("slow link") << "link=1-2:2"
                                   << "link:1-2";
        QTest::newRow("launch of a rank") << "launch=1:0.5"
                                          << "launch:1";
        QTest::newRow("launch") << "launch=0:1,launch=1:1,launch=2:1,launch=3:1"
                                << "launch";
        QTest::newRow("transient") << "transient=2@1:3"
                                   << "transient:2@1";
        QTest::newRow("jitter") << "jitter=0.4"
                                << "jitter";
    }
    void takesTheDisturbanceAway()
    {
        QFETCH(QString, text);
        QFETCH(QString, lever);
        const Run run = disturbed(scheduleFor("1f1b"), text.toUtf8().constData());
        const LeverTable table = leversOf(StepContext(run, 0));
        QCOMPARE(*table.simulated, table.measured);
        const Lever* found = find(table, lever.toStdString());
        QVERIFY2(found != nullptr, qPrintable(lever));
        QVERIFY(found->makespan.has_value());
        // rounded by op
        QVERIFY2(std::llabs(*found->makespan - 33 * rankShare) <= 100, std::to_string(*found->makespan).c_str());
        QCOMPARE(found->gain, *table.simulated - *found->makespan);
        QVERIFY(found - table.levers.data() < 2);
        for (std::size_t i = 1; i < table.levers.size(); ++i)
            if (table.levers[i].makespan) QVERIFY(table.levers[i - 1].gain >= table.levers[i].gain);
        for (const Lever& shown : table.shown()) QVERIFY(!shown.makespan || shown.gain > 0);
    }

    // The baseline is the run's own figure, however its messages travelled, and what else is said of it starts there.
    void baselineIsTheRunsOwn_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<double>("latency");
        QTest::addColumn<QString>("rule");
        QTest::addColumn<QString>("limit");
        QTest::addColumn<bool>("rendezvous");
        QTest::addColumn<bool>("blocking");
        const auto row = [](const char* name, int chunks, double latency, const char* rule, const char* limit,
                            bool rendezvous, bool blocking) {
            QTest::addRow("%s %s %s %d%d", name, rule, limit, rendezvous, blocking)
                << name << chunks << latency << rule << limit << rendezvous << blocking;
        };
        row("interleaved-1f1b", 2, 0, "pytorch", "shared", true, true);
        row("interleaved-1f1b", 2, 0, "pytorch", "one", false, false);
        for (const char* name : {"gpipe", "1f1b", "zb-h1"}) row(name, 1, 0.3, "grouped", "shared", true, true);
        row("gpipe", 1, 0.3, "just-in-time", "1", true, true);
        row("1f1b", 1, 1.5, "just-in-time", "2", false, false);
        row("gpipe", 1, 0.3, "", "shared", false, false);
        row("gpipe", 1, 0.3, "", "0", false, false);
    }
    void baselineIsTheRunsOwn()
    {
        QFETCH(QString, name);
        QFETCH(int, chunks);
        QFETCH(double, latency);
        QFETCH(QString, rule);
        QFETCH(QString, limit);
        QFETCH(bool, rendezvous);
        QFETCH(bool, blocking);
        Schedule schedule = scheduleFor(name.toStdString(), chunks);
        CostModel costs = samples::unitCosts(schedule, latency);
        costs.links.all.bytesPerSecond = 1e9;
        for (StageMemory& memory : costs.memory) memory.boundary = rankShare / 2; // half a forward on the link
        Channels channels;
        QVERIFY(readLimit(limit.toStdString(), channels));
        if (rendezvous) channels.sends = SendMode::Rendezvous;
        std::optional<Lowering> lowering;
        if (!rule.isEmpty()) lowering = *parseLowering(rule.toStdString());
        channels.receives = !rendezvous ? receivesOf(lowering.value_or(Lowering{}).rule)
                            : blocking  ? ReceiveMode::Blocking
                                        : ReceiveMode::Posted;
        if (lowering) schedule = *lower(schedule, *lowering);
        const Run run = simulatedRun(schedule, costs, channels, lowering).value();
        const LeverTable table = leversOf(StepContext(run, 0));
        QVERIFY2(table.simulated.has_value(), table.reason.c_str());
        QCOMPARE(*table.simulated, table.measured);
        QCOMPARE(residualsOf(run, *run.costs)->error, 0.0);
        const ExecutedRun executed = executedRun(run).value();
        QCOMPARE(executed.channels, channels);
        QCOMPARE(WhatIf::create(executed.schedule, executed.costs, executed.channels, executed.lowering)
                     ->answer({})
                     ->makespanBefore,
                 table.measured);
        const Comparison same = compareRuns(run, run).value();
        QCOMPARE(same.ladder.size(), std::size_t(1));
        QCOMPARE(same.ladder.front().makespan, table.measured);
        // No lever but faster links comes below what one link has to carry.
        for (const Lever& lever : table.levers)
            if (lever.makespan && lever.kind != LeverKind::Links && lever.kind != LeverKind::Link && limit != "0")
                QVERIFY2(*lever.makespan >= 8 * chunks * rankShare / 2, lever.name.c_str());
    }

    // Blocking receives: buffered sends take 13.5 units instead of 20. Grouped messages: links and sends gain what the
    // units say.
    void leversOfMessages()
    {
        const Schedule interleaved =
            *lower(makeSchedule("interleaved-1f1b", Shape(2, 4, 2)).value(), *parseLowering("pytorch"));
        const LeverTable blocked = leversOf(
            StepContext(simulatedRun(interleaved, samples::unitCosts(interleaved),
                                     {SendMode::Rendezvous, 0, ReceiveMode::Blocking}, *parseLowering("pytorch"))
                            .value(),
                        0));
        QCOMPARE(*blocked.simulated, 20 * rankShare);
        QCOMPARE(find(blocked, "sends")->gain, 13 * rankShare / 2);
        const Schedule grouped = *lower(makeSchedule("gpipe", Shape(4, 8)).value(), *parseLowering("grouped"));
        const LeverTable met = leversOf(
            StepContext(simulatedRun(grouped, samples::unitCosts(grouped, 0.3),
                                     {SendMode::Rendezvous, 0, ReceiveMode::Blocking}, *parseLowering("grouped"))
                            .value(),
                        0));
        QCOMPARE(*met.simulated, 39 * rankShare);
        QCOMPARE(find(met, "links")->gain, 6 * rankShare);
        QCOMPARE(find(met, "sends")->gain, 21 * rankShare / 5);
        const Schedule eight =
            *lower(makeSchedule("interleaved-1f1b", Shape(8, 8, 2)).value(), *parseLowering("pytorch"));
        Channels stream;
        stream.oneStream = true;
        const LeverTable held = leversOf(
            StepContext(simulatedRun(eight, samples::unitCosts(eight), stream, *parseLowering("pytorch")).value(), 0));
        QCOMPARE(*held.simulated, 60 * rankShare);
        QCOMPARE(*find(held, "channels")->makespan, 69 * rankShare / 2);
    }

    // A pipeline that is slow as a whole is named as one, with what its speed would gain.
    void slowReplica()
    {
        const Schedule schedule = overReplicas(makeSchedule("1f1b", Shape(4, 8)).value(), 2).value();
        CostModel costs = samples::unitCosts(schedule);
        for (int rank = 4; rank < 8; ++rank)
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                costs.scaleOnRank(kind, rank - 4, rank, schedule.placement, 2);
        const LeverTable table = leversOf(StepContext(simulatedRun(schedule, costs).value(), 0));
        QCOMPARE(table.levers.front().name, std::string("replica:1"));
        QCOMPARE(*table.levers.front().makespan, 33 * rankShare);
        QCOMPARE(table.levers.front().gain, 33 * rankShare);
        QVERIFY(table.levers.front().title.starts_with("replica 1 as fast as the others (it takes 2.00×"));
        QVERIFY(find(table, "replica:0") == nullptr);
    }

    // A slow moment of another step is ranked by what it cost there, and says whose step it is.
    void slowMomentsOfOtherSteps()
    {
        LeverSubject subject = leverSubjectOf(StepContext(disturbed(scheduleFor("1f1b"), "launch=1:0.1"), 0)).value();
        subject.slowSteps = {{2, 3, 6.0, false}, {0, 0, 1.5, false}};
        const LeverTable table = leversOf(subject);
        const Lever* other = find(table, "transient:2@4");
        const Lever* own = find(table, "transient:0@1");
        const Lever* launch = find(table, "launch:1");
        QVERIFY(other && own && launch);
        QVERIFY(other->gain > own->gain && other->gain > launch->gain && own->gain > 0 && launch->gain > 0);
        QCOMPARE(other, &table.levers.front());
        QVERIFY(other->title.starts_with("another step: rank 2 in step 4"));
        QVERIFY(own->title.starts_with("rank 0 in step 1"));
        QCOMPARE(table.shown().front().name, other->name);
        // Where nothing of this step gains, its levers are shown as such beside the other step's.
        subject = leverSubjectOf(StepContext(disturbed(scheduleFor("1f1b"), ""), 0)).value();
        subject.slowSteps = {{2, 3, 6.0, false}};
        const auto shown = leversOf(subject).shown();
        QVERIFY(shown.size() > 1);
        QCOMPARE(shown.front().name, std::string("transient:2@4"));
        QVERIFY(shown.back().gain <= 0 && shown.back().step < 0);
    }

    void recomputation()
    {
        const Schedule plain = scheduleFor("1f1b");
        const Schedule schedule = withRecompute(plain, std::vector<bool>(4, true));
        const CostModel costs = samples::unitCosts(schedule);
        const LeverTable table = leversOf(StepContext(simulatedRun(schedule, costs).value(), 0));
        QVERIFY(find(table, "recompute") != nullptr);
        QCOMPARE(*find(table, "recompute")->makespan, simulate(plain, costs)->makespan);
    }

    void cap()
    {
        Shape shape(4, 8);
        shape.costs.memoryLimit = 2;
        const Schedule schedule = makeSchedule("zb-auto", shape).value();
        const Run run = simulatedRun(schedule, samples::unitCosts(schedule)).value();
        const LeverTable table = leversOf(StepContext(run, 0, {2 * activationShare}));
        const Lever* lever = find(table, "cap");
        QVERIFY(lever != nullptr && lever->makespan.has_value());
        QVERIFY(lever->gain > 0);
        QVERIFY(lever->peak > 2 * activationShare);
        QVERIFY(find(leversOf(StepContext(run, 0)), "cap") == nullptr); // no cap, no lever
        // For a placement that the planner does not support the reason is given.
        const Schedule chimera = scheduleFor("chimera");
        const LeverTable other =
            leversOf(StepContext(simulatedRun(chimera, samples::unitCosts(chimera)).value(), 0, {2 * activationShare}));
        QVERIFY(!find(other, "cap")->makespan.has_value());
        QVERIFY(!find(other, "cap")->reason.empty());
        QCOMPARE(other.levers.back().name, std::string("cap")); // unknown ones last
    }

    // A rank that is slow on every chunk is a straggler, and its stages are not to blame; a chunk that costs more alone
    // is.
    void slowRankOrDearStage_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("chunks");
        QTest::newRow("interleaved") << "interleaved-1f1b" << 2;
        QTest::newRow("chimera") << "chimera" << 0;
    }
    void slowRankOrDearStage()
    {
        QFETCH(QString, name);
        QFETCH(int, chunks);
        const Schedule schedule = scheduleFor(name.toStdString(), chunks);
        const Run slow = disturbed(schedule, "rank=2:2");
        const BubbleReport report = analyseBubbles(*slow.timeline, 0).value();
        QVERIFY(report.slowness[2].known);
        QVERIFY(std::fabs(report.slowness[2].factor - 2) < 1e-6);
        QVERIFY(idleOf(report, IdleCause::Straggler) > 0);
        QCOMPARE(idleOf(report, IdleCause::Imbalance), Nanos{0});
        QCOMPARE(stragglerRank(report), std::optional<int>(2));
        const std::string sentence = stragglerSentence(report, slow.timeline->timeUnit());
        QVERIFY2(sentence.find("rank 2 is busy") == 0 &&
                     sentence.find("the rank is slow, not its stages") != std::string::npos,
                 sentence.c_str());
        for (const Gap& gap : report.gaps)
            if (gap.cause == IdleCause::Straggler) {
                QCOMPARE(slow.timeline->trackOf(gap.blamed).rank, 2);
                QVERIFY(explainGap(*slow.timeline, gap).find("because rank 2 is slow: it takes 2.00× as long") !=
                        std::string::npos);
            }
        const LeverTable levers = leversOf(StepContext(slow, 0));
        QCOMPARE(levers.levers.front().name, std::string("rank:2"));
        const Lever* stages = find(levers, "stages");
        QVERIFY(stages == nullptr || stages->gain <= 0);

        CostModel costs = samples::unitCosts(schedule);
        const int dear = schedule.stages - 1;
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, dear, 3);
        const Run uneven = simulatedRun(schedule, costs).value();
        const BubbleReport other = analyseBubbles(*uneven.timeline, 0).value();
        QCOMPARE(idleOf(other, IdleCause::Straggler), Nanos{0});
        QVERIFY(idleOf(other, IdleCause::Imbalance) > 0);
        QCOMPARE(stragglerRank(other), std::optional<int>());
        QVERIFY(stragglerSentence(other, 1).empty());
        const LeverTable even = leversOf(StepContext(uneven, 0));
        QCOMPARE(even.levers.front().name, std::string("stages"));
    }

    // Replicas that go back to different layers: a backward that ends inside a stage takes less, and the ranks that go
    // through are not slow for that. One that is slow still is.
    void comparesLikeWithLike()
    {
        const std::vector<int> first{0, 0, 1};
        const Schedule schedule =
            withoutBackwardBelow(overReplicas(makeSchedule("1f1b", Shape(2, 4)).value(), 3).value(), first).value();
        CostModel costs = samples::unitCosts(schedule);
        costs.scaleOnRank(OpKind::Backward, 1, 5, schedule.placement, 0.25);
        costs.scaleOnRank(OpKind::Forward, 0, 4, schedule.placement, 0.8); // keeps nothing
        // by what would help, then by the step's report
        const auto slowRanks = [&] {
            std::vector<std::string> names;
            const Run run = simulatedRun(schedule, costs).value();
            for (const Lever& lever : leversOf(StepContext(run, 0)).levers)
                if (lever.kind == LeverKind::Rank) names.push_back(lever.name);
            const BubbleReport report = analyseBubbles(*run.timeline, 0).value();
            for (std::size_t rank = 0; rank < report.slowness.size(); ++rank)
                if (report.slowness[rank].factor > slowRank) names.push_back(std::to_string(rank));
            return names;
        };
        QCOMPARE(slowRanks(), std::vector<std::string>());
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
            costs.scaleOnRank(kind, 0, 2, schedule.placement, 2);
        QCOMPARE(slowRanks(), (std::vector<std::string>{"rank:2", "2"}));
    }

    // Replicas whose microbatches are larger take longer for each: that is not slowness.
    void largerMicrobatchesAreNotSlow()
    {
        const Schedule plain = makeSchedule("1f1b", Shape(2, 4)).value();
        const Schedule schedule = overReplicas(plain, 3).value();
        CostModel costs = samples::unitCosts(schedule);
        costs.sizes = {1, 1, 2};
        const auto slowRanks = [&] {
            std::vector<std::string> names;
            for (const Lever& lever : leversOf(StepContext(simulatedRun(schedule, costs).value(), 0)).levers)
                if (lever.kind == LeverKind::Rank) names.push_back(lever.name);
            return names;
        };
        QCOMPARE(slowRanks(), std::vector<std::string>());
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
            costs.scaleOnRank(kind, 0, 0, schedule.placement, 2);
        QCOMPARE(slowRanks(), std::vector<std::string>{"rank:0"});
    }

    // A link that is slower than the others gets what most of them have, and what it carries still takes its time; one
    // that only carries more bytes is not slow.
    void slowLinks()
    {
        const Schedule schedule = makeSchedule("1f1b", Shape(4, 8)).value();
        CostModel costs = samples::unitCosts(schedule);
        constexpr double speed = 1e9;
        for (StageMemory& stage : costs.memory) stage.boundary = 1'000'000; // 1 ms at this speed
        costs.links.all = {rankShare / 10, speed};
        costs.memory[1].boundary = 4'000'000;
        const auto levers = [&] { return leversOf(StepContext(simulatedRun(schedule, costs).value(), 0)); };
        const auto named = [](const LeverTable& table) {
            std::vector<std::string> names;
            for (const Lever& lever : table.levers)
                if (lever.kind == LeverKind::Link) names.push_back(lever.name);
            return names;
        };
        QCOMPARE(named(levers()), std::vector<std::string>());
        const Nanos before = *levers().simulated;
        for (const auto& way : {std::pair(2, 3), std::pair(3, 2)})
            costs.links.overrides[way] = {rankShare / 10, speed / 20};
        const LeverTable slow = levers();
        QCOMPARE(named(slow), std::vector<std::string>{"link:2-3"});
        QVERIFY(*slow.simulated > before);
        QCOMPARE(*find(slow, "link:2-3")->makespan, before); // not less: its bytes take the time of the others' link
    }

    // With one stage on a rank a step can't show which of the two it is, and the sentence says so.
    void oneStageARank()
    {
        const Run run = disturbed(scheduleFor("gpipe"), "rank=2:1.5");
        const BubbleReport report = analyseBubbles(*run.timeline, 0).value();
        QCOMPARE(stragglerRank(report), std::optional<int>(2));
        QVERIFY(stragglerSentence(report, run.timeline->timeUnit()).find("the rank is slow or its stage costs more") !=
                std::string::npos);
        QVERIFY(idleOf(report, IdleCause::Imbalance) > 0);
        QCOMPARE(idleOf(report, IdleCause::Straggler), Nanos{0});
    }

    // Order has the most idle time but no gain, so it is not first.
    void causesByGainNotByTotal()
    {
        const Run run = disturbed(scheduleFor("1f1b"), "link=1-2:0.25");
        const BubbleReport report = analyseBubbles(*run.timeline, 0).value();
        const LeverTable levers = leversOf(StepContext(run, 0));
        const auto byTotal = causesByGain(report.byCause, nullptr);
        const auto byGain = causesByGain(report.byCause, &levers);
        QCOMPARE(byTotal.size(), byGain.size());
        for (std::size_t i = 1; i < byGain.size(); ++i)
            QVERIFY(levers.gainOf(byGain[i - 1]).value_or(0) >= levers.gainOf(byGain[i]).value_or(0));
        QVERIFY(levers.gainOf(IdleCause::Transfer).value_or(0) > 0);
        QCOMPARE(byGain.front(), IdleCause::Transfer);
        QVERIFY(byTotal.front() != IdleCause::Transfer);
        QVERIFY(!levers.gainOf(IdleCause::Drain).has_value()); // nothing is about it
    }

    // A slow rank makes others idle as imbalance and as straggler: its gain counts for the larger of the two only, by
    // the lever's own figure, and what two levers share is in the report.
    void aGainCountsOnce()
    {
        const Schedule schedule = scheduleFor("1f1b");
        CostModel costs = samples::unitCosts(schedule);
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, 2, 1.5);
        LeverSubject subject = leverSubjectOf(StepContext(simulatedRun(schedule, costs).value(), 0)).value();
        const LeverTable table = [&] {
            subject.idle = {};
            subject.idle[static_cast<std::size_t>(IdleCause::Imbalance)] = 100;
            subject.idle[static_cast<std::size_t>(IdleCause::Straggler)] = 5;
            return leversOf(subject);
        }();
        const Lever* rank = find(table, "rank:2");
        QVERIFY(rank != nullptr && rank->gain > 0);
        const Lever* best = table.leverAgainst(IdleCause::Imbalance);
        QVERIFY(best != nullptr && best->gain >= rank->gain);
        QCOMPARE(table.gainOf(IdleCause::Imbalance), std::optional(best->gain));
        QVERIFY(table.leverAgainst(IdleCause::Straggler) == nullptr && !table.gainOf(IdleCause::Straggler));
        std::vector<std::string> names; // no lever counts for two causes
        for (std::size_t c = 0; c < idleCauseCount; ++c)
            if (const Lever* lever = table.leverAgainst(static_cast<IdleCause>(c))) names.push_back(lever->name);
        std::sort(names.begin(), names.end());
        QVERIFY(std::adjacent_find(names.begin(), names.end()) == names.end());
        // the stage that costs more is the rank that takes longer: both levers remove the same
        QVERIFY(table.together.has_value());
        const Lever *first = find(table, table.together->first), *second = find(table, table.together->second);
        QVERIFY(first != nullptr && second != nullptr);
        QCOMPARE(table.together->gain, *table.simulated - table.together->makespan);
        QCOMPARE(table.together->shared, first->gain + second->gain - table.together->gain);
        QVERIFY(table.together->shared > 0 && table.together->gain <= first->gain + second->gain);
        const Run run = simulatedRun(schedule, costs).value();
        const auto report = reportOf(run, {.levers = true});
        QVERIFY(report);
        std::string text;
        const document::Section section = leversSection(*report);
        for (const document::Element& element : section.elements)
            if (const auto* lines = std::get_if<document::Sentences>(&element))
                for (const std::string& line : lines->lines) text += line + '\n';
        QVERIFY2(text.find("both at once shorten the step by") != std::string::npos &&
                     text.find("that they share") != std::string::npos,
                 text.c_str());
    }

    // Of replicas a rank is named as the rows name it.
    void ranksOfReplicasAreNamedByTheirReplica()
    {
        const Schedule both = overReplicas(scheduleFor("1f1b"), 2).value();
        CostModel costs = samples::unitCosts(both);
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scaleOnRank(kind, 2, 6, both.placement, 2);
        const LeverTable table = leversOf(StepContext(simulatedRun(both, costs).value(), 0));
        const Lever* slow = find(table, "rank:6");
        QVERIFY(slow != nullptr);
        QVERIFY2(slow->title.starts_with("replica 1's rank 2 as fast as the others"), slow->title.c_str());
    }

    // What a lever's order does is what its title says.
    void theOrderIsNamedForWhatItDoes()
    {
        const auto titleFor = [](const char* name) {
            const Schedule schedule = scheduleFor(name);
            CostModel costs = samples::unitCosts(schedule);
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, 1, 3);
            const LeverTable table = leversOf(StepContext(simulatedRun(schedule, costs).value(), 0));
            const Lever* order = find(table, "order");
            return order == nullptr ? std::string() : order->title;
        };
        QVERIFY2(titleFor("1f1b").ends_with("(the next forwards first)"), titleFor("1f1b").c_str());
        QVERIFY2(titleFor("gpipe").find("next forwards") == std::string::npos, titleFor("gpipe").c_str());
    }

    void slowStepOfARun()
    {
        const Schedule schedule = scheduleFor("1f1b");
        Run run = repeated(disturbed(schedule, ""), 8, [](int) { return 1.0; });
        QVERIFY(leverSubjectOf(StepContext(run, 0))->slowSteps.empty());
        // every rank: the machine
        run = repeated(disturbed(schedule, ""), 8, [](int step) { return step == 4 ? 2.0 : 1.0; });
        QVERIFY(leverSubjectOf(StepContext(run, 0))->slowSteps.empty());
    }

    void samplesByOrderStatistics()
    {
        QVERIFY(!figureSampleOf({}).has_value());
        const auto upTo = [](int n) {
            std::vector<double> values;
            for (int i = n; i >= 1; --i) values.push_back(i);
            return *figureSampleOf(values);
        };
        QCOMPARE(upTo(5).median, 3.0);
        QCOMPARE(upTo(5).low, 1.0);
        QCOMPARE(upTo(5).high, 5.0);
        QVERIFY(!upTo(5).interval());
        QVERIFY(upTo(6).interval());
        QCOMPARE(upTo(6).median, 3.0); // the lower of two
        QCOMPARE(upTo(6).low, 1.0);
        QCOMPARE(upTo(6).high, 6.0);
        QCOMPARE(upTo(9).low, 2.0); // published tables of the sign test: n = 9, k = 2; n = 20, k = 6; n = 64, k = 24
        QCOMPARE(upTo(9).high, 8.0);
        QCOMPARE(upTo(20).low, 6.0);
        QCOMPARE(upTo(20).high, 15.0);
        QCOMPARE(upTo(64).low, 24.0);
        QCOMPARE(upTo(64).high, 41.0);
    }

    void samplesOfSteps()
    {
        Run run = repeated(disturbed(scheduleFor("1f1b"), ""), 100, [](int step) { return 1 + 0.01 * (step % 10); });
        run.info.warmupSteps = 2;
        const StepSamples samples = sampleSteps(StepContext(run, 0));
        QCOMPARE(samples.measured, 98);
        QCOMPARE(samples.steps.size(), std::size_t{64});
        QCOMPARE(samples.steps.front(), 2);
        QCOMPARE(samples.steps.back(), 99);
        for (std::size_t i = 1; i < samples.steps.size(); ++i) {
            QVERIFY(samples.steps[i] > samples.steps[i - 1]);
            QVERIFY(samples.steps[i] - samples.steps[i - 1] <= 2);
        }
        const FigureSample* makespan = samples.find("makespan");
        QVERIFY(makespan != nullptr);
        QCOMPARE(makespan->steps, 64);
        QVERIFY(makespan->low < makespan->median && makespan->median < makespan->high);
        QVERIFY(samples.find("bubble_fraction") != nullptr && samples.find("idle_by_cause.order") != nullptr);
        QVERIFY(sampleSteps(StepContext(disturbed(scheduleFor("1f1b"), ""), 0)).figures.empty()); // one step
    }

    // Below four measured steps no difference is claimed.
    void fewStepsClaimNothing()
    {
        const Run a = disturbed(scheduleFor("1f1b"), "");
        const Run b = disturbed(scheduleFor("1f1b"), "rank=2:2");
        const auto claimed = [&](int steps) {
            return compareRuns(repeated(a, steps, [](int) { return 1.0; }), repeated(b, steps, [](int) { return 1.0; }))
                .value();
        };
        const Comparison few = claimed(3);
        QVERIFY(!few.shows());
        QVERIFY2(few.headline.find("no difference is claimed") == 0, few.headline.c_str());
        QVERIFY(std::none_of(few.why.begin(), few.why.end(), [](const std::string& text) {
            return text.find("take longer in B") != std::string::npos;
        }));
        const Comparison enough = claimed(4);
        QVERIFY(enough.shows());
        QVERIFY2(enough.headline.find("slower") != std::string::npos, enough.headline.c_str());
        QVERIFY(std::any_of(enough.why.begin(), enough.why.end(), [](const std::string& text) {
            return text == "the ops of rank 2 take longer in B: forwards 2.00× and full backwards 2.00×";
        }));
    }
};

QTEST_GUILESS_MAIN(TestLevers)
#include "tst_levers.moc"
