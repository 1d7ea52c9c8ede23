// Memory and disk that fail at any place while runs are recorded, exported, imported, merged, compacted and opened: no
// crash, no hang, nothing half-written, no announced step lost. Each case is a child process in which the N-th
// allocation or file call fails, once or from there on. And the power: what may be on the disk when it is lost opens,
// is whole, and has the steps that are promised.
#include <QtTest/QtTest>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <new>
#include <set>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults/injected_faults.h"
#include "recorded_runs.h"
#include "schedules/library/registry.h"
#include "schedules/text/cost_json.h"
#include "tar_file.h"
#include "traces/analysis/bubbles.h"
#include "traces/foreign/archive.h"
#include "traces/format/format_registry.h"
#include "traces/import/import.h"
#include "traces/report/run_report.h"
#include "traces/store/add_runs.h"
#include "traces/store/run_file.h"
#include "traces/store/schedule_text.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

constexpr int stepsRecorded = 6;
constexpr unsigned longest = 60; // seconds of a child

struct Shared { // with the child
    std::atomic<std::int64_t> announced;
    std::atomic<std::int64_t> calls;
    std::atomic<bool> hit;
};

enum Ending {
    Done = 0,
    Refused = 10,  // with an Error that says something
    NoMemory = 11, // std::bad_alloc, which a program catches
    Silent = 12,   // an Error without a message
};

Ending endingOf(const Result<void>& result)
{
    if (result) return Done;
    return result.error().message.empty() ? Silent : Refused;
}

std::string bytesOf(const fs::path& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// "": the file is whole and has so many runs, the first of which has so many steps or more.
std::string faultIn(const std::string& path, std::size_t runs, std::int64_t steps, OpenMode mode = OpenMode::Write)
{
    const auto file = RunFile::open(path, mode);
    if (!file) return "can't be opened: " + file.error().message;
    if (const auto pages = (*file)->checkPages(); !pages) return "its pages: " + pages.error().message;
    const auto infos = (*file)->runs();
    if (!infos) return "its runs: " + infos.error().message;
    if (infos->size() != runs) return "has " + std::to_string(infos->size()) + " runs, not " + std::to_string(runs);
    for (const RunInfo& info : *infos) {
        const auto run = (*file)->read(info.id);
        if (!run) return "run " + std::to_string(info.id) + ": " + run.error().message;
        if (run->info.damagedBlocks != 0) return "run " + std::to_string(info.id) + " has damaged blocks";
        if (const auto intact = (*file)->intact(info.id); !intact || *intact == false)
            return "run " + std::to_string(info.id) + " is not as it was written";
        if (&info == &infos->front() && run->timeline->steps() < steps)
            return "has " + std::to_string(run->timeline->steps()) + " steps, not " + std::to_string(steps);
    }
    return {};
}

void copyRun(const fs::path& from, const fs::path& to)
{
    for (const char* suffix : {"", "-wal"})
        if (fs::exists(from.string() + suffix)) fs::copy_file(from.string() + suffix, to.string() + suffix);
}

// What the window does with a file, but its views: app/ui/runs lists it, reads a run and its figures (run_library.cpp),
// and reads a large one in parts (run_lanes.cpp), each with the file opened again; app/ui/notes and app/ui/sql read
// what is kept with it.
Result<void> openAsWindow(const std::string& path)
{
    const auto with = [&path](const auto& use) -> Result<void> {
        const auto file = RunFile::open(path, OpenMode::Read);
        return file ? use(**file) : tl::unexpected(file.error());
    };
    const auto taken = [](const auto& result) { return result ? Result<void>() : tl::unexpected(result.error()); };
    const auto listed = [&](const RunFile& file) { return taken(file.runs()); };
    const auto whole = [&](const RunFile& file) -> Result<void> {
        STAGEWRIGHT_TRY(const auto run, file.readSteps(1, 0));
        STAGEWRIGHT_CHECK(analyseBubbles(*run.timeline, run.representativeStep()));
        return taken(
            reportOf(run, {.step = run.representativeStep(), .levers = true, .baseline = true, .withoutSteps = true}));
    };
    const auto parts = [&](const RunFile& file) -> Result<void> {
        STAGEWRIGHT_TRY(const auto content, file.content(1));
        STAGEWRIGHT_TRY(const auto blocks, file.blocks(1));
        STAGEWRIGHT_CHECK(file.overview(1, 1000, Lane::Compute));
        STAGEWRIGHT_CHECK(file.streamSpans(1, [](const RunFile::SpanBlock&) { return true; }));
        STAGEWRIGHT_CHECK(file.streamMemory(1, [](std::span<const MemoryEvent>) { return true; }));
        STAGEWRIGHT_TRY(const auto header, file.readHeader(1));
        return taken(file.readRange(1, content.begin, (content.begin + content.end) / 2, {}, blocks, &header));
    };
    const auto kept = [&](const RunFile& file) -> Result<void> {
        STAGEWRIGHT_CHECK(file.notes(1, true));
        STAGEWRIGHT_CHECK(file.bookmarks());
        return taken(file.savedQueries());
    };
    if (auto done = with(listed); !done) return done;
    if (auto done = with(whole); !done) return done;
    if (auto done = with(parts); !done) return done;
    return with(kept);
}

struct Scenario {
    const char* name;
    std::function<void(const fs::path& work)> prepare;
    std::function<Result<void>(const fs::path& work, Shared& shared)> act;                // in the child
    std::function<std::string(const fs::path& work, const Shared& shared, Ending)> fault; // "": all is well
};

} // namespace

