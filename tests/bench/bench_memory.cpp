// Memory charts: preparing rows of millions of events, frames at any zoom, who holds it. 1600×500, one thread,
// offscreen.
#include <map>
#include <random>

#include <QGuiApplication>
#include <benchmark/benchmark.h>

#include "widgets/memory/memory_rows.h"

using namespace stagewright;

namespace {

// `ranks` ranks, each with this many events over a second: microbatches come and go, now and then a gradient.
std::shared_ptr<const TimelinePanel> panelOf(int ranks, std::size_t events)
{
    static std::map<std::pair<int, std::size_t>, std::shared_ptr<const TimelinePanel>> made;
    if (auto& known = made[{ranks, events}]) return known;
    TimelineBuilder builder(Provenance::Imported, "wall", ranks);
    std::mt19937 random(1);
    for (int rank = 0; rank < ranks; ++rank) {
        Span span;
        span.end = 1'000'000'000;
        span.op = makeOp(OpKind::Forward, 0, 0);
        builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
        MemoryEvent event;
        event.rank = static_cast<std::uint16_t>(rank);
        for (std::size_t i = 0; i < events; ++i) {
            event.time = static_cast<Nanos>(i * 1'000'000'000 / events);
            event.microbatch = static_cast<int>(i / 2 % 32);
            event.category = i % 8 < 6 ? MemoryCategory::Activations : MemoryCategory::Gradients;
            event.delta = (i % 2 == 0 ? 1 : -1) * static_cast<Bytes>(1'000'000 + i / 2 % 64 * 1000);
            builder.addMemory(event);
        }
    }
    PanelOptions options;
    options.causes = options.pyramids = false;
    return made[{ranks, events}] = makePanel(*builder.build(), options);
}

MemorySettings stacked()
{
    MemorySettings settings;
    settings.set(MemoryCategory::Gradients, true);
    return settings;
}

// On a worker in the window; 16 ranks × 10⁵ events.
void makeRows(benchmark::State& state)
{
    const auto panel = panelOf(16, 100'000);
    for (auto _ : state) benchmark::DoNotOptimize(memoryRows({panel}, nullptr, stacked()));
}
BENCHMARK(makeRows)->Unit(benchmark::kMillisecond);

// A frame of four charts in view, two categories, share of the time in view: must depend on the pixels, not on the
// events.
void frame(benchmark::State& state)
{
    const auto panel = panelOf(4, static_cast<std::size_t>(state.range(0)));
    static std::map<std::size_t, std::vector<MemoryRow>> made;
    std::vector<MemoryRow>& rows = made[static_cast<std::size_t>(state.range(0))];
    if (rows.empty()) rows = memoryRows({panel}, nullptr, stacked());
    MemoryScene scene;
    scene.size = {1600, 500};
    const Nanos length = panel->duration / state.range(1);
    scene.axis = axisIn(QRectF(0, 0, 1600, 500), {panel->duration / 3, panel->duration / 3 + length});
    if (state.range(1) == 1) scene.axis.range = {0, panel->duration};
    for (const MemoryRow& row : rows)
        scene.rows.push_back({&row, row.title, QStringLiteral("peak"), QString(), QString(), row.top() + 1});
    for (auto _ : state) {
        QImage image(1600, 500, QImage::Format_RGB32);
        QPainter painter(&image);
        paintMemory(painter, scene, Theme::light());
        painter.end();
        benchmark::DoNotOptimize(image.constBits());
    }
}
BENCHMARK(frame)->ArgsProduct({{10'000, 1'000'000}, {1, 100, 10'000}})->Unit(benchmark::kMillisecond);

// Who holds the rank's memory at a random moment of 10⁶ events: part of the 50 ms a tooltip may take.
void holders(benchmark::State& state)
{
    const auto panel = panelOf(4, 1'000'000);
    std::vector<bool> shown(memoryCategoryCount, true);
    static const Holdings holdings(*panel->timeline, 0, shown);
    std::mt19937 random(2);
    for (auto _ : state) benchmark::DoNotOptimize(holdings.at(static_cast<Nanos>(random() % 1'000'000'000)));
}
BENCHMARK(holders)->Unit(benchmark::kMicrosecond);

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
