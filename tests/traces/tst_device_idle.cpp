// Why devices do not compute: on a small step by hand, and on real traces against an independent count
// (count_devices.py).
#include <map>
#include <numeric>

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTest>

#include "import_rig.h"
#include "sample_runs.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/exposed_communication.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/work_bytes.h"
#include "traces/compare/device_changes.h"
#include "traces/compare/device_tables.h"
#include "traces/report/tables.h"
#include "traces/store/run_file.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

using samples::us;

// One rank: kernels with the time of their launch (−1: unknown), a collective beside them, a copy, and calls in which
// the host waits.
class Step {
public:
    SpanId kernel(const char* name, Nanos begin, Nanos end, Nanos launched, const char* track = "rank 0 stream 7",
                  Lane lane = Lane::Kernel)
    {
        const SpanId id = span(name, begin, end, m_builder.addTrack(0, lane, track));
        if (launched >= 0) m_builder.addEdge(id, id, EdgeKind::Launch, launched * us);
        return id;
    }
    void call(const char* name, Nanos begin, Nanos end)
    {
        span(name, begin, end, m_builder.addTrack(0, Lane::Other, "rank 0 thread 1"));
    }
    std::shared_ptr<const Timeline> build() { return m_builder.build().value(); }

private:
    SpanId span(const char* name, Nanos begin, Nanos end, int track)
    {
        Span span;
        span.start = begin * us;
        span.end = end * us;
        span.label = m_builder.intern(name) & 0xffffffu;
        return m_builder.addSpan(track, span);
    }
    TimelineBuilder m_builder{Provenance::Imported, "wall", 1};
};

struct SeenCall {
    int rank;
    const char* name;
    Nanos begin, end;
    Bytes bytes = -1; // −1: unknown
    const char* shape = "";
};

// Any ranks, one stream each; sizes as an import keeps them.
std::shared_ptr<const Timeline> stepOf(const std::vector<SeenCall>& calls, int ranks)
{
    TimelineBuilder builder(Provenance::Imported, "wall", ranks);
    std::map<int, int> counters;
    for (const SeenCall& call : calls) {
        const std::string track = "rank " + std::to_string(call.rank) + " stream 7";
        Span span;
        span.start = call.begin * us;
        span.end = call.end * us;
        span.label = builder.intern(call.name, call.shape) & 0xffffffu;
        builder.addSpan(builder.addTrack(call.rank, Lane::Kernel, track), span);
        if (call.bytes < 0) continue;
        if (!counters.contains(call.rank))
            counters[call.rank] =
                builder.addCounter(call.rank, workBytesCounter(track, Lane::Kernel), std::string(workBytesUnit));
        builder.addSample(counters[call.rank], span.start, static_cast<double>(call.bytes));
    }
    return builder.build().value();
}

const KernelChange& changeOf(const std::vector<KernelChange>& changes, const std::string& name,
                             std::optional<Bytes> bytes = {})
{
    const auto at = std::find_if(changes.begin(), changes.end(),
                                 [&](const KernelChange& one) { return one.name == name && one.bytes == bytes; });
    if (at == changes.end()) qFatal("no kernel %s", name.c_str());
    return *at;
}

std::shared_ptr<const Timeline> sample()
{
    Step step;
    step.kernel("gemm", 0, 100, -1);
    step.kernel("gemm", 150, 200, 120); // 50 µs without work, 20 of them after a synchronising call
    step.call("cudaStreamSynchronize", 90, 120);
    step.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 180, 300, 100, "rank 0 stream 20"); // 20 hidden, 100 exposed
    // 40 outside of the collective
    step.kernel("ncclDevKernel_SendRecv", 290, 340, 100, "rank 0 stream 21");
    step.kernel("Memcpy HtoD (Pageable -> Device)", 340, 350, 100, "rank 0 stream 7", Lane::Copy);
    step.kernel("gelu", 370, 400, 200); // 20 µs in the queue
    step.kernel("gelu", 430, 460, -1);  // 30 µs, nobody knows why
    step.kernel("gelu", 500, 510, 490); // 40 µs late
    return step.build();
}

