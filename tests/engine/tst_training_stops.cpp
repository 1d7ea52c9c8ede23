// A training never hangs: a stop request, an exception and a hanging rank all end the step with an error that says why.
#include <QTest>

#include <atomic>
#include <cmath>
#include <thread>

#include <unistd.h>

#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

bool contains(const Error& error, const char* text) { return error.message.find(text) != std::string::npos; }

} // namespace

class TestTrainingStops : public QObject {
    Q_OBJECT

private slots:
    void stopRequestEndsTheStep_data()
    {
        QTest::addColumn<int>("clock");
        QTest::newRow("wall") << static_cast<int>(ClockMode::Wall);
        QTest::newRow("virtual") << static_cast<int>(ClockMode::Virtual);
    }

    void stopRequestEndsTheStep()
    {
        QFETCH(int, clock);
        std::stop_source stop;
        std::atomic<bool> stopped = false;
        std::atomic<int> after = 0;
        FakeOptions fake;
        fake.hook = [&](OpKind kind, int stage, int microbatch) {
            if (stopped) ++after;
            if (kind != OpKind::Forward || stage != 2 || microbatch != 3) return;
            stop.request_stop();
            stopped = true;
        };
        auto training = fakeTraining(librarySchedule("1f1b", 4, 64), fakeOptions(static_cast<ClockMode>(clock)), fake);
        auto outcome = (*training)->step(stop.get_token());
        QVERIFY(!outcome);
        QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
        QVERIFY2(after <= 4 * 2,
                 qPrintable(QString::number(after))); // each rank ends the op it runs (B is two), no more
        auto again = (*training)->step({});
        QVERIFY(!again);
        QVERIFY(contains(again.error(), "has stopped"));
    }

    void stopBeforeTheStep()
    {
        std::stop_source stop;
        stop.request_stop();
        auto training = fakeTraining(librarySchedule("gpipe", 2, 2), fakeOptions());
        auto outcome = (*training)->step(stop.get_token());
        QVERIFY(!outcome);
        QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
    }

    // At any moment, from another thread; complete steps stay whole.
    void stopAtAnyMoment()
    {
        for (int i = 0; i < 40; ++i) {
            std::stop_source stop;
            auto training = fakeTraining(librarySchedule("zb-h1", 4, 16),
                                         fakeOptions(i % 2 ? ClockMode::Wall : ClockMode::Virtual));
            std::thread other([&] {
                std::this_thread::sleep_for(std::chrono::microseconds(150 * i));
                stop.request_stop();
            });
            for (;;) {
                auto outcome = (*training)->step(stop.get_token());
                if (!outcome) {
                    QCOMPARE(outcome.error().code, ErrorCode::Cancelled);
                    break;
                }
                QVERIFY(outcome->timeline);
            }
            other.join();
        }
    }

