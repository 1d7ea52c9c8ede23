// Stages that don't form a chain: what needs follow, where such a schedule is checked, run, edited and drawn.
#include <QTest>

#include <algorithm>
#include <random>

#include "random_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/lower.h"
#include "schedules/step/plain_run.h"
#include "schedules/step/step_run.h"
#include "schedules/text/csv.h"
#include "schedules/text/draw_text.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

// An encoder and a decoder, each on a rank of its own, that feed a head: 0 → 2 ← 1.
Schedule joined(int microbatches)
{
    Schedule out;
    out.name = "joined";
    out.ranks = out.stages = 3;
    out.microbatches = microbatches;
    out.placement = Placement::loop(3, 3);
    out.order.resize(3);
    for (int stage = 0; stage < 3; ++stage) {
        for (int j = 0; j < microbatches; ++j)
            out.order[static_cast<std::size_t>(stage)].push_back(makeForward(stage, j));
        for (int j = 0; j < microbatches; ++j)
            out.order[static_cast<std::size_t>(stage)].push_back(makeBackward(stage, j));
    }
    out.graph = StageGraph::of(3, {{0, 2}, {1, 2}}).value();
    return out;
}

// A chain of three in which the first stage also feeds the last one, past the second.
Schedule skipping(int microbatches)
{
    Schedule out = joined(microbatches);
    out.graph = StageGraph::of(3, {{0, 1}, {1, 2}, {0, 2}}).value();
    return out;
}

CostModel unitCosts(const Schedule& schedule, double latency = 0)
{
    CostModel::UnitCosts costs; // F 1, B 2
    costs.latency = latency;
    return CostModel::uniform(schedule, costs);
}

std::vector<Op> needsOf(const Schedule& schedule, const Op& op)
{
    std::vector<Op> out;
    schedule.graph.eachNeed(op, schedule.stages, [&](const Need& need, int stage) {
        if (!need.ifThere) out.push_back(makeOp(need.kind, stage, op.microbatch));
    });
    return out;
}

} // namespace

class TestStageGraph : public QObject {
    Q_OBJECT
private slots:
    void theChainIsTheDefault()
    {
        using Edges = std::vector<StageGraph::Edge>;
        QVERIFY(StageGraph().isChain());
        QVERIFY(StageGraph().edges(3) == Edges({{0, 1}, {1, 2}}));
        const auto chain = StageGraph::of(3, {{1, 2}, {0, 1}});
        QVERIFY(chain && chain->isChain() && *chain == StageGraph());
        const auto skips = StageGraph::of(3, {{1, 2}, {0, 2}, {0, 1}});
        QVERIFY(skips && !skips->isChain() && !(*skips == StageGraph()));
        QVERIFY(*skips == StageGraph::of(3, {{0, 1}, {0, 2}, {1, 2}}).value());
        for (const Edges& wrong :
             {Edges({{1, 0}}), Edges({{1, 1}}), Edges({{0, 3}}), Edges({{-1, 2}}), Edges({{0, 1}, {0, 1}})}) {
            const auto refused = StageGraph::of(3, wrong);
            QVERIFY(!refused && !refused.error().remedy.empty());
        }
    }

    void needsFollowTheGraph()
    {
        const Schedule join = joined(1);
        QCOMPARE(needsOf(join, makeForward(1, 0)), std::vector<Op>());
        QCOMPARE(needsOf(join, makeForward(2, 0)), (std::vector<Op>{makeForward(0, 0), makeForward(1, 0)}));
        QCOMPARE(needsOf(join, makeBackward(0, 0)), (std::vector<Op>{makeBackward(2, 0), makeForward(0, 0)}));
        QCOMPARE(needsOf(skipping(1), makeBackward(0, 0)),
                 (std::vector<Op>{makeBackward(1, 0), makeBackward(2, 0), makeForward(0, 0)}));
        Schedule chain = join;
        chain.graph = {};
        QVERIFY(!(chain == join));
        QVERIFY(hashOf(chain) != hashOf(join));
    }

    void listsAreCheckedAlongIt()
    {
        QVERIFY(validate(joined(3)).valid());
        QVERIFY(validate(skipping(3)).valid());
        // The head on the encoder's rank before the encoder.
        Schedule late = joined(1);
        late.placement = Placement::of(std::vector<int>{0, 1, 0});
        late.order = {{makeForward(2, 0), makeForward(0, 0), makeBackward(2, 0), makeBackward(0, 0)},
                      {makeForward(1, 0), makeBackward(1, 0)},
                      {}};
        const auto faults = validate(late).faults;
        QVERIFY(std::any_of(faults.begin(), faults.end(),
                            [](const Fault& fault) { return fault.kind == FaultKind::Order; }));
        std::swap(late.order[0][0], late.order[0][1]);
        QVERIFY(validate(late).valid());
        Schedule other = joined(1);
        other.graph = StageGraph::of(4, {{0, 3}}).value();
        QVERIFY(!validate(other).valid());
    }

