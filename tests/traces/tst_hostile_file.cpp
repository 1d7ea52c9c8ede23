// Run files that somebody made or changed: what is not ours is refused by name, what lies about sizes takes no memory,
// and no changed byte passes.
#include <QtTest/QtTest>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include <malloc.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorded_runs.h"
#include "traces/import/import.h"
#include "traces/store/blocks.h"
#include "traces/store/database.h"
#include "traces/store/run_file.h"
#include "traces/store/trust.h"

using namespace stagewright;
namespace fs = std::filesystem;

namespace {

bool execute(const std::string& path, const std::string& sql)
{
    sqlite3* handle = nullptr;
    const bool done = sqlite3_open(path.c_str(), &handle) == SQLITE_OK &&
                      sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr) == SQLITE_OK &&
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
                out += std::to_string(bytes) + ":" +
                       (text != nullptr ? std::string(text, static_cast<std::size_t>(bytes)) : std::string());
            }
        }
        whole = whole && code == SQLITE_DONE;
        sqlite3_finalize(statement);
    };
    rows("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type<>'table'", false);
    rows("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type='table'", true);
    for (const std::string& table : tables) // the number of a step in the log only orders them
        rows(table == "step_log"
                 ? "SELECT run, segment, first_step, steps, span_count, begin_ns, end_ns, facts, data FROM step_log"
                 : "SELECT * FROM \"" + table + "\"",
             false);
    rows("PRAGMA user_version", false);
    sqlite3_close(handle);
    return whole ? out : std::string();
}

std::string contentOfFile(const std::string& path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string bigEndian(std::uint32_t value)
{
    std::string bytes;
    for (int i = 3; i >= 0; --i) bytes += static_cast<char>(value >> 8 * i);
    return bytes;
}

const std::string journalMagicBytes = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";

// That SQLite would roll back: with a page of the file that was changed, and with `victim` as a file to be deleted,
// unless it is empty.
std::string journalOf(const std::string& database, const std::string& victim, int seed)
{
    const auto page = static_cast<std::uint32_t>(static_cast<unsigned char>(database[16]) << 8 |
                                                 static_cast<unsigned char>(database[17]));
    const auto nonce = static_cast<std::uint32_t>(seed * 77);
    std::string journal = journalMagicBytes + bigEndian(1) + bigEndian(nonce) +
                          bigEndian(static_cast<std::uint32_t>(database.size() / page)) + bigEndian(512) +
                          bigEndian(page);
    journal.resize(512);
    if (seed % 3 == 1) journal.replace(28, 8, "SWj1" + bigEndian(0)); // of a file without marks
    if (seed % 3 == 2) journal.replace(28, 8, "SWj1" + bigEndian(nonce + 1));
    const auto number = static_cast<std::uint32_t>(2 + seed % 7);
    std::string data = database.substr(page * (number - 1), page);
    data[100] = static_cast<char>(data[100] + 1);
    std::uint32_t sum = nonce;
    for (std::int64_t i = std::int64_t{page} - 200; i > 0; i -= 200)
        sum += static_cast<unsigned char>(data[static_cast<std::size_t>(i)]);
    journal += bigEndian(number) + data + bigEndian(sum);
    if (victim.empty()) return journal;
    std::uint32_t letters = 0;
    for (const char letter : victim) letters += static_cast<unsigned char>(letter);
    return journal + bigEndian(0x40000000 / page + 1) + victim + bigEndian(static_cast<std::uint32_t>(victim.size())) +
           bigEndian(letters) + journalMagicBytes;
}

// A log with one changed page; in some the sums or the salts of the page are wrong.
std::string logOf(const std::string& database, int seed)
{
    const auto page = static_cast<std::uint32_t>(static_cast<unsigned char>(database[16]) << 8 |
                                                 static_cast<unsigned char>(database[17]));
    std::uint32_t a = 0, b = 0;
    const auto sums = [&](const std::string& bytes) {
        const auto word = [&](std::size_t at) {
            std::uint32_t value = 0;
            for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
            return value;
        };
        for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
            a += word(at) + b;
            b += word(at + 4) + a;
        }
        return bigEndian(a) + bigEndian(b);
    };
    const std::string salts = bigEndian(static_cast<std::uint32_t>(seed + 1)) + bigEndian(0x1234u);
    std::string log = bigEndian(0x377f0683) + bigEndian(3007000) + bigEndian(page) + bigEndian(0) + salts;
    log += sums(log);
    const auto number = static_cast<std::uint32_t>(1 + seed % 7);
    std::string data = database.substr(page * (number - 1), page);
    data[100] = static_cast<char>(data[100] + 1);
    const std::string head = bigEndian(number) + bigEndian(static_cast<std::uint32_t>(database.size() / page));
    (void)sums(head);
    const std::string last = sums(data);
    return log + head + salts + (seed % 4 == 3 ? bigEndian(0) + bigEndian(0) : last) + data;
}

