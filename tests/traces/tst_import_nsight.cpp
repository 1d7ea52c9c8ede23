// Nsight Systems' exports: optional tables, several files of one job. The recorded ones (STAGEWRIGHT_SHARED) skip where
// absent.
#include <QtTest/QtTest>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "schedules/base/step_number.h"
#include "tests/traces/import_rig.h"
#include "traces/analysis/device_time.h"
#include "traces/export/kineto_writer.h"
#include "traces/foreign/export_groups.h"
#include "traces/import/message_pairs.h"
#include "traces/import/nsight/nccl_calls.h"
#include "traces/import/nsight/nvtx_payload.h"
#include "traces/report/table_document.h"
#include "traces/store/add_runs.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t process = std::int64_t{77} << 24; // and its main thread

std::string row(const std::vector<std::int64_t>& kernel) // start, end, device, stream, correlation, name
{
    std::string text = "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(";
    for (const std::int64_t value : kernel) text += std::to_string(value) + ",";
    return text + std::to_string(process) + ");";
}

std::string launches(int count) // 20 ns before each
{
    std::string text;
    for (int i = 0; i < count; ++i)
        text += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + std::to_string(980 + 100 * i) + "," +
                std::to_string(990 + 100 * i) + "," + std::to_string(process) + "," + std::to_string(i + 1) + ");";
    return text;
}

void exported(const std::string& path, const std::string& kernels, const std::string& others)
{
    const auto database = Database::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE).value();
    const auto done = database->execute(
        "BEGIN; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT); INSERT INTO StringIds VALUES(1, 'gemm');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, end INT, deviceId INT, streamId INT, correlationId INT, "
        "demangledName INT, globalPid INT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, end INT, globalTid INT, correlationId INT);"
        "CREATE TABLE NVTX_EVENTS(start INT, end INT, eventType INT, text TEXT, globalTid INT);" +
        kernels + others + "COMMIT");
    if (!done) qFatal("%s", done.error().message.c_str());
}

std::size_t columnsShown(const ReportTable& table)
{
    for (const document::Element& element : tableSection(table, {}, 100).elements)
        if (const auto* rows = std::get_if<document::Table>(&element); rows != nullptr && rows->shown)
            return document::shownColumns(*rows).size();
    return 0;
}

} // namespace

