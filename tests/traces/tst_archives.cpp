// Traces in archives: every member is read, names that lead out are refused, limits hold, nothing is left behind.
#include <QtTest/QtTest>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "tests/traces/import_rig.h"
#include "tests/traces/tar_file.h"
#include "traces/foreign/archive.h"

using namespace stagewright;

namespace {

void writeFile(const std::string& path, const std::string& bytes, bool packed = false)
{
    if (!packed) {
        std::ofstream(path, std::ios::binary) << bytes;
        return;
    }
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
}

// A frame of zstd with its blocks stored as they are.
std::string zstdOf(const std::string& bytes)
{
    const auto number = [](std::size_t value, int size) {
        std::string out;
        for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
        return out;
    };
    constexpr std::size_t largest = std::size_t{128} << 10;
    // one segment, its size in four bytes
    std::string out = number(0xfd2fb528, 4) + number(0xa0, 1) + number(bytes.size(), 4);
    for (std::size_t at = 0; at < bytes.size(); at += largest) {
        const std::string block = bytes.substr(at, largest);
        out += number((at + largest >= bytes.size() ? 1 : 0) | block.size() << 3, 3) + block;
    }
    return out;
}

} // namespace

class TestArchives : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder, m_temporary;
    std::string path(const char* name) const { return m_folder.filePath(QString::fromLatin1(name)).toStdString(); }
    static std::string rank(const char* name) { return import_rig::textOf(import_rig::dataFile(name)); }
    QStringList leftovers() const
    {
        return QDir(m_temporary.path()).entryList(QDir::AllEntries | QDir::NoDotAndDotDot | QDir::Hidden);
    }

