// Replicas that go back to different layers, for real: each layer's gradient is its contributors' mean, what lies below
// a cut keeps nothing, only contributors send, and the distance from synchronous training is measured.
#include <QTest>

#include <cmath>
#include <numeric>

#include "engine/check/check.h"
#include "engine/check/partial_reference.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/shard_rules.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions options(std::vector<int> cuts, ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions out = fakeOptions(clock);
    out.backend = "cpu";
    out.workload = out.workload->withLayers(8);
    out.cuts = std::move(cuts);
    return out;
}

Schedule cutSchedule(const Schedule& whole, const TrainingOptions& training, const ShardRules& rules = {})
{
    std::vector<int> first;
    const std::vector<int> layers = layersOfStages(*training.workload, whole.stages, training.stageLayers).value();
    for (const int cut : training.cuts) first.push_back(firstStageOf(cut, layers));
    return addShardOps(withoutBackwardBelow(whole, first).value(), training.sharding.level, rules).value();
}

Schedule cutSchedule(const char* name, int ranks, int microbatches, const TrainingOptions& training,
                     const ShardRules& rules = {})
{
    return cutSchedule(
        overReplicas(librarySchedule(name, ranks, microbatches), static_cast<int>(training.cuts.size())).value(),
        training, rules);
}

void check(const Schedule& schedule, const TrainingOptions& training, int steps = 2)
{
    const auto result = checkOf(schedule, training, steps, {});
    QVERIFY2(result, result ? "" : (schedule.name + ": " + result.error().message).c_str());
    QVERIFY2(result->passed, (schedule.name + ": " + result->note).c_str());
    QVERIFY(result->partial && result->deviation > 0);
}

std::unique_ptr<Training> run(const Schedule& schedule, const TrainingOptions& training, StepOutcome& last,
                              int steps = 1)
{
    auto made = trainingOf(schedule, training);
    if (!made) qFatal("%s", made.error().message.c_str());
    for (int i = 0; i < steps; ++i) last = (*made)->step({}).value();
    return std::move(*made);
}

} // namespace

