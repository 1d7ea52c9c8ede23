// Traces as people report them in public threads, each with one property that used to be read wrongly, and its right
// value (tests/data/traces/reported).
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/traces/import_rig.h"
#include "traces/analysis/device_time.h"
#include "traces/export/kineto_writer.h"
#include "traces/import/outliers.h"
#include "traces/report/tables.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace fs = std::filesystem;

namespace {

std::string reported(const std::string& name) { return dataFile(("reported/" + name).c_str()); }

// Names of the spans on a lane with their durations, in order.
std::vector<std::pair<std::string, Nanos>> onLane(const Timeline& timeline, Lane lane)
{
    std::vector<std::pair<std::string, Nanos>> out;
    for (const Track& track : timeline.tracks())
        if (track.lane == lane)
            for (const Span& span : timeline.spansOf(track)) out.emplace_back(timeline.nameOf(span), span.duration());
    return out;
}

// What readers make of a run that was stored.
void checkReadable(const ImportResult& result)
{
    QTemporaryDir folder;
    const std::string path = folder.filePath("t.stagewright").toStdString();
    std::vector<const Run*> runs;
    for (const ImportedRun& one : result.runs) runs.push_back(&one.run);
    const auto ids = addRuns(path, runs);
    QVERIFY2(ids.has_value(), ids ? "" : ids.error().message.c_str());
    const auto file = RunFile::open(path, OpenMode::Read);
    QVERIFY(file);
    for (std::size_t i = 0; i < ids->size(); ++i) {
        const auto damage = (*file)->damage((*ids)[i]);
        QVERIFY(damage && damage->blocks == 0);
        QCOMPARE(damage->spans, static_cast<std::int64_t>(runs[i]->timeline->spans().size()));
        const auto back = (*file)->read((*ids)[i]);
        QVERIFY(back && back->timeline->end() == runs[i]->timeline->end());
        QVERIFY((*file)->overview((*ids)[i], 100).has_value());
    }
}

std::string kernelEvent(const std::string& start, const std::string& duration, int number = 1,
                        const std::string& name = "gemm")
{
    return "{'ph':'X','cat':'kernel','name':'" + name + "','pid':0,'tid':7,'ts':" + start + ",'dur':" + duration +
           ",'args':{'stream':7,'correlation':" + std::to_string(number) + "}}";
}

ImportResult ofEvents(const std::string& events)
{
    return importedText(quoted("{'schemaVersion':1,'traceEvents':[" + events + "]}"));
}

} // namespace

