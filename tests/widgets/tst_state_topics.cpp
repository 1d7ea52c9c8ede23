// The explorer's topics Uneven ranks and Partial backward: contributors against the report's table, and the pictures by
// keyboard, mouse and as a table.
#include <QtTest>

#include "schedules/base/text.h"
#include "schedules/library/registry.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "widgets/explore/state_view.h"

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
        StateView view;
        view.resize(900, 600);
        view.show();
        view.setTopic(StateTopic::Mixed);
        PlotWidget& mixed = *view.mixed();
        QCOMPARE(mixed.items(), 0);
        view.setMixed(std::make_shared<const MixedAnswer>(mixedSurvey(mixedCluster())), mixedCluster());
        QCOMPARE(mixed.items(), 9);
        PlotWidget& cuts = *view.cuts();
        view.setTopic(StateTopic::Cuts);
        view.replicas()->setValue(2); // four
        view.cutsField()->setText("0,8,15,22");
        QCOMPARE(cuts.items(), 32);
        for (PlotWidget* picture : {&mixed, &cuts}) {
            view.setTopic(picture == &mixed ? StateTopic::Mixed : StateTopic::Cuts);
            picture->setFocus();
            QTest::keyClick(picture, Qt::Key_Right);
            QCOMPARE(picture->chosen(), 1);
            QTest::keyClick(picture, Qt::Key_End);
            QCOMPARE(picture->chosen(), picture->items() - 1);
            QTest::keyClick(picture, Qt::Key_Right); // stays
            QCOMPARE(picture->chosen(), picture->items() - 1);
            QTest::keyClick(picture, Qt::Key_Home);
            QCOMPARE(picture->chosen(), 0);
            for (int mark = 1; mark < picture->items(); ++mark)
                QVERIFY(!picture->itemRect(mark)
                             .adjusted(1, 1, -1, -1)
                             .intersects(picture->itemRect(mark - 1).adjusted(1, 1, -1, -1)));
            QTest::mouseClick(picture, Qt::LeftButton, {}, picture->itemRect(4).center().toPoint());
            QCOMPARE(picture->chosen(), 4);
            QCOMPARE(picture->accessibleDescription(), picture->textOf(4));
            QCOMPARE(copyableTable(picture).rows.size(), picture->items());
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
        view.cutsField()->clear();
        QVERIFY(QString::fromStdString(cuts.plot().title).contains("(N+1)/(2N) = 5/8 = 62.5"));
        view.setMixedError("speeds: 'x' is not a speed");
        QCOMPARE(mixed.items(), 0);
        QCOMPARE(mixed.plot().nothing, std::string("speeds: 'x' is not a speed"));
        view.setTopic(StateTopic::Mixed);
        QVERIFY(view.answer().rows.empty());
    }
};

QTEST_MAIN(TestStateTopics)
#include "tst_state_topics.moc"
