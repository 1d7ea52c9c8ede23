// Chrome JSON: parsed back; spans nest, flows pair up and bind, counts are those of the timeline; atomic on a full
// disk.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>

#include <map>
#include <set>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "sample_runs.h"
#include "tests/traces/import_rig.h"
#include "traces/export/chrome_json.h"
#include "traces/format/atomic_file.h"

using namespace stagewright;
using namespace stagewright::import_rig;
using nlohmann::json;

namespace {

// "12.345" µs → 12345 ns, from the text, so that nothing is rounded.
std::int64_t nanosOf(const json& microsecondsNumber) { return std::llround(microsecondsNumber.get<double>() * 1000); }

struct Slice {
    std::int64_t start = 0;
    std::int64_t end = 0;
};

} // namespace

class TestChromeJson : public QObject {
    Q_OBJECT

private slots:
    void microsecondsComeFromIntegers()
    {
        QCOMPARE(microseconds(0), std::string("0.000"));
        QCOMPARE(microseconds(1), std::string("0.001"));
        QCOMPARE(microseconds(1234567), std::string("1234.567"));
        QCOMPARE(microseconds(-1500), std::string("-1.500"));
        QCOMPARE(microseconds(9'007'199'254'740'993), std::string("9007199254740.993"));
        QCOMPARE(microseconds(std::numeric_limits<Nanos>::min()), std::string("-9223372036854775.808"));
    }

    void whatIsWrittenIsWhatWasThere_data()
    {
        QTest::addColumn<Run>("run");
        for (const char* kind : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"})
            QTest::addRow("%s", kind) << samples::simulatedRun(kind, 4, 8, 0.5);
        for (std::uint32_t seed = 0; seed < 4; ++seed) QTest::addRow("random %u", seed) << samples::randomRun(seed);
        Run empty;
        empty.timeline = TimelineBuilder(Provenance::Imported, "", 1).build().value();
        QTest::addRow("empty") << empty;
    }

    void whatIsWrittenIsWhatWasThere()
    {
        QFETCH(Run, run);
        std::string text;
        const auto sink = [&text](std::string_view part) {
            text += part;
            return true;
        };
        const auto counts = writeChromeJson(run, sink);
        QVERIFY(counts.has_value());
        std::string again;
        QVERIFY(writeChromeJson(run, [&again](std::string_view part) {
                    again += part;
                    return true;
                }).has_value());
        QVERIFY(text == again);
        QVERIFY(std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));

        const json trace = json::parse(text);
        const Timeline& timeline = *run.timeline;
        std::map<std::pair<int, int>, std::vector<Slice>> threads;
        std::map<std::pair<int, int>, std::string> names;
        std::map<std::int64_t, int> flowBegins;
        std::map<std::int64_t, int> flowEnds;
        std::set<int> processes;
        std::int64_t spans = 0;
        std::int64_t bubbles = 0;
        std::int64_t samplesSeen = 0;
        for (const json& event : trace["traceEvents"]) {
            const std::string phase = event["ph"];
            const std::pair thread(event["pid"].get<int>(), event["tid"].get<int>());
            if (phase == "X") {
                const std::int64_t start = nanosOf(event["ts"]);
                if (start < 0) QFAIL("a negative time");
                threads[thread].push_back({start, start + nanosOf(event["dur"])});
                (event["cat"] == "bubble" ? bubbles : spans) += 1;
                if (event["cat"] == "bubble") QVERIFY(!event["args"]["why"].get<std::string>().empty());
            } else if (phase == "M") {
                if (event["name"] == "thread_name") names[thread] = event["args"]["name"];
                if (event["name"] == "process_name") processes.insert(thread.first);
            } else if (phase == "C") {
                ++samplesSeen;
                if (nanosOf(event["ts"]) < 0) QFAIL("a negative time");
                QVERIFY(event["args"].begin().value().is_number());
            } else if (phase == "s" || phase == "f") {
                (phase == "s" ? flowBegins : flowEnds)[event["id"].get<std::int64_t>()] += 1;
                if (phase == "f") QCOMPARE(event["bp"].get<std::string>(), std::string("e"));
            } else {
                QFAIL(phase.c_str());
            }
        }
        QCOMPARE(spans, static_cast<std::int64_t>(timeline.spans().size()));
        QCOMPARE(counts->spans, spans);
        QCOMPARE(counts->bubbles, bubbles);
        QCOMPARE(counts->counterSamples, samplesSeen);
        const auto data =
            std::ranges::count_if(timeline.edges(), [](const Edge& edge) { return edge.kind == EdgeKind::Data; });
        QCOMPARE(counts->flows, static_cast<std::int64_t>(data));
        QCOMPARE(flowBegins.size(), static_cast<std::size_t>(data));
        QVERIFY(flowBegins == flowEnds);
        for (const auto& [id, times] : flowBegins) QCOMPARE(times, 1);
        QCOMPARE(processes.size(), static_cast<std::size_t>(timeline.ranks()));
        for (auto& [thread, slices] : threads) {
            QVERIFY2(names.contains(thread), "a thread without a name");
            std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
                return std::pair(a.start, a.end) < std::pair(b.start, b.end);
            });
            bool apart = true;
            for (std::size_t i = 1; i < slices.size(); ++i) apart = apart && slices[i].start >= slices[i - 1].end;
            QVERIFY2(apart, names[thread].c_str());
        }
        const auto samplesOf = [&](int rank) {
            std::set<std::pair<int, Nanos>> distinct;
            for (const MemoryEvent& event : timeline.memoryOf(rank))
                distinct.insert({static_cast<int>(event.category), event.time});
            return static_cast<std::int64_t>(distinct.size());
        };
        std::int64_t expected = 0;
        for (int rank = 0; rank < timeline.ranks() && timeline.hasMemory(); ++rank) expected += samplesOf(rank);
        for (const Counter& counter : timeline.counters())
            expected += static_cast<std::int64_t>(counter.samples.size());
        QCOMPARE(samplesSeen, expected);
    }

