// A mixed cluster for real, its speeds and memory declared: compute divided by --replica-batch with sizes, state by
// shares. The division that treats both apart (Cephalo, arXiv 2411.01075) fits where one by speed does not, and does in
// a step what an even one does in two.
#include <QTest>

#include <numeric>

#include "engine/check/check.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

constexpr int replicas = 3, chunks = 2, samples = 12;
constexpr std::array<int, replicas> speeds{3, 2, 1};
constexpr std::array<Bytes, replicas> limits{3'100'000, 3'200'000, 3'500'000}; // the fast one has the least

struct Split {
    const char* name;
    std::array<ReplicaBatch, replicas> batches; // microbatches x samples
    std::array<int, replicas> shares;           // of the state, in twelfths
};
constexpr Split even{"even", {{{2, 2}, {2, 2}, {2, 2}}}, {4, 4, 4}};
constexpr Split bySpeed{"by speed", {{{3, 2}, {2, 2}, {2, 1}}}, {6, 4, 2}};
constexpr Split decoupled{"decoupled", {{{3, 2}, {2, 2}, {2, 1}}}, {2, 4, 6}};

// Layer-wise: a chunk is gathered once for all microbatches.
Schedule listsOf(const Split& split)
{
    std::vector<Schedule> each;
    for (const ReplicaBatch& batch : split.batches)
        each.push_back(librarySchedule("bfs", 1, batch.microbatches, chunks));
    return addShardOps(overReplicas(each).value(), ShardLevel::Weights, {GatherRule::Batch, 0, ReduceRule::Overlapped})
        .value();
}

TrainingOptions optionsOf(const Split& split)
{
    TrainingOptions options = fakeOptions(ClockMode::Virtual);
    options.backend = "cpu";
    options.workload = test::gpt({4, 64, 2, 8, 256});
    options.sharding = {ShardLevel::Weights, ShardBy::Shares, {}, 16'384};
    for (std::size_t i = 0; i < replicas; ++i) {
        options.replicaSamples.push_back(split.batches[i].samples);
        options.sharding.shares.push_back({split.shares[i], samples});
        options.perturbation.slowFactor.push_back(static_cast<double>(speeds[0]) / speeds[i]);
    }
    return options;
}

struct Ran {
    std::unique_ptr<Training> training;
    StepOutcome step;
};

Ran ran(const Split& split, const TrainingOptions& options)
{
    Ran out;
    auto training = trainingOf(listsOf(split), options);
    if (!training) qFatal("%s", training.error().message.c_str());
    out.training = std::move(*training);
    for (int i = 0; i < 2; ++i) {
        auto step = out.training->step({});
        if (!step) qFatal("%s: %s", split.name, step.error().message.c_str());
        out.step = std::move(*step);
    }
    return out;
}

Bytes elementsOf(const Workload& workload)
{
    Bytes all = 0;
    const std::vector<StageSlice> slices = slicesOf(workload, chunks).value();
    for (const StageSlice& slice : slices)
        for (const std::int64_t layer : workload.layerElements(slice)) all += layer;
    return all;
}

// What ran, at the declared speeds: a sample's forward takes a rank of speed 1 rankShare / chunks, its backward twice
// that.
Nanos declaredTime(const Split& split, const Schedule& ran)
{
    CostModel costs = CostModel::uniform(ran);
    for (int microbatch = 0, replica = 0, first = 0; replica < replicas; ++replica) {
        const auto at = static_cast<std::size_t>(replica);
        for (first += split.batches[at].microbatches; microbatch < first; ++microbatch)
            for (int stage = 0; stage < chunks; ++stage)
                for (const auto& [kind, times] : {std::pair(OpKind::Forward, 1), std::pair(OpKind::Backward, 2)})
                    costs.setMicrobatchDuration(kind, stage, microbatch,
                                                times * split.batches[at].samples * rankShare / chunks / speeds[at]);
    }
    return simulate(ran, costs).value().makespan;
}

} // namespace

