// Comparing runs: the split of the change is exact, the sentences name what happened; fitting costs (law 2).
#include <numeric>

#include <QtTest/QtTest>

#include "sample_runs.h"
#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"
#include "traces/compare/compare.h"
#include "traces/export/html_report.h"
#include "traces/fit/fit_costs.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

bool mentions(const Comparison& comparison, std::initializer_list<const char*> words)
{
    return std::any_of(comparison.why.begin(), comparison.why.end(), [&](const std::string& sentence) {
        return std::all_of(words.begin(), words.end(),
                           [&](const char* word) { return sentence.find(word) != std::string::npos; });
    });
}

double metric(const Comparison& comparison, const char* key, bool ofB)
{
    for (const MetricDelta& delta : comparison.metrics)
        if (delta.key == key) return ofB ? delta.b : delta.a;
    return -1;
}

Run runOf(const Schedule& schedule, const CostModel& costs)
{
    Run run;
    run.timeline = simulatedTimeline(schedule, costs).value();
    run.schedule = run.timeline->schedule();
    run.costs = costs;
    return run;
}

// The same spans, measured by another clock.
std::shared_ptr<const Timeline> onClock(const Timeline& timeline, const char* clock)
{
    TimelineBuilder builder(timeline.provenance(), clock, timeline.ranks());
    builder.append(timeline);
    builder.setUnits(timeline.timeUnit(), timeline.memoryUnit());
    builder.setSchedule(timeline.schedule());
    return builder.build().value();
}

} // namespace

class TestCompare : public QObject {
    Q_OBJECT

private slots:
    // Median, median deviation; a change shows from twice the joint deviation on.
    void noiseOfSteps()
    {
        const Nanos quiet[] = {100, 102, 98, 101, 99, 100, 500};
        const StepSample sample = sampleOf(quiet); // one outlier changes nothing
        QCOMPARE(sample.median, 100);
        QCOMPARE(sample.mad, 1);
        QCOMPARE(sample.least, 98);
        QCOMPARE(sample.most, 500);
        QCOMPARE(sample.sigma, 1.4826);
        const NoiseVerdict small = verdictOn(4, sample, sample);
        QCOMPARE(*small.spread, 5); // 2 √2 · 1.4826 = 4.19
        QVERIFY(!small.shows);
        QVERIFY(verdictOn(5, sample, sample).shows);
        QVERIFY(!verdictOn(-4, sample, sample).shows);
        const Nanos mostlyAlike[] = {100, 100, 100, 100, 110};
        QCOMPARE(sampleOf(mostlyAlike).mad, 0);
        QCOMPARE(sampleOf(mostlyAlike).sigma, 1.2533 * 2); // the mean deviation where the median one is 0
        const Nanos few[] = {1, 2, 3};
        QVERIFY(!verdictOn(1000, sampleOf(few), sample).spread.has_value());
        QCOMPARE(*verdictOn(1, certain(7), certain(8)).spread, 0);
        QVERIFY(verdictOn(1, certain(7), certain(8)).shows);
        QCOMPARE(sampleOf({}).count, 0);
    }

    // For runs of one distribution at most one draw in twenty shows a difference; a change of ten deviations always
    // does.
    void noiseRuleOnDrawnSteps()
    {
        std::mt19937 random(7);
        std::normal_distribution<double> steps(1e6, 1e4);
        const auto draw = [&](double shift) {
            std::vector<Nanos> values;
            for (int i = 0; i < 12; ++i) values.push_back(std::llround(steps(random) + shift));
            return sampleOf(values);
        };
        int shown = 0;
        for (int i = 0; i < 400; ++i) {
            const StepSample a = draw(0);
            const StepSample b = draw(0);
            if (verdictOn(b.median - a.median, a, b).shows) ++shown;
            const StepSample far = draw(1e5);
            QVERIFY(verdictOn(far.median - a.median, a, far).shows);
        }
        QVERIFY2(shown <= 20, qPrintable(QString::number(shown)));
    }

    // A change below the spread between steps does not count as a difference.
    void changesWithinTheSpreadAreNotShown()
    {
        Run a = samples::simulatedRun("1f1b", 4, 8);
        const Schedule schedule = samples::schedule("1f1b", 4, 8);
        CostModel::UnitCosts units;
        units.forward = 1.01;
        Run b = a;
        b.timeline = simulatedTimeline(schedule, CostModel::uniform(schedule, units)).value();
        QVERIFY(!compareRuns(a, b).value().spread.has_value()); // a simulation has no noise
        QVERIFY(compareRuns(a, b).value().headline.find("slower") != std::string::npos);
        a.timeline = onClock(*a.timeline, "wall");
        b.timeline = onClock(*b.timeline, "wall");
        QVERIFY(!compareRuns(a, b).value().spread.has_value()); // without steps noise is not known
        QVERIFY(mentions(compareRuns(a, b).value(), {"noise is unknown"}));
        const double step = 33.0 * rankShare;
        a.metrics = {{"step_time_ns", "ns", {step, step * 1.05, step * 0.95, step * 1.05, step * 0.95}}};
        b.metrics = a.metrics;
        const Comparison noisy = compareRuns(a, b).value();
        // 2 √2 · 1.4826 · 0.05
        QVERIFY(*noisy.spread > std::llround(step * 0.2) && *noisy.spread < std::llround(step * 0.22));
        QVERIFY(noisy.withinSpread);
        QVERIFY(noisy.headline.starts_with("no significant difference"));
        QVERIFY(noisy.headline.find("faster") == std::string::npos &&
                noisy.headline.find("slower") == std::string::npos);
        a.metrics = b.metrics = {{"step_time_ns", "ns", {step, step, step + 5, step, step}}};
        QVERIFY(!compareRuns(a, b).value().withinSpread);
    }

