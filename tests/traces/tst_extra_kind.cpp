// A kind that exists here only: nothing outside the table of kinds lists kinds, so it works everywhere.
#include <QtTest/QtTest>

#include <algorithm>

#include "run_folder.h"
#include "sample_runs.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/text/draw_text.h"
#include "support/elsewhere.h"
#include "traces/analysis/bubbles.h"
#include "traces/export/chrome_json.h"
#include "traces/store/run_file.h"

using namespace stagewright;

namespace {

// Work of a rank behind a forward, as of a further head: it keeps activations of its own and gives a weight gradient.
KindTraits furtherHead()
{
    KindTraits row;
    row.text = "HEAD";
    row.letter = "H";
    row.title = "further head";
    row.plural = "further heads";
    row.colour = ColourClass::Weight;
    row.takesMicrobatch = row.busy = row.computeOnly = true;
    row.memory = MemoryEffect{};
    row.needs = Need{OpKind::Forward};
    row.notInPyTorch = "a further head";
    return row;
}

constexpr int microbatches = 4;

} // namespace

class TestExtraKind : public QObject, RunFolder {
    Q_OBJECT

private:
    // A run of the schedule is written as Chrome JSON, where `op` is named, and comes back from a run file as it was.
    void checkExported(const Schedule& schedule, const CostModel& costs,
                       const std::shared_ptr<const Timeline>& timeline, const char* op)
    {
        Run run = samples::simulatedRun("1f1b", 2, microbatches);
        run.schedule = std::make_shared<const Schedule>(schedule);
        run.costs = costs;
        run.timeline = timeline;
        run.info.spanCount = static_cast<std::int64_t>(timeline->spans().size());
        std::string json;
        VERIFY_RESULT(writeChromeJson(run, [&json](std::string_view part) {
            json += part;
            return true;
        }));
        QVERIFY(json.find(op) != std::string::npos);
        auto file = fresh();
        const auto id = file->add(run);
        VERIFY_RESULT(id);
        const auto read = file->read(*id);
        VERIFY_RESULT(read);
        QCOMPARE(read->info.damagedBlocks, std::int64_t{0});
        QCOMPARE(QString::fromStdString(samples::difference(run, *read)), QString());
    }

    // Behind each forward of the last stage one op of the further kind, which takes two units.
    struct Case {
        ExtraKind extra{furtherHead()};
        Schedule plain = samples::schedule("1f1b", 2, microbatches);
        Schedule schedule = plain;
        CostModel costs;

        Case()
        {
            auto& row = schedule.order[1];
            for (std::size_t i = 0; i < row.size(); ++i)
                if (isForward(row[i].kind))
                    row.insert(row.begin() + static_cast<std::ptrdiff_t>(i) + 1, asKind(row[i], extra.kind()));
            costs = samples::unitCosts(schedule);
            costs.setDuration(extra.kind(), 1, 2 * rankShare);
        }
    };

    // The backwards of the last stage on a resource of their own, each five units long.
    struct Elsewhere {
        ExtraKind extra = test::backwardElsewhere();
        Schedule schedule = test::withBackwardsOf(samples::schedule("1f1b", 2, microbatches), extra);
        CostModel costs = samples::unitCosts(schedule);

        Elsewhere() { costs.setDuration(extra.kind(), 1, 5 * rankShare); }
    };

private slots:
    void itIsThereAsLongAsItLives()
    {
        QVERIFY(!parseOp("1HEAD2"));
        {
            const ExtraKind extra(furtherHead());
            const auto op = parseOp("1HEAD2");
            QVERIFY(op);
            QCOMPARE(*op, makeOp(extra.kind(), 1, 2));
            QCOMPARE(toText(*op), std::string("1HEAD2"));
            QCOMPARE(allKinds().size(), opKindRoom);
        }
        QVERIFY(!parseOp("1HEAD2"));
        QCOMPARE(allKinds().size(), opKindCount);
    }

    // Rules over microbatches and slices are columns like the others.
    void itComesBehindWhatItsRowSays()
    {
        KindTraits row;
        row.text = "CLIP";
        row.title = "clipping";
        row.plural = "clippings";
        row.behind = Behind::Gradients;
        row.deferrable = Until::StageOps;
        const ExtraKind extra(row);
        const auto faultOf = [&](std::initializer_list<Op> behind, std::size_t at) {
            Schedule schedule = samples::schedule("1f1b", 2, microbatches);
            auto& list = schedule.order[1];
            list.insert(list.begin() + static_cast<std::ptrdiff_t>(std::min(at, list.size())), behind);
            const Validation found = validate(schedule);
            return QString::fromStdString(found.faults.empty() ? "" : found.faults.back().message);
        };
        const Op clip = makeOp(extra.kind(), 1);
        QCOMPARE(faultOf({clip}, 99), QString());
        QCOMPARE(faultOf({clip}, 2),
                 QString("rank 1, op 3 (1CLIP): clipping before the stage's last gradient; 1B3 is at op 9"));
        QCOMPARE(faultOf({clip, clip}, 99),
                 QString("rank 1, op 10 (1CLIP): a second clipping; the first is at op 9 of rank 1"));
        const QString late = faultOf({makeOptimizer(1), clip}, 99);
        QVERIFY2(late.contains("clipping after the stage's optimizer, which is at op 9"), qPrintable(late));
        QVERIFY(isDeferrable(extra.kind()) && isDeferrable(OpKind::WeightGrad) && !isDeferrable(OpKind::InputGrad));
    }

