// Memory of imported traces: what the allocator's events are, snapshots and memory timelines of PyTorch.
#include <QtTest/QtTest>

#include <algorithm>
#include <fstream>
#include <random>

#include "tests/traces/import_rig.h"
#include "traces/analysis/memory.h"
#include "traces/import/memory/memory_snapshot.h"
#include "traces/import/memory/memory_timeline.h"

using namespace stagewright;
using namespace stagewright::import_rig;

namespace {

std::string span(const char* name, int start, int length)
{
    return "{'ph':'X','cat':'user_annotation','name':'" + std::string(name) +
           "','pid':1,'tid':1,'ts':" + std::to_string(start) + ",'dur':" + std::to_string(length) + "},";
}

// The total is that after the event.
std::string memory(int time, int bytes, int address, int& total)
{
    total += bytes;
    return "{'ph':'i','cat':'cpu_instant_event','name':'[memory]','pid':1,'tid':1,'ts':" + std::to_string(time) +
           ",'args':{'Total Allocated':" + std::to_string(total) + ",'Bytes':" + std::to_string(bytes) +
           ",'Addr':" + std::to_string(address) + ",'Device Type':1}},";
}

using Peaks = std::array<Bytes, memoryCategoryCount>;

Peaks peaksIn(const Timeline& timeline, Nanos from, Nanos to)
{
    Peaks now{}, most{};
    for (const MemoryEvent& event : timeline.memoryOf(0)) {
        now[static_cast<std::size_t>(event.category)] += event.delta;
        if (event.time < from || event.time >= to) continue;
        for (std::size_t category = 0; category < now.size(); ++category)
            most[category] = std::max(most[category], now[category]);
    }
    return most;
}

Bytes at(const Peaks& peaks, MemoryCategory category) { return peaks[static_cast<std::size_t>(category)]; }

Result<ForeignFile> readSnapshotText(std::string text)
{
    const auto source = byteSourceOf(std::move(text));
    return readMemorySnapshot(*source, "snapshot.json", {});
}

Result<ForeignFile> readTimelineText(std::string text)
{
    const auto source = byteSourceOf(std::move(text));
    return readMemoryTimeline(*source, "timeline.json", {});
}

// Times in µs and bytes by category: weights, optimizer, inputs, temporary, activations, gradients, autograd, unknown.
std::string sizesText()
{
    return "[[1759300000000000,1759300000000000,1759300000000010,1759300000000020,1759300000000035],"
           "[[0,4096,2048,0,0,0,0,0,0],[0,4096,2048,128,0,0,0,0,0],[0,4096,2048,128,64,1024,0,0,0],"
           "[0,4096,2048,128,0,1024,512,16,8],[0,4096,2048,128,0,0,512,16,0]]]";
}
// The same as changes at times in ns.
std::string changesText()
{
    const std::string t = "17593000000000";
    return "[[-1,1,4096,0],[-1,1,2048,1],[" + t + "00000,2,128,2],[" + t + "10000,2,64,3],[" + t + "10000,2,1024,4],[" +
           t + "20000,4,-64,3],[" + t + "20000,3,512,5],[" + t + "20000,2,16,6],[" + t + "20000,2,8,7],[" + t +
           "35000,4,-1024,4],[" + t + "35000,4,-8,7]]";
}

// Two devices have a trace, the second an empty one. 1,000 B stay in use from before; the forward's 300 B live until
// its backward.
std::string snapshotText()
{
    return quoted(
        "{'segments':[{'device':0,'total_size':4096,'blocks':[{'size':1000,'state':'active_allocated','frames':[{'name'"
        ":'f','size':77}]},{'size':50,'state':'active_allocated'},{'size':3046,'state':'inactive'}]}],"
        "'device_traces':[[{'action':'segment_alloc','addr':1,'size':2048,'time_us':10},{'action':'alloc','addr':100,'"
        "size':300,'time_us':1020,'frames':[{'action':'alloc','size':5}]},"
        "{'action':'alloc','addr':200,'size':64,'time_us':1030},{'action':'free_requested','addr':200,'size':64,'time_"
        "us':1035},{'action':'free_completed','addr':200,'size':64,'time_us':1040},"
        "{'action':'free_requested','addr':100,'size':300,'time_us':2050},{'action':'free_completed','addr':100,'size':"
        "300,'time_us':2060},{'action':'alloc','addr':300,'size':50,'time_us':2070},{'action':'oom','size':1,'time_us':"
        "2080}],[]],"
        "'external_annotations':[{'stage':'START','name':'PP:0F0','device':0,'time_us':1000},{'stage':'END','name':'PP:"
        "0F0','device':0,'time_us':1100},"
        "{'stage':'START','name':'PP:0B0','device':0,'time_us':2000},{'stage':'END','name':'PP:0B0','device':0,'time_"
        "us':2100}],'allocator_settings':{'expandable_segments':false}}");
}

} // namespace

