// Real replicas: pipelines side by side train one model, and the sums over them give the one-rank replay's gradients
// bit for bit, however many copies a stage has and however its gradients travel.
#include <QTest>

#include "../schedules/random_schedules.h"
#include "engine/check/check.h"
#include "schedules/model/mesh.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

class TestReplicas : public QObject {
    Q_OBJECT

private slots:
    void equalTheReplay_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("replicas");
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "bfs", "chimera"})
            for (const int replicas : {2, 3, 4}) QTest::addRow("%s %d", name, replicas) << QString(name) << replicas;
    }

    void equalTheReplay()
    {
        QFETCH(QString, name);
        QFETCH(int, replicas);
        check(overReplicas(librarySchedule(name.toStdString(), 2, 4), replicas).value());
    }

    // Replicas with different orders and numbers of microbatches.
    void unevenReplicas()
    {
        const Schedule parts[] = {librarySchedule("1f1b", 2, 3), librarySchedule("gpipe", 2, 5),
                                  librarySchedule("zb-h1", 2, 2)};
        check(overReplicas(parts).value());
    }

    void randomReplicas()
    {
        for (unsigned seed = 0; seed < 12; ++seed)
            check(overReplicas(randomSchedule(seed, false, false), 2 + static_cast<int>(seed % 2)).value());
    }

    // Numbering: rank = replica × pipeline ranks + pipeline rank; the losses of a microbatch are those of its replica.
    void numbersRanks()
    {
        const Schedule job = overReplicas(librarySchedule("1f1b", 2, 2), 3).value();
        TrainingOptions options = trained();
        auto training = trainingOf(job, options);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QCOMPARE(outcome->timeline->ranks(), 6);
        for (const Track& track : outcome->timeline->tracks())
            for (const Span& span : outcome->timeline->spansOf(track))
                if (track.lane == Lane::Compute && isBusy(span.op.kind))
                    QCOMPARE(span.op.microbatch / 2, job.replicaOf(track.rank));
        const auto configuration = (*training)->configuration();
        QVERIFY(std::find(configuration.begin(), configuration.end(),
                          std::pair<std::string, std::string>("replicas", "3")) != configuration.end());
        for (int stage = 0; stage < 2; ++stage) { // all copies hold the same weights after the step
            const auto first = (*training)->parameters(stage, 0);
            for (int copy = 1; copy < 3; ++copy) {
                const auto other = (*training)->parameters(stage, copy);
                for (std::size_t i = 0; i < first.size(); ++i)
                    QVERIFY(std::equal(first[i].value.begin(), first[i].value.end(), other[i].value.begin()));
            }
        }
    }

private:
    static TrainingOptions trained()
    {
        TrainingOptions options = fakeOptions(ClockMode::Virtual);
        options.backend = "cpu";
        return options;
    }

    static void check(const Schedule& schedule)
    {
        const auto result = checkOf(schedule, trained(), 2, {});
        QVERIFY2(result, result ? "" : (schedule.name + ": " + result.error().message).c_str());
        QVERIFY2(result->gradientsEqual, toText(schedule).c_str());
        QVERIFY(result->lossesEqual);
        QVERIFY(result->copiesEqual);
        QVERIFY(result->repeatEqual);
        QVERIFY(result->orderEqual);
        QVERIFY(result->passed);
    }
};

QTEST_GUILESS_MAIN(TestReplicas)
#include "tst_replicas.moc"
