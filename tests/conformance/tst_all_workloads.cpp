// Every workload of the registry, and one that exists here only, on every backend: gradients and losses against the
// one-rank replay, losses that fall, memory as predicted, costs by layer, and the way back from a run's configuration.
// A backend without a device here computes over a module without CUDA.
#include <cmath>

#include <QTemporaryDir>
#include <QTest>

#include "engine/check/check.h"
#include "engine/check/double_check.h"
#include "engine/check/kernel_times.h"
#include "engine/torch/torch_job.h"
#include "engine/workload/configured_model.h"
#include "engine/workload/references.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "support/of_schedule.h"

using namespace stagewright;

namespace {

struct Place {
    const char* backend;
    Precision precision;
};
// Bits are compared in fp32; what bf16 must hold, the tests of layers say.
std::vector<Place> places()
{
    std::vector<Place> out;
    for (const std::string_view name : backendNames()) out.push_back({name.data(), Precision::Fp32});
    out.push_back({"cuda", Precision::Bf16});
    return out;
}

// As a test can afford it: the first workload's defaults are for a recording.
std::shared_ptr<const Workload> small(const WorkloadInfo& info)
{
    return info.make(info.name == "gpt" ? "layers=6,hidden=16,heads=2,seq=8" : "").value();
}

TrainingOptions optionsOf(const QString& workload, const QString& backend, int precision)
{
    TrainingOptions options;
    for (const WorkloadInfo& info : allWorkloads())
        if (info.name == workload.toStdString()) options.workload = small(info);
    options.microbatchSize = 4;
    options.backend = backend.toStdString();
    options.device.precision = static_cast<Precision>(precision);
    options.clock = ClockMode::Virtual;
    options.optimizer.warmupSteps = 0;
    return options;
}

Bytes sumOf(const std::vector<StageMemory>& stages, Bytes StageMemory::*which)
{
    Bytes sum = 0;
    for (const StageMemory& stage : stages) sum += stage.*which;
    return sum;
}

} // namespace

class TestAllWorkloads : public QObject {
    Q_OBJECT

    static void rows()
    {
        QTest::addColumn<QString>("workload");
        QTest::addColumn<QString>("backend");
        QTest::addColumn<int>("precision");
        for (const WorkloadInfo& info : allWorkloads())
            for (const Place& place : places())
                QTest::addRow("%s on %s in %s", std::string(info.name).c_str(), place.backend,
                              std::string(toText(place.precision)).c_str())
                    << QString::fromStdString(std::string(info.name)) << place.backend
                    << static_cast<int>(place.precision);
    }

private slots:
    void initTestCase()
    {
        qputenv("STAGEWRIGHT_CUDA_MODULE", STAGEWRIGHT_FAKE_CUDA);
        QVERIFY(allWorkloads().size() > 1);
        for (const std::string_view name : backendNames()) QVERIFY(makeBackend(name));
    }

    void trains_data() { rows(); }
    void trains()
    {
        QFETCH(QString, workload);
        QFETCH(QString, backend);
        QFETCH(int, precision);
        const TrainingOptions options = optionsOf(workload, backend, precision);
        for (const char* name : {"1f1b", "interleaved-1f1b", "zb-h1"}) {
            const auto result = test::checkOf(makeSchedule(name, Shape(2, 4, 0)).value(), options, 2, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, (std::string(name) + ": " + result->note).c_str());
            QVERIFY(result->gradientsEqual && result->lossesEqual && result->repeatEqual && result->orderEqual);
        }
    }

    void recomputes_data() { rows(); }
    void recomputes()
    {
        QFETCH(QString, workload);
        QFETCH(QString, backend);
        QFETCH(int, precision);
        const TrainingOptions options = optionsOf(workload, backend, precision);
        const Schedule plain = makeSchedule("1f1b", Shape(2, 4, 0)).value();
        const Schedule again = withRecompute(plain, {true, true});
        std::vector<std::vector<float>> gradients[2];
        for (int i = 0; i < 2; ++i) {
            auto training = test::trainingOf(i == 0 ? plain : again, options);
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            (*training)->keepGradients(true);
            QVERIFY((*training)->step({}));
            gradients[i] = (*training)->lastGradients();
        }
        QVERIFY(gradients[0] == gradients[1]);
    }

    // Ranks that share weights, gradients and optimizer state.
    void shares_data() { rows(); }
    void shares()
    {
        QFETCH(QString, workload);
        QFETCH(QString, backend);
        QFETCH(int, precision);
        TrainingOptions options = optionsOf(workload, backend, precision);
        options.sharding = {ShardLevel::Weights, ShardBy::Even, {}, 0};
        const Schedule plain = makeSchedule("1f1b", Shape(2, 4, 0)).value();
        const Schedule lists =
            addShardOps(overReplicas(plain, 2).value(), ShardLevel::Weights, {GatherRule::Batch, 0, ReduceRule::Late})
                .value();
        const auto result = test::checkOf(lists, options, 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed && result->weightsEqual, result->note.c_str());
    }

    void learns_data() { rows(); }
    void learns()
    {
        QFETCH(QString, workload);
        QFETCH(QString, backend);
        QFETCH(int, precision);
        auto training =
            test::trainingOf(makeSchedule("1f1b", Shape(2, 4, 0)).value(), optionsOf(workload, backend, precision));
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        double first = 0, last = 0;
        for (int step = 0; step < 12; ++step) {
            const auto outcome = (*training)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            (step < 2 ? first : last) += step < 2 || step >= 10 ? outcome->loss : 0;
        }
        QVERIFY2(std::isfinite(last) && last < 0.97 * first, qPrintable(QString("%1, then %2").arg(first).arg(last)));
    }

