// Work folded by nested ranges: kernels lie in the innermost range that launched them, totals are those of the kernels,
// a part is trimmed.
#include <QtTest/QtTest>

#include "tests/traces/import_rig.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/range_stacks.h"
#include "traces/report/tables.h"

using namespace stagewright;

namespace {

class Rank {
public:
    explicit Rank(TimelineBuilder& builder, int rank = 0) : m_builder(builder), m_rank(rank) {}
    SpanId add(Lane lane, const char* track, const char* name, Nanos begin, Nanos end)
    {
        Span span;
        span.start = begin;
        span.end = end;
        span.label = m_builder.intern(name) & 0xffffffu;
        return m_builder.addSpan(m_builder.addTrack(m_rank, lane, track), span);
    }
    void kernel(SpanId by, const char* name, Nanos begin, Nanos end)
    {
        const SpanId id = add(Lane::Kernel, m_rank == 0 ? "rank 0 stream 7" : "rank 1 stream 7", name, begin, end);
        if (by != noSpan) m_builder.addEdge(by, id, EdgeKind::Launch, begin);
    }

private:
    TimelineBuilder& m_builder;
    int m_rank;
};

// "step › layer › gemm 40 (2)": total and count of every node.
QStringList linesOf(const RangeStacks& stacks)
{
    QStringList lines;
    for (std::size_t i = 0; i < stacks.nodes.size(); ++i)
        lines << QStringLiteral("%1 %2 (%3)")
                     .arg(QString::fromStdString(stacks.pathOf(static_cast<int>(i))))
                     .arg(stacks.nodes[i].total)
                     .arg(stacks.nodes[i].count);
    return lines;
}

// Two layers in a step on rank 0, each with kernels; one kernel that nobody launched; rank 1 has the first layer only.
std::shared_ptr<const Timeline> nestedRanges()
{
    TimelineBuilder builder(Provenance::Imported, "wall", 2);
    Rank zero(builder), one(builder, 1);
    const char* track = "rank 0 thread 1 on the device";
    const SpanId step = zero.add(Lane::Other, track, "step", 0, 100);
    const SpanId first = zero.add(Lane::Other, track, "layer", 0, 40),
                 second = zero.add(Lane::Other, track, "layer", 50, 90);
    zero.add(Lane::Other, "rank 0 thread 1", "idle range", 0, 5);
    zero.kernel(first, "gemm", 0, 30);
    zero.kernel(first, "norm", 30, 40);
    zero.kernel(second, "gemm", 50, 90);
    zero.kernel(step, "adam", 90, 100);
    zero.kernel(noSpan, "memset", 100, 103);
    const SpanId other = one.add(Lane::Other, "rank 1 thread 1", "step", 0, 3); // at the times of the host
    one.kernel(other, "gemm", 10, 30);
    return builder.build().value();
}

} // namespace

class TestRangeStacks : public QObject {
    Q_OBJECT

private slots:
    void kernelsLieInTheirRanges()
    {
        const auto timeline = nestedRanges();
        const RangeStacks stacks = foldRanges(*timeline, 0);
        QVERIFY(stacks.device);
        QCOMPARE(linesOf(stacks),
                 (QStringList{"step 110 (1)", "memset 3 (1)", "step › layer 80 (2)", "step › gemm 20 (1)",
                              "step › adam 10 (1)", "step › layer › gemm 70 (2)", "step › layer › norm 10 (1)"}));
        QCOMPARE(stacks.total, Nanos(113));
        Nanos kernels = 0, leaves = 0;
        for (const KernelRow& row : analyseKernels(*timeline, 0).rows) kernels += row.total;
        for (const StackNode& node : stacks.nodes) leaves += node.self;
        QCOMPARE(kernels, stacks.total);
        QCOMPARE(leaves, stacks.total);
        QVERIFY(stacks.nodes[5].of == KernelClass::MatrixProduct && !stacks.nodes[0].of);
        QCOMPARE(timeline->spans()[stacks.nodes[5].longest].duration(), Nanos(40));
    }

    void aPartIsTrimmed()
    {
        const auto timeline = nestedRanges();
        QCOMPARE(linesOf(foldRanges(*timeline, 0, 20, 60, {0})),
                 (QStringList{"step 30 (1)", "step › layer 30 (2)", "step › layer › gemm 20 (2)",
                              "step › layer › norm 10 (1)"}));
        QCOMPARE(linesOf(foldRanges(*timeline, 0, 0, 1000, {1})), (QStringList{"step 20 (0)", "step › gemm 20 (1)"}));
        QVERIFY(foldRanges(*timeline, 0, 2000, 3000).empty());
        QVERIFY(foldRanges(*timeline, 7).empty());
    }

    void rangesOfTheHostAlone()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        Rank rank(builder);
        rank.add(Lane::Other, "rank 0 thread 1", "step", 0, 100);
        rank.add(Lane::Other, "rank 0 thread 1", "load", 0, 30);
        rank.add(Lane::Other, "rank 0 thread 1", "read", 5, 15);
        rank.add(Lane::Other, "rank 0 thread 2", "writer", 0, 50);
        const RangeStacks stacks = foldRanges(*builder.build().value(), 0);
        QVERIFY(!stacks.device);
        QCOMPARE(linesOf(stacks),
                 (QStringList{"step 100 (1)", "writer 50 (1)", "step › load 30 (1)", "step › load › read 10 (1)"}));
        QCOMPARE(stacks.nodes[0].self, Nanos(70));
        QCOMPARE(stacks.nodes[2].self, Nanos(20));
    }

    // Kernels of ops lie in the op's kind; the table has every node.
    void importedOps()
    {
        const auto result =
            importTraces({import_rig::dataFile("gpu_rank4.json"), import_rig::dataFile("gpu_rank6.json")}, {});
        QVERIFY(result && !result->runs.empty());
        const Run& run = result->runs[0].run;
        const RangeStacks stacks = foldRanges(*run.timeline, 0);
        QVERIFY(std::any_of(stacks.nodes.begin(), stacks.nodes.end(),
                            [](const StackNode& node) { return node.kind == OpKind::Forward; }));
        Nanos kernels = 0;
        for (const KernelRow& row : analyseKernels(*run.timeline, 0).rows) kernels += row.total;
        QCOMPARE(stacks.total, kernels);
        const ReportTable table = reportTable(*findAnalysis("range_stacks"), StepContext(run, 0));
        QVERIFY(table.unknown.empty());
        QCOMPARE(table.rows.size(), stacks.nodes.size());
    }
};

QTEST_GUILESS_MAIN(TestRangeStacks)
#include "tst_range_stacks.moc"