    void itIsValidAndSimulated()
    {
        Case c;
        QVERIFY(validate(c.schedule).valid());
        Schedule early = c.schedule; // before the forward that it needs
        std::swap(early.order[1][0], early.order[1][1]);
        QVERIFY(!validate(early).valid());
        const auto without = simulate(c.plain, c.costs);
        const auto with = simulate(c.schedule, c.costs);
        QVERIFY(without && with);
        QCOMPARE(with->makespan, without->makespan + microbatches * 2 * rankShare); // all on the path of the last rank
        QCOMPARE(figuresOf(c.schedule, *with).busy, figuresOf(c.plain, *without).busy + microbatches * 2 * rankShare);
    }

    void itHoldsMemory()
    {
        Case c;
        const auto without = activationPeaks(c.plain, c.costs), with = activationPeaks(c.schedule, c.costs);
        QCOMPARE(with[0], without[0]);
        QVERIFY(with[1] > without[1]);
    }

    void textsAreReadBack()
    {
        Case c;
        const auto csv = writeScheduleCsv(c.schedule);
        QVERIFY(csv);
        QVERIFY(csv->find("1HEAD0") != std::string::npos);
        const auto schedule = readScheduleCsv(*csv, {}, c.schedule.name);
        QVERIFY(schedule);
        QCOMPARE(schedule->order, c.schedule.order);
        const auto costs = readCostsJson(writeCostsJson(c.costs));
        QVERIFY(costs);
        QVERIFY(*costs == c.costs);
        CsvOptions strict;
        strict.pytorch = true;
        const auto refused = writeScheduleCsv(c.schedule, strict);
        QVERIFY(!refused);
        QVERIFY(refused.error().message.find("a further head is unknown to PyTorch") != std::string::npos);
    }

    // On a resource of its own the rank's list goes on behind it; what needs it waits for it.
    void itRunsBesideCompute()
    {
        Elsewhere c;
        QVERIFY(validate(c.schedule).valid());
        const auto times = simulate(c.schedule, c.costs);
        QVERIFY(times);
        Nanos freeFrom = 0, beside = 0;
        for (std::size_t i = 0; i < c.schedule.order[1].size(); ++i) {
            const std::size_t id = times->indexOf(1, i);
            if (c.schedule.order[1][i].kind == c.extra.kind()) {
                QVERIFY(times->start[id] >= freeFrom); // one after the other
                QCOMPARE(times->end[id] - times->start[id], 5 * rankShare);
                freeFrom = times->end[id];
            } else {
                beside += times->start[id] < freeFrom ? 1 : 0;
            }
        }
        QVERIFY(beside >= 2); // forwards of the rank don't wait for it
        QCOMPARE(times->makespan,
                 (2 + microbatches * 5 + 2) * rankShare); // F, F, those one after the other, the last B
        Schedule early = c.schedule;                      // before the forward that it needs
        std::swap(early.order[1][0], early.order[1][1]);
        QVERIFY(!validate(early).valid());
        QVERIFY(!simulate(early, c.costs));
    }

    void itsLaneIsDrawnStoredAndReadBack()
    {
        Elsewhere c;
        const auto timeline = simulatedTimeline(c.schedule, c.costs).value();
        const Track* lane = timeline->trackOf(1, traitsOf(laneOf("away").value()).lane);
        QVERIFY(lane != nullptr);
        QCOMPARE(lane->name, std::string("rank 1 away"));
        QCOMPARE(lane->end - lane->begin, SpanId{microbatches});
        QCOMPARE(scheduleOf(*timeline, 0)->order, c.schedule.order);
        // What the backward frees is freed, and nothing else.
        Bytes held = 0;
        for (const MemoryEvent& event : timeline->memoryOf(1)) held += event.delta;
        QCOMPARE(held, Bytes{0});
        const auto csv = writeScheduleCsv(c.schedule);
        QVERIFY(csv);
        QCOMPARE(readScheduleCsv(*csv, {}, c.schedule.name)->order, c.schedule.order);
        checkExported(c.schedule, c.costs, timeline, "1AWAY0");
    }

    void waitsForItAreExplained()
    {
        Elsewhere c;
        const auto timeline = simulatedTimeline(c.schedule, c.costs).value();
        const auto report = analyseBubbles(*timeline, 0);
        QVERIFY(report);
        const RankBubbles& first = report->ranks[0];
        Nanos explained = 0;
        for (const Nanos part : first.byCause) explained += part;
        QCOMPARE(explained, first.idle);
        QCOMPARE(first.busy + first.idle, report->makespan());
        QVERIFY(std::ranges::any_of(report->gaps, [&](const Gap& gap) {
            return gap.rank == 0 && gap.blamed != noSpan && timeline->spans()[gap.blamed].op.kind == c.extra.kind();
        }));
    }

    void idleTimeHasItAsACause()
    {
        Case c;
        const auto timeline = simulatedTimeline(c.schedule, c.costs).value();
        const auto report = analyseBubbles(*timeline, 0);
        QVERIFY(report);
        QCOMPARE(report->ranks[1].busyByKind[static_cast<std::size_t>(c.extra.kind())], microbatches * 2 * rankShare);
        const auto before = analyseBubbles(*simulatedTimeline(c.plain, c.costs).value(), 0);
        QVERIFY(before);
        QVERIFY(report->ranks[0].idle > before->ranks[0].idle); // waits for the gradients behind it
        QCOMPARE(scheduleOf(*timeline, 0)->order, c.schedule.order);
    }

    void itIsDrawnAndWritten()
    {
        Case c;
        const auto timeline = simulatedTimeline(c.schedule, c.costs).value();
        const std::string drawn = drawTimeline(*timeline, 0, 200, false);
        QVERIFY(drawn.find("HEAD further head") != std::string::npos);
        checkExported(c.schedule, c.costs, timeline, "1HEAD0");
    }
};

QTEST_APPLESS_MAIN(TestExtraKind)
#include "tst_extra_kind.moc"