class TestMixedTraining : public QObject {
    Q_OBJECT

private slots:
    void equalsTheReplay()
    {
        for (const Split& split : {even, bySpeed, decoupled}) {
            const auto result = checkOf(listsOf(split), optionsOf(split), 2, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->gradientsEqual && result->lossesEqual && result->weightsEqual, split.name);
            QVERIFY2(result->passed, result->note.c_str());
        }
    }

    // Samples that each rank takes through its chunks, counted in what ran: alike, or by speed; so at the declared
    // speeds it lasts 4 turns or 2.
    void decoupledSplitIsFaster()
    {
        const auto sampled = [](const Split& split, const Timeline& timeline) {
            std::array<int, replicas> out{};
            for (int rank = 0; rank < replicas; ++rank) {
                const auto at = static_cast<std::size_t>(rank);
                for (const Span& span : timeline.spansOf(*timeline.trackOf(rank, Lane::Compute)))
                    if (span.op.kind == OpKind::Forward) out[at] += split.batches[at].samples;
            }
            return out;
        };
        const Ran evenRun = ran(even, optionsOf(even)), decoupledRun = ran(decoupled, optionsOf(decoupled));
        QCOMPARE(sampled(even, *evenRun.step.timeline),
                 (std::array<int, replicas>{4 * chunks, 4 * chunks, 4 * chunks}));
        QCOMPARE(sampled(decoupled, *decoupledRun.step.timeline),
                 (std::array<int, replicas>{6 * chunks, 4 * chunks, 2 * chunks}));
        for (const auto& [split, run, turns] :
             {std::tuple(&even, &evenRun, 4), std::tuple(&decoupled, &decoupledRun, 2)}) {
            const Schedule lists = scheduleOf(*run->step.timeline, run->step.step).value();
            QVERIFY2(lists == listsOf(*split), split->name);
            QCOMPARE(declaredTime(*split, lists), turns * 3 * rankShare);
        }
        qInfo("virtual clock: even %.2f ms, decoupled %.2f ms", static_cast<double>(evenRun.step.stepTime) / 1e6,
              static_cast<double>(decoupledRun.step.stepTime) / 1e6);
    }

    // State is where the shares say; the fast card's limit refuses the division by speed, by rank and op, and takes the
    // others.
    void decoupledSplitFits()
    {
        const Bytes elements = elementsOf(*optionsOf(even).workload);
        for (const Split& split : {even, bySpeed, decoupled}) {
            const Ran free = ran(split, optionsOf(split));
            for (int rank = 0; rank < replicas; ++rank) {
                const auto at = static_cast<std::size_t>(rank);
                const Bytes held = free.training->peak(MemoryCategory::Weights)[at] +
                                   free.training->peak(MemoryCategory::Optimizer)[at];
                // rounded to whole elements
                QVERIFY2(std::abs(held - 12 * elements * split.shares[at] / samples) <= 12 * chunks, split.name);
            }
            TrainingOptions limited = optionsOf(split);
            limited.rankMemory.assign(limits.begin(), limits.end());
            auto training = trainingOf(listsOf(split), limited);
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            for (int i = 0; i < 2; ++i) {
                const auto step = (*training)->step({});
                const bool fits = QByteArray(split.name) != bySpeed.name;
                QVERIFY2(step.has_value() == fits, step ? split.name : step.error().message.c_str());
                if (fits) continue;
                const QString words = QString::fromStdString(step.error().message);
                QVERIFY2(words.startsWith("rank 0, op ") &&
                             words.contains(QString("over the limit of %1").arg(limits[0])),
                         qPrintable(words));
                break;
            }
            if (QByteArray(split.name) == decoupled.name) QCOMPARE(free.step.loss, ran(split, limited).step.loss);
        }
    }
};

QTEST_GUILESS_MAIN(TestMixedTraining)
#include "tst_mixed_training.moc"
