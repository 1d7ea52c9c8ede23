// Replicas that go back to different layers: what the lists then lack, what is held, and who contributes to what.
#include <QTest>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/shard_rules.h"

using namespace stagewright;

namespace {

Schedule plainSchedule(const char* name, int ranks, int microbatches)
{
    return makeSchedule(name, Shape(ranks, microbatches)).value();
}

int countOf(const Schedule& schedule, OpKind kind, int stage = -1)
{
    int out = 0;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) out += op.kind == kind && (stage < 0 || op.stage == stage) ? op.count : 0;
    return out;
}

// The ranks that go back through a stage.
std::vector<int> contributorsOf(const Schedule& schedule, int stage)
{
    const std::vector<int> first = firstStagesBack(schedule);
    std::vector<int> out = holdersOf(schedule.placement, stage);
    std::erase_if(out, [&](int rank) { return first[static_cast<std::size_t>(schedule.replicaOf(rank))] > stage; });
    return out;
}

// Replica k goes back to stage `stages − 1 − k`, the last one through all of them.
Schedule staircase(const char* name, int ranks, int microbatches, int replicas)
{
    std::vector<int> first;
    for (int k = 0; k < replicas; ++k) first.push_back(replicas - 1 - k);
    return withoutBackwardBelow(overReplicas(plainSchedule(name, ranks, microbatches), replicas).value(), first)
        .value();
}

} // namespace

class TestPartialBackward : public QObject {
    Q_OBJECT

private slots:
    void parses()
    {
        QCOMPARE(parseCuts("0,2,4", 3, 4).value(), (std::vector<int>{0, 2, 4}));
        for (const char* bad : {"0", "0,1,2,3", "0,5,1", "0,-1,2", "1,2,3", "0,x,2", ""}) {
            const auto read = parseCuts(bad, 3, 4);
            QVERIFY2(!read && read.error().code == ErrorCode::Usage && !read.error().remedy.empty(), bad);
        }
    }

    void firstStages()
    {
        const std::vector<int> layers{2, 2, 0, 3};
        const std::vector<int> expected{0, 0, 1, 1, 3, 3, 3, 3};
        for (int cut = 0; cut < static_cast<int>(expected.size()); ++cut)
            QCOMPARE(firstStageOf(cut, layers), expected[static_cast<std::size_t>(cut)]);
    }