    void flowsLieWithinTheirSpans()
    {
        const Run run = samples::simulatedRun("zb-h1", 4, 8, 0.5);
        std::string text;
        QVERIFY(writeChromeJson(run, [&text](std::string_view part) {
                    text += part;
                    return true;
                }).has_value());
        const json trace = json::parse(text);
        std::map<std::pair<int, int>, std::vector<Slice>> threads;
        for (const json& event : trace["traceEvents"])
            if (event["ph"] == "X")
                threads[{event["pid"], event["tid"]}].push_back(
                    {nanosOf(event["ts"]), nanosOf(event["ts"]) + nanosOf(event["dur"])});
        int seen = 0;
        for (const json& event : trace["traceEvents"]) {
            if (event["ph"] != "s" && event["ph"] != "f") continue;
            const std::int64_t at = nanosOf(event["ts"]);
            const auto& slices = threads[{event["pid"], event["tid"]}];
            QVERIFY(std::any_of(slices.begin(), slices.end(),
                                [at](const Slice& s) { return s.start <= at && at < s.end; }));
            ++seen;
        }
        QVERIFY(seen > 100);
    }

    void filesAreWholeOrAbsent()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("trace.json").toStdString();
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        QVERIFY(writeChromeJsonFile(run, path).has_value());
        std::ifstream file(path);
        QVERIFY(json::parse(file).is_object());
        // a write that fails leaves the old file and nothing else
        const auto failed = writeFileAtomically(path, [](const Sink& out) -> Result<void> {
            out("half");
            return fail(ErrorCode::Failed, "no more");
        });
        QVERIFY(!failed.has_value());
        std::ifstream old(path);
        QVERIFY(json::parse(old).is_object());
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
        const auto nowhere = writeChromeJsonFile(run, folder.filePath("no/such/folder.json").toStdString());
        QVERIFY(!nowhere.has_value());
        QCOMPARE(nowhere.error().code, ErrorCode::Unreadable);
        QVERIFY(!nowhere.error().remedy.empty());
    }

    // A file that is replaced keeps its mode, a new one has what the umask leaves; what a killed export left goes with
    // the next one, what another export is writing stays.
    void modesAndLeftParts()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("out.json").toStdString();
        const auto modeOf = [](const std::string& name) {
            struct stat found {};
            return ::stat(name.c_str(), &found) == 0 ? static_cast<int>(found.st_mode & 07777) : -1;
        };
        const mode_t before = ::umask(027);
        QVERIFY(writeFileAtomically(path, "one"));
        QCOMPARE(modeOf(path), 0640);
        QVERIFY(::chmod(path.c_str(), 0600) == 0);
        QVERIFY(writeFileAtomically(path, "two"));
        QCOMPARE(modeOf(path), 0600);
        const std::string many = folder.filePath("many").toStdString();
        QVERIFY(writeFolderAtomically(
            many, [](const std::string& inside) { return writeFileAtomically(inside + "/a", "a"); }));
        QCOMPARE(modeOf(many), 0750);
        ::umask(before);

        const QString other = folder.filePath("out.json.part-notours"),
                      otherFolder = folder.filePath("more.part-abc123abcdefghi");
        QFile file(other);
        QVERIFY(file.open(QIODevice::WriteOnly));
        QVERIFY(QDir().mkpath(otherFolder + "/traces"));
        const auto killedWhileWriting = [](const auto& write) { // what it wrote so far stays
            const pid_t child = ::fork();
            if (child == 0) write();
            int status = 0;
            return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
        };
        QVERIFY(killedWhileWriting([&] {
            (void)writeFileAtomically(path, [](const Sink& out) -> Result<void> {
                out("half");
                ::_exit(7);
            });
        }));
        QVERIFY(killedWhileWriting([&] {
            (void)writeFolderAtomically(folder.filePath("more").toStdString(),
                                        [](const std::string& inside) -> Result<void> {
                                            (void)writeFileAtomically(inside + "/a", "a");
                                            ::_exit(7);
                                        });
        }));
        QCOMPARE(QDir(folder.path()).entryList({"*.part-*"}).size(), 4);
        bool beside = false;
        QVERIFY(writeFileAtomically(path, [&](const Sink& out) -> Result<void> {
            out("three");
            if (auto inner = writeFileAtomically(path, "four"); !inner) return inner; // while this one writes
            // this one's, and the name that is not ours
            beside = QDir(folder.path()).entryList({"out.json.part-*"}).size() == 2;
            return {};
        }));
        QVERIFY(beside);
        QVERIFY(QFile::exists(other));
        QVERIFY(writeFolderAtomically(folder.filePath("more").toStdString(), [](const std::string& inside) {
            return writeFileAtomically(inside + "/b", "b");
        }));
        QVERIFY(QDir(otherFolder + "/traces").exists() && QFile::exists(folder.filePath("more/b")));
        QCOMPARE(QDir(folder.path()).entryList({"*.part-*"}).size(), 2); // of others
    }

    // Its ranges are what its ops were read from: they aren't read as ops again.
    void importedRunsComeBack_data()
    {
        QTest::addColumn<QStringList>("files");
        QTest::newRow("Kineto") << QStringList{"gpu_rank4.json", "gpu_rank6.json"};
        QTest::newRow("before Kineto") << QStringList{"old_rank0.json"};
        QTest::newRow("Nsight Systems") << QStringList{"nsight_node0.sqlite", "nsight_node1.sqlite"};
    }
    void importedRunsComeBack()
    {
        QFETCH(QStringList, files);
        std::vector<std::string> paths;
        for (const QString& file : files) paths.push_back(dataFile(file.toUtf8().constData()));
        const ImportResult there = imported(paths);
        QTemporaryDir folder;
        const std::string path = folder.filePath("run.json").toStdString();
        QVERIFY(writeChromeJsonFile(there.runs[0].run, path));
        const ImportResult back = imported({path});
        QCOMPARE(back.runs.size(), std::size_t{1});
        QVERIFY(there.runs[0].ops > 0);
        QCOMPARE(back.runs[0].ops, there.runs[0].ops);
        const auto spansOn = [](const ImportResult& result, Lane lane) {
            std::multiset<std::tuple<int, std::string, Nanos>> out;
            const Timeline& timeline = *result.runs[0].run.timeline;
            for (const Track& track : timeline.tracks())
                if (track.lane == lane)
                    for (const Span& span : timeline.spansOf(track))
                        out.emplace(track.rank, timeline.nameOf(span), span.duration());
            return out;
        };
        QCOMPARE(back.runs[0].run.timeline->ranks(), there.runs[0].run.timeline->ranks());
        QCOMPARE(back.runs[0].run.timeline->steps(), there.runs[0].run.timeline->steps());
        for (const Lane lane : {Lane::Compute, Lane::Kernel, Lane::Copy})
            QVERIFY2(spansOn(back, lane) == spansOn(there, lane), toText(lane).data());
    }

    void aSinkThatFailsStops()
    {
        const Run run = samples::simulatedRun("1f1b", 2, 4);
        const auto counts = writeChromeJson(run, [](std::string_view) { return false; });
        QVERIFY(!counts.has_value());
        QCOMPARE(counts.error().code, ErrorCode::Failed);
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        const auto cancelled = writeChromeJson(
            run, [](std::string_view) { return true; }, progress);
        QCOMPARE(cancelled.error().code, ErrorCode::Cancelled);
    }
};

QTEST_APPLESS_MAIN(TestChromeJson)
#include "tst_chrome_json.moc"