const document::Table& tableOf(const document::Section& section)
{
    return std::get<document::Table>(section.elements.front());
}

// What a row shows.
std::vector<std::string> textsOf(const document::Section& section, std::size_t row)
{
    const document::Table& table = tableOf(section);
    std::vector<std::string> out;
    for (const std::size_t c : document::shownColumns(table))
        out.push_back(document::textOf(table.columns[c], table.rows[row], table.rows[row].cells[c], {}));
    return out;
}

} // namespace

class TestDeviceIdle : public QObject {
    Q_OBJECT

private slots:
    void everyNanosecondHasAReason()
    {
        const auto ranks = analyseDeviceIdle(*sample(), 0);
        QCOMPARE(ranks.size(), std::size_t(1));
        const RankDeviceIdle& rank = ranks[0];
        QCOMPARE(rank.window, 510 * us);
        QCOMPARE(rank.of(DeviceState::Computing), 220 * us);
        QCOMPARE(rank.of(DeviceState::Collective), 100 * us);
        QCOMPARE(rank.of(DeviceState::SendReceive), 40 * us);
        QCOMPARE(rank.of(DeviceState::Copying), 10 * us);
        QCOMPARE(rank.of(DeviceState::Launch), 70 * us); // 30 after the call, 40 before the last
        QCOMPARE(rank.of(DeviceState::Sync), 20 * us);
        QCOMPARE(rank.of(DeviceState::Queued), 20 * us);
        QCOMPARE(rank.of(DeviceState::Unknown), 30 * us);
        QCOMPARE(rank.of(DeviceState::Between), Nanos(0));
        QCOMPARE(std::accumulate(rank.time.begin(), rank.time.end(), Nanos(0)), rank.window);
        QCOMPARE(rank.lateLaunches, std::int64_t(2));
        QCOMPARE(rank.longestGap, 50 * us);
        QCOMPARE(deviceIdleSentence(ranks),
                 std::string("the device computes 43.1 % of its time; it waits 19.6 % for collectives, 13.7 % for "
                             "launches by the host, 7.8 % for sends and "
                             "receives, 5.9 % for unknown reasons, 3.9 % for a host that waits for kernels, 3.9 % with "
                             "work in the queue, 2.0 % for copies"));
        QVERIFY(analyseDeviceIdle(*sample(), 3)[0].window == 0);
        QVERIFY(deviceIdleSentence(analyseDeviceIdle(*sample(), 3)).empty());
    }

    void launchesKeepTheirTime()
    {
        const auto timeline = sample();
        int known = 0;
        for (const Track& track : timeline->tracks())
            for (SpanId id = track.begin; id < track.end; ++id) {
                const LaunchSeen launch = launchOf(*timeline, id);
                QVERIFY(launch.by == noSpan); // nothing with a span launched it
                QVERIFY(ownerOf(*timeline, id) == noSpan);
                known += launch.time ? 1 : 0;
            }
        QCOMPARE(known, 6);
        // Old files have the kernel's start where newer ones have the launch.
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        Span span;
        span.end = 10;
        span.op = makeOp(OpKind::Forward, 0, 0);
        const SpanId op = builder.addSpan(builder.addTrack(0, Lane::Compute), span);
        span.op = {};
        span.label = builder.intern("gemm") & 0xffffffu;
        span.start = 5;
        builder.addEdge(op, builder.addSpan(builder.addTrack(0, Lane::Kernel, "s"), span), EdgeKind::Launch, 5);
        const auto old = builder.build().value();
        const SpanId kernel = old->trackOf(0, Lane::Kernel)->begin;
        QVERIFY(launchOf(*old, kernel).by != noSpan && !launchOf(*old, kernel).time);
    }

