// A run out as Kineto traces and back: every op where and when it was, every message paired, nothing left out and no notes.
#include <QtTest/QtTest>

#include <map>

#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/text/diff.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/memory.h"
#include "traces/export/kineto_writer.h"
#include "traces/import/import.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

// The run's step this many times, one after another with a gap; optionally without its messages' details, as in recordings of the
// CPU engine.
Run repeated(const Run& run, int steps, Nanos gap, bool messages)
{
    const Timeline& base = *run.timeline;
    TimelineBuilder builder(base.provenance(), base.clock(), base.ranks());
    builder.setUnits(base.timeUnit(), base.memoryUnit());
    builder.setSchedule(base.schedule());
    for (int step = 0; step < steps; ++step) {
        const Nanos by = step * (base.end() - base.begin() + gap);
        std::vector<SpanId> ids(base.spans().size(), noSpan);
        for (const Track& track : base.tracks()) {
            if (!messages && track.lane != Lane::Compute) continue;
            const int number = builder.addTrack(track.rank, track.lane, track.name);
            for (SpanId id = track.begin; id < track.end; ++id) {
                Span span = base.spans()[id];
                span.start += by;
                span.end += by;
                span.step = step;
                ids[id] = builder.addSpan(number, span);
            }
        }
        for (const Edge& edge : base.edges())
            if (ids[edge.from] != noSpan && ids[edge.to] != noSpan) builder.addEdge(ids[edge.from], ids[edge.to], edge.kind, edge.arrival + by);
    }
    Run out = run;
    out.timeline = *builder.build();
    out.info.steps = steps;
    return out;
}

using OpTimes = std::map<std::tuple<int, int, Op>, std::pair<Nanos, Nanos>>; // step, rank, op

OpTimes opsOf(const Timeline& timeline)
{
    const Nanos begin = timeline.begin();
    OpTimes times;
    for (const Track& track : timeline.tracks())
        if (track.lane == Lane::Compute)
            for (const Span& span : timeline.spansOf(track)) times[{span.step, track.rank, span.op}] = {span.start - begin, span.end - begin};
    return times;
}

// When what an op waited for on another rank was there.
std::map<std::tuple<int, Op, Op>, Nanos> arrivalsOf(const Timeline& timeline)
{
    std::map<std::tuple<int, Op, Op>, Nanos> arrivals;
    for (const Edge& edge : timeline.edges()) {
        if (edge.kind != EdgeKind::Data || timeline.trackOf(edge.from).rank == timeline.trackOf(edge.to).rank) continue;
        const Span& from = timeline.spans()[edge.from];
        const Span& to = timeline.spans()[edge.to];
        if (isCompute(from.op.kind) && isCompute(to.op.kind)) arrivals[{to.step, from.op, to.op}] = std::max(edge.arrival, from.end) - timeline.begin();
    }
    return arrivals;
}

} // namespace

class TestKinetoRoundTrip : public QObject {
    Q_OBJECT

private slots:
    void nothingIsLost_data()
    {
        QTest::addColumn<QString>("schedule");
        QTest::addColumn<QString>("messages");
        QTest::addColumn<int>("steps");
        for (const char* schedule : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zbv"})
            for (const char* messages : {"of no time", "arrivals", "waits alone", "buffered", "rendezvous"})
                for (const int steps : {1, 3}) QTest::addRow("%s, %s, %d steps", schedule, messages, steps) << schedule << messages << steps;
    }
    void nothingIsLost()
    {
        QFETCH(const QString, schedule);
        QFETCH(const QString, messages);
        QFETCH(const int, steps);
        const Schedule order = *makeSchedule(schedule.toStdString(), Shape{4, 8, 0});
        CostModel::UnitCosts unit;
        unit.latency = messages == "of no time" ? 0 : 0.1;
        const CostModel costs = CostModel::uniform(order, unit);
        const bool lowered = messages == "buffered" || messages == "rendezvous";
        Channels channels;
        if (messages == "rendezvous") channels = {SendMode::Rendezvous, 0, ReceiveMode::Posted};
        const auto made = lowered ? simulatedRun(*lower(order, *parseLowering("pytorch")), costs, channels) : simulatedRun(order, costs);
        QVERIFY(made.has_value());
        const Run run = repeated(*made, steps, rankShare / 2, messages != "waits alone");
        const QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(run, traces).has_value());
        const auto back = importTraces({traces}, {});
        QVERIFY(back && back->runs.size() == 1);
        const ImportedRun& read = back->runs[0];
        for (const std::string& note : read.notes) QFAIL(note.c_str());
        QCOMPARE(read.recognised, schedule.toStdString());
        QVERIFY(diffSchedules(withoutCommunication(*read.run.schedule), order).same());
        QCOMPARE(read.run.info.steps, steps);
        QCOMPARE(read.damaged, 0);
        QCOMPARE(read.unpaired, 0);
        QVERIFY(opsOf(*read.run.timeline) == opsOf(*run.timeline));
        const auto arrivals = arrivalsOf(*run.timeline);
        QCOMPARE(arrivals.size(), static_cast<std::size_t>(steps) * (schedule == "interleaved-1f1b" ? 112 : schedule == "zbv" ? 96
                                                                                                                              : 48));
        const bool drawn = messages != "of no time"; // the simulator draws no messages that take none
        const auto returned = arrivalsOf(*read.run.timeline);
        if (messages == "buffered") { // a message that came before its receive was posted is seen by the receive's end
            QCOMPARE(returned.size(), arrivals.size());
            for (const auto& [key, arrival] : arrivals) QVERIFY(returned.contains(key) && returned.at(key) >= arrival);
        } else if (drawn || !returned.empty()) {
            QVERIFY(returned == arrivals);
        }
        if (drawn) QCOMPARE(read.messages, static_cast<std::int64_t>(arrivals.size()));
    }

