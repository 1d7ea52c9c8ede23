// Parts of importing shared by all formats: names of ops, files of a job, clocks, parallel files.
#include <QtTest/QtTest>

#include <filesystem>
#include <fstream>

#include "schedules/text/csv.h"
#include "tests/traces/import_rig.h"
#include "traces/import/assemble.h"
#include "traces/import/clock_alignment.h"

using namespace stagewright;
using namespace stagewright::import_rig;
namespace fs = std::filesystem;

class TestImport : public QObject {
    Q_OBJECT

private slots:
    // A process is a rank, and a file of runs knows so many.
    void moreProcessesThanRanks()
    {
        std::vector<ForeignRank> ranks(65'537);
        const auto runs = assemble(std::move(ranks), "job", {}, {});
        QVERIFY(!runs.has_value());
        QVERIFY2(runs.error().message.find("job has 65537 processes") == 0, runs.error().message.c_str());
    }
    void namesMeanOps_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("ops");
        QTest::newRow("forward") << "PP:2F13"
                                 << "2F13";
        QTest::newRow("send") << "PP:0SEND_F1"
                              << "0SEND_F1";
        QTest::newRow("unshard") << "PP:1UNSHARD"
                                 << "1UNSHARD";
        QTest::newRow("pair") << "PP:(0F3;7B1)OVERLAP_F_B"
                              << "0F3 7B1";
        QTest::newRow("nvtx") << "PP:3I1, op_id = 17"
                              << "3I1";
        QTest::newRow("old") << "PP:1BW4"
                             << "1B4";
        QTest::newRow("pass") << "Forward 3"
                              << "0F3";
        QTest::newRow("letters") << "W4.1.0"
                                 << "0W4.0";
        QTest::newRow("full") << "BW4.1.0"
                              << "0B4.0";
        QTest::newRow("megatron") << "backward_step"
                                  << "0B0";
        QTest::newRow("trailing") << "PP:2F13x"
                                  << "";
        QTest::newRow("nothing") << "aten::mm"
                                 << "";
        QTest::newRow("huge") << "Forward 99999999999"
                              << "";
    }
    void namesMeanOps()
    {
        QFETCH(QString, name);
        QFETCH(QString, ops);
        const auto meaning = LabelRules::builtIn().meaningOf(name.toStdString());
        std::string text;
        if (meaning)
            for (const Op& op : meaning->ops) text += (text.empty() ? "" : " ") + toText(op);
        QCOMPARE(text, ops.toStdString());
    }

    void rulesOfTheUserComeFirst()
    {
        const auto rules = LabelRules::parse("# names\nF  pass {microbatch-1} of chunk {chunk}*\nstep it "
                                             "{step}\nignore PP:0F9\nB \\*{stage}\\{ {microbatch}\n");
        QVERIFY(rules);
        const auto pass = rules->meaningOf("pass 3 of chunk 1, warm");
        QVERIFY(pass);
        QCOMPARE(pass->ops[0].microbatch, 2);
        QCOMPARE(pass->chunk, 1);
        QVERIFY(!pass->saysStage && pass->saysMicrobatch);
        QCOMPARE(rules->meaningOf("it 12")->step, std::int64_t{12});
        QVERIFY(rules->meaningOf("PP:0F9")->what == LabelMeaning::What::Ignore);
        QCOMPARE(toText(rules->meaningOf("*2{ 5")->ops[0]), std::string("2B5"));
        QVERIFY(!rules->meaningOf("pass 0 of chunk 1")); // −1 is not a microbatch
        for (const char* bad : {"X name", "F", "F {stge}", "F {stage", "action PP:{stage}", "F {action}"}) {
            const auto refused = LabelRules::parse(std::string("\n") + bad);
            QVERIFY2(!refused, bad);
            QVERIFY(refused.error().message.starts_with("line 2"));
            QVERIFY(!refused.error().remedy.empty());
        }
        // many stars don't take forever
        std::string stars = "F ";
        for (int i = 0; i < 30; ++i) stars += "*a";
        QVERIFY(!LabelRules::parse(stars + "b{microbatch}")->meaningOf(std::string(500, 'a')));
    }

    void numbersOfRanksFromNames()
    {
        QCOMPARE(rankInName("GPipe_rank3.json.gz").rank, 3);
        QCOMPARE(rankInName("worker7_step_12.1694128201545.pt.trace.json.gz").rank, 7);
        QCOMPARE(rankInName("rank-12.json").rank, 12);
        QCOMPARE(rankInName("trace_5.json").rank, 5);
        // a number before the suffix is all there is
        QCOMPARE(rankInName("host_4711.1694128201545.pt.trace.json").rank, 4711);
        QCOMPARE(rankInName("prank3.json").rank, -1);
        QCOMPARE(rankInName("trace.json").rank, -1);
        QCOMPARE(noRankInName("job_rank4711234567.json"), std::string("rank4711234567"));
        QCOMPARE(noRankInName("rank_999999.json"), std::string());
    }