    void exposedByOperation()
    {
        const auto rows = analyseExposedCommunication(*sample(), 0);
        QCOMPARE(rows.size(), std::size_t(2));
        QCOMPARE(rows[0].name, std::string("AllReduce"));
        QCOMPARE(rows[0].total, 120 * us);
        QCOMPARE(rows[0].hidden, 20 * us);
        QCOMPARE(rows[1].name, std::string("SendRecv"));
        QCOMPARE(rows[1].exposed(), 50 * us); // each for itself: 10 µs count in both
        Run run;
        run.timeline = sample();
        const ReportTable table = reportTable(*findAnalysis("exposed_communication"), StepContext(run, 0));
        QCOMPARE(table.rows.size(), std::size_t(2));
        QCOMPARE(table.sentence,
                 std::string("150.0 µs of 170.0 µs of communication are exposed, 66.7 % of them in AllReduce"));
        Step without;
        without.kernel("gemm", 0, 10, -1);
        run.timeline = without.build();
        QVERIFY(!reportTable(*findAnalysis("exposed_communication"), StepContext(run, 0)).unknown.empty());
    }

    void comparedByCauseAndClass()
    {
        Step faster;
        faster.kernel("gemm", 0, 100, -1);
        faster.kernel("gemm", 120, 200, 110);
        const DeviceChanges changes = compareDevices(*sample(), 0, *faster.build(), 0);
        const auto figure = [&](const std::string& key) {
            const auto at = std::find_if(changes.figures.begin(), changes.figures.end(),
                                         [&](const DeviceFigure& one) { return one.key == key; });
            return at == changes.figures.end() ? std::pair<Nanos, Nanos>(-1, -1)
                                               : std::pair(at->a.value_or(-2), at->b.value_or(-2));
        };
        QVERIFY(figure("idle.launch_ns") == std::pair(70 * us, 20 * us));
        QVERIFY(figure("idle.sync_ns") == std::pair(20 * us, Nanos(0)));
        QVERIFY(figure("class.matrix_product_ns") == std::pair(150 * us, 180 * us));
        QVERIFY(figure("class.collective_ns") == std::pair(120 * us, Nanos(0)));
        QVERIFY(figure("class.attention_ns").first == -1); // in neither
        QVERIFY(figure("communication.AllReduce_ns") == std::pair(120 * us, Nanos(0)));
        QVERIFY(!changes.figures.front().noise); // one step has none
        QVERIFY(changes.why.size() >= 3);
        QCOMPARE(changes.why[1],
                 std::string("devices communicate 160.0 µs less in B: AllReduce −120.0 µs, SendRecv −50.0 µs"));
        const DeviceChanges same = compareDevices(*sample(), 0, *sample(), 0);
        QVERIFY(same.why.empty());
    }

    // The n-th call on a rank is the n-th there in the other run, where each rank has as many; so a difference has a
    // place.
    void kernelsMatchedByOrder()
    {
        const auto a = stepOf({{0, "gelu", 0, 10},
                               {0, "gelu", 20, 30},
                               {0, "gelu", 40, 50},
                               {1, "gelu", 0, 10},
                               {1, "gelu", 20, 30},
                               {1, "gelu", 40, 50}},
                              2);
        const auto b = stepOf({{0, "gelu", 5, 15},
                               {0, "gelu", 25, 35},
                               {0, "gelu", 45, 54},
                               {1, "gelu", 0, 10},
                               {1, "gelu", 20, 30},
                               {1, "gelu", 40, 90}},
                              2);
        const auto changes = matchKernels(*a, 0, *b, 0);
        QCOMPARE(changes.size(), std::size_t(1));
        QVERIFY(changes[0].byOrder && changes[0].placed());
        QCOMPARE(changes[0].change(), 39 * us);
        QCOMPARE(changes[0].most->rank, 1);
        QCOMPARE(changes[0].most->place, std::int64_t(3));
        QCOMPARE(changes[0].most->calls, std::int64_t(3));
        QCOMPARE(changes[0].most->a, 10 * us);
        QCOMPARE(changes[0].most->b, 50 * us);
        QCOMPARE(b->spans()[changes[0].most->spanB].start, 40 * us);
        const auto why = compareDevices(*a, 0, *b, 0).why;
        QCOMPARE(why.back(), std::string("gelu +39.0 µs: 6 calls as well as 6, 16.5 µs each instead of 10.0 µs; most "
                                         "of all call 3 of 3 on rank 1: 50.0 µs instead of 10.0 µs"));
        // The other way round the same call is the one.
        QCOMPARE(matchKernels(*b, 0, *a, 0)[0].most->place, std::int64_t(3));
        // Spread evenly: no call stands out.
        const auto even = matchKernels(*stepOf({{0, "gelu", 0, 10}, {0, "gelu", 20, 30}}, 1), 0,
                                       *stepOf({{0, "gelu", 0, 12}, {0, "gelu", 20, 32}}, 1), 0);
        QVERIFY(even[0].byOrder && !even[0].placed());
        // As many in total, but not on each rank: by name alone.
        const auto moved = matchKernels(*stepOf({{0, "gelu", 0, 10}, {0, "gelu", 20, 30}, {1, "gelu", 0, 10}}, 2), 0,
                                        *stepOf({{0, "gelu", 0, 10}, {1, "gelu", 0, 10}, {1, "gelu", 20, 90}}, 2), 0);
        QVERIFY(!moved[0].byOrder && !moved[0].most && moved[0].inBoth());
        // A step with itself changes nothing.
        for (const KernelChange& one : matchKernels(*sample(), 0, *sample(), 0))
            QVERIFY(one.byOrder && one.change() == 0 && !one.most && !one.placed());
    }

