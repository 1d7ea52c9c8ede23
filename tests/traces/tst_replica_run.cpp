// A recorded run of replicas that share their state, from its file: numbering, lanes, bytes, what waited for gathers;
// and the order.
#include <QTest>

#include "schedules/model/kinds.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/store/run_file.h"

using namespace stagewright;

class TestReplicaRun : public QObject {
    Q_OBJECT

private slots:
    void init()
    {
        auto file = RunFile::open(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/shards.stagewright", OpenMode::Read);
        QVERIFY2(file, file ? "" : file.error().message.c_str());
        m_file = std::move(*file);
        auto run = m_file->read(1);
        QVERIFY2(run, run ? "" : run.error().message.c_str());
        m_run = std::move(*run);
        QCOMPARE(m_run.schedule->replicas, 2);
    }

    void numbersRanks()
    {
        const auto ranks =
            m_file->query("SELECT DISTINCT rank, replica, pipeline_rank FROM spans WHERE lane='compute' ORDER BY rank");
        QVERIFY2(ranks, ranks ? "" : ranks.error().message.c_str());
        const std::vector<std::vector<std::string>> wanted{
            {"0", "0", "0"}, {"1", "0", "1"}, {"2", "1", "0"}, {"3", "1", "1"}};
        QCOMPARE(ranks->rows.size(), wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i)
            for (std::size_t k = 0; k < 3; ++k) QCOMPARE(ranks->rows[i][k], wanted[i][k]);
        const auto memory = m_file->query("SELECT DISTINCT rank - 2 * replica - pipeline_rank FROM memory");
        QVERIFY2(memory, memory ? "" : memory.error().message.c_str());
        QCOMPARE(memory->rows.size(), std::size_t{1});
        QCOMPARE(memory->rows[0][0], std::string("0"));
    }

    // Files of before replicas: all ranks are replica 0's.
    void olderFiles()
    {
        auto file = RunFile::open(STAGEWRIGHT_SOURCE_DIR "/tests/data/runs/version1.stagewright", OpenMode::Read);
        QVERIFY2(file, file ? "" : file.error().message.c_str());
        const auto ranks = (*file)->query("SELECT max(replica), max(pipeline_rank) FROM spans");
        QVERIFY2(ranks, ranks ? "" : ranks.error().message.c_str());
        QCOMPARE(ranks->rows[0][0], std::string("0"));
        QCOMPARE(ranks->rows[0][1], std::string("3"));
    }

    // Gathered for each of its two microbatches' F and B: four times; each brings half of the stage's weights.
    void gathers()
    {
        const Timeline& timeline = *m_run.timeline;
        const AnalysisInfo* info = findAnalysis("collectives");
        const auto rows = info->rows(StepContext(m_run, timeline.steps() - 1));
        QVERIFY2(rows, rows ? "" : rows.error().message.c_str());
        QCOMPARE(rows->rows.size(), std::size_t{8});
        // elements
        const std::int64_t stage[] = {(256 + 8) * 16 + 12 * 256 + 13 * 16, 12 * 256 + 13 * 16 + (256 + 2) * 16};
        for (const auto& row : rows->rows) {
            const bool gather = std::get<std::string>(row[1]) == "gather";
            const std::int64_t rank = std::get<std::int64_t>(row[0]);
            QCOMPARE(std::get<std::int64_t>(row[2]), gather ? 4 : 1);
            QCOMPARE(std::get<std::int64_t>(row[3]), (gather ? 4 : 1) * stage[rank % 2] / 2 * 4);
        }
        const auto report = analyseBubbles(timeline, timeline.steps() - 1);
        QVERIFY2(report, report ? "" : report.error().message.c_str());
        for (const RankBubbles& rank : report->ranks) {
            Nanos sum = 0;
            for (const Nanos cause : rank.byCause) sum += cause;
            QCOMPARE(sum, rank.idle);
        }
        // its links are slow
        QVERIFY(std::any_of(report->gaps.begin(), report->gaps.end(),
                            [](const Gap& gap) { return gap.cause == IdleCause::Collective; }));
    }

    void keepsTheOrder()
    {
        for (int step = 0; step < m_run.timeline->steps(); ++step) {
            const auto ran = scheduleOf(*m_run.timeline, step);
            QVERIFY2(ran, ran ? "" : ran.error().message.c_str());
            QVERIFY(*ran == *m_run.schedule);
        }
    }

private:
    std::unique_ptr<RunFile> m_file;
    Run m_run;
};

QTEST_GUILESS_MAIN(TestReplicaRun)
#include "tst_replica_run.moc"
