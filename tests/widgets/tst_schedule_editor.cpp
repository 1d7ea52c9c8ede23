// The editor's model without a view: moves, undo, faults, deltas, previews.
#include <QSignalSpy>
#include <QtTest>

#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/timeline/timeline_of.h"
#include "support/elsewhere.h"
#include "widgets/edit/schedule_editor.h"

using namespace stagewright;

class TestScheduleEditor : public QObject {
    Q_OBJECT

    static Schedule make(const char* name, int ranks = 4, int microbatches = 8)
    {
        return *makeSchedule(name, Shape{ranks, microbatches, 0});
    }

private slots:
    void startsWithTheOriginal()
    {
        ScheduleEditor editor;
        QVERIFY(!editor.active());
        const Schedule schedule = make("zb-h1");
        editor.start(schedule, CostModel::uniform(schedule));
        QVERIFY(editor.active());
        QVERIFY(editor.valid());
        QVERIFY(!editor.changed());
        const auto simulated = simulate(schedule, CostModel::uniform(schedule));
        QVERIFY(simulated.has_value());
        QCOMPARE(editor.figures().makespan, simulated->makespan);
        QCOMPARE(editor.figures().makespan, editor.originalFigures().makespan);
        QVERIFY(editor.timeline() != nullptr);
    }