    // The classes of the critical path sum to the makespan, their differences to the change; the ladder ends at B.
    void ledgerAndLadderAreExact_data()
    {
        QTest::addColumn<std::uint32_t>("seed");
        for (std::uint32_t seed = 0; seed < 60; ++seed) QTest::addRow("%u", seed) << seed;
    }

    void ledgerAndLadderAreExact()
    {
        QFETCH(std::uint32_t, seed);
        std::mt19937 random(seed);
        const auto library = allSchedules();
        const auto pick = [&] {
            const ScheduleInfo& info = library[random() % library.size()];
            const auto variants = variantsOf(info);
            return variants[random() % variants.size()];
        };
        const auto made = [&](const std::string& name) {
            const Schedule schedule = makeOnNearShape(name, Shape(4, 8)).value();
            CostModel costs = samples::unitCosts(schedule, 0.1 * static_cast<double>(random() % 8));
            for (int stage = 0; stage < schedule.stages; ++stage)
                for (const OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad})
                    costs.setDuration(kind, stage, 1 + static_cast<Nanos>(random() % 5'000'000));
            return runOf(schedule, costs);
        };
        const std::string nameA = pick();
        const std::string nameB = pick();
        const Run a = made(nameA);
        const Run b = made(nameB);
        const auto comparison = compareRuns(a, b);
        QVERIFY(comparison.has_value());
        const auto sum = [](const TimeByClass& classes) {
            return std::accumulate(classes.begin(), classes.end(), Nanos{0});
        };
        for (const Nanos part : comparison->ledgerA.byClass) QVERIFY(part >= 0);
        QCOMPARE(sum(comparison->ledgerA.byClass), comparison->reportA.bubbles.makespan());
        QCOMPARE(sum(comparison->ledgerB.byClass), comparison->reportB.bubbles.makespan());
        QCOMPARE(sum(comparison->ledgerB.byClass) - sum(comparison->ledgerA.byClass), comparison->change.makespanDelta);
        QVERIFY2(!comparison->ladder.empty(), comparison->noLadder.c_str());
        QCOMPARE(comparison->ladder.front().makespan, comparison->reportA.bubbles.stepTime());
        QCOMPARE(comparison->ladder.back().makespan, comparison->reportB.bubbles.stepTime());
        for (const LadderRung& rung : comparison->ladder) // both are simulated from their costs: nothing is left over
            QVERIFY2(rung.kind != RungKind::Rest, (nameA + " to " + nameB).c_str());
        Nanos changes = 0;
        for (const LadderRung& rung : comparison->ladder) changes += rung.change;
        QCOMPARE(changes, comparison->change.stepDelta);
    }

    // 1F1B to ZB-H2: 33, 30 with the backward split, 27 with the weight gradients placed.
    void theLadderToZeroBubble()
    {
        const auto comparison =
            compareRuns(samples::simulatedRun("1f1b", 4, 8), samples::simulatedRun("zb-h2", 4, 8)).value();
        QCOMPARE(comparison.ladder.size(), std::size_t{4});
        QCOMPARE(comparison.ladder[0].makespan, 33 * rankShare);
        QCOMPARE(comparison.ladder[1].kind, RungKind::Split);
        QCOMPARE(comparison.ladder[1].makespan, 30 * rankShare);
        QCOMPARE(comparison.ladder[2].kind, RungKind::Place);
        QCOMPARE(comparison.ladder[3].kind, RungKind::Order);
        QCOMPARE(comparison.ladder[3].makespan, 27 * rankShare);
        QVERIFY(comparison.ladder[3].title.starts_with("deeper warm-up: 7 forwards"));
        QCOMPARE(comparison.ledgerA.bottleneck, 3);
        QCOMPARE(comparison.ledgerA.of(PathClass::Work), 24 * rankShare);
        QCOMPARE(comparison.ledgerA.of(PathClass::Fill), 3 * rankShare);
        QCOMPARE(comparison.ledgerA.of(PathClass::Return), 6 * rankShare);
        QCOMPARE(comparison.ledgerB.of(PathClass::Return), 0);
        QVERIFY(mentions(comparison, {"on the critical path: return trip −6 units (6 units → 0 units)"}));
        QVERIFY(
            mentions(comparison, {"one change at a time: 33 units → 30 units (the backward is split into I and W)"}));
        const auto back =
            compareRuns(samples::simulatedRun("zb-h2", 4, 8), samples::simulatedRun("1f1b", 4, 8)).value();
        QCOMPARE(back.ladder.back().kind, RungKind::Split);
        QCOMPARE(back.ladder.back().makespan, 33 * rankShare);
        // GPipe and 1F1B take the same path
        const auto same =
            compareRuns(samples::simulatedRun("gpipe", 4, 8), samples::simulatedRun("1f1b", 4, 8)).value();
        QVERIFY(same.ledgerA.byClass == same.ledgerB.byClass);
        QVERIFY(mentions(same, {"same step time; the runs differ in memory"}));
    }

    // A unit-cost run has no nanoseconds: shares only, no sums over both.
    void unitsAreNotMixed()
    {
        const Schedule schedule = samples::schedule("1f1b", 2, 4);
        CostModel costs = samples::unitCosts(schedule);
        costs.timeUnit = costs.memoryUnit = 1;
        const Comparison mixed = compareRuns(samples::simulatedRun("1f1b", 2, 4), runOf(schedule, costs)).value();
        QVERIFY(!mixed.sameUnits);
        QCOMPARE(mixed.change.makespanDelta, 0);
        for (const MetricDelta& metric : mixed.metrics) QVERIFY2(metric.unit == "fraction", metric.key.c_str());
        QCOMPARE(metric(mixed, "idle_share.warmup", false), metric(mixed, "idle_share.warmup", true));
        QVERIFY(mixed.ladder.empty() && !mixed.noLadder.empty());
        QVERIFY(std::any_of(mixed.differences.begin(), mixed.differences.end(),
                            [](const RunDifference& one) { return one.key == "time_unit"; }));
        for (const OpDelta& op : mixed.ops) QCOMPARE(op.startDelta, 0);
    }

    void whatWasNotMadeAlikeIsSaid()
    {
        Run a = samples::simulatedRun("1f1b", 4, 8);
        Run b = samples::simulatedRun("1f1b", 4, 16);
        a.configuration = {{"model", "layers=8"}, {"microbatch_size", "4"}};
        b.configuration = {{"model", "layers=16"}, {"microbatch_size", "4"}};
        b.info.clock = "wall";
        const Comparison comparison = compareRuns(a, b).value();
        QStringList keys;
        for (const RunDifference& one : comparison.differences) keys << QString::fromStdString(one.key);
        QCOMPARE(keys, (QStringList{"microbatches", "model", "clock"}));
        QVERIFY(comparison.why.front().starts_with(
            "different setups: microbatches 8 against 16, model layers=8 against layers=16 and clock"));
        QVERIFY(compareRuns(a, a).value().differences.empty());
    }

    // Steps whose ops take the same time, but one waits for its reductions behind them: that is what is compared, and
    // said.
    void wholeStepsAreCompared()
    {
        ShardRules rules;
        rules.reduce = ReduceRule::Overlapped;
        const Schedule schedule =
            addShardOps(makeSchedule("1f1b", Shape(4, 8)).value(), ShardLevel::Weights, rules).value();
        const auto made = [&](Nanos reduction, const char* bucket) {
            CostModel costs = CostModel::uniform(schedule);
            costs.replicas = 4;
            costs.sharding.level = ShardLevel::Weights;
            costs.links.collectives = ResourceUse::Beside;
            for (int stage = 0; stage < 4; ++stage) costs.setDuration(OpKind::ReduceGrad, stage, reduction);
            Run run = simulatedRun(schedule, costs).value();
            run.configuration.insert(
                run.configuration.end(),
                {{"replicas", "4"}, {"shard", "weights"}, {"reduce", "overlapped"}, {"collectives", "ring"}});
            if (*bucket != 0) run.configuration.emplace_back("bucket_bytes", bucket);
            return run;
        };
        const auto comparison = compareRuns(made(rankShare, ""), made(30 * rankShare, "10000"));
        QVERIFY(comparison.has_value());
        QCOMPARE(comparison->change.makespanDelta, Nanos{0});
        QCOMPARE(comparison->change.stepDelta, 29 * rankShare);
        QCOMPARE(comparison->headline, std::string("B is 85.3 % slower: 63 units against 34 units"));
        QCOMPARE(metric(*comparison, "whole_step_ns", true), 63.0 * static_cast<double>(rankShare));
        QCOMPARE(metric(*comparison, "makespan_ns", true), 33.0 * static_cast<double>(rankShare));
        QVERIFY(mentions(*comparison, {"behind the last", "1 unit → 30 units"}) ||
                mentions(*comparison, {"after the last", "1 unit → 30 units"}));
        QCOMPARE(comparison->differences.size(), std::size_t{1});
        QCOMPARE(comparison->differences[0].key, std::string("bucket_bytes"));
        QCOMPARE(comparison->differences[0].a, std::string("none"));
        QCOMPARE(comparison->ladder.size(), std::size_t{2});
        QCOMPARE(comparison->ladder[1].kind, RungKind::Sharing);
        QCOMPARE(comparison->ladder[1].change, 29 * rankShare);
    }

    // ZeRO 3 by microbatch and by batch: the order of forwards and backwards is one, only the gathers differ.
    void gathersAreARungOfTheirOwn()
    {
        const auto made = [](GatherRule gather) {
            ShardRules rules;
            rules.gather = gather;
            const Schedule schedule =
                addShardOps(makeSchedule("1f1b", Shape(4, 8)).value(), ShardLevel::Weights, rules).value();
            CostModel costs = CostModel::uniform(schedule);
            costs.replicas = 4;
            costs.sharding.level = ShardLevel::Weights;
            costs.links.collectives = ResourceUse::Beside;
            for (int stage = 0; stage < 4; ++stage) costs.setDuration(OpKind::Unshard, stage, rankShare / 2);
            return simulatedRun(schedule, costs).value();
        };
        const auto comparison = compareRuns(made(GatherRule::Microbatch), made(GatherRule::Batch));
        QVERIFY(comparison.has_value());
        QCOMPARE(comparison->ladder.size(), std::size_t{2});
        QCOMPARE(comparison->ladder[1].title, std::string("B's gathers and reductions"));
        QCOMPARE(comparison->differences.size(), std::size_t{1});
        QCOMPARE(comparison->differences[0].title, std::string("gathers"));
        QCOMPARE(comparison->differences[0].a, std::string("microbatch"));
        QCOMPARE(comparison->differences[0].b, std::string("batch"));
    }

    void noDisturbanceIsNotUnknown()
    {
        Run calm = samples::simulatedRun("1f1b", 4, 8);
        Run slow = calm;
        slow.configuration.emplace_back("perturb", "rank=1:1.5");
        const auto comparison = compareRuns(calm, slow);
        QVERIFY(comparison.has_value());
        QCOMPARE(comparison->differences.size(), std::size_t{1});
        QCOMPARE(comparison->differences[0].a, std::string("none"));
        QVERIFY(mentions(*comparison, {"different setups: disturbance none against rank=1:1.5"}));
        calm.info.provenance = slow.info.provenance = Provenance::Imported;
        QCOMPARE(compareRuns(calm, slow)->differences[0].a, std::string());
    }

    // Whichever run is A, the rank that is slow in one of them is named, with the run it is slow in.
    void theSlowRankIsNamedInBothDirections()
    {
        const Run calm = samples::simulatedRun("1f1b", 4, 8);
        CostModel costs = *calm.costs;
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, 2, 1.5);
        const Run slow = simulatedRun(*calm.schedule, costs).value();
        const Comparison there = compareRuns(calm, slow).value(), back = compareRuns(slow, calm).value();
        QVERIFY(mentions(there, {"the ops of rank 2 take longer in B: forwards 1.50× and full backwards 1.50×"}));
        QVERIFY(!mentions(there, {"take longer in A"}));
        QVERIFY(mentions(back, {"the ops of rank 2 take longer in A: forwards 1.50× and full backwards 1.50×"}));
        QVERIFY(!mentions(back, {"take longer in B"}));
    }

    // An order that was recorded without the disturbance of the run it is compared with is credited only with what it
    // changes under that run's own conditions.
    void otherConditionsLead()
    {
        Run slow = samples::simulatedRun("gpipe", 4, 8);
        CostModel costs = *slow.costs;
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, 2, 1.5);
        slow = simulatedRun(*slow.schedule, costs).value();
        slow.configuration.emplace_back("perturb", "rank=2:1.5");
        const Run edited = samples::simulatedRun("1f1b", 4, 8);
        const Comparison comparison = compareRuns(slow, edited).value();
        QVERIFY2(comparison.headline.starts_with("with another disturbance, B is "), comparison.headline.c_str());
        QVERIFY(comparison.why.size() > 2);
        QVERIFY2(comparison.why[0].starts_with("different setups: "), comparison.why[0].c_str());
        Nanos ofOrder = 0;
        for (const LadderRung& rung : comparison.ladder)
            if (rung.kind == RungKind::Order) ofOrder += rung.change;
        const Nanos all = comparison.change.stepDelta, unit = slow.timeline->timeUnit();
        const auto text = [unit](Nanos time) { return (time > 0 ? "+" : "") + formatDuration(time, unit); };
        QVERIFY(all < 0 && ofOrder != all);
        QCOMPARE(QString::fromStdString(comparison.why[1]),
                 QString::fromStdString(fmt::format(
                     "the schedule of B accounts for {} of {}, simulated with A's conditions; the rest, {}, comes with "
                     "another disturbance",
                     text(ofOrder), text(all), text(all - ofOrder))));
        // the same order: all of it comes with the conditions
        Run calm = samples::simulatedRun("gpipe", 4, 8);
        QVERIFY(mentions(compareRuns(slow, calm).value(), {"both run the same order", "another disturbance"}));
        // under the same conditions nothing is said
        calm.configuration.emplace_back("perturb", "rank=2:1.5");
        QVERIFY(!mentions(compareRuns(slow, calm).value(), {"another disturbance"}));
    }

    void splitIsExact_data()
    {
        QTest::addColumn<QString>("a");
        QTest::addColumn<QString>("b");
        const QStringList names{"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"};
        for (const QString& a : names)
            for (const QString& b : names) QTest::addRow("%s, %s", qPrintable(a), qPrintable(b)) << a << b;
    }

    void splitIsExact()
    {
        QFETCH(QString, a);
        QFETCH(QString, b);
        const auto comparison = compareRuns(samples::simulatedRun(a.toStdString(), 4, 8, 0.25),
                                            samples::simulatedRun(b.toStdString(), 4, 8, 0.5));
        QVERIFY(comparison.has_value());
        const ChangeSplit& change = comparison->change;
        Nanos idle = 0;
        for (const Nanos part : change.idleDelta) idle += part;
        QCOMPARE(4 * change.makespanDelta, change.busyDelta + change.apartDelta + idle);
        QCOMPARE(change.unexplained, 0);
        QVERIFY(!comparison->headline.empty());
        QCOMPARE(comparison->ops.size() >= 64, true);
        for (std::size_t i = 1; i < comparison->ops.size(); ++i)
            QVERIFY(std::llabs(comparison->ops[i - 1].startDelta) >= std::llabs(comparison->ops[i].startDelta));
    }

    // A run that changes the mathematics says so, whatever its speed.
    void deviationIsTold()
    {
        Run a = samples::simulatedRun("1f1b", 4, 8);
        Run b = samples::simulatedRun("pipedream", 4, 8);
        QVERIFY(weightsText(a).empty());
        QVERIFY(mentions(compareRuns(a, b).value(),
                         {"B changes the mathematics", "stashed", "record the schedule to measure the deviation"}));
        b.metrics = {{"deviation", "", {0.01, 0.25}}};
        b.configuration = {{"weights", "stashed"}};
        const Comparison comparison = compareRuns(a, b).value();
        QVERIFY(mentions(comparison, {"B changes the mathematics", "stashed: 25.0 % from synchronous training"}));
        QCOMPARE(metric(comparison, "deviation", false), 0.0);
        QCOMPARE(metric(comparison, "deviation", true), 0.25);
        QVERIFY(!mentions(compareRuns(a, a).value(), {"mathematics"}));
    }

    void aRunAgainstItselfIsTheSame()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.5);
        const auto comparison = compareRuns(run, run).value();
        QCOMPARE(QString::fromStdString(comparison.headline), QString("A and B take the same time: 33 units"));
        for (const MetricDelta& delta : comparison.metrics) QCOMPARE(delta.delta(), 0.0);
        for (const OpDelta& op : comparison.ops) QVERIFY(op.a == op.b && op.startDelta == 0 && op.durationDelta == 0);
        QVERIFY(mentions(comparison, {"peak activation is the same"}));
        QCOMPARE(comparison.why.size(), std::size_t{1});
    }

    void zeroBubbleAgainstOneFOneB()
    {
        const auto comparison =
            compareRuns(samples::simulatedRun("1f1b", 4, 8), samples::simulatedRun("zb-h1", 4, 8)).value();
        QCOMPARE(QString::fromStdString(comparison.headline), QString("B is 18.2 % faster: 27 units against 33 units"));
        QCOMPARE(metric(comparison, "makespan_ns", false), 33.0 * rankShare);
        QCOMPARE(metric(comparison, "makespan_ns", true), 27.0 * rankShare);
        QCOMPARE(metric(comparison, "peak_activation_bytes.rank3", false), 1.0 * activationShare);
        QCOMPARE(metric(comparison, "peak_activation_bytes.rank3", true), 4.0 * activationShare);
        QVERIFY(mentions(comparison, {"4 ranks × −6 units", "idle −24 units", "drain −12 units"}));
        QVERIFY(mentions(comparison, {"rank 0 waits 3 units before 0I0 instead of 6 units", "1I0 on rank 1",
                                      "weight gradient runs later"}));
        QVERIFY(mentions(comparison, {"peak activation rose", "rank 3 from 1 microbatch to 4 microbatches"}));
        QVERIFY(mentions(comparison, {"0 ops of A and 32 ops of B have no partner"}));
    }

    // The main workflow: one op moved by hand, and the comparison names it.
    void aMovedOpIsNamed()
    {
        const Schedule schedule = samples::schedule("zb-h1", 4, 8);
        const CostModel costs = samples::unitCosts(schedule);
        // let rank 3 run 3W0 before 3I1: its gradients leave later, rank 2 waits
        const auto& order = schedule.order[3];
        const auto place = [&](const char* text) {
            return static_cast<int>(std::find(order.begin(), order.end(), parseOp(text).value()) - order.begin());
        };
        const auto edited = moveOps(schedule, {{3, place("3W0")}}, place("3I1") - place("3W0"));
        QVERIFY(edited.has_value());
        QVERIFY(validate(edited->schedule).valid());
        const auto comparison = compareRuns(runOf(schedule, costs), runOf(edited->schedule, costs)).value();
        QVERIFY2(mentions(comparison, {"rank 2", "3I1 on rank 3 ends 1 unit later", "3W0 runs before it"}),
                 comparison.why.empty() ? "" : comparison.why.back().c_str());
        const auto back = compareRuns(runOf(edited->schedule, costs), runOf(schedule, costs)).value();
        QVERIFY(mentions(back, {"rank 2", "3I1 on rank 3 ends 1 unit earlier", "3W0 runs after it"}));
        QVERIFY(comparison.change.makespanDelta >= 0);
    }

    void simulatedAgainstMeasured()
    {
        // "measured": the same ops with other times, on a real clock
        const Schedule schedule = samples::schedule("1f1b", 2, 4);
        CostModel costs = samples::unitCosts(schedule);
        costs.timeUnit = 1;
        costs.memoryUnit = 1;
        Run simulated = runOf(schedule, costs);
        costs.setDuration(OpKind::Backward, 1, 3 * rankShare);
        const Run slower = runOf(schedule, costs);
        const auto comparison = compareRuns(simulated, slower).value();
        QVERIFY(comparison.headline.find("slower") != std::string::npos);
        QVERIFY(mentions(comparison, {"1B", "on rank 1 ends", "longer"}));
        const auto units = compareRuns(samples::simulatedRun("1f1b", 2, 4), slower).value();
        QVERIFY(units.headline.find("different units") != std::string::npos);
    }

    void differentShapesCompareByWhatTheyShare()
    {
        const auto comparison =
            compareRuns(samples::simulatedRun("1f1b", 2, 4), samples::simulatedRun("1f1b", 4, 8)).value();
        QVERIFY(mentions(comparison, {"A runs on 2 ranks and B on 4"}));
        QVERIFY(mentions(comparison, {"have no partner"}));
        QVERIFY(!compareRuns(Run{}, Run{}).has_value());
        Run empty;
        empty.timeline = TimelineBuilder(Provenance::Imported, "", 2).build().value();
        QVERIFY(compareRuns(empty, empty).has_value());
        QVERIFY(compareRuns(empty, samples::simulatedRun("1f1b", 2, 4)).has_value());
        const auto noStep = compareRuns(samples::simulatedRun("1f1b", 2, 4), samples::simulatedRun("1f1b", 2, 4), 0, 7);
        QVERIFY(!noStep.has_value());
        QCOMPARE(noStep.error().code, ErrorCode::Usage);
    }

    // Wherever it is: the stop comes from its own reports.
    void comparingCanBeStopped()
    {
        const Run a = samples::simulatedRun("1f1b", 4, 8), b = samples::simulatedRun("zb-h1", 4, 8);
        int reports = 0;
        Progress counting;
        counting.report = [&](std::string_view, std::int64_t, std::int64_t) { ++reports; };
        QVERIFY(compareRuns(a, b, -1, -1, counting).has_value());
        QVERIFY(reports >= 4);
        for (int at = 1; at <= reports; ++at) {
            std::stop_source stop;
            int reached = 0;
            Progress progress;
            progress.stop = stop.get_token();
            progress.report = [&](std::string_view, std::int64_t, std::int64_t) {
                if (++reached == at) stop.request_stop();
            };
            const auto stopped = compareRuns(a, b, -1, -1, progress);
            QVERIFY2(!stopped && stopped.error().code == ErrorCode::Cancelled, std::to_string(at).c_str());
            QCOMPARE(reached, at); // nothing went on
            reached = 0;
            HtmlOptions options; // stopped before it starts
            options.progress = progress;
            const auto page = htmlComparison(a, b, options);
            QVERIFY(!page && page.error().code == ErrorCode::Cancelled);
        }
        std::stop_source stop;
        stop.request_stop();
        QCOMPARE(ladderOf(a, 1, b, 1, stop.get_token()).error().code, ErrorCode::Cancelled);
    }

    // Law 2: fitCosts(simulate(S, C)) == C for every (kind, stage, rank) that occurs; from parts, stacked ops and
    // pairs, too.
    void fittedCostsAreTheCosts_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<std::uint32_t>("seed");
        for (const std::string& variant : everyVariant())
            for (std::uint32_t seed = 0; seed < 3; ++seed)
                QTest::addRow("%s %u", variant.c_str(), seed) << QString::fromStdString(variant) << seed;
    }

    void fittedCostsAreTheCosts()
    {
        QFETCH(QString, name);
        QFETCH(std::uint32_t, seed);
        std::mt19937 random(seed);
        const Schedule schedule = samples::schedule(name.toStdString(), 4, 8);
        CostModel costs = samples::unitCosts(schedule, seed % 2 == 0 ? 0.0 : 0.3);
        costs.timeUnit = 1;
        std::uniform_int_distribution<Nanos> duration(1, 5'000'000);
        for (int stage = 0; stage < schedule.stages; ++stage)
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad}) {
                costs.setDuration(kind, stage, duration(random));
                costs.memory[static_cast<std::size_t>(stage)].activation = duration(random);
                costs.memory[static_cast<std::size_t>(stage)].freedAtInput = duration(random) / 10;
                costs.memory[static_cast<std::size_t>(stage)].weight = duration(random);
            }
        const auto timeline = simulatedTimeline(schedule, costs).value();
        const auto fitted = fitCosts(*timeline);
        QVERIFY2(fitted.has_value(), fitted ? "" : fitted.error().message.c_str());
        for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
            for (const Op& op : schedule.order[rank])
                QCOMPARE(fitted->duration(op, static_cast<int>(rank)), costs.duration(op, static_cast<int>(rank)));
        QCOMPARE(fitted->links.all, costs.links.all);
        for (std::size_t stage = 0; stage < costs.memory.size(); ++stage) {
            QCOMPARE(fitted->memory[stage].activation, costs.memory[stage].activation);
            if (schedule.splitsBackward())
                QCOMPARE(fitted->memory[stage].freedAtInput, costs.memory[stage].freedAtInput);
            QCOMPARE(fitted->memory[stage].weight, costs.memory[stage].weight);
        }
        // and so the fitted model predicts the same timeline
        QCOMPARE(simulate(schedule, *fitted)->makespan, simulate(schedule, costs)->makespan);
        QCOMPARE(simulate(schedule, *fitted)->peakActivation, simulate(schedule, costs)->peakActivation);
    }

    // … and for launch delays, microbatches with times of their own and overlapped pairs.
    void fittedVariationIsTheCosts_data() { fittedCostsAreTheCosts_data(); }
    void fittedVariationIsTheCosts()
    {
        QFETCH(QString, name);
        QFETCH(std::uint32_t, seed);
        std::mt19937 random(seed + 100);
        const Schedule schedule = samples::schedule(name.toStdString(), 4, 8);
        CostModel costs = samples::unitCosts(schedule, seed % 2 == 0 ? 0.0 : 0.3);
        costs.timeUnit = 1;
        std::uniform_int_distribution<Nanos> duration(1, 5'000'000);
        for (int stage = 0; stage < schedule.stages; ++stage)
            for (const OpKind kind :
                 {OpKind::Forward, OpKind::Backward, OpKind::InputGrad, OpKind::WeightGrad, OpKind::Recompute})
                costs.setDuration(kind, stage, duration(random));
        for (int rank = 0; rank < schedule.ranks; ++rank) costs.launch.push_back(rank == 1 ? 0 : duration(random) / 5);
        std::map<std::tuple<OpKind, int, int>, int> alone; // whole, unpaired ops by kind, stage and rank
        const auto pairedAt = [&](std::size_t rank, std::size_t i) {
            return schedule.isPaired(static_cast<int>(rank), i) ||
                   (i > 0 && schedule.isPaired(static_cast<int>(rank), i - 1));
        };
        const auto whole = [](const Op& op) {
            return isBusy(op.kind) && op.count == 1 && op.half == 0 && op.slice < 0;
        };
        for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
            for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
                const Op& op = schedule.order[rank][i];
                if (!whole(op) || pairedAt(rank, i)) continue;
                // of every fourth, so that the others are the median
                if (++alone[{op.kind, op.stage, static_cast<int>(rank)}] % 4 == 3 && random() % 2 == 0)
                    costs.setMicrobatchDuration(op.kind, op.stage, op.microbatch, 5'000'000 + duration(random));
            }
        for (std::size_t rank = 0; rank < schedule.paired.size(); ++rank)
            for (const std::uint32_t i : schedule.paired[rank]) {
                const Op& a = schedule.order[rank][i];
                const Op& b = schedule.order[rank][i + 1];
                const bool known = alone[{a.kind, a.stage, static_cast<int>(rank)}] > 0 &&
                                   alone[{b.kind, b.stage, static_cast<int>(rank)}] > 0;
                if (known && whole(a) && whole(b) && costs.pairDuration(a, b, static_cast<int>(rank)) < 0)
                    costs.setPairDuration(a.kind, a.stage, b.kind, b.stage, static_cast<int>(rank),
                                          costs.duration(a.kind, a.stage, 0) + costs.duration(b.kind, b.stage, 0) - 1 -
                                              duration(random) % 2);
            }
        const auto timeline = simulatedTimeline(schedule, costs).value();
        const CostModel fitted = fitCosts(*timeline).value();
        QCOMPARE(fitted.launch, costs.launch);
        QCOMPARE(fitted.jitter, 0.0);
        QCOMPARE(durationsOf(schedule, fitted), durationsOf(schedule, costs));
        QCOMPARE(fitted.hasMicrobatchDurations(), costs.hasMicrobatchDurations());
        QCOMPARE(fitted.hasPairDurations(), costs.hasPairDurations());
        const SimResult again = simulate(schedule, fitted).value();
        const SimResult was = simulate(schedule, costs).value();
        QCOMPARE(again.start, was.start);
        QCOMPARE(again.end, was.end);
    }

    // A rank that waits in a send or receive is not late.
    void launchOfLoweredListsIsFitted()
    {
        for (const char* name : {"gpipe", "1f1b", "zb-h1"})
            for (const SendMode sends : {SendMode::Buffered, SendMode::Rendezvous}) {
                const Schedule lowered = lower(samples::schedule(name, 4, 8), *parseLowering("pytorch")).value();
                CostModel costs = samples::unitCosts(lowered, 0.4);
                costs.launch = {rankShare / 5, 0, rankShare / 3, 0};
                Channels channels;
                channels.sends = sends;
                const auto timeline = simulatedTimeline(lowered, costs, channels);
                if (!timeline) continue; // it hangs under rendezvous
                QCOMPARE(fitCosts(**timeline)->launch, costs.launch);
            }
    }

    // Jitter drawn over several steps is found, and no microbatch is taken for another.
    void jitterIsFitted()
    {
        const Schedule schedule = samples::schedule("1f1b", 4, 8);
        for (const double sigma : {0.03, 0.2}) {
            TimelineBuilder builder(Provenance::Measured, "virtual", 4);
            for (int step = 0; step < 8; ++step) {
                CostModel costs = samples::unitCosts(schedule);
                costs.jitter = sigma;
                costs.jitterSeed = static_cast<std::uint64_t>(step) + 1;
                costs.setMicrobatchDuration(OpKind::Forward, 2, 5, 3 * rankShare);
                const auto timeline = simulatedTimeline(schedule, costs).value();
                for (const Track& track : timeline->tracks())
                    for (Span span : timeline->spansOf(track)) {
                        span.step = step;
                        span.start += step * Nanos{100} * rankShare;
                        span.end += step * Nanos{100} * rankShare;
                        builder.addSpan(builder.addTrack(track.rank, track.lane, track.name), span);
                    }
            }
            const CostModel fitted = fitCosts(*builder.build().value()).value();
            QVERIFY2(std::abs(fitted.jitter / sigma - 1) < 0.15, qPrintable(QString::number(fitted.jitter)));
            const auto of = [&](const char* op) {
                return static_cast<double>(fitted.duration(*parseOp(op), 2)) / rankShare;
            };
            QVERIFY2(std::abs(of("2F5") / 3 - 1) < 2 * sigma, qPrintable(QString::number(of("2F5"))));
            int other = 0;
            for (int stage = 0; stage < 4; ++stage)
                for (int microbatch = 0; microbatch < 8; ++microbatch)
                    for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                        other += fitted.duration(makeOp(kind, stage, microbatch), stage) !=
                                 fitted.duration(kind, stage, stage);
            QCOMPARE(other, 1);
        }
    }

    // Two ops in one interval: by processor time, else by what is left beside a known op, else by what their kinds
    // usually take.
    void pairsAreParted()
    {
        const auto fitted = [](bool alone, Nanos cpuF, Nanos cpuB) {
            TimelineBuilder builder(Provenance::Measured, "virtual", 1);
            const int track = builder.addTrack(0, Lane::Compute);
            const auto add = [&](OpKind kind, int stage, int microbatch, Nanos start, Nanos end, Nanos cpu) {
                Span span;
                span.op = makeOp(kind, stage, microbatch);
                span.start = start;
                span.end = end;
                builder.addSpan(track, span, cpu);
            };
            add(OpKind::Forward, 0, 0, 0, 900, cpuF);
            add(OpKind::Backward, 1, 1, 0, 900, cpuB);
            if (alone) add(OpKind::Backward, 1, 2, 900, 1400, 500);
            return fitCosts(*builder.build().value()).value();
        };
        QCOMPARE(fitted(false, -1, -1).duration(OpKind::Forward, 0, 0), 300);
        QCOMPARE(fitted(false, -1, -1).duration(OpKind::Backward, 1, 0), 600);
        QCOMPARE(fitted(true, -1, -1).duration(OpKind::Forward, 0, 0), 400);
        QCOMPARE(fitted(true, -1, -1).duration(OpKind::Backward, 1, 0), 500);
        QCOMPARE(fitted(false, 100, 125).duration(OpKind::Forward, 0, 0), 400);
        QCOMPARE(fitted(false, 100, 125).duration(OpKind::Backward, 1, 0), 500);
        QCOMPARE(fitted(true, 100, 800).duration(OpKind::Backward, 1, 0), 500); // alone, it is known
    }

    // Slices that take other times than their lengths say: the fit has the measured shares, and repeats the run.
    void slicesTakeWhatTheyTook()
    {
        const Schedule schedule = samples::schedule("terapipe:slices=4", 2, 2);
        CostModel costs = samples::unitCosts(schedule);
        costs.sliceStarts = {0, 10, 30, 60, 100};
        const auto fitted = fitCosts(*simulatedTimeline(schedule, costs).value());
        QVERIFY(fitted.has_value());
        for (int slice = 0; slice < 4; ++slice) {
            Op op = makeOp(OpKind::Forward, 0, 0);
            op.slice = static_cast<std::int16_t>(slice);
            QCOMPARE(fitted->duration(op, 0), costs.duration(op, 0));
        }
        QCOMPARE(simulate(schedule, *fitted)->makespan, simulate(schedule, costs)->makespan);
    }

    void slowRanksAndWarmUpAreTold()
    {
        const Schedule schedule = samples::schedule("gpipe", 2, 4);
        TimelineBuilder builder(Provenance::Measured, "wall", 2);
        for (int step = 0; step < 4; ++step) {
            CostModel costs = samples::unitCosts(schedule);
            costs.timeUnit = 1;
            costs.setDuration(OpKind::Forward, 0, step == 0 ? 900 : 100 + step);
            const auto timeline = simulatedTimeline(schedule, costs).value();
            for (const Track& track : timeline->tracks())
                for (Span span : timeline->spansOf(track)) {
                    span.step = step;
                    span.start += step * Nanos{1'000'000'000};
                    span.end += step * Nanos{1'000'000'000};
                    builder.addSpan(builder.addTrack(track.rank, track.lane, track.name), span);
                }
        }
        const auto timeline = builder.build().value();
        QCOMPARE(fitCosts(*timeline, 1)->duration(OpKind::Forward, 0, 0), 102); // the median of 101, 102, 103
        QVERIFY(!fitCosts(*timeline, 4).has_value());
        QCOMPARE(fitCosts(*timeline, 4).error().code, ErrorCode::Invalid);
    }

    void theRepresentativeStepIsTheMedian()
    {
        Run run = samples::simulatedRun("1f1b", 2, 2);
        QCOMPARE(run.representativeStep(), 0);
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const Nanos lengths[] = {900, 10, 30, 20, 40};
        Nanos at = 0;
        for (int step = 0; step < 5; ++step) {
            Span span;
            span.op = makeOp(OpKind::Forward, 0, 0);
            span.step = step;
            span.start = at;
            span.end = at += lengths[step];
            builder.addSpan(builder.addTrack(0, Lane::Compute), span);
        }
        run.timeline = builder.build().value();
        run.info.warmupSteps = 1;
        QCOMPARE(run.representativeStep(), 3); // of 10, 30, 20, 40: 20 and 30 are in the middle, 20 is faster
        run.metrics = {{"step_time_ns", "ns", {1, 5, 6, 7, 100}}};
        QCOMPARE(run.representativeStep(), 2);
        run.info.warmupSteps = 9;
        QCOMPARE(run.representativeStep(), 2); // nothing but warm-up: all steps count, 6 is in the middle
    }
};

QTEST_APPLESS_MAIN(TestCompare)
#include "tst_compare.moc"
