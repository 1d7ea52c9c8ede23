// Which step, device and rank work of other tools' traces belongs to (traces that public threads report).
#include <QtTest/QtTest>

#include <fstream>

#include "schedules/base/step_number.h"
#include "tests/traces/import_rig.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/export/kineto_writer.h"
#include "traces/report/tables.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

std::string eventOf(const std::string& category, const std::string& name, const std::string& process, int thread,
                    int start, int length, const std::string& args = {})
{
    return "{'ph':'X','cat':'" + category + "','name':'" + name + "','pid':" + process +
           ",'tid':" + std::to_string(thread) + ",'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) +
           ",'args':{" + args + "}},\n";
}
std::string correlated(int number) { return "'correlation':" + std::to_string(number); }
std::string traceOf(const std::string& events, const std::string& members = {})
{
    return quoted("{'schemaVersion':1," + members + "'baseTimeNanoseconds':1759300000000000000,'traceEvents':[" +
                  events + "{'ph':'M','name':'end','pid':1,'tid':1}]}");
}

// The host is a step ahead of the device. Two kernels were launched before the trace; the last step's second kernel has
// no launch.
std::string hostAhead(bool deviceSteps)
{
    std::string out = eventOf("kernel", "warm", "0", 7, 1050, 400, correlated(900)) +
                      eventOf("kernel", "warm", "0", 7, 1500, 400, correlated(901));
    for (int step = 0; step < 3; ++step) {
        const int host = 1000 * (step + 1), device = host + 1100;
        out += eventOf("user_annotation", "ProfilerStep#" + std::to_string(5 + step), "40", 40, host, 1000);
        if (deviceSteps)
            out += eventOf("gpu_user_annotation", "ProfilerStep#" + std::to_string(5 + step), "0", 7, device, 800);
        for (int i = 0; i < 4; ++i) {
            const int number = 10 * step + i + 1;
            if (step < 2 || i != 1)
                out += eventOf("cuda_runtime", "cudaLaunchKernel", "40", 40, host + 50 + 10 * i, 5, correlated(number));
            out += eventOf("kernel", "gemm", "0", 7, device + 200 * i, step == 1 ? 90 : 180, correlated(number));
        }
    }
    return traceOf(out);
}

std::map<int, int> kernelsByStep(const Timeline& timeline)
{
    std::map<int, int> count;
    for (const Track& track : timeline.tracks())
        if (isDeviceLane(track.lane))
            for (const Span& span : timeline.spansOf(track)) ++count[span.step];
    return count;
}

} // namespace

class TestImportRanks : public QObject {
    Q_OBJECT

private slots:
    // A run whose steps hold nothing could be stored and not shown: then the trace is one step.
    void stepsThatHoldNothing()
    {
        const ImportResult result =
            importedText(traceOf(eventOf("user_annotation", "ProfilerStep#5", "40", 40, 1000, 1000) +
                                 eventOf("kernel", "gemm", "0", 7, 5000, 100, correlated(1))));
        QCOMPARE(result.runs.at(0).run.timeline->steps(), 1);
        QVERIFY((kernelsByStep(*result.runs[0].run.timeline) == std::map<int, int>{{0, 1}}));
        QVERIFY(notesSay(result.runs[0], "nothing is in a marked step: the trace is one step"));
        // A kernel that by its clock starts before its launch, which is in the step, is where it starts.
        const ImportResult early =
            importedText(traceOf(eventOf("user_annotation", "ProfilerStep#5", "40", 40, 1000, 1000) +
                                 eventOf("cuda_runtime", "cudaLaunchKernel", "40", 40, 1500, 5, correlated(1)) +
                                 eventOf("kernel", "gemm", "0", 7, 500, 100, correlated(1))));
        QCOMPARE(early.runs.at(0).run.timeline->steps(), 1);
    }

