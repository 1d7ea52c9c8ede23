// Every kind of fault, with rank, position and both ops.
#include <QtTest>

#include <algorithm>

#include "random_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "support/schedule_from_csv.h"

using namespace stagewright;
using stagewright::test::fromCsv;

class TestValidate : public QObject {
    Q_OBJECT
private slots:
    // A weight gradient belongs where its stage is, as every other op does.
    void weightGradientOnAnotherRank()
    {
        Schedule s = *makeSchedule("zb-h1", {2, 2, 0});
        auto& from = s.order[0];
        const auto w =
            std::find_if(from.begin(), from.end(), [](const Op& op) { return op.kind == OpKind::WeightGrad; });
        QVERIFY(w != from.end());
        s.order[1].push_back(*w);
        from.erase(w);
        const Validation validation = validate(s);
        QVERIFY(std::any_of(validation.faults.begin(), validation.faults.end(), [](const Fault& fault) {
            return fault.kind == FaultKind::WrongRank && fault.rank == 1 && fault.op.kind == OpKind::WeightGrad;
        }));
    }
    void randomSchedulesAreValid()
    {
        for (unsigned seed = 0; seed < 300; ++seed) {
            const Validation validation = validate(test::randomSchedule(seed));
            QVERIFY2(validation.valid(), validation.valid() ? "" : validation.faults[0].message.c_str());
            QVERIFY(validation.toResult().has_value());
            QVERIFY(validation.cycle.empty());
        }
    }
    void messages_data()
    {
        QTest::addColumn<QString>("csv");
        QTest::addColumn<FaultKind>("kind");
        QTest::addColumn<int>("faults");
        QTest::addColumn<QString>("message");
        auto add = [](const char* name, const char* csv, FaultKind kind, int faults, const char* message) {
            QTest::newRow(name) << csv << kind << faults << message;
        };
        add("order", "0B0,0F0\n", FaultKind::Order, 1,
            "rank 0, op 1 (0B0): full backward before forward; forward is at op 2");
        add("W before I", "0F0,0W0,0I0\n", FaultKind::Order, 1,
            "rank 0, op 2 (0W0): weight gradient before input gradient; input gradient is at op 3");
        add("V turn", "0F0,1F0,0B0,1B0\n", FaultKind::Order, 1,
            "rank 0, op 3 (0B0): full backward before the full backward of stage 1; 1B0 is at op 4");
        add("twice", "0F0,0F0,0B0\n", FaultKind::Duplicate, 1,
            "rank 0, op 2 (0F0): a second forward; the first is at op 1 of rank 0");
        add("B and I", "0F0,0B0,0I0,0W0\n", FaultKind::Duplicate, 2,
            "rank 0, op 3 (0I0): input gradient in addition to the full backward 0B0 at op 2 of rank 0");
        add("no backward", "0F0,0F1,0F2,0B0\n", FaultKind::Count, 1,
            "stage 0: 1 of 3 backwards (B or I), missing for microbatch 1-2");
        add("no forward", "0F0,0B0,0B1\n", FaultKind::Count, 1, "stage 0: 1 of 2 forwards, missing for microbatch 1");
        add("no W", "0F0,0I0,0W0,0F1,0I1\n", FaultKind::Count, 1,
            "stage 0: input gradient without a weight gradient for microbatch 1");
        add("W and B", "0F0,0B0,0W0,0F1,0I1,0W1\n", FaultKind::Count, 1,
            "stage 0: weight gradient in addition to a full backward, which includes it, for microbatch 0");
        add("reload alone", "0F0,0RELOAD0,0B0\n", FaultKind::Count, 1,
            "rank 0, op 2 (0RELOAD0): a reload without its offload");
        add("whole stage", "0F0,0B0\n2F0,2B0\n", FaultKind::Count, 1,
            "stage 1 is in no row: the row of its rank is missing");
        add("forwards only", "0F0,0F1\n1F0,1F1\n", FaultKind::Count, 1, "forwards only: no stage has a backward");
        add("frozen, no backward", "0F0,0F1\n1F0,1B0,1F1,1B1\n", FaultKind::Count, 1,
            "stage 0: a frozen stage, with forwards but without any backward");
        add("frozen, no W", "0F0,0F1,0I0,0I1\n1F0,1I0,1W0,1F1,1I1,1W1\n", FaultKind::Count, 1,
            "stage 0: a frozen stage, with input gradients but without any weight gradient");
        add("skip",
            "0F0,0SEND_F0,0SEND_F0,0RECV_B0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_F0,1RECV_B0,1B0,1SEND_B0\n2RECV_F0,2RECV_"
            "F0,2F0,2B0,2SEND_B0,2SEND_B0\n",
            FaultKind::Duplicate, 4,
            "rank 0, op 3 (0SEND_F0): a skip connection: the first is at op 2 of rank 0, and stages form a chain, in "
            "which each exchanges one message of a "
            "microbatch with the next");
        add("wrong rank", "0F0,0B0,1B0\n1F0\n", FaultKind::WrongRank, 1,
            "rank 0, op 3 (1B0): stage 1 is on rank 1 for microbatch 0");
        add("R after B", "0F0,0B0,0R0\n", FaultKind::Order, 1,
            "rank 0, op 3 (0R0): recompute after the full backward it serves; 0B0 is at op 2");
        add("R before F", "0R0,0F0,0B0\n", FaultKind::Order, 1,
            "rank 0, op 1 (0R0): recompute before forward; forward is at op 2");
        add("two R", "0F0,0R0,0R0,0B0\n", FaultKind::Duplicate, 1,
            "rank 0, op 3 (0R0): a second recompute; the first is at op 2 of rank 0");
        add("early OPT", "0F0,0I0,0OPT,0W0\n", FaultKind::Order, 1,
            "rank 0, op 3 (0OPT): optimizer before the stage's last gradient; 0W0 is at op 4");
        add("two OPT", "0F0,0B0,0OPT,0OPT\n", FaultKind::Duplicate, 1,
            "rank 0, op 4 (0OPT): a second optimizer; the first is at op 3 of rank 0");
        add("foreign OPT", "0F0,0B0,1OPT\n1F0,1B0,0OPT\n", FaultKind::WrongRank, 2,
            "rank 0, op 3 (1OPT): stage 1 is on rank 1");
        add("one OPT of two", "0F0,0B0,0OPT\n1F0,1B0\n", FaultKind::Count, 1,
            "stage 1: no optimizer op on rank 1, but stage 0 has one");
        add("reduction after OPT", "0F0,0B0,0OPT,0REDUCE_GRAD\n", FaultKind::Order, 1,
            "rank 0, op 4 (0REDUCE_GRAD): gradient reduction after the stage's optimizer, which is at op 3");
        add("stashed without OPT", "# weights=stashed\n0F0,0B0\n", FaultKind::Count, 1,
            "stage 0: no optimizer op on rank 0, but the weights are stashed");
        add("slices forward", "0F0.1,0F0.0,0B0.1,0B0.0\n", FaultKind::Order, 1,
            "rank 0, op 1 (0F0.1): forward of a slice before the slice that it attends to; 0F0.0 is at op 2");
        add("slices backward", "0F0.0,0F0.1,0B0.0,0B0.1\n", FaultKind::Order, 1,
            "rank 0, op 3 (0B0.0): gradient of a slice before that of the slice that attends to it; 0B0.1 is at op 4");
        add("slice lengths", "# slices=2,1,1\n0F0.0,0F0.1,0B0.1,0B0.0\n", FaultKind::Shape, 1,
            "lengths of 3 slices are given, but ops name 2");
        const char* lowered = "0F0,%1\n%2\n";
        auto message = [&](const char* name, const char* zero, const char* one, FaultKind kind, const char* text) {
            add(name, qPrintable(QString(lowered).arg(zero).arg(one)), kind, 1, text);
        };
        const char* good = "1RECV_F0,1F0,1B0,1SEND_B0";
        message("no receive", "0SEND_F0,0RECV_B0,0B0", "1F0,1B0,1SEND_B0", FaultKind::Count,
                "rank 1, op 1 (1F0): no 1RECV_F0 before it; rank 0 makes its activations with 0F0");
        message("no send", "0RECV_B0,0B0", good, FaultKind::Count,
                "rank 1, op 1 (1RECV_F0): rank 0 has no 0SEND_F0, so nobody sends it");
        message("sent twice", "0SEND_F0,0SEND_F0,0RECV_B0,0B0", good, FaultKind::Duplicate,
                "rank 0, op 3 (0SEND_F0): a second one; the first is at op 2 of rank 0");
        message("early send", "0SEND_F0,0RECV_B0,0B0", "1RECV_F0,1F0,1SEND_B0,1B0", FaultKind::Order,
                "rank 1, op 3 (1SEND_B0): send gradient before 1B0; 1B0 is at op 4");
        message("late receive", "0SEND_F0,0B0,0RECV_B0", good, FaultKind::Order,
                "rank 0, op 3 (0B0): before its gradient; 0RECV_B0 is at op 4");
        message("wrong side", "0SEND_F0,0RECV_B0,0B0,1SEND_B0", good, FaultKind::WrongRank,
                "rank 0, op 5 (1SEND_B0): stage 1 is on rank 1 for microbatch 0");
        message("no such stage", "0SEND_F0,0RECV_B0,0B0,0SEND_B0", good, FaultKind::BadOp,
                "rank 0, op 5 (0SEND_B0): there is no stage -1 to send to");
        add("to itself", "0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n", FaultKind::BadOp, 2,
            "rank 0, op 2 (0SEND_F0): stage 1 is on the same rank; no message is needed");
        add("pair", "0F0,(0F1;0B1)OVERLAP_F_B,0B0\n", FaultKind::Order, 1,
            "rank 0, op 3 (0B1): issued together with 0F1, which it needs");
    }
    void messages()
    {
        QFETCH(QString, csv);
        QFETCH(FaultKind, kind);
        QFETCH(int, faults);
        QFETCH(QString, message);
        const Validation validation = validate(fromCsv(qPrintable(csv)));
        bool found = false;
        QStringList all;
        for (const Fault& fault : validation.faults) {
            all << QString::fromStdString(fault.message);
            found = found || (fault.kind == kind && QString::fromStdString(fault.message) == message);
        }
        QVERIFY2(found, qPrintable(all.join("\n")));
        QVERIFY2(int(validation.faults.size()) >= faults, qPrintable(all.join("\n")));
        QVERIFY(!validation.toResult());
    }
    void opsOfAStage_data()
    {
        QTest::addColumn<QString>("csv");
        for (const char* csv :
             {"0F0,0R0,0B0,0REDUCE_GRAD,0OPT\n1F0,1B0,1REDUCE_GRAD,1OPT\n", "0F0,0R0,0I0,0W0\n",
              "# weights=stashed\n0F0,0F1,0B0,0OPT,0B1,0OPT\n", "# weights=predicted\n0OPT,0F0,0B0\n",
              "# slices=3,1\n0F0.0,0F0.1,0B0.1,0B0.0\n", "0UNSHARD,0F0,0B0,0RESHARD\n", "0UNSHARD,0F0,0B0\n",
              "0UNSHARD,1UNSHARD,0F0,1F0,1B0,1RESHARD,0B0\n", "0UNSHARD,0F0,0B0,0REDUCE_GRAD,0OPT\n"})
            QTest::newRow(csv) << csv;
    }
    void opsOfAStage()
    {
        QFETCH(QString, csv);
        const Schedule schedule = fromCsv(qPrintable(csv));
        const Validation validation = validate(schedule);
        QVERIFY2(validation.valid(), validation.valid() ? "" : validation.faults[0].message.c_str());
        QVERIFY(simulate(schedule, CostModel::uniform(schedule)));
    }
    void namesBothOps()
    {
        const Validation validation = validate(fromCsv("0F0,0F1,0B1,0B0\n1F0,1B0,1B1,1F1\n"));
        QCOMPARE(validation.faults.size(), std::size_t{1});
        const Fault& fault = validation.faults[0];
        QCOMPARE(fault.kind, FaultKind::Order);
        QCOMPARE(fault.rank, 1);
        QCOMPARE(fault.position, 2);
        QCOMPARE(toText(fault.op), std::string("1B1"));
        QCOMPARE(fault.otherRank, 1);
        QCOMPARE(fault.otherPosition, 3);
        QCOMPARE(toText(fault.other), std::string("1F1"));
    }
    void shapes()
    {
        Schedule s = *makeSchedule("1f1b", {2, 4, 0});
        auto only = [](const Schedule& schedule) {
            const Validation validation = validate(schedule);
            return validation.faults.size() == 1 && validation.faults[0].kind == FaultKind::Shape
                       ? QString::fromStdString(validation.faults[0].message)
                       : QString("%1 faults").arg(validation.faults.size());
        };
        QCOMPARE(only(Schedule()), QString("0 ranks, 0 stages, 0 microbatches: at least one of each is needed"));
        Schedule t = s;
        t.order.pop_back();
        QCOMPARE(only(t), QString("1 rows of ops for 2 ranks"));
        t = s;
        t.placement = Placement::of(std::vector<int>{0, 5});
        QCOMPARE(only(t), QString("stage 1 is placed on rank 5, but ranks are 0 to 1"));
        t = s;
        t.placement = Placement::of(std::vector<int>{0, 1, 1});
        QCOMPARE(only(t), QString("the placement has 3 stages, the schedule 2"));
        t = s;
        t.paired = {{0, 1}};
        QCOMPARE(only(t), QString("rank 0: the pairs at ops 1 and 2 overlap or are out of order"));
        t.paired = {{7}};
        QCOMPARE(only(t), QString("rank 0: op 8 is paired with the next one, but the row has 8 ops"));
        t = s;
        t.microbatches = 2'000'000'000;
        QCOMPARE(only(t), QString("2 stages × 2000000000 microbatches, but only 16 ops"));
    }
    void badOps()
    {
        Schedule s = *makeSchedule("1f1b", {2, 2, 0});
        s.order[0][1].microbatch = 2;
        s.order[1][0].stage = 9;
        const Validation validation = validate(s);
        QCOMPARE(validation.faults.size(), std::size_t{2});
        QCOMPARE(QString::fromStdString(validation.faults[0].message),
                 QString("rank 0, op 2 (0F2): microbatch 2, but microbatches are 0 to 1"));
        QCOMPARE(QString::fromStdString(validation.faults[1].message),
                 QString("rank 1, op 1 (9F0): stage 9, but stages are 0 to 1"));
    }
    void deadlockOfThree()
    {
        // Each rank keeps what the next one waits for.
        const Schedule s = fromCsv("0F0,0B0,0F1,0F2,0B1,0B2\n1F0,1F1,1B0,1B1,1F2,1B2\n2F0,2F1,2F2,2B0,2B1,2B2\n");
        const Validation validation = validate(s);
        QCOMPARE(validation.faults.size(), std::size_t{1});
        QCOMPARE(validation.faults[0].kind, FaultKind::Deadlock);
        QVERIFY(validation.cycle.size() >= 2);
        for (std::size_t i = 0; i < validation.cycle.size(); ++i) {
            const Wait& wait = validation.cycle[i];
            const Wait& next = validation.cycle[(i + 1) % validation.cycle.size()];
            QCOMPARE(wait.onRank, next.rank);
            QVERIFY(next.position <= wait.onPosition); // the awaited op is at or behind that rank's head
            QCOMPARE(s.order[static_cast<std::size_t>(wait.rank)][static_cast<std::size_t>(wait.position)], wait.op);
            QCOMPARE(s.order[static_cast<std::size_t>(wait.onRank)][static_cast<std::size_t>(wait.onPosition)],
                     wait.waitsFor);
        }
        QVERIFY(validation.faults[0].message.find("rank 0 is at op 2 (0B0)") != std::string::npos);
    }
    // Valid if and only if list execution finishes, for orders with the right ops.
    void agreesWithExecution()
    {
        int invalid = 0;
        for (unsigned seed = 0; seed < 400; ++seed) {
            Schedule s = test::randomSchedule(seed);
            std::mt19937 random(seed);
            s.paired.clear();
            for (int k = 0; k < 2; ++k) {
                auto& row = s.order[random() % s.order.size()];
                if (row.size() > 1) std::swap(row[random() % row.size()], row[random() % row.size()]);
            }
            const Validation validation = validate(s);
            QCOMPARE(validation.valid(), simulate(s, CostModel::uniform(s)).has_value());
            invalid += validation.valid() ? 0 : 1;
            for (const Fault& fault : validation.faults)
                QVERIFY(fault.kind == FaultKind::Order || fault.kind == FaultKind::Deadlock);
        }
        QVERIFY(invalid > 30 && invalid < 390);
    }
};

QTEST_APPLESS_MAIN(TestValidate)
#include "tst_validate.moc"
