// Times of lowered schedules under buffered and rendezvous sends, limited channels, and what the timeline shows of
// messages.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/timeline/message_view.h"
#include "schedules/timeline/timeline_of.h"
#include "support/schedule_from_csv.h"

using namespace stagewright;
using stagewright::test::fromCsv;

namespace {

constexpr Nanos unit = rankShare;

CostModel costs(const Schedule& schedule, double latency)
{
    CostModel::UnitCosts unitCosts;
    unitCosts.latency = latency;
    return CostModel::uniform(schedule, unitCosts);
}

Channels strict()
{
    Channels channels;
    channels.sends = SendMode::Rendezvous;
    return channels;
}

SpanId spanOf(const Timeline& timeline, Lane lane, const char* text)
{
    const Op op = *parseOp(text);
    for (const Track& track : timeline.tracks())
        for (SpanId id = track.begin; track.lane == lane && id < track.end; ++id)
            if (timeline.spans()[id].op == op) return id;
    return noSpan;
}

Channels oneStream()
{
    Channels channels;
    channels.oneStream = true;
    return channels;
}

// Messages of `bytes` over links of 1 byte a nanosecond.
CostModel withBandwidth(CostModel model, Bytes bytes, Nanos latency = 0)
{
    for (StageMemory& memory : model.memory) memory.boundary = bytes;
    model.links.all = {latency, 1e9};
    return model;
}

// Two forwards of stage 0 whose messages leave back to back, and one rank that takes them.
const char* twoMessages = "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                          "1RECV_F0,1F0,1RECV_F1,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n";

} // namespace