    // The lists are valid as they are, lowered too; a backward missing elsewhere is found.
    void lists()
    {
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved", "zbv", "bfs", "chimera", "dualpipe"})
            for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Overlapped}) {
                const Schedule whole = overReplicas(plainSchedule(name, 4, 8), 3).value();
                const std::vector<int> first{0, 1, whole.stages - 1};
                const Schedule cut = withoutBackwardBelow(whole, first).value();
                QCOMPARE(firstStagesBack(cut), first);
                QVERIFY2(validate(cut).valid(), toText(cut).c_str());
                QCOMPARE(contributorsOf(cut, 0).size(), holdersOf(cut.placement, 0).size() / 3);
                const Schedule shared = addShardOps(cut, ShardLevel::None, {GatherRule::Batch, 0, reduce}).value();
                const Validation validation = validate(shared);
                QVERIFY2(validation.valid(),
                         validation.valid() ? ""
                                            : (std::string(name) + ": " + validation.faults.front().message).c_str());
                // every holder takes part in every sum
                QCOMPARE(countOf(shared, OpKind::Optimizer), countOf(shared, OpKind::ReduceGrad));
                CostModel costs = CostModel::uniform(shared);
                costs.links.collectives = ResourceUse::Beside;
                for (int stage = 0; stage < shared.stages; ++stage)
                    costs.setDuration(OpKind::ReduceGrad, stage, rankShare);
                const auto simulated = simulate(shared, costs);
                QVERIFY2(simulated, simulated ? "" : (std::string(name) + ": " + simulated.error().message).c_str());
                const Schedule lowered = lower(cut, {}).value();
                QVERIFY2(validate(lowered).valid(), name);
                Schedule missing = cut;
                auto& last = missing.order.back(); // of the replica that goes back to the last stage only
                const auto at = std::find_if(last.begin(), last.end(), [](const Op& op) {
                    return op.kind == OpKind::Backward || op.kind == OpKind::InputGrad;
                });
                if (at == last.end()) continue;
                last.erase(at);
                QVERIFY(!validate(missing).valid());
            }
    }

    // Nobody goes back to stage 0, or a replica goes nowhere: that is a fault, not a cut.
    void faults()
    {
        const Schedule whole = overReplicas(plainSchedule("1f1b", 3, 4), 2).value();
        QVERIFY(!validate(withoutBackwardBelow(whole, std::vector<int>{1, 2}).value()).valid());
        QVERIFY(!validate(withoutBackwardBelow(whole, std::vector<int>{0, 3}).value()).valid());
        QVERIFY(!validate(withoutBackwardBelow(plainSchedule("1f1b", 3, 4), std::vector<int>{1}).value()).valid());
        const auto refused = [](const Result<Schedule>& made) {
            return !made && made.error().code == ErrorCode::Usage && !made.error().remedy.empty();
        };
        const std::vector<int> first{0, 1};
        QVERIFY(refused(withoutBackwardBelow(overReplicas(plainSchedule("pipedream", 3, 4), 2).value(), first)));
        QVERIFY(refused(withoutBackwardBelow(addShardOps(whole, ShardLevel::None, {}).value(), first)));
        const Schedule cut = withoutBackwardBelow(whole, first).value();
        QVERIFY(refused(addShardOps(cut, ShardLevel::Gradients, {})));
        QVERIFY(refused(addShardOps(cut, ShardLevel::None, {GatherRule::Batch, 0, ReduceRule::Microbatch})));
    }

    // N replicas of N stages, the k-th going back through k of them: (N + 1) / (2N) of the backward work, executed op
    // by op.
    void meanBackward()
    {
        for (const int n : {2, 4, 8}) {
            const Schedule cut = staircase("1f1b", n, 2 * n, n);
            QCOMPARE(countOf(cut, OpKind::Backward) * 2 * n, (n + 1) * countOf(cut, OpKind::Forward));
            for (int stage = 0; stage < n; ++stage) {
                QCOMPARE(countOf(cut, OpKind::Backward, stage), (stage + 1) * 2 * n);
                // |{k: cut_k ≤ stage}|
                QCOMPARE(contributorsOf(cut, stage).size(), static_cast<std::size_t>(stage + 1));
            }
            // Simulated: the busy time, and a replica that goes back through one stage ends with it.
            const CostModel costs = CostModel::uniform(cut, {.forward = 1, .inputGrad = 1, .weightGrad = 1});
            const SimResult result = simulate(cut, costs).value();
            Nanos backward = 0;
            std::size_t id = 0;
            for (const auto& ops : cut.order)
                for (const Op& op : ops) {
                    if (op.kind == OpKind::Backward) backward += result.end[id] - result.start[id];
                    ++id;
                }
            QCOMPARE(backward * 2 * n, (n + 1) * Nanos{2} * 2 * n * n * n * rankShare);
        }
    }

    // What lies below a cut holds nothing.
    void activations()
    {
        const Schedule cut = staircase("1f1b", 4, 8, 4);
        const std::vector<Bytes> peaks = activationPeaks(cut, CostModel::uniform(cut));
        for (int replica = 0; replica < 4; ++replica)
            for (int rank = 0; rank < 4; ++rank) {
                const Bytes held = peaks[static_cast<std::size_t>(replica * 4 + rank)];
                QCOMPARE(held, rank < 3 - replica ? 0 : (4 - rank) * activationShare);
            }
    }

    void ranges()
    {
        const std::vector<std::int64_t> from{0, 6, 10};
        const std::vector<std::int64_t> samples{2, 1, 5};
        const auto made = contributedRanges(from, samples, 10);
        QCOMPARE(made.size(), std::size_t{2});
        QCOMPARE(made[0].end, 6);
        QCOMPARE(made[0].scale, 4.0F);
        QCOMPARE(made[0].contributes, (std::vector<char>{1, 0, 0}));
        QCOMPARE(made[1].begin, 6);
        QCOMPARE(made[1].scale, static_cast<float>(8.0 / 3.0));
        QCOMPARE(made[1].contributes, (std::vector<char>{1, 1, 0}));
    }

    // Bytes by contributors: an owner takes its piece from every one of them, and sums of the others' pieces.
    void volumes()
    {
        const Schedule shared = addShardOps(staircase("gpipe", 2, 4, 2), ShardLevel::None, {}).value();
        CostModel costs = CostModel::uniform(shared);
        for (StageMemory& memory : costs.memory) memory.weight = memory.gradient = 1000;
        const auto volumes = collectiveVolumes(shared, costs);
        // Stage 0 has one contributor, of replica 1: it takes sums, replica 0 its piece and sums. Stage 1 has both.
        QCOMPARE(volumes[0].reduced, 500 + 500);
        QCOMPARE(volumes[2].reduced, 500);
        QCOMPARE(volumes[1].reduced, 500 + 500);
        QCOMPARE(volumes[3].reduced, 500 + 500);
    }
};

QTEST_GUILESS_MAIN(TestPartialBackward)
#include "tst_partial_backward.moc"
