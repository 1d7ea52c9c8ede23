// Lowering: the messages of a schedule, where each rule puts them, and PyTorch's own lowered files.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/text/csv.h"
#include "support/schedule_from_csv.h"

using namespace stagewright;
using stagewright::test::fromCsv;

namespace {

QString sharedText(const QString& file)
{
    return qEnvironmentVariable("STAGEWRIGHT_SHARED") + "/fixtures/torch_csv/" + file;
}

std::string contentsOf(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

// 1F1B with 2 (p − r) − 1 forwards ahead.
Schedule eager(int p, int m)
{
    Schedule s = *makeSchedule("1f1b", {p, m, 0});
    for (int r = 0; r < p; ++r) {
        auto& row = s.order[static_cast<std::size_t>(r)];
        row.clear();
        const int ahead = std::min(m, 2 * (p - r) - 1);
        for (int j = 0; j < ahead; ++j) row.push_back(makeOp(OpKind::Forward, r, j));
        for (int j = 0; j < m; ++j) {
            row.push_back(makeOp(OpKind::Backward, r, j));
            if (ahead + j < m) row.push_back(makeOp(OpKind::Forward, r, ahead + j));
        }
    }
    return s;
}

const std::array<const char*, 7> everyRule{"just-in-time", "pytorch",     "eager-post", "eager-post:1",
                                           "eager-post:3", "rank-parity", "grouped"};

} // namespace

class TestLower : public QObject {
    Q_OBJECT
private slots:
    void rules_data()
    {
        QTest::addColumn<QString>("rule");
        QTest::addColumn<QString>("rows");
        const QString zero = "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n";
        QTest::newRow("just-in-time") << "just-in-time"
                                      << zero + "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n";
        QTest::newRow("rank-parity") << "rank-parity" << zero + "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1\n";
        QTest::newRow("grouped") << "grouped"
                                 << QString("0F0 0SEND_F0 0F1 (0SEND_F1;0RECV_B0) 0B0 0RECV_B1 0B1\n"
                                            "1RECV_F0 1F0 1B0 (1SEND_B0;1RECV_F1) 1F1 1B1 1SEND_B1\n");
        QTest::newRow("pytorch") << "pytorch"
                                 << QString("0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
                                            "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
        QTest::newRow("eager-post") << "eager-post"
                                    << QString("0RECV_B0 0RECV_B1 0F0 0SEND_F0 0F1 0SEND_F1 0B0 0B1\n"
                                               "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
        QTest::newRow("one ahead") << "eager-post:1"
                                   << QString("0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0RECV_B1 0B0 0B1\n"
                                              "1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1\n");
        QTest::newRow("collectives")
            << "pytorch:collectives"
            << QString("0UNSHARD 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0REDUCE_GRAD 0RESHARD\n"
                       "1UNSHARD 1RECV_F0 1F0 1RECV_F1 1B0 1SEND_B0 1F1 1B1 1SEND_B1 1REDUCE_GRAD 1RESHARD\n");
    }
    void rules()
    {
        QFETCH(QString, rule);
        QFETCH(QString, rows);
        const auto lowering = parseLowering(rule.toStdString());
        QVERIFY(lowering);
        QCOMPARE(QString::fromStdString(toText(*lowering)), rule);
        const Schedule s = fromCsv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
        const auto lowered = lower(s, *lowering);
        QVERIFY2(lowered.has_value(), lowered ? "" : lowered.error().message.c_str());
        QCOMPARE(QString::fromStdString(toText(*lowered)), rows);
        QVERIFY(isLowered(*lowered));
        QCOMPARE(withoutCommunication(*lowered), s);
        QCOMPARE(*readScheduleCsv(*writeScheduleCsv(*lowered)), *lowered);
    }
    void unknownRules()
    {
        QCOMPARE(QString::fromStdString(parseLowering("late").error().message),
                 QString("unknown lowering rule 'late'"));
        for (const char* text : {"grouped:2", "eager-post:0", "eager-post:x", "pytorch:3", ":"})
            QVERIFY2(!parseLowering(text), text);
    }
    // The order of compute ops and their pairs survive every rule; each message is sent once and taken once.
    void randomSchedules()
    {
        for (unsigned seed = 0; seed < 200; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            for (const char* rule : everyRule) {
                const auto lowered = lower(s, *parseLowering(rule));
                QVERIFY2(lowered.has_value(), lowered ? "" : lowered.error().message.c_str());
                QCOMPARE(withoutCommunication(*lowered), s);
                const Validation validation = validate(*lowered);
                QVERIFY2(validation.valid(), validation.valid() ? "" : validation.faults[0].message.c_str());
                const auto cells = cellsOf(*lowered);
                QVERIFY(cells);
                const OpIndex index(*lowered, *cells);
                const MessageIndex pairs(*lowered, index);
                const OpIndex plain(s, *cellsOf(s));
                QCOMPARE(pairs.messages().size(), messagesOf(s, plain).size());
                for (const MessagePair& pair : pairs.messages()) QVERIFY(pair.send != noOp && pair.receive != noOp);
                QCOMPARE(lowered->opCount(), s.opCount() + 2 * pairs.messages().size());
            }
        }
    }
    // Where the two sides differ in what an op covers, the finer side decides.
    void messagesOfUnequalOps()
    {
        const Schedule s = fromCsv("0F0-1,0B0h0,0B0h1,0B1\n1F0,1F1,1B0,1B1\n");
        const auto lowered = lower(s, {});
        QVERIFY(lowered);
        QCOMPARE(QString::fromStdString(toText(*lowered)),
                 QString("0F0-1 0SEND_F0 0SEND_F1 0RECV_B0h0 0B0h0 0RECV_B0h1 0B0h1 0RECV_B1 0B1\n"
                         "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0h0 1SEND_B0h1 1B1 1SEND_B1\n"));
        const Schedule slices = fromCsv("0F0.0,0F0.1,0B0.1,0B0.0\n1F0,1B0\n");
        QCOMPARE(QString::fromStdString(toText(*lower(slices, {}))),
                 QString("0F0.0 0SEND_F0.0 0F0.1 0SEND_F0.1 0RECV_B0.1 0B0.1 0RECV_B0.0 0B0.0\n"
                         "1RECV_F0.0 1RECV_F0.1 1F0 1B0 1SEND_B0.0 1SEND_B0.1\n"));
    }
    void copiesOfAStage()
    {
        const Schedule s = fromCsv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n");
        QCOMPARE(QString::fromStdString(toText(*lower(s, {}))),
                 QString("0F0 0SEND_F0 1RECV_F1 1F1 1B1 1SEND_B1 0RECV_B0 0B0\n"
                         "0F1 0SEND_F1 1RECV_F0 1F0 1B0 1SEND_B0 0RECV_B1 0B1\n"));
    }
    // Under strict rendezvous: which rules let which orders end (sends and receives both block).
    void rendezvous_data()
    {
        QTest::addColumn<QString>("schedule");
        QTest::addColumn<QString>("rule");
        QTest::addColumn<bool>("ends");
        QTest::newRow("a") << "gpipe"
                           << "just-in-time" << true;
        QTest::newRow("b") << "1f1b"
                           << "just-in-time" << false;
        QTest::newRow("c") << "eager"
                           << "just-in-time" << false;
        QTest::newRow("d") << "gpipe"
                           << "rank-parity" << false;
        QTest::newRow("e") << "1f1b"
                           << "rank-parity" << true;
        QTest::newRow("f") << "eager"
                           << "rank-parity" << false;
        QTest::newRow("g") << "gpipe"
                           << "grouped" << true;
        QTest::newRow("h") << "1f1b"
                           << "grouped" << true;
        QTest::newRow("i") << "eager"
                           << "grouped" << true;
    }
    void rendezvous()
    {
        QFETCH(QString, schedule);
        QFETCH(QString, rule);
        QFETCH(bool, ends);
        for (const auto& [p, m] : {std::pair{4, 4}, {4, 8}}) {
            const Schedule s = schedule == "eager" ? eager(p, m) : *makeSchedule(schedule.toStdString(), {p, m, 0});
            const auto lowered = lower(s, *parseLowering(rule.toStdString()));
            QVERIFY(lowered);
            QVERIFY(validate(*lowered).valid()); // with buffers all end
            Channels strict;
            strict.sends = SendMode::Rendezvous;
            QCOMPARE(validate(*lowered, strict).valid(), ends);
            QCOMPARE(simulate(*lowered, CostModel::uniform(*lowered), strict).has_value(), ends);
        }
    }
    // Gathers, releases and reductions lie between a send and a receive that must meet their neighbour's: they are not
    // in the way.
    void collectivesBetweenMessages()
    {
        Channels strict;
        strict.sends = SendMode::Rendezvous;
        for (const LoweringRule rule : {LoweringRule::RankParity, LoweringRule::Grouped})
            for (const ReduceRule reduce : {ReduceRule::Overlapped, ReduceRule::Microbatch})
                for (const int prefetch : {0, 1, 3}) {
                    const Schedule whole = overReplicas(*makeSchedule("1f1b", {4, 8, 0}), 2).value();
                    const Schedule sharded =
                        addShardOps(whole, ShardLevel::Weights, {GatherRule::Microbatch, prefetch, reduce}).value();
                    Lowering lowering;
                    lowering.rule = rule;
                    const Schedule lowered = lower(sharded, lowering).value();
                    QVERIFY(validate(lowered, strict).valid());
                    QVERIFY(simulate(lowered, CostModel::uniform(lowered), strict));
                    QCOMPARE(withoutMessages(lowered).order, sharded.order); // nothing else has moved
                }
    }
    void impossibleOnes()
    {
        QVERIFY(!lower(fromCsv("0F0,0B0\n1B0\n"), {})); // nobody makes 1F0
        Lowering torch;
        torch.rule = LoweringRule::PyTorch;
        const auto stuck = lower(fromCsv("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), torch);
        QVERIFY(!stuck);
        QVERIFY(stuck.error().message.starts_with("deadlock of 2 ranks"));
    }
    void torchFiles()
    {
        QDir folder(sharedText(""));
        const QStringList files = folder.entryList({"*_comms.csv"});
        if (files.isEmpty()) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        QVERIFY(files.size() > 20);
        CsvOptions torch;
        torch.pytorch = true;
        Lowering rule;
        rule.rule = LoweringRule::PyTorch;
        for (const QString& file : files) {
            const auto expected = readScheduleCsv(contentsOf(folder.filePath(file)), torch);
            QVERIFY2(expected.has_value(), qPrintable(file));
            QVERIFY2(isLowered(*expected) && validate(*expected).valid(), qPrintable(file));
            // Written as it was read: the same bytes but for line ends.
            const auto written = writeScheduleCsv(*expected, torch);
            QVERIFY2(written.has_value(), qPrintable(file));
            QCOMPARE(QString::fromStdString(*written).trimmed(),
                     QString::fromStdString(contentsOf(folder.filePath(file))).remove('\r').trimmed());
            const QString computeFile = QString(file).replace("_comms.csv", ".csv");
            const auto compute = readScheduleCsv(contentsOf(folder.filePath(computeFile)), torch);
            QVERIFY2(compute.has_value(), qPrintable(computeFile));
            const auto lowered = lower(*compute, rule);
            QVERIFY2(lowered.has_value(), qPrintable(file));
            QVERIFY2(toText(*lowered) == toText(*expected),
                     qPrintable(file + "\n" + QString::fromStdString(toText(*lowered)) +
                                QString::fromStdString(toText(*expected))));
            QCOMPARE(withoutCommunication(*expected), *compute);
        }
        // PyTorch's own test of its pass: there an I directly before its W had been merged into B first.
        const auto expected =
            readScheduleCsv(contentsOf(sharedText("upstream/pytorch_zb1p_2rank_2stagep_comms.csv")), torch);
        const auto compute =
            readScheduleCsv(contentsOf(sharedText("upstream/pytorch_zb1p_2rank_2stagep_compute.csv")), torch);
        QVERIFY(expected && compute);
        Schedule merged = *compute;
        for (auto& row : merged.order)
            for (std::size_t i = 0; i + 1 < row.size(); ++i)
                if (row[i].kind == OpKind::InputGrad &&
                    row[i + 1] == makeOp(OpKind::WeightGrad, row[i].stage, row[i].microbatch)) {
                    row[i].kind = OpKind::Backward;
                    row.erase(row.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                }
        QCOMPARE(QString::fromStdString(toText(*lower(merged, rule))), QString::fromStdString(toText(*expected)));
    }
};

QTEST_APPLESS_MAIN(TestLower)
#include "tst_lower.moc"
