// Differences of schedules, and the library schedule nearest to one.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/text/csv.h"
#include "schedules/text/diff.h"

using namespace stagewright;

class TestDiff : public QObject {
    Q_OBJECT
private slots:
    void oneMove()
    {
        const Schedule a = *readScheduleCsv("0F0,0F1,0F2,0B0,0B1,0B2\n");
        const Schedule b = *readScheduleCsv("0F0,0B0,0F1,0F2,0B1,0B2\n");
        const ScheduleDiff diff = diffSchedules(a, b);
        QVERIFY(!diff.same());
        QCOMPARE(diff.distance(), std::size_t{1});
        QCOMPARE(diff.moved.size(), std::size_t{1});
        QCOMPARE(toText(diff.moved[0].op), std::string("0B0"));
        QCOMPARE(diff.moved[0].fromPosition, std::size_t{3});
        QCOMPARE(diff.moved[0].toPosition, std::size_t{1});
        QCOMPARE(describeFirst(diff.first[0]), std::string("rank 0, op 2: 0F1 here, 0B0 there"));
    }
    void addedAndRemoved()
    {
        const Schedule a = *readScheduleCsv("0F0,0B0\n1F0,1B0\n");
        const Schedule b = *readScheduleCsv("0F0,0I0,0W0\n1F0,1B0\n");
        const ScheduleDiff diff = diffSchedules(a, b);
        QCOMPARE(diff.onlyA.size(), std::size_t{1});
        QCOMPARE(diff.onlyB.size(), std::size_t{2});
        QCOMPARE(diff.distance(), std::size_t{2});
        QCOMPARE(
            describeFirst(diffSchedules(*readScheduleCsv("0F0,0B0,0OPT\n"), *readScheduleCsv("0F0,0B0\n")).first[0]),
            std::string("rank 0, op 3: 0OPT here, the list ends there"));
    }
    void shapes()
    {
        const Schedule a = *makeSchedule("1f1b", {2, 4, 0});
        QCOMPARE(diffSchedules(a, *makeSchedule("1f1b", {4, 4, 0})).shape.front(), std::string("ranks: 2 and 4"));
        Schedule stale = a;
        stale.weights = WeightRule::Stashed;
        QCOMPARE(diffSchedules(a, stale).shape, std::vector<std::string>{"weights: synchronous and stashed"});
        Schedule pairs = a;
        pairs.paired = {{1}, {}};
        QCOMPARE(diffSchedules(pairs, a).shape.size(), std::size_t{1});
    }
    // Zero only where equal; as many moves as it says lead from one to the other.
    void randomMoves()
    {
        for (unsigned seed = 0; seed < 200; ++seed) {
            const Schedule a = test::randomSchedule(seed, false, false);
            QVERIFY(diffSchedules(a, a).same());
            Schedule b = a;
            std::mt19937 random(seed);
            for (int k = 0; k < 3; ++k) {
                auto& row = b.order[random() % b.order.size()];
                if (row.size() < 2) continue;
                const std::size_t from = random() % row.size();
                const Op op = row[from];
                row.erase(row.begin() + std::ptrdiff_t(from));
                row.insert(row.begin() + std::ptrdiff_t(random() % (row.size() + 1)), op);
            }
            const ScheduleDiff diff = diffSchedules(a, b);
            QCOMPARE(diff.same(), a == b);
            QVERIFY(diff.distance() <= 3);
            // Without the moved ops both have the same order.
            for (std::size_t r = 0; r < a.order.size(); ++r) {
                std::vector<Op> restA = a.order[r];
                std::vector<Op> restB = b.order[r];
                for (const MovedOp& moved : diff.moved)
                    if (moved.rank == int(r)) {
                        std::erase(restA, moved.op);
                        std::erase(restB, moved.op);
                    }
                QVERIFY(restA == restB);
            }
        }
    }
    void nearest()
    {
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b"}) {
            Schedule s = *makeSchedule(name, {4, 8, 0});
            auto found = nearestSchedule(s);
            QVERIFY(found);
            QVERIFY(found->diff.same());
            auto& row = s.order[2];
            std::swap(row[row.size() - 1], row[row.size() - 2]);
            found = nearestSchedule(*lower(s, {})); // its messages don't matter
            QVERIFY(found);
            QCOMPARE(found->diff.distance(), std::size_t{1});
            QCOMPARE(found->diff.first.size(), std::size_t{1});
            QCOMPARE(found->diff.first[0].rank, 2);
            QCOMPARE(found->diff.first[0].position, row.size() - 2);
        }
        QVERIFY(!nearestSchedule(Schedule()));
        QVERIFY(!nearestSchedule(*readScheduleCsv("0F0,0B999999999\n")));
    }
};

QTEST_APPLESS_MAIN(TestDiff)
#include "tst_diff.moc"
