// Placements, schedules as values, cost models and their JSON.
#include <QtTest>

#include <atomic>
#include <thread>

#include <sys/stat.h>

#include "random_schedules.h"
#include "schedules/base/change_lock.h"
#include "schedules/base/foreign_json.h"
#include "schedules/base/nesting.h"
#include "schedules/base/small_file.h"
#include "schedules/library/registry.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/mesh.h"
#include "schedules/text/cost_json.h"

using namespace stagewright;

namespace {

std::vector<int> ranksOf(const Placement& placement)
{
    std::vector<int> out;
    for (int s = 0; s < placement.stages(); ++s) out.push_back(placement.rankOf(s, 0));
    return out;
}

} // namespace

class TestModel : public QObject {
    Q_OBJECT
private slots:
    void placements()
    {
        QCOMPARE(ranksOf(Placement::loop(3, 6)), (std::vector<int>{0, 1, 2, 0, 1, 2}));
        QCOMPARE(ranksOf(Placement::vShape(3)), (std::vector<int>{0, 1, 2, 2, 1, 0}));
        QCOMPARE(ranksOf(Placement::zigzag(2, 8)), (std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0}));
        const Placement both = Placement::bidirectional(4, 8);
        QVERIFY(both.hasCopies());
        QCOMPARE(both.stages(), 4);
        for (int s = 0; s < 4; ++s)
            for (int j = 0; j < 8; ++j) QCOMPARE(both.rankOf(s, j), j < 4 ? s : 3 - s);
        QCOMPARE(both.rankOf(1, -1), 1);
        QCOMPARE(both.stagesOf(0), (std::vector<int>{0, 3}));
        QCOMPARE(both.chunkOf(3, 0), 1);
        QCOMPARE(Placement::loop(3, 6).stagesOf(1), (std::vector<int>{1, 4}));
        QCOMPARE(Placement::loop(3, 6).chunkOf(4, 1), 1);
        QVERIFY(!Placement::loop(3, 6).hasCopies());
        // The middle stage of an odd chain has both copies on one rank: that is one copy.
        QCOMPARE(Placement::bidirectional(3, 4).copiesOf(1).size(), std::size_t{1});
    }
    void equalityIgnoresNameAndEmptyPairs()
    {
        Schedule a = *makeSchedule("1f1b", {});
        Schedule b = a;
        b.name = "other";
        b.paired.resize(4);
        QCOMPARE(a, b);
        QCOMPARE(hashOf(a), hashOf(b));
        b.paired[1].push_back(0);
        QVERIFY(a != b);
        QVERIFY(hashOf(a) != hashOf(b));
        b = a;
        std::swap(b.order[0][0], b.order[0][1]);
        QVERIFY(a != b);
        QVERIFY(hashOf(a) != hashOf(b));
    }
    void hashIsStable()
    {
        // Written into run files: a change here breaks them.
        QCOMPARE(hashOf(*makeSchedule("zb-h1", {4, 8, 0})), hashOf(*makeSchedule("ZB1P", {4, 8, 3})));
        Schedule small = *makeSchedule("gpipe", {1, 1, 0});
        QCOMPARE(hashOf(small), std::uint64_t{15531912141209058718u});
    }
    void textListsPairs()
    {
        Schedule s = *makeSchedule("1f1b", {1, 2, 0});
        QCOMPARE(QString::fromStdString(toText(s)), QString("0F0 0B0 0F1 0B1\n"));
        s.paired = {{1}};
        QCOMPARE(QString::fromStdString(toText(s)), QString("0F0 (0B0;0F1) 0B1\n"));
    }
    void unitCosts()
    {
        const Schedule s = *makeSchedule("interleaved-1f1b", {4, 8, 3});
        CostModel::UnitCosts units;
        units.forward = 2;
        units.inputGrad = 3;
        units.latency = 0.25;
        units.freedAtInput = 0.5;
        const CostModel costs = CostModel::uniform(s, units);
        QCOMPARE(costs.duration(OpKind::Forward, 5, 1), 2 * rankShare / 3);
        QCOMPARE(costs.duration(OpKind::Backward, 5, 1), 4 * rankShare / 3);
        QCOMPARE(costs.links.all.latency, rankShare / 4);
        QCOMPARE(costs.memory[11].activation, activationShare / 3);
        QCOMPARE(costs.memory[11].freedAtInput, activationShare / 6);
        QCOMPARE(costs.timeUnit, rankShare);
        QCOMPARE(QString::fromStdString(costs.origin), QString("F=2, I=3, W=1, latency=0.25, freed at I=0.5"));
    }
    void durationScales()
    {
        CostModel costs(2, CostSource::Analytic);
        costs.setDuration(OpKind::Forward, 1, 101);
        QCOMPARE(costs.duration(*parseOp("1F0"), 0), 101);
        QCOMPARE(costs.duration(*parseOp("1F0-2"), 0), 303);
        QCOMPARE(costs.duration(*parseOp("1F0h0"), 0) + costs.duration(*parseOp("1F0h1"), 0), 101);
        QCOMPARE(costs.duration(*parseOp("0FILLER77"), 0), 77);
        QCOMPARE(costs.duration(*parseOp("1W0"), 0), 0);
        costs.setDuration(OpKind::Forward, 1, 3, 500);
        QCOMPARE(costs.duration(*parseOp("1F0"), 3), 500);
        QCOMPARE(costs.duration(*parseOp("1F0"), 2), 101);
        QVERIFY(costs.hasRankDurations());
    }
    void microbatchesAndPairs()
    {
        CostModel costs(2, CostSource::Analytic);
        costs.setDuration(OpKind::Forward, 1, 100);
        costs.setDuration(OpKind::Backward, 0, 300);
        costs.setMicrobatchDuration(OpKind::Forward, 1, 2, 130);
        QCOMPARE(costs.duration(*parseOp("1F2"), 0), 130);
        QCOMPARE(costs.duration(*parseOp("1F1"), 0), 100);
        QCOMPARE(costs.duration(*parseOp("1F9"), 0), 100);
        QCOMPARE(costs.duration(*parseOp("1F1-3"), 0), 330);
        QCOMPARE(costs.duration(*parseOp("1F2h0"), 0), 65);
        costs.setPairDuration(OpKind::Forward, 1, OpKind::Backward, 0, -1, 320);
        QCOMPARE(costs.pairDuration(*parseOp("0B4"), *parseOp("1F2"), 5), 320); // in any order, on any rank
        QCOMPARE(costs.pairDuration(*parseOp("1B4"), *parseOp("1F2"), 5), -1);
        QCOMPARE(costs.pairDuration(*parseOp("0B4h0"), *parseOp("1F2"), 5), -1);
        costs.scaleOnRank(OpKind::Forward, 1, 1, Placement::loop(2, 2), 2);
        QCOMPARE(costs.duration(*parseOp("1F2"), 1), 260);
        QCOMPARE(costs.duration(*parseOp("1F1"), 1), 200);
        QCOMPARE(costs.pairDuration(*parseOp("0B4"), *parseOp("1F1"), 1), 400); // 320 × (2 × 100 + 300) / 400
        QCOMPARE(costs.pairDuration(*parseOp("0B4"), *parseOp("1F1"), 0), 320);
        costs.scale(OpKind::Backward, 0, 0.5);
        QCOMPARE(costs.pairDuration(*parseOp("0B4"), *parseOp("1F1"), 0), 200); // 320 × (100 + 150) / 400
        QCOMPARE(costs.pairDuration(*parseOp("0B4"), *parseOp("1F1"), 1), 280); // 400 × (200 + 150) / 500
    }
    void linkDelays()
    {
        Links links;
        links.all = {100, 1e9};
        links.overrides[{0, 1}] = {7, 0};
        QCOMPARE(links.delay(1, 1, 1000), 0);
        QCOMPARE(links.delay(1, 0, 1000), 1100);
        QCOMPARE(links.delay(0, 1, 1000), 7);
        links.all.bytesPerSecond = 3e9;
        QCOMPARE(links.delay(1, 2, 1000), 433); // 100 + 333.3, rounded once
    }
    // The unit of latencies is a rank's forward of a microbatch, over its chunks, with any number of replicas.
    void forwardsOfARank()
    {
        const auto one = [](const Schedule& schedule) { return forwardUnit(schedule, CostModel::uniform(schedule)); };
        QCOMPARE(one(*makeSchedule("1f1b", Shape(4, 8))), rankShare);
        QCOMPARE(one(*makeSchedule("interleaved-1f1b", Shape(4, 8, 2))), rankShare);
        QCOMPARE(one(*makeSchedule("zbv", Shape(4, 8))), rankShare);
        QCOMPARE(one(*makeSchedule("terapipe", Shape(4, 8))), rankShare); // ops are slices
        QCOMPARE(one(*makeSchedule("chimera", Shape(4, 8))), rankShare);
        QCOMPARE(one(*overReplicas(*makeSchedule("interleaved-1f1b", Shape(2, 4, 2)), 3)), rankShare);
    }
    void deepJsonIsRefused()
    {
        const auto deep = readCostsJson("{\"stage_bytes\":" + std::string(17, '['));
        QVERIFY(!deep.has_value());
        QVERIFY2(deep.error().message.find("nest 18 deep, at most 16") != std::string::npos,
                 deep.error().message.c_str());
        const std::string brackets = "{\"[[[\\\"{{{\":[[1],{\"a\":[]}]}"; // those of the key are none
        QCOMPARE(nestingOf(brackets), std::size_t{4});
    }
    void foreignJson()
    {
        QVERIFY(!nestedTooDeep(std::string(100, '[')));
        QVERIFY(nestedTooDeep(std::string(101, '[')));
        QVERIFY(readForeignJson("{\"a\":[1]}").is_object());
        QVERIFY(readForeignJson(std::string(100000, '[') + std::string(100000, ']')).is_discarded());
        QVERIFY(readForeignJson("{").is_discarded());
    }
    // Whatever has the file's name: an end, an error, no more memory than asked for.
    void smallFiles()
    {
        QTemporaryDir folder;
        const auto path = [&](const char* name) { return folder.filePath(name).toStdString(); };
        QCOMPARE(readSmallFile(path("absent")).value(), std::string());
        QFile file(folder.filePath("a"));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write("12345") == 5);
        file.close();
        QCOMPARE(readSmallFile(path("a"), 5).value(), std::string("12345"));
        QVERIFY(readSmallFile(path("a"), 4).error().message.find("more than 4 bytes") != std::string::npos);
        QVERIFY(!readSmallFile("/dev/zero", 1000));
        QVERIFY(!readSmallFile(folder.path().toStdString()));
        QCOMPARE(::mkfifo(path("pipe").c_str(), 0600), 0);
        QCOMPARE(readSmallFile(path("pipe")).value(), std::string()); // nobody writes to it
    }
    void changesWaitForEachOther()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath("list").toStdString();
        std::atomic<int> inside = 0;
        std::atomic<int> most = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; ++i)
            threads.emplace_back([&] {
                for (int turn = 0; turn < 20; ++turn) {
                    const auto lock = ChangeLock::take(path);
                    most = std::max<int>(most, ++inside);
                    std::this_thread::yield();
                    --inside;
                }
            });
        for (std::thread& thread : threads) thread.join();
        QCOMPARE(most.load(), 1);
        QVERIFY(ChangeLock::take(folder.filePath("absent/list").toStdString())); // the writing says why
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files | QDir::Hidden).size(), 0);
    }
    void jsonRoundTrips()
    {
        const Schedule s = *makeSchedule("interleaved-1f1b", {4, 8, 2});
        CostModel costs = CostModel::uniform(s);
        QCOMPARE(*readCostsJson(writeCostsJson(costs)), costs);
        costs.source = CostSource::Fitted;
        costs.origin = "fitted from \"demo\"";
        costs.timeUnit = 1;
        costs.setDuration(OpKind::Forward, 3, 2, 12345);
        costs.setDuration(OpKind::Optimizer, 7, 99);
        costs.links.all = {250, 1.25e10 / 3};
        costs.links.overrides[{2, 3}] = {1, 0.1};
        costs.memory[4] = {1, -2, 3, 4, 5, 6, 7};
        QCOMPARE(*readCostsJson(writeCostsJson(costs)), costs);
        QCOMPARE(*readCostsJson(writeCostsJson(CostModel())), CostModel());
        costs.launch = {0, 5};
        costs.jitter = 0.1 / 3;
        costs.jitterSeed = ~std::uint64_t{0};
        costs.setPairDuration(OpKind::Forward, 1, OpKind::Backward, 6, -1, 777);
        costs.setPairDuration(OpKind::Backward, 6, OpKind::Forward, 1, 3, 888);
        costs.setMicrobatchDuration(OpKind::Backward, 2, 3, 4711);
        costs.layers.resize(3);
        costs.layers[0].part = LayerCosts::Part::Embedding;
        costs.layers[1].duration[static_cast<std::size_t>(OpKind::InputGrad)] = 12;
        costs.layers[1].memory = {1, -2, 3, 4, 5, 6, 7};
        costs.layers[2].part = LayerCosts::Part::Head;
        QCOMPARE(*readCostsJson(writeCostsJson(costs)), costs);
        QVERIFY(readCostsJson(R"({"format": "stagewright-costs", "version": 1, "launch_ns": [1]})").has_value());
    }
    void jsonRefuses_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("says");
        const char* head = R"({"format": "stagewright-costs", "version": 1)";
        auto add = [head](const char* name, const char* rest, const char* says) {
            QTest::newRow(name) << QString(head) + rest + "}" << says;
        };
        QTest::newRow("garbage") << "{"
                                 << "not a JSON document";
        QTest::newRow("array") << "[]"
                               << "an object is expected";
        QTest::newRow("format") << R"({"format": "x", "version": 1})"
                                << "format is not";
        QTest::newRow("version") << R"({"format": "stagewright-costs", "version": 3})"
                                 << "version 3 is unknown, 1 or 2 expected";
        QTest::newRow("no version") << R"({"format": "stagewright-costs"})"
                                    << "version null is unknown";
        add("new in version 2", R"(, "jitter": 0.1)", "jitter: version 2 of the format has it, this is 1");
        const char* second = R"({"format": "stagewright-costs", "version": 2, )";
        const auto addSecond = [second](const char* name, const char* rest, const char* says) {
            QTest::newRow(name) << QString(second) + rest + "}" << says;
        };
        addSecond("jitter", R"("jitter": -0.1)", "jitter: a number from 0 to 10");
        addSecond("seed", R"("jitter_seed": -1)", "jitter_seed: an integer of 0 or more");
        addSecond("pair", R"("pairs": [{"kinds": ["F"], "stages": [0, 1], "duration_ns": 1}])",
                  "pairs[0].kinds: two kinds");
        addSecond("pair's stage", R"("pairs": [{"kinds": ["F", "B"], "stages": [0, -1], "duration_ns": 1}])",
                  "pairs[0].stages[1]: -1 is outside");
        addSecond("microbatch", R"("microbatches": [{"kind": "F", "stage": 0, "duration_ns": [1, "a"]}])",
                  "microbatches[0].duration_ns[1]: an integer");
        addSecond("microbatches", R"("microbatches": [{"kind": "F", "stage": 0}])",
                  "microbatches[0]: duration_ns is missing");
        addSecond("part", R"("layers": [{"part": "tail"}])", "layers[0].part: op, embedding, block or head");
        addSecond("layer", R"("layers": [{"part": "head", "duration_ns": {"Q": 1}}])",
                  "layers[0].duration_ns.Q: a kind");
        add("unknown key", R"(, "durations": 1)", "unknown key 'durations'");
        add("negative", R"(, "duration_ns": {"F": [1, -1]})", "duration_ns.F[1]: -1 is outside");
        add("fraction", R"(, "duration_ns": {"F": [1.5]})", "duration_ns.F[0]: an integer is expected");
        add("kind", R"(, "duration_ns": {"Q": [1]})", "duration_ns.Q: a kind");
        add("unit", R"(, "time_unit_ns": 0)", "time_unit_ns: 0 is outside");
        add("huge", R"(, "time_unit_ns": 18446744073709551615)", "an integer is expected");
        add("link", R"(, "link": {"latency_ns": "a"})", "link.latency_ns: an integer is expected");
        add("bandwidth", R"(, "link": {"bytes_per_second": -1})", "link.bytes_per_second: a number");
        add("stage", R"(, "stage_bytes": [{"activation": 1}, {"act": 1}])", "stage_bytes[1]: unknown key 'act'");
        add("on rank", R"(, "duration_on_rank": [{"kind": "F", "stage": -1}])",
            "duration_on_rank[0].stage: -1 is outside");
    }
    void jsonRefuses()
    {
        QFETCH(QString, text);
        QFETCH(QString, says);
        const auto costs = readCostsJson(text.toStdString());
        QVERIFY(!costs);
        QCOMPARE(costs.error().code, ErrorCode::Unreadable);
        QVERIFY2(QString::fromStdString(costs.error().message).contains(says), costs.error().message.c_str());
    }
};

QTEST_APPLESS_MAIN(TestModel)
#include "tst_model.moc"
