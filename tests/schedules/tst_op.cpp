// Op text: round trips, strictness, hashing.
#include <QtTest>

#include <random>
#include <set>
#include <unordered_set>

#include "schedules/model/kinds.h"
#include "schedules/model/op.h"

using namespace stagewright;

class TestOp : public QObject {
    Q_OBJECT
private slots:
    void textForms_data()
    {
        QTest::addColumn<QString>("text");
        for (const char* text : {"2F0",
                                 "3I1",
                                 "0W7",
                                 "1B4",
                                 "2F0.1",
                                 "0W0-3",
                                 "2B1h0",
                                 "2B1h1",
                                 "2R3",
                                 "2OPT",
                                 "2REDUCE_GRAD",
                                 "1UNSHARD",
                                 "1RESHARD",
                                 "0SEND_F1",
                                 "1RECV_F1",
                                 "3SEND_B0",
                                 "2RECV_B0",
                                 "0FILLER5000",
                                 "0FILLER4294967295",
                                 "65535F999999999",
                                 "4W2-5.3h1",
                                 "0OFFLOAD2",
                                 "0RELOAD2"})
            QTest::newRow(text) << text;
    }
    void textForms()
    {
        QFETCH(QString, text);
        const auto op = parseOp(text.toStdString());
        QVERIFY2(op.has_value(), op ? "" : op.error().message.c_str());
        QCOMPARE(QString::fromStdString(toText(*op)), text);
    }
    void fields()
    {
        const Op op = *parseOp("4W2-5.3h1");
        QCOMPARE(int(op.stage), 4);
        QCOMPARE(op.kind, OpKind::WeightGrad);
        QCOMPARE(op.microbatch, 2);
        QCOMPARE(int(op.count), 4);
        QCOMPARE(int(op.slice), 3);
        QCOMPARE(int(op.half), 2);
        QCOMPARE(parseOp("3OPT")->microbatch, -1);
        QCOMPARE(parseOp("3FILLER12")->delay, 12u);
    }
    void refused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        auto add = [](const char* text, const char* says) { QTest::newRow(text) << text << says; };
        add("", "the end");
        add("F0", "stage expected at character 1");
        add("2", "kind");
        add("2X0", "unknown kind 'X' at character 2");
        add("2f0", "at character 2");
        add("2F", "microbatch expected at the end");
        add("2F0x", "nothing more expected at character 4");
        add("2F0 ", "nothing more expected at character 4");
        add(" 2F0", "stage expected at character 1");
        add("2F-1", "microbatch expected at character 3");
        add("65536F0", "above 65535");
        add("2F1000000000", "above 999999999");
        add("2F99999999999999999999999", "above 999999999");
        add("2F3-3", "1 microbatches, 2 to 65535 expected");
        add("2F3-1", "2 to 65535 expected");
        add("0F0-65535", "65536 microbatches");
        add("2F0h2", "above 1");
        add("2F0.", "slice expected at the end");
        add("2OPT0", "nothing more");
        add("0FILLER", "delay in ns expected");
        add("0FILLER4294967296", "above 4294967295");
        add("2BW0", "unknown kind 'BW'");
    }
    void refused()
    {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto op = parseOp(text.toStdString());
        QVERIFY(!op.has_value());
        QCOMPARE(op.error().code, ErrorCode::Unreadable);
        const QString message = QString::fromStdString(op.error().message);
        QVERIFY2(message.contains(says), qPrintable(message));
    }
    void everyFieldRoundTrips()
    {
        std::mt19937 random(1);
        std::set<std::string> texts;
        std::unordered_set<Op> hashed;
        std::set<Op> ordered;
        for (int i = 0; i < 20'000; ++i) {
            Op op = makeOp(static_cast<OpKind>(random() % opKindCount), static_cast<int>(random() % 65536));
            if (op.kind == OpKind::Filler) {
                op.delay = static_cast<std::uint32_t>(random());
            } else if (isInPieces(op.kind)) {
                op.slice = static_cast<std::int16_t>(random() % 32768);
            } else if (ruleOf(op.kind).takesMicrobatch) {
                op.microbatch = static_cast<std::int32_t>(random() % 100'000);
                if (random() % 3 == 0) op.count = static_cast<std::uint16_t>(1 + random() % 65535);
                if (random() % 3 == 0) op.slice = static_cast<std::int16_t>(random() % 32768);
                op.half = static_cast<std::uint8_t>(random() % 3);
            }
            const auto back = parseOp(toText(op));
            QVERIFY2(back && *back == op, toText(op).c_str());
            texts.insert(toText(op));
            hashed.insert(op);
            ordered.insert(op);
        }
        QCOMPARE(hashed.size(), texts.size());
        QCOMPARE(ordered.size(), texts.size());
    }
    void tableOfKindsIsWhole()
    {
        std::set<std::string_view> texts;
        for (std::size_t k = 0; k < opKindCount; ++k) {
            const KindTraits& rule = ruleOf(static_cast<OpKind>(k));
            QCOMPARE(static_cast<std::size_t>(rule.kind), k);
            QVERIFY(!rule.title.empty());
            QVERIFY(texts.insert(rule.text).second);
        }
    }
};

QTEST_APPLESS_MAIN(TestOp)
#include "tst_op.moc"