    // Tiles are part of the name, sizes of calls part of what is matched where each is known.
    void kernelsMatchedByShape()
    {
        const char* wide = "void cutlass::gemm<128, 64>(int)";
        const char* narrow = "void cutlass::gemm<64, 64>(int)";
        const char* reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
        const auto a = stepOf({{0, wide, 0, 10},
                               {0, wide, 10, 20},
                               {0, reduce, 20, 30, 1024},
                               {0, reduce, 30, 50, 4096},
                               {0, reduce, 50, 60, 1024}},
                              1);
        const auto b = stepOf({{0, narrow, 0, 15},
                               {0, wide, 15, 25},
                               {0, reduce, 30, 50, 4096},
                               {0, reduce, 50, 60, 1024},
                               {0, reduce, 60, 73, 1024},
                               {0, reduce, 80, 90, 2048}},
                              1);
        const auto changes = matchKernels(*a, 0, *b, 0);
        QCOMPARE(changes.size(), std::size_t(5));
        QVERIFY(changeOf(changes, narrow).callsA == 0 && !changeOf(changes, narrow).inBoth());
        QVERIFY(!changeOf(changes, wide).byOrder && changeOf(changes, wide).callsA == 2 &&
                changeOf(changes, wide).callsB == 1);
        // the first and third of A are the second and third of B
        const KernelChange& small = changeOf(changes, reduce, 1024);
        QVERIFY(small.byOrder && small.most->place == 2 && small.change() == 3 * us);
        QVERIFY(changeOf(changes, reduce, 4096).byOrder && changeOf(changes, reduce, 4096).change() == 0);
        QVERIFY(changeOf(changes, reduce, 2048).callsA == 0);
        // One size unknown: all calls of that name are one row.
        const auto unsized = matchKernels(
            *a, 0, *stepOf({{0, reduce, 0, 10, 1024}, {0, reduce, 10, 20}, {0, reduce, 20, 30, 1024}}, 1), 0);
        QVERIFY(changeOf(unsized, reduce).byOrder && changeOf(unsized, reduce).callsA == 3);
        std::int64_t calls = 0;
        for (const KernelChange& one : changes) calls += one.callsA + one.callsB;
        QCOMPARE(calls, std::int64_t(11)); // none left out, none twice
    }

