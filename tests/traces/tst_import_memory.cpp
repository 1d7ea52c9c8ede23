// Memory of imported traces: what the allocator's events are, and snapshots of PyTorch.
#include <QtTest/QtTest>

#include <fstream>
#include <random>

#include "tests/traces/import_rig.h"
#include "traces/analysis/memory.h"
#include "traces/import/memory/memory_snapshot.h"

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
    void mutatedSnapshots()
    {
        const std::string text = snapshotText();
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
            auto file = readSnapshotText(changed);
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
