// Timeline drawing: frames at several sizes, hit test, building. Offscreen, one thread; with their targets.
//   QT_QPA_PLATFORM=offscreen bench_timeline            (--benchmark_repetitions=30
//                                                       --benchmark_report_aggregates_only=true for medians)
#include <map>
#include <random>

#include <QGuiApplication>

#include <benchmark/benchmark.h>

#include "widgets/timeline/frame_pan.h"
#include "widgets/timeline/frame_worker.h"
#include "widgets/timeline/timeline_painter.h"

using namespace stagewright;

namespace {

constexpr double frameWidth = 1600, frameHeight = 900;

// A panel straight from lanes: ops of about 100 µs, one gap in four, `lanes` × `perLane` slices.
std::shared_ptr<const TimelinePanel> panelOf(int lanes, std::size_t perLane)
{
    static std::map<std::pair<int, std::size_t>, std::shared_ptr<const TimelinePanel>> made;
    auto& panel = made[{lanes, perLane}];
    if (panel) return panel;
    made.erase(made.begin(), made.end()); // one at a time: the large ones are gigabytes
    auto fresh = std::make_shared<TimelinePanel>();
    static const auto timeline = [] {
        TimelineBuilder builder(Provenance::Simulated, "model", 1);
        Span span;
        span.end = 1;
        builder.addSpan(builder.addTrack(0, Lane::Compute), span);
        return builder.build().value_or(nullptr);
    }();
    fresh->timeline = timeline;
    std::mt19937 random(1);
    for (int r = 0; r < lanes; ++r) {
        PanelRank rank;
        rank.rank = r;
        rank.title = QStringLiteral("Rank %1").arg(r);
        rank.compute.reserve(perLane);
        Nanos t = 0;
        for (std::size_t i = 0; i < perLane; ++i) {
            Span span;
            t += random() % 4 == 0 ? static_cast<Nanos>(random() % 200'000) : 0;
            span.start = t;
            t += 50'000 + static_cast<Nanos>(random() % 100'000);
            span.end = t;
            span.op = makeOp(std::array{OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad}[random() % 3], 0,
                             static_cast<int>(i % 64));
            rank.compute.append(span, 0, 0);
        }
        fresh->duration = std::max(fresh->duration, t);
        rank.compute.buildPyramid();
        fresh->ranks.push_back(std::move(rank));
    }
    fresh->sliceCount = static_cast<std::int64_t>(perLane) * lanes;
    made[{lanes, perLane}] = fresh;
    return fresh;
}

TimelineScene sceneOf(const std::shared_ptr<const TimelinePanel>& panel, double rowHeight, double shareInView)
{
    TimelineScene scene;
    scene.panels = {panel};
    scene.size = {frameWidth, frameHeight};
    scene.rows = layoutRows({static_cast<int>(panel->ranks.size())}, rowMetrics(rowHeight, rowHeight > 8), false);
    const Nanos duration = static_cast<Nanos>(static_cast<double>(panel->duration) * shareInView);
    const Nanos begin = (panel->duration - duration) / 3;
    scene.axis = axisIn(QRectF(0, 0, frameWidth, frameHeight), {begin, begin + std::max<Nanos>(duration, 10)});
    return scene;
}

void frames(benchmark::State& state, const TimelineScene& scene, Detail detail)
{
    for (auto _ : state) {
        const QImage image = frameImage(scene, Theme::light(), 1, detail);
        benchmark::DoNotOptimize(image.constBits());
    }
}

// 8 lanes, 10⁷ slices in total, any zoom: ≤ 3 ms
void eightLanes(benchmark::State& state)
{
    const auto panel = panelOf(8, static_cast<std::size_t>(state.range(0)) / 8);
    const double share = 1.0 / static_cast<double>(state.range(1));
    const TimelineScene scene = sceneOf(panel, 48, share);
    frames(state, scene, scene.visibleSlices() > 50'000 ? Detail::Draft : Detail::Exact);
    state.counters["slices_in_view"] = static_cast<double>(scene.visibleSlices());
}
BENCHMARK(eightLanes)
    ->ArgsProduct({{100'000, 10'000'000}, {1, 10, 100, 1000, 10'000, 100'000}})
    ->Unit(benchmark::kMillisecond);

// 1024 lanes, 10⁷ slices in total, full view, draft: ≤ 16 ms
void manyLanesDraft(benchmark::State& state) { frames(state, sceneOf(panelOf(1024, 9766), 0.8, 1), Detail::Draft); }
BENCHMARK(manyLanesDraft)->Unit(benchmark::kMillisecond);

// the same, exact (on a worker): ≤ 250 ms
void manyLanesExact(benchmark::State& state) { frames(state, sceneOf(panelOf(1024, 9766), 0.8, 1), Detail::Exact); }
BENCHMARK(manyLanesExact)->Unit(benchmark::kMillisecond);

// the same ranks in 32 groups, as they are shown first: draft and exact
void groupedRanks(benchmark::State& state)
{
    TimelineScene scene = sceneOf(panelOf(1024, 9766), 48, 1);
    scene.rows = layoutRows(std::make_shared<const RowPlan>(planRows(scene.panels, {})), rowMetrics(48, true), false);
    scene.groupLook = state.range(1) != 0 ? GroupLook::Range : GroupLook::Kinds;
    frames(state, scene, state.range(0) != 0 ? Detail::Exact : Detail::Draft);
}
BENCHMARK(groupedRanks)->ArgNames({"exact", "range"})->ArgsProduct({{0, 1}, {0, 1}})->Unit(benchmark::kMillisecond);

// 1024 lanes, 10⁵ slices in total, full view: ≤ 6 ms
void manyLanesFew(benchmark::State& state) { frames(state, sceneOf(panelOf(1024, 98), 0.8, 1), Detail::Exact); }
BENCHMARK(manyLanesFew)->Unit(benchmark::kMillisecond);

// 1024 lanes of 10⁷ slices, 1 % of the time: the cost of zooming in
void manyLanesClose(benchmark::State& state) { frames(state, sceneOf(panelOf(1024, 9766), 0.8, 0.01), Detail::Exact); }
BENCHMARK(manyLanesClose)->Unit(benchmark::kMillisecond);

// about 1,000 labels in view: ≤ 4 ms
void closeWithLabels(benchmark::State& state)
{
    const auto panel = panelOf(16, 62'500);
    frames(state, sceneOf(panel, 38, 62.0 / 62'500), Detail::Exact);
}
BENCHMARK(closeWithLabels)->Unit(benchmark::kMillisecond);

// hit test: ≤ 5 µs
void hitTest(benchmark::State& state)
{
    const TimelineScene scene = sceneOf(panelOf(8, 1'250'000), 48, 0.001);
    std::mt19937 random(2);
    for (auto _ : state) {
        benchmark::DoNotOptimize(scene.spanAt(
            QPointF(160 + static_cast<double>(random() % 1400), 30 + static_cast<double>(random() % 500))));
    }
}
BENCHMARK(hitTest)->Unit(benchmark::kMicrosecond);

// 16 px pan of a painted frame: ≤ 2 ms. 8 lanes and 1,024 lanes of 10⁷ slices in total, draft and exact.
void pan(benchmark::State& state)
{
    const int lanes = static_cast<int>(state.range(0));
    const auto panel = panelOf(lanes, static_cast<std::size_t>(10'000'000 / lanes));
    const Detail detail = state.range(1) != 0 ? Detail::Exact : Detail::Draft;
    TimelineScene scene = sceneOf(panel, lanes > 64 ? 0.8 : 48, 0.5);
    scene.axis.range = pannedBy(scene.axis.range, 0, scene.axis.width, 1);
    TimelineCanvas canvas{frameImage(scene, Theme::light(), 1, detail), detail, scene.axis};
    double direction = 16;
    std::int64_t moved = 0;
    for (auto _ : state) {
        scene.axis.range = pannedBy(scene.axis.range, direction, scene.axis.width, 1);
        if (scene.axis.range.end > panel->duration || scene.axis.range.begin < 0) direction = -direction;
        moved += panFrame(canvas, scene, Theme::light(), 1) ? 1 : 0;
    }
    state.counters["moved"] = benchmark::Counter(static_cast<double>(moved), benchmark::Counter::kAvgIterations);
}
BENCHMARK(pan)->ArgsProduct({{8, 1024}, {0, 1}})->Unit(benchmark::kMillisecond);

std::vector<Span> spansOf(std::size_t count)
{
    std::vector<Span> spans(count);
    std::mt19937 random(3);
    Nanos t = 0;
    for (Span& span : spans) {
        t += random() % 4 == 0 ? 100'000 : 0;
        span.start = t;
        t += 50'000 + static_cast<Nanos>(random() % 100'000);
        span.end = t;
        span.op = makeOp(OpKind::Forward, 0, 1);
    }
    return spans;
}

// slices and pyramid: ≤ 100 ns and ≤ 28 B a slice
void build(benchmark::State& state)
{
    const std::vector<Span> spans = spansOf(1'000'000);
    std::size_t bytes = 0;
    for (auto _ : state) {
        LaneData lane;
        lane.reserve(spans.size());
        for (std::size_t i = 0; i < spans.size(); ++i) lane.append(spans[i], static_cast<SpanId>(i), 0);
        lane.buildPyramid();
        bytes = lane.memoryUse();
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(spans.size()));
    state.counters["bytes_a_slice"] = static_cast<double>(bytes) / static_cast<double>(spans.size());
}
BENCHMARK(build)->Unit(benchmark::kMillisecond);

// appending in batches of 64 with the pyramid kept up to date: ≤ 250 ns a slice
void append(benchmark::State& state)
{
    const std::vector<Span> spans = spansOf(256'000);
    for (auto _ : state) {
        LaneData lane;
        for (std::size_t i = 0; i < spans.size(); ++i) {
            lane.append(spans[i], static_cast<SpanId>(i), 0);
            if (i % 64 == 63) lane.buildPyramid();
        }
        benchmark::DoNotOptimize(lane.size());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(spans.size()));
}
BENCHMARK(append)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
    QGuiApplication application(argc, argv);
    loadFonts();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
