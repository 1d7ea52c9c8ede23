// Traces of other vendors' devices: Ascend's NPUs, TPUs, Intel's, Habana's and Meta's names in Kineto's form, and jobs
// merged into one file. Their figures are derived by hand.
#include <cmath>
#include <map>
#include <set>

#include <QtTest/QtTest>

#include "tests/traces/import_rig.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/format/format_registry.h"
#include "traces/import/other_files.h"
#include "traces/report/table_document.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

constexpr Nanos us = 1000;

// What a rank's device does in a step, in µs; what is not named is 0.
void compareIdle(const Timeline& timeline, int step, const std::map<DeviceState, Nanos>& expected)
{
    const std::vector<RankDeviceIdle> ranks = analyseDeviceIdle(timeline, step);
    QCOMPARE(ranks.size(), std::size_t{1});
    for (std::size_t s = 0; s < deviceStateCount; ++s) {
        const auto state = static_cast<DeviceState>(s);
        const auto found = expected.find(state);
        const Nanos wanted = found == expected.end() ? 0 : found->second * us;
        QVERIFY2(ranks[0].of(state) == wanted, fmt::format("{}: {}", toText(state), ranks[0].of(state)).c_str());
    }
}

std::string spanEvent(const std::string& category, const std::string& name, const std::string& process, int thread,
                      int start, int length, const std::string& args)
{
    return "{'ph':'X','cat':'" + category + "','name':'" + name + "','pid':" + process +
           ",'tid':" + std::to_string(thread) + ",'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) +
           ",'args':{" + args + "}}";
}
std::string callId(int id) { return "'correlation':" + std::to_string(id); }

} // namespace

class TestImportDevices : public QObject {
    Q_OBJECT

private slots:
    // ascend_rank0.json, in µs from the start of its step: kernels 40–140, 360–400 and 410–610, the collective 600–700,
    // the copy 720–740. The second kernel was called at 350, 210 after the first had ended, while the host waited 50.
    void ascend()
    {
        const ImportResult result = imported({dataFile("ascend_rank0.json")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(timeline.ranks(), 1);
        QCOMPARE(timeline.steps(), 1);
        QCOMPARE(one.kernels, std::int64_t{5});
        QCOMPARE(one.kernelsUnderOps, std::int64_t{5}); // by the operator that asked, whenever another thread called
        const KernelReport report = analyseKernels(timeline, 0);
        std::map<std::string, std::pair<std::string_view, Nanos>> kernels;
        for (const KernelRow& row : report.rows) {
            auto& [of, total] = kernels[row.name];
            of = toText(row.of);
            total += row.total;
        }
        QCOMPARE(kernels, (std::map<std::string, std::pair<std::string_view, Nanos>>{
                              {"aclnnMatmul_MatMulV2_MatMulV2", {"matrix_product", 300 * us}},
                              {"aclnnAdd_Add_Add", {"elementwise", 40 * us}},
                              {"hcom_allReduce", {"collective", 100 * us}},
                              {"MEMCPY_ASYNC", {"copy", 20 * us}}}));
        compareIdle(timeline, 0,
                    {{DeviceState::Computing, 340},
                     {DeviceState::Collective, 90},
                     {DeviceState::Copying, 20},
                     {DeviceState::Sync, 50},
                     {DeviceState::Launch, 170},
                     {DeviceState::Queued, 30}});
        const Track* const computing = timeline.trackOf(0, Lane::Compute);
        QVERIFY(computing != nullptr);
        std::vector<std::pair<std::string, Nanos>> ops;
        for (const Span& span : timeline.spansOf(*computing)) ops.emplace_back(timeline.nameOf(span), span.duration());
        QCOMPARE(ops, (std::vector<std::pair<std::string, Nanos>>{{"0F0", 360 * us}, {"0B0", 200 * us}}));
        std::set<std::string> tracks;
        for (const Track& track : timeline.tracks()) tracks.insert(track.name);
        QVERIFY(tracks.contains("rank 0 stream 2") && tracks.contains("rank 0 Group 0 Communication"));
        for (const std::string& name : tracks) QVERIFY2(name.find("Overlap") == std::string::npos, name.c_str());
        const std::map<std::string, std::int64_t> leftOut(one.leftOut.begin(), one.leftOut.end());
        QCOMPARE(leftOut.at("waits and signals of streams"), std::int64_t{2});
        QCOMPARE(leftOut.at("pieces of collectives"), std::int64_t{3}); // two rows of planes, a task of a stream
        QCOMPARE(leftOut.at("spans that repeat the time of others"), std::int64_t{3});
        QCOMPARE(leftOut.at("spans of the profiler"), std::int64_t{2}); // the framework's queue
        QVERIFY(!notesSay(one, "cut off"));
    }

    // Without the framework's flows the call says who launched: the runtime's process has the framework's threads.
    void ascendByCalls()
    {
        const auto task = [](const char* name, int start, int length, int id) {
            return "{'name':'" + std::string(name) + "','pid':'3_0','tid':2,'ts':'" + std::to_string(start) +
                   ".500','dur':" + std::to_string(length) +
                   ",'ph':'X','args':{'Task Type':'AI_CORE','Stream Id':2,'Task Id':1,'connection_id':" +
                   std::to_string(id) + "}},";
        };
        const auto call = [](int start, int id) {
            return "{'name':'Node@launch','pid':'2_77','tid':77,'ts':'" + std::to_string(start) +
                   ".250','dur':2,'ph':'X','args':{'Thread Id':77,'connection_id':" + std::to_string(id) + "}},";
        };
        const auto range = [](const char* name, int start) {
            return "{'name':'" + std::string(name) + "','pid':'0_77','tid':77,'ts':'" + std::to_string(start) +
                   ".000','dur':50,'ph':'X','cat':'cpu_op','args':{}},";
        };
        const ImportResult result =
            importedText(quoted("[" + range("PP:0F0", 100) + range("PP:0B0", 200) + call(110, 1) + call(210, 2) +
                                task("MatMulV3", 120, 40, 1) + task("MatMulV3", 220, 80, 2) +
                                "{'name':'process_name','ph':'M','pid':'3_0','args':{'name':'Ascend Hardware'}},"
                                "{'name':'process_name','ph':'M','pid':'2_77','args':{'name':'CANN'}},"
                                "{'name':'process_name','ph':'M','pid':'0_77','args':{'name':'Python'}}]"));
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].run.timeline->ranks(), 1);
        QCOMPARE(result.runs[0].kernels, std::int64_t{2});
        QCOMPARE(result.runs[0].kernelsUnderOps, std::int64_t{2});
        compareIdle(*result.runs[0].run.timeline, 0, {{DeviceState::Computing, 120}, {DeviceState::Launch, 60}});
    }

