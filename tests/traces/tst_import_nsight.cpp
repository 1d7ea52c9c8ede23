// Nsight Systems' exports: tables that come and go, several files of one job. The recorded ones (STAGEWRIGHT_SHARED) skip where absent.
#include <QtTest/QtTest>

#include <filesystem>

#include "tests/traces/import_rig.h"
#include "traces/import/export_groups.h"

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
        QVERIFY2(one.clocks.starts_with("2 of 4 ranks moved, at most 4.0"), one.clocks.c_str());
        QVERIFY(one.clockError > 0 && one.clockError <= 60'000);
        // by themselves they are not; whoever says so makes one of them
        QCOMPARE(imported({dataFile("nsight_node1.sqlite")}).runs[0].run.info.ranks, 2);
        ImportOptions together;
        together.oneJob = true;
        const ImportResult all = imported({dataFile("nsight_node0.sqlite"), dataFile("nsight.sqlite")}, together);
        QCOMPARE(all.runs.size(), std::size_t{2}); // both have stages 0 and 1: copies of one pipeline
        QCOMPARE(all.runs[0].run.info.ranks + all.runs[1].run.info.ranks, 4);
    }

    void exportsHeldTogetherAreOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOfExports({{"d/node10.sqlite", 100, 200}, {"d/node2.sqlite", 120, 210}}), (Groups{{1, 0}}));
        QCOMPARE(groupsOfExports({{"d/report1.sqlite", 100, 200}, {"d/report2.sqlite", 300, 400}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"d/before.sqlite", 100, 200}, {"d/after.sqlite", 100, 200}}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOfExports({{"n0/a.sqlite", 100, 200}, {"n1/a.sqlite", 100, 200}, {"n1/b.sqlite", 100, 200}}), (Groups{{0, 1}, {2}}));
        QCOMPARE(groupsOfExports({{"d/rank0.sqlite", 0, -1}, {"d/rank1.sqlite", 0, -1}}), (Groups{{0, 1}}));
        QCOMPARE(groupsOfExports({{"d/x0.sqlite", 0, -1}, {"d/x1.sqlite", 0, -1}}), (Groups{{0}, {1}}));
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