// Fifteen inner pages of the table or index with the most become levels, on each of which every cell leads to the same
// page: what has few megabytes would be read for years. false: there are too few.
bool leadInCircles(std::string& content, std::size_t page)
{
    const auto number = [&](std::size_t at, int count) {
        std::uint32_t value = 0;
        for (int i = 0; i < count; ++i)
            value = value << 8 | static_cast<unsigned char>(content[at + static_cast<std::size_t>(i)]);
        return value;
    };
    const auto pointersOf = [&](std::size_t at) { // places of the numbers of an inner page's children
        std::vector<std::size_t> places{at + 8};
        for (std::uint32_t cell = 0; cell < number(at + 3, 2); ++cell)
            places.push_back(at + number(at + 12 + 2 * cell, 2));
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
    std::stable_partition(pages.begin(), pages.end(), [&](std::size_t at) {
        return !children.contains(static_cast<std::uint32_t>(at / page + 1));
    });
    for (std::size_t level = 0; level + 1 < 15; ++level)
        for (const std::size_t place : pointersOf(pages[level]))
            for (int i = 0; i < 4; ++i)
                content[place + static_cast<std::size_t>(i)] =
                    static_cast<char>((pages[level + 1] / page + 1) >> (24 - 8 * i));
    return true;
}

std::string varint(std::uint64_t value)
{
    std::string out(1, static_cast<char>(value & 0x7f));
    while (value >>= 7) out.insert(out.begin(), static_cast<char>(0x80 | (value & 0x7f)));
    return out;
}

std::string twoBytes(std::size_t value) { return {static_cast<char>(value >> 8), static_cast<char>(value & 0xff)}; }

// A page of a table: its cells from the end, their places from `at` on. `right`: an inner page's last child.
std::string pageOf(std::size_t size, std::size_t at, const std::vector<std::string>& cells,
                   std::optional<std::uint32_t> right)
{
    std::string page(size, '\0'), places;
    std::size_t from = size;
    for (const std::string& cell : cells) {
        from -= cell.size();
        page.replace(from, cell.size(), cell);
        places += twoBytes(from);
    }
    const std::string head = std::string(1, right ? '\5' : '\15') + twoBytes(0) + twoBytes(cells.size()) +
                             twoBytes(from) + '\0' + (right ? bigEndian(*right) : std::string());
    page.replace(at, head.size() + places.size(), head + places);
    return page;
}

// A database whose list of tables is a tree of so many levels, on each of which every cell leads to the same page.
std::string endlessSchema(std::size_t size, int levels, int cells)
{
    std::string head, body;
    for (const std::string& text : {std::string("table"), std::string("x"), std::string("x")}) {
        head += varint(13 + 2 * text.size());
        body += text;
    }
    const std::string sql = "create table if not exists x(a)";
    head += varint(6) + varint(13 + 2 * sql.size());
    body += bigEndian(0) + bigEndian(2) + sql;
    const std::string row = varint(head.size() + 1) + head + body;
    const auto inner = [&](std::uint32_t child, std::size_t at) {
        return pageOf(size, at, std::vector<std::string>(static_cast<std::size_t>(cells), bigEndian(child) + varint(1)),
                      child);
    };
    std::string pages = pageOf(size, 0, {varint(row.size()) + varint(1) + row}, {});
    for (int level = 0; level < levels; ++level) pages += inner(static_cast<std::uint32_t>(level + 2), 0);
    std::string first = inner(static_cast<std::uint32_t>(levels + 2), 100);
    std::string header = std::string("SQLite format 3") + '\0' + twoBytes(size) + std::string("\1\1\0\100\40\40", 6) +
                         bigEndian(1) + bigEndian(static_cast<std::uint32_t>(levels + 2));
    for (const std::uint32_t number : {0u, 0u, 1u, 4u, 0u, 0u, 1u, 7u, 0u, 0x53575254u}) header += bigEndian(number);
    header += std::string(20, '\0') + bigEndian(1) + bigEndian(3040001);
    first.replace(0, header.size(), header);
    return first + pages;
}

} // namespace

