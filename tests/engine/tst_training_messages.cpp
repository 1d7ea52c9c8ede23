// Training with rendezvous sends: an order predicted to hang hangs, one that completes gives the same losses, and a
// stall is explained.
#include <QtTest>

#include <deque>
#include <future>
#include <random>

#include "../schedules/mutated_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/text/csv.h"
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

bool isValid(const Schedule& schedule, const Channels& channels = {}) { return validate(schedule, channels).valid(); }

// A lowered schedule whose ops have changed places, some messages grouped; with buffers it still ends.
Schedule shuffled(Schedule schedule, std::mt19937& random, int changes)
{
    for (int n = 0; n < changes; ++n) {
        Schedule changed = schedule;
        const std::size_t r = random() % changed.order.size();
        auto& row = changed.order[r];
        if (row.size() < 2) continue;
        const std::size_t i = random() % (row.size() - 1);
        if (n % 3 == 0) {
            if (!isMessage(row[i].kind) || !isMessage(row[i + 1].kind)) continue;
            changed.paired.resize(changed.order.size());
            changed.paired[r].push_back(static_cast<std::uint32_t>(i));
            std::sort(changed.paired[r].begin(), changed.paired[r].end());
        } else {
            std::swap(row[i], row[i + 1]);
        }
        if (isValid(changed)) schedule = std::move(changed);
    }
    return schedule;
}

struct Outcome {
    std::string refused;        // could not be made
    std::optional<Error> error; // of the step
    std::optional<Deadlock> stall;
};

Outcome train(const Schedule& schedule, TrainingOptions options)
{
    bool halves = false; // the fake backend knows none of what was whole forward
    for (const auto& row : schedule.order)
        for (const Op& op : row) halves = halves || op.half > 0;
    if (halves) {
        options.backend = "cpu";
        options.workload = test::gpt({schedule.stages, 8, 2, 6, 256});
    }
    auto training = halves ? test::trainingOf(schedule, options) : test::fakeTraining(schedule, options);
    if (!training) return {training.error().message, {}, {}};
    const auto step = (*training)->step({});
    return {{}, step ? std::optional<Error>() : step.error(), (*training)->stall()};
}

// The prediction is what happened: who waits for whom, at which ops, who only waits for them.
QString difference(const Deadlock& predicted, const Outcome& outcome)
{
    if (!outcome.refused.empty()) return QString("refused: %1").arg(outcome.refused.c_str());
    if (predicted.hung() != outcome.error.has_value())
        return QString("predicted to %1, but %2")
            .arg(predicted.hung() ? "hang" : "end", outcome.error ? outcome.error->message.c_str() : "it ended");
    if (!predicted.hung()) return outcome.stall ? "a stall of what ended" : "";
    if (!outcome.stall) return "no stall is reported";
    if (outcome.error->code != ErrorCode::Invalid)
        return QString("not an invalid order: %1").arg(outcome.error->message.c_str());
    const Deadlock& stall = *outcome.stall;
    if (stall.cycle != predicted.cycle || stall.victims != predicted.victims)
        return QString("another cycle: %1; predicted %2")
            .arg(describeDeadlock(stall).c_str(), describeDeadlock(predicted).c_str());
    if (!std::equal(stall.cycleOps.begin(), stall.cycleOps.end(), predicted.cycleOps.begin(), predicted.cycleOps.end(),
                    [](const CycleOp& a, const CycleOp& b) { return a.op == b.op && a.position == b.position; }))
        return "other ops on the cycle";
    for (const int rank : predicted.cycle)
        for (const BlockedRank& blocked : stall.blocked)
            if (blocked.rank == rank && outcome.error->message.find(blocked.sentence) == std::string::npos)
                return QString("the message does not say: %1").arg(blocked.sentence.c_str());
    return {};
}

// On a busy machine ranks may not reach the point where they hang within a short time-out: differences are tried again
// with a long one.
QString differenceOf(const Deadlock& predicted, const Outcome& outcome, const Schedule& schedule,
                     TrainingOptions options)
{
    const QString differs = difference(predicted, outcome);
    if (differs.isEmpty() || !predicted.hung()) return differs;
    options.timeoutSeconds = 8;
    return difference(predicted, train(schedule, options));
}

} // namespace