    void filesOfOneJob()
    {
        using Groups = std::vector<std::vector<std::size_t>>;
        QCOMPARE(groupsOf({"d/a_rank0.json", "d/a_rank1.json", "d/b_rank0.json", "d/b_rank1.json"}, {0, 1, 0, 1},
                          {2, 2, 2, 2}),
                 (Groups{{0, 1}, {2, 3}}));
        QCOMPARE(groupsOf({"d/h1_11.123456789012.json", "d/h2_12.123456789999.json"}, {0, 1}, {2, 2}),
                 (Groups{{0, 1}}));
        QCOMPARE(groupsOf({"d/rank0/t.json", "d/rank1/t.json"}, {0, 1}, {0, 0}), (Groups{{0, 1}}));
        QCOMPARE(groupsOf({"d/x.json", "d/y.json"}, {-1, -1}, {0, 0}), (Groups{{0}, {1}}));
        QCOMPARE(groupsOf({"d/s_rank0.111111111.json", "d/s_rank0.222222222.json", "d/s_rank1.111111111.json"},
                          {0, 0, 1}, {2, 2, 2}),
                 (Groups{{0, 2}, {1}}));
    }

    void clocksMeetAtTheFastestMessages()
    {
        ClockBounds bounds; // rank 1 is 1,000 ahead; messages take 10 and 30
        bounds.add(0, 0, 1, 1010);
        bounds.add(0, 100, 1, 1300);
        bounds.add(1, 2000, 0, 1030);
        const ClockAlignment ahead = bounds.align(3);
        // by what they require: the middle of their limits is nobody's measurement
        QCOMPARE(ahead.correction, (std::vector<Nanos>{0, -970, 0}));
        QVERIFY(ahead.least);
        QCOMPARE(ahead.error, Nanos{40});
        QCOMPARE(ahead.corrected, 1);
        ClockBounds pinned; // by what ends together, not by the wide limits around it
        pinned.add(0, 0, 1, 10'000'000);
        pinned.add(1, 0, 0, -250'000);
        for (const Nanos noise : {-2'000, 0, 1'000, 3'000}) pinned.addSame(0, 5'000'000, 1, 5'300'000 + noise);
        QCOMPARE(pinned.align(2).correction, (std::vector<Nanos>{0, -301'000}));
        QCOMPARE(pinned.align(2).error, Nanos{3'000});
        ClockBounds within; // less than its band is not claimed
        for (const Nanos noise : {-40'000, 0, 30'000, 50'000}) within.addSame(1, 0, 0, 20'000 + noise);
        QCOMPARE(within.align(2).correction, (std::vector<Nanos>{0, 0}));
        ClockBounds agree;
        agree.add(0, 0, 1, 15);
        agree.add(1, 20, 0, 30);
        QCOMPARE(agree.align(2).correction, (std::vector<Nanos>{0, 0}));
        QCOMPARE(agree.align(2).error, Nanos{15});
        ClockBounds one; // one direction alone moves no further than it must
        one.add(0, 100, 1, 40);
        QCOMPARE(one.align(2).correction, (std::vector<Nanos>{0, 60}));
        QCOMPARE(one.align(2).error, Nanos{-1});
        ClockBounds drift;
        drift.add(0, 100, 1, 40);
        drift.add(1, 100, 0, 90);
        QCOMPARE(drift.align(2).contradiction, Nanos{70});
        QCOMPARE(ClockBounds().align(0).correction.size(), std::size_t{0});
    }

    void filesAreReadInParallel()
    {
        QTemporaryDir folder;
        std::vector<std::string> files;
        std::int64_t bytes = 0;
        for (int rank = 0; rank < 6; ++rank) {
            std::string text = quoted("{'schemaVersion':1,'distributedInfo':{'rank':" + std::to_string(rank) +
                                      ",'world_size':6},'traceEvents':[");
            for (int i = 0; i < 4000; ++i)
                text += quoted("{'ph':'X','cat':'user_annotation','name':'r" + std::to_string(rank) +
                               "','pid':1,'tid':" + std::to_string(i % 3) + ",'ts':" + std::to_string(i * 10) +
                               ",'dur':5},");
            text += quoted("{'ph':'i','name':'end','ts':1}]}");
            files.push_back(folder.filePath(QString("job_rank%1.json").arg(rank)).toStdString());
            std::ofstream(files.back(), std::ios::binary) << text;
            bytes += static_cast<std::int64_t>(text.size());
        }
        ImportOptions options;
        options.threads = 4;
        Progress progress;
        std::int64_t last = 0;
        bool rises = true;
        progress.report = [&](std::string_view what, std::int64_t done, std::int64_t total) {
            if (what != "bytes") return;
            rises = rises && done >= last && total == bytes;
            last = done;
        };
        const auto result = importTraces(files, options, progress);
        QVERIFY(result);
        QCOMPARE(result->runs.size(), std::size_t{1});
        QCOMPARE(result->runs[0].run.info.ranks, 6);
        QCOMPARE(result->runs[0].run.timeline->spans().size(), std::size_t{6 * 4000});
        QVERIFY(rises);
        QCOMPARE(last, bytes);
        // a stop while files are read, from the reading itself
        std::stop_source stop;
        progress.stop = stop.get_token();
        progress.report = [&](std::string_view, std::int64_t, std::int64_t) { stop.request_stop(); };
        const auto stopped = importTraces(files, options, progress);
        QVERIFY(!stopped);
        QCOMPARE(stopped.error().code, ErrorCode::Cancelled);
    }

    void cancelling()
    {
        std::stop_source stop;
        stop.request_stop();
        Progress progress;
        progress.stop = stop.get_token();
        const auto result = importTraces({dataFile("gpu_rank4.json")}, {}, progress);
        QVERIFY(!result);
        QCOMPARE(result.error().code, ErrorCode::Cancelled);
    }

    // Files other than traces get one sentence that says what they are.
    void oddFilesAreSaid()
    {
        QTemporaryDir folder;
        const auto write = [&](const char* name, const std::string& text) {
            const std::string path = folder.filePath(QString::fromLatin1(name)).toStdString();
            std::ofstream(path, std::ios::binary) << text;
            return path;
        };
        const auto roc =
            importTraces({write("rocprof.json", quoted("{'rocprofiler-sdk-tool':[{'metadata':{'pid':1}}]}"))}, {});
        QVERIFY(!roc && roc.error().message.find("rocprofv3") != std::string::npos && !roc.error().remedy.empty());
        const auto table = importTraces({write("kernels.csv", "\"Kind\",\"Agent_Id\"\n\"KERNEL\",1\n")}, {});
        QVERIFY2(!table && table.error().message.find("a CSV, but not a schedule") != std::string::npos,
                 table ? "" : table.error().message.c_str());
        const auto order = importTraces({write("order.csv", "0F0,0Q1\n")}, {}); // meant as one
        QVERIFY(!order && order.error().message.find("0Q1") != std::string::npos);
        const auto absurd = importTraces(
            {write("job_rank0.json",
                   quoted("{'distributedInfo':{'rank':2000000,'world_size':1},'traceEvents':["
                          "{'ph':'X','cat':'user_annotation','name':'PP:70000F0','pid':1,'tid':1,'ts':1,'dur':5},"
                          "{'ph':'X','cat':'user_annotation','name':'PP:0F0','pid':1,'tid':1,'ts':10,'dur':5}]}"))},
            {});
        QVERIFY(absurd && absurd->runs.size() == 1);
        QVERIFY(notesSay(absurd->runs[0], "rank 2000000") && notesSay(absurd->runs[0], "PP:70000F0"));
        QCOMPARE(absurd->runs[0].ops, 1);
        // The name of a run that was exported here.
        const auto named = importTraces(
            {write("elsewhere.json", quoted("{'otherData':{'run':'my run','generator':'stagewright'},'traceEvents':["
                                            "{'ph':'X','cat':'F','name':'0F0','pid':1,'tid':1,'ts':10,'dur':5}]}"))},
            {});
        QVERIFY(named && named->runs.size() == 1);
        QCOMPARE(QString::fromStdString(named->runs[0].run.info.name), QStringLiteral("my run"));
    }

    void schedulesOfPyTorch()
    {
        const fs::path folder = sharedFolder("torch_csv");
        if (!fs::exists(folder)) QSKIP("PyTorch's CSV files are not there (set STAGEWRIGHT_SHARED)");
        int seen = 0;
        for (const auto& entry : fs::recursive_directory_iterator(folder)) {
            if (entry.path().extension() != ".csv") continue;
            const ImportResult result = imported({entry.path().string()});
            QVERIFY2(result.runs.size() == 1, entry.path().c_str());
            const auto given = readScheduleCsv(textOf(entry.path()));
            QVERIFY(given && *result.runs[0].run.schedule == *given);
            const auto written = writeScheduleCsv(*result.runs[0].run.schedule);
            QVERIFY(written && *readScheduleCsv(*written) == *given);
            ++seen;
        }
        QVERIFY(seen > 70);
    }
};

QTEST_APPLESS_MAIN(TestImport)
#include "tst_import.moc"
