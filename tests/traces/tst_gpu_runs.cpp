// Recordings on real GPUs, an H100 and an H200 (tests/data/runs/README.md): what a fake device can't show of ops,
// kernels, launches and ceilings.
#include <QTest>

#include <cmath>
#include <string>

#include "schedules/model/kinds.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/launch_gaps.h"
#include "traces/analysis/roofline.h"
#include "traces/run/run_facts.h"
#include "traces/store/run_file.h"

using namespace stagewright;

class TestGpuRuns : public QObject {
    Q_OBJECT

    std::unique_ptr<RunFile> m_file;
    Run m_run;

    void open(const QString& name)
    {
        auto file = RunFile::open(
            (QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/cuda/") + name + QStringLiteral(".stagewright"))
                .toStdString(),
            OpenMode::Read);
        QVERIFY2(file, file ? "" : file.error().message.c_str());
        m_file = std::move(*file);
        auto run = m_file->read(1);
        QVERIFY2(run, run ? "" : run.error().message.c_str());
        m_run = std::move(*run);
    }
    std::string fact(const std::string& key) const
    {
        const auto rows = m_file->query("SELECT value FROM run_text WHERE key='" + key + "'");
        return rows && rows->rows.size() == 1 ? rows->rows[0][0] : std::string();
    }
    static void names()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"zb-h1-queues", "zb-h1-partitions", "zb-h1-serialised", "terapipe", "one-rank-h200"})
            QTest::newRow(name) << name;
    }