private slots:
    void initTestCase()
    {
        qputenv("TMPDIR", m_temporary.path().toUtf8()); // where members are unpacked
        writeFile(path("probe.tar"), tarOf({{"a.json", "{}"}}));
        const auto probe = Archive::open(path("probe.tar"));
        if (!probe) {
            QVERIFY2(probe.error().message.find("no libarchive") != std::string::npos &&
                         probe.error().remedy.find("tar -xf") != std::string::npos,
                     probe.error().message.c_str());
            QSKIP("built without libarchive");
        }
    }

    void aJobInAnArchiveIsTheJob_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("packed");
        QTest::newRow("tar") << "job.tar" << false;
        QTest::newRow("tar.gz") << "job.tar.gz" << true;
    }
    void aJobInAnArchiveIsTheJob()
    {
        QFETCH(const QString, name);
        QFETCH(const bool, packed);
        const std::string archive = m_folder.filePath(name).toStdString();
        writeFile(archive,
                  tarOf({{"job/rank4.json", rank("gpu_rank4.json")},
                         {"job/rank6.json", rank("gpu_rank6.json")},
                         {"job/.hidden", "x"},
                         {"job/notes.txt", "no trace"}}),
                  packed);
        const auto plain =
            importTraces({import_rig::dataFile("gpu_rank4.json"), import_rig::dataFile("gpu_rank6.json")}, {});
        const auto read = importTraces({archive}, {});
        QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
        QCOMPARE(read->runs.size(), std::size_t(1));
        QCOMPARE(read->runs[0].run.timeline->spans().size(), plain->runs[0].run.timeline->spans().size());
        QCOMPARE(read->runs[0].ops, plain->runs[0].ops);
        QCOMPARE(QString::fromStdString(read->runs[0].run.info.name), QStringLiteral("job"));
        QCOMPARE(read->refused.size(), std::size_t(1)); // the notes; a hidden file is not looked at
        QCOMPARE(QString::fromStdString(read->refused[0].path), QString::fromStdString(archive + "/job/notes.txt"));
        // not the temporary name
        QVERIFY(read->refused[0].error.message.find(archive + "/job/notes.txt") != std::string::npos);
        QCOMPARE(leftovers(), QStringList());
    }

    void namesThatLeadOutAreRefused()
    {
        writeFile(path("out.tar"), tarOf({{"../rank0.json", rank("gpu_rank4.json")},
                                          {"/tmp/rank1.json", rank("gpu_rank4.json")},
                                          {"a/../../rank2.json", rank("gpu_rank4.json")},
                                          {"good/rank6.json", rank("gpu_rank6.json")}}));
        const auto read = importTraces({path("out.tar")}, {});
        QVERIFY(read.has_value());
        QCOMPARE(read->refused.size(), std::size_t(3));
        for (const RefusedFile& one : read->refused)
            QVERIFY2(one.error.message.find("leads out of the archive") != std::string::npos,
                     one.error.message.c_str());
        QCOMPARE(read->runs.size(), std::size_t(1));
        QCOMPARE(leftovers(), QStringList());
    }

    void aZstTraceIsTheTrace_data()
    {
        QTest::addColumn<bool>("packed");
        QTest::newRow("json.zst") << false;
        QTest::newRow("tar.zst") << true;
    }
    void aZstTraceIsTheTrace()
    {
        QFETCH(const bool, packed);
        const std::string text = rank("gpu_rank4.json");
        const std::string name = path(packed ? "rank4.tar.zst" : "rank4.json.zst");
        const std::string all = zstdOf(packed ? tarOf({{"rank4.json", text}}) : text);
        writeFile(name, all);
        const auto plain = importTraces({import_rig::dataFile("gpu_rank4.json")}, {}), read = importTraces({name}, {});
        QVERIFY2(plain && read, read ? "" : read.error().message.c_str());
        QVERIFY(read->refused.empty());
        QCOMPARE(read->runs.size(), std::size_t(1));
        QCOMPARE(read->runs[0].run.timeline->spans().size(), plain->runs[0].run.timeline->spans().size());
        QCOMPARE(read->runs[0].run.timeline->edges().size(), plain->runs[0].run.timeline->edges().size());
        QCOMPARE(read->runs[0].ops, plain->runs[0].ops);
        writeFile(name, all.substr(0, 7)); // within the frame's header
        const auto cut = importTraces({name}, {});
        QVERIFY(!cut || cut->runs.empty());
        QCOMPARE(leftovers(), QStringList());
    }

    // A file within names its compression, and libarchive would call a program of that name.
    void noProgramIsStarted()
    {
        const QTemporaryDir programs;
        const QString started = programs.filePath("started");
        for (const char* name : {"lrzip", "grzip"}) {
            QFile program(programs.filePath(QString::fromLatin1(name)));
            QVERIFY(program.open(QIODevice::WriteOnly));
            program.write("#!/bin/sh\ntouch '" + started.toUtf8() + "'\ncat\n");
            program.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        }
        const QByteArray before = qgetenv("PATH");
        qputenv("PATH", programs.path().toUtf8() + ":" + before);
        const std::string lrzip = std::string("LRZI\0\x06", 6) + std::string(100, '\0'),
                          grzip = std::string("GRZipII\0\x02\x04:)", 12) + std::string(100, '\0');
        for (const std::string& inner : {lrzip, grzip}) {
            writeFile(path("inner.json.zst"), zstdOf(inner));
            QVERIFY(!importTraces({path("inner.json.zst")}, {}));
        }
        qputenv("PATH", before);
        QVERIFY(!QFileInfo::exists(started));
    }

    // What is between two compressions may be a million times the file.
    void nothingIsUnpackedTwice()
    {
        const std::string text = rank("gpu_rank4.json");
        writeFile(path("inner.gz"), text, true);
        writeFile(path("twice.json.zst"), zstdOf(import_rig::textOf(path("inner.gz"))));
        writeFile(path("inner.gz"), tarOf({{"rank4.json", text}}), true);
        writeFile(path("twice.tar.zst"), zstdOf(import_rig::textOf(path("inner.gz"))));
        std::string polyglot(512, '\0'); // for us an archive, for libarchive the output of compress
        polyglot.replace(0, 3, "\x1f\x9d\x90");
        polyglot.replace(257, 5, "ustar");
        writeFile(path("twice.tar.gz"), polyglot, true);
        for (const char* name : {"twice.json.zst", "twice.tar.zst", "twice.tar.gz"})
            QVERIFY2(!importTraces({path(name)}, {}), name);
        QCOMPARE(leftovers(), QStringList());
    }

    // Thousands of small members: one folder for all, with the file of one at a time.
    void membersShareAFolder()
    {
        writeFile(path("small.tar"), tarOf({{"a/one.json", "{}"}, {"b/two.json", "[]"}}));
        auto archive = Archive::open(path("small.tar"));
        QVERIFY(archive.has_value());
        const auto first = (*archive)->next({});
        QVERIFY(first && *first);
        const QFileInfo one(QString::fromStdString((*first)->path));
        QVERIFY(one.isFile());
        const auto second = (*archive)->next({});
        QVERIFY(second && *second);
        const QFileInfo two(QString::fromStdString((*second)->path));
        QCOMPARE(two.absolutePath(), one.absolutePath());
        QCOMPARE(QDir(two.absolutePath()).entryList(QDir::Files), QStringList{QStringLiteral("two.json")});
        const auto end = (*archive)->next({});
        QVERIFY(end && !*end);
        QCOMPARE(leftovers(), QStringList());
    }

    // What is unpacked takes no room in TMPDIR while it fits into memory; all archives of the program share that.
    void smallMembersAreKeptInMemory()
    {
        const std::string small(1'000'000, 'a'), large(3'000'000, 'b');
        writeFile(path("sizes.tar"), tarOf({{"small.json", small}, {"large.json", large}}));
        ArchiveLimits limits;
        limits.inMemory = 2'500'000;
        auto archive = Archive::open(path("sizes.tar"), limits), other = Archive::open(path("sizes.tar"), limits),
             third = Archive::open(path("sizes.tar"), limits);
        QVERIFY(archive && other && third);
        const auto expect = [](const Result<std::optional<UnpackedMember>>& member, const std::string& content,
                               bool inMemory) {
            return member && *member && import_rig::textOf((*member)->path) == content &&
                   isInMemory((*member)->path) == inMemory;
        };
        QVERIFY(expect((*archive)->next({}), small, true));
        QVERIFY(expect((*other)->next({}), small, true));
        QVERIFY(expect((*third)->next({}), small, false)); // more than is left
        QVERIFY(expect((*archive)->next({}), large, false));
        QVERIFY(expect((*other)->next({}), large, false));
        archive->reset();
        other->reset();
        third->reset();
        QCOMPARE(leftovers(), QStringList());
        archive = Archive::open(path("sizes.tar"), limits); // all of it is free again
        QVERIFY(expect((*archive)->next({}), small, true));
    }

    void aCompressedDatabaseIsReadInMemory()
    {
        const std::string bytes = import_rig::textOf(import_rig::dataFile("nsight.sqlite"));
        std::string logged = bytes;
        logged[18] = logged[19] = 2; // as one that SQLite kept a log of writes for
        for (const std::string& content : {bytes, logged}) {
            writeFile(path("nsight.sqlite.gz"), content, true);
            QVERIFY(isArchive(path("nsight.sqlite.gz")));
            auto archive = Archive::open(path("nsight.sqlite.gz"));
            QVERIFY(archive.has_value());
            const auto member = (*archive)->next({});
            QVERIFY(member && *member && isInMemory((*member)->path));
            archive->reset();
            const auto read = importTraces({path("nsight.sqlite.gz")}, {}),
                       plain = importTraces({import_rig::dataFile("nsight.sqlite")}, {});
            QVERIFY2(read && read->refused.empty(), read ? "" : read.error().message.c_str());
            QCOMPARE(read->runs[0].ops, plain->runs[0].ops);
            QCOMPARE(read->runs[0].kernels, plain->runs[0].kernels);
        }
        writeFile(path("damaged.sqlite.gz"), bytes.substr(0, 100) + std::string(5000, 'x'), true);
        const auto damaged = importTraces({path("damaged.sqlite.gz")}, {});
        QVERIFY(!damaged && damaged.error().message.find("damaged.sqlite.gz") != std::string::npos); // the user's name
        QVERIFY2(damaged.error().message.find("/proc/") == std::string::npos &&
                     damaged.error().message.find("stagewright-unpack") == std::string::npos,
                 damaged.error().message.c_str());
        QCOMPARE(leftovers(), QStringList());
    }

    void limitsHold()
    {
        const std::string text = rank("gpu_rank4.json");
        writeFile(path("large.tar"), tarOf({{"rank0.json", text}, {"rank1.json", text}}));
        ArchiveLimits limits;
        limits.bytes = static_cast<std::int64_t>(text.size()) + 10;
        auto archive = Archive::open(path("large.tar"), limits);
        QVERIFY(archive.has_value());
        const auto first = (*archive)->next({});
        QVERIFY(first && *first && (*first)->name == "rank0.json");
        QCOMPARE(leftovers().size(), 1);
        const auto second = (*archive)->next({});
        QVERIFY(!second && second.error().message.find("unpacks to more than") != std::string::npos);
        QVERIFY(!second.error().remedy.empty());
        QCOMPARE(leftovers(), QStringList());
        const auto third = (*archive)->next({});
        QVERIFY(third && !*third);

        limits = {};
        limits.members = 1;
        archive = Archive::open(path("large.tar"), limits);
        QVERIFY((*archive)->next({}).has_value());
        QVERIFY(!(*archive)->next({}).has_value());
        QCOMPARE(leftovers(), QStringList());

        std::stop_source stop;
        Progress progress;
        progress.stop = stop.get_token();
        archive = Archive::open(path("large.tar"));
        QVERIFY((*archive)->next(progress).has_value());
        stop.request_stop();
        const auto cancelled = (*archive)->next(progress);
        QVERIFY(!cancelled && cancelled.error().code == ErrorCode::Cancelled);
        QCOMPARE(leftovers(), QStringList());
    }

    // What a killed program left is removed by the next one; what another program unpacks at the time, and what has
    // just been made, is not.
    void whatAKilledProgramLeft()
    {
        writeFile(path("killed.tar"), tarOf({{"rank0.json", rank("gpu_rank4.json")}}));
        const pid_t child = ::fork();
        if (child == 0) {
            auto archive = Archive::open(path("killed.tar"));
            if (archive && (*archive)->next({})) ::kill(::getpid(), SIGKILL);
            ::_exit(1);
        }
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFSIGNALED(status));
        QCOMPARE(leftovers().size(), 1);
        const auto age = [&](const QString& name) {
            const timespec old[2] = {{::time(nullptr) - 600, 0}, {::time(nullptr) - 600, 0}};
            return ::utimensat(AT_FDCWD, qPrintable(m_temporary.filePath(name)), old, 0) == 0;
        };
        auto unpacking = Archive::open(path("killed.tar")).value();
        QVERIFY((*unpacking).next({}).has_value()); // the other one is fresh
        QCOMPARE(leftovers().size(), 2);
        for (const QString& name : leftovers()) QVERIFY(age(name));
        (void)importTraces({path("killed.tar")}, {});
        QCOMPARE(leftovers().size(), 1);
        unpacking.reset();
        QCOMPARE(leftovers(), QStringList());
        const QStringList others{QStringLiteral("stagewright-unpack-backup"),
                                 QStringLiteral("stagewright-unpack-abc123"),
                                 QStringLiteral("stagewright-unpack-abcdefgh1234567")};
        for (const QString& name : others) {
            QVERIFY(QDir(m_temporary.path()).mkdir(name));
            QVERIFY(age(name));
        }
        (void)importTraces({path("killed.tar")}, {});
        // called like ours, and not ours
        for (const QString& name : others) QVERIFY(QDir(m_temporary.path()).rmdir(name));
    }

    void damageIsSaid()
    {
        const std::string whole =
            tarOf({{"rank4.json", rank("gpu_rank4.json")}, {"rank6.json", rank("gpu_rank6.json")}});
        for (const std::size_t size : {std::size_t{600}, whole.size() / 2, whole.size() - 1400}) {
            writeFile(path("cut.tar"), whole.substr(0, size));
            const auto read = importTraces({path("cut.tar")}, {});
            QVERIFY2(!read || !read->refused.empty() || !read->runs[0].notes.empty(), std::to_string(size).c_str());
            QCOMPARE(leftovers(), QStringList());
        }
        writeFile(path("empty.tar"), tarOf({{"folder/.keep", ""}}));
        const auto empty = importTraces({path("empty.tar")}, {});
        QVERIFY(!empty && empty.error().message.find("no files") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestArchives)
#include "tst_archives.moc"
