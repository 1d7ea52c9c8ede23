// Gradients and losses of a training are those of its one-rank replay, bit for bit; and a check notices if they are
// not.
#include <QTest>

#include <atomic>

#include "engine/check/check.h"
#include "engine/training/forward_unit.h"

#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions smallModel(ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions options;
    options.workload = test::gpt({4, 16, 2, 8, 256});
    options.microbatchSize = 2;
    options.clock = clock;
    return options;
}

} // namespace

class TestTrainingCheck : public QObject {
    Q_OBJECT

private slots:
    void everyScheduleEqualsItsReplay_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        for (const ScheduleInfo& info : allSchedules()) {
            if (librarySchedule(info.name, 2, 4).weights != WeightRule::Synchronous) continue; // no such replay
            QTest::addRow("%s", info.name.data())
                << QString::fromUtf8(info.name.data(), static_cast<int>(info.name.size())) << 2 << 4;
        }
        QTest::newRow("p=4") << "zb-h1" << 4 << 8;
        QTest::newRow("p=1") << "1f1b" << 1 << 2;
    }

    void everyScheduleEqualsItsReplay()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        const Schedule schedule = librarySchedule(name.toStdString(), ranks, microbatches);
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            auto result = checkOf(schedule, smallModel(clock), 3, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
            QVERIFY(result->gradientsEqual && result->lossesEqual && result->repeatEqual && result->orderEqual);
            QCOMPARE(result->gradientError, 0.0);
            QCOMPARE(result->loss, result->referenceLoss);
            QVERIFY(result->loss > 0);
        }
    }

    // W in another order than by microbatch: still the replay's bits, and near the undivided model.
    void anotherOrderOfWeights()
    {
        Schedule schedule = librarySchedule("zb-h1", 2, 4);
        std::vector<Op>& list = schedule.order[1];
        std::size_t first = list.size();
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i].kind == OpKind::WeightGrad && first == list.size()) first = i;
        }
        QVERIFY(list[list.size() - 1].kind == OpKind::WeightGrad);
        const Op moved = list[first];
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(first));
        list.push_back(moved); // W0 last
        auto result = checkOf(schedule, smallModel(), 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed, result->note.c_str());
        QVERIFY2(result->note.find("different order") != std::string::npos, result->note.c_str());
    }

    // What is wrong now and then is detected.
    void noticesOtherBits()
    {
        std::atomic<int> made = 0; // stages
        TrainingOptions options = fakeOptions();
        options.workload = fakeWorkload(*options.workload, [&made] {
            FakeOptions fake;
            if (made++ / 2 == 1) { // the second training
                fake.hook = [](OpKind kind, int stage, int microbatch) {
                    if (kind == OpKind::WeightGrad && stage == 1 && microbatch == 1) skipNextWeightGrad() = true;
                };
            }
            return fake;
        });
        auto result = checkOf(librarySchedule("1f1b", 2, 4), options, 1, {},
                              [] { return Result<std::unique_ptr<Backend>>(std::make_unique<BareBackend>()); });
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY(!result->passed);
        QVERIFY(!result->repeatEqual);
        QVERIFY(result->gradientsEqual);
    }

    void noticesAWrongReplay()
    {
        std::atomic<int> made = 0; // stages
        TrainingOptions options = fakeOptions();
        options.workload = fakeWorkload(*options.workload, [&made] {
            FakeOptions fake;
            if (made++ / 2 == 2) { // the replay
                fake.hook = [](OpKind kind, int stage, int microbatch) {
                    if (kind == OpKind::WeightGrad && stage == 1 && microbatch == 1) skipNextWeightGrad() = true;
                };
            }
            return fake;
        });
        auto result = checkOf(librarySchedule("1f1b", 2, 4), options, 1, {},
                              [] { return Result<std::unique_ptr<Backend>>(std::make_unique<BareBackend>()); });
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY(!result->passed);
        QVERIFY(!result->gradientsEqual);
        QVERIFY(result->repeatEqual);
        QVERIFY(result->gradientError > 0.01);
    }

    void forwardUnit()
    {
        TrainingOptions options = smallModel();
        auto unit = measureForwardUnit(*CheckedSchedule::of(librarySchedule("1f1b", 2, 4)), options);
        QVERIFY2(unit, unit ? "" : unit.error().message.c_str());
        QVERIFY(*unit > 1'000);
        options.links.all.latency = 1'000'000'000'000; // not part of it: else this would take hours
        auto far = measureForwardUnit(*CheckedSchedule::of(librarySchedule("1f1b", 2, 4)), options);
        QVERIFY2(far, far ? "" : far.error().message.c_str());
        QVERIFY(*far < options.links.all.latency);
    }

    void checkCanBeStopped()
    {
        std::stop_source stop;
        stop.request_stop();
        auto result = checkOf(librarySchedule("1f1b", 2, 4), smallModel(), 2, stop.get_token());
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
    }
};

QTEST_GUILESS_MAIN(TestTrainingCheck)
#include "tst_training_check.moc"