    void kernelsAreInTheStepOfTheirLaunch()
    {
        const ImportResult with = importedText(hostAhead(true));
        QCOMPARE(with.runs.size(), std::size_t{1});
        const Timeline& timeline = *with.runs[0].run.timeline;
        QCOMPARE(timeline.steps(), 3);
        QVERIFY((kernelsByStep(timeline) == std::map<int, int>{{outsideSteps, 2}, {0, 4}, {1, 4}, {2, 4}}));
        QVERIFY(notesSay(with.runs[0], "2 of 14 kernels and copies are in no step"));
        // of the device, not of the host
        for (const StepMark& mark : timeline.stepMarks())
            QCOMPARE(mark.end - mark.begin, Nanos{mark.step == 1 ? 690'000 : 780'000});
        const ImportResult without = importedText(hostAhead(false));
        QVERIFY((kernelsByStep(*without.runs[0].run.timeline) ==
                 std::map<int, int>{{outsideSteps, 3}, {0, 4}, {1, 4}, {2, 3}}));
    }

    void stepsAreKeptInRunsAndExports()
    {
        const ImportResult first = importedText(hostAhead(true));
        const QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(first.runs[0].run, traces).has_value());
        const ImportResult second = imported({traces});
        QCOMPARE(second.runs.size(), std::size_t{1});
        QVERIFY(kernelsByStep(*second.runs[0].run.timeline)[0] == 4 &&
                kernelsByStep(*second.runs[0].run.timeline)[1] == 4);
        QVERIFY(kernelsByStep(*second.runs[0].run.timeline)[outsideSteps] >= 2);
    }

    void correlationZeroIsNone()
    {
        const ImportResult result =
            importedText(traceOf(eventOf("cuda_runtime", "hipStreamWaitEvent", "40", 40, 400, 5, correlated(0)) +
                                 eventOf("cuda_runtime", "hipLaunchKernel", "40", 40, 1000, 5, correlated(1)) +
                                 eventOf("kernel", "gemm", "0", 7, 1010, 60, correlated(1)) +
                                 eventOf("kernel", "ncclDevKernel_Generic_4", "0", 9, 1080, 100, correlated(0))));
        const auto idle = analyseDeviceIdle(*result.runs[0].run.timeline, 0);
        QCOMPARE(idle[0].of(DeviceState::Unknown), Nanos{10'000});
        QCOMPARE(idle[0].of(DeviceState::Queued), Nanos{0});
    }

    void gpusOfOneProcessHaveTheirOwnFigures()
    {
        std::string events;
        for (int i = 0; i < 10; ++i)
            events += eventOf("cuda_runtime", "cudaLaunchKernel", "40", 40, 1000 + 100 * i, 5, correlated(i + 1)) +
                      eventOf("kernel", "gemm", std::to_string(i % 2), 7, 1010 + 100 * i, 100, correlated(i + 1));
        const ImportResult result = importedText(traceOf(events));
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 1);
        std::vector<std::string> names;
        for (const Track& track : timeline.tracks()) names.push_back(track.name);
        QVERIFY((names == std::vector<std::string>{"rank 0 GPU 0 stream 7", "rank 0 GPU 1 stream 7"}));
        const auto times = analyseDeviceTime(timeline, 0);
        QCOMPARE(times.size(), std::size_t{2});
        for (const RankDeviceTime& gpu : times) {
            QCOMPARE(gpu.computing, Nanos{500'000});
            QCOMPARE(gpu.window(), Nanos{1'000'000});
        }
        for (const RankDeviceIdle& gpu : analyseDeviceIdle(timeline, 0))
            QCOMPARE(gpu.of(DeviceState::Computing) * 2, gpu.window);
        const QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(result.runs[0].run, traces).has_value());
        const ImportResult again = imported({traces});
        QCOMPARE(analyseDeviceTime(*again.runs[0].run.timeline, 0).size(), std::size_t{2});
    }

    void mergedRanksAreRanks_data()
    {
        QTest::addColumn<QString>("host");
        QTest::addColumn<QString>("device");
        QTest::newRow("tags") << "'[TP0%1] 4000'"
                              << "'[TP0%1] 0'";
        QTest::newRow("words") << "'rank%1_4000'"
                               << "'rank%1_0'";
        QTest::newRow("processes with a GPU each") << "400%1"
                                                   << "%1";
    }
    void mergedRanksAreRanks()
    {
        QFETCH(const QString, host);
        QFETCH(const QString, device);
        std::string events;
        for (int rank = 0; rank < 2; ++rank) {
            const std::string process = host.arg(rank).toStdString(), gpu = device.arg(rank).toStdString();
            for (int round = 0; round < 3; ++round) {
                const int at = 1000 + 1000 * round + 7 * rank;
                events += eventOf("cuda_runtime", "cudaLaunchKernel", process, 40, at, 5, correlated(10 * round + 1)) +
                          eventOf("kernel", "gemm", gpu, 7, at + 40, 300, correlated(10 * round + 1));
                events +=
                    eventOf("cuda_runtime", "cudaLaunchKernel", process, 40, at + 50, 5, correlated(10 * round + 2)) +
                    eventOf("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", gpu, 20, at + 400 + 50 * rank,
                            200 - 57 * rank,
                            correlated(10 * round + 2) +
                                ",'Collective name':'allreduce','Process Group Name':'0','Process Group Ranks':'[0, "
                                "1]','Seq':" +
                                std::to_string(round));
            }
        }
        const ImportResult result = importedText(
            traceOf(events, "'distributedInfo':{'backend':'nccl','rank':0,'world_size':2},"), "merged.json");
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        QCOMPARE(result.runs[0].collectives, std::int64_t{3});
        QVERIFY(!notesSay(result.runs[0], "only 1 of"));
        // every kernel's launch is its own rank's: the gemm's 40 µs before it
        for (const Edge& edge : timeline.edges()) {
            if (edge.kind != EdgeKind::Launch || timeline.nameOf(timeline.spans()[edge.to]) != "gemm") continue;
            QCOMPARE(timeline.spans()[edge.to].start - edge.arrival, Nanos{40'000});
        }
    }

    // Ids of operators are of a process, too: work without a call is tied to its own rank's operator, and to none where
    // nothing says whose it is.
    void externalIdsAreOfTheirProcess_data()
    {
        QTest::addColumn<QString>("host");
        QTest::addColumn<QString>("device");
        QTest::addColumn<bool>("calls");
        QTest::newRow("tags") << "'[TP0%1] 4000'"
                              << "'[TP0%1] 0'" << true;
        QTest::newRow("tags without calls") << "'[TP0%1] 4000'"
                                            << "'[TP0%1] 0'" << false;
        QTest::newRow("processes with a GPU each") << "400%1"
                                                   << "%1" << true;
        QTest::newRow("nothing says whose") << "400%1"
                                            << "%1" << false;
    }
    void externalIdsAreOfTheirProcess()
    {
        QFETCH(const QString, host);
        QFETCH(const QString, device);
        QFETCH(const bool, calls);
        std::string events;
        for (const int rank : {1, 0}) {
            const std::string process = host.arg(rank).toStdString(), gpu = device.arg(rank).toStdString();
            for (int call = 0; call < 3 && calls; ++call) {
                const int number = 1 + call + 10 * rank;
                events +=
                    eventOf("cuda_runtime", "cudaLaunchKernel", process, 40, 1000 + 100 * call, 5, correlated(number)) +
                    eventOf("kernel", "gemm", gpu, 7, 1040 + 100 * call, 50, correlated(number));
            }
            for (int round = 0; round < 3; ++round) {
                const int at = 5000 + 1000 * round + 100 * rank;
                const std::string id = "'External id':" + std::to_string(7 + round);
                events += eventOf("cpu_op", "aten::copy_", process, 40, at, 30, id) +
                          eventOf("kernel", "lonely", gpu, 7, at + 40 + 3 * rank, 20, id);
            }
        }
        const ImportResult result = importedText(
            traceOf(events, "'distributedInfo':{'backend':'nccl','rank':0,'world_size':2},"), "merged.json");
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        int tied = 0;
        for (const Edge& edge : timeline.edges()) {
            const Span& work = timeline.spans()[edge.to];
            if (edge.kind != EdgeKind::Launch || timeline.nameOf(work) != "lonely") continue;
            const Nanos since = work.start - edge.arrival;
            QVERIFY2(since == 40'000 || since == 43'000,
                     std::to_string(since).c_str()); // of the other rank it would be 60 µs before, or 140 after
            if (calls || host.contains("TP"))
                QCOMPARE(since, timeline.trackOf(edge.to).rank == 0 ? Nanos{40'000} : Nanos{43'000});
            ++tied;
        }
        QCOMPARE(tied, calls || host.contains("TP") ? 6 : 0);
    }

    // What comes before the events is read, or left out by name, however large it is.
    void membersOfAnySize_data()
    {
        QTest::addColumn<int>("size");
        QTest::addColumn<QString>("kind");
        for (const char* kind : {"text", "escapes", "list", "nested"}) {
            QTest::addRow("%s of a megabyte", kind) << 1'000'000 << QString::fromLatin1(kind);
            QTest::addRow("%s of 33 MiB", kind) << (33 << 20) << QString::fromLatin1(kind);
            QTest::addRow("%s of 33 MiB that does not end", kind) << -(33 << 20) << QString::fromLatin1(kind);
        }
    }
    void membersOfAnySize()
    {
        QFETCH(const int, size);
        QFETCH(const QString, kind);
        const auto many = static_cast<std::size_t>(std::abs(size));
        std::string member;
        if (kind == "text" || kind == "escapes") {
            const std::string one = kind == "text" ? "x]}[{" : "\\\"\\\\";
            for (member = "'"; member.size() < many;) member += one;
            if (size > 0) member += "'";
        } else {
            const std::string one = kind == "list" ? "1234567,'a]',{}," : "{'a':[{'b':'}'}]},";
            for (member = "["; member.size() < many;) member += one;
            member += size > 0 ? "0]" : "0";
        }
        const std::string text = quoted(
            "{'big':" + member + ",'distributedInfo':{'rank':3,'world_size':4},'traceEvents':[" +
            eventOf("kernel", "gemm", "0", 7, 1000, 10, correlated(1)) + "{'ph':'M','name':'end','pid':1,'tid':1}]}");
        const auto read = readText(text);
        if (size < 0) {
            QVERIFY(!read.has_value());
            QCOMPARE(read.error().code, ErrorCode::Unreadable);
            return;
        }
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(read->ranks.front().rank, 3);
        QCOMPARE(read->ranks.front().device.size(), std::size_t{1});
        const auto& notes = read->ranks.front().notes;
        QCOMPARE(std::count(notes.begin(), notes.end(), "big is larger than 32 MiB, so it was not read"),
                 size > (32 << 20) ? 1 : 0);
    }

    void clocksFollowTheEndsOfCollectives_data()
    {
        QTest::addColumn<int>("ahead");
        QTest::newRow("ahead") << 300;
        QTest::newRow("alike") << 0;
    }
    void clocksFollowTheEndsOfCollectives() // rank 1 enters each last, by 9.9 ms
    {
        QFETCH(const int, ahead);
        const QTemporaryDir folder;
        std::vector<std::string> files;
        for (int rank = 0; rank < 2; ++rank) {
            std::string events;
            for (int round = 0; round < 4; ++round) {
                const int begin = 1000 + 30'000 * round + (rank == 1 ? ahead : 0);
                events +=
                    eventOf("kernel", "gemm", "0", 7, begin, rank == 0 ? 10'000 : 19'900, correlated(2 * round + 1));
                events += eventOf("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "0", 20,
                                  begin + (rank == 0 ? 10'000 : 19'900), rank == 0 ? 9'950 : 50,
                                  correlated(2 * round + 2) +
                                      ",'Collective name':'allreduce','Process Group Name':'0','Process Group "
                                      "Ranks':'[0, 1]','Seq':" +
                                      std::to_string(round));
            }
            files.push_back(folder.filePath(QStringLiteral("skew_rank%1.json").arg(rank)).toStdString());
            std::ofstream(files.back()) << traceOf(events, "'distributedInfo':{'rank':" + std::to_string(rank) +
                                                               ",'world_size':2},");
        }
        const ImportResult result = imported(files);
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].clockError, Nanos{1'000});
        QCOMPARE(result.runs[0].clocks, ahead == 0
                                            ? std::string("agree, ± 1.00 µs")
                                            : std::string("1 of 2 ranks shifted, by at most 300.0 µs, ± 1.00 µs"));
        std::vector<Nanos> starts; // of the first collective
        for (const Track& track : result.runs[0].run.timeline->tracks())
            if (track.lane == Lane::Kernel && track.name.ends_with("stream 20"))
                starts.push_back(result.runs[0].run.timeline->spansOf(track).front().start);
        QCOMPARE(starts.size(), std::size_t{2});
        QCOMPARE(starts[1] - starts[0], Nanos{9'900'000});
    }

    void processesThatAreNoRanks()
    {
        const auto named = [](int process, const char* name) {
            return "{'ph':'M','name':'process_name','pid':" + std::to_string(process) + ",'args':{'name':'" + name +
                   "'}},";
        };
        const auto range = [](int process, const char* name, int start) {
            return "{'ph':'X','name':'" + std::string(name) + "','pid':" + std::to_string(process) +
                   ",'tid':1,'ts':" + std::to_string(start) + ",'dur':10},";
        };
        const auto close = [](std::string text) { return quoted("[" + text + "{'ph':'M','name':'end','pid':1}]"); };
        const ImportResult devices =
            importedText(close(named(1, "/device:GPU:0") + named(2, "/device:GPU:1") + named(701, "/host:CPU") +
                               range(1, "gemm", 10) + range(2, "gemm", 10) + range(701, "train", 0)),
                         "jax.json");
        QCOMPARE(devices.runs[0].run.timeline->ranks(), 2);
        QVERIFY(notesSay(devices.runs[0], "/host:CPU"));
        const ImportResult tensors = importedText(close(named(1, "grad_embed") + named(2, "layer.1.weight") +
                                                        range(1, "ALLREDUCE", 10) + range(2, "ALLREDUCE", 30)),
                                                  "tensors.json");
        QCOMPARE(tensors.runs[0].run.timeline->ranks(), 1);
        std::string names;
        for (const Track& track : tensors.runs[0].run.timeline->tracks()) names += track.name + ";";
        QVERIFY2(names.find("grad_embed") != std::string::npos && names.find("layer.1.weight") != std::string::npos,
                 names.c_str());
        const ImportResult ranks = importedText(
            close(named(1, "rank 0") + named(2, "rank 1") + range(1, "a", 10) + range(2, "a", 10)), "ranks.json");
        QCOMPARE(ranks.runs[0].run.timeline->ranks(), 2);
    }

    // Devices of one process as XLA names them, with a host that launches for all of them.
    void devicesOfXla()
    {
        std::string text = "{'displayTimeUnit':'ns','traceEvents':[";
        const auto named = [&](const char* what, int process, int thread, const std::string& name) {
            text += "{'ph':'M','name':'" + std::string(what) + "','pid':" + std::to_string(process) +
                    ",'tid':" + std::to_string(thread) + ",'args':{'name':'" + name + "'}},";
        };
        const auto span = [&](int process, int thread, double start, double length, const std::string& name,
                              const std::string& args) {
            text += "{'ph':'X','pid':" + std::to_string(process) + ",'tid':" + std::to_string(thread) +
                    ",'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) + ",'name':'" + name +
                    "','args':{" + args + "}},";
        };
        for (const int device : {0, 1}) {
            named("process_name", device + 1, 0, "/device:GPU:" + std::to_string(device));
            named("thread_name", device + 1, 14, "Stream #14(Compute,MemcpyD2D)");
            named("thread_name", device + 1, 90, "XLA Ops");
        }
        named("process_name", 701, 0, "/host:CPU");
        named("thread_name", 701, 5, "python");
        for (const int step : {0, 1, 2}) {
            const double at = step * 500;
            span(701, 5, at, 100, "train", "'step_num':'" + std::to_string(step) + "'");
            for (const int device : {0, 1}) {
                const auto id = [&](int k) {
                    return "'correlation_id':'" + std::to_string(100 * step + 10 * device + k + 1) + "'";
                };
                span(701, 5, at + 10 + device, 1, "cuLaunchKernel", id(0));
                // behind the end of its step's range on the host
                span(device + 1, 14, at + 110, 200, "gemm_fusion_dot_4", id(0));
                span(device + 1, 90, at + 110, 200, "dot.4", "");
                span(device + 1, 14, at + 320 + 5 * device, 50 - 5 * device,
                     "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", id(1));
                span(701, 5, at + 20 + device, 1, "cuLaunchKernelExC", id(1));
                span(device + 1, 14, at + 400, 10, "MemcpyD2H", "");
            }
        }
        const ImportResult result = importedText(quoted(text + "{}]}"), "host.trace.json");
        const Run& run = result.runs[0].run;
        QCOMPARE(run.timeline->ranks(), 2);
        QCOMPARE(run.timeline->steps(), 3);
        std::map<std::pair<int, int>, int> works; // by rank and step: kernels and copies
        int reductions = 0, repeated = 0;
        for (const Track& track : run.timeline->tracks())
            for (const Span& span : run.timeline->spansOf(track)) {
                if (track.lane == Lane::Kernel || track.lane == Lane::Copy) ++works[{track.rank, span.step}];
                if (track.lane == Lane::Reduce) ++reductions;
                if (run.timeline->labelOf(span) == "dot.4") ++repeated;
            }
        for (const int rank : {0, 1})
            for (const int step : {0, 1, 2})
                QCOMPARE((works[{rank, step}]), 2); // by their launches; no call says which step the copies are of
        QCOMPARE(reductions, 6);
        QCOMPARE(repeated, 0);
        QVERIFY(notesSay(result.runs[0], "its 2 devices are 2 ranks"));
        QCOMPARE(result.runs[0].clocks, std::string("one clock: the ranks are devices of one process"));
        QVERIFY2(!notesSay(result.runs[0], "without a phase"), "the empty object at the end is not counted");
    }

    void runsOfOneImportHaveDifferentNames()
    {
        const QTemporaryDir folder;
        for (const char* name : {"node7_4100.1759300001000.pt.trace.json", "node7_4100.1759300002000.pt.trace.json"})
            std::ofstream(folder.filePath(QString::fromLatin1(name)).toStdString())
                << traceOf(eventOf("kernel", "gemm", "0", 7, 1000, 10, correlated(1)),
                           "'distributedInfo':{'rank':0,'world_size':1},");
        const ImportResult result = imported({folder.path().toStdString()});
        QCOMPARE(result.runs.size(), std::size_t{2});
        QCOMPARE(result.runs[0].run.info.name, std::string("node7 (1)"));
        QCOMPARE(result.runs[1].run.info.name, std::string("node7 (2)"));
    }
};

QTEST_GUILESS_MAIN(TestImportRanks)
#include "tst_import_ranks.moc"
