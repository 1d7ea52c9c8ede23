// Training with rendezvous sends: what is foretold to hang hangs, what ends gives the same losses, and a stall is explained.
#include <QtTest>

#include "schedules/csv.h"
#include "schedules/lower.h"
#include "schedules/timeline/message_view.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"

using namespace stagewright;

namespace {

TrainingOptions strict(const char* rule)
{
    TrainingOptions options = test::fakeOptions(ClockMode::Wall);
    options.channels.sends = SendMode::Rendezvous;
    options.lowering = *parseLowering(rule);
    options.channels.receives = receivesOf(options.lowering.rule);
    options.timeoutSeconds = 0.3;
    return options;
}

} // namespace

class TestTrainingMessages : public QObject
{
    Q_OBJECT
private slots:
    void foretoldAndReal_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("rule");
        QTest::addColumn<int>("ranks");
        for (const ScheduleInfo& info : allSchedules())
            for (const char* rule : {"just-in-time", "pytorch", "eager-post", "rank-parity", "grouped"})
                for (const int ranks : {2, 4}) {
                    const QString name = QString::fromUtf8(info.name.data(), qsizetype(info.name.size()));
                    QTest::newRow(qPrintable(QString("%1 %2 %3").arg(name, rule).arg(ranks))) << name << rule << ranks;
                }
    }
    void foretoldAndReal()
    {
        QFETCH(QString, name);
        QFETCH(QString, rule);
        QFETCH(int, ranks);
        Shape shape(ranks, 2 * ranks);
        const auto s = makeSchedule(name.toStdString(), shape);
        if (!s) QSKIP("not for this shape");
        TrainingOptions options = strict(qPrintable(rule));
        options.model.layers = std::max(options.model.layers, s->stages);
        const auto foretold = explainDeadlock(*lower(*s, options.lowering), options.channels);
        QVERIFY(foretold);
        options.timeoutSeconds = foretold->hung() ? 0.25 : 30;
        auto training = test::fakeTraining(*s, options);
        if (!training) {
            QVERIFY2(training.error().code == ErrorCode::Usage, training.error().message.c_str());
            QSKIP("this schedule can't be trained here");
        }
        const auto step = (*training)->step({});
        QVERIFY2(step.has_value() == !foretold->hung(), step ? "ended" : step.error().message.c_str());
        if (!foretold->hung()) {
            QVERIFY(!(*training)->stall());
            return;
        }
        const auto stall = (*training)->stall();
        QVERIFY(stall);
        QCOMPARE(stall->cycle, foretold->cycle);
        QCOMPARE(stall->victims, foretold->victims);
        QCOMPARE(stall->circle.size(), foretold->circle.size());
        for (std::size_t i = 0; i < stall->circle.size(); ++i)
            QCOMPARE(stall->circle[i].op, foretold->circle[i].op);
        QVERIFY2(step.error().message.find("waits to") != std::string::npos, step.error().message.c_str());
    }
    // The same gradients and losses as with buffers, and the compute order comes back.
    void sameTraining()
    {
        const Schedule s = test::librarySchedule("1f1b", 4, 8);
        auto plain = test::fakeTraining(s, test::fakeOptions(ClockMode::Wall));
        QVERIFY(plain);
        const auto expected = (*plain)->step({});
        QVERIFY(expected);
        for (const char* rule : {"grouped", "rank-parity", "pytorch"}) {
            TrainingOptions options = strict(rule);
            options.timeoutSeconds = 10;
            options.links.all.latency = 200'000;
            auto training = test::fakeTraining(s, options);
            QVERIFY(training);
            for (int i = 0; i < 2; ++i) {
                const auto step = (*training)->step({});
                QVERIFY2(step.has_value(), step ? "" : step.error().message.c_str());
                if (i == 0) QCOMPARE(step->loss, expected->loss);
                QCOMPARE(*scheduleOf(*step->timeline, i), s);
                // Both sides of each message are told.
                const Timeline& timeline = *step->timeline;
                int messages = 0;
                for (SpanId id = 0; id < timeline.spans().size(); ++id)
                    for (const MessageView& view : messagesInto(timeline, id)) {
                        ++messages;
                        QVERIFY(view.producer != noSpan && view.sendPosted >= view.produced);
                        QVERIFY(view.begin >= view.sendPosted && view.arrival - view.begin >= 150'000);
                    }
                QCOMPARE(messages, 2 * 3 * 8);
            }
        }
    }
    // A lowered file is trained as it stands.
    void loweredFile()
    {
        const Schedule low = *lower(test::librarySchedule("1f1b", 2, 4), *parseLowering("grouped"));
        TrainingOptions options = strict("just-in-time");
        auto training = test::fakeTraining(low, options);
        QVERIFY(training);
        QVERIFY((*training)->step({}));
        QCOMPARE((*training)->schedule(), withoutCommunication(low));
        options.channels = {};
        options.clock = ClockMode::Virtual; // with buffers the messages don't matter
        QVERIFY((*test::fakeTraining(low, options))->step({}));
        options.channels.sends = SendMode::Rendezvous;
        QCOMPARE(test::fakeTraining(low, options).error().code, ErrorCode::Usage);
    }
    // Buffered messages on one channel each way stand behind each other.
    void limitedChannels()
    {
        const Schedule s = *readScheduleCsv("0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3\n1F0,1F1,1F2,1F3,1B0,1B1,1B2,1B3\n");
        TrainingOptions options = test::fakeOptions(ClockMode::Wall);
        options.links.all.latency = 20'000'000;
        options.channels.perDirection = 1;
        auto training = test::fakeTraining(s, options);
        QVERIFY(training);
        const auto step = (*training)->step({});
        QVERIFY(step);
        QVERIFY2(step->stepTime >= 5 * 20'000'000, qPrintable(QString::number(step->stepTime))); // four forth, one back at least
    }
};

QTEST_GUILESS_MAIN(TestTrainingMessages)
#include "tst_training_messages.moc"
