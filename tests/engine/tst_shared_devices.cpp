// State that ranks share on devices (fake ones, which fail on an access that no mark puts in order): gradients, losses
// and weights are those of the one-rank replay bit for bit, what a rank does not own is not allocated, and bytes are
// counted.
#include <QTest>

#include "engine/check/check.h"
#include "engine/device/backend.h"
#include "engine/training/training.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/library/registry.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/shard_rules.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

constexpr ShardLevel everyLevel[] = {ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Gradients,
                                     ShardLevel::Weights};

TrainingOptions onDevices(Precision precision, const StateSharding& sharding)
{
    TrainingOptions options;
    options.workload = test::gpt({4, 16, 2, 8, 256});
    options.microbatchSize = 2;
    options.backend = "cuda";
    options.device.precision = precision;
    options.sharding = sharding;
    options.timeoutSeconds = 60;
    return options;
}

Schedule lists(const char* name, int ranks, int microbatches, int replicas, ShardLevel level, const ShardRules& rules)
{
    const Schedule plain = makeSchedule(name, Shape(ranks, microbatches, 0)).value();
    return addShardOps(overReplicas(plain, replicas).value(), level, rules).value();
}

Bytes held(const Training& training, MemoryCategory category, int rank = 0)
{
    return training.peak(category)[static_cast<std::size_t>(rank)];
}

} // namespace