class TestPartialTraining : public QObject {
    Q_OBJECT

private slots:
    // Bit for bit the replay with the same cuts, and near an undivided model over each layer's contributors, which
    // knows no cuts.
    void equalsItsContributors_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "bfs", "chimera", "dualpipe"})
            QTest::addRow("%s", name) << QString(name);
    }
    void equalsItsContributors()
    {
        QFETCH(QString, name);
        const std::string text = name.toStdString();
        // inside stages, head only
        for (const std::vector<int>& cuts :
             {std::vector<int>{0, 4}, std::vector<int>{3, 0, 8}, std::vector<int>{0, 1, 5}})
            for (const ReduceRule reduce : {ReduceRule::Late, ReduceRule::Overlapped})
                check(cutSchedule(text.c_str(), 2, 4, options(cuts), {GatherRule::Batch, 0, reduce}), options(cuts));
        TrainingOptions sharded = options({4, 0, 7});
        sharded.sharding.level = ShardLevel::Optimizer;
        sharded.sharding.bucket = 1000;
        check(cutSchedule(text.c_str(), 2, 4, sharded, {GatherRule::Batch, 0, ReduceRule::Overlapped}), sharded);
    }

    void otherForms()
    {
        TrainingOptions clipped = options({0, 5});
        clipped.optimizer.clipNorm = 0.05;
        check(cutSchedule("1f1b", 2, 4, clipped), clipped, 3);
        TrainingOptions wall = options({0, 5}, ClockMode::Wall);
        check(cutSchedule("1f1b", 2, 4, wall), wall);
        TrainingOptions rendezvous = options({2, 0}, ClockMode::Wall);
        rendezvous.channels.sends = SendMode::Rendezvous;
        rendezvous.lowering.rule = LoweringRule::RankParity;
        check(cutSchedule("1f1b", 2, 4, rendezvous), rendezvous);
        // Uneven shares of the batch: the mean is over the contributors' samples.
        const Schedule parts[] = {librarySchedule("1f1b", 2, 3), librarySchedule("gpipe", 2, 5)};
        TrainingOptions uneven = options({0, 5});
        check(cutSchedule(overReplicas(parts).value(), uneven), uneven);
        uneven.replicaSamples = {4, 1};
        check(cutSchedule(overReplicas(parts).value(), uneven), uneven);
    }

    void recomputes()
    {
        for (const auto& [first, last] : {std::pair(0, 7), std::pair(2, 3), std::pair(5, 7)}) {
            TrainingOptions training = options({0, 3, 6});
            training.recomputedLayers = std::pair(first, last);
            check(cutSchedule("merak", 2, 4, training), training);
        }
    }

    // The replica that goes back through the head only holds no block's activations, weight gradients take (N + 1) /
    // (2N) of the blocks.
    void keepsNothingBelow()
    {
        TrainingOptions training = options({0, 2, 4, 6});
        training.stageLayers = {2, 2, 2, 2};
        StepOutcome outcome;
        const Schedule schedule = cutSchedule("gpipe", 4, 4, training);
        const auto made = run(schedule, training, outcome);
        const std::vector<Bytes> peaks = made->peak(MemoryCategory::Activations);
        TrainingOptions full = training;
        full.cuts.clear();
        StepOutcome ignored;
        const auto whole =
            run(addShardOps(overReplicas(librarySchedule("gpipe", 4, 4), 4).value(), ShardLevel::None, {}).value(),
                full, ignored);
        const std::vector<Bytes> fullPeaks = whole->peak(MemoryCategory::Activations);
        const std::vector<int>& layers = training.stageLayers;
        for (int replica = 0; replica < 4; ++replica) {
            int begin = 0;
            for (int rank = 0; rank < 4; ++rank) {
                const auto at = static_cast<std::size_t>(replica * 4 + rank);
                const int end = begin + layers[static_cast<std::size_t>(rank)];
                const int cut = training.cuts[static_cast<std::size_t>(replica)];
                if (rank < 3 && end <= cut)
                    QCOMPARE(peaks[at], Bytes{0});
                else if (begin >= cut)
                    QCOMPARE(peaks[at], fullPeaks[at]);
                else
                    QVERIFY(peaks[at] < fullPeaks[at]);
                begin = end;
            }
        }
        int forwards = 0, backwards = 0;
        for (const Span& span : outcome.timeline->spans()) {
            forwards += span.op.kind == OpKind::Forward ? 1 : 0;
            backwards += span.op.kind == OpKind::Backward ? 1 : 0;
        }
        QCOMPARE(backwards * 2 * 4, (4 + 1) * forwards);
    }

    // The members of each layer's reduction: what the transports count is what its contributors send, and the sums.
    void members()
    {
        for (const std::vector<int>& cuts :
             {std::vector<int>{0, 3, 8}, std::vector<int>{5, 0, 0}, std::vector<int>{0, 0, 0}}) {
            const TrainingOptions training = options(cuts);
            const auto replicas = static_cast<std::int64_t>(cuts.size());
            StepOutcome outcome;
            run(cutSchedule("1f1b", 2, 4, training), training, outcome);
            Bytes expected = 0;
            const std::vector<StageSlice> slices = slicesOf(*training.workload, 2).value();
            for (const StageSlice& slice : slices) {
                const std::vector<std::int64_t> elements = training.workload->layerElements(slice);
                const FlatState flat = flatStateOf({}, elements, static_cast<int>(replicas));
                std::vector<int> layer; // of each element
                int number = slice.first ? -1 : slice.firstLayer;
                for (const std::int64_t count : elements) {
                    layer.insert(layer.end(), static_cast<std::size_t>(count), std::max(0, number));
                    ++number;
                }
                layer.resize(static_cast<std::size_t>(flat.padded), layer.back());
                for (const ShardPiece& piece : flat.pieces)
                    for (std::int64_t i = piece.begin; i < piece.end; ++i) {
                        for (int k = 0; k < replicas; ++k)
                            if (k != piece.owner &&
                                cuts[static_cast<std::size_t>(k)] <= layer[static_cast<std::size_t>(i)])
                                expected += 4;
                        expected += 4 * (replicas - 1); // the sums, to all
                    }
            }
            Bytes reduced = 0;
            for (const RankTraffic& rank : outcome.traffic) reduced += rank.reduced;
            QCOMPARE(reduced, expected);
        }
    }

    // Beside the run: the head's gradient is that of all replicas, a layer of one contributor is not; with cuts of 0
    // nothing deviates.
    void deviation()
    {
        for (const bool cut : {true, false}) {
            const TrainingOptions training = options(cut ? std::vector<int>{0, 6} : std::vector<int>{0, 0});
            const Schedule schedule = cutSchedule("1f1b", 2, 4, training);
            auto made = trainingOf(schedule, training).value();
            made->keepGradients(true);
            auto reference = PartialReference::create(schedule, training, [] { return makeBackend("cpu"); }).value();
            for (int step = 0; step < 3; ++step) {
                reference->before(*made);
                const StepOutcome outcome = made->step({}).value();
                QVERIFY(reference->after(*made, {}));
                QCOMPARE(reference->layers().size(), std::size_t{10}); // embedding, 8 blocks, head
                QVERIFY(reference->layers().back().distance < 1e-5);
                QVERIFY(reference->layers().back().cosine > 1 - 1e-9);
                if (cut) {
                    QVERIFY(reference->layers().front().distance > 0.01);
                    QVERIFY(reference->layers().front().cosine < 1 - 1e-5);
                    QVERIFY(reference->deviation() > 1e-5);
                    if (step == 2) QVERIFY(outcome.loss != reference->loss());
                } else {
                    QVERIFY(reference->layers().front().distance < 1e-5);
                    QVERIFY(reference->deviation() < 1e-5);
                    QVERIFY(std::abs(outcome.loss - reference->loss()) < 1e-5);
                }
            }
        }
    }

    void refusals()
    {
        const TrainingOptions training = options({0, 7});
        const Schedule cut = cutSchedule("1f1b", 2, 4, training);
        const auto refused = [](const Schedule& schedule, const TrainingOptions& request, const char* text) {
            const auto made = trainingOf(schedule, request);
            QVERIFY2(!made && made.error().code == ErrorCode::Usage &&
                         made.error().message.find(text) != std::string::npos,
                     made ? text : made.error().message.c_str());
        };
        refused(cut, options({}), "no cut says so");
        refused(cut, options({0}), "1 cuts for 2 replicas");
        refused(cut, options({0, 2}), "its lists go back to stage 1");
        refused(cut, options({0, 9}), "can't go back to layer 9");
        refused(overReplicas(librarySchedule("1f1b", 2, 4), 2).value(), options({0, 1}), "do not say when");
        TrainingOptions gradients = training;
        gradients.sharding.level = ShardLevel::Optimizer; // lists that gather the stepped weights
        const Schedule gathered = cutSchedule("1f1b", 2, 4, gradients);
        gradients.sharding.level = ShardLevel::Gradients;
        refused(gathered, gradients, "can't shard gradients");
    }
};

QTEST_GUILESS_MAIN(TestPartialTraining)
#include "tst_partial_training.moc"
