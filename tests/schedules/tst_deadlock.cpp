// Deadlocks explained: the cycle, its victims, the smallest set of ops, a fix that holds; and stalls from what ranks
// recorded.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/execute/flight_record.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/text/csv.h"

using namespace stagewright;

namespace {

Channels strict(ReceiveMode receives = ReceiveMode::Blocking)
{
    Channels channels;
    channels.sends = SendMode::Rendezvous;
    channels.receives = receives;
    return channels;
}

Schedule lowered(const char* name, int p, int m, const char* rule = "just-in-time")
{
    return *lower(*makeSchedule(name, {p, m, 0}), *parseLowering(rule));
}

QStringList opsOf(const std::vector<CycleOp>& cycle)
{
    QStringList out;
    for (const CycleOp& op : cycle) out << QString::fromStdString(toText(op.op));
    return out;
}

// The order after the changes of a fix.
Schedule apply(Schedule schedule, const std::vector<OrderChange>& fix)
{
    for (const OrderChange& change : fix) {
        auto& row = schedule.order[std::size_t(change.rank)];
        if (row.at(change.from) != change.op) qFatal("the fix moves another op");
        row.erase(row.begin() + std::ptrdiff_t(change.from));
        row.insert(row.begin() + std::ptrdiff_t(change.to), change.op);
    }
    return schedule;
}

FlightEntry entry(const char* op, int peer, unsigned sequence, bool done, Bytes bytes = 4096)
{
    FlightEntry out;
    out.op = *parseOp(op);
    out.peer = peer;
    out.sequence = sequence;
    out.done = done;
    out.bytes = bytes;
    return out;
}

} // namespace

