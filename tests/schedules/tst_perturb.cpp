// Disturbances, layers by stage and recomputation of simulated schedules; 1F1B on 4 ranks, 8 microbatches, F = I = W =
// 1.
#include <QtTest/QtTest>

#include <cmath>
#include <map>

#include "schedules/check/validate.h"
#include "schedules/execute/jitter.h"
#include "schedules/execute/perturb.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/recompute.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

Schedule oneFOneB() { return makeSchedule("1f1b", {4, 8}).value(); }

CostModel costsWith(const Schedule& schedule, double latency)
{
    CostModel::UnitCosts units;
    units.latency = latency;
    return CostModel::uniform(schedule, units);
}

double makespanOf(const Schedule& schedule, const CostModel& costs)
{
    return static_cast<double>(simulate(schedule, costs).value().makespan) / rankShare;
}

QString errorOf(const char* text)
{
    const auto read = parsePerturbation(text, 4);
    return read ? QString() : QString::fromStdString(read.error().message);
}

} // namespace

class TestPerturb : public QObject {
    Q_OBJECT

private slots:
    // A secret is one disturbance, the same for the same seed and ranks; every kind and place is drawn. It disturbs
    // like its text.
    void secretsAreDrawnFromTheirSeed()
    {
        std::map<std::string, int> kinds;
        for (int seed = 0; seed < 300; ++seed) {
            Perturbation hidden;
            hidden.secret = seed;
            const Perturbation is = revealed(hidden, 4);
            QCOMPARE(is.ranks.size() + is.links.size() + is.launches.size(), std::size_t(1));
            QVERIFY(!is.secret && revealed(hidden, 4) == is && revealed(is, 4) == is);
            QVERIFY(parsePerturbation(toText(is), 4).value() == is); // on these ranks
            ++kinds[toText(is).substr(0, 6)];
            const Schedule schedule = oneFOneB();
            const CostModel even = costsWith(schedule, 0.125);
            CostModel said = perturbed(schedule, even, is, rankShare),
                      unsaid = perturbed(schedule, even, hidden, rankShare);
            QVERIFY(said.origin.ends_with(toText(is)) && unsaid.origin.ends_with(toText(hidden)));
            unsaid.origin = said.origin; // nothing else differs
            QVERIFY(unsaid == said);
            QVERIFY(makespanOf(schedule, perturbed(schedule, even, hidden, rankShare)) > makespanOf(schedule, even));
            hidden.secret = seed;
            QVERIFY(revealed(hidden, 1).links.empty());
        }
        QCOMPARE(kinds.size(), std::size_t(8)); // rank=0 … 3, launch, link=0 … 2
    }

    void textRoundTrip()
    {
        const Perturbation read = parsePerturbation("rank=2:1.25|link=1-2:1.0,launch=3:0.2,rank=2:2", 4).value();
        QCOMPARE(toText(read), std::string("rank=2:1.25,rank=2:2,link=1-2:1,launch=3:0.2"));
        QVERIFY(parsePerturbation(toText(read), 4).value() == read);
        QVERIFY(parsePerturbation("", 4).value().empty());
        const Perturbation brief = parsePerturbation("transient=1@3:2.5,jitter=0.05,transient=0@1:4", 4).value();
        QCOMPARE(toText(brief), std::string("jitter=0.05,transient=1@3:2.5,transient=0@1:4"));
        QVERIFY(parsePerturbation(toText(brief), 4).value() == brief);
        const Perturbation hidden = parsePerturbation("secret=5", 4).value();
        QCOMPARE(toText(hidden), std::string("secret=5"));
        QVERIFY(!hidden.empty() && hidden.ranks.empty() && hidden.links.empty() && hidden.launches.empty());
        const RunPerturbation run = runPerturbation(parsePerturbation("transient=1@3:2.5", 4).value(), 4, 10, 1);
        QCOMPARE(run.factorOf(1, 2, Op()), 2.5); // the third step
        QCOMPARE(run.factorOf(1, 1, Op()), 1.0);
        QCOMPARE(run.factorOf(0, 2, Op()), 1.0);
        QCOMPARE(runPerturbation(read, 4, 10, 1).factorOf(2, 0, Op()), 2.5);
        QCOMPARE(runPerturbation(read, 4, 10, 1).launchOf(3), Nanos{2});
        QCOMPARE(runPerturbation(read, 4, 10, 1).launchOf(0), Nanos{0});
    }