class TestImportNsight : public QObject {
    Q_OBJECT

private slots:
    void nsightExports()
    {
        const ImportResult result = imported({dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.run.info.ranks, 2);
        QCOMPARE(one.ops, std::int64_t{4});
        QCOMPARE(one.kernels, std::int64_t{10});
        QCOMPARE(one.kernelsUnderOps, std::int64_t{8});
        QCOMPARE(one.damaged, std::int64_t{2});
        QVERIFY(one.run.schedule);
        QCOMPARE(one.run.timeline->spansOf(*one.run.timeline->trackOf(0, Lane::Compute))[0].duration(), Nanos{200});
        QVERIFY(one.run.timeline->hasMemory());
    }

    // JSON lines hold the same as tables: kernels with their launches, copies, ranges, texts by number or by id.
    void jsonLines_data()
    {
        QTest::addColumn<QString>("texts");
        QTest::newRow("one list") << "{'data':['cudaLaunchKernel','','gemm','PP:0F0']}\n";
        QTest::newRow("a line each") << "{'type':'String','id':'0','value':'cudaLaunchKernel'}\n"
                                        "{'type':'String','id':'2','value':'gemm'}\n"
                                        "{'type':'String','id':'3','value':'PP:0F0'}\n";
    }
    void jsonLines()
    {
        QFETCH(QString, texts);
        const std::string thread = "'globalTid':'" + std::to_string(process) + "'";
        std::string text;
        for (int i = 0; i < 3; ++i) {
            const auto at = [i](int ns) { return "'" + std::to_string(100 * i + ns) + "'"; };
            const std::string number = std::to_string(i + 1);
            text += "{'Type':79,'CudaEvent':{'startNs':" + at(1000) + ",'endNs':" + at(1060) +
                    ",'deviceId':'0','streamId':'7','correlationId':" + number + ",'globalPid':'" +
                    std::to_string(process) + "','eventClass':3,'kernel':{'shortName':'2'}}}\n" +
                    "{'Type':48,'TraceProcessEvent':{'startNs':" + at(980) + ",'endNs':" + at(990) +
                    ",'correlationId':" + number + ",'name':'0'," + thread + "}}\n";
        }
        text += "{'Type':80,'CudaEvent':{'startNs':'1400','endNs':'1450','deviceId':'0','streamId':'7','correlationId':"
                "9,'globalPid':'" +
                std::to_string(process) + "','memcpy':{'copyKind':1,'sizebytes':'4096'}}}\n" +
                "{'Type':59,'NvtxEvent':{'Timestamp':'950','EndTimestamp':'1300','TextId':'3','GlobalTid':'" +
                std::to_string(process) + "'}}\n{'Type':31,'CompositeEvent':{}}\nnot JSON\n";
        QTemporaryDir folder;
        const std::string path = folder.filePath("report.json").toStdString();
        std::ofstream(path) << quoted(text + texts.toStdString());
        const ImportResult result = imported({path});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(one.kernels, std::int64_t{4});
        QCOMPARE(one.ops, std::int64_t{1});
        QCOMPARE(one.kernelsUnderOps, std::int64_t{3});
        QCOMPARE(one.damaged, std::int64_t{1});
        QCOMPARE(timeline.spansOf(*timeline.trackOf(0, Lane::Compute))[0].duration(), Nanos{260});
        QCOMPARE(timeline.nameOf(timeline.spansOf(*timeline.trackOf(0, Lane::Kernel))[0]), std::string("gemm"));
        QCOMPARE(countEdges(timeline, EdgeKind::Launch), std::size_t{3});
        QCOMPARE(countLane(timeline, Lane::Copy), std::size_t{1});
        QVERIFY(std::ranges::find(one.leftOut, std::pair(std::string("other events of Nsight Systems"),
                                                         std::int64_t{1})) != one.leftOut.end());
    }

    // Kernels of CUDA graphs have their graph and node: without a column of graphs from the upper half of the node's
    // number. Kineto exports and SQL keep both; other kernels have neither.
    void graphNodes()
    {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("graphs.sqlite").toStdString();
        std::string kernels;
        for (int i = 0; i < 4; ++i) kernels += row({1000 + 100 * i, 1060 + 100 * i, 0, 7, i + 1, 1});
        exported(path, kernels,
                 launches(4) +
                     "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphNodeId INT;"
                     "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN graphId INT;"
                     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId=(3<<32)+17 WHERE start=1000;"
                     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId=(3<<32)+18 WHERE start=1100;"
                     "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId=5, graphId=9 WHERE start=1200;"
                     "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INT, end INT, deviceId INT, streamId "
                     "INT, correlationId INT, globalPid INT, graphId INT, graphExecId INT);"
                     "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(1500,1900,0,7,9," +
                     std::to_string(process) + ",4,6);");
        const ImportResult result = imported({path});
        const ImportedRun& one = result.runs.at(0);
        const auto shapes = [](const Timeline& timeline) {
            std::vector<std::string> out;
            for (const Span& span : timeline.spansOf(*timeline.trackOf(0, Lane::Kernel)))
                out.emplace_back(timeline.shapeOf(span));
            return out;
        };
        const std::vector<std::string> expected{"graph 3, node 17", "graph 3, node 18", "graph 9, node 5", "",
                                                "graph 4"};
        QVERIFY(shapes(*one.run.timeline) == expected);
        QVERIFY(notesSay(one, "3 of 5 kernels and copies are nodes of 2 CUDA graphs"));
        QVERIFY(notesSay(one, "1 CUDA graph was traced as a whole: which kernels ran in it"));
        const ReportTable table = reportTable(*findAnalysis("device_time"), StepContext(one.run, 0));
        QVERIFY2(table.sentence.find("are nodes of 2 CUDA graphs") != std::string::npos, table.sentence.c_str());

        const std::string kineto = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(one.run, kineto).has_value());
        QVERIFY(shapes(*imported({kineto}).runs.at(0).run.timeline) == expected);

        const std::string stored = folder.filePath("graphs.stagewright").toStdString();
        const Run* const runs[] = {&one.run};
        QVERIFY(addRuns(stored, runs).has_value());
        const auto file = RunFile::open(stored, OpenMode::Read);
        QVERIFY(file.has_value());
        const auto rows = (*file)->query("SELECT graph, graph_node FROM spans WHERE lane='kernel' ORDER BY start_ns");
        QVERIFY(rows.has_value());
        const std::vector<std::vector<std::string>> inTable{{"3", "17"}, {"3", "18"}, {"9", "5"}, {"", ""}, {"4", ""}};
        QVERIFY(rows->rows == inTable);

        const std::string csv = folder.filePath("spans.csv").toStdString();
        ExportRequest request;
        request.run = &one.run;
        request.path = csv;
        QVERIFY(findFormat("spans")->write(request).has_value());
        QVERIFY(textOf(csv).find(",1,3,17\n") != std::string::npos);
    }

