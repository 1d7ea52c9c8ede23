// A run out as Kineto traces and back: every op where and when it was, every message paired, nothing left out and no
// notes.
#include <QtTest/QtTest>

#include <cmath>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/text/diff.h"
#include "schedules/timeline/timeline_of.h"
#include "tests/traces/import_rig.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/exposed_communication.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/memory.h"
#include "traces/export/chrome_json.h"
#include "traces/export/kineto_writer.h"
#include "traces/import/import.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

// The run's step this many times, one after another with a gap; optionally without its messages' details, as in
// recordings of the CPU engine.
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
            if (ids[edge.from] != noSpan && ids[edge.to] != noSpan)
                builder.addEdge(ids[edge.from], ids[edge.to], edge.kind, edge.arrival + by);
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
            for (const Span& span : timeline.spansOf(track))
                times[{span.step, track.rank, span.op}] = {span.start - begin, span.end - begin};
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
        if (isCompute(from.op.kind) && isCompute(to.op.kind))
            arrivals[{to.step, from.op, to.op}] = std::max(edge.arrival, from.end) - timeline.begin();
    }
    return arrivals;
}

// What a rank's file holds on devices, by what tools join and group.
struct DeviceContent {
    // category, name, stream, duration, grid and block
    std::multiset<std::tuple<std::string, std::string, int, Nanos, std::string>> work;
    // by correlation: how many calls, kernels and copies, ends of arrows
    std::map<std::int64_t, int> launches, works, starts, ends;
    std::vector<std::string> steps; // of the host
    bool hasRange(const std::string& name) const { return ranges.contains(name); }
    std::set<std::string> ranges;
};

DeviceContent contentOf(const std::string& path)
{
    DeviceContent content;
    const auto trace = nlohmann::json::parse(import_rig::textOf(path));
    for (const auto& event : trace.is_array() ? trace : trace.at("traceEvents")) {
        const std::string category = event.value("cat", ""), phase = event.value("ph", ""),
                          name = event.value("name", "");
        const nlohmann::json args = event.value("args", nlohmann::json::object());
        if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
            content.work.insert({category, name, args.value("stream", -1),
                                 static_cast<Nanos>(std::llround(event.at("dur").get<double>() * 1000)),
                                 args.contains("grid")
                                     ? args.at("grid").dump() + args.value("block", nlohmann::json()).dump()
                                     : std::string()});
            ++content.works[args.value("correlation", std::int64_t{-1})];
        }
        if ((category == "cuda_runtime" || category == "cuda_driver") && args.contains("correlation"))
            ++content.launches[args.at("correlation").get<std::int64_t>()];
        if (category == "ac2g") ++(phase == "s" ? content.starts : content.ends)[event.at("id").get<std::int64_t>()];
        if (category == "user_annotation") content.ranges.insert(name);
        if (category == "user_annotation" && name.starts_with("ProfilerStep")) content.steps.push_back(name);
    }
    return content;
}

