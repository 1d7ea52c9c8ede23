// Lists as PyTorch, TorchTitan, Megatron-LM and spreadsheets write them (tests/data/schedule_csv), each with its right
// figures.
#include <QtTest>

#include "schedules/check/checked_schedule.h"
#include "schedules/execute/buffering.h"
#include "schedules/execute/deadlock.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/groups.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"

using namespace stagewright;

namespace {

Schedule listsOf(const QString& name)
{
    QFile file(QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/schedule_csv/%1.csv").arg(name));
    if (!file.open(QIODevice::ReadOnly)) qFatal("%s", qPrintable(file.fileName()));
    auto read = readScheduleCsv(file.readAll().toStdString(), {}, name.toStdString());
    if (!read) qFatal("%s", read.error().message.c_str());
    return *read;
}

Channels withoutBuffers()
{
    Channels channels;
    channels.sends = SendMode::Rendezvous;
    return channels;
}

double makespanOf(const Schedule& schedule, const Channels& channels = {})
{
    const auto result = simulate(schedule, CostModel::uniform(schedule), channels);
    return result ? static_cast<double>(result->makespan) / static_cast<double>(rankShare) : -1;
}

QStringList faultsOf(const Schedule& schedule)
{
    QStringList out;
    for (const Fault& fault : validate(schedule).faults)
        out << QString::fromStdString(fault.message + " | " + fault.remedy);
    return out;
}

Schedule shared(const Schedule& one, ShardLevel level, const ShardRules& rules, int replicas = 2)
{
    const auto out = addShardOps(*overReplicas(one, replicas), level, rules);
    if (!out) qFatal("%s", out.error().message.c_str());
    return *out;
}

} // namespace

class TestForeignLists : public QObject {
    Q_OBJECT
private slots:
    void figures_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<double>("makespan");
        QTest::addColumn<QString>("name");
        QTest::newRow("rows of commas don't count") << "spreadsheet" << 9.0 << "1f1b";
        QTest::newRow("PyTorch's rows, sharded") << "gathers_lowered" << 7.5 << "interleaved-1f1b";
        QTest::newRow("without messages") << "gathers" << 7.5 << "interleaved-1f1b";
        QTest::newRow("what is active at the end stays gathered") << "gathered_at_end" << 13.5 << "interleaved-1f1b";
        QTest::newRow("BATCH_P2P") << "batches" << 13.5 << "interleaved-1f1b";
        QTest::newRow("Megatron's groups") << "groups_of_six" << 37.5 << "interleaved-1f1b:group=6";
    }
    void figures()
    {
        QFETCH(QString, file);
        QFETCH(double, makespan);
        QFETCH(QString, name);
        const Schedule lists = listsOf(file);
        QVERIFY2(validate(lists).valid(), qPrintable(faultsOf(lists).join('\n')));
        QCOMPARE(makespanOf(lists), makespan);
        QCOMPARE(QString::fromStdString(recognise(lists)), name);
        QCOMPARE(*readScheduleCsv(*writeScheduleCsv(lists)), lists);
    }
    // The checked form that trainings take keeps the gathers of lists whose ranks share state, and drops those that
    // nobody shares.
    void gathersStayWhereStateIsShared()
    {
        const Schedule lists = listsOf("gathers_lowered");
        const auto alone = CheckedSchedule::of(lists);
        QVERIFY(alone);
        QCOMPARE((*alone)->compute(), withoutCommunication(lists));
        const Schedule sharded = shared(lists, ShardLevel::Weights, {});
        const auto together = CheckedSchedule::of(sharded);
        QVERIFY(together);
        QCOMPARE((*together)->compute(), withoutMessages(sharded));
        QVERIFY(sharesState((*together)->compute()));
        QCOMPARE(makeOp(OpKind::Unshard, 0), (*together)->compute().order[0][0]);
    }
    // Rendezvous: 0SEND_F1 waits for 1SEND_F0 and it for 0SEND_F1; every way out is checked.
    void waysOut_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("first");
        QTest::addColumn<QString>("second");
        QTest::newRow("older lowered file") << "gathered_at_end"
                                            << "0SEND_F1"
                                            << "1SEND_F0";
        QTest::newRow("deferred receives") << "deferred_receives"
                                           << "2SEND_F1"
                                           << "3SEND_B0";
    }
    void waysOut()
    {
        QFETCH(QString, file);
        QFETCH(QString, first);
        QFETCH(QString, second);
        const Schedule lists = listsOf(file);
        QVERIFY(validate(lists).valid());
        QCOMPARE(makespanOf(lists), 13.5);
        const auto hang = explainDeadlock(lists, withoutBuffers());
        QVERIFY(hang && hang->hung());
        QCOMPARE(hang->blocked.size(), std::size_t{2});
        QCOMPARE(QString::fromStdString(toText(hang->blocked[0].op)), first);
        QCOMPARE(QString::fromStdString(toText(hang->blocked[1].op)), second);
        QVERIFY(hang->worksIfBuffered);
        QVERIFY(hang->fixed && validate(*hang->fixed, withoutBuffers()).valid());
        const QString text = QString::fromStdString(describeDeadlock(*hang));
        QVERIFY2(text.contains("a way out, checked: "), qPrintable(text));
        QVERIFY2(text.count("another way out, checked: ") >= 2, qPrintable(text)); // not one order alone
        QVERIFY2(text.contains("another way out, checked: its messages where --lower batched puts them, in "),
                 qPrintable(text));
        for (const std::string& way : hang->otherWays) {
            const std::size_t at = way.find("--lower ");
            if (at == std::string::npos) continue;
            const std::string rule = QString::fromStdString(way.substr(at + 8)).section(' ', 0, 0).toStdString();
            QVERIFY2(makespanOf(*lower(withoutMessages(lists), *parseLowering(rule)), withoutBuffers()) > 0,
                     way.c_str());
        }
    }
    void batchesEndWithoutBuffers()
    {
        const Schedule lists = listsOf("batches");
        QVERIFY(makespanOf(lists, withoutBuffers()) > 0 || explainDeadlock(lists, withoutBuffers())->worksIfBuffered);
        // Megatron-LM's batches: both sides of a message in the same batch, up to four messages in one.
        for (const char* name : {"1f1b", "eager-1f1b", "interleaved-1f1b", "interleaved-1f1b:group=8", "dualpipev",
                                 "zbv", "chimera", "hanayo"}) {
            const Schedule schedule = *makeSchedule(name, {4, 8, 0});
            const Schedule batched = *lower(schedule, *parseLowering("batched"));
            QVERIFY2(validate(batched, withoutBuffers()).valid(), name);
            QVERIFY(withoutCommunication(batched) == schedule);
            std::size_t largest = 0;
            for (int r = 0; r < batched.ranks; ++r)
                for (std::size_t i = 0; i < batched.order[static_cast<std::size_t>(r)].size(); ++i)
                    if (isMessage(batched.order[static_cast<std::size_t>(r)][i].kind))
                        largest = std::max(largest, groupSize(batched, r, i));
            QVERIFY2(largest >= 2, name);
            QCOMPARE(*readScheduleCsv(*writeScheduleCsv(batched)), batched);
        }
        const auto outcomes = outcomesWithoutBuffers(*makeSchedule("interleaved-1f1b", {4, 8, 0}));
        QVERIFY(outcomes);
        QCOMPARE(QString::fromStdString(describeOutcomes(*outcomes)),
                 QString("needs buffers under just-in-time, rank-parity, grouped; completes without under pytorch, "
                         "eager-post, batched"));
    }
    // Four messages between two neighbours, posted together: in pairs they would wait for each other.
    void fourAtOnce()
    {
        const std::string text = "0F0,0F1,(0SEND_F0;0SEND_F1;0RECV_B0;0RECV_B1)GROUPED,0B0,0B1\n"
                                 "(1RECV_F0;1RECV_F1)GROUPED,1F0,1B0,1F1,1B1,(1SEND_B0;1SEND_B1)GROUPED\n";
        const Schedule lists = *readScheduleCsv(text);
        QCOMPARE(faultsOf(lists), QStringList());
        const auto hang = explainDeadlock(lists, withoutBuffers());
        QVERIFY(hang && !hang->hung());
        QCOMPARE(makespanOf(lists, withoutBuffers()), 12.0); // both F (2), then all of rank 1 (6), then both B (4)
    }
    void groupsOfTheLoop()
    {
        for (const char* group : {"6", "7", "11"}) {
            const auto made = makeSchedule(std::string("interleaved-1f1b:group=") + group, {4, 11, 2});
            QVERIFY2(made, group);
            QCOMPARE(makespanOf(*made), 37.5);
        }
        QCOMPARE(makeSchedule("interleaved-1f1b:group=6", {4, 11, 2})->order, listsOf("groups_of_six").order);
        // The groups of the paper and of PyTorch's rule are those of auto.
        QCOMPARE(*makeSchedule("interleaved-1f1b:group=4", {4, 8, 2}), *makeSchedule("interleaved-1f1b", {4, 8, 2}));
        QCOMPARE(*makeSchedule("interleaved-1f1b:group=5", {4, 10, 2}), *makeSchedule("interleaved-1f1b", {4, 10, 2}));
        const auto small = makeSchedule("interleaved-1f1b:group=2", {4, 8, 2});
        QVERIFY(!small);
        QVERIFY2(small.error().message.starts_with(
                     "interleaved-1f1b: groups of 2 of 8 microbatches on 4 ranks: deadlock of "),
                 small.error().message.c_str());
        QVERIFY(small.error().message.find(" waits for ") != std::string::npos);
        QCOMPARE(small.error().remedy, std::string("the nearest that works is group=4"));
        QCOMPARE(makeSchedule("interleaved-1f1b:group=12", {4, 11, 2}).error().message,
                 std::string(
                     "interleaved-1f1b: groups of 12 of 11 microbatches on 4 ranks: a group is larger than the batch"));
    }
    // Every group that is made ends, by its closed form where it has one; every other is refused with a cycle.
    void everyGroup()
    {
        int refused = 0, formed = 0;
        for (int p = 1; p <= 5; ++p)
            for (int m = 1; m <= 13; ++m)
                for (int v = 2; v <= 3; ++v)
                    for (int q = 1; q <= m; ++q) {
                        const std::string name = "interleaved-1f1b:group=" + std::to_string(q);
                        const auto made = makeSchedule(name, {p, m, v});
                        if (!made) {
                            QVERIFY2(q < p || (m % q > 0 && m % q < p), made.error().message.c_str());
                            QVERIFY(made.error().message.find("deadlock of ") != std::string::npos);
                            ++refused;
                            continue;
                        }
                        QVERIFY(validate(*made).valid());
                        const auto result = simulate(*made, CostModel::uniform(*made));
                        const auto form = closedFormOf(name, {p, m, v}, 1, 1, 1);
                        QVERIFY(result && form);
                        if (form->makespan < 0) continue;
                        ++formed;
                        QCOMPARE(static_cast<double>(result->makespan) / static_cast<double>(rankShare),
                                 form->makespan);
                        for (int r = 0; r < p; ++r)
                            QCOMPARE(static_cast<double>(result->peakActivation[static_cast<std::size_t>(r)]) /
                                         static_cast<double>(activationShare),
                                     form->peakActivation[static_cast<std::size_t>(r)]);
                    }
        QVERIFY(refused > 50 && formed > 200);
    }
    // Lists that lack the gather or the reduction of one stage.
    void whatIsLeftOut()
    {
        const Schedule one = *makeSchedule("1f1b", {2, 2, 0});
        int lacking = 0;
        for (const ShardLevel level :
             {ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Gradients, ShardLevel::Weights})
            for (const ReduceRule reduce :
                 {ReduceRule::Late, ReduceRule::Overlapped, ReduceRule::Microbatch, ReduceRule::Stepped}) {
                if (reduce == ReduceRule::Microbatch && level < ShardLevel::Gradients) continue;
                ShardRules rules;
                rules.reduce = reduce;
                const Schedule whole = shared(one, level, rules);
                QCOMPARE(faultsOf(whole), QStringList());
                for (std::size_t r = 0; r < whole.order.size(); ++r)
                    for (std::size_t i = 0; i < whole.order[r].size(); ++i) {
                        const OpKind kind = whole.order[r][i].kind;
                        if (kind != OpKind::Unshard && kind != OpKind::ReduceGrad) continue;
                        Schedule without = whole;
                        without.order[r].erase(without.order[r].begin() + static_cast<std::ptrdiff_t>(i));
                        QVERIFY2(!validate(without).valid(), toText(whole.order[r][i]).c_str());
                        ++lacking;
                        // On every rank alike, so that their numbers say nothing.
                        Schedule everywhere = whole;
                        for (auto& row : everywhere.order) std::erase(row, whole.order[r][i]);
                        QVERIFY2(!validate(everywhere).valid(), toText(whole.order[r][i]).c_str());
                    }
            }
        QVERIFY(lacking > 60);
        const auto faults =
            faultsOf(*readScheduleCsv("0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n"));
        QCOMPARE(faults, QStringList{"rank 1, op 1 (1F0): the weights of stage 1 are never gathered on rank 1, but "
                                     "those of stage 0 are | add 1UNSHARD before it"});
        QCOMPARE(faultsOf(*readScheduleCsv("0F0,0B0,0REDUCE_GRAD,0OPT,0UNSHARD\n1F0,1B0,1OPT\n")),
                 (QStringList{"rank 1, op 2 (1B0): the gradients of stage 1 are never reduced on rank 1, but those of "
                              "stage 0 are | add 1REDUCE_GRAD after it",
                              "rank 1, op 3 (1OPT): the weights of stage 1 are never gathered on rank 1, but those of "
                              "stage 0 are | add 1UNSHARD behind it"}));
    }
    // Sharded 1F1B is 1F1B, not a schedule of another mathematics that happens to have the same ops.
    void sharedStateIsRecognised()
    {
        const Schedule one = *makeSchedule("1f1b", {2, 2, 0});
        for (const ShardLevel level : {ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Weights}) {
            const Schedule sharded = shared(one, level, {});
            QCOMPARE(recognise(sharded), std::string("1f1b"));
            QCOMPARE(recognise(replicaSchedule(sharded, 0)), std::string("1f1b"));
            QCOMPARE(recognise(*lower(sharded, *parseLowering("pytorch"))), std::string("1f1b"));
        }
        Schedule other = replicaSchedule(shared(one, ShardLevel::Weights, {}), 0);
        std::swap(other.order[0][1], other.order[0][2]); // 0F1 before 0F0
        const auto nearest = nearestSchedule(other);
        QVERIFY(nearest && nearest->diff.distance() > 0);
        QCOMPARE((*findSchedule(nearest->name))->make({2, 2, 1})->weights, WeightRule::Synchronous);
    }
    void offloadMovesActivations()
    {
        const Schedule lists = listsOf("offload");
        QVERIFY(validate(lists).valid());
        QVERIFY(activationPeaks(lists, CostModel::uniform(lists))[0] < 4 * activationShare);
    }
    void skipConnections()
    {
        const QStringList faults = faultsOf(listsOf("skip"));
        QCOMPARE(faults.size(), 4);
        for (const QString& fault : faults)
            QVERIFY2(fault.contains("stages form a chain") && !fault.contains("remove"), qPrintable(fault));
    }
};

QTEST_APPLESS_MAIN(TestForeignLists)
#include "tst_foreign_lists.moc"