    // Memory in use by category, stage and microbatch, and so every peak, is unchanged.
    void memoryIsKept()
    {
        for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b"}) {
            const Schedule order = *makeSchedule(name, Shape{4, 8, 0});
            CostModel costs = CostModel::uniform(order);
            costs.timeUnit = costs.memoryUnit = 1;
            for (std::size_t stage = 0; stage < costs.memory.size(); ++stage) {
                StageMemory& memory = costs.memory[stage];
                memory.activation = 1'000'000 + 10'000 * static_cast<Bytes>(stage);
                memory.freedAtInput = -200'000; // I adds what W needs
                memory.workspace = 50'000;
                memory.boundary = 4'000;
                memory.weight = memory.gradient = 700'000;
            }
            const Run run = *simulatedRun(order, costs);
            const QTemporaryDir folder;
            const std::string traces = folder.filePath("traces").toStdString();
            QVERIFY(writeKinetoFolder(run, traces).has_value());
            const auto back = importTraces({traces}, {});
            QVERIFY(back && back->runs.size() == 1);
            const Timeline& timeline = *back->runs[0].run.timeline;
            using Cell = std::tuple<int, MemoryCategory, int, int>; // rank, category, stage, microbatch
            const auto changesOf = [](const Timeline& of) {
                std::map<Cell, std::map<Nanos, Bytes>> out;
                for (const MemoryEvent& event : of.memory())
                    out[{event.rank, event.category, event.stage, event.microbatch}][event.time - of.begin()] += event.delta;
                return out;
            };
            QVERIFY(!changesOf(*run.timeline).empty());
            QVERIFY2(changesOf(timeline) == changesOf(*run.timeline), name);
            for (int rank = 0; rank < 4; ++rank)
                for (const auto category : {MemoryCategory::Activations, MemoryCategory::Weights, MemoryCategory::Workspace})
                    QCOMPARE(memorySeries(timeline, rank, category).peak, memorySeries(*run.timeline, rank, category).peak);
        }
    }

    // Every figure of the report is what it was, known and unknown ones.
    void figuresAreKept()
    {
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b"}) {
            const Schedule order = *makeSchedule(name, Shape{4, 8, 0});
            CostModel::UnitCosts unit;
            unit.latency = 0.1;
            CostModel costs = CostModel::uniform(order, unit);
            costs.timeUnit = costs.memoryUnit = 1;
            for (StageMemory& memory : costs.memory) memory = {.activation = 1'000'000, .freedAtInput = 200'000, .workspace = 50'000, .boundary = 4'000, .weight = 700'000, .gradient = 700'000};
            const Run run = *simulatedRun(order, costs);
            const QTemporaryDir folder;
            const std::string traces = folder.filePath("traces").toStdString();
            QVERIFY(writeKinetoFolder(run, traces).has_value());
            const auto back = importTraces({traces}, {});
            QVERIFY(back && back->runs.size() == 1);
            const auto before = reportOf(run);
            const auto after = reportOf(back->runs[0].run);
            QVERIFY(before && after);
            const auto figures = before->figures();
            const auto returned = after->figures();
            QVERIFY(figures.size() > 20);
            QCOMPARE(returned.size(), figures.size());
            for (std::size_t i = 0; i < figures.size(); ++i) {
                const std::string what = std::string(name) + " " + figures[i].key;
                QCOMPARE(returned[i].key, figures[i].key);
                QVERIFY2(returned[i].unknown == figures[i].unknown, (what + ": " + figures[i].unknown + " | " + returned[i].unknown).c_str());
                QVERIFY2(returned[i].value == figures[i].value, (what + ": " + std::to_string(figures[i].value) + " | " + std::to_string(returned[i].value)).c_str());
                QVERIFY2(returned[i].byRank == figures[i].byRank, what.c_str());
            }
        }
    }

    // A step's last messages end where the next step begins.
    void stepsWithoutAPause()
    {
        const Schedule order = *makeSchedule("1f1b", Shape{4, 8, 0});
        CostModel::UnitCosts unit;
        unit.latency = 0.1;
        const Run run = repeated(*simulatedRun(order, CostModel::uniform(order, unit)), 3, 0, true);
        const QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(run, traces).has_value());
        const auto back = importTraces({traces}, {});
        QVERIFY(back && back->runs.size() == 1);
        for (const std::string& note : back->runs[0].notes) QFAIL(note.c_str());
        QCOMPARE(back->runs[0].recognised, std::string("1f1b"));
        QVERIFY(opsOf(*back->runs[0].run.timeline) == opsOf(*run.timeline));
    }
};

QTEST_GUILESS_MAIN(TestKinetoRoundTrip)
#include "tst_kineto_round_trip.moc"
