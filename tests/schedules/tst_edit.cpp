// Editing: what moves where, what stays valid, what is refused.
#include <QtTest>

#include "random_schedules.h"
#include "schedules/edit/edit.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/library/registry.h"
#include "schedules/text/csv.h"

using namespace stagewright;

namespace {

QString row(const Schedule& schedule, int rank) { return QString::fromStdString(toText(schedule)).split('\n')[rank]; }

EditResult checked(const Result<Edited>& edited) { return {edited->schedule, validate(edited->schedule)}; }

EditResult moved(const Schedule& schedule, int rank, std::size_t from, std::size_t to)
{
    const int place = static_cast<int>(from);
    return checked(moveOps(schedule, {{rank, place}}, static_cast<int>(to) - place));
}

EditResult swapped(const Schedule& schedule, int rank, int a, int b)
{
    return checked(swapTwo(schedule, {rank, a}, {rank, b}));
}

} // namespace

class TestEdit : public QObject {
    Q_OBJECT
private slots:
    void moves()
    {
        const Schedule s = *makeSchedule("1f1b", {1, 3, 0});
        QCOMPARE(row(s, 0), QString("0F0 0B0 0F1 0B1 0F2 0B2"));
        const auto later = moved(s, 0, 1, 3);
        QCOMPARE(row(later.schedule, 0), QString("0F0 0F1 0B1 0B0 0F2 0B2"));
        QVERIFY(later.validation.valid());
        const auto earlier = moved(s, 0, 4, 0);
        QCOMPARE(row(earlier.schedule, 0), QString("0F2 0F0 0B0 0F1 0B1 0B2"));
        QVERIFY(earlier.validation.valid());
        const auto wrong = moved(s, 0, 0, 1);
        QCOMPARE(row(wrong.schedule, 0), QString("0B0 0F0 0F1 0B1 0F2 0B2"));
        QVERIFY(!wrong.validation.valid());
        QCOMPARE(moved(s, 0, 2, 2).schedule, s);
        QCOMPARE(moved(later.schedule, 0, 3, 1).schedule, s); // back again
    }
    void swaps()
    {
        const Schedule s = *makeSchedule("gpipe", {2, 2, 0});
        const auto other = swapped(s, 0, 0, 1);
        QCOMPARE(row(other.schedule, 0), QString("0F1 0F0 0B0 0B1"));
        QVERIFY(other.validation.valid());
        QVERIFY(!swapped(s, 0, 0, 2).validation.valid());
        QCOMPARE(swapped(other.schedule, 0, 0, 1).schedule, s);
    }
    void delays()
    {
        const Schedule s = *makeSchedule("gpipe", {2, 1, 0});
        const auto delayed = *insertDelay(s, 1, 2, 777);
        QCOMPARE(row(delayed.schedule, 1), QString("1F0 1B0 1FILLER777"));
        QVERIFY(delayed.validation.valid());
        const auto first = moved(delayed.schedule, 1, 2, 0);
        QCOMPARE(row(first.schedule, 1), QString("1FILLER777 1F0 1B0"));
        QVERIFY(first.validation.valid());
        QCOMPARE(removeDelay(first.schedule, 1, 0)->schedule, s);
        const auto refused = removeDelay(s, 0, 1);
        QVERIFY(!refused);
        QCOMPARE(refused.error().code, ErrorCode::Usage);
        QCOMPARE(QString::fromStdString(refused.error().message),
                 QString("rank 0, op 2 (0B0): only a delay can be removed"));
    }
    void outside()
    {
        const Schedule s = *makeSchedule("gpipe", {2, 1, 0});
        QCOMPARE(QString::fromStdString(insertDelay(s, 2, 0, 5).error().message),
                 QString("rank 2, but ranks are 0 to 1"));
        QCOMPARE(QString::fromStdString(removeDelay(s, 0, 2).error().message),
                 QString("rank 0 has no op 3; its row has 2"));
        QVERIFY(!insertDelay(s, -1, 0, 5));
        QVERIFY(!moveOps(s, {{-1, 0}}, 1));
        QVERIFY(!swapTwo(s, {0, 0}, {0, 9}));
        QVERIFY(!insertDelay(s, 0, 3, 1));
        QVERIFY(!removeDelay(s, 0, 2));
    }
    void pairsStayTogetherOrEnd()
    {
        const Schedule s = *readScheduleCsv("0F0,(0F1;0B0)OVERLAP_F_B,0B1,0F2,0B2\n");
        QCOMPARE(row(s, 0), QString("0F0 (0F1;0B0) 0B1 0F2 0B2"));
        QCOMPARE(row(moved(s, 0, 4, 0).schedule, 0), QString("0F2 0F0 (0F1;0B0) 0B1 0B2"));
        QCOMPARE(row(moved(s, 0, 4, 2).schedule, 0), QString("0F0 0F1 0F2 0B0 0B1 0B2"));
        QCOMPARE(row(moved(s, 0, 2, 3).schedule, 0), QString("0F0 0F1 0B1 0B0 0F2 0B2"));
        QCOMPARE(row(insertDelay(s, 0, 0, 5)->schedule, 0), QString("0FILLER5 0F0 (0F1;0B0) 0B1 0F2 0B2"));
        QCOMPARE(row(insertDelay(s, 0, 2, 5)->schedule, 0), QString("0F0 0F1 0FILLER5 0B0 0B1 0F2 0B2"));
    }
    // The range is right at every position, over all ranks' waits.
    void validMovesAreExactlyTheValidOnes()
    {
        for (unsigned seed = 0; seed < 60; ++seed) {
            const Schedule s = test::randomSchedule(seed, true, false);
            for (int r = 0; r < s.ranks; ++r) {
                const std::size_t size = s.order[static_cast<std::size_t>(r)].size();
                for (std::size_t from = 0; from < size; from += 1 + seed % 3) {
                    const MoveRange range = validMoves(s, r, from);
                    QVERIFY(range.first <= from && from <= range.last && range.last < size);
                    for (std::size_t to = 0; to < size; ++to) {
                        const bool inside = to >= range.first && to <= range.last;
                        const bool valid = moved(s, r, from, to).validation.valid();
                        QCOMPARE(valid, inside);
                    }
                }
            }
        }
    }
    void movesInsideTheRangeStayValidWithPairs()
    {
        for (unsigned seed = 100; seed < 140; ++seed) {
            const Schedule s = test::randomSchedule(seed);
            for (int r = 0; r < s.ranks; ++r)
                for (std::size_t from = 0; from < s.order[static_cast<std::size_t>(r)].size(); from += 2) {
                    const MoveRange range = validMoves(s, r, from);
                    for (std::size_t to : {range.first, (range.first + range.last) / 2, range.last})
                        QVERIFY(moved(s, r, from, to).validation.valid());
                }
        }
    }
    void noMovesInAnInvalidSchedule()
    {
        Schedule s = *makeSchedule("gpipe", {2, 2, 0});
        std::swap(s.order[0][0], s.order[0][2]);
        const MoveRange range = validMoves(s, 0, 1);
        QCOMPARE(range.first, std::size_t{1});
        QCOMPARE(range.last, std::size_t{1});
    }
    void deadlockByEditingShowsTheCycle()
    {
        // 1F1B on two ranks: rank 1's F1 before its B0 is fine, rank 0's F1 behind its B0 as well; both ways round at
        // once is not: rank 0 waits for B0 of rank 1, which now waits for F1 of rank 0.
        const Schedule s = *makeSchedule("1f1b", {2, 2, 0});
        const auto first = moved(s, 1, 2, 1);
        QVERIFY(first.validation.valid());
        const auto second = moved(first.schedule, 0, 1, 2);
        QVERIFY(!second.validation.valid());
        QCOMPARE(second.validation.cycle.size(), std::size_t{2});
    }
};

QTEST_APPLESS_MAIN(TestEdit)
#include "tst_edit.moc"
