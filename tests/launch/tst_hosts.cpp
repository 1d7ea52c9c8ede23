// The lists of hosts and jobs, the command of ssh, and the frames between the two ends.
#include <QtTest/QtTest>

#include <algorithm>
#include <random>
#include <thread>

#include <sys/stat.h>

#include "app/launch/hosts/frames.h"
#include "app/launch/hosts/host_list.h"
#include "app/launch/hosts/job_list.h"
#include "app/launch/hosts/private_file.h"
#include "app/launch/hosts/ssh.h"

using namespace stagewright;

class TestHosts : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    static Host host(std::string name, std::string target)
    {
        Host made;
        made.name = std::move(name);
        made.target = std::move(target);
        return made;
    }

private slots:
    void init()
    {
        QDir(m_folder.path()).removeRecursively();
        QDir().mkpath(m_folder.path());
        qputenv("XDG_CONFIG_HOME", m_folder.filePath("config").toUtf8());
        qputenv("XDG_STATE_HOME", m_folder.filePath("state").toUtf8());
    }

    void hostsAreKeptForTheUserOnly()
    {
        QVERIFY(readHosts().value().empty());
        Host node = host("node1", "me@node1");
        node.setup = {"module load cuda", "export A='b c'"};
        node.scratch = "/scratch/me";
        QVERIFY(keepHost(node).has_value());
        QVERIFY(keepHost(host("a", "ssh://me@a:2222")).has_value());
        QCOMPARE(readHosts().value().size(), std::size_t{2});
        QCOMPARE(findHost("node1").value() == node, true);
        struct stat file {};
        QCOMPARE(::stat(hostsFile().c_str(), &file), 0);
        QCOMPARE(file.st_mode & 0777u, 0600u);
        node.target = "other";
        QVERIFY(keepHost(node).has_value()); // replaced
        QCOMPARE(readHosts().value().size(), std::size_t{2});
        QVERIFY(removeHost("node1").has_value());
        QVERIFY(!findHost("node1").has_value());
        QVERIFY(findHost("node1").error().remedy.find("hosts are a;") != std::string::npos);
    }

    // Each change is made to the list as it is by then, whoever wrote it.
    void hostsOfSeveralProgramsAreAllKept()
    {
        constexpr int writers = 4, hosts = 10;
        std::vector<std::thread> threads;
        for (int writer = 0; writer < writers; ++writer)
            threads.emplace_back([writer] {
                for (int i = 0; i < hosts; ++i)
                    (void)keepHost(host("h" + std::to_string(writer) + "-" + std::to_string(i), "me@there"));
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(readHosts().value().size(), std::size_t(writers * hosts));
    }

    void whatCantBeAHost()
    {
        for (const char* name : {"", "-x", "a/b", "..", "a b", "\xc3\xa4"})
            QVERIFY2(!checkHost(host(name, "t")).has_value(), name);
        for (const char* target : {"", "-oProxyCommand=x", "a b", "a\nb", "a\tb"})
            QVERIFY2(!checkHost(host("n", target)).has_value(), target);
        Host relative = host("n", "t");
        relative.folder = "x";
        QVERIFY(!checkHost(relative).has_value());
        Host lines = host("n", "t");
        lines.setup = {"a\nb"};
        QVERIFY(!checkHost(lines).has_value());
        QVERIFY(!sshCommand(host("n", "-oProxyCommand=x"), "true").has_value()); // whatever wrote it
    }

    void damagedLists()
    {
        for (const char* text : {"x", "{}", "{\"hosts\":[{}]}", "{\"hosts\":[{\"name\":\"a\",\"target\":\"-x\"}]}",
                                 "{\"hosts\":[{\"name\":\"a\",\"target\":\"b\"},{\"name\":\"a\",\"target\":\"c\"}]}",
                                 "{\"hosts\":[{\"name\":\"a\",\"target\":3}]}"}) {
            QVERIFY(writePrivateFile(hostsFile(), text).has_value());
            const auto hosts = readHosts();
            QVERIFY2(!hosts && hosts.error().code == ErrorCode::Unreadable &&
                         hosts.error().message.find("hosts.json") != std::string::npos,
                     text);
        }
    }

    void theCommandOfSsh()
    {
        qputenv("STAGEWRIGHT_SSH", "/usr/bin/ssh");
        Host node = host("n", "me@node");
        node.setup = {"module load 'x'"};
        const auto command = sshCommand(node, programScript(node, {"hosts", "serve"})).value();
        const auto dashes = std::find(command.begin(), command.end(), "--");
        QVERIFY(dashes != command.end());
        QCOMPARE(*(dashes + 1), std::string("me@node"));
        QCOMPARE(command.end() - dashes, 3);
        QVERIFY(std::find(command.begin(), dashes, "BatchMode=yes") != dashes);
        for (const std::string& word : command)
            QVERIFY(word.find("StrictHostKeyChecking") == std::string::npos &&
                    word.find("KnownHosts") == std::string::npos);
    }

    void jobsOutliveTheProgram()
    {
        QVERIFY(readJobs().empty());
        HostJob job;
        job.id = newJobId("Node 1");
        QVERIFY2(isJobId(job.id), job.id.c_str());
        job.host = "node1";
        job.verb = "record";
        job.arguments = {"--schedule=it's", "--steps=3"};
        job.file = "/x/run.stagewright";
        job.createdUnixMs = 5;
        job.state = JobState::Running;
        job.detail = "on node1";
        job.steps = 7;
        job.runs = {{1, 4, 99, 7, false}};
        QVERIFY(keepJob(job).has_value());
        HostJob other = job;
        other.id = "other-1";
        other.createdUnixMs = 6;
        other.exitCode = 5;
        other.state = JobState::Lost;
        QVERIFY(keepJob(other).has_value());
        const auto jobs = readJobs();
        QCOMPARE(jobs.size(), std::size_t{2});
        QCOMPARE(jobs[0].id, std::string("other-1")); // the newest first
        QCOMPARE(*jobs[0].exitCode, 5);
        QCOMPARE(jobs[1].arguments, job.arguments);
        QCOMPARE(jobs[1].runs.front().here, std::int64_t{4});
        QCOMPARE(findJob("").value().id, std::string("other-1"));
        QCOMPARE(findJob(job.id.substr(0, 6)).value().id, job.id);
        QVERIFY(!findJob("nothing").has_value());
        QVERIFY(writePrivateFile(folderOfJob("other-1") + "/job.json", "{\"id\": 3}").has_value());
        std::vector<std::string> damaged;
        QCOMPARE(readJobs(&damaged).size(), std::size_t{1});
        QCOMPARE(damaged.size(), std::size_t{1});
        QVERIFY(forgetJob(job.id).has_value());
        QVERIFY(!forgetJob("../state").has_value());
        for (const char* id : {"", "-a", "../x", "A", "a b", "a/b"}) QVERIFY2(!isJobId(id), id);
    }

    void framesInAnyPieces()
    {
        std::mt19937 random(5);
        std::string sent = "Welcome to node1\nno mail\n"; // of the shell's start-up files
        std::vector<Frame> frames;
        for (int i = 0; i < 50; ++i) {
            Frame frame{static_cast<FrameKind>(1 + random() % 6), random(), {}};
            frame.bytes.resize(random() % 3000);
            for (char& c : frame.bytes) c = static_cast<char>(random());
            sent += frameBytes(frame.kind, frame.bytes, frame.offset);
            frames.push_back(std::move(frame));
        }
        FrameReader reader;
        std::size_t got = 0;
        for (std::size_t at = 0; at < sent.size();) {
            const std::size_t count = std::min<std::size_t>(1 + random() % 700, sent.size() - at);
            reader.add(std::string_view(sent).substr(at, count));
            at += count;
            for (;;) {
                auto frame = reader.next().value();
                if (!frame) break;
                QVERIFY(got < frames.size());
                QCOMPARE(frame->kind, frames[got].kind);
                QCOMPARE(frame->offset, frames[got].offset);
                QCOMPARE(frame->bytes, frames[got].bytes);
                ++got;
            }
        }
        QCOMPARE(got, frames.size());
    }

    void damagedFrames()
    {
        std::mt19937 random(6);
        const std::string good =
            frameBytes(FrameKind::Message, "{\"a\":1}") + frameBytes(FrameKind::Steps, std::string(500, 'x'), 7);
        for (int round = 0; round < 500; ++round) {
            std::string bytes = good;
            bytes[random() % bytes.size()] ^= static_cast<char>(1 + random() % 255);
            FrameReader reader;
            reader.add(bytes);
            int whole = 0;
            for (;;) {
                auto frame = reader.next();
                if (!frame || !*frame) break;
                ++whole;
            }
            QVERIFY(whole < 2);
        }
        FrameReader noise;
        noise.add(std::string(100'000, 'y'));
        QVERIFY(!noise.next().has_value());
    }
};

QTEST_GUILESS_MAIN(TestHosts)
#include "tst_hosts.moc"