    // Kernels of one name match by the shape of the launch; those of shapes that only one run has are one row.
    void kernelsMatchedByLaunchShape()
    {
        const char* small = "grid 8×1×1, block 128×1×1";
        const char* large = "grid 64×1×1, block 128×1×1";
        const char* larger = "grid 96×1×1, block 128×1×1";
        // B runs the large one first: by order alone 50 µs would be compared with 10.
        const auto a = stepOf({{0, "gemm", 0, 10, -1, small}, {0, "gemm", 10, 60, -1, large}, {0, "gelu", 60, 70}}, 1);
        const auto b = stepOf({{0, "gemm", 0, 55, -1, large}, {0, "gemm", 55, 65, -1, small}, {0, "gelu", 65, 75}}, 1);
        auto changes = matchKernels(*a, 0, *b, 0);
        QCOMPARE(changes.size(), std::size_t(3));
        QCOMPARE(changes[0].shapeText(), std::string(large));
        QVERIFY(changes[0].change() == 5 * us && changes[0].byShape() && changes[0].most->a == 50 * us &&
                changes[0].most->b == 55 * us);
        QCOMPARE(std::string(changes[0].matchedBy()), std::string("shape and order"));
        QCOMPARE(
            compareDevices(*a, 0, *b, 0).why.back(),
            std::string(
                "gemm (grid 64×1×1, block 128×1×1) +5.00 µs: 1 call as well as 1, 55.0 µs each instead of 50.0 µs"));
        const KernelChange& gelu = changeOf(changes, "gelu"); // unknown shapes: as before
        QVERIFY(gelu.shapeText().empty() && std::string(gelu.matchedBy()) == "order");
        // Launched otherwise: one row, by order.
        changes = matchKernels(*a, 0, *stepOf({{0, "gemm", 0, 10, -1, small}, {0, "gemm", 10, 90, -1, larger}}, 1), 0);
        QCOMPARE(changes[0].shapeText(), std::string("grid 64×1×1 → 96×1×1, block 128×1×1"));
        QVERIFY(changes[0].change() == 30 * us && !changes[0].byShape() &&
                std::string(changes[0].matchedBy()) == "order");
        // A shape that only one run has, while the other has no call left: by itself.
        changes = matchKernels(*a, 0, *stepOf({{0, "gemm", 0, 10, -1, small}}, 1), 0);
        const auto gone = std::find_if(changes.begin(), changes.end(),
                                       [&](const KernelChange& one) { return one.shapeText() == large; });
        QVERIFY(gone != changes.end() && std::string(gone->matchedBy()) == "only A");
        // Inputs count where both runs have them, else grid and block alone.
        const char* inputs = "grid 8×1×1, block 128×1×1, inputs [[64,512]]";
        const char* others = "grid 8×1×1, block 128×1×1, inputs [[32,1024]]";
        const auto c = stepOf({{0, "gemm", 0, 10, -1, inputs}, {0, "gemm", 10, 30, -1, others}}, 1);
        changes = matchKernels(*c, 0, *stepOf({{0, "gemm", 0, 20, -1, others}, {0, "gemm", 20, 31, -1, inputs}}, 1), 0);
        QCOMPARE(changes.size(), std::size_t(2));
        QVERIFY(changes[0].shapeText() == inputs && changes[0].change() == us);
        changes = matchKernels(*c, 0, *stepOf({{0, "gemm", 0, 20, -1, small}, {0, "gemm", 20, 31, -1, small}}, 1), 0);
        QVERIFY(changes.size() == 1 && changes[0].shapeText() == small && changes[0].byOrder);
        // One call without a shape: none counts.
        changes = matchKernels(*a, 0, *stepOf({{0, "gemm", 0, 10}, {0, "gemm", 10, 60, -1, large}}, 1), 0);
        QVERIFY(changeOf(changes, "gemm").callsA == 2 && changeOf(changes, "gemm").shapeText().empty());
    }

