// What analyses of one step share: made once, whoever asks first, and not at all once they are stopped.
#include <thread>

#include <QtTest/QtTest>

#include "sample_runs.h"
#include "traces/fit/fit_costs.h"
#include "traces/report/run_report.h"

using namespace stagewright;

class TestStepContext : public QObject {
    Q_OBJECT

private slots:
    void whatThreadsAskForIsMadeOnce()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.125);
        const StepContext context(run, 0);
        struct Seen {
            const void* parts[9] = {};
            bool operator==(const Seen&) const = default;
        };
        std::vector<Seen> seen(8);
        std::vector<std::thread> threads;
        for (Seen& own : seen)
            threads.emplace_back([&context, &own] {
                own = {{&context.slack(), &context.bubbles(), &context.overlap(), &context.criticalPath(),
                        &context.levels(), &context.memory(), &context.residuals(), &context.crossings(),
                        &context.executed()}};
            });
        for (std::thread& thread : threads) thread.join();
        for (const Seen& other : seen) QVERIFY(other == seen.front());
        QCOMPARE(context.bubbles()->idle, analyseBubbles(*run.timeline, 0)->idle);
        QCOMPARE(context.residuals()->predictedStep, residualsOf(run, *run.costs)->predictedStep);
        QVERIFY(*context.costs() == *costsOf(run));
    }

    // What tables say does not depend on what was asked for before them.
    void aReportAndItsTablesShareIt()
    {
        for (std::uint32_t seed = 1; seed <= 12; ++seed) {
            const Run run = samples::randomRun(seed);
            const auto context = contextOf(run, {.withoutSteps = true});
            QVERIFY2(context, context ? "" : context.error().message.c_str());
            const auto report = reportOf(**context, {.levers = true});
            QVERIFY2(report, report ? "" : report.error().message.c_str());
            QCOMPARE(report->bubbles.idle, (*context)->bubbles()->idle);
            const auto tables = reportTables(**context);
            QCOMPARE(tables.size(), allAnalyses().size());
            for (const ReportTable& table : tables) {
                const ReportTable alone = reportTable(*table.analysis, StepContext(run, report->step));
                QVERIFY2(table.rows == alone.rows, std::string(table.analysis->name).c_str());
                QCOMPARE(table.sentence, alone.sentence);
                QCOMPARE(table.unknown, alone.unknown);
            }
        }
    }

    void nothingLongIsMadeAfterAStop()
    {
        const Run run = samples::simulatedRun("1f1b", 4, 8);
        std::stop_source source;
        const StepContext context(run, 0, {}, source.get_token());
        QVERIFY(context.costs());
        source.request_stop();
        QVERIFY(context.costs()); // was made before
        QVERIFY(context.executed());
        QVERIFY(!context.bubbles() && context.bubbles().error().code == ErrorCode::Cancelled);
        QVERIFY(!context.simulated() && context.simulated().error().code == ErrorCode::Cancelled);
        QVERIFY(!context.residuals() && context.residuals().error().code == ErrorCode::Cancelled);
        QVERIFY(!reportOf(context));
        QVERIFY(reportTables(context).empty());
    }

    // What a run lacks first is what its errors name.
    void withoutAScheduleNothingIsSimulated()
    {
        Run run = samples::simulatedRun("1f1b", 4, 8);
        run.schedule.reset();
        run.costs.reset();
        run.timeline = TimelineBuilder(Provenance::Imported, "wall", 4).build().value();
        const StepContext context(run, 0);
        QVERIFY(!context.costs());
        QVERIFY(!context.executed());
        QCOMPARE(context.executed().error().message, std::string("run 1f1b has no schedule to simulate"));
        QCOMPARE(context.residuals().error().message, std::string("run 1f1b has no schedule to predict from"));
    }

    // A timeline alone has all but costs; a step that is not there is empty.
    void ofATimelineAlone()
    {
        const auto timeline = samples::simulated("gpipe", 4, 8);
        QVERIFY(!StepContext(*timeline, 0).slack().empty());
        const StepContext none(*timeline, 7);
        QVERIFY(none.ops().empty());
        QVERIFY(none.slack().empty());
        QVERIFY(none.criticalPath().empty());
        QVERIFY(none.crossings().empty());
        QCOMPARE(none.bubbles()->idle, Nanos{0});
        QCOMPARE(none.overlap().messages, std::int64_t{0});
    }
};

QTEST_APPLESS_MAIN(TestStepContext)
#include "tst_step_context.moc"