class TestFaults : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    fs::path m_seeds;
    Shared* m_shared = nullptr;
    std::vector<Scenario> m_scenarios;
    std::map<std::string, std::string> m_exports; // by format
    int m_children = 0, m_hits = 0;

    static bool full() { return qEnvironmentVariableIsSet("STAGEWRIGHT_FULL"); }

    // The N-th call fails; 0: none. -1: the child crashed or hung.
    int tryAt(const Scenario& scenario, faults::Place place, std::int64_t number, bool behind, const fs::path& work)
    {
        fs::remove_all(work);
        fs::create_directories(work);
        scenario.prepare(work);
        m_shared->announced = 0;
        m_shared->calls = 0;
        m_shared->hit = false;
        ++m_children;
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(longest);
            int ending = NoMemory;
            faults::watchFolder(work.string());
            faults::arm(place, number, behind);
            try {
                ending = endingOf(scenario.act(work, *m_shared));
            } catch (const std::bad_alloc&) {
            }
            m_shared->calls = faults::disarm();
            m_shared->hit = faults::hit();
            ::_exit(ending);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        m_hits += m_shared->hit;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    // At the first calls, and at some of all.
    void tryEverywhere(const Scenario& scenario, faults::Place place, std::int64_t first = full() ? 500 : 0)
    {
        const fs::path work = fs::path(m_folder.path().toStdString()) / "work";
        const int whole = tryAt(scenario, place, 0, false, work);
        QCOMPARE(whole, static_cast<int>(Done));
        QCOMPARE(scenario.fault(work, *m_shared, Done), std::string());
        const std::int64_t calls = m_shared->calls;
        QVERIFY2(calls >= 10, scenario.name);
        std::set<std::int64_t> numbers;
        const std::int64_t spread = full() ? 100 : 20;
        for (std::int64_t n = 1; n <= std::min(first, calls); ++n) numbers.insert(n);
        for (std::int64_t i = 0; i < spread; ++i) numbers.insert(1 + i * (calls - 1) / (spread - 1));
        for (const std::int64_t number : numbers)
            for (const bool behind : {false, true}) {
                if (behind && !full() && number % 2 == 0) continue;
                const int ending = tryAt(scenario, place, number, behind, work);
                const std::string where = std::string(scenario.name) + ", call " + std::to_string(number) + " of " +
                                          std::to_string(calls) + (behind ? " and all behind it" : "") + ": ";
                QVERIFY2(ending == Done || ending == Refused || ending == NoMemory,
                         (where + (ending < 0 ? "ended by signal " + std::to_string(-ending)
                                              : "ended with " + std::to_string(ending)))
                             .c_str());
                const std::string fault = scenario.fault(work, *m_shared, static_cast<Ending>(ending));
                QVERIFY2(fault.empty(), (where + fault + ", ending " + std::to_string(ending)).c_str());
            }
    }

private slots:
    void initTestCase()
    {
        m_seeds = fs::path(m_folder.path().toStdString()) / "seeds";
        fs::create_directories(m_seeds);
        m_shared = static_cast<Shared*>(
            ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
        const std::string good = m_seeds / "good.stagewright", other = m_seeds / "other.stagewright",
                          killed = m_seeds / "killed.stagewright";
        QVERIFY(samples::recordRun(good, {2, 4, stepsRecorded, "1f1b"}).has_value());
        QVERIFY(samples::recordRun(other, {2, 2, 3, "gpipe"}).has_value());
        const pid_t child = ::fork();
        if (child == 0) {
            samples::Recording recording(killed, {2, 4, stepsRecorded, "1f1b"});
            for (int step = 0; step < stepsRecorded; ++step)
                if (!recording.append()) ::_exit(1);
            ::kill(::getpid(), SIGKILL);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        QVERIFY(WIFSIGNALED(status));

        const auto run = std::make_shared<const Run>(RunFile::open(good, OpenMode::Read).value()->read(1).value());
        std::vector<const FormatInfo*> formats;
        for (const FormatInfo* format : allFormats())
            if (format->write != nullptr && !format->folder) formats.push_back(format);
        const auto exportTo = [run](const FormatInfo& format, const fs::path& path) -> Result<void> {
            ExportRequest request;
            request.run = run.get();
            request.path = path;
            request.program = "test";
            const auto written = format.write(request);
            return written ? Result<void>() : tl::unexpected(written.error());
        };
        for (const FormatInfo* format : formats) {
            const auto done = exportTo(*format, m_seeds / format->name);
            QVERIFY2(done.has_value(), format->name.data());
            m_exports[std::string(format->name)] = bytesOf(m_seeds / format->name);
        }

        m_scenarios.push_back({"record", [](const fs::path&) {},
                               [](const fs::path& work, Shared& shared) -> Result<void> {
                                   const std::string path = work / "run.stagewright";
                                   STAGEWRIGHT_TRY(auto file, RunFile::open(path, OpenMode::Create));
                                   const Run base = samples::simulatedRun("1f1b", 2, 4);
                                   Run header = base;
                                   header.metrics = {{"loss", "nats", {}}};
                                   STAGEWRIGHT_TRY(auto writer, file->begin(header));
                                   for (int step = 0; step < stepsRecorded; ++step) {
                                       TimelineBuilder builder(base.timeline->provenance(), base.timeline->clock(), 2);
                                       const Nanos begin = step * (base.timeline->end() - base.timeline->begin());
                                       for (const Track& track : base.timeline->tracks()) {
                                           const int number = builder.addTrack(track.rank, track.lane, track.name);
                                           for (SpanId id = track.begin; id < track.end; ++id) {
                                               Span span = base.timeline->spans()[id];
                                               span.start += begin;
                                               span.end += begin;
                                               span.step = step;
                                               builder.addSpan(number, span);
                                           }
                                       }
                                       STAGEWRIGHT_TRY(auto built, builder.build());
                                       if (auto done = writer->append(*built, {{"loss", 1.0}}); !done) return done;
                                       shared.announced = step + 1;
                                   }
                                   return (writer)->finish();
                               },
                               [](const fs::path& work, const Shared& shared, Ending ending) -> std::string {
                                   const std::string path = work / "run.stagewright";
                                   if (!fs::exists(path)) return shared.announced == 0 ? "" : "the file is not there";
                                   // what the next recording does
                                   const auto file = RunFile::open(path, OpenMode::Create);
                                   if (!file) return "can't be opened: " + file.error().message;
                                   const auto infos = (*file)->runs();
                                   if (!infos) return infos.error().message;
                                   if (ending == Done && shared.announced != stepsRecorded)
                                       return "done, but not all steps";
                                   if (shared.announced == 0 && infos->empty()) return {};
                                   return faultIn(path, 1, shared.announced, OpenMode::Create);
                               }});
        m_scenarios.push_back({"export",
                               [formats](const fs::path& work) {
                                   for (const FormatInfo* format : formats) std::ofstream(work / format->name) << "old";
                               },
                               [formats, exportTo](const fs::path& work, Shared& shared) -> Result<void> {
                                   Result<void> all;
                                   for (const FormatInfo* format : formats) {
                                       auto done = exportTo(*format, work / format->name);
                                       if (!done) all = done;
                                       if (done) shared.announced = shared.announced + 1;
                                   }
                                   return all;
                               },
                               [this](const fs::path& work, const Shared& shared, Ending ending) -> std::string {
                                   std::int64_t written = 0;
                                   for (const auto& [name, bytes] : m_exports) {
                                       const std::string there = bytesOf(work / name);
                                       if (there != "old" && there != bytes) return name + " is half-written";
                                       written += there == bytes;
                                   }
                                   if (written < shared.announced) return "an export was announced and is not there";
                                   return ending == Done && written != static_cast<std::int64_t>(m_exports.size())
                                              ? "done, but not all"
                                              : "";
                               }});
        m_scenarios.push_back(
            {"import",
             [this](const fs::path& work) {
                 copyRun(m_seeds / "good.stagewright", work / "good.stagewright");
                 fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/zbv_rank0.json", work / "zbv_rank0.json");
                 fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/zbv_rank1.json", work / "zbv_rank1.json");
             },
             [](const fs::path& work, Shared&) -> Result<void> {
                 STAGEWRIGHT_TRY(
                     auto read,
                     importTraces({(work / "zbv_rank0.json").string(), (work / "zbv_rank1.json").string()}, {}));
                 if (!read.refused.empty()) return tl::unexpected(read.refused.front().error);
                 std::vector<const Run*> runs;
                 for (const ImportedRun& one : read.runs) runs.push_back(&one.run);
                 const auto added = addRuns((work / "good.stagewright").string(), runs);
                 return added ? Result<void>() : tl::unexpected(added.error());
             },
             [](const fs::path& work, const Shared&, Ending ending) -> std::string {
                 const std::string before = faultIn(work / "good.stagewright", 1, stepsRecorded),
                                   after = faultIn(work / "good.stagewright", 2, stepsRecorded);
                 if (ending == Done || before.empty()) return ending == Done ? after : before;
                 return after.empty() ? "" : before + "; " + after;
             }});
        m_scenarios.push_back({"store", [](const fs::path&) {},
                               [run](const fs::path& work, Shared&) -> Result<void> {
                                   const Run* one = run.get();
                                   const auto added = addRuns((work / "new.stagewright").string(), std::span(&one, 1));
                                   return added ? Result<void>() : tl::unexpected(added.error());
                               },
                               [](const fs::path& work, const Shared&, Ending ending) -> std::string {
                                   const fs::path path = work / "new.stagewright";
                                   if (!fs::exists(path))
                                       return ending == Done ? "done, but the file is not there" : "";
                                   return faultIn(path, 1, stepsRecorded);
                               }});
        const auto pack = [](const fs::path& work) {
            std::vector<std::pair<std::string, std::string>> members;
            for (const char* name : {"zbv_rank0.json", "zbv_rank1.json", "nsight.sqlite"})
                members.emplace_back(name, bytesOf(fs::path(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces") / name));
            std::ofstream(work / "job.tar", std::ios::binary) << tarOf(members);
        };
        pack(m_seeds);
        if (const auto probe = Archive::open(m_seeds / "job.tar");
            !probe && probe.error().message.find("no libarchive") != std::string::npos)
            qInfo("skipped: unpacking, for this build has no libarchive");
        else
            m_scenarios.push_back({"unpack", pack,
                                   [](const fs::path& work, Shared&) -> Result<void> {
                                       ::setenv("TMPDIR", work.c_str(), 1);
                                       STAGEWRIGHT_TRY(auto read, importTraces({(work / "job.tar").string()}, {}));
                                       return read.refused.empty() ? Result<void>()
                                                                   : tl::unexpected(read.refused.front().error);
                                   },
                                   [](const fs::path& work, const Shared&, Ending ending) -> std::string {
                                       return ending == Done && std::distance(fs::directory_iterator(work), {}) != 1
                                                  ? "something was left in TMPDIR"
                                                  : "";
                                   }});
        m_scenarios.push_back({"merge",
                               [this](const fs::path& work) {
                                   copyRun(m_seeds / "good.stagewright", work / "good.stagewright");
                                   copyRun(m_seeds / "other.stagewright", work / "other.stagewright");
                               },
                               [](const fs::path& work, Shared&) -> Result<void> {
                                   STAGEWRIGHT_TRY(auto file,
                                                   RunFile::open(work / "good.stagewright", OpenMode::Write));
                                   return (file)->merge(work / "other.stagewright");
                               },
                               [this](const fs::path& work, const Shared&, Ending ending) -> std::string {
                                   if (bytesOf(work / "other.stagewright") != bytesOf(m_seeds / "other.stagewright"))
                                       return "the other file was changed";
                                   const std::string before = faultIn(work / "good.stagewright", 1, stepsRecorded),
                                                     after = faultIn(work / "good.stagewright", 2, stepsRecorded);
                                   if (ending == Done || before.empty()) return ending == Done ? after : before;
                                   return after.empty() ? "" : before + "; " + after;
                               }});
        m_scenarios.push_back(
            {"compact",
             [this](const fs::path& work) { copyRun(m_seeds / "killed.stagewright", work / "killed.stagewright"); },
             [](const fs::path& work, Shared&) -> Result<void> {
                 STAGEWRIGHT_TRY(auto file, RunFile::open(work / "killed.stagewright", OpenMode::Write));
                 return (file)->compact();
             },
             [](const fs::path& work, const Shared&, Ending) -> std::string {
                 return faultIn(work / "killed.stagewright", 1, stepsRecorded);
             }});
        m_scenarios.push_back(
            {"open",
             [this](const fs::path& work) { copyRun(m_seeds / "killed.stagewright", work / "killed.stagewright"); },
             [](const fs::path& work, Shared&) -> Result<void> { // what a verb reads
                 STAGEWRIGHT_TRY(auto file, RunFile::open(work / "killed.stagewright", OpenMode::Read));
                 STAGEWRIGHT_CHECK(file->content(1));
                 STAGEWRIGHT_CHECK(file->blocks(1));
                 STAGEWRIGHT_CHECK(file->overview(1, 100));
                 STAGEWRIGHT_TRY(auto third, file->readStep(1, 2));
                 STAGEWRIGHT_TRY(auto whole, file->read(1));
                 // steps went without a word
                 if (whole.timeline->steps() != stepsRecorded && whole.info.damagedBlocks == 0) ::_exit(Silent);
                 STAGEWRIGHT_CHECK(reportOf(third, {.step = 2, .levers = true}));
                 auto rows = file->query("SELECT count(*) FROM spans");
                 return rows ? Result<void>() : tl::unexpected(rows.error());
             },
             [](const fs::path& work, const Shared&, Ending) -> std::string {
                 return faultIn(work / "killed.stagewright", 1, stepsRecorded);
             }});
        m_scenarios.push_back(
            {"window",
             [this](const fs::path& work) { copyRun(m_seeds / "killed.stagewright", work / "killed.stagewright"); },
             [](const fs::path& work, Shared&) { return openAsWindow(work / "killed.stagewright"); },
             [](const fs::path& work, const Shared&, Ending) -> std::string {
                 return faultIn(work / "killed.stagewright", 1, stepsRecorded);
             }});
    }

    // of a schedule and its costs: the JSON library must not see memory run out where it can't bear it
    void textsCanFailAnywhere()
    {
        const auto costs = readCostsJson(bytesOf(STAGEWRIGHT_SOURCE_DIR "/tests/fuzz/seeds/costs/all.json"));
        QVERIFY2(costs.has_value(), costs ? "" : costs.error().message.c_str());
        Shape shape;
        shape.ranks = shape.microbatches = 2;
        const Schedule schedule = makeSchedule("zb-h1", shape).value();
        const Scenario texts{"texts", [](const fs::path&) {},
                             [&](const fs::path&, Shared&) -> Result<void> {
                                 STAGEWRIGHT_CHECK(readScheduleText(writeScheduleText(schedule)));
                                 const auto again = readCostsJson(writeCostsJson(*costs));
                                 return again ? Result<void>() : tl::unexpected(again.error());
                             },
                             [](const fs::path&, const Shared&, Ending) { return std::string(); }};
        tryEverywhere(texts, faults::Place::Allocation, std::numeric_limits<std::int64_t>::max());
    }

    void everyCallCanFail_data()
    {
        QTest::addColumn<int>("scenario");
        QTest::addColumn<int>("place");
        for (std::size_t i = 0; i < m_scenarios.size(); ++i)
            for (const auto& [place, name] : {std::pair(faults::Place::Allocation, "memory"),
                                              {faults::Place::SqliteAllocation, "SQLite's memory"},
                                              {faults::Place::FileCall, "files"}}) {
                // it uses none
                if (std::string_view(m_scenarios[i].name) == "export" && place == faults::Place::SqliteAllocation)
                    continue;
                QTest::addRow("%s: %s", m_scenarios[i].name, name) << static_cast<int>(i) << static_cast<int>(place);
            }
    }
    void everyCallCanFail()
    {
        QFETCH(int, scenario);
        QFETCH(int, place);
        tryEverywhere(m_scenarios[static_cast<std::size_t>(scenario)], static_cast<faults::Place>(place));
    }

    // After a loss of power the file is whole and has at least the steps that were announced when SQLite's log was last
    // synced.
    void powerIsLost()
    {
        const fs::path work = fs::path(m_folder.path().toStdString()) / "power",
                       disk = fs::path(m_folder.path().toStdString()) / "disk";
        fs::create_directories(work);
        const std::string path = work / "run.stagewright";
        const int recorded = full() ? 400 : 200;
        faults::watchFolder(work.string());
        faults::startLog();
        {
            samples::Recording recording(path, {2, 4, recorded, "1f1b"});
            for (int step = 0; step < recorded; ++step) {
                QVERIFY(recording.append().has_value());
                faults::announce(step + 1);
            }
            QVERIFY(recording.finish().has_value());
        }
        const auto log = faults::takeLog();
        std::vector<std::pair<std::size_t, std::int64_t>> cuts; // calls, and the steps that are promised then
        std::int64_t promised = 0, syncs = 0;
        for (std::size_t i = 0; i < log.size(); ++i) {
            const bool sync = log[i].kind == faults::FileCall::Kind::Sync;
            if (sync) ++syncs;
            if (sync || log[i].kind != faults::FileCall::Kind::Write || i % 97 == 0) cuts.emplace_back(i, promised);
            if (sync && log[i].path.ends_with("-wal")) promised = log[i].announced;
            if (sync) cuts.emplace_back(i + 1, promised);
        }
        cuts.emplace_back(log.size(), promised);
        QVERIFY2(syncs >= 6, qPrintable(QString::number(syncs)));
        QVERIFY2(promised > recorded / 2, qPrintable(QString::number(promised)));
        std::mt19937 random(21);
        int tried = 0;
        for (const auto& [calls, steps] : cuts)
            for (int again = 0; again < (full() ? 10 : 2); ++again, ++tried) {
                faults::writeDisk(log, calls, work.string(), disk.string(), random);
                const std::string left = disk / "run.stagewright";
                const std::string where =
                    "after " + std::to_string(calls) + " of " + std::to_string(log.size()) + " calls: ";
                if (!fs::exists(left)) {
                    QVERIFY2(steps == 0, (where + "the file is not there").c_str());
                    continue;
                }
                const auto file = RunFile::open(left, OpenMode::Create);
                QVERIFY2(file.has_value(), (where + (file ? "" : file.error().message)).c_str());
                const auto runs = (*file)->runs();
                QVERIFY2(runs.has_value(), where.c_str());
                if (runs->empty() && steps <= 1) continue;
                const std::string fault = faultIn(left, 1, steps);
                QVERIFY2(fault.empty(), (where + fault + ", promised " + std::to_string(steps)).c_str());
            }
        qInfo("%d disks after a loss of power, %lld syncs", tried, static_cast<long long>(syncs));
    }

    // Killed at any time while it records or closes: every announced step is there. 300 times in the long test.
    void killedAnywhere()
    {
        const fs::path work = fs::path(m_folder.path().toStdString()) / "killed";
        std::mt19937 random(9);
        int early = 0, late = 0;
        const int kills = full() ? 300 : 10;
        for (int tried = 0; tried < kills; ++tried) {
            fs::remove_all(work);
            fs::create_directories(work);
            const std::string path = work / "run.stagewright";
            m_shared->announced = 0;
            const pid_t child = ::fork();
            if (child == 0) {
                samples::Recording recording(path, {2, 2, 100000, "gpipe"});
                const int steps = 20 + static_cast<int>(random() % 1600);
                for (int step = 0; step < steps; ++step) {
                    if (!recording.append()) ::_exit(1);
                    m_shared->announced = step + 1;
                }
                (void)recording.finish();
                ::_exit(0);
            }
            ::usleep(1000 + static_cast<useconds_t>(random() % 150'000));
            ::kill(child, SIGKILL);
            int status = 0;
            ::waitpid(child, &status, 0);
            QVERIFY(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
            ++(WIFSIGNALED(status) ? early : late);
            const std::int64_t announced = m_shared->announced;
            if (announced <= 1) continue; // the first step is one of warm-up
            const std::string fault = faultIn(path, 1, announced);
            QVERIFY2(fault.empty(), (fault + ", announced " + std::to_string(announced)).c_str());
        }
        QVERIFY2(early > 0, "no child was killed");
        qInfo("%d killed, %d had ended", early, late);
    }

    void cleanupTestCase() { qInfo("%d children, %d with a fault", m_children, m_hits); }
};

int main(int argc, char** argv)
{
    faults::installInSqlite();
    QCoreApplication application(argc, argv);
    TestFaults test;
    return QTest::qExec(&test, argc, argv);
}

#include "tst_faults.moc"
