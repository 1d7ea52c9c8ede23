// What GPU records show on a timeline: kernel table, launch gaps, links, roofline; on samples::gpuStep().
#include <QTest>

#include "gpu_step.h"
#include "sample_runs.h"
#include "traces/analysis/coverage.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/links.h"
#include "traces/analysis/overlap.h"
#include "traces/analysis/roofline.h"
#include "traces/report/tables.h"

using namespace stagewright;

namespace {

constexpr Nanos us = 1'000;

std::shared_ptr<const Timeline> step() { return samples::gpuStep(); }

} // namespace

class TestKernels : public QObject {
    Q_OBJECT

private slots:
    void coverageIsAUnion()
    {
        Coverage coverage;
        QCOMPARE(coverage.total(), Nanos(0));
        QCOMPARE(coverage.within(0, 10), Nanos(0));
        coverage.add(20, 30);
        coverage.add(5, 5);
        coverage.add(0, 10);
        coverage.add(8, 12);
        QCOMPARE(coverage.total(), Nanos(22));
        QCOMPARE(coverage.within(9, 21), Nanos(4));
        coverage.add(11, 22);
        QCOMPARE(coverage.within(-5, 100), Nanos(30));
    }

    void tableByOp()
    {
        const auto timeline = step();
        QVERIFY(hasKernels(*timeline));
        const KernelReport report = analyseKernels(*timeline, 0);
        QCOMPARE(report.calls, std::int64_t(9));
        QCOMPARE(report.total, 355 * us);
        QCOMPARE(report.rows.front().name, std::string("gemm"));
        QVERIFY(report.rows.front().total >= report.rows.back().total);
        bool nobody = false;
        for (const KernelRow& row : report.rows) {
            if (row.name == "gemm" && row.kind == OpKind::Forward) {
                QCOMPARE(row.calls, std::int64_t(2));
                QCOMPARE(row.total, 140 * us);
                QCOMPARE(row.mean(), 70 * us);
                QCOMPARE(row.shortest, 40 * us);
                QCOMPARE(row.longest, 100 * us);
            }
            nobody = nobody || (row.name == "somebody's" && !row.kind);
        }
        QVERIFY(nobody);
        QVERIFY(analyseKernels(*timeline, 7).rows.empty());
    }

    void launchGaps()
    {
        const auto report = analyseLaunchGaps(*step(), 0);
        QVERIFY(report);
        QCOMPARE(report->window, 400 * us);
        QCOMPARE(report->ranks[0].inside, 20 * us);
        QCOMPARE(report->ranks[1].inside, 20 * us); // b1's last 20; its message is none of its own time
        QCOMPARE(report->ranks[0].ops, 200 * us);
        QCOMPARE(report->ranks[1].before + report->ranks[0].before, Nanos(0));
        QCOMPARE(report->exposedShare(), 40.0 / 800.0);
    }

    void linksSplitWaitingAndOverlap()
    {
        const std::vector<LinkOverlap> links = analyseLinks(*step(), 0);
        QCOMPARE(links.size(), std::size_t(2));
        QCOMPARE(links[0].from, 0);
        QCOMPARE(links[0].transfer, 20 * us);
        QCOMPARE(links[0].coveredBySender, 5 * us); // somebody's kernel; its own copy is not computing
        QCOMPARE(links[0].exposed(), 20 * us);
        QCOMPARE(links[0].sendWait + links[0].receiveWait, Nanos(0));
        QCOMPARE(links[1].from, 1);
        QCOMPARE(links[1].receiveWait, 10 * us);
        QCOMPARE(links[1].sendWait, Nanos(0));
        QCOMPARE(links[1].transfer, 10 * us);
        QCOMPARE(links[1].coveredByReceiver, Nanos(0)); // the NCCL kernel of the receiver is communication
    }

    void linksOfArrivalsAlone()
    {
        const auto timeline = samples::simulated("1f1b", 3, 4, 0.25);
        const std::vector<LinkOverlap> links = analyseLinks(*timeline, 0);
        QCOMPARE(links.size(), std::size_t(4)); // two neighbours, both ways
        for (const LinkOverlap& link : links) {
            QCOMPARE(link.messages, std::int64_t(4));
            QCOMPARE(link.transfer, 4 * timeline->timeUnit() / 4); // four of a quarter each
            QCOMPARE(link.sendWait + link.receiveWait, Nanos(0));
        }
        Nanos exposed = 0;
        for (const LinkOverlap& link : links) exposed += link.exposed();
        QCOMPARE(exposed, analyseOverlap(*timeline, 0).exposedTime);
        Run run;
        run.timeline = timeline;
        QVERIFY(findAnalysis("links")->unknown(run).empty());
    }

    void cpuRunsHaveNone()
    {
        const auto timeline = samples::simulated("1f1b", 3, 4);
        QVERIFY(!hasKernels(*timeline));
        Run run;
        run.timeline = timeline;
        QVERIFY(!findAnalysis("kernels")->unknown(run).empty());
        QVERIFY(analyseKernels(*timeline, 0).rows.empty());
        QCOMPARE(analyseLaunchGaps(*timeline, 0)->exposedShare(), 0.0);
    }

    void rooflineAgainstItsFormula()
    {
        Run run;
        run.timeline = step();
        run.configuration = {{"model", "layers=3,hidden=64,heads=4,seq=32"}, {"stage_layers", "2,1"}, {"microbatch_size", "4"}};
        QVERIFY(!ceilingsOf(run));
        run.environment = {{"ceiling_matrix_flops", "1e12"}, {"ceiling_copy_bytes", "2e11"}};
        const auto ceilings = ceilingsOf(run);
        QVERIFY(ceilings);
        const auto rows = rooflineOf(run, 0);
        QVERIFY2(rows, rows ? "" : rows.error().message.c_str());
        QCOMPARE(rows->size(), std::size_t(2));
        const RooflineRow& forward = rows->front();
        QVERIFY(forward.kind == OpKind::Forward && forward.ops == 2 && forward.time == 200 * us);
        const double sbh = 32.0 * 4 * 64;
        const double head = 2 * sbh * 256;
        QCOMPARE(forward.flops, 3 * sbh * (24 * 64 + 4 * 32) + head);
        QCOMPARE(rows->back().flops, 3 * sbh * (48 * 64 + 8 * 32) + 2 * head);
        QCOMPARE(forward.achieved(), forward.flops / 200e-6);
        QCOMPARE(forward.attainable(*ceilings), std::min(1e12, forward.intensity() * 2e11));
        QCOMPARE(forward.share(*ceilings), forward.achieved() / forward.attainable(*ceilings));
        QCOMPARE(forward.memoryBound(*ceilings), forward.intensity() < 5);
        run.configuration.clear();
        const auto unknown = rooflineOf(run, 0);
        QVERIFY(!unknown && unknown.error().code == ErrorCode::Usage);
    }

    void everyKernelAnalysisHasItsTable()
    {
        Run run;
        run.timeline = step();
        for (const char* name : {"kernels", "launch_gaps", "links"}) {
            const ReportTable table = reportTable(*findAnalysis(name), run, 0);
            QVERIFY(table.unknown.empty() && !table.rows.empty());
        }
    }
};

QTEST_GUILESS_MAIN(TestKernels)
#include "tst_kernels.moc"
