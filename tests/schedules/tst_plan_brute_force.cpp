// Plans and bounds against the optimum over every order that mixes full backwards with I and W by stage and microbatch,
// found by a program that shares no code with the planner (best_order.h): some 1,300 random costs, I freeing −0.5 … 1
// of an activation, B cheaper or dearer than I + W, caps tight.
#include <QtTest>

#include <random>

#include "best_order.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/heuristic/fill.h"
#include "schedules/plan/bound.h"
#include "schedules/plan/branch.h"
#include "schedules/plan/fewer_bound.h"
#include "schedules/plan/plan.h"

using namespace stagewright;
using stagewright::testing::BestOrder;
using stagewright::testing::BestOrderProblem;
using stagewright::testing::BestOrderStage;

namespace {

PlanRequest requestOf(int ranks, int microbatches, int chunks)
{
    PlanRequest request;
    request.ranks = ranks;
    request.microbatches = microbatches;
    request.chunks = chunks;
    request.costs = CostModel(ranks * chunks, CostSource::Uniform);
    request.seconds = 600;
    request.tries = 30'000;
    return request;
}

int rankOf(const PlanRequest& request, int stage)
{
    return stage < request.ranks ? stage : 2 * request.ranks - 1 - stage;
}

void setCosts(PlanRequest& request, int stage, Nanos forward, Nanos inputGrad, Nanos weightGrad, Nanos backward,
              Bytes activation, Bytes freed)
{
    request.costs.setDuration(OpKind::Forward, stage, forward);
    request.costs.setDuration(OpKind::InputGrad, stage, inputGrad);
    request.costs.setDuration(OpKind::WeightGrad, stage, weightGrad);
    request.costs.setDuration(OpKind::Backward, stage, backward);
    StageMemory& memory = request.costs.memory[static_cast<std::size_t>(stage)];
    memory.activation = activation;
    memory.freedAtInput = freed;
}

// The engine's own numbers are the same on every machine; distributions of the library are not.
class Dice {
public:
    explicit Dice(std::uint32_t seed) : m_engine(seed) {}
    int between(int least, int most)
    {
        return least + static_cast<int>(m_engine() % static_cast<std::uint32_t>(most - least + 1));
    }

private:
    std::mt19937 m_engine;
};

PlanRequest randomRequest(int ranks, int microbatches, int chunks, std::uint32_t seed)
{
    Dice dice(seed);
    PlanRequest request = requestOf(ranks, microbatches, chunks);
    const bool even = dice.between(0, 3) == 0;
    for (int s = 0; s < ranks * chunks; ++s) {
        const Nanos input = dice.between(1, 5);
        const Nanos weight = dice.between(1, 4);
        const Nanos backward = std::max<Nanos>(1, input + weight + dice.between(-3, 3));
        const Bytes activation = 20 * dice.between(1, 3);
        setCosts(request, s, dice.between(1, 4), input, weight, backward, activation,
                 activation * dice.between(-10, 20) / 20);
        if (even && s > 0) {
            const StageMemory& first = request.costs.memory[0];
            setCosts(request, s, request.costs.duration(OpKind::Forward, 0, 0),
                     request.costs.duration(OpKind::InputGrad, 0, 0), request.costs.duration(OpKind::WeightGrad, 0, 0),
                     request.costs.duration(OpKind::Backward, 0, 0), first.activation, first.freedAtInput);
        }
    }
    request.costs.links.all.latency = dice.between(0, 2);
    if (ranks > 1 && dice.between(0, 2) == 0) request.costs.links.overrides[{0, 1}] = Link{dice.between(0, 3), 0};
    request.objective = dice.between(0, 2) == 0 ? Objective::Span : Objective::Makespan;
    const int tightness = dice.between(20, 60); // twentieths of what one microbatch holds
    for (int r = 0; r < ranks; ++r) {
        Bytes one = 0;
        for (int s = 0; s < ranks * chunks; ++s)
            if (rankOf(request, s) == r) one += request.costs.memory[static_cast<std::size_t>(s)].activation;
        request.caps.push_back(one * tightness / 20);
    }
    return request;
}

BestOrderProblem problemOf(const PlanRequest& request)
{
    BestOrderProblem out;
    out.ranks = request.ranks;
    out.microbatches = request.microbatches;
    out.span = request.objective == Objective::Span;
    out.caps = request.caps;
    const int stages = request.ranks * request.chunks;
    for (int s = 0; s < stages; ++s) {
        BestOrderStage stage;
        stage.rank = rankOf(request, s);
        stage.forward = request.costs.duration(OpKind::Forward, s, stage.rank);
        stage.inputGrad = request.costs.duration(OpKind::InputGrad, s, stage.rank);
        stage.weightGrad = request.costs.duration(OpKind::WeightGrad, s, stage.rank);
        stage.backward = request.costs.duration(OpKind::Backward, s, stage.rank);
        stage.activation = request.costs.memory[static_cast<std::size_t>(s)].activation;
        stage.freed = request.costs.memory[static_cast<std::size_t>(s)].freedAtInput;
        auto delay = [&](int to) {
            const auto found = request.costs.links.overrides.find({stage.rank, to});
            if (to == stage.rank) return Nanos{0};
            return found == request.costs.links.overrides.end() ? request.costs.links.all.latency
                                                                : found->second.latency;
        };
        if (s + 1 < stages) stage.activationDelay = delay(rankOf(request, s + 1));
        if (s > 0) stage.gradientDelay = delay(rankOf(request, s - 1));
        out.stages.push_back(stage);
    }
    return out;
}

// STAGEWRIGHT_FULL: that many times.
int roundsFactor()
{
    return qEnvironmentVariableIsSet("STAGEWRIGHT_FULL") ? qEnvironmentVariableIntValue("STAGEWRIGHT_FULL") : 3;
}

// The plan is what it claims to be, and no claim about all orders is wrong for any of them.
void compare(const PlanRequest& request, const QByteArray& label, int& proven, int& compared)
{
    const auto found = plan(request);
    const BestOrderProblem problem = problemOf(request);
    if (!found) {
        QVERIFY2(found.error().code == ErrorCode::Invalid, qPrintable(QString::fromStdString(found.error().message)));
        QVERIFY2(BestOrder(problem).solve() < 0, label + ": refused, and an order holds");
        return;
    }
    const std::int64_t best = BestOrder(problem).solve(found->objective);
    ++compared;
    QVERIFY2(validate(found->schedule).valid(), label);
    const auto result = simulate(found->schedule, request.costs);
    QVERIFY2(result.has_value(), label);
    QCOMPARE(request.objective == Objective::Span ? result->span : result->makespan, found->objective);
    for (std::size_t r = 0; r < request.caps.size(); ++r)
        QVERIFY2(result->peakActivation[r] <= request.caps[r], label + ": over its cap");
    QVERIFY2(best >= 0 && best <= found->objective, label + ": the plan beats every order, " +
                                                        QByteArray::number(found->objective) + " against " +
                                                        QByteArray::number(qint64(best)));
    QVERIFY2(found->bound <= best, label + ": bound " + QByteArray::number(found->bound) + " above the optimum " +
                                       QByteArray::number(qint64(best)));
    QVERIFY2(!found->optimal || found->objective == best, label + ": not optimal");
    QVERIFY2(found->objective == best, label + ": plan " + QByteArray::number(found->objective) + ", optimum " +
                                           QByteArray::number(qint64(best)));
    proven += found->optimal ? 1 : 0;
    // The bounds one by one, too.
    const auto pipeline = planning::pipelineOf(request.ranks, request.chunks, request.microbatches, request.costs,
                                               request.caps, request.objective);
    QVERIFY(pipeline.has_value());
    QVERIFY2(planning::windowBound(*pipeline).value <= best, label + ": window bound");
    planning::RankRelaxation relaxation(*pipeline);
    QVERIFY(relaxation.usable());
    QVERIFY2(!relaxation.refutes(best), label + ": relaxation");
    QVERIFY(relaxation.refutes(planning::windowBound(*pipeline).value / 2 - 1));
    // What fewer microbatches prove of all of them.
    planning::FewerBound fewer(*pipeline);
    fewer.prove(1'000'000, best, {});
    QVERIFY2(fewer.objectiveOf(request.microbatches) <= best, label + ": bound by fewer microbatches");
    planning::RankRelaxation limited(*pipeline);
    limited.limitStarts(fewer.restsOf(request.microbatches));
    QVERIFY2(!limited.refutes(best), label + ": relaxation with fewer microbatches' rests");
    using Outcome = planning::Branching::Outcome;
    constexpr std::int64_t work = 20'000'000;
    const planning::Branching reached = planning::branch(*pipeline, relaxation, best, work);
    QVERIFY2(reached.outcome == Outcome::Solved, label + ": branching does not reach the optimum");
    planning::WordRunner runner(*pipeline);
    const planning::Timing& timing = runner.time(reached.words);
    QVERIFY2(timing.feasible && timing.objective == best, label + ": what branching solved is late");
    QVERIFY2(planning::branch(*pipeline, relaxation, best - 1, work).outcome == Outcome::Refuted,
             label + ": branching leaves less than the optimum");
    QVERIFY(planning::branch(*pipeline, relaxation, best, 0).outcome == Outcome::Open);
}

} // namespace