    void exceptionNamesRankAndOp()
    {
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            FakeOptions fake;
            fake.hook = [](OpKind kind, int stage, int microbatch) {
                if (kind == OpKind::InputGrad && stage == 1 && microbatch == 2)
                    throw std::runtime_error("the weights are on fire");
            };
            auto training = fakeTraining(librarySchedule("1f1b", 3, 4), fakeOptions(clock), fake);
            auto outcome = (*training)->step({});
            QVERIFY(!outcome);
            QCOMPARE(outcome.error().code, ErrorCode::Failed);
            QVERIFY2(contains(outcome.error(), "rank 1, op"), outcome.error().message.c_str());
            QVERIFY2(contains(outcome.error(), "(1B2): the weights are on fire"), outcome.error().message.c_str());
        }
    }

    void outOfMemory()
    {
        FakeOptions fake;
        fake.hook = [](OpKind kind, int stage, int) {
            if (kind == OpKind::Forward && stage == 0) throw std::bad_alloc();
        };
        auto training = fakeTraining(librarySchedule("gpipe", 2, 2), fakeOptions(), fake);
        auto outcome = (*training)->step({});
        QVERIFY(!outcome);
        QCOMPARE(outcome.error().code, ErrorCode::Failed);
        QCOMPARE(outcome.error().message, std::string("rank 0, op 1 (0F0): out of memory"));
    }

    void exceptionInTheOptimizer()
    {
        FakeOptions fake;
        fake.hook = [](OpKind kind, int stage, int) {
            if (kind == OpKind::Optimizer && stage == 1) throw std::runtime_error("no");
        };
        auto training = fakeTraining(librarySchedule("gpipe", 2, 2), fakeOptions(), fake);
        auto outcome = (*training)->step({});
        QVERIFY(!outcome);
        QVERIFY2(contains(outcome.error(), "rank 1, optimizer of stage 1: no"), outcome.error().message.c_str());
    }

    // The watchdog's message, and a training that can be left although a rank hangs.
    void hangingRankIsNamed()
    {
        auto door = std::make_shared<Door>();
        FakeOptions fake;
        fake.hook = [door](OpKind kind, int stage, int microbatch) {
            if (kind == OpKind::Forward && stage == 0 && microbatch == 1) door->pass();
        };
        auto options = fakeOptions(ClockMode::Wall);
        options.timeoutSeconds = 0.6;
        {
            auto training = fakeTraining(librarySchedule("1f1b", 2, 4), options, fake);
            auto outcome = (*training)->step({});
            QVERIFY(!outcome);
            QCOMPARE(outcome.error().code, ErrorCode::Failed);
            QVERIFY2(
                contains(outcome.error(), "step 1: no progress for 0.6 s: rank 0 runs op 2 (0F1); rank 1 waits before"),
                outcome.error().message.c_str());
            QVERIFY2(contains(outcome.error(), "for the activations of microbatch 1 from rank 0"),
                     outcome.error().message.c_str());
        } // destroyed while rank 0 still hangs
        door->open();
        door->awaitNobody();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }

    void slowOpsAreNoHang()
    {
        FakeOptions fake;
        fake.hook = [](OpKind, int, int) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
        auto options = fakeOptions(ClockMode::Wall);
        options.timeoutSeconds = 1; // the step takes longer, no single op does
        auto training = fakeTraining(librarySchedule("gpipe", 2, 12), options, fake);
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QVERIFY(outcome->wallTime > 1'000'000'000);
    }

    // Delays on purpose are not a hang: messages on slow links, delays of the schedule.
    void slowLinksAreNoHang()
    {
        auto options = fakeOptions(ClockMode::Wall);
        options.timeoutSeconds = 0.1;
        options.links.all.latency = 300'000'000;
        auto training = fakeTraining(librarySchedule("gpipe", 2, 1), options);
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QVERIFY(outcome->wallTime > 600'000'000);
    }

    void longDelaysAreNoHang()
    {
        auto options = fakeOptions(ClockMode::Wall);
        options.timeoutSeconds = 0.1;
        Schedule schedule = librarySchedule("gpipe", 2, 1);
        schedule.order[0].insert(schedule.order[0].begin(), makeFiller(0, 500'000'000));
        auto training = fakeTraining(schedule, options);
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QVERIFY(outcome->wallTime > 500'000'000);
    }

    void destroyedWithoutAStep()
    {
        for (int i = 0; i < 20; ++i) QVERIFY(fakeTraining(librarySchedule("interleaved-1f1b", 4, 4), fakeOptions()));
    }

    // Each of the stages would fit alone; all together they do not, and nothing is taken.
    void stagesThatDoNotFitTogetherAreRefused()
    {
        const auto machine =
            static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
        auto options = fakeOptions();
        options.backend = "cpu";
        // Eight layers need 1.6 times the machine: 12 hidden² weights each, 16 bytes a weight.
        const int hidden = static_cast<int>(std::sqrt(1.6 * machine / (8.0 * 12 * 16)));
        if (hidden > 65536) QSKIP("this machine has too much memory");
        options.workload = test::gpt({8, hidden, 1, 8, 256});
        auto training = trainingOf(librarySchedule("gpipe", 8, 2), options);
        QVERIFY(!training);
        QCOMPARE(training.error().code, ErrorCode::Unavailable);
        QVERIFY2(contains(training.error(), "all 8 stages together need"), training.error().message.c_str());
    }

    void failingSetUpIsAnError()
    {
        auto options = fakeOptions();
        options.backend = "nothing";
        auto training = trainingOf(librarySchedule("gpipe", 2, 2), options);
        QVERIFY(!training);
        QCOMPARE(training.error().code, ErrorCode::Usage);
    }
};

QTEST_GUILESS_MAIN(TestTrainingStops)
#include "tst_training_stops.moc"
