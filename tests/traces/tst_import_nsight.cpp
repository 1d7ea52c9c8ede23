// Nsight Systems' exports: optional tables, several files of one job. The recorded ones (STAGEWRIGHT_SHARED) skip where absent.
#include <QtTest/QtTest>

#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "tests/traces/import_rig.h"
#include "traces/foreign/export_groups.h"
#include "traces/import/message_pairs.h"
#include "traces/import/nsight/nccl_calls.h"
#include "traces/import/nsight/nvtx_payload.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace fs = std::filesystem;

class TestImportNsight : public QObject {
    Q_OBJECT

private slots:
    void nsightExports()
    {
        const ImportResult result = imported({dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        QCOMPARE(one.run.info.ranks, 2);
        QCOMPARE(one.ops, std::int64_t{4});
        QCOMPARE(one.kernels, std::int64_t{10});
        QCOMPARE(one.kernelsUnderOps, std::int64_t{8});
        QCOMPARE(one.damaged, std::int64_t{2});
        QVERIFY(one.run.schedule);
        QCOMPARE(one.run.timeline->spansOf(*one.run.timeline->trackOf(0, Lane::Compute))[0].duration(), Nanos{200});
        QVERIFY(one.run.timeline->hasMemory());
    }

    // Two nodes export a file each; the clock of one is 4 ms ahead.
    void nsightNodesAreOneJob()
    {
        const ImportResult result = imported({dataFile("nsight_node1.sqlite"), dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{2});
        const ImportedRun& one = result.runs[1];
        QCOMPARE(one.run.info.name, std::string("nsight_node"));
        QCOMPARE(one.files.size(), std::size_t{4});
        QCOMPARE(one.run.info.ranks, 4);
        QCOMPARE(one.recognised, std::string("gpipe"));
        QCOMPARE(one.kernelsUnderOps, std::int64_t{16});
        QCOMPARE(one.collectives, std::int64_t{6});
        QVERIFY2(one.clocks.starts_with("2 of 4 ranks shifted, by at most 4.0"), one.clocks.c_str());
        QVERIFY(one.clockError > 0 && one.clockError <= 60'000);
        // by default they are not; the option makes them one job
        QCOMPARE(imported({dataFile("nsight_node1.sqlite")}).runs[0].run.info.ranks, 2);
        ImportOptions together;
        together.oneJob = true;
        const ImportResult all = imported({dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")}, together);
        QCOMPARE(all.runs.size(), std::size_t{2}); // both have stages 0 and 1: copies of one pipeline
        QCOMPARE(all.runs[0].run.info.ranks + all.runs[1].run.info.ranks, 4);
    }

    // Sends and receives say their peers in payloads, in places of a communicator.
    void messagesOfNccl()
    {
        const ImportResult result = imported({dataFile("nsight_messages.sqlite")});
        QCOMPARE(result.runs.size(), std::size_t{1});
        const ImportedRun& one = result.runs[0];
        for (const std::string& note : one.notes) QFAIL(note.c_str());
        QCOMPARE(one.recognised, std::string("gpipe"));
        QCOMPARE(one.messages, std::int64_t{12});
        QCOMPARE(one.unpaired, std::int64_t{0});
        QCOMPARE(one.collectives, std::int64_t{0});
        const Timeline& timeline = *one.run.timeline;
        std::map<std::string, Nanos> arrivals; // of what an op waited for on another rank
        for (const Edge& edge : timeline.edges())
            if (edge.kind == EdgeKind::Data && timeline.trackOf(edge.from).rank != timeline.trackOf(edge.to).rank)
                arrivals[toText(timeline.spans()[edge.from].op) + " " + toText(timeline.spans()[edge.to].op)] = edge.arrival - timeline.spans()[edge.to].start;
        QCOMPARE(arrivals.size(), std::size_t{12});
        for (const char* pair : {"0F0 1F0", "0F1 1F1", "2F1 3F1", "3B0 2B0", "1B1 0B1"}) QVERIFY2(arrivals.contains(pair) && arrivals[pair] == 0, pair);
    }

    void payloadsAreRead()
    {
        NvtxPayloadSchemas schemas;
        QVERIFY(schemas.empty());
        schemas.add(1, 77, 0, 18, "id", -1);
        schemas.add(1, 77, 1, 13, "small", -1);
        schemas.add(1, 77, 2, 5, "number", -1);
        schemas.add(1, 77, 2, 22, "again", 0); // each process stores its schemas
        schemas.add(1, 77, 3, 20, "real", 16);
        schemas.add(1, 77, 4, 22, "far", 1'000'000);
        schemas.add(1, 77, 5, 22, "behind", std::numeric_limits<std::int64_t>::max());
        std::vector<std::byte> blob(32 + 16);
        const auto put = [&](std::size_t at, std::uint64_t value, std::size_t size) {
            for (std::size_t i = 0; i < size; ++i) blob[at + i] = static_cast<std::byte>(value >> (8 * i));
        };
        put(0, 1, 4);
        put(8, 77, 4);
        put(16, 16, 8);
        put(24, 48, 8);
        put(32, 0xfedcba9876543210u, 8);
        put(40, 0xfffe, 2);     // −2 in two bytes
        put(44, 0xffffffff, 4); // −1, aligned to four
        const NvtxPayload whole = schemas.read(blob);
        QVERIFY(whole == (NvtxPayload{{"id", static_cast<std::int64_t>(0xfedcba9876543210u)}, {"small", -2}, {"number", -1}}));
        std::string text;
        for (const std::byte byte : blob) text += QByteArray(1, static_cast<char>(byte)).toHex().toStdString();
        QVERIFY(schemas.read(std::as_bytes(std::span(text))) == whole);
        for (std::size_t size = 0; size < blob.size(); ++size) QVERIFY(schemas.read(std::span(blob).first(size)).empty());
        put(8, 78, 4);
        QVERIFY(schemas.read(blob).empty()); // an unknown schema
        put(8, 77, 4);
        put(16, 15, 8);
        QVERIFY(schemas.read(blob).empty()); // sizes that contradict each other
    }

    // In a communicator of two created before the trace the peer is the other rank; in a larger one it is unknown, and reported.
    void communicatorsMadeBefore()
    {
        const auto rankWith = [](int number, int peer, std::int64_t bytes, const char* call) {
            ForeignRank rank;
            rank.rank = number;
            rank.format = "nsight";
            rank.threads = {{"thread", false}, {"stream", true}};
            rank.device.push_back({{100, 200, rank.names.idOf("ncclDevKernel_SendRecv"), 1}, 5, false, true});
            rank.launches.push_back({5, 50, 0});
            ForeignMessage message;
            message.start = 100;
            message.end = 200;
            message.name = rank.names.idOf("SendRecv");
            message.group = rank.names.idOf("");
            message.correlation = 5;
            message.work = 0;
            message.device = true;
            rank.messages.push_back(message);
            tieNcclCalls(rank, {{{40, 60, rank.names.idOf(call), 0}, {{"NCCL communicator ID", 0xabc}, {"Peer rank", peer}, {"Message size [bytes]", bytes}}}});
            return rank;
        };
        std::vector<ForeignRank> two;
        two.push_back(rankWith(0, 0, 64, "ncclSend"));
        two.push_back(rankWith(1, 1, 64, "ncclRecv"));
        MessagePairs pairs = pairMessages(two);
        QCOMPARE(pairs.pairs.size(), std::size_t{1});
        QCOMPARE(two[0].messages[0].to, 1);
        QVERIFY(pairs.notes.empty());
        std::vector<ForeignRank> unequal;
        unequal.push_back(rankWith(0, 0, 64, "ncclSend"));
        unequal.push_back(rankWith(1, 1, 32, "ncclRecv"));
        pairs = pairMessages(unequal);
        QCOMPARE(pairs.notes.size(), std::size_t{1});
        QVERIFY2(pairs.notes[0].starts_with("1 of 1 messages have different sizes"), pairs.notes[0].c_str());
        std::vector<ForeignRank> three;
        three.push_back(rankWith(0, 2, 64, "ncclSend"));
        three.push_back(rankWith(1, 0, 64, "ncclRecv"));
        three.push_back(rankWith(2, 1, 64, "ncclSend"));
        pairs = pairMessages(three);
        QCOMPARE(pairs.unpaired, std::int64_t{3});
        QVERIFY2(pairs.notes.size() == 1 && pairs.notes[0].starts_with("communicator abc was created before"), pairs.notes.empty() ? "" : pairs.notes[0].c_str());
    }

    // Places in one communicator count more than names; those of two windows of a process are the same.
    void exportsOfOneCommunicatorAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        const std::map<std::string, std::set<int>> low{{"c0ffee", {0, 1}}}, high{{"c0ffee", {2, 3}}}, other{{"bad", {2, 3}}};
        QCOMPARE(groupsOfExports({{"a/trainer.sqlite", 100, 200, low}, {"b/helper.sqlite", 900, 950, high}}), (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"a/trainer.sqlite", 100, 200, low}, {"b/helper.sqlite", 100, 200, other}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"a/first.sqlite", 100, 200, low}, {"a/second.sqlite", 150, 250, low}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"x/n2.sqlite", 100, 200, high}, {"z.sqlite", 0, -1, {{"c0ffee", {4}}}}, {"x/n1.sqlite", 100, 200, low}}), (Groups{{2, 0, 1}}));
    }

    void exportsHeldTogetherAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOfExports({{"d/node10.sqlite", 100, 200, {}}, {"d/node2.sqlite", 120, 210, {}}}), (Groups{{1, 0}}));
        QCOMPARE(groupsOfExports({{"d/report1.sqlite", 100, 200, {}}, {"d/report2.sqlite", 300, 400, {}}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"d/before.sqlite", 100, 200, {}}, {"d/after.sqlite", 100, 200, {}}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"n0/a.sqlite", 100, 200, {}}, {"n1/a.sqlite", 100, 200, {}}, {"n1/b.sqlite", 100, 200, {}}}), (Groups{{0, 1}, {2}}));
        QCOMPARE(groupsOfExports({{"d/rank0.sqlite", 0, -1, {}}, {"d/rank1.sqlite", 0, -1, {}}}), (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"d/x0.sqlite", 0, -1, {}}, {"d/x1.sqlite", 0, -1, {}}}), (Groups{{0}, {1}}));
        QVERIFY(naturalLess("node2", "node10") && !naturalLess("node10", "node2") && naturalLess("a", "ab") && !naturalLess("a", "a"));
        QVERIFY(naturalLess("n01", "n2") && naturalLess("n1", "n01") != naturalLess("n01", "n1"));
    }

    void recordedNsight()
    {
        const fs::path folder = sharedFolder("nsys_sqlite");
        if (!fs::exists(folder)) QSKIP("the Nsight exports are not there (set STAGEWRIGHT_SHARED)");
        for (const char* name : {"mfu_2gpu_before.sqlite", "mfu_2gpu_after.sqlite"}) {
            const ImportResult result = imported({(folder / name).string()});
            QCOMPARE(result.runs.size(), std::size_t{1});
            QCOMPARE(result.runs[0].run.info.ranks, 2);
            QVERIFY(result.runs[0].kernelsUnderRanges * 100 > result.runs[0].kernels * 99);
            QVERIFY(result.runs[0].collectives > 30);
            QVERIFY(countEdges(*result.runs[0].run.timeline, EdgeKind::Launch) > 4'000);
        }
        const ImportResult mock = imported({(folder / "mock.sqlite").string()});
        QCOMPARE(mock.runs.size(), std::size_t{1});
        QCOMPARE(mock.runs[0].kernels, std::int64_t{3});
        QVERIFY(notesSay(mock.runs[0], "no NVTX"));
    }
};

QTEST_APPLESS_MAIN(TestImportNsight)
#include "tst_import_nsight.moc"
