// A measured step through the rooms that explain it: fitted costs give the measured activation peaks, the causes of
// idle time sum to the idle time, on both clocks, for every schedule of the library.
#include <QTest>

#include <numeric>

#include "schedules/simulate.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"
#include "traces/fit/fit_costs.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

class TestTrainingTruth : public QObject
{
    Q_OBJECT

private slots:
    void everySchedule_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("clock");
        for (const ScheduleInfo& info : allSchedules()) {
            // Costs are fitted from whole ops, and kept inputs are no part of them; the CPU runs a pair one after the other.
            const Schedule schedule = librarySchedule(info.name, 4, 8);
            bool whole = schedule.weights == WeightRule::Synchronous;
            for (const Op& op : schedule.order[0])
                whole = whole && op.slice < 0 && op.kind != OpKind::Recompute;
            for (const auto& pairs : schedule.paired)
                whole = whole && pairs.empty();
            if (!whole) continue;
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                QTest::addRow("%s %s", info.name.data(), toText(clock).data())
                    << QString::fromUtf8(info.name.data(), static_cast<int>(info.name.size()))
                    << static_cast<int>(clock);
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
        auto training = Training::create(schedule, options);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        const Timeline& timeline = *outcome->timeline;

        auto costs = fitCosts(timeline);
        QVERIFY2(costs, costs ? "" : costs.error().message.c_str());
        QCOMPARE(activationPeaks(schedule, *costs), (*training)->peak(MemoryCategory::Activations));
        QCOMPARE(peakByRank(timeline, MemoryCategory::Activations, 0), (*training)->peak(MemoryCategory::Activations));
        QCOMPARE(peakByRank(timeline, MemoryCategory::Weights, 0), (*training)->peak(MemoryCategory::Weights));

        auto bubbles = analyseBubbles(timeline, 0);
        QVERIFY2(bubbles, bubbles ? "" : bubbles.error().message.c_str());
        QCOMPARE(std::accumulate(bubbles->byCause.begin(), bubbles->byCause.end(), Nanos(0)), bubbles->idle);
        QVERIFY(bubbles->idle > 0);
        if (clock == static_cast<int>(ClockMode::Virtual)) {
            // Nothing but warm-up, drain, inputs and links holds a rank up there.
            QCOMPARE(bubbles->byCause[static_cast<std::size_t>(IdleCause::Launch)], Nanos(0));
            QVERIFY(std::abs(bubbles->bubbleFraction - bubbleOf(timeline)) < 1e-9);
        }
    }
};

QTEST_GUILESS_MAIN(TestTrainingTruth)
#include "tst_training_truth.moc"
