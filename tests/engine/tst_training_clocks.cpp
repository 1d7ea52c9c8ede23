// The clocks: a full backward ends before it sends; links and fillers take their time; steps follow one another.
#include <QTest>

#include <algorithm>

#include "schedules/edit/edit.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

// Every F, I and W burns the same CPU time; the optimizer none.
FakeOptions unitCosts(Nanos unit)
{
    FakeOptions fake;
    fake.hook = [unit](OpKind kind, int, int) {
        if (kind != OpKind::Optimizer) burn(unit);
    };
    return fake;
}

} // namespace

class TestTrainingClocks : public QObject {
    Q_OBJECT

private slots:
    // The step is what the simulation makes of the times that its ops took: B releases its input gradient at its end.
    void bubbleOfUnitCosts_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"1f1b", "gpipe", "zb-h1"}) QTest::newRow(name) << name;
    }

    void bubbleOfUnitCosts()
    {
        QFETCH(QString, name);
        const Schedule schedule = librarySchedule(name.toStdString(), 4, 8);
        auto training = fakeTraining(schedule, fakeOptions(ClockMode::Virtual), unitCosts(1'000'000));
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        CostModel costs(schedule.stages, CostSource::Fitted);
        for (const Span& span : outcome->timeline->spans())
            if (isBusy(span.op.kind))
                costs.setMicrobatchDuration(span.op.kind, span.op.stage, span.op.microbatch, span.duration());
        const auto simulated = simulate(schedule, costs);
        QVERIFY(simulated);
        QVERIFY(std::abs(bubbleOf(*outcome->timeline) - figuresOf(schedule, *simulated).bubbleFraction) < 1e-9);
        QCOMPARE((*training)->clock(), ClockMode::Virtual);
    }

    // Messages share the bandwidth of their emulated link: each comes at least its bytes' time behind the one before.
    // Apart, each has its own.
    void messagesShareTheirLink_data()
    {
        QTest::addColumn<int>("clock");
        QTest::addColumn<bool>("apart");
        QTest::newRow("wall") << static_cast<int>(ClockMode::Wall) << false;
        QTest::newRow("virtual") << static_cast<int>(ClockMode::Virtual) << false;
        QTest::newRow("virtual, apart") << static_cast<int>(ClockMode::Virtual) << true;
    }
    void messagesShareTheirLink()
    {
        QFETCH(int, clock);
        QFETCH(bool, apart);
        auto options = fakeOptions(static_cast<ClockMode>(clock));
        options.links.all = {500'000, 64e2}; // 16 floats: 10 ms
        options.channels.apart = apart;
        auto training = fakeTraining(librarySchedule("gpipe", 2, 4), options, unitCosts(100'000));
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        const Track* sends = outcome->timeline->trackOf(0, Lane::Send);
        QVERIFY(sends != nullptr);
        std::vector<Nanos> forth; // when the activations can be had
        for (const Span& span : outcome->timeline->spansOf(*sends)) {
            forth.push_back(span.end);
            if (apart) QCOMPARE(span.duration(), Nanos{10'500'000});
        }
        QCOMPARE(forth.size(), std::size_t(4));
        std::sort(forth.begin(), forth.end());
        for (std::size_t i = 1; i < 4 && !apart; ++i) {
            if (clock == static_cast<int>(ClockMode::Virtual)) QCOMPARE(forth[i] - forth[i - 1], Nanos{10'000'000});
            QVERIFY(forth[i] - forth[i - 1] >= 10'000'000);
        }
        const auto facts = (*training)->configuration();
        QVERIFY(std::find(facts.begin(), facts.end(),
                          std::pair(std::string("channels"), std::string(apart ? "0" : "shared"))) != facts.end());
    }

    // Emulated links: the virtual clock's arrivals are exact, the wall clock's are not earlier.
    void linksHoldMessagesBack_data()
    {
        QTest::addColumn<int>("clock");
        QTest::newRow("wall") << static_cast<int>(ClockMode::Wall);
        QTest::newRow("virtual") << static_cast<int>(ClockMode::Virtual);
    }

    void linksHoldMessagesBack()
    {
        QFETCH(int, clock);
        auto options = fakeOptions(static_cast<ClockMode>(clock));
        options.links.all = {3'000'000, 64e6}; // 16 floats: 1 µs
        auto training = fakeTraining(librarySchedule("1f1b", 2, 2), options, unitCosts(100'000));
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        const Timeline& timeline = *outcome->timeline;
        int messages = 0;
        for (const Edge& edge : timeline.edges()) {
            const Span& from = timeline.spans()[edge.from];
            const Span& to = timeline.spans()[edge.to];
            if (from.op.stage == to.op.stage) continue;
            ++messages;
            const Nanos least = from.end + 3'001'000;
            QVERIFY(to.start >= least);
            QVERIFY(edge.arrival >= least);
            if (clock == static_cast<int>(ClockMode::Virtual)) QCOMPARE(edge.arrival, least);
        }
        QCOMPARE(messages, 4);
        std::size_t sends = 0;
        for (int rank = 0; rank < 2; ++rank) {
            const Track* track = timeline.trackOf(rank, Lane::Send);
            QVERIFY(track);
            sends += timeline.spansOf(*track).size();
            for (const Span& span : timeline.spansOf(*track)) {
                QVERIFY(span.duration() >= 3'001'000);
                QCOMPARE(span.op.kind, rank == 0 ? OpKind::SendF : OpKind::SendB);
            }
            if (clock == static_cast<int>(ClockMode::Virtual)) QVERIFY(timeline.trackOf(rank, Lane::Wait));
        }
        QCOMPARE(sends, std::size_t(4));
    }

    void fillersTakeTheirTime()
    {
        auto edited = insertDelay(librarySchedule("1f1b", 2, 2), 1, 1, 5'000'000);
        QVERIFY(edited && edited->validation.valid());
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            auto training = fakeTraining(edited->schedule, fakeOptions(clock));
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            auto outcome = (*training)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            int fillers = 0;
            for (const Span& span : outcome->timeline->spans()) {
                if (span.op.kind != OpKind::Filler) continue;
                ++fillers;
                if (clock == ClockMode::Virtual) {
                    QCOMPARE(span.duration(), Nanos(5'000'000));
                } else {
                    QVERIFY(span.duration() >= 5'000'000);
                }
            }
            QCOMPARE(fillers, 1);
        }
    }

    // Busy time on the virtual clock is CPU time, however many ranks share a core.
    void virtualDurationsAreCpuTime()
    {
        auto training =
            fakeTraining(librarySchedule("gpipe", 8, 4), fakeOptions(ClockMode::Virtual), unitCosts(500'000));
        auto outcome = (*training)->step({});
        QVERIFY(outcome);
        for (SpanId id = 0; id < outcome->timeline->spans().size(); ++id) {
            const Span& span = outcome->timeline->spans()[id];
            if (!isBusy(span.op.kind)) continue;
            QCOMPARE(outcome->timeline->cpuTime(id), span.duration());
            QVERIFY(span.duration() >= (span.op.kind == OpKind::Backward ? 1'000'000 : 500'000));
        }
    }

    // The optimizer comes after the last busy op of all ranks.
    void optimizerComesLast()
    {
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            auto training = fakeTraining(librarySchedule("interleaved-1f1b", 2, 4), fakeOptions(clock));
            auto outcome = (*training)->step({});
            QVERIFY(outcome);
            Nanos lastBusy = 0;
            Nanos firstOptimizer = outcome->timeline->end();
            int optimizers = 0;
            for (const Span& span : outcome->timeline->spans()) {
                if (isBusy(span.op.kind)) lastBusy = std::max(lastBusy, span.end);
                if (span.op.kind != OpKind::Optimizer) continue;
                ++optimizers;
                firstOptimizer = std::min(firstOptimizer, span.start);
            }
            QCOMPARE(optimizers, 4);
            QVERIFY(firstOptimizer >= lastBusy);
        }
    }

    // A rank that waits does nothing else: its waits and its work never overlap, on either clock.
    void waitsLieBetweenOps()
    {
        for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
            auto training = fakeTraining(librarySchedule("1f1b", 3, 4), fakeOptions(clock));
            auto outcome = (*training)->step({});
            QVERIFY(outcome);
            const Timeline& timeline = *outcome->timeline;
            int waits = 0;
            for (const Track& waiting : timeline.tracks()) {
                if (waiting.lane != Lane::Wait) continue;
                for (const Track& working : timeline.tracks()) {
                    if (working.lane != Lane::Compute || working.rank != waiting.rank) continue;
                    for (const Span& wait : timeline.spansOf(waiting)) {
                        ++waits;
                        for (const Span& work : timeline.spansOf(working))
                            QVERIFY(wait.end <= work.start || work.end <= wait.start);
                    }
                }
            }
            QVERIFY(waits > 0);
        }
    }

    void autoTakesTheVirtualClockWhereRanksExceedCores()
    {
        auto training = fakeTraining(librarySchedule("gpipe", 128, 2), [] {
            auto options = fakeOptions(ClockMode::Auto);
            options.workload = options.workload->withLayers(128);
            return options;
        }());
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        if (std::thread::hardware_concurrency() >= 128) QSKIP("this machine has 128 cores or more");
        QCOMPARE((*training)->clock(), ClockMode::Virtual);
        QVERIFY((*training)->step({}));
    }
};

QTEST_GUILESS_MAIN(TestTrainingClocks)
#include "tst_training_clocks.moc"
