// The explorer's topics Uneven ranks and Partial backward: divisions and contributors against their formulas and the
// report's table, and the pictures by keyboard, mouse and as a table.
#include <QtTest>

#include <numeric>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/analysis_registry.h"
#include "widgets/explore/cut_picture.h"
#include "widgets/explore/mixed_picture.h"

using namespace stagewright;

namespace {

constexpr std::size_t even = static_cast<std::size_t>(MixedRule::Even),
                      bySpeed = static_cast<std::size_t>(MixedRule::BySpeed),
                      decoupled = static_cast<std::size_t>(MixedRule::Decoupled);

MixedQuestion mixedCluster()
{
    MixedQuestion question;
    question.memory = {40'000'000'000, 48'000'000'000, 64'000'000'000};
    return question;
}

std::vector<int> samplesOf(const MixedDivision& division)
{
    std::vector<int> out;
    for (const MixedRank& rank : division.ranks) out.push_back(rank.samples);
    return out;
}

double sharesOf(const MixedDivision& division)
{
    return std::accumulate(division.ranks.begin(), division.ranks.end(), 0.0,
                           [](double sum, const MixedRank& rank) { return sum + rank.share; });
}

} // namespace

class TestStateTopics : public QObject {
    Q_OBJECT

private slots:
    void partsSumAndRespectLimits()
    {
        QCOMPARE(dividedBy({3, 2, 1}, 12, 1), (std::vector<int>{6, 4, 2}));
        QCOMPARE(dividedBy({1, 1, 1}, 8, 1), (std::vector<int>{3, 3, 2}));
        QCOMPARE(dividedBy({100, 1, 1}, 4, 1), (std::vector<int>{2, 1, 1}));
        QCOMPARE(levelled({100, 100, 100}, 90), (std::vector<std::int64_t>{30, 30, 30}));
        QCOMPARE(levelled({100, 10, 100}, 90), (std::vector<std::int64_t>{40, 10, 40})); // only the overflow is moved
        QCOMPARE(levelled({10, 20, 30}, 60), (std::vector<std::int64_t>{10, 20, 30}));
        QVERIFY(levelled({10, 20, 29}, 60).empty());
    }