    // The tables that text, window and page show.
    void changesAsTables()
    {
        const auto a =
            stepOf({{0, "gemm", 0, 10, -1, "grid 8×1×1, block 128×1×1"}, {0, "gelu", 10, 20}, {0, "old", 20, 30}}, 1);
        const auto b = stepOf({{0, "gemm", 0, 15, -1, "grid 8×1×1, block 128×1×1"},
                               {0, "gelu", 15, 25},
                               {0, "new", 25, 27},
                               {0, "new", 27, 29}},
                              1);
        const DeviceChanges changes = compareDevices(*a, 0, *b, 0);
        const auto tables = deviceSections(changes, 'C');
        QCOMPARE(tables.size(), std::size_t(4));
        for (const document::Section& one : tables)
            for (const document::Row& row : tableOf(one).rows) QCOMPARE(row.cells.size(), tableOf(one).columns.size());
        QCOMPARE(tableOf(tables[0]).rows.size(), changes.figures.size());
        QCOMPARE(tableOf(tables[0]).columns[2].title, std::string("C"));
        QCOMPARE(tables[1].title, std::string("kernels and copies that changed most (2 of 2)"));
        QCOMPARE(textsOf(tables[1], 0),
                 (std::vector<std::string>{"gemm", "gemm", "grid 8×1×1, block 128×1×1", "1", "1", "10.0 µs", "15.0 µs",
                                           "+5.00 µs", "shape and order", "–"}));
        QCOMPARE(textsOf(tables[1], 1)[2], std::string("–"));
        QCOMPARE(tables[2].title, std::string("only in A (1 of 1, 1 call)"));
        QCOMPARE(textsOf(tables[2], 0), (std::vector<std::string>{"old", "old", "1", "10.0 µs"}));
        QCOMPARE(tables[3].title, std::string("only in C (1 of 1, 2 calls)"));
        QCOMPARE(deviceSections(changes, 'B', 1)[1].title,
                 std::string("kernels and copies that changed most (1 of 2)"));
    }