    // One process with GPUs that take turns: each has lanes and figures of its own.
    void gpusOfOneProcess()
    {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("two.sqlite").toStdString();
        std::string kernels;
        for (int i = 0; i < 10; ++i) kernels += row({1000 + 100 * i, 1100 + 100 * i, i % 2, 7, i + 1, 1});
        exported(path, kernels, launches(10));
        const ImportResult result = imported({path});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 1);
        std::vector<std::string> names;
        for (const Track& track : timeline.tracks())
            if (track.lane == Lane::Kernel) names.push_back(track.name);
        QVERIFY((names == std::vector<std::string>{"rank 0 GPU 0 stream 7", "rank 0 GPU 1 stream 7"}));
        const auto times = analyseDeviceTime(timeline, 0);
        QCOMPARE(times.size(), std::size_t{2});
        for (std::size_t gpu = 0; gpu < times.size(); ++gpu) {
            QCOMPARE(times[gpu].gpu, static_cast<int>(gpu));
            QCOMPARE(times[gpu].computing, Nanos{500});
            QCOMPARE(times[gpu].window(), Nanos{1000});
        }
        const ReportTable table = reportTable(*findAnalysis("device_time"), StepContext(result.runs[0].run, 0));
        QCOMPARE(columnsShown(table), table.columns.size());
        const QTemporaryDir traces;
        const std::string kineto = traces.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(result.runs[0].run, kineto).has_value());
        QCOMPARE(analyseDeviceTime(*imported({kineto}).runs.at(0).run.timeline, 0).size(), std::size_t{2});
        // with one GPU nothing has its number
        std::string alone;
        for (int i = 0; i < 4; ++i) alone += row({1000 + 100 * i, 1100 + 100 * i, 1, 7, i + 1, 1});
        const std::string other = folder.filePath("one.sqlite").toStdString();
        exported(other, alone, launches(4));
        const ImportResult one = imported({other});
        const ReportTable without = reportTable(*findAnalysis("device_time"), StepContext(one.runs.at(0).run, 0));
        QCOMPARE(columnsShown(without), without.columns.size() - 1);
        QCOMPARE(analyseDeviceTime(*one.runs[0].run.timeline, 0).at(0).gpu, -1);
    }

    // Kernels are in the step of their launch though they run in the next, and those from before the first in none.
    void stepsAreThoseOfTheLaunch_data()
    {
        QTest::addColumn<QString>("name");
        QTest::newRow("PyTorch's profiler") << "ProfilerStep#%1";
    }
    void stepsAreThoseOfTheLaunch()
    {
        QFETCH(const QString, name);
        const QTemporaryDir folder;
        const std::string path = folder.filePath("steps.sqlite").toStdString();
        std::string kernels = row({1050, 1100, 0, 7, 900, 1}), calls, ranges;
        for (int step = 0; step < 3; ++step) {
            const int host = 1000 * (step + 1);
            ranges += "INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(host) + "," + std::to_string(host + 999) +
                      ",59,'" + name.arg(5 + step).toStdString() + "'," + std::to_string(process) + ");";
            for (int i = 0; i < 4; ++i) {
                kernels += row({host + 1100 + 200 * i, host + 1280 + 200 * i, 0, 7, 10 * step + i + 1, 1});
                calls += "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + std::to_string(host + 50 + 10 * i) + "," +
                         std::to_string(host + 55 + 10 * i) + "," + std::to_string(process) + "," +
                         std::to_string(10 * step + i + 1) + ");";
            }
        }
        exported(path, kernels, calls + ranges);
        const ImportResult result = imported({path});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.steps(), 3);
        std::map<int, int> count;
        for (const Track& track : timeline.tracks())
            if (track.lane == Lane::Kernel)
                for (const Span& span : timeline.spansOf(track)) ++count[span.step];
        QVERIFY((count == std::map<int, int>{{outsideSteps, 1}, {0, 4}, {1, 4}, {2, 4}}));
    }

    // Two nodes export a file each; the clock of one is 4 ms ahead.
    void nsightNodesAreOneJob()
    {
        const ImportResult result =
            imported({dataFile("nsight_node1.sqlite"), dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{2});
        const ImportedRun& one = result.runs[1];
        QCOMPARE(one.run.info.name, std::string("nsight_node"));
        QCOMPARE(one.files.size(), std::size_t{4});
        QCOMPARE(one.run.info.ranks, 4);
        QCOMPARE(one.recognised, std::string("gpipe"));
        QCOMPARE(one.kernelsUnderOps, std::int64_t{16});
        QCOMPARE(one.collectives, std::int64_t{6});
        QVERIFY2(one.clocks.starts_with("2 of 4 ranks shifted, by at most 4.0"), one.clocks.c_str());
        QVERIFY(one.clockError > 0 && one.clockError <= 60'000);
        // by default they are not; the option makes them one job
        QCOMPARE(imported({dataFile("nsight_node1.sqlite")}).runs[0].run.info.ranks, 2);
        ImportOptions together;
        together.oneJob = true;
        const ImportResult all = imported({dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")}, together);
        QCOMPARE(all.runs.size(), std::size_t{2}); // both have stages 0 and 1: copies of one pipeline
        QCOMPARE(all.runs[0].run.info.ranks + all.runs[1].run.info.ranks, 4);
    }

    // Sends and receives say their peers in payloads, in places of a communicator.
    void messagesOfNccl()
    {
        const ImportResult result = imported({dataFile("nsight_messages.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        for (const std::string& note : one.notes) QFAIL(note.c_str());
        QCOMPARE(one.recognised, std::string("gpipe"));
        QCOMPARE(one.messages, std::int64_t{12});
        QCOMPARE(one.unpaired, std::int64_t{0});
        QCOMPARE(one.collectives, std::int64_t{0});
        const Timeline& timeline = *one.run.timeline;
        std::map<std::string, Nanos> arrivals; // of what an op waited for on another rank
        for (const Edge& edge : timeline.edges())
            if (edge.kind == EdgeKind::Data && timeline.trackOf(edge.from).rank != timeline.trackOf(edge.to).rank)
                arrivals[toText(timeline.spans()[edge.from].op) + " " + toText(timeline.spans()[edge.to].op)] =
                    edge.arrival - timeline.spans()[edge.to].start;
        QCOMPARE(arrivals.size(), std::size_t{12});
        for (const char* pair : {"0F0 1F0", "0F1 1F1", "2F1 3F1", "3B0 2B0", "1B1 0B1"})
            QVERIFY2(arrivals.contains(pair) && arrivals[pair] == 0, pair);
    }

    void payloadsAreRead()
    {
        NvtxPayloadSchemas schemas;
        QVERIFY(schemas.empty());
        schemas.add(1, 77, 0, 18, "id", -1);
        schemas.add(1, 77, 1, 13, "small", -1);
        schemas.add(1, 77, 2, 5, "number", -1);
        schemas.add(1, 77, 2, 22, "again", 0); // each process stores its schemas
        schemas.add(1, 77, 3, 20, "real", 16);
        schemas.add(1, 77, 4, 22, "far", 1'000'000);
        schemas.add(1, 77, 5, 22, "behind", std::numeric_limits<std::int64_t>::max());
        std::vector<std::byte> blob(32 + 16);
        const auto put = [&](std::size_t at, std::uint64_t value, std::size_t size) {
            for (std::size_t i = 0; i < size; ++i) blob[at + i] = static_cast<std::byte>(value >> (8 * i));
        };
        put(0, 1, 4);
        put(8, 77, 4);
        put(16, 16, 8);
        put(24, 48, 8);
        put(32, 0xfedcba9876543210u, 8);
        put(40, 0xfffe, 2);     // −2 in two bytes
        put(44, 0xffffffff, 4); // −1, aligned to four
        const NvtxPayload whole = schemas.read(blob);
        QVERIFY(whole ==
                (NvtxPayload{{"id", static_cast<std::int64_t>(0xfedcba9876543210u)}, {"small", -2}, {"number", -1}}));
        std::string text;
        for (const std::byte byte : blob) text += QByteArray(1, static_cast<char>(byte)).toHex().toStdString();
        QVERIFY(schemas.read(std::as_bytes(std::span(text))) == whole);
        for (std::size_t size = 0; size < blob.size(); ++size)
            QVERIFY(schemas.read(std::span(blob).first(size)).empty());
        put(8, 78, 4);
        QVERIFY(schemas.read(blob).empty()); // an unknown schema
        put(8, 77, 4);
        put(16, 15, 8);
        QVERIFY(schemas.read(blob).empty()); // sizes that contradict each other
    }

    // In a communicator of two created before the trace the peer is the other rank; in a larger one it is unknown, and
    // reported.
    void communicatorsMadeBefore()
    {
        const auto rankWith = [](int number, int peer, std::int64_t bytes, const char* call) {
            ForeignRank rank;
            rank.rank = number;
            rank.format = "nsight";
            rank.threads = {{"thread", false}, {"stream", true}};
            rank.device.push_back({{100, 200, rank.names.idOf("ncclDevKernel_SendRecv"), 1}, 5, false, true});
            rank.launches.push_back({5, 50, 0});
            ForeignMessage message;
            message.start = 100;
            message.end = 200;
            message.name = rank.names.idOf("SendRecv");
            message.group = rank.names.idOf("");
            message.correlation = 5;
            message.work = 0;
            message.device = true;
            rank.messages.push_back(message);
            tieNcclCalls(rank,
                         {{{40, 60, rank.names.idOf(call), 0},
                           {{"NCCL communicator ID", 0xabc}, {"Peer rank", peer}, {"Message size [bytes]", bytes}}}});
            return rank;
        };
        std::vector<ForeignRank> two;
        two.push_back(rankWith(0, 0, 64, "ncclSend"));
        two.push_back(rankWith(1, 1, 64, "ncclRecv"));
        MessagePairs pairs = pairMessages(two);
        QCOMPARE(pairs.pairs.size(), std::size_t{1});
        QCOMPARE(two[0].messages[0].to, 1);
        QVERIFY(pairs.notes.empty());
        std::vector<ForeignRank> unequal;
        unequal.push_back(rankWith(0, 0, 64, "ncclSend"));
        unequal.push_back(rankWith(1, 1, 32, "ncclRecv"));
        pairs = pairMessages(unequal);
        QCOMPARE(pairs.notes.size(), std::size_t{1});
        QVERIFY2(pairs.notes[0].starts_with("1 of 1 messages have different sizes"), pairs.notes[0].c_str());
        std::vector<ForeignRank> three;
        three.push_back(rankWith(0, 2, 64, "ncclSend"));
        three.push_back(rankWith(1, 0, 64, "ncclRecv"));
        three.push_back(rankWith(2, 1, 64, "ncclSend"));
        pairs = pairMessages(three);
        QCOMPARE(pairs.unpaired, std::int64_t{3});
        QVERIFY2(pairs.notes.size() == 1 && pairs.notes[0].starts_with("communicator abc was created before"),
                 pairs.notes.empty() ? "" : pairs.notes[0].c_str());
    }

    // Places in one communicator count more than names; those of two windows of a process are the same.
    void exportsOfOneCommunicatorAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        const std::map<std::string, std::set<int>> low{{"c0ffee", {0, 1}}}, high{{"c0ffee", {2, 3}}},
            other{{"bad", {2, 3}}};
        QCOMPARE(groupsOfExports({{"a/trainer.sqlite", 100, 200, low}, {"b/helper.sqlite", 900, 950, high}}),
                 (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"a/trainer.sqlite", 100, 200, low}, {"b/helper.sqlite", 100, 200, other}}),
                 (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"a/first.sqlite", 100, 200, low}, {"a/second.sqlite", 150, 250, low}}),
                 (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"x/n2.sqlite", 100, 200, high},
                                  {"z.sqlite", 0, -1, {{"c0ffee", {4}}}},
                                  {"x/n1.sqlite", 100, 200, low}}),
                 (Groups{{2, 0, 1}}));
    }

    void exportsHeldTogetherAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOfExports({{"d/node10.sqlite", 100, 200, {}}, {"d/node2.sqlite", 120, 210, {}}}),
                 (Groups{{1, 0}}));
        QCOMPARE(groupsOfExports({{"d/report1.sqlite", 100, 200, {}}, {"d/report2.sqlite", 300, 400, {}}}),
                 (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"d/before.sqlite", 100, 200, {}}, {"d/after.sqlite", 100, 200, {}}}),
                 (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports(
                     {{"n0/a.sqlite", 100, 200, {}}, {"n1/a.sqlite", 100, 200, {}}, {"n1/b.sqlite", 100, 200, {}}}),
                 (Groups{{0, 1}, {2}}));
        QCOMPARE(groupsOfExports({{"d/rank0.sqlite", 0, -1, {}}, {"d/rank1.sqlite", 0, -1, {}}}), (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"d/x0.sqlite", 0, -1, {}}, {"d/x1.sqlite", 0, -1, {}}}), (Groups{{0}, {1}}));
        QVERIFY(naturalLess("node2", "node10") && !naturalLess("node10", "node2") && naturalLess("a", "ab") &&
                !naturalLess("a", "a"));
        QVERIFY(naturalLess("n01", "n2") && naturalLess("n1", "n01") != naturalLess("n01", "n1"));
    }

    void recordedNsight()
    {
        const fs::path folder = sharedFolder("nsys_sqlite");
        if (!fs::exists(folder)) QSKIP("the Nsight exports are not there (set STAGEWRIGHT_SHARED)");
        for (const char* name : {"mfu_2gpu_before.sqlite", "mfu_2gpu_after.sqlite"}) {
            const ImportResult result = imported({(folder / name).string()});
            QCOMPARE(result.runs.size(), std::size_t{1});
            QCOMPARE(result.runs[0].run.info.ranks, 2);
            QVERIFY(result.runs[0].kernelsUnderRanges * 100 > result.runs[0].kernels * 99);
            QVERIFY(result.runs[0].collectives > 30);
            QVERIFY(countEdges(*result.runs[0].run.timeline, EdgeKind::Launch) > 4'000);
        }
        const ImportResult mock = imported({(folder / "mock.sqlite").string()});
        QCOMPARE(mock.runs.size(), std::size_t{1});
        QCOMPARE(mock.runs[0].kernels, std::int64_t{3});
        QVERIFY(notesSay(mock.runs[0], "no NVTX"));
    }
};

QTEST_APPLESS_MAIN(TestImportNsight)
#include "tst_import_nsight.moc"
