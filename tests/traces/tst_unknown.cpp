// Figures that a trace can't give are unknown with their reason, in the report, its tables, comparisons and sentences;
// device time needs no ops.
#include <QTest>

#include "gpu_step.h"
#include "sample_runs.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/kernels.h"
#include "traces/compare/compare.h"
#include "traces/report/run_report.h"
#include "traces/report/tables.h"
#include "traces/step/step_ops.h"

using namespace stagewright;

namespace {

using samples::us;

// Two ranks with kernels, a communication kernel and a copy each, under one range that is not an op. On rank 0:
//   compute        0–10 µs, 20–30 µs   communication 25–40 µs   copy 50–60 µs (launched at 40)
Run deviceRun(const std::string& name, Nanos longer = 0)
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    for (int rank = 0; rank < 2; ++rank) {
        const std::string prefix = "rank " + std::to_string(rank);
        const int range = builder.addTrack(rank, Lane::Other, prefix + " ranges");
        const int kernels = builder.addTrack(rank, Lane::Kernel, prefix + " stream 7");
        const int messages = builder.addTrack(rank, Lane::Kernel, prefix + " collective");
        const int copies = builder.addTrack(rank, Lane::Copy, prefix + " copies");
        const auto add = [&](int track, Nanos start, Nanos end, const char* label) {
            Span span;
            span.start = start * us;
            span.end = end * us;
            span.op.microbatch = -1;
            span.label = builder.intern(label) & 0xffffffu;
            return builder.addSpan(track, span);
        };
        const SpanId step = add(range, 0, 60, "train_step");
        add(kernels, 0, 10, "gemm");
        builder.addEdge(step, add(kernels, 20, 30 + longer, "gemm"), EdgeKind::Launch, 16 * us);
        add(rank == 0 ? messages : kernels, 25, 40, "ncclDevKernel_AllReduce"); // by its track, or by its name
        builder.addEdge(step, add(copies, 50, 60, "memcpy"), EdgeKind::Launch, 40 * us);
    }
    Run run;
    run.timeline = *builder.build();
    run.info.name = name;
    run.info.ranks = 2;
    run.info.steps = run.timeline->steps();
    run.info.provenance = Provenance::Imported;
    run.info.clock = "wall";
    return run;
}

// A kernel that no range launched, maybe with memory.
Run kernelsAlone(std::optional<MemoryCategory> category = {})
{
    TimelineBuilder builder(Provenance::Imported, "wall", 1);
    Span kernel;
    kernel.end = 10 * us;
    kernel.label = builder.intern("gemm") & 0xffffffu;
    builder.addSpan(builder.addTrack(0, Lane::Kernel, "rank 0 stream 7"), kernel);
    if (category) {
        MemoryEvent event;
        event.delta = 1024;
        event.category = *category;
        builder.addMemory(event);
    }
    Run run;
    run.timeline = builder.build().value();
    return run;
}

} // namespace

class TestUnknown : public QObject {
    Q_OBJECT
private slots:
    // Without ops only what the trace itself names has a use.
    void memoryWithoutOps()
    {
        for (const MemoryCategory category : {MemoryCategory::Workspace, MemoryCategory::Activations}) {
            const Run run = kernelsAlone(category);
            const auto figures = reportOf(run, {}).value().figures();
            const auto peak = std::find_if(figures.begin(), figures.end(), [](const document::Figure& figure) {
                return figure.key == "peak_activation";
            });
            QVERIFY(peak != figures.end());
            QCOMPARE(peak->unknown, std::string(category == MemoryCategory::Workspace
                                                    ? "the trace does not say what its memory is used for"
                                                    : ""));
            const ReportTable table = reportTable(*findAnalysis("memory"), StepContext(run, 0));
            QCOMPARE(table.rows.size(), std::size_t(1));
            for (std::size_t c = 0; c < memoryCategoryCount; ++c) {
                const bool known = category != MemoryCategory::Workspace || static_cast<MemoryCategory>(c) == category;
                QCOMPARE(table.rows[0][c + 1] == TableCell(), !known);
            }
            QCOMPARE(table.sentence.empty(), category != MemoryCategory::Workspace);
            QVERIFY(table.rows[0][static_cast<std::size_t>(category) + 1] == TableCell(std::int64_t{1024}));
        }
    }

    // Rules can name ranges only where there are some.
    void whatToDoWithoutOps()
    {
        QVERIFY(QString::fromStdString(reportOf(deviceRun("a"))->noOps).contains("--rules"));
        const auto report = reportOf(kernelsAlone());
        QVERIFY(report);
        QVERIFY2(QString::fromStdString(report->noOps).contains("record_function") &&
                     !QString::fromStdString(report->noOps).contains("rules"),
                 report->noOps.c_str());
        QCOMPARE(reportTable(*findAnalysis("bubbles"), StepContext(kernelsAlone(), 0)).unknown, report->noOps);
    }

