// Fitted costs against what was measured.
#include <QtTest/QtTest>

#include "sample_runs.h"
#include "traces/fit/fit_costs.h"
#include "traces/fit/residuals.h"

using namespace stagewright;

namespace {

// Steps one behind the other, the op at `slow` of the last one longer.
Run measuredRun(int steps, std::size_t slow, Nanos longer)
{
    Run run = samples::simulatedRun("zb-h1", 4, 8, 0.125);
    TimelineBuilder builder(Provenance::Measured, "virtual", 4);
    Nanos begin = 0;
    for (int step = 0; step < steps; ++step) {
        std::vector<Nanos> durations = durationsOf(*run.schedule, *run.costs);
        if (step + 1 == steps) durations[slow] += longer;
        const SimResult result = place(*run.schedule, durations, run.costs->links).value();
        std::size_t id = 0;
        for (int rank = 0; rank < 4; ++rank)
            for (const Op& op : run.schedule->order[static_cast<std::size_t>(rank)]) {
                Span span;
                span.op = op;
                span.step = step;
                span.start = begin + result.start[id];
                span.end = begin + result.end[id];
                builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
                ++id;
            }
        begin += result.makespan;
    }
    builder.setSchedule(run.schedule);
    run.timeline = builder.build().value();
    run.info.steps = steps;
    return run;
}

} // namespace

class TestResiduals : public QObject {
    Q_OBJECT

private slots:
    void ofAStepOpByOp()
    {
        const Run run = measuredRun(2, 5, 700);
        for (int step = 0; step < 2; ++step) {
            const std::vector<OpResidual> ops = residualsOfStep(*run.timeline, step, *run.costs);
            QCOMPARE(ops.size(), std::size_t(4 * 24)); // F, I, W
            Nanos sum = 0;
            for (const OpResidual& op : ops) {
                QCOMPARE(run.timeline->spans()[op.span].step, step);
                QCOMPARE(op.measured, run.timeline->spans()[op.span].duration());
                sum += std::abs(op.residual());
            }
            QCOMPARE(sum, Nanos(step == 1 ? 700 : 0));
        }
    }

    void aSimulationHasNone()
    {
        for (const char* name : {"gpipe", "interleaved-1f1b", "zb-h1"}) {
            const Run run = samples::simulatedRun(name, 4, 8, 0.25);
            const Residuals residuals = residualsOf(run, fitCosts(*run.timeline).value()).value();
            QVERIFY(!residuals.ops.empty());
            for (const OpResiduals& of : residuals.ops) {
                QCOMPARE(of.worstResidual, Nanos{0});
                QCOMPARE(of.measured, of.predicted);
                QCOMPARE(of.count, std::int64_t{8});
            }
            QCOMPARE(residuals.error, 0.0);
            QCOMPARE(residuals.predictedStep, residuals.measuredStep);
        }
    }

    void theSlowOpIsTheWorst()
    {
        const Run run = measuredRun(5, 0, 500); // 0F0 of step 4
        const Residuals residuals = residualsOf(run, *run.costs).value();
        QCOMPARE(residuals.steps, std::int64_t{5});
        QCOMPARE(residuals.error, 0.0); // the median step is as predicted
        const OpResiduals& first = residuals.ops.front();
        QCOMPARE(first.kind, OpKind::Forward);
        QCOMPARE(first.count, std::int64_t{40});
        QCOMPARE(first.worstResidual, Nanos{500});
        QCOMPARE(run.timeline->spans()[first.worst].step, 4);
        QCOMPARE(first.residual, Nanos{0});
        QCOMPARE(first.percentile95, Nanos{0});
    }

    void otherCostsPredictAnotherStep()
    {
        const Run run = samples::simulatedRun("1f1b", 4, 8);
        CostModel costs = *run.costs;
        for (int stage = 0; stage < 4; ++stage) costs.setDuration(OpKind::Forward, stage, 2 * rankShare);
        const Residuals residuals = residualsOf(run, costs).value();
        QCOMPARE(residuals.error, 44.0 / 33.0 - 1);
        QCOMPARE(residuals.ops.front().residual, -rankShare);
        Run none = run;
        none.schedule = nullptr;
        QVERIFY(!residualsOf(none, costs));
    }
};

QTEST_APPLESS_MAIN(TestResiduals)
#include "tst_residuals.moc"
