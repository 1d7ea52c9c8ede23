// Every schedule of the registry trains: gradients and losses against the one-rank replay, from run to run, and the
// order kept, with real layers of a tiny model. Both clocks: a pair of ops on the wall clock, delays on the virtual
// one.
#include <QTest>

#include "engine/check/check.h"
#include "engine/training/training.h"
#include "schedules/library/variants.h"
#include "schedules/text/csv.h"
#include "support/of_schedule.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

TrainingOptions tiny(int stages, ClockMode clock)
{
    TrainingOptions options;
    options.workload = test::gpt({stages + 1, 8, 2, 16, 256});
    options.microbatchSize = 2;
    options.clock = clock;
    return options;
}

void check(const Schedule& schedule, ClockMode clock)
{
    const auto result = test::checkOf(schedule, tiny(schedule.stages, clock), 2, {});
    QVERIFY2(result, result ? "" : result.error().message.c_str());
    QVERIFY2(result->passed, result->note.c_str());
    QVERIFY(result->repeatEqual && result->orderEqual && result->copiesEqual);
    if (schedule.weights == WeightRule::Predicted) return; // the prediction is computed apart
    QVERIFY(result->rollbacks > 0 || (result->gradientsEqual && result->lossesEqual));
}

} // namespace

class TestAllTrainings : public QObject {
    Q_OBJECT

private slots:
    void everyOne_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        for (const ScheduleInfo& info : allSchedules()) {
            for (const std::string& name : variantsOf(info)) {
                for (const auto& [ranks, microbatches] : {std::pair{2, 4}, std::pair{3, 6}, std::pair{4, 4}})
                    QTest::addRow("%s p=%d m=%d", name.c_str(), ranks, microbatches)
                        << QString::fromStdString(name) << ranks << microbatches;
            }
        }
    }

    void everyOne()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        const auto schedule = makeOnNearShape(name.toStdString(), {ranks, microbatches, 0});
        QVERIFY2(schedule, schedule ? "" : schedule.error().message.c_str());
        check(*schedule, ClockMode::Virtual);
        check(*schedule, ClockMode::Wall);
    }

    // A V over two ranks, split backwards, a pair and a delay: what only a file can say.
    void pairsAndDelays()
    {
        const auto schedule = readScheduleCsv("0F0,0F1,3F0,3I0,(3F1;3B1)OVERLAP_F_B\n", {}, "x");
        QVERIFY(schedule); // readable, though no schedule: the pair's second op needs the first
        QVERIFY(!test::checkOf(*schedule, tiny(4, ClockMode::Wall), 1, {}));

        const auto mine = readScheduleCsv("0F0,0FILLER1000,0F1,3F0,(3F1;3B0)OVERLAP_F_B,3I1,0B0,3W1,0B1\n"
                                          "1F0,2F0,1F1,2F1,2B0,1I0,2B1,1W0,1B1\n",
                                          {}, "mine");
        QVERIFY2(mine, mine ? "" : mine.error().message.c_str());
        check(*mine, ClockMode::Virtual);
        check(*mine, ClockMode::Wall);
    }
};

QTEST_GUILESS_MAIN(TestAllTrainings)
#include "tst_all_trainings.moc"
