// A checked schedule is validated and indexed once, checked again only where it was edited, and lowered once by each
// rule.
#include <QTest>

#include <latch>
#include <thread>

#include "schedules/check/checked_schedule.h"
#include "schedules/execute/place_buckets.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/messages.h"
#include "schedules/model/mesh.h"
#include "schedules/model/recompute.h"
#include "schedules/model/work_counts.h"

using namespace stagewright;

namespace {

std::shared_ptr<const CheckedSchedule> checkedOf(Schedule schedule)
{
    return CheckedSchedule::of(std::move(schedule)).value();
}

} // namespace

class TestCheckedSchedule : public QObject {
    Q_OBJECT

private slots:
    void validatedAndIndexedOnce()
    {
        const Schedule schedule = makeSchedule("1f1b", Shape(2, 4)).value();
        const int validations = workCounts.validations, indexes = workCounts.indexes, cells = workCounts.cells,
                  strips = workCounts.strips;
        const auto checked = checkedOf(schedule);
        QCOMPARE(workCounts.validations - validations, 1);
        QCOMPARE(workCounts.indexes - indexes, 1);
        QCOMPARE(workCounts.cells - cells, 1);
        QCOMPARE(workCounts.strips - strips, 0);
        QVERIFY(checked->compute() == schedule && &checked->given() == &checked->compute() && !checked->cameLowered());
        QCOMPARE(checked->index().opCount(), schedule.opCount());
    }

    void givenWithMessages() // its lists without them have an index of their own
    {
        const Schedule schedule = makeSchedule("1f1b", Shape(2, 4)).value();
        const Schedule given = lower(schedule, {}).value();
        const int validations = workCounts.validations, indexes = workCounts.indexes, strips = workCounts.strips;
        const auto checked = checkedOf(given);
        QCOMPARE(workCounts.validations - validations, 1);
        QCOMPARE(workCounts.indexes - indexes, 2);
        QCOMPARE(workCounts.strips - strips, 1);
        QVERIFY(checked->cameLowered() && checked->given() == given && checked->compute() == schedule);
        QCOMPARE(checked->index().opCount(), schedule.opCount());
        const int lowerings = workCounts.lowerings;
        QCOMPARE((*checked->lowered({LoweringRule::Grouped, 0, false})).get(), &checked->given()); // whatever the rule
        QCOMPARE(workCounts.lowerings - lowerings, 0);
    }

    void checkedAgainOnlyWhereEdited()
    {
        const auto checked = checkedOf(makeSchedule("1f1b", Shape(2, 4)).value());
        const int validations = workCounts.validations;
        QCOMPARE((*CheckedSchedule::after(checked, checked->given())).get(), checked.get());
        QCOMPARE(workCounts.validations - validations, 0);
        const auto edited = CheckedSchedule::after(checked, withRecompute(checked->given(), {true, true}, false));
        QVERIFY(edited && (*edited)->given().opCount() > checked->given().opCount());
        Schedule other = checked->given();
        other.name = "mine"; // which messages show
        QCOMPARE((*CheckedSchedule::after(checked, other))->given().name, std::string("mine"));
        QVERIFY(CheckedSchedule::after(nullptr, checked->given()));
        QCOMPARE(workCounts.validations - validations, 3);
        other.order[0].pop_back();
        const auto broken = CheckedSchedule::after(checked, other);
        QVERIFY(!broken);
        QCOMPARE(broken.error().code, ErrorCode::Invalid);
    }

    void faultsLeaveTheScheduleAsItIs()
    {
        Schedule schedule = makeSchedule("1f1b", Shape(2, 4)).value();
        std::swap(schedule.order[0].front(), schedule.order[0].back());
        const Schedule before = schedule;
        Validation found;
        QVERIFY(!CheckedSchedule::ifValid(std::move(schedule), found));
        QVERIFY(schedule == before); // NOLINT(bugprone-use-after-move): what is held here
        const Validation expected = validate(before);
        QVERIFY(!found.valid());
        QCOMPARE(found.faults.size(), expected.faults.size());
        QCOMPARE(found.faults.front().message, expected.faults.front().message);
        QCOMPARE(found.cycle.size(), expected.cycle.size());
        QCOMPARE(CheckedSchedule::of(before).error().message, expected.toResult().error().message);
    }

    void loweredOnceByRule() // by several threads, too
    {
        const Schedule schedule = makeSchedule("zb-h1", Shape(4, 8)).value();
        const auto checked = checkedOf(schedule);
        const std::vector<Lowering> rules{{},
                                          {LoweringRule::PyTorch, 0, false},
                                          {LoweringRule::PyTorch, 0, true},
                                          {LoweringRule::EagerPost, 0, false},
                                          {LoweringRule::EagerPost, 2, false},
                                          {LoweringRule::RankParity, 0, false},
                                          {LoweringRule::Grouped, 0, false}};
        std::vector<std::shared_ptr<const Schedule>> seen(4);
        for (const Lowering& rule : rules) {
            const Schedule expected = lower(schedule, rule).value();
            const int lowerings = workCounts.lowerings, indexes = workCounts.indexes;
            std::latch start(static_cast<std::ptrdiff_t>(seen.size()));
            {
                std::vector<std::jthread> threads;
                for (auto& mine : seen)
                    threads.emplace_back([&] {
                        start.arrive_and_wait();
                        mine = checked->lowered(rule).value();
                    });
            }
            for (const auto& mine : seen) QCOMPARE(mine.get(), seen.front().get());
            QCOMPARE(workCounts.lowerings - lowerings, 1);
            QCOMPARE(workCounts.indexes - indexes, rule.collectives ? 1 : 0); // with collectives they are other lists
            QVERIFY(*seen.front() == expected);
            QCOMPARE(seen.front()->name, expected.name);
        }
    }

    // As a step of a recording on the virtual clock is placed.
    void placedWithoutItsCells()
    {
        for (const Schedule& schedule : {makeSchedule("1f1b", Shape(4, 8)).value(),
                                         overReplicas(makeSchedule("gpipe", Shape(2, 4)).value(), 2).value(),
                                         makeSchedule("chimera", Shape(4, 8)).value()}) {
            const auto checked = checkedOf(schedule);
            std::vector<Nanos> durations(schedule.opCount());
            for (std::size_t i = 0; i < durations.size(); ++i) durations[i] = static_cast<Nanos>(100 + i % 7);
            Links links;
            links.all.latency = 10;
            const SimResult expected = placeBuckets(schedule, durations, links, {}).value();
            const int cells = workCounts.cells, indexes = workCounts.indexes;
            const SimResult placed = placeBuckets(*checked, durations, links, {}, {}).value();
            QCOMPARE(workCounts.cells - cells, 0);
            QCOMPARE(workCounts.indexes - indexes, 0);
            QVERIFY(placed.start == expected.start && placed.end == expected.end);
            QCOMPARE(placed.makespan, expected.makespan);
            durations.pop_back();
            QVERIFY(!placeBuckets(*checked, durations, links, {}, {}));
        }
    }
};

QTEST_GUILESS_MAIN(TestCheckedSchedule)
#include "tst_checked_schedule.moc"
