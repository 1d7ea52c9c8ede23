// The explorer's topics Uneven ranks and Partial backward: contributors against the report's table, and the pictures by
// keyboard, mouse and as a table.
#include <QtTest>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "widgets/explore/cut_picture.h"
#include "widgets/explore/mixed_picture.h"

using namespace stagewright;

namespace {

MixedQuestion mixedCluster()
{
    MixedQuestion question;
    question.memory = {40'000'000'000, 48'000'000'000, 64'000'000'000};
    return question;
}

} // namespace

class TestStateTopics : public QObject {
    Q_OBJECT

private slots:
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
            const AnalysisRows rows = findAnalysis("contributors")->rows(StepContext(run, 0)).value();
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
