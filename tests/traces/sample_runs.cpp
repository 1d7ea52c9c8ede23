#include "sample_runs.h"

#include <bit>

#include <fmt/format.h>

namespace stagewright::samples {

namespace {

using Random = std::mt19937;

// One a statement: the order in which a call's arguments are evaluated is the compiler's.
std::int64_t pick(Random& random, std::int64_t least, std::int64_t most)
{
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
}

Op randomOp(Random& random)
{
    const auto kind = static_cast<OpKind>(pick(random, 0, opKindCount - 1));
    const auto stage = static_cast<int>(pick(random, 0, 65535));
    const auto microbatch = static_cast<int>(pick(random, -1, 100000));
    Op op = makeOp(kind, stage, microbatch);
    if (pick(random, 0, 9) == 0) {
        op.count = static_cast<std::uint16_t>(pick(random, 0, 50) == 0 ? 65535 : pick(random, 1, 8));
        op.slice = static_cast<std::int16_t>(pick(random, -1, 32767));
        op.half = static_cast<std::uint8_t>(pick(random, 0, 2));
        op.delay = static_cast<std::uint32_t>(pick(random, 0, 0xffffffff));
    }
    return op;
}

} // namespace

std::shared_ptr<const Timeline> randomTimeline(std::uint32_t seed, int ranks, int steps, int spansPerTrack,
                                               int firstStep)
{
    Random random(seed);
    TimelineBuilder builder(static_cast<Provenance>(pick(random, 0, 3)), "clock " + std::to_string(seed), ranks);
    const auto timeUnit = pick(random, 1, 5);
    builder.setUnits(timeUnit, pick(random, 1, 5));
    const bool withCpu = pick(random, 0, 1) == 1;
    std::vector<std::uint32_t> labels{0};
    for (int i = 0; i < 5; ++i) labels.push_back(builder.intern(fmt::format("label {} é\n", i)));
    SpanId spans = 0;
    for (int rank = 0; rank < ranks; ++rank) {
        for (const Lane lane : {Lane::Compute, Lane::Send, Lane::Other}) {
            const int track = builder.addTrack(rank, lane, pick(random, 0, 1) == 0 ? std::string() : "second");
            if (lane == Lane::Other && rank == 1) continue; // a track without spans
            Nanos time = pick(random, -1000, 1000);
            for (int i = 0; i < spansPerTrack; ++i) {
                Span span;
                span.op = randomOp(random);
                span.step = firstStep + i * steps / spansPerTrack;
                span.start = time + pick(random, 0, i % 50 == 0 ? 100'000'000 : 300);
                const auto times = pick(random, 0, 5);
                span.end = span.start + times * pick(random, 0, 100000);
                span.label =
                    labels[static_cast<std::size_t>(pick(random, 0, 20) < 15 ? 0 : pick(random, 0, 5))] & 0xffffffu;
                span.flags = pick(random, 0, 9) == 0 ? static_cast<unsigned>(SpanDiscarded) : 0u;
                builder.addSpan(track, span, withCpu ? pick(random, -1, 100000) : -1);
                time = lane == Lane::Compute ? span.end : span.start;
                ++spans;
            }
        }
    }
    for (SpanId i = 0; i < spans / 2 && spans > 1; ++i) {
        const auto from = static_cast<SpanId>(pick(random, 0, spans - 1));
        const auto to = static_cast<SpanId>(pick(random, 0, spans - 1));
        const auto kind = static_cast<EdgeKind>(pick(random, 0, 3));
        builder.addEdge(from, to, kind, pick(random, -1'000'000, 1'000'000'000));
    }
    for (int i = 0; i < spansPerTrack; ++i) {
        MemoryEvent event;
        event.time = pick(random, -1000, 100000);
        event.delta = pick(random, -1'000'000'000'000, 1'000'000'000'000);
        event.microbatch = static_cast<std::int32_t>(pick(random, -1, 50));
        event.step = static_cast<std::int32_t>(firstStep + pick(random, 0, std::max(0, steps - 1)));
        event.rank = static_cast<std::uint16_t>(pick(random, 0, ranks - 1));
        event.stage = static_cast<std::uint16_t>(pick(random, 0, 65535));
        event.category = static_cast<MemoryCategory>(pick(random, 0, memoryCategoryCount - 1));
        builder.addMemory(event);
    }
    for (int rank = -1; rank < ranks; ++rank) {
        const int counter = builder.addCounter(rank, fmt::format("counter {}", rank), "unit");
        for (int i = 0; i < spansPerTrack / 2; ++i)
            builder.addSample(counter, i * 7 + rank, std::uniform_real_distribution<double>(-1e9, 1e9)(random));
    }
    return builder.build().value();
}

Run randomRun(std::uint32_t seed)
{
    Random random(seed * 7919 + 1);
    Run run;
    const int ranks = static_cast<int>(pick(random, 1, 4));
    const int steps = static_cast<int>(pick(random, 1, 4));
    run.timeline = randomTimeline(seed, ranks, steps, static_cast<int>(pick(random, 0, 6000)));
    RunInfo& info = run.info;
    info.name = fmt::format("run {} \u00e9", seed);
    info.scheduleName = "1f1b";
    info.note = "line one\nline \"two\"";
    info.createdUnixMs = pick(random, 0, 2'000'000'000'000);
    info.state = pick(random, 0, 1) == 0 ? RunState::Complete : RunState::Interrupted;
    info.provenance = run.timeline->provenance();
    info.clock = run.timeline->clock();
    info.ranks = ranks;
    info.stages = static_cast<int>(pick(random, 1, 9));
    info.microbatches = static_cast<int>(pick(random, 1, 9));
    info.steps = run.timeline->steps();
    info.warmupSteps = static_cast<int>(pick(random, 0, 2));
    info.spanCount = static_cast<std::int64_t>(run.timeline->spans().size());
    run.configuration = {{"b", "2"}, {"a", "1"}, {"", "empty key"}, {"b", "twice"}};
    run.environment = {{"cpu", "one"}, {"note", ""}};
    if (pick(random, 0, 1) == 1) {
        Schedule s = schedule("zb-h1", 4, static_cast<int>(pick(random, 1, 9)));
        s.order[1].push_back(makeFiller(1, 5000));
        s.paired.assign(4, {});
        s.paired[2] = {0, 3};
        s.name = "edited\tname";
        run.costs = unitCosts(s, 0.5);
        run.schedule = std::make_shared<const Schedule>(std::move(s));
    }
    const double odd = std::numeric_limits<double>::quiet_NaN();
    run.metrics = {{"loss", "nats", {5.5, 0.1 + 0.2, odd, 1e-300}}, {"step_time_ns", "ns", {1, 2}}, {"none", "", {}}};
    return run;
}

std::string difference(const Timeline& a, const Timeline& b)
{
    const auto differs = [](const char* what, std::size_t at = 0) { return fmt::format("{} {}", what, at); };
    if (a.provenance() != b.provenance()) return differs("provenance");
    if (a.clock() != b.clock()) return differs("clock");
    if (a.ranks() != b.ranks()) return differs("ranks");
    if (a.steps() != b.steps()) return differs("steps");
    if (a.begin() != b.begin() || a.end() != b.end()) return differs("bounds");
    if (a.timeUnit() != b.timeUnit() || a.memoryUnit() != b.memoryUnit()) return differs("units");
    if (a.tracks().size() != b.tracks().size()) return differs("track count");
    for (std::size_t i = 0; i < a.tracks().size(); ++i) {
        const Track& x = a.tracks()[i];
        const Track& y = b.tracks()[i];
        if (std::tie(x.rank, x.lane, x.name, x.begin, x.end) != std::tie(y.rank, y.lane, y.name, y.begin, y.end))
            return differs("track", i);
    }
    if (a.spans().size() != b.spans().size()) return differs("span count");
    if (a.hasCpuTime() != b.hasCpuTime()) return differs("has CPU time");
    for (std::size_t i = 0; i < a.spans().size(); ++i) {
        const Span& x = a.spans()[i];
        const Span& y = b.spans()[i];
        if (std::tie(x.start, x.end, x.op, x.step) != std::tie(y.start, y.end, y.op, y.step)) return differs("span", i);
        if (x.flags != y.flags || a.labelOf(x) != b.labelOf(y) || a.shapeOf(x) != b.shapeOf(y) ||
            a.nameOf(x) != b.nameOf(y))
            return differs("label", i);
        const auto id = static_cast<SpanId>(i);
        if (a.hasCpuTime() && a.cpuTime(id) != b.cpuTime(id)) return differs("CPU time", i);
    }
    if (!std::ranges::equal(a.edges(), b.edges())) return differs("edges");
    const auto sameEvent = [](const MemoryEvent& x, const MemoryEvent& y) {
        return std::tie(x.time, x.delta, x.microbatch, x.step, x.rank, x.stage, x.category) ==
               std::tie(y.time, y.delta, y.microbatch, y.step, y.rank, y.stage, y.category);
    };
    if (!std::ranges::equal(a.memory(), b.memory(), sameEvent)) return differs("memory");
    if (a.counters().size() != b.counters().size()) return differs("counter count");
    for (std::size_t i = 0; i < a.counters().size(); ++i) {
        const Counter& x = a.counters()[i];
        const Counter& y = b.counters()[i];
        if (std::tie(x.rank, x.name, x.unit) != std::tie(y.rank, y.name, y.unit)) return differs("counter", i);
        const auto sameSample = [](const CounterSample& s, const CounterSample& t) {
            return s.time == t.time && std::bit_cast<std::uint64_t>(s.value) == std::bit_cast<std::uint64_t>(t.value);
        };
        if (!std::ranges::equal(x.samples, y.samples, sameSample)) return differs("samples", i);
    }
    const auto sameMark = [](const StepMark& x, const StepMark& y) {
        return std::tie(x.rank, x.step, x.begin, x.end) == std::tie(y.rank, y.step, y.begin, y.end);
    };
    if (!std::ranges::equal(a.stepMarks(), b.stepMarks(), sameMark)) return differs("step marks");
    if ((a.schedule() == nullptr) != (b.schedule() == nullptr)) return differs("schedule");
    if (a.schedule() && (*a.schedule() != *b.schedule() || a.schedule()->name != b.schedule()->name))
        return differs("schedule");
    return {};
}

std::string difference(const Run& a, const Run& b)
{
    const auto infoOf = [](const RunInfo& i) {
        return std::tie(i.name, i.scheduleName, i.note, i.createdUnixMs, i.state, i.provenance, i.clock, i.ranks,
                        i.stages, i.microbatches, i.steps, i.warmupSteps, i.spanCount, i.damagedBlocks);
    };
    if (infoOf(a.info) != infoOf(b.info)) return "info";
    if (a.configuration != b.configuration) return "configuration";
    if (a.environment != b.environment) return "environment";
    if ((a.schedule == nullptr) != (b.schedule == nullptr)) return "has schedule";
    if (a.schedule && (*a.schedule != *b.schedule || a.schedule->name != b.schedule->name)) return "schedule";
    if (a.costs != b.costs) return "costs";
    if (a.metrics.size() != b.metrics.size()) return "metric count";
    for (std::size_t i = 0; i < a.metrics.size(); ++i) {
        const auto same = [](double x, double y) { return (x != x && y != y) || x == y; };
        if (a.metrics[i].name != b.metrics[i].name || a.metrics[i].unit != b.metrics[i].unit ||
            !std::ranges::equal(a.metrics[i].values, b.metrics[i].values, same))
            return "metric " + a.metrics[i].name;
    }
    return difference(*a.timeline, *b.timeline);
}

} // namespace stagewright::samples