class TestTrainingMessages : public QObject {
    Q_OBJECT
private slots:
    void foretoldAndReal_data()
    {
        QTest::addColumn<QString>("name");
        for (const ScheduleInfo& info : allSchedules())
            for (const std::string& name : variantsOf(info))
                QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }
    // Every schedule and variant under every rule, some with limited channels; where it hangs, the way out works in a
    // real run too.
    void foretoldAndReal()
    {
        QFETCH(QString, name);
        struct Case {
            QString what;
            Schedule schedule;
            TrainingOptions options;
            Deadlock predicted;
            std::future<Outcome> real;
            std::future<Outcome> fixed;
        };
        std::deque<Case> running;
        int channels = 0;
        for (const char* rule : {"just-in-time", "pytorch", "eager-post", "rank-parity", "grouped"})
            for (const int ranks : {2, 4}) {
                const auto s = makeOnNearShape(name.toStdString(), {ranks, 2 * ranks});
                if (!s) continue;
                TrainingOptions options = strict(rule);
                options.channels.perDirection = channels++ % 3;
                options.workload = options.workload->withLayers(std::max(options.workload->layers(), s->stages));
                const auto predicted = explainDeadlock(*lower(*s, options.lowering), options.channels);
                QVERIFY(predicted);
                TrainingOptions enough = options;
                enough.timeoutSeconds = 60;
                options.timeoutSeconds = predicted->hung() ? 0.4 : 60;
                Case one{QString("%1, %2 ranks").arg(rule).arg(ranks), *s, options, *predicted, {}, {}};
                one.real = std::async(std::launch::async, [s, options] { return train(*s, options); });
                QVERIFY(predicted->hung() == predicted->fixed.has_value());
                if (predicted->fixed)
                    one.fixed =
                        std::async(std::launch::async, [s = *predicted->fixed, enough] { return train(s, enough); });
                running.push_back(std::move(one));
            }
        QVERIFY(running.size() >= 5);
        for (Case& one : running) {
            const Outcome outcome = one.real.get();
            const QString differs = differenceOf(one.predicted, outcome, one.schedule, one.options);
            QVERIFY2(differs.isEmpty(), qPrintable(one.what + ": " + differs));
            if (!one.predicted.hung()) continue;
            const Outcome fixed = one.fixed.get();
            QVERIFY2(!fixed.error && fixed.refused.empty(),
                     fixed.error ? fixed.error->message.c_str() : fixed.refused.c_str());
        }
    }
    // Random orders, lowered and with their ops out of place, under every semantics.
    void randomOrders()
    {
        struct Case {
            unsigned seed;
            Schedule schedule;
            TrainingOptions options;
            Deadlock predicted;
            std::future<Outcome> real;
        };
        std::deque<Case> running;
        int hung = 0;
        int ended = 0;
        QString failure;
        const auto finish = [&] {
            Case one = std::move(running.front());
            running.pop_front();
            const QString differs = differenceOf(one.predicted, one.real.get(), one.schedule, one.options);
            if (!differs.isEmpty() && failure.isEmpty()) failure = QString("seed %1: %2").arg(one.seed).arg(differs);
            ++(one.predicted.hung() ? hung : ended);
        };
        for (unsigned seed = 0; seed < 240; ++seed) {
            std::mt19937 random(seed);
            // Some with copies of stages, whose reductions are meetings.
            const bool copies = seed % 6 == 5;
            const Schedule s = copies ? *makeSchedule("chimera:sync=eager", {4, 4 + 4 * int(seed % 4 / 2)})
                                      : test::randomSchedule(seed, false, seed % 4 == 0);
            if (s.ranks < 2) continue;
            const std::array<const char*, 5> rules{"just-in-time", "pytorch", "eager-post:1", "pytorch", "grouped"};
            TrainingOptions options = strict(rules[seed % rules.size()]);
            if (random() % 4 == 0) options.channels.receives = ReceiveMode(random() % 2);
            options.channels.perDirection = int(random() % 3);
            options.workload = options.workload->withLayers(std::max(options.workload->layers(), s.stages));
            const Schedule low = shuffled(*lower(s, options.lowering), random, copies ? 200 : 12);
            const auto predicted = explainDeadlock(low, options.channels);
            QVERIFY(predicted);
            options.timeoutSeconds = predicted->hung() ? 0.4 : 60;
            running.push_back({seed, low, options, *predicted,
                               std::async(std::launch::async, [low, options] { return train(low, options); })});
            if (running.size() >= 12) finish();
        }
        while (!running.empty()) finish();
        QVERIFY2(failure.isEmpty(), qPrintable(failure));
        QVERIFY2(hung > 60 && ended > 30, qPrintable(QString("%1 hung, %2 ended").arg(hung).arg(ended)));
    }
    // Damaged schedules are refused with a reason, or train.
    void damagedSchedules()
    {
        int refused = 0;
        int made = 0;
        for (unsigned seed = 0; seed < 500; ++seed) {
            Schedule s = test::randomSchedule(seed, true, seed % 3 == 0);
            TrainingOptions options = strict("just-in-time");
            if (seed % 2 == 0) options.channels = {};
            if (seed % 4 == 1) s = *lower(s, options.lowering);
            s = test::damaged(s, seed);
            options.workload = test::gpt({std::max(1, std::min(s.stages, 64)), 8, 2, 6, 256});
            options.backend = "cpu";
            options.timeoutSeconds = 0.5;
            const auto training = test::trainingOf(s, options);
            if (!training) {
                QVERIFY(!training.error().message.empty());
                ++refused;
                continue;
            }
            QVERIFY2(isValid(s), validate(s).faults.empty() ? "" : validate(s).faults[0].message.c_str());
            ++made;
            if (seed % 8 == 0) QVERIFY((*training)->step({}));
        }
        QVERIFY2(refused > 300 && made > 20, qPrintable(QString("%1 refused, %2 made").arg(refused).arg(made)));
    }
    // A rank that hangs by itself: it is named, the others wait for it, none waits for itself.
    void hangingRank()
    {
        for (const SendMode sends : {SendMode::Buffered, SendMode::Rendezvous}) {
            auto door = std::make_shared<test::Door>();
            test::FakeOptions fake;
            fake.hook = [door](OpKind kind, int stage, int microbatch) {
                if (kind == OpKind::Forward && stage == 2 && microbatch == 1) door->pass();
            };
            TrainingOptions options = strict("grouped");
            options.channels.sends = sends;
            options.timeoutSeconds = 0.5;
            {
                auto training = test::fakeTraining(test::librarySchedule("1f1b", 4, 8), options, fake);
                const auto step = (*training)->step({});
                QVERIFY(!step);
                QCOMPARE(step.error().code, ErrorCode::Failed);
                QVERIFY2(step.error().message.find("rank 2 runs op") != std::string::npos,
                         step.error().message.c_str());
                const auto stall = (*training)->stall();
                QVERIFY(stall && stall->hung() && stall->cycle.empty());
                const auto hangs = std::find_if(stall->blocked.begin(), stall->blocked.end(),
                                                [](const BlockedRank& b) { return b.rank == 2; });
                QVERIFY(hangs != stall->blocked.end() && hangs->onRank < 0);
                QCOMPARE(hangs->sentence, std::string("rank 2 is in 2F1 and waits for no message"));
                QCOMPARE(stall->victims, (std::vector<int>{0, 1, 3}));
                const Schedule lists = sends == SendMode::Buffered
                                           ? test::librarySchedule("1f1b", 4, 8)
                                           : *lower(test::librarySchedule("1f1b", 4, 8), options.lowering);
                QCOMPARE(lists.order[2].at(std::size_t(hangs->position)), hangs->op); // its position in the list
            }
            door->open();
            door->awaitNobody();
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
        }
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
                // Both sides of each message are reported.
                const Timeline& timeline = *step->timeline;
                int messages = 0, shorter = 0; // than the link's latency, as the clocks of two threads tell it
                for (SpanId id = 0; id < timeline.spans().size(); ++id)
                    for (const MessageView& view : messagesInto(timeline, id)) {
                        ++messages;
                        QVERIFY(view.producer != noSpan && view.sendPosted >= view.produced);
                        QVERIFY(view.begin >= view.sendPosted);
                        shorter += view.arrival - view.begin < 150'000 ? 1 : 0;
                    }
                QCOMPARE(messages, 2 * 3 * 8);
                // a sender that woke up late, on a busy machine
                QVERIFY2(shorter <= messages / 4, std::to_string(shorter).c_str());
            }
        }
    }
    // A lowered file is trained as it is.
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
    // One communication stream a rank: real ranks end where the lists do, and hang where a receive in front holds up a
    // send.
    void oneStream()
    {
        TrainingOptions options = test::fakeOptions(ClockMode::Auto);
        options.channels.oneStream = true;
        for (const char* rule : {"pytorch", "just-in-time", "grouped"}) {
            options.lowering = *parseLowering(rule);
            const Schedule s = test::librarySchedule("interleaved-1f1b", 2, 4, 2);
            if (!isValid(*lower(s, options.lowering), options.channels)) continue;
            auto training = test::fakeTraining(s, options);
            QVERIFY(training);
            for (int step = 0; step < 2; ++step) QVERIFY((*training)->step({}));
            QCOMPARE((*training)->clock(), ClockMode::Wall);
        }
        const Schedule held = *readScheduleCsv("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
        QVERIFY(isValid(held) && !isValid(held, options.channels));
        options.clock = ClockMode::Virtual;
        const auto refused = test::fakeTraining(test::librarySchedule("gpipe", 2, 2), options);
        QVERIFY(!refused && refused.error().message.find("communication streams") != std::string::npos);
    }
    // Buffered messages on one channel each way queue behind each other.
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
        // four forth, one back at least
        QVERIFY2(step->stepTime >= 5 * 20'000'000, qPrintable(QString::number(step->stepTime)));
    }
};

QTEST_GUILESS_MAIN(TestTrainingMessages)
#include "tst_training_messages.moc"