class TestHostileFile : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    int m_files = 0;
    std::string m_good, m_killed, m_marked;

    std::string freshPath()
    {
        return m_folder.filePath(QStringLiteral("file%1.stagewright").arg(++m_files)).toStdString();
    }

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
        QVERIFY(!(*database)->integer(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n"));
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
        m_marked = freshPath(); // by a recording that was killed, without its log
        QVERIFY(samples::recordAndDie(m_marked + "-killed", {2, 4, 200, "1f1b"}));
        fs::copy_file(m_marked + "-killed", m_marked);
        for (const std::int64_t run : {1, 2}) QCOMPARE(file->intact(run).value(), std::optional<bool>(true));
        QVERIFY(file->checkPages().has_value());
    }

    void schemasThatAreNotOurs_data()
    {
        QTest::addColumn<QString>("sql");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, const char* sql, const char* says) {
            QTest::newRow(name) << QString(sql) << QString(says);
        };
        row("trigger", "CREATE TRIGGER quiet AFTER INSERT ON run BEGIN SELECT 1; END", "trigger named quiet");
        row("view",
            "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n) SELECT x FROM n",
            "view named endless");
        row("changed view", "DROP VIEW runs; CREATE VIEW runs AS SELECT 1", "its view runs");
        row("column", "ALTER TABLE run ADD COLUMN more AS (1)", "its table run");
        row("view for a table", "DROP TABLE label; CREATE VIEW label AS SELECT 1 AS run, 1 AS label, 'x' AS text",
            "its view label");
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

    // A row's text runs whatever the row says, and names of SQLite don't tell large letters from small ones.
    void rowsOfTheSchemaThatHide_data()
    {
        QTest::addColumn<QString>("row");
        const QStringList made{QStringLiteral("CREATE VIEW spans AS SELECT 1 AS run"),
                               QStringLiteral("CREATE VIEW memory AS SELECT 'x' AS category"),
                               QStringLiteral("CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM run; END"),
                               QStringLiteral("CREATE VIRTUAL TABLE v USING fts5(x)"),
                               QStringLiteral("create table if not exists harmless(a)"),
                               QStringLiteral("CREATE TABLE other(a)"),
                               QStringLiteral("CREATE VIEW run AS SELECT 1")};
        const QStringList types{QStringLiteral("table"),   QStringLiteral("index"), QStringLiteral("view"),
                                QStringLiteral("trigger"), QStringLiteral("TABLE"), QString()};
        const QStringList names{QStringLiteral("harmless"), QStringLiteral("sqlite_spans"),
                                QStringLiteral("sqlite_autoindex_run_1"), QStringLiteral("sqlite_stat1")};
        for (const QString& type : types)
            for (const QString& name : names)
                for (const QString& sql : made)
                    QTest::newRow(qPrintable(type + QLatin1Char(' ') + name + QLatin1Char(' ') + sql.left(20)))
                        << QStringLiteral("'%1','%2','%2',0,'%3'")
                               .arg(type, name, QString(sql).replace(QLatin1Char('\''), QLatin1String("''")));
    }
    void rowsOfTheSchemaThatHide()
    {
        QFETCH(QString, row);
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "PRAGMA writable_schema=1; INSERT INTO sqlite_schema VALUES(" + row.toStdString() + ")"));
        const auto file = RunFile::open(path, OpenMode::Read);
        QVERIFY(!file.has_value());
        QCOMPARE(file.error().code, ErrorCode::Unreadable);
    }

    void namesInOtherLetters()
    {
        for (const char* sql : {"CREATE TABLE Spans(x)", "CREATE TABLE MEMORY(x)", "CREATE TABLE Report_Bubbles(x)"}) {
            const std::string path = freshPath();
            fs::copy_file(m_good, path);
            QVERIFY(execute(path, sql));
            const auto file = RunFile::open(path, OpenMode::Read);
            QVERIFY2(!file.has_value() && file.error().message.find("hides one of stagewright") != std::string::npos,
                     sql);
        }
    }

    // A journal that names another file, which SQLite deletes when it opens this one; and journals and logs of every
    // other kind. None is used, changed or removed.
    void whatIsBesideAFile_data()
    {
        QTest::addColumn<QString>("suffix");
        QTest::addColumn<int>("form");
        for (const char* suffix : {"-journal", "-wal"})
            for (int form = 0; form < 50; ++form)
                QTest::newRow(qPrintable(QStringLiteral("%1 %2").arg(QLatin1String(suffix)).arg(form)))
                    << QString::fromLatin1(suffix) << form;
    }
    void whatIsBesideAFile()
    {
        QFETCH(QString, suffix);
        QFETCH(int, form);
        const bool journal = suffix == QLatin1String("-journal");
        const std::string path = freshPath(), victim = freshPath(), beside = path + suffix.toStdString();
        fs::copy_file(form % 2 == 0 ? m_good : m_marked, path);
        std::ofstream(victim) << "precious";
        const std::string content = contentOfFile(path);
        const std::string left =
            journal ? journalOf(content, form % 5 == 4 ? std::string() : victim, form) : logOf(content, form);
        if (form % 10 == 9)
            fs::create_symlink(victim, beside);
        else if (form % 10 == 8)
            fs::create_directory(beside);
        else
            std::ofstream(beside, std::ios::binary) << left;
        {
            const auto file = RunFile::open(path, OpenMode::Read);
            QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
            QVERIFY2((*file)->missing().find(suffix.toStdString() + " beside it is not") != std::string::npos,
                     (*file)->missing().c_str());
            QVERIFY((*file)->read(1).has_value());
            QVERIFY((*file)->checkPages().has_value());
        }
        {
            const auto file = RunFile::open(path, OpenMode::Write);
            QVERIFY(!file.has_value());
            QCOMPARE(file.error().code, ErrorCode::Unavailable);
        }
        const std::string target = freshPath();
        QVERIFY(RunFile::open(target, OpenMode::Create).value()->merge(path).has_value());
        QVERIFY(contentOfFile(path) == content);
        QVERIFY(contentOfFile(victim) == "precious");
        if (form % 10 < 8) QVERIFY(contentOfFile(beside) == left);
    }

    // A good copy put over a killed recording whose log is still there, from wherever it comes.
    void aRestoredCopyStaysWhole()
    {
        const std::string killed = freshPath(), other = freshPath();
        QVERIFY(samples::recordAndDie(killed, {2, 4, 60, "1f1b"}));
        QVERIFY(fs::file_size(killed + "-wal") > 0);
        QVERIFY(samples::recordAndDie(other, {2, 4, 30, "1f1b"}));
        { // its own log is used
            const std::string path = freshPath();
            fs::copy_file(killed, path);
            fs::copy_file(killed + "-wal", path + "-wal");
            QCOMPARE(RunFile::open(path, OpenMode::Read).value()->runs().value().at(0).steps, 60);
            QCOMPARE(RunFile::open(path, OpenMode::Write).value()->runs().value().at(0).steps, 60);
            QVERIFY(!fs::exists(path + "-wal"));
        }
        for (const std::string& copy : {m_good, other}) {
            const std::string path = freshPath();
            fs::copy_file(copy, path);
            fs::copy_file(killed + "-wal", path + "-wal");
            const std::string content = contentOfFile(path);
            const auto file = RunFile::open(path, OpenMode::Write);
            QVERIFY(!file.has_value());
            QCOMPARE(file.error().code, ErrorCode::Unavailable);
            QVERIFY(RunFile::open(path, OpenMode::Read)
                        .value()
                        ->missing()
                        .find("-wal beside it is not the log of this file") != std::string::npos);
            QVERIFY(contentOfFile(path) == content);
            fs::remove(path + "-wal");
            QVERIFY(RunFile::open(path, OpenMode::Write).value()->checkPages().has_value());
        }
    }

    // A change that was killed half-way is taken back; its journal does not touch a copy of an earlier state.
    void aKilledChangeIsTakenBack()
    {
        const std::string path = freshPath(), copy = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(RunFile::open(path, OpenMode::Write).value()->annotate(1, "first").has_value());
        fs::copy_file(path, copy);
        QVERIFY(RunFile::open(path, OpenMode::Write).value()->annotate(1, "second").has_value());
        const pid_t child = ::fork();
        if (child == 0) {
            const auto database = Database::open(path, SQLITE_OPEN_READWRITE).value();
            (void)database->execute("PRAGMA cache_size=1; BEGIN; UPDATE run SET note='third'; UPDATE span_block SET "
                                    "data=randomblob(length(data)); UPDATE pyramid SET data=randomblob(length(data))");
            ::kill(::getpid(), SIGKILL);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        QVERIFY(WIFSIGNALED(status) && fs::file_size(path + "-journal") > 0);
        fs::copy_file(path + "-journal", copy + "-journal");
        const auto file = RunFile::open(path, OpenMode::Read);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        QCOMPARE((*file)->runs().value().at(0).note, std::string("second"));
        QVERIFY((*file)->checkPages().has_value() && *(*file)->intact(1) == true);
        QCOMPARE(RunFile::open(copy, OpenMode::Read).value()->runs().value().at(0).note, std::string("first"));
        QVERIFY(!RunFile::open(copy, OpenMode::Write).has_value());
        QVERIFY(fs::exists(copy + "-journal"));
    }

    void locksOfOtherKinds()
    {
        for (int kind = 0; kind < 4; ++kind) {
            const std::string path = freshPath(), lock = path + "-lock", target = freshPath();
            fs::copy_file(m_good, path);
            if (kind == 0) QCOMPARE(::mkfifo(lock.c_str(), 0600), 0);
            if (kind == 1) fs::create_symlink(target, lock);
            if (kind == 2) fs::create_directory(lock);
            if (kind == 3) std::ofstream(lock) << "somebody's";
            QVERIFY(RunFile::open(path, OpenMode::Read).value()->read(1).has_value());
            const auto done = RunFile::open(path, OpenMode::Write).value()->rename(1, "x");
            QCOMPARE(done.has_value(), kind == 3);
            if (kind < 3) QCOMPARE(done.error().code, ErrorCode::Unavailable);
            QVERIFY(fs::exists(fs::symlink_status(lock)));
            QVERIFY(!fs::exists(target));
        }
    }

    // SQLite says that the disk is full.
    void noNumberIsLeft()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(path, "UPDATE sqlite_sequence SET seq=9223372036854775807 WHERE name='run'"));
        const auto file = RunFile::open(path, OpenMode::Write).value();
        const auto added = file->add(samples::simulatedRun("1f1b", 2, 4, 0.1)),
                   merged = file->merge(m_good).transform([] { return std::int64_t{0}; });
        for (const auto& one : {added, merged})
            QVERIFY(!one.has_value() && one.error().message.find("the highest number") != std::string::npos);
    }

    // Many rows of one value take few bytes, and would take gigabytes of memory.
    void blocksOfOneValue()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        BlockEncoder encoder;
        const std::vector<MemoryEvent> events(blockRows, MemoryEvent{5, 1, 0, 0, 0, 0, MemoryCategory::Activations});
        const auto block = encodeMemory(encoder, events);
        QVERIFY(block.size() < 100);
        std::string hex;
        for (const std::byte byte : block) hex += QByteArray(1, static_cast<char>(byte)).toHex().toStdString();
        QVERIFY(execute(path, "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<2000) INSERT INTO "
                              "memory_block SELECT 1, 1000, 0, i, 4096, x'" +
                                  hex + "' FROM n"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        const Run run = file->read(1).value();
        QVERIFY(run.info.damagedBlocks > 1000);
        QVERIFY(run.timeline->memory().size() < 3'000'000);
        std::size_t streamed = 0;
        QVERIFY(file->streamMemory(1, [&](std::span<const MemoryEvent> part) { return (streamed += part.size()) > 0; })
                    .value() > 1000);
        QVERIFY(streamed < 3'000'000);
    }

    // What asked for 147 GB: each row is small, and each says that it is far away.
    void numbersThatLie()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(
            path, "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x+1 FROM n WHERE x<20000) INSERT INTO metric "
                  "SELECT 1, x, 'm'||x, '' FROM n;"
                  "INSERT INTO metric_value SELECT 1, metric, 1000000, 1.0 FROM metric WHERE run=1 AND metric>=100;"
                  "UPDATE run SET ranks=65536, stages=1000000000, steps=1000000000 WHERE id=1; UPDATE span_block SET "
                  "first=first+40000 WHERE run=2"));
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
        QVERIFY(execute(
            path, "UPDATE run SET steps=1000000000 WHERE id=1; UPDATE span_block SET step=step*80000000 WHERE run=1"));
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
            fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version" + std::to_string(version) + ".stagewright",
                          path);
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
        const std::string endless =
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT count(*) FROM n";
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

    // A tree of fifteen levels, on each of which every cell leads to the same page: the file has few megabytes and
    // would be read for years.
    void endlessTree()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(
            path,
            "PRAGMA page_size=1024; VACUUM; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000)"
            "INSERT INTO metric_value SELECT 1, 1000+i, i, 0.5 FROM n; CREATE TABLE filler(x); INSERT INTO filler "
            "VALUES(zeroblob(12000000));"));
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

    // A query of the user's own over such a tree: SQLite counts its rows in one instruction, and still ends in time, or
    // at a stop.
    void queriesOfAnEndlessTreeEnd()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(
            path,
            "PRAGMA page_size=1024; VACUUM; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<60000)"
            "INSERT INTO metric_value SELECT 1, 1000+i, i, 0.5 FROM n; CREATE TABLE filler(x); INSERT INTO filler "
            "VALUES(zeroblob(12000000));"));
        std::string content;
        {
            std::ifstream in(path, std::ios::binary);
            content.assign(std::istreambuf_iterator<char>(in), {});
        }
        QVERIFY(leadInCircles(content, 1024));
        std::ofstream(path, std::ios::binary) << content;
        const auto file = RunFile::open(path, OpenMode::Read);
        QVERIFY2(file.has_value(), file ? "" : file.error().message.c_str());
        for (const char* sql : {"SELECT count(*) FROM main.metric_value", "SELECT sum(value) FROM main.metric_value",
                                "SELECT count(*) FROM main.metric_value AS a, main.metric_value AS b WHERE a.value<0",
                                "SELECT (SELECT count(*) FROM main.metric_value) + 1"}) {
            const auto answer = (*file)->query(sql, 10, {}, 0.2); // or it never returns
            QVERIFY(!answer.has_value());
            QCOMPARE(answer.error().code, ErrorCode::Failed);
            QVERIFY2(answer.error().message.find("had computed for 0.2 s") != std::string::npos &&
                         answer.error().remedy.find("--time-limit") != std::string::npos,
                     answer.error().message.c_str());
        }
        std::stop_source stop;
        std::thread later([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            stop.request_stop();
        });
        Progress progress;
        progress.stop = stop.get_token();
        const auto stopped = (*file)->query("SELECT count(*) FROM main.metric_value", 10, progress);
        later.join();
        QVERIFY(!stopped.has_value());
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
        QVERIFY((*file)->query("SELECT 1").has_value());
    }

    // Its list of tables would be read for years, by whoever opens it: a run file, an export of Nsight Systems, one to
    // be merged.
    void endlessSchemas_data()
    {
        QTest::addColumn<int>("page");
        QTest::addColumn<int>("levels");
        QTest::addColumn<int>("cells");
        QTest::newRow("small pages") << 512 << 17 << 50;
        QTest::newRow("large pages") << 4096 << 10 << 500;
    }
    void endlessSchemas()
    {
        QFETCH(const int, page);
        QFETCH(const int, levels);
        QFETCH(const int, cells);
        const std::string path = freshPath();
        std::ofstream(path, std::ios::binary) << endlessSchema(static_cast<std::size_t>(page), levels, cells);
        QVERIFY(fs::file_size(path) < 100'000);
        const auto opened = RunFile::open(path, OpenMode::Read);
        QVERIFY(!opened.has_value());
        QVERIFY2(opened.error().message.find("takes too long") != std::string::npos, opened.error().message.c_str());
        const std::string exported = path + ".sqlite";
        fs::copy_file(path, exported);
        const auto read = importTraces({exported}, {});
        QVERIFY(!read.has_value() || (read->runs.empty() && !read->refused.empty()));
        const Error& refused = read ? read->refused.front().error : read.error();
        QVERIFY2(refused.message.find("takes too long") != std::string::npos, refused.message.c_str());
    }

    // A file may have more runs than memory has room for: a list and a search keep none.
    void manyRunsAreNotKept()
    {
        constexpr int many = 200'000;
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        QVERIFY(execute(
            path,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<" + std::to_string(many) +
                ") INSERT INTO run SELECT 1000+i, 'run '||i, schedule_name, note, created_unix_ms, state, provenance, "
                "clock, ranks, stages, microbatches, steps, warmup_steps, span_count, begin_ns, end_ns, "
                "time_unit, memory_unit, NULL, NULL, NULL FROM n, run WHERE id=2"));
        const auto file = RunFile::open(path, OpenMode::Read).value();
        std::int64_t last = 0, count = 0;
        bool ascends = true;
        const std::size_t before = mallinfo2().uordblks;
        std::size_t most = before;
        QVERIFY(file->list([&](const RunFile::ListedRun& one) {
                        ascends = ascends && one.run.info.id > last;
                        last = one.run.info.id;
                        if (++count % 1000 == 0) most = std::max(most, mallinfo2().uordblks);
                    })
                    .has_value());
        QVERIFY(ascends);
        QCOMPARE(count, std::int64_t{many} + 2);
        QVERIFY2(most - before < 16'000'000, std::to_string(most - before).c_str());
        QCOMPARE(file->find("run 77").value(), 1077);
        QCOMPARE(file->find("#1078").value(), 1078);
        QCOMPARE(file->find("zb-h1").value(), std::int64_t{1000 + many}); // the newest
        const auto unknown = file->find("nosuch");
        QVERIFY(!unknown.has_value());
        QVERIFY2(unknown.error().remedy.size() < 1000 &&
                     unknown.error().remedy.ends_with(" and " + std::to_string(many + 2 - 20) + " more"),
                 unknown.error().remedy.c_str());
    }

    // Each leaves the file as it was, and nothing beside it.
    void changesAreStopped()
    {
        const std::string path = freshPath();
        fs::copy_file(m_good, path);
        const std::string before = contentOf(path);
        std::stop_source stop;
        stop.request_stop();
        {
            const auto file = RunFile::open(path, OpenMode::Write).value();
            QCOMPARE(file->remove(1, stop.get_token()).error().code, ErrorCode::Cancelled);
            QCOMPARE(file->compact(stop.get_token()).error().code, ErrorCode::Cancelled);
            Progress progress;
            progress.stop = stop.get_token();
            QCOMPARE(file->merge(m_killed, progress).error().code, ErrorCode::Cancelled);
        }
        QVERIFY(contentOf(path) == before);
        for (const char* suffix : {"-lock", "-journal", "-wal", "-shm"}) QVERIFY2(!fs::exists(path + suffix), suffix);
    }

    // The same of an export of Nsight Systems: its rows end where the file has no room for more.
    void endlessExport()
    {
        const std::string path = freshPath() + ".sqlite";
        fs::copy_file(STAGEWRIGHT_SOURCE_DIR "/tests/data/traces/nsight.sqlite", path);
        QVERIFY(execute(path, "PRAGMA page_size=512; VACUUM; INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL WITH RECURSIVE "
                              "n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<40000)"
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
        const auto full = [](const std::string& note) {
            return note.find("the file has no room for so many rows") != std::string::npos;
        };
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
        for (const char* change :
             {"DELETE FROM table_digest WHERE run=1", "DELETE FROM table_digest WHERE run=2 AND name='pyramid'",
              "DELETE FROM table_digest", "DELETE FROM table_digest WHERE run=0 AND name='table_digest'"}) {
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
        for (const char* change : {"DELETE FROM step_log WHERE id=(SELECT max(id) FROM step_log)",
                                   "DELETE FROM step_log WHERE id=(SELECT min(id) + 1 FROM step_log)",
                                   "UPDATE step_log SET steps=steps+1 WHERE id=(SELECT max(id) FROM step_log)",
                                   "UPDATE step_log SET run=7 WHERE id=(SELECT max(id) FROM step_log)",
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
    // Bytes at random places: whatever changes the content is found. STAGEWRIGHT_FLIPS: how many; 10,000 take about a
    // minute.
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
            QVERIFY2(found,
                     qPrintable(
                         QStringLiteral("byte %1 was 0x%2").arg(at).arg(static_cast<unsigned char>(bytes[at]), 2, 16)));
        }
        QCOMPARE(changed, flips);
    }
};

QTEST_GUILESS_MAIN(TestHostileFile)
#include "tst_hostile_file.moc"