    void wrongTextNamesThePart()
    {
        QCOMPARE(errorOf("secret=x"), QString("disturbance 'secret=x': needs a whole number from 0 after the ="));
        QCOMPARE(errorOf("secret=1,secret=2"), QString("disturbance 'secret=2': is the second secret"));
        QCOMPARE(errorOf("rank=4:1.25"), QString("disturbance 'rank=4:1.25': needs a rank from 0 to 3"));
        QCOMPARE(errorOf("link=1-1:2"), QString("disturbance 'link=1-1:2': needs two ranks from 0 to 3"));
        QCOMPARE(errorOf("rank=1:0"), QString("disturbance 'rank=1:0': needs a factor above 0"));
        QCOMPARE(errorOf("transient=4@1:2"),
                 QString("disturbance 'transient=4@1:2': needs a rank from 0 to 3 and a step after @"));
        QCOMPARE(errorOf("transient=1@0:2"),
                 QString("disturbance 'transient=1@0:2': needs a step of 1 or more after the @"));
        QCOMPARE(errorOf("transient=1@1:0"), QString("disturbance 'transient=1@1:0': needs a factor above 0"));
        QCOMPARE(errorOf("jitter=-1"),
                 QString("disturbance 'jitter=-1': needs a number above 0, at most 2, after the ="));
        QCOMPARE(errorOf("jitter=0.1,jitter=0.2"), QString("disturbance 'jitter=0.2': is the second jitter"));
        QVERIFY(checkOneStep(parsePerturbation("transient=1@1:2", 4).value()).has_value());
        QVERIFY(!checkOneStep(parsePerturbation("transient=1@2:2", 4).value()).has_value());
        for (const char* text :
             {"jitter", "jitter=", "jitter=x", "jitter:0.1", "transient=1:2", "transient=1@:2", "transient=@1:2",
              "rank", "rank=1", "rank=1:x", "speed=1:2", "launch=-1:2", "rank=1:nan", "rank=1:-1", ",,"})
            QVERIFY2(!errorOf(text).isEmpty(), text);
    }

