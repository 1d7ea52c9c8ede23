// A mixed cluster for real, its speeds and memory declared: compute divided by --replica-batch with sizes, state by shares. The division that
// treats both apart (Cephalo, arXiv 2411.01075) fits where one by speed does not, and does in a step what an even one does in two.
#include <QTest>

#include <numeric>

#include "engine/layers/stage_memory.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

constexpr int replicas = 3, chunks = 2, samples = 12;
constexpr std::array<int, replicas> speeds{3, 2, 1};

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
    for (const ReplicaBatch& batch : split.batches) each.push_back(librarySchedule("bfs", 1, batch.microbatches, chunks));
    return addShardOps(overReplicas(each).value(), ShardLevel::Weights, {GatherRule::Batch, 0, ReduceRule::Overlapped}).value();
}

TrainingOptions optionsOf(const Split& split)
{
    TrainingOptions options = fakeOptions(ClockMode::Virtual);
    options.backend = "cpu";
    options.model = {4, 64, 2, 8, 256};
    options.sharding = {ShardLevel::Weights, ShardBy::Shares, {}, 0};
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
    auto training = Training::create(listsOf(split), options);
    if (!training) qFatal("%s", training.error().message.c_str());
    out.training = std::move(*training);
    for (int i = 0; i < 2; ++i) {
        auto step = out.training->step({});
        if (!step) qFatal("%s: %s", split.name, step.error().message.c_str());
        out.step = std::move(*step);
    }
    return out;
}

// Elements of the largest chunk and of all.
std::pair<Bytes, Bytes> elementsOf(const ModelConfig& model)
{
    Bytes largest = 0, all = 0;
    const std::vector<StageSlice> slices = sliceModel(model, chunks).value();
    for (const StageSlice& slice : slices) {
        const auto layers = layerElements(model, slice);
        const Bytes chunk = std::accumulate(layers.begin(), layers.end(), Bytes(0));
        largest = std::max(largest, chunk);
        all += chunk;
    }
    return {largest, all};
}

} // namespace

class TestMixedTraining : public QObject {
    Q_OBJECT

private slots:
    void equalsTheReplay()
    {
        for (const Split& split : {even, bySpeed, decoupled}) {
            const auto result = checkSchedule(listsOf(split), optionsOf(split), 2, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->gradientsEqual && result->lossesEqual && result->weightsEqual, split.name);
            QVERIFY2(result->passed, result->note.c_str());
        }
    }

    void peaks()
    {
        for (const Split& split : {even, bySpeed, decoupled}) {
            const TrainingOptions options = optionsOf(split);
            const auto [training, step] = ran(split, options);
            const auto [largest, all] = elementsOf(options.model);
            qInfo("%s: largest %lld all %lld time %lld", split.name, (long long)largest, (long long)all, (long long)step.stepTime);
            for (int rank = 0; rank < replicas; ++rank) {
                QString s;
                for (std::size_t i = 0; i < memoryCategoryCount; ++i) s += QString(" %1").arg(training->peak(static_cast<MemoryCategory>(i))[rank]);
                Bytes now = 0, peak = 0;
                for (const MemoryEvent& e : step.timeline->memoryOf(rank)) {
                    now += e.delta;
                    peak = std::max(peak, now);
                }
                qInfo("rank %d:%s sum over events %lld", rank, qPrintable(s), (long long)peak);
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestMixedTraining)
#include "tst_mixed_training.moc"
