// A kind that exists here only: nothing outside the table of kinds lists kinds, so it works everywhere.
#include <QtTest/QtTest>

#include "run_folder.h"
#include "sample_runs.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/kinds.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/text/draw_text.h"
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
        Run run = samples::simulatedRun("1f1b", 2, microbatches);
        run.schedule = std::make_shared<const Schedule>(c.schedule);
        run.costs = c.costs;
        run.timeline = timeline;
        run.info.spanCount = static_cast<std::int64_t>(timeline->spans().size());
        std::string json;
        VERIFY_RESULT(writeChromeJson(run, [&json](std::string_view part) {
            json += part;
            return true;
        }));
        QVERIFY(json.find("1HEAD0") != std::string::npos);
        auto file = fresh();
        const auto id = file->add(run);
        VERIFY_RESULT(id);
        const auto read = file->read(*id);
        VERIFY_RESULT(read);
        QCOMPARE(read->info.damagedBlocks, std::int64_t{0});
        QCOMPARE(QString::fromStdString(samples::difference(run, *read)), QString());
    }
};

QTEST_APPLESS_MAIN(TestExtraKind)
#include "tst_extra_kind.moc"