class TestPlanBruteForce : public QObject {
    Q_OBJECT
private slots:
    // I adds a stash of 300 B where a full backward adds nothing: 14 µs, and at 1,000 B forwards and backwards by
    // turns.
    void fullBackwardsWhereInputGradientsAddToTheMemory()
    {
        for (const auto& [cap, time] : {std::pair<Bytes, Nanos>{2000, 14'000}, {1000, 24'000}}) {
            PlanRequest request = requestOf(2, 4, 1);
            for (int s = 0; s < 2; ++s) setCosts(request, s, 1000, 1000, 1000, 2000, 1000, -300);
            request.caps = {cap, cap};
            QCOMPARE(BestOrder(problemOf(request)).solve(), time);
            const auto found = plan(request);
            QVERIFY2(found.has_value(), found ? "" : found.error().message.c_str());
            QCOMPARE(found->objective, time);
            QVERIFY(found->optimal);
        }
    }
    void random_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<int>("rounds");
        QTest::newRow("1 rank, 4 microbatches") << 1 << 4 << 1 << 30;
        QTest::newRow("2 ranks, 2 microbatches") << 2 << 2 << 1 << 50;
        QTest::newRow("2 ranks, 3 microbatches") << 2 << 3 << 1 << 60;
        QTest::newRow("2 ranks, 4 microbatches") << 2 << 4 << 1 << 60;
        QTest::newRow("3 ranks, 2 microbatches") << 3 << 2 << 1 << 60;
        QTest::newRow("3 ranks, 3 microbatches") << 3 << 3 << 1 << 60;
        QTest::newRow("3 ranks, 4 microbatches") << 3 << 4 << 1 << 40;
        QTest::newRow("1 rank in the V, 3 microbatches") << 1 << 3 << 2 << 30;
        QTest::newRow("2 ranks in the V, 2 microbatches") << 2 << 2 << 2 << 40;
    }
    void random()
    {
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        QFETCH(int, chunks);
        QFETCH(int, rounds);
        int proven = 0;
        int compared = 0;
        for (int round = 0; round < rounds * roundsFactor() && !QTest::currentTestFailed(); ++round) {
            const PlanRequest request =
                randomRequest(ranks, microbatches, chunks,
                              static_cast<std::uint32_t>(1000 * ranks + 100 * microbatches + 10'000 * chunks + round));
            compare(request, QByteArray("round ") + QByteArray::number(round), proven, compared);
        }
        qInfo("%d of %d proven", proven, compared);
        QVERIFY(compared >= rounds * roundsFactor() / 2);
        QCOMPARE(proven, compared);
    }
};

QTEST_APPLESS_MAIN(TestPlanBruteForce)
#include "tst_plan_brute_force.moc"