    // Two NPUs: rank 1 enters the all-reduce 100 µs later, which rank 0 spends waiting; a message has its peers from the
    // pieces on its planes, the sender's from its signal, the receiver's from the copy.
    void hcclPeersAndWaits()
    {
        const auto event = [](const std::string& name, int tid, int start, int length, const std::string& args) {
            return "{'name':'" + name + "','pid':512450,'tid':" + std::to_string(tid) + ",'ts':'1764300000000" +
                   std::to_string(start) + ".000','dur':" + std::to_string(length) + ",'ph':'X','args':{" + args +
                   "}},";
        };
        const auto whole = [&](const char* name, int start, int length) {
            return event(name, 0, start, length, "'data_type':'FP32','alg_type':'MESH','count':1000");
        };
        const auto piece = [&](const char* name, int start, int length, int from, int to) {
            return event(name, 1, start, length,
                         "'notify_id':'0','src rank':" + std::to_string(from) + ",'dst rank':" + std::to_string(to) +
                             ",'transport type':'SDMA'");
        };
        const std::string named = "{'name':'process_name','ph':'M','pid':512450,'args':{'name':'Communication'}}]";
        QTemporaryDir folder;
        const auto write = [&](const char* name, const std::string& events) {
            std::ofstream(folder.filePath(name).toStdString()) << quoted("[" + events + named);
        };
        write("npu_rank0.json", whole("hcom_allReduce__459_0_1", 100, 200) + piece("Notify_Wait", 100, 100, 1, 0) +
                                    piece("Memcpy", 200, 90, 1, 0) + whole("hcom_send__123_0_1", 400, 100) +
                                    piece("Notify_Record", 410, 1, 0, 1) + piece("Notify_Wait", 411, 80, 1, 0));
        write("npu_rank1.json", whole("hcom_allReduce__459_0_1", 200, 100) + piece("Memcpy", 200, 90, 0, 1) +
                                    whole("hcom_receive__123_0_1", 380, 120) + piece("Memcpy", 420, 70, 0, 1));
        const ImportResult result = imported({folder.path().toStdString()});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        QCOMPARE(one.collectives, std::int64_t{1});
        QCOMPARE(one.messages, std::int64_t{1});
        QVERIFY(!notesSay(one, "lack their other side"));
        QVERIFY(notesSay(one,
                         "for 180.0 µs of the 300.0 µs of its collectives and messages HCCL's tasks wait for other "
                         "ranks"));
        bool found = false;
        for (const Track& track : timeline.tracks())
            for (SpanId id = track.begin; id < track.end; ++id) {
                if (timeline.labelOf(timeline.spans()[id]) != "hcom_allReduce") continue;
                const auto parts = collectivePartsOf(timeline, id);
                QVERIFY(parts.has_value());
                QCOMPARE(parts->waiting, (track.rank == 0 ? 100 : 0) * us);
                QCOMPARE(parts->transfer, 100 * us);
                QCOMPARE(timeline.trackOf(parts->last).rank, 1);
                found = true;
            }
        QVERIFY(found);
    }