class TestReportedTraces : public QObject {
    Q_OBJECT

private slots:
    // Kernels at time 0 beside times since 1970.
    void timesOfZero()
    {
        const ImportResult result = imported({reported("ts_zero.json")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(onLane(*one.run.timeline, Lane::Kernel),
                 (std::vector<std::pair<std::string, Nanos>>(4, {"ampere_sgemm_64x64_nt", 60'000})));
        QVERIFY(
            notesSay(one, "2 kernels are apart from everything else by up to 51 years: left out of lanes and figures"));
        QVERIFY(
            configured(one.run, "outliers").starts_with("kernel ampere_sgemm_64x64_nt on stream 7: from 0 to 0 ns\n"));
        checkReadable(result);
    }

    void copyOfTheDayBefore()
    {
        const ImportResult result = imported({reported("copy_a_day_before.json")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const RankDeviceTime time = analyseDeviceTime(*result.runs[0].run.timeline, 0)[0];
        QCOMPARE(time.calls, std::int64_t{4});
        QVERIFY(time.window() < 1'000'000);
        QVERIFY(notesSay(result.runs[0], "1 copy is apart from everything else by up to 24.0 h"));
        checkReadable(result);
    }

    // Its neighbours: the future, durations that overflowed, samples, whole clusters, a range; in what the run file
    // holds.
    void outliers_data()
    {
        QTest::addColumn<QString>("event");
        QTest::addColumn<bool>("outlier");
        const auto row = [](const char* name, const std::string& event, bool outlier) {
            QTest::newRow(name) << QString::fromStdString(event) << outlier;
        };
        row("future", kernelEvent("9000000000000", "5"), true);
        row("negative time", kernelEvent("-7200000000000", "5"), true);
        row("seven weeks long", kernelEvent("1300", "4294967296000"), true);
        row("limit of a reading", kernelEvent("2305843009213692", "1"), true);
        row("half an hour", kernelEvent("1800000000", "5"), false);
        row("range", "{'ph':'X','cat':'user_annotation','name':'epoch','pid':1,'tid':1,'ts':0,'dur':90000000000000}",
            true);
        row("sample", "{'ph':'C','name':'load','pid':1,'ts':90000000000000,'args':{'a':1}}", true);
    }
    void outliers()
    {
        QFETCH(QString, event);
        QFETCH(bool, outlier);
        std::string events;
        for (int i = 0; i < 10; ++i) events += kernelEvent(std::to_string(1000 + 100 * i), "60", i) + ",";
        const ImportResult result = ofEvents(events + event.toStdString());
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(notesSay(result.runs[0], "from everything else"), outlier);
        QVERIFY(!outlier || result.runs[0].run.timeline->end() - result.runs[0].run.timeline->begin() < 10'000'000);
        checkReadable(result);
    }
    // Two windows hours apart are a trace, and both stay.
    void windowsHoursApart()
    {
        std::string events;
        for (int i = 0; i < 10; ++i)
            events += kernelEvent(std::to_string(1000 + 100 * i), "60", i) + "," +
                      kernelEvent(std::to_string(10'800'000'000 + 100 * i), "60", 100 + i) + (i < 9 ? "," : "");
        const ImportResult result = ofEvents(events);
        QCOMPARE(result.runs.at(0).kernels, std::int64_t{20});
        QVERIFY(!notesSay(result.runs[0], "everything else"));
    }

    // What can't be read is not stored, and nothing is left beside it.
    void unreadableTimesAreNotStored()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        const int track = builder.addTrack(0, Lane::Kernel, "stream 7");
        Span span;
        span.label = builder.intern("gemm") & 0xffffffu;
        span.end = 60;
        builder.addSpan(track, span);
        span.start = Nanos{1'615'207'264'500'000'000};
        span.end = span.start + 60;
        builder.addSpan(track, span);
        const auto timeline = builder.build();
        QVERIFY(timeline);
        Run run;
        run.info.name = "far";
        run.timeline = *timeline;
        QTemporaryDir folder;
        const Run* const runs[] = {&run};
        const auto ids = addRuns(folder.filePath("t.stagewright").toStdString(), runs);
        QVERIFY(!ids);
        QVERIFY2(ids.error().message.find("36 years") != std::string::npos, ids.error().message.c_str());
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void clocksYearsApart()
    {
        QTemporaryDir folder;
        const auto write = [&](const char* name, const std::string& start) {
            const std::string path = folder.filePath(name).toStdString();
            std::ofstream(path) << quoted("{'schemaVersion':1,'traceEvents':[" + kernelEvent(start, "50") + "]}");
            return path;
        };
        const ImportResult result =
            imported({write("job_rank0.json", "1759300000000000"), write("job_rank1.json", "5000")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        QCOMPARE(result.runs[0].run.timeline->end(), Nanos{50'000});
        QVERIFY(notesSay(result.runs[0], "the clocks of its ranks are 56 years apart"));
        checkReadable(result);
    }

    void kernelsThatContainOthers()
    {
        const ImportResult result = imported({reported("duration_overflow.json")});
        const ImportedRun& one = result.runs.at(0);
        QVERIFY(notesSay(one, "kernels of one stream contain each other, which a stream can't run: fmha_bwd_kernel on "
                              "rank 0 stream 7 lasts 1.60 s and 20 others start and end within it"));
        const auto table = reportTable(*findAnalysis("device_time"), StepContext(one.run, 0));
        QVERIFY2(table.sentence.find("contain each other") != std::string::npos, table.sentence.c_str());
        // Partial overlaps are said, ticks of a clock and the kernels of one graph are not.
        QVERIFY(notesSay(
            ofEvents(kernelEvent("100", "50", 1) + "," + kernelEvent("140", "50", 2)).runs.at(0),
            "1 kernel of rank 0 stream 7 overlaps the one before by 10.0 µs: sums of durations exceed the time "
            "by as much"));
        QVERIFY(
            deviceDoubts(
                *ofEvents(kernelEvent("100", "50", 1) + "," + kernelEvent("149.5", "50", 2)).runs.at(0).run.timeline)
                .empty());
        // Of several streams the one with most is named, and the time is the sum of durations beyond the union.
        QVERIFY(notesSay(ofEvents(kernelEvent("100", "50", 1) + "," + kernelEvent("140", "50", 2) + "," +
                                  kernelEvent("180", "50", 3) + "," + kernelEvent("230", "50", 4) + "," +
                                  kernelEvent("229.5", "50", 5))
                             .runs.at(0),
                         "4 kernels of rank 0 stream 7 overlap the one before by 70.0 µs: sums"));
        const std::string graph = "{'ph':'X','cat':'cuda_runtime','name':'cudaGraphLaunch','pid':1,'tid':1,'ts':90,'"
                                  "dur':5,'args':{'correlation':9}},";
        QVERIFY(deviceDoubts(*ofEvents(graph + kernelEvent("100", "50", 9) + "," + kernelEvent("120", "10", 9))
                                  .runs.at(0)
                                  .run.timeline)
                    .empty());
    }

    void unescapedQuotes()
    {
        const ImportResult result = imported({reported("unescaped_quotes.json")});
        QCOMPARE(result.runs.at(0).damaged, std::int64_t{2});
        QCOMPARE(result.runs[0].events, std::int64_t{13});
        QCOMPARE(result.runs[0].kernels, std::int64_t{4});
        QVERIFY(!notesSay(result.runs[0], "cut off"));
    }

    void windowsPaths()
    {
        const ImportResult many = imported({reported("windows_paths.json.gz")});
        QCOMPARE(many.runs.at(0).kernels, std::int64_t{4});
        QCOMPARE(many.runs[0].damaged, std::int64_t{0});
        QVERIFY(notesSay(many.runs[0], "12000 events were read after replacing bad characters"));
        const ImportResult range = imported({reported("windows_range.json")});
        QCOMPARE(range.runs.at(0).damaged, std::int64_t{0});
        QVERIFY(!notesSay(range.runs[0], "cut off"));
        bool found = false;
        for (const auto& [name, duration] : onLane(*range.runs[0].run.timeline, Lane::Other))
            found = found || name == "src\\model\\unit.py(7): forward";
        QVERIFY(found);
    }
    void backslashes_data()
    {
        QTest::addColumn<QString>("written");
        QTest::addColumn<QString>("read");
        const auto row = [](const char* written, const char* read) { QTest::newRow(written) << written << read; };
        row("D:\\job\\x.py(3): f", "D:\\job\\x.py(3): f");
        row("torch\\nn\\modules\\linear.py(3): forward", "torch\\nn\\modules\\linear.py(3): forward");
        row("C:\\temp\\bench.py(3): forward", "C:\\temp\\bench.py(3): forward"); // escapes all of them
        row("torch\\nn\\functional.py(3): relu", "torch\\nn\\functional.py(3): relu");
        row("\\\\server\\share\\x", "\\server\\share\\x"); // as far as can be known
        row("C:\\\\job\\\\unit.py(3): f", "C:\\job\\unit.py(3): f");
        row("\\u0066orward \\\"1\\\"", "forward \"1\"");
        row("größe\\model", "größe\\model");
    }
    void backslashes()
    {
        QFETCH(QString, written);
        QFETCH(QString, read);
        const ImportResult result =
            importedText(quoted("[{'ph':'X','cat':'user_annotation','pid':1,'tid':1,'ts':1,'dur':5,'name':'") +
                         written.toStdString() + quoted("'},") +
                         quoted("{'ph':'X','cat':'user_annotation','pid':1,'tid':1,'ts':9,'dur':5,'name':'after'}]"));
        const auto names = onLane(*result.runs.at(0).run.timeline, Lane::Other);
        QCOMPARE(names.size(), std::size_t{2});
        QCOMPARE(QString::fromStdString(names[0].first), read);
        QCOMPARE(result.runs[0].damaged, std::int64_t{0});
    }

    // One event is lost, whatever is wrong with it and whatever comes around it.
    void oneEventIsLost_data()
    {
        QTest::addColumn<QString>("bad");
        const auto row = [](const char* bad) { QTest::newRow(bad) << QString::fromStdString(quoted(bad)); };
        row("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'dur':-1,'args':{'stream':7,'name':'x','grid':["
            "1,1,1]}}");
        row("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'args':{'name':'x'}}");
        row("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':5,'dur':null}");
        row("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'dur':5}");
        row("{'ph':'X','cat':'kernel','name':'k','pid':0,'tid':7,'ts':'soon','dur':5}");
        row("{'args':{'name':'x','id':{'ts':1}},'ph':'X',,'name':'k'}");
        row("{'ph':'C','name':'load','pid':0,'ts':5,'args':{'a':nothing}}");
        row("17");
    }
    void oneEventIsLost()
    {
        QFETCH(QString, bad);
        const std::string good =
            quoted("{'ph':'X','cat':'user_annotation','name':'a','pid':1,'tid':1,'ts':10,'dur':5}");
        for (const std::string& text :
             {"[" + good + "," + bad.toStdString() + "," + good + "]",
              "[" + good + "," + good + "," + bad.toStdString() + "]",
              "{\"traceEvents\":[" + good + "," + good + "," + bad.toStdString() + "],\"traceName\":\"x\"}"}) {
            const auto file = readText(text);
            QVERIFY2(file.has_value(), text.c_str());
            QCOMPARE(file->ranks[0].annotations.size(), std::size_t{2});
            QCOMPARE(file->ranks[0].events, std::int64_t{2});
            QCOMPARE(file->ranks[0].damaged, std::int64_t{1});
            QVERIFY2(file->ranks[0].notes.empty(), file->ranks[0].notes.empty() ? "" : file->ranks[0].notes[0].c_str());
        }
    }

    // Reading goes on and counts all.
    void manyDamagedEvents()
    {
        std::string text = "[";
        for (int i = 0; i < 30'000; ++i)
            text += quoted(i % 3 == 0   ? "{'ph':1,,},"
                           : i % 3 == 1 ? "{'ph':'X','ts':1,'dur':-3,'name':'n'},"
                                        : "{'ph':'X','name':'ok','pid':1,'tid':1,'ts':5,'dur':1},");
        const auto file = readText(text + quoted("{'ph':'X','name':'last','pid':1,'tid':1,'ts':5,'dur':1}]"));
        QVERIFY(file);
        QCOMPARE(file->ranks[0].damaged, std::int64_t{20'000});
        QCOMPARE(file->ranks[0].annotations.size(), std::size_t{10'001});
        QVERIFY(file->ranks[0].notes.empty());
    }

    void cutOff_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<bool>("cut");
        const std::string one = quoted("{'ph':'X','name':'a','pid':1,'tid':1,'ts':5,'dur':1,'args':{'grid':[1,1,1]}}");
        const auto row = [](const char* name, const std::string& text, bool cut) {
            QTest::newRow(name) << QString::fromStdString(text) << cut;
        };
        row("no bracket", "[" + one + "," + one, false);
        row("no bracket, comma", "[" + one + "," + one + ",\n", false);
        row("within an event", "[" + one + "," + one.substr(0, 40), true);
        row("object without its end", "{\"traceEvents\":[" + one + "," + one, true);
        row("object within an event", "{\"traceEvents\":[" + one + "," + one.substr(0, 40), true);
        row("damaged at the end", "[" + one + ",{\"ph\":\"X\",,}]", false);
        row("unclosed at the end", "[" + one + ",{\"ph\":\"X\",\"name\":\"open}\n]", false);
        row("unclosed in an object",
            "{\"traceEvents\":[" + one + ",{\"ph\":\"X\",\"name\":\"open},\n" + one + "],\"traceName\":\"x\"}", false);
    }
    void cutOff()
    {
        QFETCH(QString, text);
        QFETCH(bool, cut);
        const auto file = readText(text.toStdString());
        QVERIFY(file);
        const auto& notes = file->ranks[0].notes;
        QCOMPARE(std::any_of(notes.begin(), notes.end(),
                             [](const std::string& note) { return note.find("cut off") != std::string::npos; }),
                 cut);
    }

    void processPerTensor()
    {
        const ImportResult result = imported({reported("horovod_timeline.json")});
        const ImportedRun& one = result.runs.at(0);
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(timeline.ranks(), 1);
        QCOMPARE(timeline.spans().size(), std::size_t{18});
        std::set<std::string> lanes;
        for (const Track& track : timeline.tracks()) lanes.insert(track.name);
        QCOMPARE(lanes, (std::set<std::string>{"rank 0 grad_dense", "rank 0 grad_embed", "rank 0 grad_head"}));
        QVERIFY(one.notes.empty());
        QCOMPARE(configured(one.run, "files"), std::string("horovod_timeline.json"));
    }
    void processesThatAreRanks()
    {
        const auto named = [](const std::vector<std::string>& names) {
            std::string text = "[";
            for (std::size_t i = 0; i < names.size(); ++i) {
                const std::string pid = std::to_string(40 + i);
                if (!names[i].empty())
                    text += "{'ph':'M','name':'process_name','pid':" + pid + ",'args':{'name':'" + names[i] + "'}},";
                text += "{'ph':'X','name':'work','pid':" + pid + ",'tid':1,'ts':" + std::to_string(i) + ",'dur':5},";
            }
            text.back() = ']';
            return importedText(quoted(text)).runs.at(0);
        };
        QCOMPARE(named({"rank 1", "rank 0"}).run.timeline->ranks(), 2);
        QVERIFY(notesSay(named({"job, rank 4", "job, rank 6"}), "ranks 4, 6 of the job"));
        QCOMPARE(named({"", ""}).run.timeline->ranks(), 2); // nothing says otherwise
        QCOMPARE(named({"layer_1/weight", "layer_2/weight", "layer_3/weight"}).run.timeline->ranks(), 1);
        const ImportedRun mixed = named({"rank 0", "rank 1", "loader"});
        QCOMPARE(mixed.run.timeline->ranks(), 2);
        QVERIFY(std::any_of(mixed.run.timeline->tracks().begin(), mixed.run.timeline->tracks().end(),
                            [](const Track& track) { return track.name == "rank 0 loader"; }));
        QCOMPARE(configured(mixed.run, "files"), std::string("trace_rank0.json"));
        const ImportedRun namesakes = named({"python", "python"});
        QCOMPARE(namesakes.run.timeline->ranks(), 1);
        QCOMPARE(namesakes.run.timeline->tracks().size(), std::size_t{2});
    }

    void ordersOfKeys()
    {
        const ImportResult result = imported({reported("sorted_keys.json")});
        const ImportedRun& one = result.runs.at(0);
        QCOMPARE(one.damaged, std::int64_t{0});
        QCOMPARE(one.kernels, std::int64_t{4});
        std::size_t samples = 0;
        for (const Counter& counter : one.run.timeline->counters()) samples += counter.samples.size();
        QCOMPARE(samples, std::size_t{4});
        QVERIFY(one.notes.empty());
        // Arguments first say as much as arguments last.
        const auto kernel = onLane(*ofEvents("{'args':{'stream':7,'correlation':1,'grid':[8,1,1],'block':[128,1,1]},'"
                                             "cat':'kernel','dur':10,'name':'k','ph':'X','pid':0,'tid':7,'ts':5}")
                                        .runs.at(0)
                                        .run.timeline,
                                   Lane::Kernel);
        QCOMPARE(kernel.size(), std::size_t{1});
        const auto process = readText(quoted("[{'args':{'name':'rank "
                                             "3'},'name':'process_name','ph':'M','pid':1},{'args':{},'dur':1,'name':'w'"
                                             ",'ph':'X','pid':1,'tid':1,'ts':1},"
                                             "{'args':{'name':'rank "
                                             "5'},'name':'process_name','ph':'M','pid':2},{'args':{},'dur':1,'name':'w'"
                                             ",'ph':'X','pid':2,'tid':1,'ts':1}]"));
        QVERIFY(process && process->ranks.size() == 2);
        QCOMPARE(process->ranks[1].rank, 5);
    }
    // Own traces whose keys another program sorted: what they are is said after the events.
    void ownTraceSaidLate()
    {
        const std::string events = "'traceEvents':[{'name':'0F0','cat':'F','ph':'X','ts':0,'dur':5,'pid':1,'tid':1},{'"
                                   "name':'0B0','cat':'B','ph':'X','ts':5,'dur':5,'pid':1,'tid':1}]";
        const std::string own = "'otherData':{'generator':'stagewright'}";
        for (const std::string& text : {"{" + own + "," + events + "}", "{" + events + "," + own + "}",
                                        "{" + events + ",'otherData': {'generator' : 'stagewright'}}"})
            QCOMPARE(importedText(quoted(text)).runs.at(0).ops, std::int64_t{2});
    }

    void numbersThatAreNone()
    {
        const ImportResult result = imported({reported("nan_inf.json")});
        QCOMPARE(result.runs.at(0).kernels, std::int64_t{4});
        QCOMPARE(result.runs[0].damaged, std::int64_t{1});
        const ImportResult plugin = imported({reported("nccl_plugin.json")});
        QCOMPARE(plugin.runs.at(0).run.timeline->spans().size(), std::size_t{9});

        QVERIFY(!notesSay(plugin.runs[0], "everything else")); // 1.8 s are as written
    }

    void startEndRanges()
    {
        const ImportResult result = imported({reported("start_end_ranges.sqlite")});
        const Timeline& timeline = *result.runs.at(0).run.timeline;
        std::map<std::string, Nanos> ranges;
        for (const auto& [name, duration] : onLane(timeline, Lane::Other))
            ranges[name] = std::max(ranges[name], duration);
        QCOMPARE(ranges,
                 (std::map<std::string, Nanos>{
                     {"phase alpha", 19'000'000}, {"phase beta", 24'000'000}, {"registered gamma", 40'000'000}}));
        QCOMPARE(result.runs[0].kernelsUnderRanges, std::int64_t{4});
        std::map<std::string, int> under;
        for (const Edge& edge : timeline.edges())
            if (edge.kind == EdgeKind::Launch && edge.from != edge.to)
                ++under[timeline.nameOf(timeline.spans()[edge.from])];
        QCOMPARE(under, (std::map<std::string, int>{{"phase alpha", 2}, {"phase beta", 2}}));
    }

    void graphsTracedAsAWhole()
    {
        const ImportResult result = imported({reported("graph_level.sqlite")});
        const ImportedRun& one = result.runs.at(0);
        QVERIFY(notesSay(one, "2 CUDA graphs were traced as a whole"));
        QVERIFY(notesSay(one, "--cuda-graph-trace=node"));
        const auto table = reportTable(*findAnalysis("device_time"), StepContext(one.run, 0));
        QVERIFY2(table.sentence.find("communicates 0.0 %") == std::string::npos &&
                     table.sentence.find("--cuda-graph-trace=node") != std::string::npos,
                 table.sentence.c_str());
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            if (table.columns[c].key == "communicating_ns" || table.columns[c].key == "computing_ns" ||
                table.columns[c].key == "exposed_ns")
                QCOMPARE(table.rows.at(0)[c].index(), std::size_t{0});
    }

    void graphLaunchesComeBack()
    {
        const ImportResult result = imported({reported("kineto_graph.json")});
        const auto check = [](const ImportedRun& one) {
            QCOMPARE(one.kernels, std::int64_t{10});
            QCOMPARE(one.kernelsUnderOps, std::int64_t{10});
            const auto calls = onLane(*one.run.timeline, Lane::Other);
            QCOMPARE(std::count_if(calls.begin(), calls.end(),
                                   [](const auto& call) {
                                       return call == std::pair<std::string, Nanos>("cudaGraphLaunch", 5'000);
                                   }),
                     std::ptrdiff_t{2});
            std::set<Nanos> launches;
            for (const Edge& edge : one.run.timeline->edges())
                if (edge.kind == EdgeKind::Launch) launches.insert(edge.arrival);
            QCOMPARE(launches.size(), std::size_t{2});
        };
        check(result.runs.at(0));
        QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        const auto counts = writeKinetoFolder(result.runs[0].run, traces);
        QVERIFY(counts.has_value());
        QCOMPARE(counts->launches, std::int64_t{2});
        const std::string text = textOf(traces + "/rank0.pt.trace.json");
        QVERIFY(text.find("cudaLaunchKernel") == std::string::npos);
        check(imported({traces}).runs.at(0));
    }

    void windowsAreNotRanks()
    {
        const ImportResult windows = imported({reported("windows_of_a_process")});
        QCOMPARE(windows.runs.size(), std::size_t{2});
        QCOMPARE(windows.runs[0].run.info.name, std::string("trace_4"));
        QCOMPARE(windows.runs[1].run.info.name, std::string("trace_8"));
        for (const ImportedRun& one : windows.runs) {
            QCOMPARE(one.run.timeline->ranks(), 1);
            QVERIFY(!notesSay(one, "of the job"));
        }
        const ImportResult number = imported({reported("number_in_name")});
        QCOMPARE(number.runs.at(0).run.info.name, std::string("llama-2025.2"));
        QVERIFY(!notesSay(number.runs[0], "of the job"));
        const ImportResult repeat = imported({reported("repeat")});
        QCOMPARE(repeat.runs.size(), std::size_t{2});
        QCOMPARE(repeat.runs[0].run.info.name, std::string("node7 (1)"));
        QCOMPARE(repeat.runs[1].run.info.name, std::string("node7 (2)"));
        QVERIFY(repeat.runs[0].run.timeline->ranks() == 2 && repeat.runs[1].run.timeline->ranks() == 2);
    }
    void numbersOfFiles_data()
    {
        QTest::addColumn<QStringList>("files"); // NAME@MS
        QTest::addColumn<QStringList>("runs");  // NAME/RANKS
        QTest::newRow("alone") << QStringList{"resnet-50.json@0"} << QStringList{"resnet-50/1"};
        QTest::newRow("same time") << QStringList{"trace_0.json@0", "trace_1.json@0"} << QStringList{"trace/2"};
        QTest::newRow("one after the other")
            << QStringList{"trace_0.json@0", "trace_1.json@5000"} << QStringList{"trace_0/1", "trace_1/1"};
        QTest::newRow("said") << QStringList{"job_rank0.json@0", "job_rank1.json@5000"} << QStringList{"job/2"};
        QTest::newRow("GPUs in the name") << QStringList{"llama_gpu8.json@0"} << QStringList{"llama_gpu8/1"};
        QTest::newRow("GPUs beside each other")
            << QStringList{"a_gpu0.json@0", "a_gpu1.json@0"} << QStringList{"a_gpu/2"};
        QTest::newRow("a version") << QStringList{"net_r2.json@0"} << QStringList{"net_r2/1"};
        QTest::newRow("process and time")
            << QStringList{"host_4711.1694128201545.pt.trace.json@0"} << QStringList{"host/1"};
        QTest::newRow("windows of a process")
            << QStringList{"host_4711.1694128201545.pt.trace.json@0", "host_4711.1694128209545.pt.trace.json@9000"}
            << QStringList{"host (1)/1", "host (2)/1"};
    }
    void numbersOfFiles()
    {
        QFETCH(QStringList, files);
        QFETCH(QStringList, runs);
        QTemporaryDir folder;
        for (const QString& file : files) {
            const long long start = file.section('@', 1).toLongLong() * 1000;
            std::ofstream(folder.filePath(file.section('@', 0, 0)).toStdString())
                << quoted("{'schemaVersion':1,'baseTimeNanoseconds':1759300000000000000,'traceEvents':[" +
                          kernelEvent(std::to_string(1000 + start), "500") + "]}");
        }
        QStringList found;
        for (const ImportedRun& one : imported({folder.path().toStdString()}).runs)
            found << QString("%1/%2").arg(QString::fromStdString(one.run.info.name)).arg(one.run.timeline->ranks());
        found.sort();
        QCOMPARE(found, runs);
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("text"); // "": the file of that name in the folder
        QTest::addColumn<QString>("says");
        QTest::addColumn<QString>("bring");
        QTest::newRow("lists of numbers") << "m.json"
                                          << "[[1759300000000,1759300001000],[[0,1],[2,3]]]"
                                          << "memory timeline"
                                          << "profile_memory=True";
        QTest::newRow("other lines of Nsight Systems") << "lines.json"
                                                       << "{\"Type\":1,\"a\":1}\n{\"Type\":1,\"a\":2}\n"
                                                       << "JSON lines of Nsight Systems in a form that is not read"
                                                       << "--type sqlite";
        QTest::newRow("event lines")
            << "e.json"
            << "{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1}\n{\"ph\":\"X\",\"name\":\"b\",\"ts\":3,\"dur\":1}\n"
            << "event lines"
            << "jq -s";
        QTest::newRow("lines") << "l.jsonl"
                               << "{\"loss\":1}\n{\"loss\":2}\n"
                               << "JSON lines"
                               << "export_chrome_trace";
        QTest::newRow("Chakra")
            << "et.json"
            << "{\n \"schema\": \"1.0.2-chakra.0.0.4\", \"pid\": 7, \"nodes\": [{\"id\": 1, \"name\": \"aten::mm\"}]}"
            << "Chakra execution trace"
            << "export_chrome_trace";
        QTest::newRow("execution trace of 2022") << "et.json"
                                                 << "{\"schema\": \"1.0.1\", \"pid\": 7, \"nodes\": []}"
                                                 << "Chakra execution trace"
                                                 << "export_chrome_trace";
        QTest::newRow("no kernels") << "no_kernels.sqlite"
                                    << ""
                                    << "no kernels"
                                    << "--trace=cuda,nvtx";
        QTest::newRow("operators alone") << "o.json"
                                         << "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\","
                                            "\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5}]}"
                                         << "only 1 operators of the host"
                                         << "--host-ops";
        QTest::newRow("UTF-16") << "utf16.json" << QString(QChar(QChar::ByteOrderMark)) + "{\"traceEvents\":[]}"
                                << "text in UTF-16"
                                << "iconv -f UTF-16";
        QTest::newRow("cut off before its kernels")
            << "cut.json"
            << "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":"
               "\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":5},{\"ph\":\"X"
            << "cut off after 1 events"
            << "";
        QTest::newRow("other JSON") << "x.json"
                                    << "{\"a\":1}"
                                    << "traceEvents is missing"
                                    << "export_chrome_trace";
    }
    void refusals()
    {
        QFETCH(QString, name);
        QFETCH(QString, text);
        QFETCH(QString, says);
        QFETCH(QString, bring);
        QTemporaryDir folder;
        const std::string path = text.isEmpty() ? reported(name.toStdString()) : folder.filePath(name).toStdString();
        if (text.startsWith(QChar::ByteOrderMark)) {
            std::ofstream(path, std::ios::binary)
                .write(reinterpret_cast<const char*>(text.utf16()), std::streamsize(2) * text.size());
        } else if (!text.isEmpty()) {
            std::ofstream(path) << text.toStdString();
        }
        const auto result = importTraces({path}, {});
        QVERIFY(!result);
        QVERIFY2(QString::fromStdString(result.error().message).contains(says), result.error().message.c_str());
        QVERIFY2(QString::fromStdString(result.error().remedy).contains(bring), result.error().remedy.c_str());
        QVERIFY(result.error().message.starts_with("file " + path));
    }

    // What carries memory or time is read, and what it lacks is said.
    void partlyKnown()
    {
        const ImportResult memory = imported({reported("memory_timeline.json")});
        QVERIFY(memory.runs.at(0).run.timeline->hasMemory());
        QVERIFY(notesSay(memory.runs[0], "by which op, stage and microbatch it is held is unknown"));
        const ImportResult lines = imported({reported("nsys_lines.json")});
        QCOMPARE(lines.runs.at(0).kernels, std::int64_t{3});
        QVERIFY(notesSay(lines.runs[0], "the names of its kernels and calls are unknown"));
    }

    // An unnumbered collective that a rank lacks is alone; the others keep their counterparts.
    void oneCollectiveMissing_data()
    {
        QTest::addColumn<QList<int>>("lacking"); // by rank 1
        QTest::addColumn<int>("alone");
        QTest::newRow("none") << QList<int>{} << 0;
        QTest::newRow("first") << QList<int>{0} << 1;
        QTest::newRow("middle") << QList<int>{5} << 1;
        QTest::newRow("last") << QList<int>{11} << 1;
        QTest::newRow("three") << QList<int>{2, 3, 9} << 3;
    }
    void oneCollectiveMissing()
    {
        QFETCH(QList<int>, lacking);
        QFETCH(int, alone);
        QTemporaryDir folder;
        for (int rank = 0; rank < 2; ++rank) {
            std::string events;
            for (int i = 0; i < 12; ++i) {
                if (rank == 1 && lacking.contains(i)) continue;
                const int at = 1000 + 200 * i + (i % 3) * 7; // closer to each other than clocks agree
                events +=
                    std::string(events.empty() ? "" : ",") +
                    kernelEvent(std::to_string(at + 3 * rank), "100", i, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
            }
            std::ofstream(folder.filePath(QString("rank%1.json").arg(rank)).toStdString()) << quoted(
                "{'schemaVersion':1,'baseTimeNanoseconds':1759300000000000000,'traceEvents':[" + events + "]}");
        }
        const ImportResult result = imported({folder.path().toStdString()});
        QCOMPARE(result.runs.at(0).collectives, static_cast<std::int64_t>(12 - lacking.size()));
        QCOMPARE(result.runs[0].collectivesAlone, static_cast<std::int64_t>(alone));
        const Timeline& timeline = *result.runs[0].run.timeline;
        for (const Edge& edge : timeline.edges())
            // after the clock of rank 1 was moved by the 3 µs
            if (edge.kind == EdgeKind::Transfer)
                QCOMPARE(timeline.spans()[edge.from].end, timeline.spans()[edge.to].end);
    }

    // Collectives without numbers on clocks 4.8 ms apart, 5 ms from each other: the profiler's steps say which belong
    // together, not the clocks.
    void unnumberedCollectives()
    {
        const ImportResult result = imported({reported("unnumbered")});
        QCOMPARE(result.runs.at(0).collectives, std::int64_t{4});
        QCOMPARE(result.runs[0].collectivesAlone, std::int64_t{0});
        QVERIFY2(result.runs[0].clocks.find("by at most 4.80 ms") != std::string::npos, result.runs[0].clocks.c_str());
    }

    // Two processes on one device, whose calls have the same numbers: each keeps its kernels.
    void mergedOnOneDevice()
    {
        const ImportResult result = imported({reported("merged_one_device.json")});
        const Timeline& timeline = *result.runs.at(0).run.timeline;
        QCOMPARE(timeline.ranks(), 2);
        std::map<int, std::set<std::string>> names;
        for (const Track& track : timeline.tracks())
            if (track.lane == Lane::Kernel)
                for (const Span& span : timeline.spansOf(track)) names[track.rank].insert(timeline.nameOf(span));
        QCOMPARE(names, (std::map<int, std::set<std::string>>{{0, {"gemmA"}}, {1, {"gemmB"}}}));
    }

    // What says nothing of messages is exported without any.
    void exportsInventNoMessages()
    {
        const ImportResult result = imported({reported("no_messages")});
        QCOMPARE(result.runs.at(0).messages, std::int64_t{0});
        QVERIFY(!whyNoArrivals(*result.runs[0].run.timeline).empty());
        QTemporaryDir folder;
        const std::string traces = folder.filePath("traces").toStdString();
        QVERIFY(writeKinetoFolder(result.runs[0].run, traces).has_value());
        const ImportResult back = imported({traces});
        QCOMPARE(back.runs.at(0).messages, std::int64_t{0});
        QCOMPARE(back.runs[0].ops, result.runs[0].ops);
    }

    // "node7_12345.1759300000123.pt.trace.json": a host and a process.
    void processesInNames()
    {
        const ImportResult result = imported({reported("handler_names")});
        for (const ImportedRun& one : result.runs) QVERIFY2(!notesSay(one, "12345"), "a process is called a rank");
    }

    // Kernels in processes that are named as ranks, and nothing that launched them.
    void namedProcessesWithKernels()
    {
        const ImportResult result = imported({reported("named_processes.json")});
        QCOMPARE(result.runs.at(0).run.timeline->ranks(), 2);
        QCOMPARE(result.runs[0].kernels, std::int64_t{6});
    }

    void namesKeepTheirNumbers_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("run");
        QTest::newRow("a version") << "llama-3.1-8b.json"
                                   << "llama-3.1-8b";
        QTest::newRow("a step") << "step_100.json"
                                << "step_100";
        QTest::newRow("the rank") << "trace_0.json"
                                  << "trace";
        QTest::newRow("another number") << "trace_4.json"
                                        << "trace_4";
    }
    void namesKeepTheirNumbers()
    {
        QFETCH(QString, file);
        QFETCH(QString, run);
        const auto result =
            importedText(quoted("{'schemaVersion':1,'distributedInfo':{'rank':0,'world_size':1},'traceEvents':[" +
                                kernelEvent("100", "50") + "]}"),
                         file.toLatin1().constData());
        QCOMPARE(QString::fromStdString(result.runs.at(0).run.info.name), run);
    }

    void noSkew()
    {
        const ImportResult result = imported({reported("no_skew")});
        const auto table = reportTable(*findAnalysis("stragglers"), StepContext(result.runs.at(0).run, 1));
        QVERIFY2(table.sentence.starts_with("others wait 9.90 ms for rank 1"), table.sentence.c_str());
    }
};

QTEST_APPLESS_MAIN(TestReportedTraces)
#include "tst_reported_traces.moc"
