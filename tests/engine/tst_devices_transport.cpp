// Messages between devices of several processes: the one order in which every rank posts its ends can't hang, for every
// schedule; ranks that train by it do what threads do, bit for bit, and end as they do.
#include <QTest>

#include <map>
#include <set>

#include "engine/training/message_order.h"
#include "process_training.h"
#include "schedules/check/validate.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "support/meeting_ends.h"
#include "support/memory_processes.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

Result<Schedule> scheduleOf(const std::string& name, int ranks)
{
    Shape shape;
    shape.ranks = ranks;
    shape.microbatches = 2 * ranks;
    return makeSchedule(name, shape);
}

TrainingOptions smallOptions()
{
    TrainingOptions options = fakeOptions(ClockMode::Wall);
    options.workload = test::gpt({16, 16, 2, 1, 256}); // a message of the fake backend is `hidden` floats
    options.microbatchSize = 1;
    return options;
}

// Sends wait for their receives, which are where the rule puts them.
TrainingOptions metOptions(const std::string& rule)
{
    TrainingOptions options = smallOptions();
    options.channels.sends = SendMode::Rendezvous;
    options.lowering = *parseLowering(rule);
    options.channels.receives = receivesOf(options.lowering.rule);
    return options;
}

// Ranks that run their lists and wait at every post until its other end is posted too, at every receive until its
// message was sent. How many ops are left when none can go on.
class Hang {
public:
    Hang(const ExecutionPlan& plan, const std::vector<OrderedMessage>& order) : m_plan(plan), m_ranks(plan.ranks.size())
    {
        for (const OrderedMessage& message : order) {
            rank(message.fromRank).posts.push_back({message.key, true});
            rank(message.toRank).posts.push_back({message.key, false});
        }
    }

    std::size_t left()
    {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t number = 0; number < m_ranks.size(); ++number)
                while (go(number)) moved = true;
        }
        std::size_t ops = 0;
        for (std::size_t number = 0; number < m_ranks.size(); ++number) {
            ops += m_plan.ranks[number].ops.size() - m_ranks[number].op;
            if (ops == 0) ops += m_ranks[number].posts.size() - m_ranks[number].next;
        }
        return ops;
    }

private:
    struct Post {
        MessageKey key;
        bool sends;
    };
    struct Rank {
        std::vector<Post> posts;
        std::size_t next = 0;  // not yet begun
        bool waits = false;    // for the other end of posts[next]
        std::size_t until = 0; // it is to post before it goes on
        std::size_t op = 0;
        std::vector<MessageKey> toSay;
        std::set<MessageKey> made;
    };

    Rank& rank(int number) { return m_ranks[static_cast<std::size_t>(number)]; }
    static std::size_t placeOf(const Rank& rank, const MessageKey& key, bool sends)
    {
        for (std::size_t i = 0; i < rank.posts.size(); ++i)
            if (rank.posts[i].key == key && rank.posts[i].sends == sends) return i;
        return rank.posts.size();
    }

    bool go(std::size_t number)
    {
        Rank& rank = m_ranks[number];
        if (rank.next < rank.until) return post(rank);
        if (!rank.toSay.empty()) { // an output: said, then posted
            const MessageKey key = rank.toSay.front();
            rank.toSay.erase(rank.toSay.begin());
            m_said.insert(key);
            rank.made.insert(key);
            rank.until = std::max(rank.until, placeOf(rank, key, true) + 1);
            return true;
        }
        const RankPlan& plan = m_plan.ranks[number];
        if (rank.op >= plan.ops.size()) return false;
        const PlannedOp& op = plan.ops[rank.op];
        const std::size_t count = op.pairedWithNext && rank.op + 1 < plan.ops.size() ? 2 : 1;
        for (std::size_t i = rank.op; i < rank.op + count; ++i)
            for (const PlannedMessage& input : plan.inputsOf(plan.ops[i])) {
                if (input.rank == static_cast<int>(number)) continue;
                const std::size_t at = placeOf(rank, input.key, false);
                if (rank.next > at) continue; // it is here
                if (rank.next < at) {
                    rank.until = at;
                    return true;
                }
                if (!m_said.contains(input.key)) return false;
                rank.until = at + 1;
                return true;
            }
        for (std::size_t i = rank.op; i < rank.op + count; ++i)
            for (const PlannedPart& part : plan.partsOf(plan.ops[i]))
                for (const PlannedMessage& output : plan.outputsOf(part))
                    if (output.rank != static_cast<int>(number)) rank.toSay.push_back(output.key);
        rank.op += count;
        return true;
    }

    bool post(Rank& rank)
    {
        const Post& post = rank.posts[rank.next];
        if (post.sends && !rank.made.contains(post.key)) return false; // the rank waits for itself
        int& ends = m_ends[post.key];
        if (!rank.waits) {
            rank.waits = true;
            ++ends;
        }
        if (ends < 2) return false;
        rank.waits = false;
        ++rank.next;
        return true;
    }

    const ExecutionPlan& m_plan;
    std::vector<Rank> m_ranks;
    std::set<MessageKey> m_said;
    std::map<MessageKey, int> m_ends;
};