class TestSharedDevices : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("STAGEWRIGHT_CUDA_MODULE", STAGEWRIGHT_FAKE_CUDA); }

    void equalsTheReplay_data()
    {
        QTest::addColumn<int>("precision");
        QTest::addColumn<int>("level");
        for (const auto& [name, precision] : {std::pair("fp32", Precision::Fp32), std::pair("bf16", Precision::Bf16)})
            for (const ShardLevel level : everyLevel)
                QTest::addRow("%s %s", name, std::string(toText(level)).c_str())
                    << static_cast<int>(precision) << static_cast<int>(level);
    }

    void equalsTheReplay()
    {
        QFETCH(int, precision);
        QFETCH(int, level);
        const auto what = static_cast<ShardLevel>(level);
        struct Case {
            const char* schedule;
            int replicas;
            ShardBy by;
            std::vector<ShardShare> shares;
            Bytes bucket;
            ShardRules rules;
            double clip;
        };
        const Case cases[] = {
            {"1f1b", 2, ShardBy::Even, {}, 0, {GatherRule::Batch, 1, ReduceRule::Overlapped}, 0},
            {"zb-h1", 3, ShardBy::Layer, {}, 1000, {GatherRule::Microbatch, 0, ReduceRule::Late}, 0.05},
            {"bfs",
             2,
             ShardBy::Shares,
             {{1, 1}, {0, 1}},
             0,
             {GatherRule::Batch, 0, what < ShardLevel::Gradients ? ReduceRule::Late : ReduceRule::Microbatch},
             0.05},
            {"interleaved-1f1b",
             2,
             ShardBy::Shares,
             {{2, 3}, {1, 3}},
             3000,
             {GatherRule::Batch, 0, ReduceRule::Stepped},
             1.0},
            {"chimera", 1, ShardBy::Even, {}, 0, {GatherRule::Batch, 0, ReduceRule::Late}, 0},
        };
        for (const Case& one : cases) {
            const bool divided = what != ShardLevel::None;
            TrainingOptions options = onDevices(
                static_cast<Precision>(precision),
                {what, divided ? one.by : ShardBy::Even, divided ? one.shares : std::vector<ShardShare>(), one.bucket});
            options.optimizer.clipNorm = one.clip;
            const auto result = test::checkOf(lists(one.schedule, 2, 4, one.replicas, what, one.rules), options, 2, {});
            QVERIFY2(result, result ? "" : (std::string(one.schedule) + ": " + result.error().message).c_str());
            QVERIFY2(result->gradientsEqual && result->weightsEqual && result->lossesEqual && result->repeatEqual &&
                         result->copiesEqual && result->passed,
                     (std::string(one.schedule) + ": " + result->note).c_str());
        }
    }

    // Each rank on a device of its own: pieces are copied between devices, or sent by NCCL; on the wall clock and one
    // at a time.
    void betweenDevices()
    {
        qputenv("STAGEWRIGHT_FAKE_DEVICES", "4");
        for (const DeviceTransport transport : {DeviceTransport::Copies, DeviceTransport::Nccl})
            for (const ShardLevel level : everyLevel) {
                TrainingOptions options = onDevices(Precision::Bf16, {level, ShardBy::Even, {}, 2000});
                options.device.transport = transport;
                const auto result = test::checkOf(
                    lists("1f1b", 2, 4, 2, level, {GatherRule::Batch, 1, ReduceRule::Overlapped}), options, 2, {});
                QVERIFY2(result && result->passed, result ? result->note.c_str() : result.error().message.c_str());
            }
        qunsetenv("STAGEWRIGHT_FAKE_DEVICES");
    }

    // Bytes that a rank takes and holds, in two replicas of one rank: by hand.
    void bytes()
    {
        for (const Precision precision : {Precision::Fp32, Precision::Bf16})
            for (const ShardLevel level : everyLevel) {
                const TrainingOptions options = onDevices(precision, {level, ShardBy::Even, {}, 0});
                auto training =
                    test::trainingOf(lists("gpipe", 1, 2, 2, level, {GatherRule::Batch, 0, ReduceRule::Late}), options);
                QVERIFY2(training, training ? "" : training.error().message.c_str());
                const auto outcome = (*training)->step({});
                QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
                Bytes all = 0;
                for (const std::int64_t layer :
                     options.workload->layerElements(slicesOf(*options.workload, 1).value()[0]))
                    all += layer;
                const Bytes element = precision == Precision::Bf16 ? 2 : 4;
                const Bytes masters = precision == Precision::Bf16 ? 4 : 0;
                const bool optimizer = level >= ShardLevel::Optimizer;
                const RankTraffic& traffic = outcome->traffic[0];
                QCOMPARE(traffic.gathered, traffic.gathers * element * all / 2);
                QCOMPARE(traffic.gathers, level == ShardLevel::Weights ? traffic.gathers
                                          : level == ShardLevel::None  ? 0
                                                                       : 1);
                QVERIFY(level != ShardLevel::Weights || traffic.gathers > 0);
                // the other's half of the gradients, and of the sums
                QCOMPARE(traffic.reduced, level == ShardLevel::None ? 4 * all : 2 * all);
                QCOMPARE(held(**training, MemoryCategory::Weights),
                         (level == ShardLevel::Weights ? element * all / 2 : element * all) +
                             masters * (optimizer ? all / 2 : all));
                QCOMPARE(held(**training, MemoryCategory::Optimizer), 8 * (optimizer ? all / 2 : all));
                // Norms' scales and shifts stay: four in each block, two in the head.
                const Bytes norms = element * options.workload->width() * (4 * options.workload->layers() + 2);
                QCOMPARE(held(**training, MemoryCategory::Gathered),
                         level == ShardLevel::Weights ? element * all + norms : 0);
            }
    }

    // Partial backward: the mean over a layer's contributors, on the device.
    void partialBackward()
    {
        for (const Precision precision : {Precision::Fp32, Precision::Bf16}) {
            TrainingOptions options = onDevices(precision, {ShardLevel::Optimizer, ShardBy::Even, {}, 1000});
            options.cuts = {0, 3};
            const std::vector<int> first{0, 1};
            const Schedule cut =
                withoutBackwardBelow(overReplicas(makeSchedule("1f1b", Shape(2, 4, 0)).value(), 2).value(), first)
                    .value();
            const auto result = test::checkOf(
                addShardOps(cut, ShardLevel::Optimizer, {GatherRule::Batch, 0, ReduceRule::Overlapped}).value(),
                options, 2, {});
            QVERIFY2(result && result->passed && result->weightsEqual,
                     result ? result->note.c_str() : result.error().message.c_str());
        }
    }

    // Tensors of one vector must begin where a device's kernels can read them in pieces of 16 bytes.
    void refusesOddSizes()
    {
        TrainingOptions options = onDevices(Precision::Fp32, {ShardLevel::Weights, ShardBy::Even, {}, 0});
        options.workload = test::gpt({4, 18, 2, 8, 256});
        const auto training = test::trainingOf(lists("1f1b", 1, 2, 2, ShardLevel::Weights, {}), options);
        QVERIFY(!training);
        QVERIFY2(QString::fromStdString(training.error().message).contains("hidden 18 is not a multiple of 8"),
                 training.error().message.c_str());
    }

    // Weights in bf16 on the processor too, where its library is.
    void bf16OnTheProcessor()
    {
        for (const ShardLevel level : everyLevel) {
            TrainingOptions options = onDevices(Precision::Bf16, {level, ShardBy::Even, {}, 1000});
            options.backend = "cpu";
            if (const auto backend = makeBackend("cpu", options.device); !backend)
                QSKIP(backend.error().message.c_str());
            const auto result = test::checkOf(
                lists("zb-h1", 2, 4, 2, level, {GatherRule::Batch, 0, ReduceRule::Overlapped}), options, 2, {});
            QVERIFY2(result && result->passed && result->weightsEqual,
                     result ? result->note.c_str() : result.error().message.c_str());
        }
    }
};

QTEST_GUILESS_MAIN(TestSharedDevices)
#include "tst_shared_devices.moc"
