// A sweep is simulate() at every point, in order, on any thread; the table, the frontier, cancelling.
#include <atomic>

#include <QtTest/QtTest>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/library/variants.h"
#include "schedules/setup/keys.h"
#include "schedules/survey/sweep.h"

using namespace stagewright;

namespace {

Setup pointOf(const std::string& schedule, int ranks, int microbatches, int chunks = 0)
{
    Setup point;
    point.schedules = {schedule};
    point.ranks = ranks;
    point.microbatches = microbatches;
    point.chunks = chunks;
    point.costs = "F=1,I=1,W=1";
    return point;
}

std::vector<Setup> everySchedule(int ranks, int microbatches)
{
    std::vector<Setup> points;
    for (const ScheduleInfo& info : allSchedules())
        for (const std::string& name : variantsOf(info)) points.push_back(pointOf(name, ranks, microbatches));
    return points;
}

} // namespace

class TestSweep : public QObject {
    Q_OBJECT

private slots:
    // Costs of a run without memory: simulated peaks would all be 0.
    void withoutSizesPeaksAreUnknown()
    {
        const auto point = pointOf("gpipe", 2, 4);
        QVERIFY(!simulatePoint(point).peaks.empty());
        const SweepRow row = simulatePoint(point, [](const Setup& at) {
            auto made = preparedCase(at);
            for (StageMemory& stage : made->costs.memory) stage = {};
            return made;
        });
        QVERIFY(row.good() && row.peaks.empty());
        // no peak, no error
        QVERIFY2(QRegularExpression(",,[0-9]+,\n$").match(QString::fromStdString(sweepCsv({row}))).hasMatch(),
                 sweepCsv({row}).c_str());
    }

    void everyPointIsWhatSimulateSays()
    {
        CostModel::UnitCosts units;
        units.forward = 1.5;
        units.latency = 0.25;
        auto points = everySchedule(4, 8);
        for (Setup& point : points) {
            point.costs = "F=1.5";
            point.comm = 0.25 / 1.5;
        }
        std::atomic<int> reported{0};
        const auto rows = sweep(points, {}, {}, [&](std::size_t i, const SweepRow& row) {
            QVERIFY(row.done && row.schedule() == points[i].schedules.front());
            ++reported;
        });
        QCOMPARE(rows.size(), points.size());
        QCOMPARE(reported.load(), static_cast<int>(points.size()));
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const SweepRow& row = rows[i];
            const auto schedule = makeSchedule(points[i].schedules.front(), shapeOf(points[i]));
            QCOMPARE(row.good(), schedule.has_value());
            if (!schedule) {
                QCOMPARE(QString::fromStdString(row.error), QString::fromStdString(schedule.error().message));
                continue;
            }
            const SimResult result = simulate(*schedule, CostModel::uniform(*schedule, units)).value();
            const SimFigures figures = figuresOf(*schedule, result);
            QCOMPARE(row.makespan, figures.makespan);
            QCOMPARE(row.bubbleFraction, figures.bubbleFraction);
            QCOMPARE(row.span, result.span);
            QVERIFY(row.peaks == result.peakActivation);
            QCOMPARE(row.stages, schedule->stages);
            QCOMPARE(row.copies, schedule->placement.hasCopies());
        }
        QVERIFY(sweep({}).empty());
    }

    void theFrontierIsBeatenByNobody()
    {
        const auto rows = sweep(everySchedule(4, 8));
        const auto frontier = frontierOf(rows, [](const SweepRow& row) { return row.synchronous; });
        QVERIFY(frontier.size() >= 3);
        for (std::size_t i = 1; i < frontier.size(); ++i) {
            QVERIFY(rows[frontier[i]].peak() > rows[frontier[i - 1]].peak());
            QVERIFY(rows[frontier[i]].makespan < rows[frontier[i - 1]].makespan);
        }
        for (const SweepRow& row : rows) {
            if (!row.good() || !row.synchronous) continue;
            QVERIFY(std::any_of(frontier.begin(), frontier.end(), [&](std::size_t i) {
                return rows[i].peak() <= row.peak() && rows[i].makespan <= row.makespan;
            }));
            for (const std::size_t i : frontier)
                QVERIFY(!(row.peak() <= rows[i].peak() && row.makespan < rows[i].makespan) &&
                        !(row.peak() < rows[i].peak() && row.makespan <= rows[i].makespan));
        }
        QVERIFY(frontierOf({}).empty());
    }

    void cancelledRowsAreLeftOut()
    {
        std::stop_source stop;
        Progress progress;
        progress.stop = stop.get_token();
        const auto points = everySchedule(4, 8);
        const auto rows = sweep(points, {}, progress, [&](std::size_t, const SweepRow&) { stop.request_stop(); });
        const auto done = std::count_if(rows.begin(), rows.end(), [](const SweepRow& row) { return row.done; });
        QVERIFY(done >= 1 && done <= 2); // one a thread
        QCOMPARE(QString::fromStdString(sweepCsv(rows)).count(QLatin1Char('\n')), static_cast<int>(done) + 1);
        QVERIFY(rows.back().point == points.back());
    }

    void chunksAreToldWhereTheyAreFixed()
    {
        bool unused = false;
        QCOMPARE(chunksTaken("1f1b", 2, &unused), 1);
        QVERIFY(unused);
        QCOMPARE(chunksTaken("interleaved-1f1b", 4, &unused), 4);
        QVERIFY(!unused);
        QCOMPARE(chunksTaken("2bp-1f1b:w=last", 0, &unused), 0);
        QVERIFY(!unused);
    }

    void aTableOfRows()
    {
        const auto rows = sweep({pointOf("1f1b", 4, 8), pointOf("interleaved-1f1b", 4, 6, 2)});
        const auto lines = QString::fromStdString(sweepCsv(rows)).split(QLatin1Char('\n'));
        QCOMPARE(lines[1], QString("1f1b,4,8,auto,4,\"F=1,I=1,W=1\",0,rank_share,33,33,0.272727,0.272727,4,33,"));
        QVERIFY(lines[2].startsWith("interleaved-1f1b,4,6,2,"));
    }
};

QTEST_APPLESS_MAIN(TestSweep)
#include "tst_sweep.moc"
