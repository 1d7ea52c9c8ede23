// Editing: from a dragged op to the new picture, at 64 ranks × 512 microbatches × F, I, W (98,304 ops), step by step.
//   QT_QPA_PLATFORM=offscreen bench_edit
#include <QGuiApplication>

#include <benchmark/benchmark.h>

#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/edit/edit_timing.h"
#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/text_sync.h"
#include "widgets/timeline/frame_worker.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_panel.h"

using namespace stagewright;

namespace {

const Schedule& large()
{
    static const Schedule schedule = *makeSchedule("zb-h1", Shape{64, 512, 0});
    return schedule;
}
const CostModel& costs()
{
    static const CostModel model = CostModel::uniform(large());
    return model;
}

void validating(benchmark::State& state)
{
    for (auto _ : state) benchmark::DoNotOptimize(validate(large()));
}
BENCHMARK(validating)->Unit(benchmark::kMillisecond);

void simulating(benchmark::State& state)
{
    for (auto _ : state) benchmark::DoNotOptimize(simulate(large(), costs()));
}
BENCHMARK(simulating)->Unit(benchmark::kMillisecond);

void timelineMade(benchmark::State& state)
{
    const SimResult result = *simulate(large(), costs());
    for (auto _ : state) benchmark::DoNotOptimize(timelineOf(large(), result, costs()));
}
BENCHMARK(timelineMade)->Unit(benchmark::kMillisecond);

void panelMade(benchmark::State& state)
{
    const auto timeline = *simulatedTimeline(large(), costs());
    PanelOptions options;
    options.step = 0;
    options.causes = state.range(0) != 0;
    options.pyramids = state.range(1) != 0;
    for (auto _ : state) benchmark::DoNotOptimize(makePanel(timeline, options));
}
BENCHMARK(panelMade)->Args({1, 1})->Args({0, 1})->Args({0, 0})->Unit(benchmark::kMillisecond);

void framePainted(benchmark::State& state)
{
    PanelOptions options;
    options.step = 0;
    options.causes = false;
    options.pyramids = state.range(0) != 0;
    const auto panel = makePanel(*simulatedTimeline(large(), costs()), options);
    TimelineScene scene;
    scene.panels = {panel};
    scene.size = QSizeF(1600, 600);
    scene.rows = layoutRows({64}, rowMetrics(48, true), false);
    const TimeRange all{0, panel->duration};
    scene.axis = axisIn(QRectF(QPointF(), scene.size), all);
    const Detail detail = state.range(1) != 0 ? Detail::Exact : Detail::Draft;
    for (auto _ : state) benchmark::DoNotOptimize(frameImage(scene, Theme::light(), 1, detail));
}
BENCHMARK(framePainted)->Args({1, 0})->Args({0, 1})->Args({1, 1})->Unit(benchmark::kMillisecond);

// Everything: an op dragged back and forth, the order placed and checked, the picture painted. 0: valid; 1: an order
// with a fault (a forward before the one it needs); 2: ops of all ranks dragged together.
void dragToPicture(benchmark::State& state)
{
    ScheduleEditor editor;
    editor.start(large(), costs());
    const Schedule& order = editor.schedule();
    std::vector<OpPosition> ops;
    const auto& row = order.order[5];
    for (int i = 300; ops.empty(); ++i)
        if (row[static_cast<std::size_t>(i)].kind == (state.range(0) == 1 ? OpKind::InputGrad : OpKind::WeightGrad))
            ops.push_back({5, i});
    if (state.range(0) == 2)
        for (int r = 0; r < order.ranks; ++r)
            for (int i = 400; i < 430; ++i)
                if (order.order[static_cast<std::size_t>(r)][static_cast<std::size_t>(i)].kind == OpKind::WeightGrad)
                    ops.push_back({r, i});
    PanelOptions options;
    options.step = 0;
    options.causes = options.pyramids = false;
    TimelineScene scene;
    scene.size = QSizeF(1600, 600);
    scene.rows = layoutRows({64}, rowMetrics(48, true), false);
    scene.axis = axisIn(QRectF(QPointF(), scene.size), TimeRange{0, editor.figures().makespan});
    int at = 0;
    int faults = 0;
    for (auto _ : state) {
        const int shift = state.range(0) == 1 ? -200 - (at++ % 8) : 1 + (at++ % 8);
        auto moved = moveOps(order, ops, shift);
        editor.preview(std::move(moved->schedule), std::move(moved->positions));
        faults += editor.valid() ? 0 : 1;
        scene.panels = {makePanel(editor.timeline(), options)};
        benchmark::DoNotOptimize(frameImage(scene, Theme::light(), 1, Detail::Exact));
    }
    state.counters["faulty"] = faults > 0 ? 1 : 0;
}
BENCHMARK(dragToPicture)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

// The drop: one undoable change, with the picture of the spans; timelineMade and panelMade are computed afterwards.
void dropToPicture(benchmark::State& state)
{
    ScheduleEditor editor;
    editor.start(large(), costs());
    PanelOptions options;
    options.step = 0;
    options.causes = options.pyramids = false;
    int by = 1;
    for (auto _ : state) {
        editor.apply(QStringLiteral("move"), moveOps(editor.schedule(), {{5, by > 0 ? 301 : 302}}, by));
        by = -by;
        benchmark::DoNotOptimize(makePanel(editor.timeline(), options));
    }
}
BENCHMARK(dropToPicture)->Unit(benchmark::kMillisecond);

void refusalExplained(benchmark::State& state)
{
    for (auto _ : state) benchmark::DoNotOptimize(explainMove(large(), {5, 600}, 300));
}
BENCHMARK(refusalExplained)->Unit(benchmark::kMillisecond);

void textMade(benchmark::State& state)
{
    for (auto _ : state) benchmark::DoNotOptimize(textLinesOf(large()));
}
BENCHMARK(textMade)->Unit(benchmark::kMillisecond);

void textRead(benchmark::State& state)
{
    const QString text = textLinesOf(large())->join(QLatin1Char('\n'));
    for (auto _ : state) benchmark::DoNotOptimize(readTypedOrder(text, large()));
}
BENCHMARK(textRead)->Unit(benchmark::kMillisecond);

} // namespace

int main(int argc, char** argv)
{
    qputenv("QT_QPA_PLATFORM", "offscreen");
    QGuiApplication app(argc, argv);
    loadFonts();
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