class TestImportMemory : public QObject {
    Q_OBJECT

private slots:
    // What a backward leaves are gradients in every step, not only in the last; what it frees itself is workspace.
    void gradientsOfEveryStep_data()
    {
        QTest::addColumn<int>("freed"); // when, after the start of a step
        QTest::newRow("by the optimizer") << 350;
        QTest::newRow("after the optimizer") << 395;
        QTest::newRow("where the next step starts") << 1002;
        QTest::newRow("in the next step's forward") << 1050;
    }
    void gradientsOfEveryStep()
    {
        QFETCH(int, freed);
        std::string text;
        std::vector<std::tuple<int, int, int>> changes; // time, bytes, address
        for (int step = 0; step < 3; ++step) {
            const int begin = 10'000 + 1000 * step;
            text += span(("ProfilerStep#" + std::to_string(step)).c_str(), begin, 999);
            text +=
                span("PP:0F0", begin + 10, 90) + span("PP:0B0", begin + 110, 190) + span("OPT step", begin + 310, 80);
            changes.insert(changes.end(), {{begin + 20, 4096, 1},
                                           {begin + 120, 512, 2},
                                           {begin + 130, 64, 3},
                                           {begin + 140, -64, 3},
                                           {begin + 200, -4096, 1}});
            if (step == 0) changes.emplace_back(begin + 320, 2048, 4); // the optimizer's state
            if (step < 2) changes.emplace_back(begin + freed, -512, 2);
        }
        std::stable_sort(changes.begin(), changes.end(),
                         [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
        int total = 8000;
        for (const auto& [time, bytes, address] : changes) text += memory(time, bytes, address, total);
        ImportOptions options;
        QTemporaryDir folder;
        const std::string path = folder.filePath("rank0.json").toStdString();
        std::ofstream(path) << quoted(
            "{'schemaVersion':1,'traceEvents':[" + text +
            "{'ph':'X','cat':'cpu_op','name':'aten::mm','pid':1,'tid':1,'ts':10001,'dur':1}]}");
        options.rules = *LabelRules::parse("action PP:{action}\nOPT OPT step\n");
        const ImportResult result = imported({path}, options);
        QCOMPARE(result.runs.size(), std::size_t{1});
        const Timeline& timeline = *result.runs[0].run.timeline;
        QCOMPARE(timeline.steps(), 3);
        for (int step = 0; step < 3; ++step) {
            const Nanos begin = timeline.begin() + step * 1'000'000;
            // the former ones may live until 50 µs
            const Peaks peaks = peaksIn(timeline, begin + 60'000, begin + 300'000);
            QCOMPARE(at(peaks, MemoryCategory::Gradients), Bytes{512});
            QCOMPARE(at(peaks, MemoryCategory::Activations), Bytes{4096});
            QCOMPARE(at(peaks, MemoryCategory::Workspace), Bytes{64});
            QCOMPARE(at(peaks, MemoryCategory::Weights), Bytes{8000});
            QCOMPARE(at(peaks, MemoryCategory::Optimizer), Bytes{step > 0 ? 2048 : 0});
        }
    }

    void snapshots()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("snapshot_rank3.json").toStdString();
        std::ofstream(path) << snapshotText();
        const ImportResult result = imported({path});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.format, std::string("snapshot"));
        QCOMPARE(one.recognised, std::string("gpipe")); // one forward, one backward
        QCOMPARE(one.damaged, std::int64_t{0});
        QVERIFY(notesSay(one, "ran out of memory 1 time"));
        const Timeline& timeline = *one.run.timeline;
        const Peaks peaks = peaksIn(timeline, timeline.begin(), timeline.end() + 1'000'000);
        QCOMPARE(at(peaks, MemoryCategory::Weights), Bytes{1000});
        QCOMPARE(at(peaks, MemoryCategory::Activations), Bytes{300});
        QCOMPARE(at(peaks, MemoryCategory::Workspace), Bytes{64});
        QCOMPARE(at(peaks, MemoryCategory::Gradients), Bytes{50});
        QCOMPARE(timeline.counters().size(), std::size_t{1});
        QCOMPARE(timeline.counters()[0].samples.front().value, 4096.0);
    }