// Two ranks' work of two steps: kernels on two streams, copies and fills, a collective, calls in and out of ranges, one
// without a call, a host that waits.
std::string gpuText(int rank)
{
    std::string text = "{'distributedInfo':{'rank':" + std::to_string(rank) + ",'world_size':2},'traceEvents':[";
    bool first = true;
    const auto add = [&text, &first](const std::string& event) {
        text += (first ? "" : ",") + event;
        first = false;
    };
    int id = 10;
    const auto host = [&](const std::string& category, const std::string& name, int thread, int start, int length,
                          const std::string& args = {}) {
        add("{'ph':'X','cat':'" + category + "','name':'" + name + "','pid':900,'tid':" + std::to_string(thread) +
            ",'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) + ",'args':{" + args + "}}");
    };
    const auto work = [&](const std::string& category, const std::string& name, int thread, int called, int stream,
                          int start, int length) {
        ++id;
        const std::string correlation = "'correlation':" + std::to_string(id);
        if (called >= 0)
            host("cuda_runtime", category == "kernel" ? "cudaLaunchKernel" : "cudaMemsetAsync", thread, called, 2,
                 correlation);
        add("{'ph':'X','cat':'" + category + "','name':'" + name + "','pid':" + std::to_string(rank) +
            ",'tid':" + std::to_string(stream) + ",'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) +
            ",'args':{'device':" + std::to_string(rank) + ",'stream':" + std::to_string(stream) + "," + correlation +
            "}}");
    };
    for (int step = 0; step < 2; ++step) {
        const int at = 1000 * step;
        host("user_annotation", "ProfilerStep#" + std::to_string(40 + step), 901, at + 100, 890);
        host("user_annotation", "## forward ##", 901, at + 110, 200);
        host("user_annotation", "inner", 901, at + 150, 50);
        work("gpu_memset", "Memset (Device)", 901, at + 115, 7, at + 120, 4);
        work("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 901, at + 118, 22, at + 122, 30);
        work("kernel", "gemm", 901, at + 155, 7, at + 160, 90);
        work("kernel", "gelu", 901, at + 210, 7, at + 260, 40);
        work("kernel", "ncclDevKernel_AllReduce_Sum_f32(x)", 902, at + 300, 84, at + 310, 100 + 20 * rank);
        work("kernel", "gemm", 902, at + 350, 7, at + 500, 60);
        host("cuda_runtime", "cudaStreamSynchronize", 902, at + 420, 40);
        work("kernel", "lost", 901, -1, 7, at + 600, 10);
        work("kernel", "axpy", 901, at + 690, 7, at + 700, 20);
    }
    return import_rig::quoted(text + "]}");
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
                for (const int steps : {1, 3})
                    QTest::addRow("%s, %s, %d steps", schedule, messages, steps) << schedule << messages << steps;
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
        const auto made = lowered ? simulatedRun(*lower(order, *parseLowering("pytorch")), costs, channels)
                                  : simulatedRun(order, costs);
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
        QCOMPARE(arrivals.size(), static_cast<std::size_t>(steps) * (schedule == "interleaved-1f1b" ? 112
                                                                     : schedule == "zbv"            ? 96
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

    // What devices did is kept of a trace without ops, of one with ops timed by their kernels, and of a recorded one.
    void devicesAreKept_data()
    {
        QTest::addColumn<QStringList>("files");
        QTest::newRow("ranges alone") << QStringList{};
        QTest::newRow("ops") << QStringList{QString::fromStdString(import_rig::dataFile("gpu_rank4.json")),
                                            QString::fromStdString(import_rig::dataFile("gpu_rank6.json"))};
        if (const auto folder = import_rig::sharedFolder("kineto/dlrm_8rank"); std::filesystem::exists(folder))
            QTest::newRow("DLRM") << QStringList{QString::fromStdString(folder.string())};
        if (const auto file = import_rig::sharedFolder("nsys_sqlite/mfu_2gpu_before.sqlite");
            std::filesystem::exists(file))
            QTest::newRow("Nsight") << QStringList{QString::fromStdString(file.string())};
    }
    void devicesAreKept()
    {
        QFETCH(const QStringList, files);
        const QTemporaryDir folder;
        std::vector<std::string> names;
        for (const QString& file : files) names.push_back(file.toStdString());
        for (int rank = 0; rank < 2 && files.isEmpty(); ++rank) {
            names.push_back(folder.filePath(QStringLiteral("gpu_rank%1.json").arg(rank)).toStdString());
            std::ofstream(names.back()) << gpuText(rank);
        }
        const auto first = importTraces(names, {});
        QVERIFY(first && first->runs.size() == 1);
        const Timeline& before = *first->runs[0].run.timeline;
        const std::string traces = folder.filePath("traces").toStdString();
        const auto counts = writeKinetoFolder(first->runs[0].run, traces);
        QVERIFY(counts.has_value());
        QCOMPARE(static_cast<std::size_t>(counts->launches), import_rig::countEdges(before, EdgeKind::Launch));
        std::int64_t launched = 0;
        std::size_t works = 0;
        for (int rank = 0; rank < before.ranks(); ++rank) {
            const DeviceContent content = contentOf(traces + "/rank" + std::to_string(rank) + ".pt.trace.json");
            for (const auto& [correlation, count] : content.launches)
                QVERIFY2(count == 1 && content.works.contains(correlation) && content.starts.contains(correlation),
                         std::to_string(correlation).c_str());
            QVERIFY(content.starts == content.ends);
            QCOMPARE(content.starts.size(), content.launches.size());
            // each once
            QCOMPARE(std::set<std::string>(content.steps.begin(), content.steps.end()).size(), content.steps.size());
            launched += static_cast<std::int64_t>(content.launches.size());
            works += content.work.size();
            if (!files.isEmpty()) continue;
            const DeviceContent original = contentOf(names[static_cast<std::size_t>(rank)]);
            QVERIFY(content.work == original.work); // categories and streams among them
            QVERIFY(content.steps == original.steps);
            QVERIFY(content.ranges == original.ranges);
        }
        QCOMPARE(launched, counts->launches);
        QVERIFY(launched > 0);
        QCOMPARE(works, import_rig::countLane(before, Lane::Kernel) + import_rig::countLane(before, Lane::Copy));

        const auto second = importTraces({traces}, {});
        QVERIFY(second && second->runs.size() == 1);
        const Timeline& after = *second->runs[0].run.timeline;
        QCOMPARE(after.steps(), before.steps());
        QCOMPARE(second->runs[0].messages, first->runs[0].messages);
        QCOMPARE(second->runs[0].kernelsUnderOps, first->runs[0].kernelsUnderOps);
        for (int step = 0; step < before.steps(); ++step) {
            const auto idle = analyseDeviceIdle(before, step), idleAfter = analyseDeviceIdle(after, step);
            QCOMPARE(idleAfter.size(), idle.size());
            for (std::size_t rank = 0; rank < idle.size(); ++rank) {
                QVERIFY(idleAfter[rank].time == idle[rank].time);
                QCOMPARE(idleAfter[rank].lateLaunches, idle[rank].lateLaunches);
            }
            const auto exposed = analyseExposedCommunication(before, step),
                       exposedAfter = analyseExposedCommunication(after, step);
            QCOMPARE(exposedAfter.size(), exposed.size());
            for (std::size_t i = 0; i < exposed.size(); ++i) {
                QCOMPARE(exposedAfter[i].name, exposed[i].name);
                QCOMPARE(exposedAfter[i].calls, exposed[i].calls);
                QCOMPARE(exposedAfter[i].total, exposed[i].total);
                QCOMPARE(exposedAfter[i].hidden, exposed[i].hidden);
                QCOMPARE(exposedAfter[i].bytes, exposed[i].bytes);
                QVERIFY(exposedAfter[i].least == exposed[i].least);
            }
            const ReportTable copies = reportTable(*findAnalysis("copies"), StepContext(first->runs[0].run, step)),
                              copiesAfter =
                                  reportTable(*findAnalysis("copies"), StepContext(second->runs[0].run, step));
            QVERIFY(copiesAfter.rows == copies.rows); // with their bytes
        }
        // Who launched what: the same names.
        const auto launchers = [](const Timeline& timeline) {
            std::multiset<std::pair<std::string, std::string>> out;
            for (const Edge& edge : timeline.edges())
                if (edge.kind == EdgeKind::Launch)
                    out.insert(
                        {timeline.nameOf(timeline.spans()[edge.from]), timeline.nameOf(timeline.spans()[edge.to])});
            return out;
        };
        if (files.isEmpty() || first->runs[0].ops == 0) QVERIFY(launchers(after) == launchers(before));
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
                    out[{event.rank, event.category, event.stage, event.microbatch}][event.time - of.begin()] +=
                        event.delta;
                return out;
            };
            QVERIFY(!changesOf(*run.timeline).empty());
            QVERIFY2(changesOf(timeline) == changesOf(*run.timeline), name);
            for (int rank = 0; rank < 4; ++rank)
                for (const auto category :
                     {MemoryCategory::Activations, MemoryCategory::Weights, MemoryCategory::Workspace})
                    QCOMPARE(memorySeries(timeline, rank, -1, category).peak,
                             memorySeries(*run.timeline, rank, -1, category).peak);
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
            for (StageMemory& memory : costs.memory)
                memory = {.activation = 1'000'000,
                          .freedAtInput = 200'000,
                          .workspace = 50'000,
                          .boundary = 4'000,
                          .weight = 700'000,
                          .gradient = 700'000};
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
                QVERIFY2(returned[i].unknown == figures[i].unknown,
                         (what + ": " + figures[i].unknown + " | " + returned[i].unknown).c_str());
                QVERIFY2(returned[i].value == figures[i].value,
                         (what + ": " + std::to_string(figures[i].value) + " | " + std::to_string(returned[i].value))
                             .c_str());
                QVERIFY2(returned[i].byRank == figures[i].byRank, what.c_str());
            }
        }
    }

    // Replicas that share their state: gathers and reductions are beside compute again with their bytes, and what
    // waited for them does.
    void gathersAreKept_data()
    {
        QTest::addColumn<int>("steps");
        QTest::addColumn<bool>("chrome");
        for (const int steps : {1, 3})
            for (const bool chrome : {false, true})
                QTest::addRow("%d steps, %s", steps, chrome ? "chrome" : "kineto") << steps << chrome;
    }
    void gathersAreKept()
    {
        QFETCH(const int, steps);
        QFETCH(const bool, chrome);
        ShardRules rules;
        rules.gather = GatherRule::Microbatch;
        rules.reduce = ReduceRule::Overlapped;
        const Schedule both =
            overReplicas(*addShardOps(*makeSchedule("1f1b", Shape{2, 3}), ShardLevel::Weights, rules), 2).value();
        CostModel costs = CostModel::uniform(both);
        costs.timeUnit = costs.memoryUnit = 1;
        costs.replicas = 2;
        costs.sharding.level = ShardLevel::Weights;
        costs.links.collectives = ResourceUse::Beside;
        for (int stage = 0; stage < 2; ++stage) {
            costs.memory[static_cast<std::size_t>(stage)].weight =
                costs.memory[static_cast<std::size_t>(stage)].gradient = 1000 * (stage + 1);
            costs.setDuration(OpKind::Unshard, stage, rankShare / 4);
            costs.setDuration(OpKind::ReduceGrad, stage, rankShare / 3);
            costs.setDuration(OpKind::Optimizer, stage, rankShare / 5);
        }
        const Run run = repeated(*simulatedRun(both, costs), steps, rankShare / 2, true);
        const QTemporaryDir folder;
        const std::string traces = folder.filePath(chrome ? "trace.json" : "traces").toStdString();
        QVERIFY(chrome ? writeChromeJsonFile(run, traces).has_value() : writeKinetoFolder(run, traces).has_value());
        const auto back = importTraces({traces}, {});
        QVERIFY(back && back->runs.size() == 1);
        const Run& read = back->runs[0].run;
        QCOMPARE(read.info.steps, steps);
        const auto besideOf = [](const Timeline& of) {
            std::map<std::tuple<int, Lane, int, Op, Nanos>, Nanos> out;
            for (const Track& track : of.tracks())
                for (const Span& span : of.spansOf(track))
                    if (isCollectiveLane(track.lane) && span.op.kind != OpKind::Reshard)
                        out[{span.step, track.lane, track.rank, span.op, span.start - of.begin()}] = span.duration();
            return out;
        };
        QCOMPARE(besideOf(*read.timeline).size(), static_cast<std::size_t>(28 * steps));
        QVERIFY(besideOf(*read.timeline) == besideOf(*run.timeline));
        for (int step = 0; step < steps; ++step) {
            const auto before = analyseBubbles(*run.timeline, step), after = analyseBubbles(*read.timeline, step);
            QVERIFY(before && after);
            QVERIFY(before->byCause[static_cast<std::size_t>(IdleCause::Collective)] > 0);
            if (chrome) // messages are not in it
                QCOMPARE(after->byCause[static_cast<std::size_t>(IdleCause::Collective)],
                         before->byCause[static_cast<std::size_t>(IdleCause::Collective)]);
            else
                QVERIFY(after->byCause == before->byCause);
        }
        const auto sent = rankCollectives(*run.timeline, 0, run.schedule.get(), &*run.costs),
                   received = rankCollectives(*read.timeline, 0, read.schedule.get(), nullptr);
        QCOMPARE(received.size(), sent.size());
        for (std::size_t rank = 0; rank < sent.size(); ++rank) {
            QCOMPARE(received[rank].gathers, sent[rank].gathers);
            QCOMPARE(received[rank].reductions, sent[rank].reductions);
            QVERIFY(sent[rank].gathered.value_or(0) > 0);
            // only one simulated step says it
            QCOMPARE(received[rank].gathered, steps == 1 ? sent[rank].gathered : std::nullopt);
            QCOMPARE(received[rank].reduced, steps == 1 ? sent[rank].reduced : std::nullopt);
        }
    }

    // A step's last messages end where the next step starts.
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