class TestDeadlock : public QObject {
    Q_OBJECT
private slots:
    void computeOrder()
    {
        const Schedule s = *readScheduleCsv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
        const auto found = explainDeadlock(s);
        QVERIFY(found && found->hung());
        QCOMPARE(found->cycle, (std::vector<int>{0, 1}));
        QCOMPARE(opsOf(found->cycleOps), (QStringList{"0B0", "1B0", "1F1", "0F1"}));
        QVERIFY(found->victims.empty());
        QVERIFY(!found->worksIfBuffered);
        QCOMPARE(found->fix.size(), std::size_t{1});
        QVERIFY(validate(apply(s, found->fix)).valid());
        QCOMPARE(apply(s, found->fix), *found->fixed);
    }
    void oneForwardOneBackward()
    {
        const Schedule s = lowered("1f1b", 4, 8);
        const auto found = explainDeadlock(s, strict());
        QVERIFY(found && found->hung());
        QCOMPARE(found->cycle, (std::vector<int>{2, 3}));
        QCOMPARE(found->victims, (std::vector<int>{0, 1}));
        QCOMPARE(opsOf(found->cycleOps), (QStringList{"2SEND_F1", "3RECV_F1", "3SEND_B0", "2RECV_B0"}));
        QVERIFY(found->worksIfBuffered);
        QVERIFY(found->groupingWorks && *found->groupingWorks);
        QVERIFY(found->fixed);
        QVERIFY(validate(*found->fixed, strict()).valid());
        QVERIFY(simulate(*found->fixed, CostModel::uniform(*found->fixed), strict()));
        QCOMPARE(apply(s, found->fix), *found->fixed);
        QCOMPARE(withoutCommunication(*found->fixed), withoutCommunication(s)); // messages moved, no compute op
        const std::string text = describeDeadlock(*found);
        QVERIFY2(
            text.starts_with(
                "rank 2 waits to send the activations of 2F1 to rank 3; rank 3 waits to send the gradient of 3B0 to "
                "rank 2; so rank 2 waits for itself\nranks 0, 1 wait for the cycle\n"),
            text.c_str());
        const QString picture = QString::fromStdString(drawDeadlock(s, *found, 100));
        QVERIFY2(picture.contains("[2SEND_F1]") && picture.contains("<2RECV_B0>"), qPrintable(picture));
        QVERIFY(picture.contains("rank 2 ─► rank 3 ─► rank 2"));
        QVERIFY(picture.contains("rank 1  (victim)"));
        for (const QString& line : picture.split('\n')) QVERIFY2(line.size() <= 100, qPrintable(line));
    }
    // Receives posted in front on one communication stream: the send behind one never has its turn, though its rank is
    // past it.
    void oneStream()
    {
        const Schedule s = *readScheduleCsv("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
        Channels stream;
        stream.oneStream = true;
        QVERIFY(!explainDeadlock(s)->hung());
        const auto found = explainDeadlock(s, stream);
        QVERIFY(found && found->hung());
        QCOMPARE(found->cycle, (std::vector<int>{0, 1}));
        QCOMPARE(opsOf(found->cycleOps), (QStringList{"0RECV_B0", "1SEND_B0", "1RECV_F0", "0SEND_F0"}));
        // its sends are buffered and its receives posted
        QVERIFY(found->worksWithStreams && !found->worksIfBuffered && !found->worksIfPosted);
        QVERIFY(found->fixed && validate(*found->fixed, stream).valid());
        QVERIFY(describeDeadlock(*found).find("it works if the messages of a rank don't share one stream\n") !=
                std::string::npos);
        QVERIFY(!validate(s, stream).valid() && !simulate(s, CostModel::uniform(s), stream));
    }
    // Several ways out are named, not one order alone (pytorch's pull request 178815).
    void severalWaysOut()
    {
        const Schedule s = lowered("1f1b", 4, 8);
        const auto found = explainDeadlock(s, strict());
        QStringList ways;
        for (const std::string& way : found->otherWays) ways += QString::fromStdString(way).section(' ', 0, 5);
        for (const char* rule : {"grouped", "pytorch", "batched"})
            QVERIFY2(ways.contains(QString("its messages where --lower %1 puts").arg(rule)) ||
                         QString::fromStdString(found->fixRule).contains(rule),
                     rule);
        QVERIFY(found->worksIfBuffered);
    }
    void nothingHangs()
    {
        QVERIFY(!explainDeadlock(lowered("gpipe", 4, 4), strict())->hung());
        QVERIFY(!explainDeadlock(*makeSchedule("1f1b", {4, 8, 0}))->hung());
        QVERIFY(!explainDeadlock(Schedule()));
    }
    // Any valid schedule under any rule: what hangs has a cycle, whose ranks wait for each other; a fix always works.
    void randomSchedules()
    {
        int hung = 0;
        int fixedOnes = 0;
        for (unsigned seed = 0; seed < 150; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            for (const char* rule :
                 {"just-in-time", "pytorch", "eager-post", "eager-post:2", "rank-parity", "grouped"}) {
                const Lowering lowering = *parseLowering(rule);
                const Schedule low = *lower(s, lowering);
                QVERIFY(!explainDeadlock(low)->hung()); // with buffers all end
                for (const ReceiveMode receives : {ReceiveMode::Blocking, ReceiveMode::Posted}) {
                    const Channels channels = strict(receives);
                    const auto found = explainDeadlock(low, channels);
                    QCOMPARE(found->hung(), !validate(low, channels).valid());
                    QCOMPARE(found->hung(), !simulate(low, CostModel::uniform(low), channels).has_value());
                    if (!found->hung()) continue;
                    ++hung;
                    QVERIFY(found->worksIfBuffered);
                    QVERIFY(found->cycle.size() >= 2);
                    for (std::size_t i = 0; i < found->cycle.size(); ++i) {
                        const int rank = found->cycle[i];
                        const auto blocked = std::find_if(found->blocked.begin(), found->blocked.end(),
                                                          [&](const BlockedRank& b) { return b.rank == rank; });
                        QVERIFY(blocked != found->blocked.end());
                        QCOMPARE(blocked->onRank, found->cycle[(i + 1) % found->cycle.size()]);
                        QVERIFY(!blocked->sentence.empty());
                    }
                    for (const int victim : found->victims)
                        QVERIFY(std::find(found->cycle.begin(), found->cycle.end(), victim) == found->cycle.end());
                    QVERIFY(!describeDeadlock(*found).empty() && !drawDeadlock(low, *found, 80).empty());
                    if (!found->fixed) continue;
                    ++fixedOnes;
                    QVERIFY(validate(*found->fixed, channels).valid());
                    QCOMPARE(apply(low, found->fix).order, found->fixed->order);
                }
            }
        }
        QVERIFY(hung > 200);
        QVERIFY2(fixedOnes * 10 > hung * 9, qPrintable(QString("%1 of %2").arg(fixedOnes).arg(hung)));
    }
    void missingInput()
    {
        const Schedule s = *readScheduleCsv("0F0,0B0\n1B0\n");
        const auto found = explainDeadlock(s);
        QVERIFY(found && found->hung());
        QVERIFY(found->cycle.empty());
        QVERIFY(found->blocked.back().sentence.ends_with("whose input never comes"));
        QVERIFY(!describeDeadlock(*found).empty());
    }

    void stall()
    {
        RankRecord zero{0, true, {entry("0SEND_F0", 1, 0, true), entry("0SEND_F1", 1, 1, false)}, 0};
        RankRecord one{1, true, {entry("1RECV_F0", 0, 0, true), entry("1SEND_B0", 0, 0, false)}, 0};
        const std::vector<RankRecord> both{zero, one};
        const Deadlock found = explainStall(both);
        QCOMPARE(found.cycle, (std::vector<int>{0, 1}));
        QCOMPARE(opsOf(found.cycleOps), (QStringList{"0SEND_F1", "1RECV_F1", "1SEND_B0", "0RECV_B0"}));
        QVERIFY(found.missing.empty());
    }
    // A rank without a record, and one that waits for nobody.
    void stallOfOthers()
    {
        const std::vector<RankRecord> records{{0, true, {entry("0SEND_F1", 1, 1, false)}, 7},
                                              {1, false, {}, 0},
                                              {2, true, {entry("2RECV_F0", 1, 0, false)}, 0}};
        const Deadlock missing = explainStall(records);
        QCOMPARE(missing.missing, (std::vector<int>{1}));
        QVERIFY(missing.cycle.empty());
        QCOMPARE(missing.victims, (std::vector<int>{0, 2}));
        QVERIFY(describeDeadlock(missing).find("nothing is known about rank 1") != std::string::npos);

        const std::vector<RankRecord> hanging{{0, true, {entry("0RECV_B0", 1, 0, false)}, 0},
                                              {1, true, {entry("1F0", -1, 0, false)}, 0}};
        const Deadlock own = explainStall(hanging);
        QVERIFY(own.cycle.empty());
        QCOMPARE(own.blocked[1].sentence, std::string("rank 1 is in 1F0 and waits for no message"));
        QCOMPARE(own.victims, (std::vector<int>{0}));
        // A rank nobody recorded at all is missing too.
        const std::vector<RankRecord> alone{{0, true, {entry("0SEND_F1", 3, 1, false)}, 0}};
        QCOMPARE(explainStall(alone).missing, (std::vector<int>{1, 2, 3}));
    }
    void stallOfDifferingSides()
    {
        std::vector<RankRecord> records{{0, true, {entry("0SEND_F1", 1, 4, false)}, 0},
                                        {1, true, {entry("1RECV_F2", 0, 4, false)}, 0}};
        QVERIFY(explainStall(records).blocked[0].sentence.ends_with(
            "which has 1RECV_F2 there: the orders of the two ranks differ"));
        records[1].entries[0] = entry("1RECV_F1", 0, 4, false, 64);
        QVERIFY(explainStall(records).blocked[0].sentence.ends_with("which has 64 bytes there: the sizes differ"));
        QVERIFY(!explainStall({}).hung());
    }
    void ring()
    {
        FlightRing ring(3);
        for (unsigned i = 0; i < 5; ++i) ring.finish(ring.add(entry("0SEND_F0", 1, i, false)));
        const std::uint64_t open = ring.add(entry("0SEND_F0", 1, 5, false));
        ring.finish(0); // long gone
        const RankRecord record = ring.record(2);
        QCOMPARE(record.rank, 2);
        QCOMPARE(record.entries.size(), std::size_t{3});
        QCOMPARE(record.forgotten, std::uint64_t{3});
        QCOMPARE(record.entries[0].sequence, 3u);
        QVERIFY(record.entries[1].done && !record.entries[2].done);
        ring.finish(open);
        QVERIFY(ring.record(2).entries[2].done);
    }
};

QTEST_APPLESS_MAIN(TestDeadlock)
#include "tst_deadlock.moc"