    void deviceTimeByHand()
    {
        const Run run = deviceRun("a");
        const auto ranks = analyseDeviceTime(*run.timeline, 0);
        QCOMPARE(ranks.size(), std::size_t(2));
        const RankDeviceTime& rank = ranks[0];
        QCOMPARE(rank.window(), 60 * us);
        QCOMPARE(rank.computing, 20 * us);
        QCOMPARE(rank.communicating, 15 * us);
        QCOMPARE(rank.copying, 10 * us);
        QCOMPARE(rank.hidden, 5 * us);
        QCOMPARE(rank.exposed(), 10 * us);
        QCOMPARE(rank.busy, 40 * us); // 0–10, 20–40, 50–60
        QCOMPARE(rank.idle(), 20 * us);
        QCOMPARE(rank.calls, std::int64_t(4));
        QCOMPARE(
            deviceTimeSentence(ranks),
            std::string(
                "devices compute 33.3 %, communicate 25.0 % (16.7 % exposed), are idle 33.3 % of 60.0 µs on average"));
        RankDeviceTime quiet = rank; // one device that never communicates
        quiet.communicating = quiet.hidden = 0;
        QCOMPARE(deviceTimeSentence({quiet}),
                 std::string("the device computes 33.3 %, communicates 0.0 %, is idle 33.3 % of 60.0 µs"));
    }

    void partsOfARecordedStep()
    {
        const auto ranks = analyseDeviceTime(*samples::gpuStep(), 0);
        for (const RankDeviceTime& rank : ranks) {
            QVERIFY(rank.calls > 0 && rank.idle() >= 0 && rank.busy > 0);
            QVERIFY(rank.hidden <= rank.communicating &&
                    rank.busy <= rank.computing + rank.communicating + rank.copying);
        }
    }

    void figuresOfATraceWithoutOps()
    {
        const Run run = deviceRun("a");
        QVERIFY(!hasOps(*run.timeline));
        const auto report = reportOf(run, {.levers = true});
        QVERIFY2(report, report ? "" : report.error().message.c_str());
        QVERIFY2(QString::fromStdString(report->noOps).contains("rules"), report->noOps.c_str());
        for (const document::Figure& figure : report->figures()) QVERIFY2(!figure.unknown.empty(), figure.key.c_str());
        QVERIFY(report->sentences().empty());
        QVERIFY(!report->levers->simulated && !report->levers->reason.empty());
        for (const AnalysisInfo* analysis : allAnalyses()) {
            const ReportTable table = reportTable(*analysis, StepContext(run, report->step));
            const bool ofDevices = analysis->name.starts_with("device_") || analysis->name == "exposed_communication" ||
                                   analysis->name == "copies" || analysis->name == "range_stacks" ||
                                   analysis->name.starts_with("kernel");
            QVERIFY2(table.unknown.empty() == ofDevices, analysis->name.data());
        }
    }

    void comparisonWithoutOps()
    {
        const auto comparison = compareRuns(deviceRun("a"), deviceRun("b", 4));
        QVERIFY(comparison);
        QVERIFY(!comparison->unknown.empty());
        QVERIFY(comparison->metrics.empty() && comparison->why.empty() && comparison->ladder.empty() &&
                !comparison->shows());
        QVERIFY(comparison->devices.has_value());
        const auto& kernels = comparison->devices->kernels;
        QCOMPARE(kernels.size(), std::size_t(3));
        QCOMPARE(kernels.front().name, std::string("gemm"));
        QCOMPARE(kernels.front().callsA, std::int64_t(4));
        QCOMPARE(kernels.front().change(), 8 * us);
        QCOMPARE(kernels.back().change(), Nanos(0));
        QCOMPARE(
            comparison->headline,
            std::string("devices are busy 80.0 µs of 120.0 µs in A and 80.0 µs of 120.0 µs in B, summed over ranks"));
    }

    void comparisonOfARunWithOpsAndOneWithout()
    {
        const auto comparison = compareRuns(samples::simulatedRun("1f1b", 2, 4), deviceRun("b"));
        QVERIFY(comparison);
        QVERIFY2(
            QString::fromStdString(comparison->headline).startsWith("the steps can't be compared: run B: no range"),
            comparison->headline.c_str());
        QVERIFY(!comparison->devices);
    }

    void runsWithOpsAreKnown()
    {
        const auto report = reportOf(samples::simulatedRun("1f1b", 2, 4));
        QVERIFY(report && report->noOps.empty() && report->devices.empty());
        for (const document::Figure& figure : report->figures())
            if (figure.key == "makespan" || figure.key == "bubble_fraction") QVERIFY(figure.unknown.empty());
    }
};

QTEST_APPLESS_MAIN(TestUnknown)
#include "tst_unknown.moc"