struct Trained {
    std::vector<double> losses;
    std::vector<std::vector<float>> gradients;
    std::string error;
};

Trained train(Training& training, int steps)
{
    Trained out;
    training.keepGradients(true);
    for (int step = 0; step < steps; ++step) {
        auto outcome = training.step({});
        if (!outcome) {
            out.error = outcome.error().message;
            return out;
        }
        out.losses.push_back(outcome->loss);
        for (const RankTraffic& traffic : outcome->traffic)
            if (traffic.messages == 0) out.error = "a rank took no messages";
    }
    out.gradients = training.lastGradients();
    return out;
}

Trained trainByEnds(int processes, const Schedule& schedule, int steps, const std::shared_ptr<EndsMeeting>& meeting,
                    FakeOptions fake = {}, const TrainingOptions& options = smallOptions())
{
    Trained out;
    fake.memory = [meeting](int rank) { return std::make_unique<MeetingMemory>(meeting, rank); };
    ProcessFaults faults =
        trainInProcesses(processes, schedule, options, fake, [&](Training& training) { out = train(training, steps); });
    if (!faults.leader.empty()) out.error = std::move(faults.leader);
    return out;
}

} // namespace

class TestDevicesTransport : public QObject {
    Q_OBJECT

private slots:
    void noOrderHangs_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        for (const std::string& name : everyVariant())
            for (const int ranks : {2, 3, 4, 6})
                if (scheduleOf(name, ranks))
                    QTest::addRow("%s on %d", name.c_str(), ranks) << QString::fromStdString(name) << ranks;
    }
    void noOrderHangs()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        const auto schedule = scheduleOf(name.toStdString(), ranks);
        const auto checked = CheckedSchedule::of(*schedule);
        QVERIFY(checked);
        const auto plan = planExecution(**checked);
        QVERIFY2(plan, plan ? "" : plan.error().message.c_str());
        const std::vector<OrderedMessage> order = messageOrder(*plan);
        std::size_t messages = 0;
        for (std::size_t rank = 0; rank < plan->ranks.size(); ++rank)
            for (const PlannedMessage& input : plan->ranks[rank].inputs)
                messages += input.rank != static_cast<int>(rank) ? 1 : 0;
        QCOMPARE(order.size(), messages); // all of them
        Hang hang(*plan, order);
        QCOMPARE(hang.left(), std::size_t(0));
    }

    // The machine above does find orders that hang.
    void anotherOrderHangs()
    {
        const auto checked = CheckedSchedule::of(librarySchedule("1f1b", 2, 4));
        const auto plan = planExecution(**checked);
        std::vector<OrderedMessage> order = messageOrder(*plan);
        std::reverse(order.begin(), order.end());
        QVERIFY(Hang(*plan, order).left() > 0);
    }

    void equalsThreads_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("processes");
        for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "interleaved-1f1b", "zbv", "chimera", "dualpipe",
                                 "dualpipev", "hanayo", "pipedream"})
            for (const int processes : {2, 4})
                QTest::addRow("%s, %d processes", name, processes) << QString(name) << 4 << processes;
        QTest::addRow("1f1b, 3 processes") << QString("1f1b") << 3 << 3;
    }
    void equalsThreads()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, processes);
        const Schedule schedule = librarySchedule(name.toStdString(), ranks, 8);
        auto threads = fakeTraining(schedule, smallOptions());
        QVERIFY2(threads, threads ? "" : threads.error().message.c_str());
        const Trained expected = train(**threads, 3);
        const auto meeting = std::make_shared<EndsMeeting>();
        const Trained found = trainByEnds(processes, schedule, 3, meeting);
        QCOMPARE(found.error, std::string());
        QVERIFY(found.losses == expected.losses);
        QVERIFY(found.gradients == expected.gradients);
        QVERIFY(meeting->messages > 0);
    }

    void oneRankADevice()
    {
        const auto meeting = std::make_shared<EndsMeeting>();
        meeting->oneDevice = true;
        const Trained found = trainByEnds(2, librarySchedule("1f1b", 2, 4), 1, meeting);
        QVERIFY2(found.error.starts_with("NCCL serves one rank per device, but ranks 0 and 1 have the same one on "),
                 found.error.c_str());
    }

    void withoutAConnection()
    {
        const auto meeting = std::make_shared<EndsMeeting>();
        meeting->missing = "NCCL can't be loaded: not there";
        QCOMPARE(trainByEnds(2, librarySchedule("1f1b", 2, 4), 1, meeting).error, meeting->missing);
    }

    // Who waits for the other end of a message goes on when the training stops.
    void aRankFails_data()
    {
        QTest::addColumn<int>("failsAfter");
        for (const int after : {0, 1, 2, 7, 20}) QTest::addRow("after %d messages", after) << after;
    }
    void aRankFails()
    {
        QFETCH(int, failsAfter);
        const auto meeting = std::make_shared<EndsMeeting>();
        meeting->failsAfter = failsAfter;
        const Trained found = trainByEnds(4, librarySchedule("interleaved-1f1b", 4, 8), 3, meeting);
        QVERIFY2(found.error.find("the connection failed") != std::string::npos, found.error.c_str());
    }

    // Lists with sends and receives, and sends that wait for their receives: they are posted as the lists have them.
    void rendezvous_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("rule");
        for (const char* name : {"1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "zbv", "chimera"})
            for (const char* rule :
                 {"just-in-time", "grouped", "rank-parity", "pytorch", "eager-post", "eager-post:2"}) {
                const TrainingOptions options = metOptions(rule);
                const auto lists = lower(librarySchedule(name, 4, 8), options.lowering);
                const bool goesThrough = lists && validate(*lists, options.channels).valid();
                if (goesThrough) QTest::addRow("%s, %s", name, rule) << QString(name) << QString(rule);
            }
    }
    void rendezvous()
    {
        QFETCH(QString, name);
        QFETCH(QString, rule);
        const Schedule schedule = librarySchedule(name.toStdString(), 4, 8);
        const TrainingOptions options = metOptions(rule.toStdString());
        auto threads = fakeTraining(schedule, smallOptions());
        const Trained expected = train(**threads, 2);
        const auto meeting = std::make_shared<EndsMeeting>();
        meeting->ranksWait = false; // they wait for each other at their lists' sends
        const Trained found = trainByEnds(4, schedule, 2, meeting, {}, options);
        QCOMPARE(found.error, std::string());
        QVERIFY(found.gradients == expected.gradients);
    }

    // Lists that wait for themselves hang as they do by threads: what ranks wait for is said, and nothing else.
    void listsThatHang()
    {
        const Schedule schedule = librarySchedule("1f1b", 3, 6);
        TrainingOptions options = smallOptions();
        options.channels.sends = SendMode::Rendezvous;
        options.timeoutSeconds = 1;
        const auto meeting = std::make_shared<EndsMeeting>();
        meeting->ranksWait = false;
        const Trained found = trainByEnds(3, schedule, 1, meeting, {}, options);
        QVERIFY2(found.error.find("no progress for 1 s") != std::string::npos, found.error.c_str());
    }
};

QTEST_GUILESS_MAIN(TestDevicesTransport)
#include "tst_devices_transport.moc"
