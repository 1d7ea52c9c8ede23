// Kineto and Chrome JSON: imported data and the resulting runs. The recorded ones (STAGEWRIGHT_SHARED) skip where
// absent.
#include <QtTest/QtTest>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include <zlib.h>

#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"
#include "tests/traces/import_rig.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/exposed_communication.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/kernels.h"
#include "traces/export/kineto_writer.h"
#include "traces/fit/residuals.h"
#include "traces/import/kineto/kineto_event.h"
#include "traces/store/run_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace fs = std::filesystem;

class TestImportKineto : public QObject {
    Q_OBJECT

private slots:
    void timesAreExact()
    {
        QCOMPARE(nanosOfMicroseconds("4331969872415.343").value(), Nanos{4'331'969'872'415'343});
        QCOMPARE(nanosOfMicroseconds("1694128201435418").value(), Nanos{1'694'128'201'435'418'000});
        QCOMPARE(nanosOfMicroseconds("\"12.5\"").value(), Nanos{12'500});
        QCOMPARE(nanosOfMicroseconds("-0.0015").value(), Nanos{-2});
        QCOMPARE(nanosOfMicroseconds("1.5e3").value(), Nanos{1'500'000});
        QVERIFY(!nanosOfMicroseconds("NaN"));
        QVERIFY(!nanosOfMicroseconds("99999999999999999999"));
        QVERIFY(!nanosOfMicroseconds(""));
    }

    // Grid and block of a kernel, and the inputs of the operator of the same External id; kernels of one name differ in
    // them.
    void launchesHaveShapes()
    {
        const auto kernel = [](const char* name, int at, int correlation, int external, const char* more) {
            return "{'ph':'X','cat':'kernel','name':'" + std::string(name) +
                   "','pid':0,'tid':7,'ts':" + std::to_string(at) +
                   ",'dur':10,'args':{'External id':" + std::to_string(external) +
                   ",'stream':7,'correlation':" + std::to_string(correlation) + more + "}},";
        };
        const char* sizes = ",'grid':[8, 2, 1],'block':[128,1,1]";
        std::string text = "{'schemaVersion':1,'deviceProperties':[{'id':0,'name':'H200'}],'traceEvents':[";
        text += "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':1,'dur':5,'args':{'External "
                "id':31,'Input Dims':[[64, 512], [512, 8]],'Input type':['float','float']}},";
        text += "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':7,'dur':5,'args':{'External "
                "id':32,'Input Dims':[[32,1024],[1024,8]]}},";
        text += kernel("gemm", 20, 101, 31, sizes) + kernel("gemm", 40, 102, 32, sizes) +
                kernel("gemm", 60, 103, 31, sizes);
        text += kernel("gelu", 80, 104, 99, sizes);                   // of an operator that is not in the file
        text += kernel("relu", 100, 31, 31, sizes);                   // repeats its correlation: says nothing
        text += kernel("old", 120, 106, 99, "");                      // no sizes
        text += kernel("odd", 140, 107, 99, ",'grid':[8],'block':3"); // not those of a launch
        text += "{'ph':'X','cat':'gpu_memcpy','name':'Memcpy HtoD','pid':0,'tid':7,'ts':160,'dur':10,'args':{'External "
                "id':31,'stream':7,'correlation':108,'bytes':64}}]}";
        const ImportResult result = importedText(quoted(text));
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        std::vector<std::pair<std::string, std::string>> seen;
        for (const Track& track : timeline.tracks())
            if (isDeviceLane(track.lane))
                for (const Span& span : timeline.spansOf(track))
                    seen.emplace_back(timeline.nameOf(span), timeline.shapeOf(span));
        const std::string launch = "grid 8×2×1, block 128×1×1";
        const std::vector<std::pair<std::string, std::string>> expected{
            {"gemm", launch + ", inputs [[64,512],[512,8]]"},
            {"gemm", launch + ", inputs [[32,1024],[1024,8]]"},
            {"gemm", launch + ", inputs [[64,512],[512,8]]"},
            {"gelu", launch},
            {"relu", launch},
            {"old", ""},
            {"odd", ""},
            {"Memcpy HtoD", ""}};
        QVERIFY(seen == expected);
        QCOMPARE(analyseKernels(timeline, 0).rows.front().calls, std::int64_t{3}); // still one kernel for all else
        // Out and back: grids and blocks; there are no operators that inputs could be of.
        QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(result.runs[0].run, traces).has_value());
        const ImportResult again = imported({traces});
        QCOMPARE(again.runs.size(), std::size_t{1});
        const Timeline& back = *again.runs[0].run.timeline;
        std::size_t at = 0;
        for (const Track& track : back.tracks()) {
            if (!isDeviceLane(track.lane)) continue;
            for (const Span& span : back.spansOf(track)) {
                QVERIFY(at < expected.size());
                QCOMPARE(back.nameOf(span), expected[at].first);
                QCOMPARE(std::string(back.shapeOf(span)),
                         expected[at].second.substr(0, expected[at].second.find(", inputs")));
                ++at;
            }
        }
        QCOMPARE(at, expected.size());
    }

    // NCCL runs an all-to-all as sends and receives, RCCL everything in one kernel: what they do is said by the
    // arguments, else by the range around the launch.
    void operationsOfCommunicationKernels()
    {
        std::string text = "{'schemaVersion':1,'deviceProperties':[{'id':0,'name':'H200'}],'traceEvents':[";
        struct Call {
            const char* kernel;
            const char* range; // around its launch; "": none
            const char* argument;
            const char* shape;
            KernelClass of;
        };
        constexpr const char* sendRecv = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)";
        constexpr const char* generic = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)";
        const std::vector<Call> calls{
            {sendRecv, "nccl:all_to_all", "", "collective AllToAll", KernelClass::Collective},
            {sendRecv, "", "all_to_allv", "collective AllToAll", KernelClass::Collective},
            {sendRecv, "nccl:send 0->1", "", "", KernelClass::SendReceive},
            {sendRecv, "nccl:coalesced", "", "", KernelClass::SendReceive},
            {sendRecv, "layer", "", "", KernelClass::SendReceive},
            {generic, "", "_allgather_base", "collective AllGather", KernelClass::Collective},
            {generic, "nccl:recv 0<-1", "", "collective SendRecv", KernelClass::SendReceive},
            {generic, "", "", "", KernelClass::Collective},
            {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "nccl:all_reduce", "", "", KernelClass::Collective}};
        int at = 0, correlation = 100;
        for (const Call& call : calls) {
            at += 100;
            ++correlation;
            const std::string number = std::to_string(correlation), start = std::to_string(at);
            if (*call.range != 0)
                text += "{'ph':'X','cat':'user_annotation','name':'" + std::string(call.range) +
                        "','pid':1,'tid':1,'ts':" + start + ",'dur':50,'args':{}},";
            text += "{'ph':'X','cat':'cuda_runtime','name':'cudaLaunchKernelExC','pid':1,'tid':1,'ts':" +
                    std::to_string(at + 5) + ",'dur':5,'args':{'correlation':" + number + "}},";
            text += "{'ph':'X','cat':'kernel','name':'" + std::string(call.kernel) +
                    "','pid':0,'tid':20,'ts':" + std::to_string(at + 20) +
                    ",'dur':10,'args':{'stream':20,'correlation':" + number;
            if (*call.argument != 0) text += ",'Collective name':'" + std::string(call.argument) + "'";
            text += "}},";
        }
        text.back() = ']';
        const ImportResult result = importedText(quoted(text + "}"));
        QCOMPARE(result.runs.size(), std::size_t{1});
        const auto check = [&](const Timeline& timeline) {
            const auto tracks = timeline.tracks();
            const auto track =
                std::find_if(tracks.begin(), tracks.end(), [](const Track& one) { return one.lane == Lane::Kernel; });
            QVERIFY(track != tracks.end());
            const auto spans = timeline.spansOf(*track);
            QCOMPARE(spans.size(), calls.size());
            KernelClasses classes;
            for (std::size_t i = 0; i < calls.size(); ++i) {
                QCOMPARE(std::string(timeline.shapeOf(spans[i])), std::string(calls[i].shape));
                QVERIFY2(classes.of(timeline, *track, spans[i]) == calls[i].of, calls[i].kernel);
            }
        };
        check(*result.runs[0].run.timeline);
        std::vector<std::string> operations;
        for (const ExposedCommunication& row : analyseExposedCommunication(*result.runs[0].run.timeline, 0))
            operations.push_back(row.name);
        std::sort(operations.begin(), operations.end());
        QVERIFY((operations == std::vector<std::string>{"AllGather", "AllReduce", "AllToAll", "Generic", "SendRecv"}));
        // Out and back.
        QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(result.runs[0].run, traces).has_value());
        const ImportResult again = imported({traces});
        QCOMPARE(again.runs.size(), std::size_t{1});
        check(*again.runs[0].run.timeline);
    }