    // Units: F takes 1, B 2; a message 1. The head waits for both; encoder and decoder don't wait for each other.
    void timesFollowIt()
    {
        const Schedule join = joined(1);
        const CostModel costs = unitCosts(join, 1);
        const auto result = simulate(join, costs);
        QVERIFY(result);
        const auto start = [&](int rank, std::size_t at) {
            return result->start[result->indexOf(rank, at)] / rankShare;
        };
        QCOMPARE(start(0, 0), Nanos{0});
        QCOMPARE(start(1, 0), Nanos{0});
        QCOMPARE(start(2, 0), Nanos{2});
        QCOMPARE(start(2, 1), Nanos{3});
        QCOMPARE(start(0, 1), Nanos{6});
        QCOMPARE(start(1, 1), Nanos{6});
        QCOMPARE(result->makespan, 8 * rankShare);

        // A skip needs no more time than its chain, but a slow decoder delays both branches.
        const Schedule skip = skipping(1);
        Schedule chain = skip;
        chain.graph = {};
        QCOMPARE(simulate(skip, costs)->makespan, simulate(chain, costs)->makespan);
        CostModel slow = costs;
        slow.links.overrides[{0, 2}] = {100 * rankShare, 0};
        QCOMPARE(simulate(chain, slow)->makespan, simulate(chain, costs)->makespan);
        QCOMPARE(simulate(skip, slow)->start[simulate(skip, slow)->indexOf(2, 0)], 101 * rankShare);
    }

    // Whoever runs lists along any graph gives each op the same times.
    void runsAgreeOnAnyGraph()
    {
        int compared = 0, forks = 0;
        for (unsigned seed = 0; seed < 500; ++seed) {
            std::mt19937 random(seed);
            const int ranks = test::pick(random, 1, 4), stages = test::pick(random, 2, 7);
            Schedule lists = emptySchedule(ranks, stages, test::pick(random, 1, 4));
            std::vector<StageGraph::Edge> edges;
            for (int from = 0; from < stages; ++from)
                for (int to = from + 1; to < stages; ++to)
                    if (random() % 3 == 0) edges.emplace_back(from, to);
            lists.graph = StageGraph::of(stages, edges).value();
            forks += static_cast<int>(edges.size()) > stages ? 1 : 0;
            for (int stage = 0; stage < stages; ++stage)
                for (int j = 0; j < lists.microbatches; ++j)
                    lists.order[static_cast<std::size_t>(stage % ranks)].push_back(makeForward(stage, j));
            for (int stage = stages - 1; stage >= 0; --stage)
                for (int j = 0; j < lists.microbatches; ++j)
                    lists.order[static_cast<std::size_t>(stage % ranks)].push_back(makeBackward(stage, j));
            std::vector<Nanos> durations;
            for (std::size_t i = 0; i < lists.opCount(); ++i) durations.push_back(test::pick(random, 0, 1000));
            StepRules rules;
            rules.links.all = {test::pick(random, 0, 200), 0};
            const CellSpace cells = cellsOf(lists).value();
            const OpIndex index(lists, cells);
            const StepPlan plan(lists, index, rules);
            StepRun planned(plan, durations);
            PlainRun plain(lists, cells, rules, durations);
            QVERIFY(PlainRun::serves(lists, cells, rules) && plain.run() && planned.run());
            QVERIFY(plain.take().end == planned.take().end);
            ++compared;
        }
        QVERIFY(compared == 500 && forks > 50);
    }

    void itIsDrawnWithItsEdges()
    {
        const Schedule join = joined(2);
        const CostModel costs = unitCosts(join, 1);
        const auto timeline = simulatedTimeline(join, costs);
        QVERIFY(timeline);
        int data = 0, sends = 0;
        for (const Edge& edge : (*timeline)->edges()) data += edge.kind == EdgeKind::Data ? 1 : 0;
        for (const Span& span : (*timeline)->spans()) sends += isSend(span.op.kind) ? 1 : 0;
        // Each microbatch: two activations to the head, its gradient to both, and each B its own F.
        QCOMPARE(data, 2 * (2 + 2 + 3));
        QCOMPARE(sends, 2 * 4);
        QVERIFY(*scheduleOf(**timeline, 0) == join);
        // Encoder and decoder start at once.
        const std::string drawn = drawTimeline(**timeline, 0, 120, false);
        QVERIFY(drawn.find("rank 0 │F0") != std::string::npos && drawn.find("rank 1 │F0") != std::string::npos);
    }

    void whatListsCannotSayIsRefused()
    {
        const Schedule join = joined(1);
        const auto lowered = lower(join, {});
        QVERIFY(!lowered && lowered.error().message.find("chain") != std::string::npos);
        const auto csv = writeScheduleCsv(join);
        QVERIFY(!csv && csv.error().message.find("chain") != std::string::npos);
        Schedule messages = join;
        messages.order[0].insert(messages.order[0].begin() + 1, makeOp(sendKind(false), 0, 0));
        QVERIFY(!validate(messages).valid());
    }

    void anEditFindsWhatIsMissing()
    {
        Schedule join = joined(1);
        join.order[1].erase(join.order[1].begin()); // 1F0
        QCOMPARE(unplacedInput(join, makeForward(2, 0)), std::optional<Op>(makeForward(1, 0)));
        QCOMPARE(unplacedInput(join, makeForward(0, 0)), std::optional<Op>());
    }
};

QTEST_APPLESS_MAIN(TestStageGraph)
#include "tst_stage_graph.moc"
