// Run files that somebody made or changed: what is not ours is refused by name, what lies about sizes takes no memory, and no changed byte passes.
#include <QtTest/QtTest>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <sqlite3.h>

#include "recorded_runs.h"
#include "traces/import/import.h"
#include "traces/store/run_file.h"
#include "traces/store/trust.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

bool execute(const std::string& path, const std::string& sql)
{
    sqlite3* handle = nullptr;
    const bool done = sqlite3_open(path.c_str(), &handle) == SQLITE_OK && sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr) == SQLITE_OK &&
                      sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    sqlite3_close(handle);
    return done;
}

// All rows of all tables and the schema, as text; "": the file can't be read.
std::string contentOf(const std::string& path)
{
    sqlite3* handle = nullptr;
    std::string out;
    std::vector<std::string> tables;
    bool whole = sqlite3_open(path.c_str(), &handle) == SQLITE_OK;
    const auto rows = [&](const std::string& sql, bool names) {
        sqlite3_stmt* statement = nullptr;
        whole = whole && sqlite3_prepare_v2(handle, sql.c_str(), -1, &statement, nullptr) == SQLITE_OK;
        int code = SQLITE_DONE;
        while (whole && (code = sqlite3_step(statement)) == SQLITE_ROW) {
            if (names) tables.emplace_back(reinterpret_cast<const char*>(sqlite3_column_text(statement, 1)));
            for (int i = 0; i < sqlite3_column_count(statement); ++i) {
                const auto* text = static_cast<const char*>(sqlite3_column_blob(statement, i));
                const int bytes = sqlite3_column_bytes(statement, i);
                out += std::to_string(bytes) + ":" + (text != nullptr ? std::string(text, static_cast<std::size_t>(bytes)) : std::string());
            }
        }
        whole = whole && code == SQLITE_DONE;
        sqlite3_finalize(statement);
    };
    rows("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type<>'table'", false);
    rows("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type='table'", true);
    for (const std::string& table : tables) // the number of a step in the log only orders them
        rows(table == "step_log" ? "SELECT run, segment, first_step, steps, span_count, begin_ns, end_ns, facts, data FROM step_log" : "SELECT * FROM \"" + table + "\"", false);
    rows("PRAGMA user_version", false);
    sqlite3_close(handle);
    return whole ? out : std::string();
}

// Fifteen inner pages of the table or index with the most become levels, on each of which every cell leads to the same page: what has few
// megabytes would be read for years. false: there are too few.
bool leadInCircles(std::string& content, std::size_t page)
{
    const auto number = [&](std::size_t at, int count) {
        std::uint32_t value = 0;
        for (int i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(content[at + static_cast<std::size_t>(i)]);
        return value;
    };
    const auto pointersOf = [&](std::size_t at) { // places of the numbers of an inner page's children
        std::vector<std::size_t> places{at + 8};
        for (std::uint32_t cell = 0; cell < number(at + 3, 2); ++cell) places.push_back(at + number(at + 12 + 2 * cell, 2));
        return places;
    };
    std::map<int, std::vector<std::size_t>> inner; // by kind of page
    std::set<std::uint32_t> children;
    for (std::size_t at = page; at + page <= content.size(); at += page) {
        const int kind = static_cast<unsigned char>(content[at]);
        if ((kind != 2 && kind != 5) || number(at + 3, 2) < 2 || number(at + 3, 2) > page / 4) continue;
        inner[kind].push_back(at);
        for (const std::size_t place : pointersOf(at)) children.insert(number(place, 4));
    }
    auto& pages = inner[2].size() > inner[5].size() ? inner[2] : inner[5];
    if (pages.size() < 15) return false;
    // the tree's top first
    std::stable_partition(pages.begin(), pages.end(), [&](std::size_t at) { return !children.contains(static_cast<std::uint32_t>(at / page + 1)); });
    for (std::size_t level = 0; level + 1 < 15; ++level)
        for (const std::size_t place : pointersOf(pages[level]))
            for (int i = 0; i < 4; ++i) content[place + static_cast<std::size_t>(i)] = static_cast<char>((pages[level + 1] / page + 1) >> (24 - 8 * i));
    return true;
}

} // namespace