    void snapshotsWithoutRanges()
    {
        const auto file =
            readSnapshotText(quoted("{'segments':[],'device_traces':[[{'action':'alloc','addr':1,'size':10,'time_us':5}"
                                    ",{'action':'free','addr':1,'size':10,'time_us':9}]]}"));
        QVERIFY(file && file->ranks.size() == 1);
        QCOMPARE(file->ranks[0].annotations.size(), std::size_t{1});
        QCOMPARE(file->ranks[0].annotations[0].end, Nanos{9000});
        QCOMPARE(file->ranks[0].memory.size(), std::size_t{2});
    }

    void refusedSnapshots_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        QTest::newRow("no history") << "{'segments':[],'device_traces':[[],[]]}"
                                    << "no events";
        QTest::newRow("no traces") << "{'segments':[{'device':0}]}"
                                   << "device_traces is missing";
        QTest::newRow("no times") << "{'segments':[],'device_traces':[[{'action':'alloc','addr':1,'size':10}]]}"
                                  << "no times";
        QTest::newRow("cut off before") << "{'segments':[{'device':"
                                        << "damaged at byte";
    }
    void refusedSnapshots()
    {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto file = readSnapshotText(quoted(text.toStdString()));
        QVERIFY(!file);
        QVERIFY2(QString::fromStdString(file.error().message).contains(says), file.error().message.c_str());
        QVERIFY(!file.error().remedy.empty());
    }

    // Both forms hold the same memory by category; what has no category here is workspace, with a counter of its own.
    void timelines_data()
    {
        QTest::addColumn<QString>("text");
        QTest::newRow("sizes at times") << QString::fromStdString(sizesText());
        QTest::newRow("changes") << QString::fromStdString(changesText());
    }
    void timelines()
    {
        QFETCH(QString, text);
        QTemporaryDir folder;
        const std::string path = folder.filePath("memory_rank2.json").toStdString();
        std::ofstream(path) << text.toStdString();
        const ImportResult result = imported({path});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.format, std::string("memory-timeline"));
        QCOMPARE(one.damaged, std::int64_t{0});
        QVERIFY(notesSay(one, "by which op, stage and microbatch it is held is unknown"));
        QVERIFY(notesSay(one, "counted as workspace: inputs (at most 128 B), autograd detail (at most 16 B), memory of "
                              "unknown category (at most 8 B)"));
        const Timeline& timeline = *one.run.timeline;
        QCOMPARE(timeline.end() - timeline.begin(), Nanos{35'000});
        const Peaks peaks = peaksIn(timeline, timeline.begin(), timeline.end() + 1);
        QCOMPARE(at(peaks, MemoryCategory::Weights), Bytes{4096});
        QCOMPARE(at(peaks, MemoryCategory::Optimizer), Bytes{2048});
        QCOMPARE(at(peaks, MemoryCategory::Activations), Bytes{1024});
        QCOMPARE(at(peaks, MemoryCategory::Gradients), Bytes{512});
        QCOMPARE(at(peaks, MemoryCategory::Workspace), Bytes{128 + 64});
        QCOMPARE(timeline.counters().size(), std::size_t{3});
        for (const MemoryEvent& event : timeline.memory()) QCOMPARE(event.microbatch, -1);
        const auto finding = [](const char* what) {
            return [what](const Counter& counter) { return counter.name.find(what) != std::string::npos; };
        };
        const auto inputs = std::ranges::find_if(timeline.counters(), finding("inputs"));
        QVERIFY(inputs != timeline.counters().end());
        QCOMPARE(inputs->samples.back().value, 128.0);
    }

    void damagedTimelines_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says"); // "": it is read
        QTest::addColumn<int>("damaged");
        QTest::newRow("a row of texts") << "[[1,2,10,0],[2,\"a\",10,0],[3,2,10,0]]"
                                        << "" << 1;
        QTest::newRow("a category that is not") << "[[1,2,10,0],[2,2,10,9]]"
                                                << "" << 1;
        QTest::newRow("one change") << "[[1,2,10,0]]"
                                    << "" << 0;
        QTest::newRow("a time that is null") << "[[5,null,7],[[0,1,0,0,0,0,0,0,0],[0,2,0,0,0,0,0,0,0],"
                                                "[0,3,0,0,0,0,0,0,0]]]"
                                             << "" << 1;
        QTest::newRow("cut off") << "[[5,6],[[0,1,0,0,0,0,0,0,0],[0,2,"
                                 << "" << 1;
        QTest::newRow("cut off in its times") << "[[5,6,7,8,9"
                                              << "damaged at byte" << 0;
        QTest::newRow("of another device") << "[[],[]]"
                                           << "no change of memory" << 0;
        QTest::newRow("other numbers") << "[[1,2],[3,4]]"
                                       << "not those of PyTorch's memory timeline" << 0;
        QTest::newRow("points") << "[[[1,2],[3,4]]]"
                                << "not those of PyTorch's memory timeline" << 0;
        QTest::newRow("objects") << "[[1,2,10,0],{\"a\":1}]"
                                 << "not those of PyTorch's memory timeline" << 0;
    }
    void damagedTimelines()
    {
        QFETCH(QString, text);
        QFETCH(QString, says);
        QFETCH(int, damaged);
        const auto file = readTimelineText(text.toStdString());
        if (says.isEmpty()) {
            QVERIFY2(file, file ? "" : file.error().message.c_str());
            QCOMPARE(file->ranks[0].damaged, std::int64_t{damaged});
            return;
        }
        QVERIFY(!file);
        QVERIFY2(QString::fromStdString(file.error().message).contains(says), file.error().message.c_str());
        QVERIFY(!file.error().remedy.empty());
    }

    // Refused with the line that converts it, never loaded.
    void pickles()
    {
        QTemporaryDir folder;
        for (const auto& [name, bytes] :
             {std::pair("snapshot.pickle", std::string("\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.", 14)),
              std::pair("any.bin", std::string("\x80\x02}q\x00.", 6)), std::pair("old.pkl", std::string("(dp0\n."))}) {
            const std::string path = folder.filePath(name).toStdString();
            std::ofstream(path, std::ios::binary) << bytes;
            const auto result = importTraces({path}, {});
            QVERIFY(!result);
            QVERIFY2(result.error().message.find("pickle, which is not loaded") != std::string::npos,
                     result.error().message.c_str());
            QVERIFY2(result.error().remedy.find("json.dump(pickle.load(") != std::string::npos,
                     result.error().remedy.c_str());
        }
    }

    // Any bytes: read or refused with a reason.
    void mutations_data()
    {
        QTest::addColumn<QString>("of");
        QTest::newRow("snapshot") << QString::fromStdString(snapshotText());
        QTest::newRow("sizes at times") << QString::fromStdString(sizesText());
        QTest::newRow("changes") << QString::fromStdString(changesText());
    }
    void mutations()
    {
        QFETCH(QString, of);
        const std::string text = of.toStdString();
        std::mt19937 random(11);
        const int rounds = qEnvironmentVariableIntValue("STAGEWRIGHT_MUTATIONS") > 0
                               ? qEnvironmentVariableIntValue("STAGEWRIGHT_MUTATIONS")
                               : 5'000;
        int read = 0;
        for (int round = 0; round < rounds; ++round) {
            std::string changed = text;
            for (std::size_t times = 1 + random() % 4; times > 0; --times) {
                const std::size_t place = random() % changed.size();
                switch (random() % 4) {
                case 0: changed[place] = static_cast<char>(random()); break;
                case 1: changed.erase(place, 1 + random() % 20); break;
                case 2: changed.insert(place, changed.substr(random() % changed.size(), random() % 30)); break;
                default:
                    changed.insert(place, std::array{"-1", "9999999999999999999", "1e300", "[", "]", "{", "}",
                                                     "null"}[random() % 8]);
                    break;
                }
                if (changed.empty()) changed = "{";
            }
            auto file = text.starts_with('{') ? readSnapshotText(changed) : readTimelineText(changed);
            if (!file) {
                QVERIFY(!file.error().message.empty());
                continue;
            }
            ++read;
            const auto runs = assemble(std::move(file->ranks), "mutated", {});
            if (!runs) QVERIFY(!runs.error().message.empty());
        }
        QVERIFY(read > rounds / 20);
    }
};

QTEST_GUILESS_MAIN(TestImportMemory)
#include "tst_import_memory.moc"