    void makespans_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<double>("makespan");
        QTest::newRow("as it is") << "" << 35.0;
        QTest::newRow("slow rank") << "rank=2:1.25" << 39.25;
        QTest::newRow("slow link") << "link=1-2:1.0" << 41.75;
        QTest::newRow("late launches") << "launch=3:0.2" << 36.95;
    }
    void makespans()
    {
        QFETCH(QString, text);
        QFETCH(double, makespan);
        const Schedule schedule = oneFOneB();
        const auto perturbation = parsePerturbation(text.toStdString(), 4).value();
        QCOMPARE(makespanOf(schedule, perturbed(schedule, costsWith(schedule, 0.125), perturbation, rankShare)),
                 makespan);
    }

    void jitterHasMeanOneAndItsSpread()
    {
        double sum = 0;
        double logs = 0;
        double squares = 0;
        constexpr int draws = 40000;
        for (int k = 0; k < draws; ++k) {
            const double factor = jitterFactor(
                0.2, 7, k / 1000, makeOp(k % 2 == 0 ? OpKind::Forward : OpKind::Backward, k / 10 % 10, k % 1000));
            sum += factor;
            logs += std::log(factor);
            squares += std::log(factor) * std::log(factor);
        }
        QVERIFY(std::abs(sum / draws - 1) < 0.005);
        const double mean = logs / draws;
        QVERIFY(std::abs(mean + 0.02) < 0.004); // −σ²/2
        QVERIFY(std::abs(std::sqrt(squares / draws - mean * mean) - 0.2) < 0.004);
    }

    // The same on every machine, and of the op alone: not of its place in an order, its rank or its stage's duration.
    void jitterIsOfTheOp()
    {
        QCOMPARE(jitterFactor(0.1, 1, 0, *parseOp("2F3")), 1.177937359);
        QVERIFY(jitterFactor(0.1, 1, 0, *parseOp("2F3")) != jitterFactor(0.1, 2, 0, *parseOp("2F3")));
        QVERIFY(jitterFactor(0.1, 1, 0, *parseOp("2F3")) != jitterFactor(0.1, 1, 1, *parseOp("2F3")));
        QVERIFY(jitterFactor(0.1, 1, 0, *parseOp("2F3")) != jitterFactor(0.1, 1, 0, *parseOp("2B3")));
        QCOMPARE(jitterFactor(0, 1, 0, *parseOp("2F3")), 1.0);
        const Schedule schedule = oneFOneB();
        const CostModel costs =
            perturbed(schedule, CostModel::uniform(schedule), parsePerturbation("jitter=0.1", 4).value(), rankShare, 9);
        const auto durations = durationsOf(schedule, costs);
        std::size_t id = 0;
        for (const auto& ops : schedule.order)
            for (const Op& op : ops) {
                const double whole = op.kind == OpKind::Forward ? rankShare : 2.0 * rankShare;
                QCOMPARE(durations[id++], static_cast<Nanos>(std::llround(whole * jitterFactor(0.1, 9, 0, op))));
            }
        QVERIFY(readCostsJson(writeCostsJson(costs)).value() == costs);
    }

    // A pair's own interval, in place of the sum of both; a recomputation and its backward follow each other.
    void pairsTakeTheirOwnTime()
    {
        Schedule schedule = makeSchedule("1f1b", {2, 4}).value();
        std::swap(schedule.order[1][1], schedule.order[1][2]);
        schedule.paired = {{}, {1}}; // 1F1 with 1B0
        CostModel costs = CostModel::uniform(schedule);
        const SimResult sum = simulate(schedule, costs).value();
        QCOMPARE(sum.end[sum.indexOf(1, 1)] - sum.start[sum.indexOf(1, 1)], 3 * rankShare);
        costs.setPairDuration(OpKind::Forward, 1, OpKind::Backward, 1, -1, 2 * rankShare + 1);
        const SimResult own = simulate(schedule, costs).value();
        for (const std::size_t at : {own.indexOf(1, 1), own.indexOf(1, 2)})
            QCOMPARE(own.end[at] - own.start[at], 2 * rankShare + 1);
        QVERIFY(own.makespan < sum.makespan);
    }

    void microbatchesTakeTheirOwnTime()
    {
        const Schedule schedule = oneFOneB();
        CostModel costs = CostModel::uniform(schedule);
        costs.setMicrobatchDuration(OpKind::Forward, 3, 5, 3 * rankShare);
        const SimResult result = simulate(schedule, costs).value();
        std::size_t id = 0;
        for (const auto& ops : schedule.order)
            for (const Op& op : ops) {
                const Nanos expected = op == *parseOp("3F5")        ? 3 * rankShare
                                       : op.kind == OpKind::Forward ? rankShare
                                                                    : 2 * rankShare;
                QCOMPARE(result.end[id] - result.start[id], expected);
                ++id;
            }
        QCOMPARE(makespanOf(schedule, costs), 35.0);
    }

    void aSlowRankSlowsAllItsChunks()
    {
        const Schedule schedule = makeSchedule("interleaved-1f1b", {2, 4, 2}).value();
        const CostModel costs =
            perturbed(schedule, CostModel::uniform(schedule), parsePerturbation("rank=1:2", 2).value(), rankShare);
        QCOMPARE(costs.duration(OpKind::Forward, 1, 1), rankShare);
        QCOMPARE(costs.duration(OpKind::Backward, 3, 1), 2 * rankShare);
        QCOMPARE(costs.duration(OpKind::Forward, 0, 0), rankShare / 2);
    }

    void launchDelaysKeepDurations()
    {
        const Schedule schedule = oneFOneB();
        const CostModel costs =
            perturbed(schedule, CostModel::uniform(schedule), parsePerturbation("launch=1:0.5", 4).value(), rankShare);
        const SimResult result = simulate(schedule, costs).value();
        QCOMPARE(result.start[result.indexOf(1, 0)], rankShare + rankShare / 2);
        for (std::size_t i = 0; i < result.start.size(); ++i) {
            const Nanos duration = result.end[i] - result.start[i];
            QVERIFY(duration == rankShare || duration == 2 * rankShare);
        }
        QVERIFY(readCostsJson(writeCostsJson(costs)).value() == costs);
    }

    void layersByStage()
    {
        const Schedule schedule = oneFOneB();
        const std::vector<int> layers{4, 4, 3, 1};
        const CostModel costs = withStageLayers(schedule, CostModel::uniform(schedule), layers).value();
        QCOMPARE(costs.duration(OpKind::Forward, 0, 0), rankShare * 4 / 3);
        QCOMPARE(costs.duration(OpKind::Backward, 3, 3), rankShare * 2 / 3);
        QCOMPARE(costs.memory[2].activation, activationShare);
        const std::vector<int> few{1, 2};
        QVERIFY(!withStageLayers(schedule, costs, few));
        const std::vector<int> none{0, 0, 0, 0};
        QVERIFY(!withStageLayers(schedule, costs, none));
    }

    void recomputation_data()
    {
        QTest::addColumn<QString>("stages");
        QTest::addColumn<bool>("hoisted");
        QTest::addColumn<double>("makespan");
        QTest::newRow("none") << "none" << false << 33.0;
        QTest::newRow("all: (m+p-1)(T+F)") << "all" << false << 44.0;
        QTest::newRow("last stage keeps") << "0-2" << false << 42.0;
        QTest::newRow("hoisted") << "all" << true << 41.0;
        QTest::newRow("both") << "0-2" << true << 39.0;
    }
    void recomputation()
    {
        QFETCH(QString, stages);
        QFETCH(bool, hoisted);
        QFETCH(double, makespan);
        const Schedule plain = oneFOneB();
        const Schedule schedule = withRecompute(plain, parseRecompute(stages.toStdString(), 4).value(), hoisted);
        CostModel costs = CostModel::uniform(schedule);
        for (StageMemory& memory : costs.memory) memory.boundary = memory.activation / 8;
        const SimResult result = simulate(schedule, costs).value();
        QCOMPARE(static_cast<double>(result.makespan) / rankShare, makespan);
        if (stages == "none") QVERIFY(schedule == plain);
        // 3 inputs and one whole
        if (stages == "all") QCOMPARE(result.peakActivation[0], activationShare + 3 * activationShare / 8);
        const auto timeline = timelineOf(schedule, result, costs).value();
        QVERIFY(scheduleOf(*timeline, 0).value() == schedule);
    }

    void recomputationOfPairs()
    {
        Schedule schedule = makeSchedule("1f1b", {2, 4}).value();
        schedule.paired = {{}, {2}}; // 1F1 with 1B1
        const Schedule out = withRecompute(schedule, {true, true}, true);
        QCOMPARE(toText(out.order[1][3]), std::string("1R1"));
        QVERIFY(!out.isPaired(1, 3));
        QVERIFY(out.isPaired(1, 4));
        QVERIFY(withRecompute(out, {true, true}, true).order == out.order); // it has them already
    }

    // Not hoisted, no recomputation starts before its gradient is there: overlapped pairs come apart.
    void recomputationWaitsForItsGradient()
    {
        for (const char* name : {"dualpipe", "dualpipev"}) {
            const Schedule schedule = withRecompute(makeSchedule(name, {4, 10}).value(), std::vector<bool>(8, true));
            QVERIFY2(validate(schedule).valid(), name);
            const SimResult result = simulate(schedule, costsWith(schedule, 0.25)).value();
            std::map<std::pair<int, int>, Nanos> gradient; // of a stage's output, by stage and microbatch
            for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
                for (std::size_t i = 0; i < schedule.order[rank].size(); ++i)
                    if (const Op& op = schedule.order[rank][i];
                        op.stage > 0 && (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad))
                        gradient[{op.stage - 1, op.microbatch}] = result.end[result.indexOf(static_cast<int>(rank), i)];
            int recomputations = 0;
            for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
                for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
                    const Op& op = schedule.order[rank][i];
                    if (op.kind != OpKind::Recompute || op.stage + 1 == schedule.stages) continue;
                    const Nanos there = gradient.at({op.stage, op.microbatch});
                    QVERIFY2(result.start[result.indexOf(static_cast<int>(rank), i)] >= there, toText(op).c_str());
                    ++recomputations;
                }
            QCOMPARE(recomputations, (schedule.stages - 1) * 10);
        }
    }

    void stagesToRecompute()
    {
        QCOMPARE(parseRecompute("0-1+3", 4).value(), (std::vector<bool>{true, true, false, true}));
        for (const char* text : {"", "4", "2-1", "x", "0-", "-1", "0,,1"}) QVERIFY2(!parseRecompute(text, 4), text);
    }

    // A forward that ran whole is recomputed whole, before the first half of its backward.
    void recomputationIsCutAsTheForward()
    {
        const Schedule schedule = makeSchedule("chimera:join=halving", {4, 8}).value();
        const Schedule with = withRecompute(schedule, std::vector<bool>(4, true));
        QVERIFY2(validate(with).valid(), toText(with).c_str());
        int made = 0;
        for (const auto& list : with.order)
            for (std::size_t i = 0; i < list.size(); ++i) {
                if (list[i].kind != OpKind::Recompute) continue;
                QCOMPARE(list[i].half, std::uint8_t{0});
                QCOMPARE(list[i + 1].half, std::uint8_t{1});
                ++made;
            }
        QCOMPARE(made, 4 * 8);
    }
};

QTEST_APPLESS_MAIN(TestPerturb)
#include "tst_perturb.moc"