class TestChannels : public QObject {
    Q_OBJECT
private slots:
    // Buffered sends without limits change no time: whatever the rule, ops run when they do in the compute-only form.
    void bufferedIsComputeOnly()
    {
        for (unsigned seed = 0; seed < 150; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            CostModel model = costs(s, seed % 3 * 0.37);
            // links are shared alike
            if (seed % 2 == 1) model = withBandwidth(model, static_cast<Bytes>(seed % 5) * unit / 3, unit / 7);
            const auto plain = simulate(s, model);
            QVERIFY(plain);
            for (const char* rule : {"just-in-time", "pytorch", "eager-post", "rank-parity", "grouped"}) {
                const Schedule lowered = *lower(s, *parseLowering(rule));
                const auto timed = simulate(lowered, model);
                QVERIFY2(timed.has_value(), timed ? "" : timed.error().message.c_str());
                QCOMPARE(timed->makespan, plain->makespan);
                QCOMPARE(timed->span, plain->span);
                QCOMPARE(timed->peakActivation, plain->peakActivation);
                std::vector<Nanos> starts;
                for (std::size_t r = 0; r < lowered.order.size(); ++r)
                    for (std::size_t i = 0; i < lowered.order[r].size(); ++i)
                        if (!isMessage(lowered.order[r][i].kind))
                            starts.push_back(timed->start[timed->indexOf(int(r), i)]);
                QCOMPARE(starts, plain->start);
                const auto timeline = timelineOf(lowered, *timed, model);
                QVERIFY2(timeline.has_value(), timeline ? "" : timeline.error().message.c_str());
                QCOMPARE(*scheduleOf(**timeline, 0), s);
            }
        }
    }
    // A strict send takes the sender's time: never faster than buffers, and an order that completes is kept.
    void rendezvousIsNeverFaster()
    {
        int ended = 0;
        for (unsigned seed = 0; seed < 150; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            const CostModel model = costs(s, seed % 2);
            const auto plain = simulate(s, model);
            for (const char* rule : {"just-in-time", "grouped"}) {
                const Schedule lowered = *lower(s, *parseLowering(rule));
                const auto timed = simulate(lowered, model, strict());
                if (!timed) {
                    QVERIFY(timed.error().message.starts_with("deadlock of"));
                    continue;
                }
                ++ended;
                QVERIFY(timed->makespan >= plain->makespan);
                for (const MessageTimes& message : timed->messages) {
                    QVERIFY(message.begin >= message.sendPosted && message.begin >= message.receivePosted);
                    QCOMPARE(timed->end[message.send] >= message.arrival, true);
                }
                const auto timeline = simulatedTimeline(lowered, model, strict());
                QVERIFY(timeline);
                QCOMPARE(*scheduleOf(**timeline, 0), s);
            }
        }
        QVERIFY(ended > 50);
    }
    // Two messages, one channel: the second waits until the first has arrived.
    void oneChannel()
    {
        const Schedule s = fromCsv(twoMessages);
        Channels one;
        one.perDirection = 1;
        const auto timed = simulate(s, costs(s, 3), one);
        QVERIFY(timed);
        const auto free = simulate(s, costs(s, 3));
        auto of = [&](const SimResult& result, const char* send) {
            for (const MessageTimes& message : result.messages)
                if (s.order[0][message.send - result.offsets[0]] == *parseOp(send)) return message;
            return MessageTimes();
        };
        QCOMPARE(of(*free, "0SEND_F1").begin, 2 * unit);
        QCOMPARE(of(*free, "0SEND_F1").arrival, 5 * unit);
        QCOMPARE(of(*timed, "0SEND_F0").arrival, 5 * unit);
        QCOMPARE(of(*timed, "0SEND_F1").sendPosted, 2 * unit);
        QCOMPARE(of(*timed, "0SEND_F1").begin, 5 * unit);
        QCOMPARE(of(*timed, "0SEND_F1").arrival, 8 * unit);
        Channels two;
        two.perDirection = 2;
        QCOMPARE(simulate(s, costs(s, 3), two)->makespan, free->makespan);
        QVERIFY(timed->makespan > free->makespan);
    }
    // Eight messages of 411 MB over 1 GB/s take 3.29 s, whatever produces them (pipedream's pull request 29): F 90 and
    // 60 ms, B 180 and 120.
    void messagesShareTheirLink()
    {
        const Schedule s = *makeSchedule("gpipe", Shape(2, 8));
        CostModel model(2, CostSource::Uniform);
        for (int stage = 0; stage < 2; ++stage) {
            model.setDuration(OpKind::Forward, stage, stage == 0 ? 90'000'000 : 60'000'000);
            model.setDuration(OpKind::Backward, stage, stage == 0 ? 180'000'000 : 120'000'000);
        }
        model = withBandwidth(model, 411'000'000, 5'000);
        const Nanos way = Nanos{8} * 411'000'000 + 5'000;
        const Nanos expected = 90'000'000 + way + 60'000'000 + 120'000'000 + way + 180'000'000;
        QCOMPARE(simulate(s, model)->makespan, expected);
        const Schedule lowered = *lower(s, {});
        QCOMPARE(simulate(lowered, model)->makespan, expected);
        for (const Schedule& lists : {s, lowered}) { // on the timeline a link carries one message after the other
            const auto timeline = *simulatedTimeline(lists, model);
            const Track* sends = timeline->trackOf(0, Lane::Send);
            QVERIFY(sends != nullptr);
            QCOMPARE(sends->end - sends->begin, 8U);
            for (SpanId id = sends->begin + 1; id < sends->end; ++id)
                QCOMPARE(timeline->spans()[id].start - timeline->spans()[id - 1].start, Nanos{411'000'000});
            QCOMPARE(timeline->spans()[sends->end - 1].end, 90'000'000 + way);
        }
        Channels apart;
        apart.apart = true; // each as if the link were its own
        QCOMPARE(simulate(s, model, apart)->makespan,
                 Nanos{8} * (90'000'000 + 180'000'000) + Nanos{2} * 411'005'000 + 60'000'000 + 120'000'000);
        Channels two;
        two.perDirection = 2; // of which none lets a link carry more than it does
        QCOMPARE(simulate(lowered, model, two)->makespan, expected);
        Channels one;
        one.perDirection = 1; // each also waits for the latency of the one before
        QCOMPARE(simulate(lowered, model, one)->makespan, expected + Nanos{2} * 7 * 5'000);
    }
    // Under rendezvous a group of two messages to one rank shares the link too.
    void groupsShareTheirLink()
    {
        Schedule s = fromCsv("0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_"
                             "B0,1B1,1SEND_B1\n");
        s.paired.assign(2, {});
        s.paired[0] = {2};
        Channels posted = strict();
        posted.receives = ReceiveMode::Posted;
        const CostModel model = withBandwidth(costs(s, 0), 3 * unit);
        const auto timed = simulate(s, model, posted);
        QVERIFY2(timed.has_value(), timed ? "" : timed.error().message.c_str());
        QCOMPARE(timed->start[timed->indexOf(1, 2)], 5 * unit); // F0, at 2 + 3
        QCOMPARE(timed->start[timed->indexOf(1, 3)], 8 * unit); // F1, behind it
    }
    // One communication stream a rank: a posted receive holds up the sends behind it, compute goes on (pytorch's issues
    // 188833 and 165664).
    void oneStreamARank_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<double>("units");
        QTest::addColumn<double>("apart");
        QTest::newRow("p=8 m=8") << 8 << 8 << 60.0 << 34.5;
        QTest::newRow("p=8 m=16") << 8 << 16 << 84.0 << 58.5;
        QTest::newRow("p=2 m=4") << 2 << 4 << 13.5 << 13.5;
    }
    void oneStreamARank()
    {
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        QFETCH(double, units);
        QFETCH(double, apart);
        const Schedule s =
            *lower(*makeSchedule("interleaved-1f1b", Shape(ranks, microbatches, 2)), *parseLowering("pytorch"));
        QCOMPARE(static_cast<double>(simulate(s, costs(s, 0))->makespan), apart * static_cast<double>(unit));
        const auto timed = simulate(s, costs(s, 0), oneStream());
        QVERIFY2(timed.has_value(), timed ? "" : timed.error().message.c_str());
        QCOMPARE(static_cast<double>(timed->makespan), units * static_cast<double>(unit));
    }
    // On each rank no message starts before those in front of it are there, and none is faster than on its own.
    void streamsKeepTheirOrder()
    {
        int ended = 0;
        for (unsigned seed = 0; seed < 100; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            const CostModel model = costs(s, seed % 3 * 0.4);
            for (const char* rule : {"just-in-time", "pytorch"}) {
                const Schedule lowered = *lower(s, *parseLowering(rule));
                const auto timed = simulate(lowered, model, oneStream());
                if (!timed) {
                    QVERIFY(timed.error().message.starts_with("deadlock of"));
                    continue;
                }
                ++ended;
                QVERIFY(timed->makespan >= simulate(lowered, model)->makespan);
                for (std::size_t r = 0; r < lowered.order.size(); ++r) {
                    Nanos before = 0;
                    for (std::size_t i = 0; i < lowered.order[r].size(); ++i)
                        for (const MessageTimes& message : timed->messages)
                            if (const std::size_t id = timed->indexOf(static_cast<int>(r), i);
                                message.send == id || message.receive == id) {
                                QVERIFY(message.begin >= before);
                                before = message.arrival;
                            }
                }
            }
        }
        QVERIFY(ended > 50);
    }
    // What a gap is made of, read from the timeline.
    void viewOfAMessage()
    {
        const Schedule s = fromCsv(twoMessages);
        Channels one;
        one.perDirection = 1;
        const auto timeline = *simulatedTimeline(s, costs(s, 3), one);
        const auto first = messagesInto(*timeline, spanOf(*timeline, Lane::Compute, "1F0"));
        QCOMPARE(first.size(), std::size_t{1});
        QCOMPARE(first[0].produced, 1 * unit);
        QCOMPARE(first[0].sendPosted, 2 * unit); // 0F1 comes before the send
        QCOMPARE(first[0].receivePosted, Nanos{0});
        QCOMPARE(first[0].begin, 2 * unit);
        QCOMPARE(first[0].arrival, 5 * unit);
        const auto second = messagesInto(*timeline, spanOf(*timeline, Lane::Compute, "1F1"));
        QCOMPARE(second[0].begin, 5 * unit);
        QCOMPARE(second[0].arrival, 8 * unit);
        QCOMPARE(second[0].send, spanOf(*timeline, Lane::Send, "0SEND_F1"));
        QCOMPARE(messageOfSend(*timeline, second[0].send)->consumer, second[0].consumer);
        QCOMPARE(timeline->trackOf(0, Lane::Wait), nullptr); // nobody waits at a buffered send

        const auto blocked = *simulatedTimeline(s, costs(s, 3), strict());
        const SpanId wait = spanOf(*blocked, Lane::Wait, "0SEND_F1");
        QVERIFY(wait != noSpan);
        const auto message = messageOfWait(*blocked, wait);
        QVERIFY(message);
        // Rank 1 posts its receive after 1F0, which runs from 5 to 6; until then rank 0 waits at the send.
        QCOMPARE(blocked->spans()[wait].start, 5 * unit);
        QCOMPARE(message->receivePosted, 6 * unit);
        QCOMPARE(message->begin, 6 * unit);
        QCOMPARE(blocked->spans()[wait].end, 9 * unit);
    }
    // Copies of a stage reduce their gradients together; each rank waits for the other.
    void reductionOfCopies()
    {
        const Schedule s = fromCsv(
            "0F0,1F1,1B1,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n0F1,1F0,1B0,1REDUCE_GRAD,0B1,0FILLER10080000,0REDUCE_GRAD\n");
        const auto timed = simulate(s, CostModel::uniform(s));
        QVERIFY2(timed.has_value(), timed ? "" : timed.error().message.c_str());
        QCOMPARE(timed->start[timed->indexOf(0, 5)], timed->start[timed->indexOf(1, 6)]);
        QCOMPARE(timed->makespan, timed->end[timed->indexOf(1, 5)]);
        const Schedule crossed =
            fromCsv("0F0,1F1,1B1,0B0,0REDUCE_GRAD,1REDUCE_GRAD\n0F1,1F0,1B0,0B1,1REDUCE_GRAD,0REDUCE_GRAD\n");
        QCOMPARE(
            QString::fromStdString(simulate(crossed, CostModel::uniform(crossed)).error().message),
            QString("deadlock of 2 ranks: rank 0 is at op 5 (0REDUCE_GRAD) and waits for 0REDUCE_GRAD, op 6 of rank 1; "
                    "rank 1 is at op 5 (1REDUCE_GRAD) and waits for 1REDUCE_GRAD, op 6 of rank 0"));
    }
};

QTEST_APPLESS_MAIN(TestChannels)
#include "tst_channels.moc"