    void gpuRanksBecomeOneRun()
    {
        const ImportResult result = imported({dataFile("gpu_rank4.json"), dataFile("gpu_rank6.json")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(one.recognised, std::string("1f1b"));
        QCOMPARE(timeline.steps(), 2);
        QCOMPARE(one.messages, std::int64_t{8});
        QCOMPARE(one.unpaired, std::int64_t{0});
        QCOMPARE(one.collectives, std::int64_t{2});
        QVERIFY(notesSay(one, "numbers its own ranks"));
        QVERIFY(notesSay(one, "ranks 4, 6 of the job"));
        QVERIFY(one.clockError > 0 && one.clockError < 100'000);
        // ops are where their kernels ran; every kernel of an op has it, and a Launch edge
        const Track* compute = timeline.trackOf(0, Lane::Compute);
        const Span& first = timeline.spansOf(*compute)[0];
        QCOMPARE(toText(first.op), std::string("0F0"));
        QCOMPARE(first.duration(), Nanos{90'000});
        std::size_t launched = 0;
        for (const Track& track : timeline.tracks()) {
            if (!isDeviceLane(track.lane)) continue;
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = timeline.spans()[id];
                if (timeline.nameOf(span) != "gemm" && timeline.nameOf(span) != "Memcpy HtoD") continue;
                const auto edges = timeline.edgesInto(id);
                QCOMPARE(edges.size(), std::size_t{1});
                QVERIFY(edges[0].kind == EdgeKind::Launch);
                QVERIFY(timeline.spans()[edges[0].from].op == span.op);
                QVERIFY(isCompute(span.op.kind));
                ++launched;
            }
        }
        QCOMPARE(launched, std::size_t{32});
        // messages with both sides, and what they carry
        QCOMPARE(countLane(timeline, Lane::Send), std::size_t{8});
        QCOMPARE(toText(timeline.spansOf(*timeline.trackOf(1, Lane::Receive))[0].op), std::string("1RECV_F0"));
        QCOMPARE(countEdges(timeline, EdgeKind::Order), std::size_t{8});
        const auto gaps = analyseBubbles(timeline, 0);
        QVERIFY(gaps);
        // a forward's memory is held until its backward; what was there before counts as weights
        std::array<Bytes, memoryCategoryCount> sum{}, peak{};
        for (const MemoryEvent& event : timeline.memoryOf(0)) {
            const auto c = static_cast<std::size_t>(event.category);
            sum[c] += event.delta;
            peak[c] = std::max(peak[c], sum[c]);
        }
        QCOMPARE(peak[static_cast<std::size_t>(MemoryCategory::Activations)], Bytes{8192});
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Activations)], Bytes{0});
        // 4000 from before, 1000 made before the first op and kept
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Weights)], Bytes{5000});
        QCOMPARE(sum[static_cast<std::size_t>(MemoryCategory::Gradients)], Bytes{512});
        // a run like any other: stored, read, fitted
        QTemporaryDir folder;
        auto file = RunFile::open(folder.filePath("t.stagewright").toStdString(), OpenMode::Create);
        QVERIFY(file);
        const auto id = (*file)->add(one.run);
        QVERIFY(id);
        const auto back = (*file)->read(*id);
        QVERIFY(back && back->schedule && back->costs);
        QCOMPARE(back->timeline->spans().size(), timeline.spans().size());
        QCOMPARE(back->timeline->edges().size(), timeline.edges().size());
        QVERIFY(back->info.provenance == Provenance::Imported);
        QVERIFY(residualsOf(*back, *back->costs));
    }

    void otherLetters()
    {
        const ImportResult old = imported({dataFile("old_rank0.json")});
        QCOMPARE(old.runs.size(), std::size_t{1});
        QCOMPARE(old.runs[0].recognised, std::string("gpipe"));
        QCOMPARE(old.runs[0].kernels, std::int64_t{4});
        QCOMPARE(old.runs[0].dialect, std::string(toText(LabelDialect::PassNames)));
        const ImportResult zbv = imported({dataFile("zbv_rank0.json"), dataFile("zbv_rank1.json")});
        QCOMPARE(zbv.runs.size(), std::size_t{1});
        QVERIFY(zbv.runs[0].run.schedule);
        QVERIFY(zbv.runs[0].run.schedule->placement == Placement::vShape(2));
        QVERIFY(zbv.runs[0].run.schedule->splitsBackward());
    }

    // Runtime calls were not traced: kernels are under the op whose operator has their External id.
    void kernelsWithoutLaunches()
    {
        const auto trace = [](const char* operators, const char* kernel) {
            std::string text = "{'schemaVersion':1,'traceEvents':[";
            for (int mb = 0; mb < 2; ++mb) {
                const auto op = [&](const char* kind, int ts, int id) {
                    text += "{'ph':'X','cat':'user_annotation','name':'PP:0" + std::string(kind) + std::to_string(mb) +
                            "','pid':1,'tid':1,'ts':" + std::to_string(ts) + ",'dur':90},";
                    const auto filled = [&](std::string part) {
                        for (const auto& [key, value] :
                             {std::pair("ID", id), std::pair("HOST", ts + 10), std::pair("DEVICE", ts + 1000)})
                            for (std::size_t at = part.find(key); at != std::string::npos; at = part.find(key))
                                part.replace(at, std::strlen(key), std::to_string(value));
                        return part;
                    };
                    text += filled(operators) + "," + filled(kernel) + ",";
                };
                op("F", 100 + mb * 100, 11 + mb);
                op("B", 500 + mb * 100, 21 + mb);
            }
            return quoted(text + "{'ph':'i','name':'end','ts':9000}]}");
        };
        const char* byId =
            "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':HOST,'dur':5,'args':{'External id':ID}}";
        const char* kernel = "{'ph':'X','cat':'kernel','name':'gemm','pid':0,'tid':7,'ts':DEVICE,'dur':50,'args':{'"
                             "stream':7,'correlation':ID0,'External id':ID}}";
        const char* noIds = "{'ph':'X','cat':'Kernel','name':'gemm','pid':0,'tid':7,'ts':DEVICE,'dur':50,'args':{}}";
        const char* byFlow = "{'ph':'s','cat':'async','name':'launch','id':ID,'pid':1,'tid':1,'ts':HOST},{'ph':'f','"
                             "cat':'async','name':'launch','id':ID,'pid':0,'tid':7,'ts':DEVICE,'bp':'e'}";
        for (const std::string& text : {trace(byId, kernel), trace(byFlow, noIds)}) {
            const ImportResult result = importedText(text);
            QCOMPARE(result.runs.size(), std::size_t{1});
            const ImportedRun& one = result.runs[0];
            QCOMPARE(one.kernels, std::int64_t{4});
            QCOMPARE(one.kernelsUnderOps, std::int64_t{4});
            QVERIFY(notesSay(one, "4 of 4 kernels and copies have no launch record: 4 of these are matched"));
            QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Launch), std::size_t{4});
            QCOMPARE(one.run.timeline->spansOf(*one.run.timeline->trackOf(0, Lane::Compute))[0].duration(),
                     Nanos{50'000});
        }
        const ImportResult none = importedText(trace(byFlow, kernel)); // ids that nothing has
        QCOMPARE(none.runs[0].kernelsUnderOps, std::int64_t{0});
        QVERIFY(notesSay(none.runs[0], "0 of these are matched"));
    }

    void oldAndOddFormats()
    {
        // AMD: hip calls, RCCL, copies by other names
        const ImportResult rocm = importedText(
            quoted("{'schemaVersion':1,'deviceProperties':[{'id':0,'name':'AMD Instinct MI300X'}],'traceEvents':["
                   "{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':100,'dur':90},"
                   "{'ph':'X','cat':'user_annotation','name':'PP:0B0','pid':1,'tid':1,'ts':300,'dur':90},"
                   "{'ph':'X','cat':'hip_runtime','name':'hipLaunchKernel','pid':1,'tid':1,'ts':110,'dur':2,'args':{'"
                   "correlation':1}},"
                   "{'ph':'X','cat':'cuda_runtime','name':'hipModuleLaunchKernel','pid':1,'tid':1,'ts':310,'dur':2,'"
                   "args':{'correlation':2}},"
                   "{'ph':'X','cat':'cuda_runtime','name':'hipMemcpyAsync','pid':1,'tid':1,'ts':320,'dur':2,'args':{'"
                   "correlation':3}},"
                   "{'ph':'X','cat':'kernel','name':'Cijk_Alik_Bljk','pid':2,'tid':0,'ts':400,'dur':20,'args':{'"
                   "correlation':1}},"
                   "{'ph':'X','cat':'kernel','name':'ncclDevKernel_Generic(x)','pid':2,'tid':0,'ts':430,'dur':20,'args'"
                   ":{'correlation':2}},"
                   "{'ph':'X','cat':'gpu_memcpy','name':'CopyHostToDevice','pid':2,'tid':0,'ts':460,'dur':5,'args':{'"
                   "correlation':3}}]}"));
        QCOMPARE(rocm.runs.size(), std::size_t{1});
        QCOMPARE(rocm.runs[0].kernels, std::int64_t{3});
        QCOMPARE(rocm.runs[0].kernelsUnderOps, std::int64_t{3});
        QVERIFY(rocm.runs[0].run.schedule);
        // no GPU: ops are where the host ran them
        const ImportResult cpu =
            importedText(quoted("{'schemaVersion':1,'traceEvents':[{'ph':'X','cat':'user_annotation','name':'PP:0F0','"
                                "pid':1,'tid':1,'ts':100,'dur':90},"
                                "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':110,'dur':9},{'ph':'X'"
                                ",'cat':'user_annotation','name':'PP:0B0','pid':1,'tid':1,'ts':300,'dur':90}]}"));
        QCOMPARE(cpu.runs[0].kernels, std::int64_t{0});
        QCOMPARE(cpu.runs[0].ops, std::int64_t{2});
        QCOMPARE(countLane(*cpu.runs[0].run.timeline, Lane::Kernel), std::size_t{0});
        QVERIFY(cpu.runs[0].run.schedule);
        // PyTorch before Kineto: no categories, two processes that are one rank
        const ImportResult autograd = importedText(quoted(
            "[{'name':'Forward 0','ph':'X','ts':100,'dur':50,'tid':1,'pid':'CPU functions','args':{}},"
            "{'name':'Backward 0','ph':'X','ts':200,'dur':50,'tid':1,'pid':'CPU functions','args':{}},"
            "{'name':'gemm','ph':'X','ts':300,'dur':40,'tid':0,'pid':'CUDA functions','args':{}},"
            "{'name':'gemm','ph':'s','ts':110,'tid':1,'pid':'CPU functions','id':1,'cat':'cpu_to_cuda','args':{}},"
            "{'name':'gemm','ph':'f','ts':300,'tid':0,'pid':'CUDA functions','id':1,'cat':'cpu_to_cuda','args':{}}]"));
        QCOMPARE(autograd.runs.size(), std::size_t{1});
        QCOMPARE(autograd.runs[0].run.info.ranks, 1);
        QCOMPARE(autograd.runs[0].ops, std::int64_t{2});
        QCOMPARE(autograd.runs[0].kernelsUnderOps, std::int64_t{1});
        // anything that is not a trace is refused with a message
        for (const auto& [text, what] :
             {std::pair("{'nodes':[{'name':'aten::mm'}],'schema':'1.0.2'}", "Chakra execution trace"),
              std::pair("{'traceEvents':[]}", "no events"), std::pair("[1,2,3]", "no readable events"),
              std::pair("{'traceEvents':{'a':1}}", "traceEvents is missing")}) {
            QTemporaryDir folder;
            const std::string path = folder.filePath("odd.json").toStdString();
            std::ofstream(path) << quoted(text);
            const auto refused = importTraces({path}, {});
            QVERIFY2(!refused && refused.error().message.find(what) != std::string::npos,
                     refused ? text : refused.error().message.c_str());
        }
    }

    // Damage in the middle of packed data: what came before it is read.
    void damagedGzip()
    {
        std::string text = quoted("{'traceEvents':[");
        std::mt19937 random(7);
        for (int i = 0; i < 20'000; ++i)
            text += quoted("{'ph':'X','cat':'user_annotation','name':'r" + std::to_string(random() % 1000) +
                           "','pid':1,'tid':1,'ts':" + std::to_string(i * 10) +
                           ",'dur':" + std::to_string(random() % 9) + "},");
        text += quoted("{'ph':'i','name':'end','ts':1}]}");
        const QTemporaryDir folder;
        const std::string path = folder.filePath("a_rank0.json.gz").toStdString();
        gzFile packed = gzopen(path.c_str(), "wb6");
        QCOMPARE(gzwrite(packed, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
        QCOMPARE(gzclose(packed), Z_OK);
        std::string bytes = textOf(path);
        const auto importedFrom = [&](std::string changed) {
            std::ofstream(path, std::ios::binary | std::ios::trunc) << changed;
            return importTraces({path}, {});
        };
        std::string middle = bytes;
        for (std::size_t i = 0; i < 64; ++i) middle[middle.size() / 2 + i] = static_cast<char>(0xa5);
        const auto half = importedFrom(middle);
        QVERIFY(half);
        QVERIFY2(half->runs[0].events > 4'000 && half->runs[0].events < 20'000,
                 qPrintable(QString::number(half->runs[0].events)));
        QVERIFY(notesSay(half->runs[0], "the compressed data is damaged: "));
        QVERIFY(!notesSay(half->runs[0], "<fd"));
        std::string begin = bytes;
        for (std::size_t i = 12; i < 64; ++i) begin[i] = static_cast<char>(0xff);
        const auto none = importedFrom(begin);
        QVERIFY(!none);
        QVERIFY2(none.error().message.find("the compressed data is damaged") != std::string::npos,
                 none.error().message.c_str());
    }

    void chromeJsonIsLanes()
    {
        const ImportResult plain = imported({dataFile("chrome.json")});
        QCOMPARE(plain.runs.size(), std::size_t{1});
        const Timeline& timeline = *plain.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        QVERIFY(!plain.runs[0].run.schedule);
        QCOMPARE(countLane(timeline, Lane::Other), std::size_t{8});
        QCOMPARE(countLane(timeline, Lane::Compute), std::size_t{0});
        QCOMPARE(timeline.counters().size(), std::size_t{2});
        QCOMPARE(plain.runs[0].leftOut.front().second, std::int64_t{2}); // end events without a start event
        ImportOptions options;
        options.rules = *LabelRules::parse("F F m{microbatch}\nB B m{microbatch}\n");
        const ImportResult ops = imported({dataFile("chrome.json")}, options);
        QVERIFY(ops.runs[0].run.schedule);
        QCOMPARE(ops.runs[0].run.schedule->stages, 2);
    }

    void recordedPipelines()
    {
        const fs::path folder = sharedFolder("kineto") / "torch26_gloo_pp4";
        if (!fs::exists(folder)) QSKIP("PyTorch's traces are not there (set STAGEWRIGHT_SHARED)");
        const ImportResult result = imported({folder.string()});
        QCOMPARE(result.runs.size(), std::size_t{3});
        const std::array<const char*, 3> files{"1F1B_p4_m8_v1.csv", "GPipe_p4_m8_v1.csv",
                                               "Interleaved1F1B_p4_m8_v2.csv"};
        for (std::size_t i = 0; i < 3; ++i) {
            const ImportedRun& one = result.runs[i];
            const auto written = readScheduleCsv(textOf(sharedFolder("torch_csv") / files[i]));
            QVERIFY(written);
            QVERIFY2(one.run.schedule && *one.run.schedule == *written, files[i]);
            QCOMPARE(one.files.size(), std::size_t{4});
            QCOMPARE(one.run.timeline->steps(), 2);
            for (int step = 0; step < 2; ++step) QVERIFY(scheduleOf(*one.run.timeline, step)->order == written->order);
            QCOMPARE(one.unpaired, std::int64_t{0});
            QCOMPARE(one.damaged, std::int64_t{0});
            QVERIFY(one.clockError >= 0);
            // one message for each input from another rank, in both steps
            std::size_t sends = 0;
            const auto lowered = lower(*written, {});
            QVERIFY(lowered);
            for (const auto& row : lowered->order)
                for (const Op& op : row) sends += isSend(op.kind) ? 1 : 0;
            QCOMPARE(static_cast<std::size_t>(one.messages), 2 * sends);
            QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Order), 2 * sends);
            QVERIFY(residualsOf(one.run, *one.run.costs));
        }
    }

    void recordedGpuRanks()
    {
        const fs::path folder = sharedFolder("kineto") / "dlrm_8rank";
        if (!fs::exists(folder)) QSKIP("the GPU traces are not there (set STAGEWRIGHT_SHARED)");
        const ImportResult result = imported({(folder / "*.gz").string()});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.run.info.ranks, 8);
        QCOMPARE(one.collectives, std::int64_t{8}); // five exchanges, three reductions, each of all ranks
        QCOMPARE(countEdges(*one.run.timeline, EdgeKind::Transfer), std::size_t{8 * 7});
        QVERIFY(!one.run.schedule);
        QVERIFY(one.kernelsUnderRanges > one.kernels / 2);
    }
};

QTEST_APPLESS_MAIN(TestImportKineto)
#include "tst_import_kineto.moc"
