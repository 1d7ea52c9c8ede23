// Analyses of the run shown, in the real window and by keyboard: causes, gaps and their chains, slack.
#include <QComboBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/explain/gaps_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "traces/analysis/step_context.h"
#include "widgets/compare/compare_overlay.h"
#include "widgets/gaps/gaps_overlay.h"
#include "widgets/panel/side_panel.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/timeline/timeline_view.h"
#include "widgets/tools/residual_panel.h"
#include "widgets/tools/what_if_panel.h"

using namespace stagewright;

class TestExplanations : public WindowTest {
    Q_OBJECT

    void press(int key, Qt::KeyboardModifiers modifiers = {})
    {
        QWidget* focus = QApplication::focusWidget();
        QVERIFY(focus != nullptr);
        QTest::keyClick(focus, static_cast<Qt::Key>(key), modifiers);
    }
    void open(std::initializer_list<const char*> schedules, int ranks = 4, int microbatches = 8)
    {
        m_window->workspace().feature<FileOpening>()->openFiles(
            {m_fixture->file("runs.stagewright", schedules, ranks, microbatches)});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
    }
    BubbleReport report() const
    {
        return *analyseBubbles(*m_window->workspace().views().timeline->panels().front()->timeline, 0);
    }
    QPushButton* button(const QString& text) const
    {
        for (auto* found : m_window->workspace().views().side->findChildren<QPushButton*>())
            if (found->text() == text) return found;
        return nullptr;
    }

private slots:
    void walksThroughGapsByKeyboard()
    {
        open({"1f1b"});
        const BubbleReport shown = report();
        const std::vector<int> order = gapsByLength(shown);
        QVERIFY(order.size() > 2);
        press(Qt::Key_G);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), order[0]);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(m_window->workspace().feature<GapsController>()->gapExplanation());
        // As the library explains it.
        const auto timeline = m_window->workspace().views().timeline->panels().front()->timeline;
        const GapExplanation expected =
            GapExplainer(StepContext(*timeline, 0)).explain(shown.gaps[static_cast<std::size_t>(order[0])]);
        QCOMPARE(m_window->workspace().feature<GapsController>()->gapExplanation()->sentence, expected.sentence);
        const QString text = m_window->workspace().views().side->plainText();
        QVERIFY2(text.contains(QString::fromStdString(expected.sentence).mid(1)), qPrintable(text));
        const auto notes = m_window->workspace().feature<GapsController>()->overlay()->notes();
        QVERIFY(notes && notes->selected);
        QCOMPARE(notes->chain.size(),
                 static_cast<std::size_t>(std::count_if(expected.chain.begin(), expected.chain.end(),
                                                        [](const GapLink& link) { return link.span != noSpan; })));
        press(Qt::Key_G);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), order[1]);
        press(Qt::Key_G, Qt::ShiftModifier);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), order[0]);
        press(Qt::Key_G, Qt::ShiftModifier);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), order.back());
        // The navigation buttons are recreated with each gap and keep the focus.
        QTRY_VERIFY(button(QStringLiteral("Previous gap")) && button(QStringLiteral("Previous gap"))->isVisible());
        button(QStringLiteral("Previous gap"))->setFocus();
        for (int i = 2; i < 4; ++i) {
            press(Qt::Key_Space);
            QTRY_COMPARE(m_window->workspace().feature<GapsController>()->chosenGap(),
                         order[order.size() - static_cast<std::size_t>(i)]);
            QVERIFY(WindowFixture::settle(*m_window));
            QTRY_VERIFY(button(QStringLiteral("Previous gap")) && button(QStringLiteral("Previous gap"))->hasFocus());
        }
        m_window->workspace().views().timeline->setFocus();
        press(Qt::Key_Escape);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), -1);
        QVERIFY(!m_window->workspace().feature<GapsController>()->overlay()->notes()->selected);
    }

    void aCauseMarksItsGaps()
    {
        open({"1f1b"});
        const BubbleReport shown = report();
        QPushButton* drain = button(QStringLiteral("Drain"));
        QVERIFY(drain);
        QVERIFY(drain->focusPolicy() & Qt::TabFocus);
        drain->setFocus();
        press(Qt::Key_Space);
        const auto drains = std::count_if(shown.gaps.begin(), shown.gaps.end(),
                                          [](const Gap& gap) { return gap.cause == IdleCause::Drain; });
        QTRY_COMPARE(static_cast<std::ptrdiff_t>(
                         m_window->workspace().feature<GapsController>()->overlay()->notes()->gaps.size()),
                     drains);
        QTRY_VERIFY(button(QStringLiteral("Drain"))->isChecked());
        QTRY_VERIFY(button(QStringLiteral("Drain"))->hasFocus()); // recreated, and still focused
        m_window->workspace().views().timeline->setFocus();
        press(Qt::Key_G); // only among these
        QCOMPARE(
            shown.gaps[static_cast<std::size_t>(m_window->workspace().feature<GapsController>()->chosenGap())].cause,
            IdleCause::Drain);
        press(Qt::Key_Escape);
        press(Qt::Key_Escape);
        QVERIFY(m_window->workspace().feature<GapsController>()->overlay()->notes()->gaps.empty());
    }

    void aClickOnIdleTimeExplainsIt()
    {
        open({"1f1b"});
        const BubbleReport shown = report();
        const Timeline& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        const QRectF last =
            *m_window->workspace().views().timeline->rectOf({0, WindowFixture::spanOf(timeline, "3B7")});
        QTest::mouseClick(m_window->workspace().views().timeline, Qt::LeftButton, {},
                          QPointF(last.right() + 30, last.center().y()).toPoint());
        QVERIFY(m_window->workspace().feature<GapsController>()->chosenGap() >= 0);
        const Gap& gap =
            shown.gaps[static_cast<std::size_t>(m_window->workspace().feature<GapsController>()->chosenGap())];
        QCOMPARE(gap.rank, 3);
        QCOMPARE(gap.cause, IdleCause::Drain);
        QTest::mouseClick(m_window->workspace().views().timeline, Qt::LeftButton, {}, last.center().toPoint());
        QVERIFY(m_window->workspace().viewState()->selected().valid());
    }

    void aGapFarBelowIsScrolledTo()
    {
        open({"1f1b"}, 24, 24);
        const BubbleReport shown = report();
        const auto last =
            std::find_if(shown.gaps.begin(), shown.gaps.end(), [](const Gap& gap) { return gap.rank == 23; });
        const Timeline& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        const SpanRef there{0, WindowFixture::spanOf(timeline, "23F0")};
        const QRectF rows = QRectF(m_window->workspace().views().timeline->rect());
        QVERIFY(!rows.contains(m_window->workspace().views().timeline->rectOf(there)->center()));
        m_window->workspace().feature<GapsController>()->chooseGap(static_cast<int>(last - shown.gaps.begin()));
        QVERIFY(rows.contains(m_window->workspace().views().timeline->rectOf(there)->center()));
        QVERIFY(WindowFixture::settle(*m_window));
    }

    void slackIsToldAndDrawn()
    {
        open({"1f1b"});
        const auto timeline = m_window->workspace().views().timeline->panels().front()->timeline;
        QVERIFY(m_window->workspace().actions()["slack"]->isEnabled());
        press(Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(m_window->workspace().actions()["slack"]->isChecked());
        QTRY_VERIFY(m_window->workspace().feature<GapsController>()->overlay()->notes() &&
                    m_window->workspace().feature<GapsController>()->overlay()->notes()->slack);
        const StepContext context(*timeline, 0);
        for (const OpSlack& op : context.slack())
            QCOMPARE((*m_window->workspace().feature<GapsController>()->overlay()->notes()->slack)[op.span], op.slack);
        m_window->workspace().viewState()->select({0, WindowFixture::spanOf(*timeline, "0F0")});
        QTRY_VERIFY(m_window->workspace().views().side->plainText().contains(QStringLiteral("Slack: 0 units")));
        press(Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(!m_window->workspace().feature<GapsController>()->overlay()->notes()->slack);
    }

    void whatIfIsAnsweredByKeyboard()
    {
        open({"1f1b"});
        press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t(2));
        auto* panel = m_window->findChild<WhatIfPanel*>();
        QVERIFY(panel && panel->isVisible());
        const auto makespan = [&](std::size_t i) {
            return m_window->workspace().views().timeline->panels()[i]->duration;
        };
        const Nanos asItIs = makespan(0);
        QCOMPARE(makespan(1), asItIs);
        auto* slider = panel->findChild<QSlider*>(QStringLiteral("opsFactor"));
        slider->setFocus();
        QTRY_VERIFY(slider->hasFocus());
        for (int i = 0; i < 5; ++i) press(Qt::Key_PageDown); // 1 → 0.5
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(makespan(0), asItIs);
        const Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
        CostModel::UnitCosts unit;
        unit.latency = 0.05;
        const auto expected =
            WhatIf::create(schedule, CostModel::uniform(schedule, unit))->answer(*parseWhatIf("F*0.5,B*0.5"));
        QCOMPARE(makespan(1), expected->makespanAfter);
        QVERIFY2(panel->plainText().contains(QStringLiteral("--what-if")), qPrintable(panel->plainText()));
        // An unfinished text is reported and the picture stays; another number of microbatches is another schedule.
        auto* further = panel->findChild<QLineEdit*>(QStringLiteral("further"));
        further->setFocus();
        QTest::keyClicks(further, QStringLiteral("F*"));
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY2(panel->plainText().contains(QStringLiteral("not a change")), qPrintable(panel->plainText()));
        QCOMPARE(makespan(1), expected->makespanAfter);
        further->clear();
        auto* reset = panel->findChild<QPushButton*>(QStringLiteral("reset"));
        reset->setFocus();
        press(Qt::Key_Return);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(makespan(1), asItIs);
        QTest::keyClicks(further, QStringLiteral("m+8"));
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(makespan(1) > asItIs);
        // Back: the run itself, with its own panel.
        press(Qt::Key_W, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t(1));
        QVERIFY(m_window->workspace().views().side->isVisible());
    }

    void manyQuestionsEndWithTheNewest()
    {
        open({"1f1b"}, 8, 64);
        m_window->workspace().shown().setTool(Shown::Tool::WhatIf);
        auto* slider = m_window->findChild<WhatIfPanel*>()->findChild<QSlider*>(QStringLiteral("opsFactor"));
        for (int place = 100; place >= 0; --place) slider->setValue(place);
        m_window->workspace().shown().showRun(m_window->workspace().shown().ref()); // asked again in between
        slider->setValue(50);
        QVERIFY(WindowFixture::settle(*m_window));
        const auto& panels = m_window->workspace().views().timeline->panels();
        QCOMPARE(panels.size(), std::size_t(2));
        QVERIFY(std::abs(static_cast<double>(panels[1]->timeline->timeUnit()) /
                             static_cast<double>(panels[0]->timeline->timeUnit()) -
                         1) < 1e-9);
        const Schedule schedule = *makeSchedule("1f1b", Shape{8, 64, 0});
        CostModel::UnitCosts unit;
        unit.latency = 0.05;
        const auto expected =
            WhatIf::create(schedule, CostModel::uniform(schedule, unit))->answer(*parseWhatIf("F*0.5,B*0.5"));
        QCOMPARE(panels[1]->duration, expected->makespanAfter);
        // Leaving during an answer really leaves.
        slider->setValue(20);
        m_window->workspace().shown().setTool(Shown::Tool::None);
        QVERIFY(WindowFixture::finish(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t(1));
    }

    // Two runs measured under the same costs, the second with an op that took longer in its last step.
    QString measured()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("measured.stagewright"));
        auto file = RunFile::open(path.toStdString(), OpenMode::Create);
        for (const Nanos longer : {Nanos(0), rankShare / 2}) {
            Run run = WindowFixture::simulated("1f1b");
            run.costs = CostModel::uniform(*run.schedule); // without transfers, which these timelines don't record
            TimelineBuilder builder(Provenance::Measured, "virtual", 4);
            Nanos begin = 0;
            for (int step = 0; step < 3; ++step) {
                std::vector<Nanos> durations = durationsOf(*run.schedule, *run.costs);
                if (step == 2) durations[4] += longer; // the first backward of rank 0
                const SimResult result = *place(*run.schedule, durations, run.costs->links);
                std::size_t id = 0;
                for (int rank = 0; rank < 4; ++rank)
                    for (const Op& op : run.schedule->order[static_cast<std::size_t>(rank)]) {
                        Span span;
                        span.op = op;
                        span.step = step;
                        span.start = begin + result.start[id];
                        span.end = begin + result.end[id++];
                        builder.addSpan(builder.addTrack(rank, Lane::Compute), span);
                    }
                begin += result.makespan;
            }
            builder.setSchedule(run.schedule);
            run.timeline = *builder.build();
            run.costs.reset();
            run.info.provenance = Provenance::Measured;
            run.info.steps = 3;
            if (!(*file)->add(run)) return {};
        }
        return path;
    }

    // Noise is of measured runs: what is said of a comparison does not stay over a simulation, on the canvas or beside
    // it.
    void whatIsSimulatedHasNoNoise()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({measured()});
        QVERIFY(WindowFixture::settle(*m_window));
        const RunRef first = m_window->workspace().runs()->refs().front();
        auto* compared = m_window->findChild<CompareOverlay*>();
        m_window->workspace().feature<CompareController>()->show({first, {first.file, 2}});
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().settled() && m_window->workspace().shown().mode() == Shown::Mode::Compare, 20000);
        QTRY_VERIFY(!compared->unclaimed().empty());
        compared->setUnclaimed({QStringLiteral("within the noise")}); // whatever is said of the comparison
        m_window->workspace().shown().showRun(first);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().shown().setTool(Shown::Tool::WhatIf);
        QVERIFY(WindowFixture::settle(*m_window));
        auto* panel = m_window->findChild<WhatIfPanel*>();
        panel->findChild<QSlider*>(QStringLiteral("opsFactor"))->setValue(99);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels().size(), std::size_t(2));
        for (const QString& why : compared->unclaimed()) QCOMPARE(why, QString());
        QVERIFY2(!panel->plainText().contains(QStringLiteral("noise")), qPrintable(panel->plainText()));
    }

    void residualsLeadToTheWorstOp()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({measured()});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().shown().showRun({m_window->workspace().shown().ref().file, 2}, 0);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
        QVERIFY(m_window->workspace().actions()["residuals"]->isEnabled());
        press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(WindowFixture::settle(*m_window));
        auto* panel = m_window->findChild<ResidualPanel*>();
        QVERIFY(panel->isVisible());
        // Its own fit predicts the medians; one op stands out, in another step.
        const QString text = panel->plainText();
        QVERIFY2(text.contains(QStringLiteral("Error: 0.0 %")), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("Every op took exactly the predicted time")), qPrintable(text));
        QPushButton* group = nullptr;
        for (auto* found : panel->findChildren<QPushButton*>())
            if (found->text() == QStringLiteral("B of stage 0")) group = found;
        QVERIFY2(group, qPrintable(text));
        QTRY_VERIFY(group->isVisible());
        group->setFocus();
        press(Qt::Key_Return);
        const Timeline& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        QTRY_VERIFY(m_window->workspace().viewState()->selected().valid());
        QVERIFY(WindowFixture::settle(*m_window));
        const Span& worst = timeline.spans()[m_window->workspace().viewState()->selected().span];
        QCOMPARE(worst.step, 2);
        QCOMPARE(QString::fromStdString(timeline.nameOf(worst)), QStringLiteral("0B0"));
        QTRY_VERIFY2(panel->plainText().contains(QStringLiteral("Residual: +")), qPrintable(panel->plainText()));
        // In the plot: Home goes to the largest error of the step; a click selects what is under it.
        auto* plot = panel->findChild<QWidget*>(QStringLiteral("residualPlot"));
        plot->setFocus();
        press(Qt::Key_Right);
        QVERIFY(timeline.nameOf(timeline.spans()[m_window->workspace().viewState()->selected().span]) != "0B0");
        press(Qt::Key_Home);
        QCOMPARE(timeline.nameOf(timeline.spans()[m_window->workspace().viewState()->selected().span]),
                 std::string("0B0"));
        m_window->workspace().viewState()->clearSelection();
        auto* marks = static_cast<PlotWidget*>(plot);
        QTest::mouseClick(plot, Qt::LeftButton, {}, marks->itemRect(4).center().toPoint());
        QCOMPARE(timeline.nameOf(timeline.spans()[m_window->workspace().viewState()->selected().span]),
                 std::string("0B0"));
        // Predicted from the costs of the other run.
        auto* source = panel->findChild<QComboBox*>(QStringLiteral("source"));
        QCOMPARE(source->count(), 2);
        source->setCurrentIndex(1);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(panel->source().id, 1);
        QVERIFY2(panel->plainText().contains(QStringLiteral("Error: 0.0 %")), qPrintable(panel->plainText()));
        for (const ThemeChoice theme : {ThemeChoice::Dark, ThemeChoice::Light}) {
            Appearance::choose(theme);
            const QImage image = plot->grab().toImage();
            const QColor fill =
                (theme == ThemeChoice::Dark ? Theme::darkTheme() : Theme::light()).of(OpKind::Backward).fill;
            int marked = 0;
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x) {
                    const QColor at = image.pixelColor(x, y);
                    marked += std::abs(at.hslHue() - fill.hslHue()) < 12 && at.hslSaturation() > 120 ? 1 : 0;
                }
            QVERIFY(marked > 20);
        }
        press(Qt::Key_R, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(m_window->workspace().views().side->isVisible());
    }

    void simulatedRunsHaveNoResiduals()
    {
        open({"1f1b"});
        QVERIFY(!m_window->workspace().actions()["residuals"]->isEnabled());
    }

    void aRunWithoutGapsHasNothingToExplain()
    {
        open({"1f1b"}, 1, 4);
        press(Qt::Key_G);
        QCOMPARE(m_window->workspace().feature<GapsController>()->chosenGap(), -1);
        press(Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(m_window->workspace().banner()->text().isEmpty());
    }
};

QTEST_MAIN(TestExplanations)
#include "tst_explanations.moc"