class TestHostileFile : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;
    std::string m_good, m_killed;

    std::string freshPath() { return m_folder.filePath(QStringLiteral("file%1.stagewright").arg(++m_files)).toStdString(); }

private slots:
    // What a busy machine or a slow disk takes from it is not held against the file.
    void onlyComputingIsLimited()
    {
        auto database = Database::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
        QVERIFY(database);
        const Deadline deadline(**database, 0.02);
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        QVERIFY(!deadline.passed());
        QVERIFY((*database)->integer("SELECT 1"));
        QVERIFY(!(*database)->integer("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"));
        QVERIFY(deadline.passed());
    }

    void initTestCase()
    {
        m_good = freshPath();
        samples::recordRun(m_good, {2, 4, 12, "1f1b"}).value();
        const auto file = RunFile::open(m_good, OpenMode::Write).value();
        QVERIFY(file->add(samples::simulatedRun("zb-h1", 2, 4, 0.1)).has_value());
        QVERIFY(file->setNotes(1, {Note{}}).has_value());
        QVERIFY(file->saveQuery({"mine", "SELECT 1", "about"}).has_value());
        m_killed = freshPath();
        QVERIFY(samples::recordAndDie(m_killed, {2, 4, 12, "1f1b"}));
        QVERIFY(execute(m_killed, "PRAGMA wal_checkpoint(TRUNCATE)")); // its log is in the file
        QVERIFY(!fs::exists(m_killed + "-wal"));
        QVERIFY(file->rename(2, "other").has_value());
        for (const std::int64_t run : {1, 2}) QCOMPARE(file->intact(run).value(), std::optional<bool>(true));
        QVERIFY(file->checkPages().has_value());
    }

    void schemasThatAreNotOurs_data()
    {
        QTest::addColumn<QString>("sql");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const char* sql, const char* says) { QTest::newRow(name) << QString(sql) << QString(says); };
        row("trigger", "CREATE TRIGGER quiet AFTER INSERT ON run BEGIN SELECT 1; END", "trigger named quiet");
        row("view", "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x FROM n", "view named endless");
        row("changed view", "DROP VIEW runs; CREATE VIEW runs AS SELECT 1", "its view runs");
        row("column", "ALTER TABLE run ADD COLUMN more AS (1)", "its table run");
        row("view for a table", "DROP TABLE label; CREATE VIEW label AS SELECT 1 AS run, 1 AS label, 'x' AS text", "its view label");
        row("hidden table", "CREATE TABLE spans(x)", "table named spans");
        row("missing table", "DROP TABLE pyramid", "pyramid is missing");
        row("missing index", "DROP INDEX span_block_bounds", "span_block_bounds is missing");
    }
    void schemasThatAreNotOurs()
    {
        QFETCH(QString, sql);
        QFETCH(QString, says);
        for (const OpenMode mode : {OpenMode::Read, OpenMode::Write}) {
            const std::string path = freshPath();
            fs::copy_file(m_good, path);
            QVERIFY(execute(path, sql.toStdString()));
            const auto file = RunFile::open(path, mode);
            QVERIFY(!file.has_value());
            QCOMPARE(file.error().code, ErrorCode::Unreadable);
            QVERIFY2(QString::fromStdString(file.error().message).contains(says), file.error().message.c_str());
        }
    }

    void otherTablesAreNamed()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "CREATE TABLE mine(x); CREATE INDEX \"a\x1b[31mb\" ON run(name)"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        QVERIFY(file->ignored().find("mine") != std::string::npos);
        QVERIFY(file->ignored().find('\x1b') == std::string::npos);
        QVERIFY(file->read(1).has_value());
    }

    // What asked for 147 GB: each row is small, and each says that it is far away.
    void numbersThatLie()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x+1 FROM n WHERE x<20000) INSERT INTO metric SELECT 1, x, 'm'||x, '' FROM n;"
                              "INSERT INTO metric_value SELECT 1, metric, 1000000, 1.0 FROM metric WHERE run=1 AND metric>=100;"
                              "UPDATE run SET ranks=65536, stages=1000000000, steps=1000000000 WHERE id=1; UPDATE span_block SET first=first+40000 WHERE run=2"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const auto run = file->read(1);
        QVERIFY(run.has_value());
        QVERIFY(run->info.damagedBlocks > 19'000);
        std::size_t values = 0;
        for (const Metric& metric : run->metrics) values += metric.values.size();
        QVERIFY(values < 2'000'000);
        QVERIFY(file->read(2).value().info.damagedBlocks > 0);
        values = 0;
        const auto content = file->content(1);
        QVERIFY(content.has_value());
        for (const Metric& metric : content->metrics) values += metric.values.size();
        QVERIFY(values < 2'000'000);
    }

    // A step is a place in what is made of a run: one far away would ask for gigabytes.
    void stepsThatLie()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "UPDATE run SET steps=1000000000 WHERE id=1; UPDATE span_block SET step=step*80000000 WHERE run=1"));
        const auto run = RunFile::open(path, OpenMode::Read).value()->read(1);
        QVERIFY(run.has_value());
        QVERIFY(run->info.damagedBlocks >= 11 * 2);
        QCOMPARE(run->timeline->steps(), 1);
    }

    void infinityIsUnknown()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "UPDATE metric_value SET value=9e999 WHERE run=1 AND step=3"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const Run run = file->read(1).value();
        QVERIFY(std::isnan(run.metric("step_time_ns")->values.at(3)));
        QVERIFY(std::isfinite(run.metric("step_time_ns")->values.at(4)));
        QCOMPARE(file->intact(1).value(), std::optional<bool>(false));
        QCOMPARE(file->intact(2).value(), std::optional<bool>(true));
    }

    void olderRunsAreUnknown()
    {
        for (const int version : {1, 2, 3, 4}) {
            const std::string path = freshPath();
            fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version" + std::to_string(version) + ".stagewright", path);
            QCOMPARE(RunFile::open(path, OpenMode::Read).value()->intact(1).value(), std::optional<bool>());
            { // and stay so in a file of this version, beside runs that have digests
                const auto file = RunFile::open(path, OpenMode::Write).value();
                QVERIFY(file->rename(1, "renamed").has_value());
                QVERIFY(file->merge(m_good).has_value());
                QCOMPARE(file->intact(1).value(), std::optional<bool>());
                QCOMPARE(file->intact(2).value(), std::optional<bool>(true));
                QVERIFY(file->remove(2).has_value());
                QVERIFY(file->checkPages().has_value());
            }
        }
    }

    // A run that was damaged does not become whole by being merged.
    void damageIsMerged()
    {
        const std::string path = freshPath(), target = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "UPDATE pyramid SET count=count+1 WHERE run=1"));
        const auto file = RunFile::open(target, OpenMode::Create).value();
        QVERIFY(file->merge(path).has_value());
        QCOMPARE(file->intact(1).value(), std::optional<bool>(false));
        QCOMPARE(file->intact(2).value(), std::optional<bool>(true));
    }

    // A query or a file that never ends: a stop and the end of the program end it.
    void readingEnds()
    {
        const auto file = RunFile::open(m_good, OpenMode::Read).value();
        const std::string endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n";
        for (const bool program : {false, true}) {
            std::stop_source stop;
            std::thread later([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(200));
                program ? RunFile::endReading(true) : static_cast<void>(stop.request_stop());
            });
            Progress progress;
            progress.stop = stop.get_token();
            const auto answer = file->query(endless, 10, progress); // never returns by itself
            later.join();
            RunFile::endReading(false);
            QVERIFY(!answer.has_value());
            QCOMPARE(answer.error().code, ErrorCode::Cancelled);
        }
        QVERIFY(file->query("SELECT 1").has_value());
    }

    // A tree of fifteen levels, on each of which every cell leads to the same page: the file has few megabytes and would be read for years.
    void endlessTree()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "PRAGMA page_size=1024; VACUUM; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000)"
                              "INSERT INTO metric_value SELECT 1, 1000+i, i, 0.5 FROM n; CREATE TABLE filler(x); INSERT INTO filler VALUES(zeroblob(12000000));"));
        std::string content;
        {
            std::ifstream in(path, std::ios::binary);
            content.assign(std::istreambuf_iterator<char>(in), {});
        }
        QVERIFY(content.size() > 10'000'000);
        QVERIFY(leadInCircles(content, 1024));
        std::ofstream(path, std::ios::binary) << content;
        std::atomic ended = false;
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::seconds(1));
            ended = true;
            RunFile::endReading(true);
        });
        const auto file = RunFile::open(path, OpenMode::Read);
        if (file) QVERIFY(!(*file)->read(1).has_value());
        const bool untilEnded = ended; // it never returns by itself
        later.join();
        RunFile::endReading(false);
        QVERIFY(untilEnded);
    }

    // The same of an export of Nsight Systems: its rows end where the file has no room for more.
    void endlessExport()
    {
        const std::string path = freshPath() + ".sqlite";
        fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/nsight.sqlite", path);
        QVERIFY(execute(path, "PRAGMA page_size=512; VACUUM; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<40000)"
                              "SELECT i*1000000, i*1000000+500, 0, 7, i, NULL, 1, 1 FROM n"));
        std::string content;
        {
            std::ifstream in(path, std::ios::binary);
            content.assign(std::istreambuf_iterator<char>(in), {});
        }
        QVERIFY(leadInCircles(content, 512));
        std::ofstream(path, std::ios::binary) << content;
        const auto read = importTraces({path}, {}); // or it never returns
        QVERIFY(read.has_value());
        const auto full = [](const std::string& note) { return note.find("the file has no room for so many rows") != std::string::npos; };
        QVERIFY(!read->runs.empty());
        QVERIFY(std::ranges::any_of(read->runs.front().notes, full));
    }

    // One letter of a digest's name would switch the check off.
    void digestsAreAllOrNone()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "UPDATE table_digest SET name='rum' WHERE run=1 AND name='run'"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const auto intact = file->intact(1);
        QVERIFY(!intact || *intact == false);
        QCOMPARE(*file->intact(2), std::optional(true));
    }

    void digestsThatAreRemovedAreMissed()
    {
        for (const char* change : {"DELETE FROM table_digest WHERE run=1", "DELETE FROM table_digest WHERE run=2 AND name='pyramid'", "DELETE FROM table_digest",
                                   "DELETE FROM table_digest WHERE run=0 AND name='table_digest'"}) {
            const std::string path = freshPath();
            fs::copy_file(m_good, path);
            QVERIFY(execute(path, change));
            const auto whole = RunFile::open(path, OpenMode::Read).value()->checkPages();
            QVERIFY2(!whole.has_value(), change);
            QVERIFY(whole.error().message.find("its digests changed") != std::string::npos);
        }
    }

    // Steps of a killed recording, their order and their numbers.
    void stepsThatChangedAreFound()
    {
        for (const char* change : {"DELETE FROM step_log WHERE id=(SELECT max(id) FROM step_log)", "DELETE FROM step_log WHERE id=(SELECT min(id) + 1 FROM step_log)",
                                   "UPDATE step_log SET steps=steps+1 WHERE id=(SELECT max(id) FROM step_log)", "UPDATE step_log SET run=7 WHERE id=(SELECT max(id) FROM step_log)",
                                   "UPDATE step_log SET data=facts", "UPDATE run SET warmup_steps=2"}) {
            const std::string path = freshPath(), target = freshPath();
            fs::copy_file(m_killed, path);
            QCOMPARE(*RunFile::open(path, OpenMode::Read).value()->intact(1), std::optional(true));
            QVERIFY(execute(path, change));
            QVERIFY2(*RunFile::open(path, OpenMode::Read).value()->intact(1) == false, change);
            { // merging does not make it whole, nor does putting its steps into the tables
                const auto merged = RunFile::open(target, OpenMode::Create).value();
                QVERIFY(merged->merge(path).has_value());
                QVERIFY2(*merged->intact(1) == false, change);
                QVERIFY(merged->checkPages().has_value());
            }
            QVERIFY2(*RunFile::open(path, OpenMode::Write).value()->intact(1) == false, change);
        }
    }

    void killedRecordingsStayWhole()
    {
        const std::string path = freshPath(), target = freshPath();
        fs::copy_file(m_killed, path);
        const auto merged = RunFile::open(target, OpenMode::Create).value();
        QVERIFY(merged->merge(path).has_value());
        QVERIFY(merged->merge(m_good).has_value());
        const auto file = RunFile::open(path, OpenMode::Write).value();
        for (const RunFile* one : {merged.get(), file.get()}) {
            QCOMPARE(one->query("SELECT count(*) FROM step_log")->rows[0][0], std::string("0"));
            QCOMPARE(*one->intact(1), std::optional(true));
            QVERIFY(one->checkPages().has_value());
        }
        QCOMPARE(*merged->intact(3), std::optional(true));
        QVERIFY(merged->remove(2).has_value());
        QVERIFY(merged->checkPages().has_value());
    }

    // Then a killed recording is left as it is.
    void openingIsStopped()
    {
        const std::string path = freshPath();
        fs::copy_file(m_killed, path);
        for (const bool program : {false, true})
            for (const OpenMode mode : {OpenMode::Read, OpenMode::Write}) {
                std::stop_source stop;
                program ? RunFile::endReading(true) : static_cast<void>(stop.request_stop());
                const auto file = RunFile::open(path, mode, stop.get_token());
                RunFile::endReading(false);
                QVERIFY(!file.has_value());
                QCOMPARE(file.error().code, ErrorCode::Cancelled);
            }
        QVERIFY(contentOf(path) == contentOf(m_killed));
    }

    void noChangedBytePasses_data()
    {
        QTest::addColumn<bool>("killed");
        QTest::newRow("complete") << false;
        QTest::newRow("killed while recording") << true;
    }
    // Bytes at random places: whatever changes the content is found. STAGEWRIGHT_FLIPS: how many; 10,000 take about a minute.
    void noChangedBytePasses()
    {
        QFETCH(bool, killed);
        const std::string& good = killed ? m_killed : m_good;
        const std::size_t runs = killed ? 1 : 2;
        const int flips = std::max(300, qEnvironmentVariableIntValue("STAGEWRIGHT_FLIPS"));
        std::ifstream in(good, std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
        const std::string content = contentOf(good);
        QVERIFY(!content.empty());
        std::mt19937 random(5);
        const std::string path = freshPath();
        int changed = 0;
        for (int tried = 0; changed < flips && tried < 20 * flips; ++tried) {
            std::string copy = bytes;
            const std::size_t at = random() % copy.size();
            copy[at] = static_cast<char>(copy[at] ^ static_cast<char>(1 + random() % 255));
            std::ofstream(path, std::ios::binary) << copy;
            if (contentOf(path) == content) continue;
            ++changed;
            const auto file = RunFile::open(path, OpenMode::Read);
            if (!file || !(*file)->checkPages()) continue;
            const auto infos = (*file)->runs();
            bool found = !infos || infos->size() != runs;
            for (std::size_t i = 0; !found && i < infos->size(); ++i) {
                const auto intact = (*file)->intact((*infos)[i].id);
                found = !intact || *intact == false;
            }
            QVERIFY2(found, qPrintable(QStringLiteral("byte %1 was 0x%2").arg(at).arg(static_cast<unsigned char>(bytes[at]), 2, 16)));
        }
        QCOMPARE(changed, flips);
    }
};

QTEST_GUILESS_MAIN(TestHostileFile)
#include "tst_hostile_file.moc"