    void movesAndUndoes()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("zb-h1");
        editor.start(schedule, CostModel::uniform(schedule));
        QSignalSpy edited(&editor, &ScheduleEditor::edited);
        // A weight gradient may move to the end of its rank.
        const auto& row = schedule.order[0];
        const auto w = std::find_if(row.begin(), row.end(), [](const Op& op) { return op.kind == OpKind::WeightGrad; });
        const int from = static_cast<int>(w - row.begin());
        const int last = static_cast<int>(row.size()) - 1;
        QVERIFY(editor.move({0, from}, last));
        QCOMPARE(edited.count(), 1);
        QVERIFY(editor.valid());
        QVERIFY(editor.changed());
        QCOMPARE(editor.schedule().order[0].back(), *w);
        const Schedule after = editor.schedule();
        editor.undoStack()->undo();
        QVERIFY(editor.schedule() == schedule);
        QVERIFY(!editor.changed());
        editor.undoStack()->redo();
        QVERIFY(editor.schedule() == after);
        editor.revert();
        QVERIFY(editor.schedule() == schedule);
        editor.undoStack()->undo();
        QVERIFY(editor.schedule() == after);
    }

    void nudgesMergeIntoOneChange()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("zb-h1");
        editor.start(schedule, CostModel::uniform(schedule));
        const auto& row = schedule.order[0];
        const int from = static_cast<int>(
            std::find_if(row.begin(), row.end(), [](const Op& op) { return op.kind == OpKind::WeightGrad; }) -
            row.begin());
        QVERIFY(editor.nudge({0, from}, 1));
        QVERIFY(editor.nudge({0, from + 1}, 1));
        QCOMPARE(editor.undoStack()->count(), 1);
        editor.undoStack()->undo();
        QVERIFY(editor.schedule() == schedule);
        QVERIFY(!editor.nudge({0, 0}, -1)); // beyond the start
        QVERIFY(!editor.nudge({9, 0}, 1));  // no such rank
    }

    void namesBothOpsOfAFault()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("1f1b");
        editor.start(schedule, CostModel::uniform(schedule));
        // The first backward of rank 0 before its forward.
        const auto& row = schedule.order[0];
        const int from = static_cast<int>(
            std::find_if(row.begin(), row.end(), [](const Op& op) { return op.kind == OpKind::Backward; }) -
            row.begin());
        QVERIFY(editor.move({0, from}, 0));
        QVERIFY(!editor.valid());
        const auto spans = editor.faultSpans();
        QVERIFY2(spans.size() >= 2, "both ops are outlined");
        QVERIFY(spans[0] != spans[1]);
        QVERIFY(editor.timeline() != nullptr); // an order that can't run is still drawn
        std::size_t drawn = 0;
        for (const Track& track : editor.timeline()->tracks())
            if (track.lane == Lane::Compute) drawn += track.end - track.begin;
        QCOMPARE(drawn, schedule.opCount());
        editor.undoStack()->undo();
        QVERIFY(editor.valid());
        QVERIFY(editor.faultSpans().empty());
    }

    void previewLeavesTheOrderAlone()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("zb-h1");
        editor.start(schedule, CostModel::uniform(schedule));
        const int last = static_cast<int>(schedule.order[3].size()) - 1;
        editor.preview({3, 0}, last); // the first forward to the end: a fault
        QVERIFY(editor.previewing());
        QVERIFY(!editor.valid());
        QVERIFY(editor.schedule() == schedule);
        QVERIFY(!(editor.shown() == schedule));
        editor.cancelPreview();
        QVERIFY(!editor.previewing());
        QVERIFY(editor.valid());
        QCOMPARE(editor.figures().makespan, editor.originalFigures().makespan);
        QCOMPARE(editor.undoStack()->count(), 0);
    }

    void delaysCanBeInsertedAndRemoved()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("1f1b", 2, 4);
        editor.start(schedule, CostModel::uniform(schedule));
        QVERIFY(editor.insertDelay(0, 0, rankShare));
        QCOMPARE(editor.schedule().order[0].size(), schedule.order[0].size() + 1);
        QCOMPARE(editor.figures().makespan, editor.originalFigures().makespan + rankShare);
        QVERIFY(!editor.removeDelay({0, 1})); // not a filler
        QVERIFY(editor.removeDelay({0, 0}));
        QVERIFY(editor.schedule() == schedule);
        QVERIFY(!editor.insertDelay(0, 0, 0));
    }

    void positionsAndSpansAgree()
    {
        ScheduleEditor editor;
        const Schedule schedule = make("interleaved-1f1b");
        editor.start(schedule, CostModel::uniform(schedule));
        for (int rank = 0; rank < schedule.ranks; ++rank) {
            for (int position = 0; position < static_cast<int>(schedule.order[static_cast<std::size_t>(rank)].size());
                 ++position) {
                const SpanId span = editor.spanAt({rank, position});
                QVERIFY(span != noSpan);
                QVERIFY((editor.positionOf(span) == OpPosition{rank, position}));
            }
        }
        QCOMPARE(editor.spanAt({99, 0}), noSpan);
        QVERIFY(!editor.positionOf(noSpan).valid());
    }

    // A kind that exists here only is on its own lane, and dragged like any other.
    void aKindOnAResourceOfItsOwnIsDragged()
    {
        const ExtraKind elsewhere = test::backwardElsewhere();
        const Schedule schedule = test::withBackwardsOf(make("gpipe", 2, 4), elsewhere);
        CostModel costs = CostModel::uniform(schedule);
        costs.setDuration(elsewhere.kind(), 1, rankShare);
        ScheduleEditor editor;
        editor.start(schedule, costs);
        QVERIFY(editor.valid());
        const auto& row = schedule.order[1];
        const auto at = std::ranges::find(row, elsewhere.kind(), &Op::kind);
        const int from = static_cast<int>(at - row.begin());
        const SpanId span = editor.spanAt({1, from});
        QVERIFY(span != noSpan);
        QCOMPARE(editor.timeline()->trackOf(span).lane, ruleOf(elsewhere.kind()).lane);
        QVERIFY((editor.positionOf(span) == OpPosition{1, from}));
        QVERIFY(editor.move({1, from}, from + 2));
        QVERIFY(editor.valid());
        QCOMPARE(editor.schedule().order[1][static_cast<std::size_t>(from) + 2], *at);
        QVERIFY(editor.move({1, from + 2}, 0)); // before its forward
        QVERIFY(!editor.valid());
        QVERIFY(editor.faultSpans().size() >= 2);
    }

    // An order that can't run frees nothing that it doesn't hold: an F that waits in the tray, or that is behind its B.
    void memoryNeverGoesBelowZero_data()
    {
        QTest::addColumn<bool>("gone");
        QTest::newRow("in the tray") << true;
        QTest::newRow("behind its backward") << false;
    }
    void memoryNeverGoesBelowZero()
    {
        QFETCH(bool, gone);
        for (const char* name : {"1f1b", "zb-h1"}) {
            Schedule schedule = make(name);
            const CostModel costs = CostModel::uniform(schedule);
            auto& row = schedule.order[3];
            const auto forward = std::find_if(
                row.begin(), row.end(), [](const Op& op) { return op.kind == OpKind::Forward && op.microbatch == 1; });
            QVERIFY(forward != row.end());
            const Op op = *forward;
            row.erase(forward);
            if (!gone) row.push_back(op);
            const SimResult times = simulateRelaxed(schedule, costs);
            const auto timeline = timelineOf(schedule, times, costs);
            QVERIFY(timeline.has_value());
            std::vector<Bytes> peaks;
            for (int rank = 0; rank < schedule.ranks; ++rank) {
                Bytes held = 0;
                Bytes& peak = peaks.emplace_back(0);
                for (const MemoryEvent& event : (*timeline)->memory()) {
                    if (event.rank != rank || event.category != MemoryCategory::Activations) continue;
                    held += event.delta;
                    peak = std::max(peak, held);
                    QVERIFY2(held >= 0, name);
                }
                QCOMPARE(held, Bytes{0});
            }
            QCOMPARE(times.peakActivation, peaks);
        }
    }

    // Costs with launch delays: the figures of the order before the edit have them too.
    void newCostsCountForTheOriginalAsForTheEdit()
    {
        const Schedule schedule = *makeSchedule("1f1b", {3, 4, 0});
        CostModel costs = CostModel::uniform(schedule);
        ScheduleEditor editor;
        editor.start(schedule, costs);
        costs.launch.assign(3, rankShare / 4);
        editor.setCosts(costs);
        QCOMPARE(editor.originalFigures().makespan, simulate(schedule, costs)->makespan);
        QCOMPARE(editor.figures().makespan, editor.originalFigures().makespan);
    }
};

QTEST_GUILESS_MAIN(TestScheduleEditor)
#include "tst_schedule_editor.moc"