    // What a graph traced as a whole computes and communicates is unknown, in tables and in comparisons, and no reason
    // is made of it.
    void wholeGraphsAreUnknown()
    {
        Step graphs;
        graphs.kernel("gemm", 0, 100, -1);
        graphs.kernel("CUDA graph", 100, 400, -1);
        graphs.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 400, 450, -1);
        Step kernels;
        kernels.kernel("gemm", 0, 100, -1);
        kernels.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100, 350, -1);
        const auto whole = graphs.build(), known = kernels.build();
        for (const bool graphsInB : {false, true}) {
            const DeviceChanges changes =
                compareDevices(graphsInB ? *known : *whole, 0, graphsInB ? *whole : *known, 0);
            for (const DeviceFigure& one : changes.figures) {
                const bool split = one.key == "computing_ns" || one.key == "communicating_ns" ||
                                   one.key == "exposed_ns" || one.key.starts_with("class.") ||
                                   one.key.starts_with("communication.");
                QVERIFY2(one.a.has_value() == (!split || graphsInB), one.key.c_str());
                QVERIFY2(one.b.has_value() == (!split || !graphsInB), one.key.c_str());
                QCOMPARE(one.change().has_value(), !split);
            }
            for (const std::string& why : changes.why)
                QVERIFY2(why.find("compute") == std::string::npos || why.find("unknown") != std::string::npos,
                         why.c_str());
            QVERIFY2(changes.why.back().find(graphsInB ? "unknown in B" : "unknown in A") != std::string::npos,
                     changes.why.back().c_str());
            QVERIFY(changes.why.back().find("--cuda-graph-trace=node") != std::string::npos);
            QCOMPARE(textsOf(deviceSections(changes).front(), 1),
                     (graphsInB ? std::vector<std::string>{"Computing", "100.0 µs", "unknown", "–", "–"}
                                : std::vector<std::string>{"Computing", "unknown", "100.0 µs", "–", "–"}));
        }
        QVERIFY(compareDevices(*known, 0, *known, 0).why.empty());
        Run run;
        run.timeline = whole;
        const ReportTable idle = reportTable(*findAnalysis("device_idle"), StepContext(run, 0));
        for (std::size_t c = 0; c < idle.columns.size(); ++c)
            if (const std::string key(idle.columns[c].key);
                key == "computing_ns" || key == "collective_ns" || key == "send_receive_ns")
                QVERIFY2(std::holds_alternative<std::monostate>(idle.rows[0][c]), key.c_str());
    }

    void synchronisingCalls()
    {
        for (const char* name :
             {"cudaStreamSynchronize", "cudaDeviceSynchronize", "cuCtxSynchronize", "hipEventSynchronize"})
            QVERIFY(isSynchronisingCall(name));
        for (const char* name : {"cudaLaunchKernel", "aten::synchronize", "Synchronize", ""})
            QVERIFY(!isSynchronisingCall(name));
    }

    // Within 1 % of what a short Python program counts in the files themselves.
    void realTraces_data()
    {
        QTest::addColumn<QString>("path");
        QTest::newRow("DLRM on eight GPUs") << "kineto/dlrm_8rank";
        QTest::newRow("two GPUs before") << "nsys_sqlite/mfu_2gpu_before.sqlite";
        QTest::newRow("two GPUs after") << "nsys_sqlite/mfu_2gpu_after.sqlite";
    }

    void realTraces()
    {
        QFETCH(QString, path);
        const fs::path at = import_rig::sharedFolder(path.toStdString().c_str());
        if (!fs::exists(at)) QSKIP("the GPU traces are not there (set STAGEWRIGHT_SHARED)");
        QStringList files;
        if (fs::is_directory(at))
            for (const auto& entry : fs::directory_iterator(at)) files << QString::fromStdString(entry.path().string());
        else
            files << QString::fromStdString(at.string());
        files.sort(); // by rank
        QProcess counter;
        counter.start(QStringLiteral("python3"),
                      QStringList{QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/traces/count_devices.py")} + files);
        if (!counter.waitForStarted()) QSKIP("python3 is not there");
        QVERIFY(counter.waitForFinished(60'000));
        QVERIFY2(counter.exitCode() == 0, counter.readAllStandardError().constData());
        const QJsonArray counted = QJsonDocument::fromJson(counter.readAllStandardOutput()).array();

        const ImportResult result = import_rig::imported({at.string()});
        QCOMPARE(result.runs.size(), std::size_t(1));
        // Stored and read again: launch times are in the file.
        QTemporaryDir folder;
        const auto file = RunFile::open(folder.filePath("runs.stagewright").toStdString(), OpenMode::Create);
        QVERIFY(file);
        const auto id = (*file)->add(result.runs[0].run);
        QVERIFY2(id, id ? "" : id.error().message.c_str());
        const auto run = (*file)->read(*id);
        QVERIFY(run);
        const Timeline& timeline = *run->timeline;
        const auto idle = analyseDeviceIdle(timeline, 0);
        const auto time = analyseDeviceTime(timeline, 0);
        const ReportTable copies = reportTable(*findAnalysis("copies"), StepContext(*run, 0));
        QCOMPARE(static_cast<int>(idle.size()), static_cast<int>(counted.size()));
        for (std::size_t r = 0; r < idle.size(); ++r) {
            const QJsonObject expected = counted[static_cast<int>(r)].toObject();
            const double window = expected["window"].toDouble();
            const auto near = [&](const char* name, Nanos is) {
                const double wanted = expected[QLatin1String(name)].toDouble();
                return std::abs(static_cast<double>(is) - wanted) <= 0.01 * wanted + 1e-6 * window;
            };
            Bytes copied = 0;
            for (const auto& row : copies.rows)
                if (std::get<std::int64_t>(row[0]) == static_cast<std::int64_t>(r) &&
                    std::holds_alternative<std::int64_t>(row[4]))
                    copied += std::get<std::int64_t>(row[4]);
            QCOMPARE(static_cast<double>(copied), expected["copied"].toDouble());
            for (std::size_t s = 0; s < deviceStateCount; ++s) {
                const std::string name(toText(static_cast<DeviceState>(s)));
                QVERIFY2(near(name.c_str(), idle[r].time[s]),
                         qPrintable(QStringLiteral("rank %1, %2: %3, counted %4")
                                        .arg(r)
                                        .arg(QString::fromStdString(name))
                                        .arg(idle[r].time[s])
                                        .arg(expected[QString::fromStdString(name)].toDouble())));
            }
            QVERIFY(near("window", idle[r].window));
            QVERIFY(near("communicating", time[r].communicating));
            QVERIFY(near("busy", time[r].busy));
            QVERIFY(near("computing", time[r].computing));
        }
    }
};

QTEST_GUILESS_MAIN(TestDeviceIdle)
#include "tst_device_idle.moc"