private slots:
    void isWhole_data() { names(); }
    void isWhole()
    {
        QFETCH(QString, name);
        open(name);
        QCOMPARE(fact("gpu_trace"), std::string("whole"));
        const bool large = name == "one-rank-h200"; // hidden 2,048, which this learning rate is too high for
        QCOMPARE(fact("gpu_0"), std::string(large ? "NVIDIA H200" : "NVIDIA H100 80GB HBM3"));
        QVERIFY(hasKernels(*m_run.timeline));
        const Metric* loss = m_run.metric("loss");
        QVERIFY(loss != nullptr && std::abs(loss->values.front() - (large ? 6.046 : 5.574)) < 0.01 &&
                std::abs(loss->values.back() - (large ? 10.368 : 5.186)) < 0.01);
    }

    // The data sheet: 989 TFLOP/s in bf16 and 3.35 TB/s; a partition of two has half of the multiprocessors and all of
    // the memory.
    void ceilings()
    {
        for (const auto& [name, share] : {std::pair("zb-h1-queues", 1.0), std::pair("zb-h1-partitions", 0.5)}) {
            open(name);
            const double flops = std::stod(fact("ceiling_matrix_flops")), bytes = std::stod(fact("ceiling_copy_bytes"));
            QVERIFY2(flops > share * 7e14 && flops < share * 9.89e14, qPrintable(QString::number(flops)));
            QVERIFY2(bytes > 2.4e12 && bytes < 3.35e12, qPrintable(QString::number(bytes)));
        }
    }

    // Every op has work on the device, and none of its kernels outside of it (copies are its messages', too); a launch
    // comes before what it launches, a stream does one thing at a time.
    void kernelsLieInTheirOps_data() { names(); }
    void kernelsLieInTheirOps()
    {
        QFETCH(QString, name);
        open(name);
        const Timeline& timeline = *m_run.timeline;
        int ops = 0;
        for (int step = 0; step < timeline.steps(); ++step) {
            std::vector<int> pieces(timeline.spans().size());
            const Track* before = nullptr;
            Nanos until = 0;
            eachDeviceSpan(timeline, step, [&](const Track& track, SpanId id, const Span& span) {
                if (before == &track)
                    QVERIFY2(span.start >= until, qPrintable(QString("%1 on rank %2")
                                                                 .arg(QString::fromStdString(timeline.nameOf(span)))
                                                                 .arg(track.rank)));
                before = &track;
                until = span.end;
                const LaunchSeen launch = launchOf(timeline, id);
                if (launch.time) QVERIFY(*launch.time <= span.start);
                const SpanId owner = ownerOf(timeline, id);
                if (owner == noSpan) return;
                ++pieces[owner];
                const Span& op = timeline.spans()[owner];
                if (track.lane == Lane::Kernel)
                    QVERIFY2(span.start >= op.start && span.end <= op.end,
                             qPrintable(QString::fromStdString(timeline.nameOf(span))));
            });
            for (const Track& track : timeline.tracks()) {
                if (track.lane != Lane::Compute) continue;
                const auto [first, last] = timeline.stepRange(track, step);
                for (SpanId id = first; id < last; ++id) {
                    const Span& op = timeline.spans()[id];
                    if (op.step != step || !isBusy(op.op.kind)) continue;
                    QVERIFY2(pieces[id] > 0, qPrintable(QString::fromStdString(timeline.nameOf(op))));
                    ++ops;
                }
            }
        }
        QVERIFY(ops >= 4 * 2 * 8); // four steps of two ranks with four microbatches forward and back
    }

    void everyKernelHasAClass_data() { names(); }
    void everyKernelHasAClass()
    {
        QFETCH(QString, name);
        open(name);
        for (const KernelRow& row : analyseKernels(*m_run.timeline, m_run.timeline->steps() - 1).rows)
            QVERIFY2(row.of != KernelClass::Other, row.name.c_str());
    }

    // Attention by warp groups and by cuDNN's, a layer and microbatch at a time.
    void attentionOnHopper()
    {
        open("one-rank-h200");
        std::int64_t calls = 0;
        for (const KernelRow& row : analyseKernels(*m_run.timeline, 2).rows)
            if (row.of == KernelClass::Attention) calls += row.calls;
        QCOMPARE(calls, 4 * 8 * 4); // forward; inner sums, queries and keys backward
    }

    void timesAddUp_data() { names(); }
    void timesAddUp()
    {
        QFETCH(QString, name);
        open(name);
        for (int step = 0; step < m_run.timeline->steps(); ++step) {
            const auto bubbles = analyseBubbles(*m_run.timeline, step, bubbleOptionsOf(m_run));
            QVERIFY2(bubbles, bubbles ? "" : bubbles.error().message.c_str());
            const auto gaps = analyseLaunchGaps(StepContext(*m_run.timeline, step));
            QVERIFY2(gaps, gaps ? "" : gaps.error().message.c_str());
            for (std::size_t rank = 0; rank < bubbles->ranks.size(); ++rank) {
                const RankBubbles& of = bubbles->ranks[rank];
                QCOMPARE(of.busy + of.apart + of.idle, bubbles->makespan());
                QVERIFY(gaps->ranks[rank].inside > 0 && gaps->ranks[rank].inside < gaps->ranks[rank].ops);
                QVERIFY(gaps->ranks[rank].late.value() < gaps->ranks[rank].inside);
            }
        }
    }

    // Small products reach a small share of what the device can do; none reaches more than all of it.
    void rooflineIsBelowTheCeilings_data() { names(); }
    void rooflineIsBelowTheCeilings()
    {
        QFETCH(QString, name);
        open(name);
        const auto ceilings = ceilingsOf(m_run);
        QVERIFY2(ceilings, ceilings ? "" : ceilings.error().message.c_str());
        const auto rows = rooflineOf(StepContext(m_run, m_run.timeline->steps() - 1));
        QVERIFY2(rows, rows ? "" : rows.error().message.c_str());
        QVERIFY(!rows->empty());
        for (const RooflineRow& row : *rows)
            QVERIFY2(row.share(*ceilings) > 0 && row.share(*ceilings) < 1,
                     qPrintable(QString::number(row.share(*ceilings))));
    }
};

QTEST_GUILESS_MAIN(TestGpuRuns)
#include "tst_gpu_runs.moc"