    // What ranks hold is what memoryOf() predicts; the costs by layer have the same bytes, and a duration for each op.
    void costs_data() { rows(); }
    void costs()
    {
        QFETCH(QString, workload);
        QFETCH(QString, backend);
        QFETCH(int, precision);
        const TrainingOptions options = optionsOf(workload, backend, precision);
        const Workload& trained = *options.workload;
        constexpr int microbatches = 4;
        auto training = test::trainingOf(makeSchedule("gpipe", Shape(2, microbatches, 0)).value(), options);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        QVERIFY((*training)->step({}));
        (*training)->timeLayers(true);
        QVERIFY((*training)->step({}));
        const StageLayout layout = traitsOf(options.backend).layout(options.device.precision);
        const std::vector<StageSlice> slices = slicesOf(trained, 2).value();
        std::vector<StageMemory> stages;
        for (const StageSlice& slice : slices) {
            const auto rank = static_cast<std::size_t>(slice.stage);
            const StageMemory memory =
                stages.emplace_back(trained.memoryOf(slice, options.microbatchSize, options.optimizer, layout));
            QCOMPARE((*training)->peak(MemoryCategory::Weights)[rank], memory.weight);
            QCOMPARE((*training)->peak(MemoryCategory::Gradients)[rank], memory.gradient);
            QCOMPARE((*training)->peak(MemoryCategory::Optimizer)[rank], memory.optimizer);
            const Bytes most = microbatches * memory.activation + std::max<Bytes>(0, -memory.freedAtInput);
            const Bytes activations = (*training)->peak(MemoryCategory::Activations)[rank];
            QVERIFY2(activations >= microbatches * memory.activation && activations <= most,
                     qPrintable(QString("%1 of %2").arg(activations).arg(most)));
            std::int64_t weights = 0;
            for (const std::int64_t layer : trained.layerElements(slice)) weights += layer;
            QCOMPARE(memory.gradient, static_cast<Bytes>(sizeof(float)) * weights);
            const double whole = trained.flops(OpKind::Backward, slice, options.microbatchSize);
            QCOMPARE(trained.flops(OpKind::InputGrad, slice, options.microbatchSize) +
                         trained.flops(OpKind::WeightGrad, slice, options.microbatchSize),
                     whole);
            QVERIFY(trained.flops(OpKind::Forward, slice, options.microbatchSize) > 0 && whole > 0);
        }
        const std::vector<LayerCosts> parts = (*training)->layerCosts();
        QCOMPARE(parts.size(), static_cast<std::size_t>(trained.layers()) + 2);
        std::vector<StageMemory> ofParts;
        for (const LayerCosts& part : parts) {
            ofParts.push_back(part.memory);
            QVERIFY(part.duration[static_cast<std::size_t>(OpKind::WeightGrad)] > 0);
        }
        QCOMPARE(sumOf(ofParts, &StageMemory::weight), sumOf(stages, &StageMemory::weight));
        QCOMPARE(sumOf(ofParts, &StageMemory::activation), sumOf(stages, &StageMemory::activation));
        QCOMPARE(sumOf(ofParts, &StageMemory::freedAtInput), sumOf(stages, &StageMemory::freedAtInput));

        // a recorded run says what it trained
        const auto known = configuredModel((*training)->configuration());
        QVERIFY(known);
        QCOMPARE(toText(*known->workload), toText(trained));
        QCOMPARE(known->stageLayers, layersOfStages(trained, 2).value());
        QCOMPARE(known->inputShares(known->stageLayers).size(), std::size_t{2});
    }

    void itsWords()
    {
        for (const WorkloadInfo& info : allWorkloads()) {
            const auto made = small(info);
            QCOMPARE(made->name(), info.name);
            QVERIFY(!info.title.empty() && !made->dataName().empty());
            const auto again = parseWorkload(toText(*made));
            QVERIFY2(again, again ? "" : again.error().message.c_str());
            QCOMPARE(toText(**again), toText(*made));
            QCOMPARE((*again)->shape(), made->shape());
            QCOMPARE(made->withLayers(9)->layers(), 9);
            QCOMPARE(slicesOf(*made, made->layers() + 1).error().code, ErrorCode::Usage);
            const auto unknown = info.make("nothing=1");
            QVERIFY(!unknown && !unknown.error().remedy.empty());
        }
        const auto unknown = parseWorkload("nothing:layers=2");
        QVERIFY(!unknown);
        QCOMPARE(unknown.error().code, ErrorCode::Usage);
        QVERIFY(QString::fromStdString(unknown.error().remedy).contains("gpt (a GPT-style decoder on bytes), mlp"));
    }

    // Checks that need more than a workload has are refused by name.
    void whatIsMissingIsSaid()
    {
        for (const WorkloadInfo& info : allWorkloads()) {
            TrainingOptions options;
            options.workload = small(info);
            const auto compared = compareWithDouble(options);
            QCOMPARE(compared.has_value(), options.workload->doubleForm(1).has_value());
            if (compared) QVERIFY(compared->passed);
            if (!compared) QCOMPARE(compared.error().code, ErrorCode::Usage);
            if (info.name == "gpt") continue; // tests/cli/kernels.sh times them
            QCOMPARE(timeKernels("cpu", {}, *options.workload, 1, {}).error().code, ErrorCode::Usage);
            QTemporaryDir folder;
            TorchJob job;
            job.schedule = makeSchedule("1f1b", Shape(2, 4, 0)).value();
            job.training = options;
            const auto written = writeTorchJob(job, newestTorch, folder.path().toStdString());
            QVERIFY(!written && !options.workload->runsInTorch());
            QCOMPARE(written.error().code, ErrorCode::Usage);
        }
    }
};

QTEST_GUILESS_MAIN(TestAllWorkloads)
#include "tst_all_workloads.moc"
