// How long the parts of a model take, timed while it trains.
#include <QTest>

#include <numeric>

#include "engine/training/training.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/library/registry.h"
#include "schedules/model/layer_costs.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

Result<std::unique_ptr<Training>> trainingOf(const char* schedule)
{
    TrainingOptions options;
    options.workload = test::gpt({6, 32, 2, 32, 256});
    options.microbatchSize = 2;
    options.clock = ClockMode::Virtual;
    return test::trainingOf(makeSchedule(schedule, {2, 4}).value(), options);
}

} // namespace

class TestLayerTimes : public QObject {
    Q_OBJECT

private slots:
    void everyPartIsTimed_data()
    {
        QTest::addColumn<QString>("schedule");
        for (const char* schedule : {"1f1b", "zb-h1", "zbv", "chimera"}) QTest::newRow(schedule) << schedule;
    }
    void everyPartIsTimed()
    {
        QFETCH(QString, schedule);
        auto training = trainingOf(qPrintable(schedule));
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        QVERIFY((*training)->step({}));
        QVERIFY((*training)->layerCosts().empty()); // nobody asked
        (*training)->timeLayers(true);
        for (int step = 0; step < 2; ++step) QVERIFY((*training)->step({}));
        (*training)->timeLayers(false);
        const auto parts = (*training)->layerCosts();
        QVERIFY((*training)->step({}));
        QVERIFY((*training)->layerCosts() == parts); // no longer
        QCOMPARE(parts.size(), std::size_t{8});
        QCOMPARE(parts.front().part, LayerCosts::Part::Embedding);
        QCOMPARE(parts.back().part, LayerCosts::Part::Head);
        QCOMPARE(blocksOf(parts), 6);
        for (const LayerCosts& part : parts)
            for (const OpKind kind : {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad})
                QCOMPARE(part.duration[static_cast<std::size_t>(kind)] > 0,
                         kind != OpKind::InputGrad || part.part != LayerCosts::Part::Embedding);
        // its bytes are those of the whole model
        const StageMemory whole = stageMemoryOf({6, 32, 2, 32, 256}, {0, 0, 6, true, true}, 2);
        StageMemory sum;
        for (const LayerCosts& part : parts) {
            sum.activation += part.memory.activation;
            sum.freedAtInput += part.memory.freedAtInput;
            sum.weight += part.memory.weight;
        }
        QCOMPARE(sum.activation, whole.activation);
        QCOMPARE(sum.freedAtInput, whole.freedAtInput);
        QCOMPARE(sum.weight, whole.weight);
    }

    // A sequence slice is not a whole microbatch.
    void slicesAreNotTimed()
    {
        auto training = trainingOf("terapipe:slices=2");
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        (*training)->timeLayers(true);
        QVERIFY((*training)->step({}));
        QVERIFY((*training)->layerCosts().empty());
    }
};

QTEST_GUILESS_MAIN(TestLayerTimes)
#include "tst_layer_times.moc"