    // Kineto's form with the names of other runtimes: a kernel 100–150, a gap in which the host waits until 180 and
    // launches at 190, a kernel 200–230, a copy until 240.
    void kinetoOfOthers_data()
    {
        QTest::addColumn<QString>("runtime");
        QTest::addColumn<QString>("waits");
        QTest::addColumn<QString>("kernel");
        QTest::newRow("XPU") << "xpu_runtime"
                             << "zeEventHostSynchronize"
                             << "kernel";
        QTest::newRow("XPU's driver") << "xpu_driver"
                                      << "zeCommandQueueSynchronize"
                                      << "kernel";
        QTest::newRow("HPU") << "hpu_op"
                             << "synStreamSynchronize"
                             << "kernel";
        QTest::newRow("MTIA") << "mtia_runtime"
                              << ""
                              << "mtia_ccp_events";
        QTest::newRow("ROCm") << "cuda_runtime"
                              << "hipDeviceSynchronize"
                              << "kernel";
        QTest::newRow("another backend") << "privateuse1_runtime"
                                         << ""
                                         << "kernel";
    }
    void kinetoOfOthers()
    {
        QFETCH(QString, runtime);
        QFETCH(QString, waits);
        QFETCH(QString, kernel);
        const std::string call = runtime.toStdString(), work = kernel.toStdString();
        std::string events = spanEvent("user_annotation", "PP:0F0", "9", 9, 80, 150, "") + "," +
                             spanEvent(call, "launch", "9", 9, 90, 2, callId(1)) + "," +
                             spanEvent(call, "launch", "9", 9, 190, 2, callId(2)) + "," +
                             spanEvent(call, "copy", "9", 9, 194, 2, callId(3)) + "," +
                             spanEvent(work, "gemm_kernel", "0", 7, 100, 50, callId(1)) + "," +
                             spanEvent(work, "gemm_kernel", "0", 7, 200, 30, callId(2)) + "," +
                             spanEvent("gpu_memcpy", "M2D", "0", 7, 230, 10, callId(3) + ",'bytes':64");
        if (!waits.isEmpty()) events += "," + spanEvent(call, waits.toStdString(), "9", 9, 140, 40, "");
        const ImportResult result = importedText(quoted("{'schemaVersion':1,'traceEvents':[" + events + "]}"));
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].kernels, std::int64_t{3});
        QCOMPARE(result.runs[0].kernelsUnderOps, std::int64_t{3});
        const Nanos waited = waits.isEmpty() ? 0 : 30;
        compareIdle(*result.runs[0].run.timeline, 0,
                    {{DeviceState::Computing, 80},
                     {DeviceState::Copying, 10},
                     {DeviceState::Sync, waited},
                     {DeviceState::Launch, 50 - waited}});
    }

    // A TPU: its ops count, its modules repeat them, its steps are ranges on the device.
    void tpu()
    {
        std::string text = "{'displayTimeUnit':'ns','traceEvents':[";
        const auto named = [&](const char* what, int thread, const std::string& name) {
            text += "{'ph':'M','name':'" + std::string(what) + "','pid':3,'tid':" + std::to_string(thread) +
                    ",'args':{'name':'" + name + "'}},";
        };
        const auto span = [&](int thread, int start, int length, const std::string& name) {
            text += "{'ph':'X','pid':3,'tid':" + std::to_string(thread) + ",'ts':" + std::to_string(start) +
                    ",'dur':" + std::to_string(length) + ",'name':'" + name + "','args':{'hlo_op':'" + name + "'}},";
        };
        named("process_name", 0, "/device:TPU:0");
        named("thread_name", 1, "Steps");
        named("thread_name", 2, "XLA Modules");
        named("thread_name", 3, "XLA Ops");
        for (const int step : {4, 5}) {
            const int at = step * 1000;
            span(1, at, 500, std::to_string(step));
            span(2, at, 500, "jit_train");
            span(3, at, 200, "fusion.12");
            span(3, at + 200, 100, "all-reduce.3");
            span(3, at + 400, 100, "dot.1");
        }
        const ImportResult result = importedText(quoted(text + "{}]}"), "host.trace.json");
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.steps(), 2);
        QCOMPARE(result.runs[0].kernels, std::int64_t{6});
        for (const int step : {0, 1})
            compareIdle(timeline, step,
                        {{DeviceState::Computing, 300}, {DeviceState::Collective, 100}, {DeviceState::Unknown, 100}});
    }

    // A Kineto trace of rank 1 of a pipeline, whose messages name ranks 0 and 2: nobody knows what its gaps waited for.
    void oneRankOfAPipeline()
    {
        const auto message = [](const char* name, int peer, int start) {
            return "{'ph':'X','cat':'cpu_op','name':'" + std::string(name) +
                   "','pid':9,'tid':9,'ts':" + std::to_string(start) + ",'dur':5,'args':{'Concrete Inputs':['','','" +
                   std::to_string(peer) + "','0']}}";
        };
        const std::string events =
            message("c10d::recv_", 0, 90) + "," + spanEvent("user_annotation", "PP:1F0", "9", 9, 100, 50, "") + "," +
            message("c10d::send", 2, 150) + "," + message("c10d::recv_", 2, 390) + "," +
            spanEvent("user_annotation", "PP:1B0", "9", 9, 400, 100, "") + "," + message("c10d::send", 0, 500);
        const ImportResult result = importedText(
            quoted("{'schemaVersion':1,'distributedInfo':{'backend':'gloo','rank':1,'world_size':4},'traceEvents':[" +
                   events + "]}"));
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Run& run = result.runs[0].run;
        const Timeline& timeline = *run.timeline;
        QCOMPARE(timeline.missingRanks(),
                 std::string("ranks 0, 2 of the job, peers of ranks here, are not in the run"));
        const StepContext context(run, 0);
        const auto& bubbles = context.bubbles();
        QVERIFY(bubbles && bubbles->partial);
        // Nor is anything of the job known without the run: the timeline says so wherever it is asked.
        const StepContext bare(timeline, 0);
        QVERIFY(bare.bubbles() && bare.bubbles()->partial && std::isnan(bare.bubbles()->bubbleFraction));
        QVERIFY(bare.criticalPath().empty() && bare.slack().empty());
        QVERIFY(!bubbles->gaps.empty());
        for (const Gap& gap : bubbles->gaps) {
            QCOMPARE(titleOf(timeline, gap), std::string_view("Unknown"));
            QVERIFY(explainGap(timeline, gap).find("what it waited for is unknown, because ranks 0, 2") !=
                    std::string::npos);
        }
        for (const char* table : {"critical_path", "slack", "slack_by_kind", "links"})
            QCOMPARE(reportTable(*findAnalysis(table), context).unknown, timeline.missingRanks());
        QTemporaryDir folder;
        const std::string json = folder.filePath("run.json").toStdString();
        ExportRequest request;
        request.run = &run;
        request.path = json;
        QVERIFY(findFormat("chrome")->write(request).has_value());
        QVERIFY(textOf(json).find("\"name\":\"Unknown\",\"cat\":\"bubble\"") != std::string::npos);
        QVERIFY(textOf(json).find("\"cause\":\"launch\"") == std::string::npos);
        const std::string stored = folder.filePath("run.stagewright").toStdString();
        const Run* const runs[] = {&run};
        QVERIFY(addRuns(stored, runs).has_value());
        const auto file = RunFile::open(stored, OpenMode::Read);
        QVERIFY(file.has_value());
        const auto read = (*file)->read(1);
        QVERIFY(read.has_value());
        QCOMPARE(read->timeline->missingRanks(), timeline.missingRanks());
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause)
            QVERIFY(!bubbles->knows(static_cast<IdleCause>(cause)));
        bool found = false;
        for (const Gap& gap : bubbles->gaps) {
            if (gap.end - gap.start != 250 * us) continue;
            found = true;
            QCOMPARE(
                QString::fromStdString(explainGap(*run.timeline, gap)),
                u"rank 0 is idle for 250.0 µs before 1B0: what it waited for is unknown, because ranks 0, 2 of the "
                "job, peers of ranks here, are not in the run"_qs);
        }
        QVERIFY(found);
    }

    // Two ranks in one file whose calls have the same correlations: each its own figures.
    void mergedRanksHaveTheirOwnFigures_data()
    {
        QTest::addColumn<QString>("first");
        QTest::addColumn<QString>("second");
        QTest::newRow("[TP00]") << "[TP00] "
                                << "[TP01] ";
        QTest::newRow("[DP1 EP3]") << "[DP1 EP2] "
                                   << "[DP1 EP3] ";
        QTest::newRow("rank0_") << "rank0_"
                                << "rank1_";
    }
    void mergedRanksHaveTheirOwnFigures()
    {
        QFETCH(QString, first);
        QFETCH(QString, second);
        std::string events;
        for (const int rank : {0, 1}) {
            const std::string tag = (rank == 0 ? first : second).toStdString();
            for (const int id : {1, 2})
                events +=
                    (events.empty() ? "" : ",") +
                    spanEvent("cuda_runtime", "cudaLaunchKernel", "'" + tag + "4000'", 4000, 100 * id, 2, callId(id)) +
                    "," + spanEvent("kernel", "gemm", "'" + tag + "0'", 7, 100 * id + 10, 20 + 30 * rank, callId(id));
        }
        const ImportResult result = importedText(quoted("{'schemaVersion':1,'traceEvents':[" + events + "]}"));
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        const std::vector<RankDeviceIdle> idle = analyseDeviceIdle(timeline, 0);
        QCOMPARE(idle.size(), std::size_t{2});
        for (const int rank : {0, 1}) {
            const RankDeviceIdle& one = idle[static_cast<std::size_t>(rank)];
            QCOMPARE(one.of(DeviceState::Computing), 2 * (20 + 30 * rank) * us);
            QCOMPARE(one.of(DeviceState::Launch), (80 - 30 * rank) * us);
            QCOMPARE(one.of(DeviceState::Unknown), Nanos{0});
        }
    }

    // Files that are not read say which to bring.
    void logsThatAreNotTraces()
    {
        const auto refusal = [](const std::string& text) {
            const auto error = otherJsonOf(quoted(text));
            return error ? error->message + "; " + error->remedy : std::string();
        };
        const std::string line = "{'rank':0,'step':1,'time_us':1764300000000000,'log_type':'event','log_type_name':"
                                 "'step_start','event_name':'step','seq_id':0}\n";
        QVERIFY(refusal(line + line).starts_with("TorchTitan's structured log"));
        QVERIFY(refusal(line + line).ends_with("set profiler.enable_profiling"));
        QVERIFY(refusal("{'workload_graph':[{'id':1,'type':4,'duration_micros':5}]}").starts_with("a Chakra"));
        QVERIFY(refusal("{'Type':31,'CompositeEvent':{}}\n{'Type':31,'CompositeEvent':{}}\n")
                    .ends_with("nsys export --type sqlite"));
        QCOMPARE(refusal("{'traceEvents':[]}"), std::string());
    }
};

QTEST_GUILESS_MAIN(TestImportDevices)
#include "tst_import_devices.moc"
