// A measured step through the rooms that explain it: fitted costs give the measured activation peaks, the causes of
// idle time sum to the idle time, on both clocks, for every library schedule.
#include <QTest>

#include <numeric>

#include "schedules/execute/simulate.h"
#include "schedules/library/variants.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"
#include "traces/fit/fit_costs.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

class TestTrainingTruth : public QObject {
    Q_OBJECT

private slots:
    void everySchedule_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("clock");
        for (const std::string& name : everyVariant()) {
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                QTest::addRow("%s %s", name.c_str(), toText(clock).data())
                    << QString::fromStdString(name) << static_cast<int>(clock);
            }
        }
    }

    void everySchedule()
    {
        QFETCH(QString, name);
        QFETCH(int, clock);
        const Schedule schedule = librarySchedule(name.toStdString(), 4, 8);
        TrainingOptions options = fakeOptions(static_cast<ClockMode>(clock));
        options.backend = "cpu";
        options.links.all = {20'000, 1e9};
        auto training = trainingOf(schedule, options);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        const Timeline& timeline = *outcome->timeline;

        auto costs = fitCosts(timeline);
        QVERIFY2(costs, costs ? "" : costs.error().message.c_str());
        const bool onVirtual = clock == static_cast<int>(ClockMode::Virtual);
        const std::vector<Bytes> real = (*training)->peak(MemoryCategory::Activations);
        if (cellsOf(schedule)->slices > 1) { // kept keys and values outlive their slice
            const std::vector<Bytes> predicted = activationPeaks(schedule, *costs);
            for (std::size_t rank = 0; rank < real.size(); ++rank)
                QVERIFY(std::abs(static_cast<double>(predicted[rank] - real[rank])) <=
                        0.15 * static_cast<double>(real[rank]));
        } else {
            QCOMPARE(activationPeaks(schedule, *costs), real);
            QCOMPARE(peakByRank(timeline, 0), real);
        }
        for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
            for (const Op& op : schedule.order[rank])
                QVERIFY2(!isBusy(op.kind) || costs->duration(op, static_cast<int>(rank)) > 0, toText(op).c_str());
        QCOMPARE(peakByRank(timeline, 0, MemoryCategory::Weights), (*training)->peak(MemoryCategory::Weights));

        auto bubbles = analyseBubbles(timeline, 0);
        QVERIFY2(bubbles, bubbles ? "" : bubbles.error().message.c_str());
        QCOMPARE(std::accumulate(bubbles->byCause.begin(), bubbles->byCause.end(), Nanos(0)), bubbles->idle);
        QVERIFY(bubbles->idle > 0);
        if (onVirtual) {
            // Only warm-up, drain, inputs and links delay a rank there.
            QCOMPARE(bubbles->byCause[static_cast<std::size_t>(IdleCause::Launch)], Nanos(0));
            QVERIFY(std::abs(bubbles->bubbleFraction - bubbleOf(timeline)) < 1e-9);
        }
    }
};

QTEST_GUILESS_MAIN(TestTrainingTruth)
#include "tst_training_truth.moc"