    void listsAreReadOrExplained()
    {
        QCOMPARE(parseMixedSpeeds("3, 2,0.5").value(), (std::vector<double>{3, 2, 0.5}));
        QCOMPARE(parseMixedSpeeds("3,fast,1").error().message, std::string("speeds: 'fast' is not a speed"));
        QCOMPARE(parseMixedSpeeds("3,0").error().message, std::string("speeds: '0' is not a speed"));
        QCOMPARE(parseMixedSpeeds("3").error().message, std::string("speeds: 1 given, 2 to 16 ranks can share"));
        QVERIFY(parseMixedMemory("", 3).value().empty());
        QCOMPARE(parseMixedMemory("24", 3).value(), (std::vector<Bytes>{24'000'000'000}));
        QCOMPARE(parseMixedMemory("24,16,8.5", 3).value().back(), Bytes(8'500'000'000));
        QCOMPARE(parseMixedMemory("24,16", 3).error().message, std::string("memory: 2 sizes for 3 ranks"));
        QVERIFY(!parseMixedMemory("24,16", 3).error().remedy.empty());
        QCOMPARE(parseMixedMemory("24,,8", 3).error().message, std::string("memory: '' is not a size in GB"));
    }

    // Even fits and is slow, both by speed is fast and over the fast rank's memory, decoupled is fast and fits.
    void decoupledIsFastAndFits()
    {
        const MixedQuestion question = mixedCluster();
        const MixedAnswer answer = mixedSurvey(question);
        QVERIFY(answer.error.empty());
        for (const MixedDivision& division : answer.divisions) {
            QVERIFY(division.good());
            const std::vector<int> samples = samplesOf(division);
            QCOMPARE(std::accumulate(samples.begin(), samples.end(), 0), question.batch);
            QVERIFY(std::abs(sharesOf(division) - 1) < 1e-9);
            for (const MixedRank& rank : division.ranks) {
                QCOMPARE(rank.over(), rank.share > rank.limit);
                QVERIFY(rank.compute > 0 && rank.compute <= division.step);
            }
        }
        QCOMPARE(samplesOf(answer.divisions[even]), (std::vector<int>{8, 8, 8}));
        QCOMPARE(samplesOf(answer.divisions[bySpeed]), (std::vector<int>{12, 8, 4}));
        QCOMPARE(samplesOf(answer.divisions[decoupled]), (std::vector<int>{12, 8, 4}));
        QVERIFY(answer.divisions[even].fits());
        QVERIFY(!answer.divisions[bySpeed].fits());
        QVERIFY(answer.divisions[bySpeed].ranks[0].over());
        QVERIFY(answer.divisions[decoupled].fits());
        QVERIFY(answer.divisions[decoupled].step < answer.divisions[even].step * 6 / 10);
        // compute follows samples and speed
        const MixedRank &fast = answer.divisions[even].ranks[0], &slow = answer.divisions[even].ranks[2];
        QVERIFY(std::abs(static_cast<double>(slow.compute) / static_cast<double>(fast.compute) - 3) < 1e-3);
    }

    void memoryMovesTheStateThenTheBatch()
    {
        MixedQuestion question = mixedCluster();
        question.memory = {24'000'000'000, 80'000'000'000, 80'000'000'000};
        const MixedAnswer less = mixedSurvey(question);
        QVERIFY(less.divisions[decoupled].fits());
        QCOMPARE(samplesOf(less.divisions[decoupled]), (std::vector<int>{12, 8, 4}));
        QVERIFY(less.divisions[decoupled].ranks[0].share < 0.25);
        // the overflow is levelled
        QVERIFY(std::abs(less.divisions[decoupled].ranks[1].share - less.divisions[decoupled].ranks[2].share) < 1e-5);
        QVERIFY(!less.divisions[even].fits());
        question.recompute = false; // activations of 12 samples are too many now
        question.memory = {12'000'000'000, 200'000'000'000, 200'000'000'000};
        const MixedAnswer tight = mixedSurvey(question);
        QVERIFY(tight.divisions[decoupled].fits());
        QVERIFY(tight.divisions[decoupled].ranks[0].samples < 12);
        QVERIFY(tight.divisions[decoupled].step > less.divisions[decoupled].step);
        question.memory = {20'000'000'000};
        const MixedAnswer none = mixedSurvey(question);
        QVERIFY(!none.divisions[decoupled].good());
        QVERIFY(none.divisions[decoupled].error.find("all ranks have 60.0 GB") != std::string::npos);
        question.batch = 2;
        QVERIFY(mixedSurvey(question).error.find("2 samples for 3 ranks") != std::string::npos);
    }

    void slowLinkTakesLonger()
    {
        MixedQuestion question = mixedCluster();
        const Nanos fast = mixedSurvey(question).divisions[decoupled].step;
        question.bytesPerSecond = 1e9;
        QVERIFY(mixedSurvey(question).divisions[decoupled].step > 2 * fast);
    }

    // The table of a run with the same cuts names the same contributors.
    void contributorsAreTheReports()
    {
        for (const char* cuts : {"", "0,3,3,29", "30,0,7,15"}) {
            CutQuestion question{"gpt-6.2b", "a100", 4, cuts};
            const CutAnswer answer = cutSurvey(question);
            QVERIFY2(answer.error.empty(), answer.error.c_str());
            Run run;
            const Schedule schedule = makeSchedule("1f1b", Shape(1, 4)).value();
            run.timeline = simulatedTimeline(schedule, CostModel::uniform(schedule)).value();
            std::vector<std::string> text;
            for (const CutReplica& replica : answer.replicas) text.push_back(std::to_string(replica.cut));
            run.configuration = {{"model", "gpt"}, {"cut", joined(text, ",")}, {"stage_layers", "10,10,10"}};
            const AnalysisRows rows = findAnalysis("contributors")->rows(run, 0).value();
            QCOMPARE(rows.rows.size(), answer.rows.size());
            for (std::size_t i = 0; i < rows.rows.size(); ++i) {
                QCOMPARE(std::get<std::string>(rows.rows[i][0]), answer.rows[i].name);
                QCOMPARE(std::get<std::int64_t>(rows.rows[i][2]),
                         static_cast<std::int64_t>(answer.rows[i].contributors.size()));
                std::vector<std::string> replicas;
                for (const int replica : answer.rows[i].contributors) replicas.push_back(std::to_string(replica));
                QCOMPARE(std::get<std::string>(rows.rows[i][3]), joined(replicas));
            }
        }
    }

    void meanBackwardIsTheFormula()
    {
        for (const int n : {1, 2, 3, 5, 6, 10, 15, 30}) { // divide the 30 layers
            const CutAnswer answer = cutSurvey({"gpt-6.2b", "a100", n, ""});
            QVERIFY(std::abs(answer.mean - (n + 1) / (2.0 * n)) < 1e-12);
            QCOMPARE(answer.replicas.front().cut, 0);
            for (std::size_t k = 1; k < answer.replicas.size(); ++k) {
                QVERIFY(answer.replicas[k].backward < answer.replicas[k - 1].backward);
                QCOMPARE(answer.replicas[k].forward, answer.replicas[0].forward);
            }
        }
        QVERIFY(cutSurvey({"gpt-6.2b", "a100", 4, "1,2,3,4"}).error.size() > 10); // none goes back to layer 0
        QVERIFY(cutSurvey({"gpt-6.2b", "a100", 4, "0,2"}).error.size() > 10);
        const CutAnswer head = cutSurvey({"gpt-6.2b", "a100", 2, "0,30"}); // through the head only
        QVERIFY(head.replicas[1].backward > 0 && head.replicas[1].backward * 10 < head.replicas[0].backward);
        QCOMPARE(head.rows.back().contributors.size(), std::size_t{2});
    }

    void picturesByKeyboardMouseAndTable()
    {
        MixedPicture mixed;
        mixed.resize(700, 400);
        QCOMPARE(mixed.marks(), 0);
        mixed.setAnswer(std::make_shared<const MixedAnswer>(mixedSurvey(mixedCluster())), mixedCluster());
        QCOMPARE(mixed.marks(), 9);
        CutPicture cuts;
        cuts.resize(700, 400);
        const CutQuestion question{"gpt-6.2b", "a100", 4, "0,8,15,22"};
        cuts.setAnswer(cutSurvey(question), question);
        QCOMPARE(cuts.marks(), 32);
        for (CursorPicture* picture : {static_cast<CursorPicture*>(&mixed), static_cast<CursorPicture*>(&cuts)}) {
            picture->show();
            picture->setFocus();
            QTest::keyClick(picture, Qt::Key_Right);
            QCOMPARE(picture->cursor(), 1);
            QTest::keyClick(picture, Qt::Key_End);
            QCOMPARE(picture->cursor(), picture->marks() - 1);
            QTest::keyClick(picture, Qt::Key_Right); // stays
            QCOMPARE(picture->cursor(), picture->marks() - 1);
            QTest::keyClick(picture, Qt::Key_Home);
            QCOMPARE(picture->cursor(), 0);
            for (int mark = 1; mark < picture->marks(); ++mark)
                QVERIFY(!picture->markRect(mark)
                             .adjusted(1, 1, -1, -1)
                             .intersects(picture->markRect(mark - 1).adjusted(1, 1, -1, -1)));
            QTest::mouseClick(picture, Qt::LeftButton, {}, picture->markRect(4).center().toPoint());
            QCOMPARE(picture->cursor(), 4);
            QCOMPARE(picture->accessibleDescription(), picture->textOf(4));
            QCOMPARE(copyableTable(picture).rows.size(), picture->marks());
            QImage light, dark;
            for (const bool isDark : {false, true}) {
                picture->setTheme(Theme::named(isDark));
                (isDark ? dark : light) = picture->grab().toImage();
            }
            QVERIFY(light != dark);
        }
        QVERIFY(mixed.textOf(3).contains("It needs"));
        QVERIFY(mixed.textOf(6).contains("Its peak is"));
        QVERIFY(cuts.textOf(0).contains("1 of 4 replicas"));
        QVERIFY(cuts.textOf(31).contains("replicas 0 to 3"));
        QVERIFY(cuts.meanText().contains("(N+1)/(2N) = 5/8 = 62.5"));
        mixed.setError("speeds: 'x' is not a speed");
        QCOMPARE(mixed.marks(), 0);
        QVERIFY(mixed.table().isEmpty());
    }
};

QTEST_MAIN(TestStateTopics)
#include "tst_state_topics.moc"
