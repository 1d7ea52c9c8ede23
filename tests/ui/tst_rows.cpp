// The window's rows, times, steps and charts: actions, what is remembered, and a range that filters every view.
#include <QClipboard>
#include <QDialog>
#include <QDockWidget>
#include <QMenu>
#include <QPushButton>
#include <QScrollBar>
#include <QSpinBox>
#include <QTableView>

#include "app/ui/explain/budget_controller.h"
#include "app/ui/explain/range_controller.h"
#include "app/ui/explain/rows_controller.h"
#include "app/ui/flame/flame_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/window_fixture.h"
#include "traces/report/range_report.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "widgets/flame/flame_view.h"
#include "widgets/hover_card.h"
#include "widgets/memory/memory_view.h"
#include "widgets/panel/side_panel.h"
#include "widgets/preferences/preferences.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/aggregation_panel.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestRows : public WindowTest {
    Q_OBJECT

    int m_files = 0;

    QAction* action(ActionId id) { return m_window->workspace().actions()[id]; }
    const RowSettings& rows() { return m_window->workspace().viewState()->rows(); }
    void open(std::initializer_list<const char*> schedules, int ranks = 4, int microbatches = 8)
    {
        const QByteArray name = QStringLiteral("rows%1.stagewright").arg(++m_files).toUtf8();
        m_window->workspace().feature<FileOpening>()->openFiles(
            {m_fixture->file(name.constData(), schedules, ranks, microbatches)});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->activateWindow();
        m_window->workspace().views().timeline->setFocus();
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
    }
    void again() // the window closed and opened
    {
        m_window->close();
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
    }
    // A run of the schedule over several steps, with a pause of 10 % of its time between them.
    QString stepsFile(int steps)
    {
        const Run one = WindowFixture::simulated("zb-h1");
        TimelineBuilder builder(Provenance::Simulated, one.timeline->clock(), one.timeline->ranks());
        builder.setUnits(one.timeline->timeUnit(), one.timeline->memoryUnit());
        builder.setSchedule(one.timeline->schedule());
        const Nanos pitch = one.timeline->end() * 11 / 10;
        for (int step = 0; step < steps; ++step) {
            for (const Track& track : one.timeline->tracks()) {
                const int made = builder.addTrack(track.rank, track.lane, track.name);
                for (Span span : one.timeline->spansOf(track)) {
                    span.step = step;
                    span.start += step * pitch;
                    span.end += step * pitch;
                    builder.addSpan(made, span);
                }
            }
            for (MemoryEvent event : one.timeline->memory()) {
                event.step = step;
                event.time += step * pitch;
                builder.addMemory(event);
            }
        }
        Run run = one;
        run.timeline = *builder.build();
        run.info.steps = steps;
        const QString path = m_fixture->dir.filePath(QStringLiteral("steps.stagewright"));
        auto file = RunFile::open(path.toStdString(), OpenMode::Create);
        return file && (*file)->add(run) ? path : QString();
    }

private slots:
    // The charts below show the ranks that are in view above, and the selected one.
    void memoryFollowsTheRows()
    {
        open({"1f1b"}, 32, 32);
        m_window->resize(1200, 700);
        QVERIFY(WindowFixture::settle(*m_window));
        TimelineView* view = m_window->workspace().views().timeline;
        const MemoryView* memory = m_window->workspace().views().memory;
        const auto inView = [&](int rank) {
            const QRectF plot = memory->plotRect(rank);
            return !plot.isEmpty() && plot.top() >= 0 && plot.bottom() <= memory->height();
        };
        QVERIFY(inView(0));
        QVERIFY(!inView(20));
        view->setScrollTop(view->scene().rowTop(view->scene().rowOf(0, 20)) - view->scene().rowTop(0) + 1);
        const int row = view->scene().nearestRow(view->scene().scrolledRect().top() + 1);
        const int top = view->scene().rankOf(view->scene().place(row)).rank;
        QVERIFY(top >= 15);
        QVERIFY2(inView(top), qPrintable(QString::number(top)));
        const SpanId chosen = WindowFixture::spanOf(*view->panels().front()->timeline, "3F0");
        m_window->workspace().viewState()->select({0, chosen});
        QVERIFY(inView(3));
    }

    // All 32 ranks at once, as thin as that takes, until another height is chosen; and it stays so in a smaller window.
    void allRowsFit()
    {
        open({"1f1b"}, 32, 32);
        TimelineView* view = m_window->workspace().views().timeline;
        const auto fits = [&] { return view->scene().rows.height <= view->scene().rowsRect().height() + 0.5; };
        QVERIFY(!fits());
        const double before = view->rowSizes().scale;
        action("fitRows")->trigger();
        QVERIFY(fits());
        QVERIFY(view->scene().rows.metrics.height >= 4);
        QVERIFY(action("fitRows")->isChecked());
        m_window->resize(m_window->width(), m_window->height() - 120);
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_VERIFY(fits());
        action("fitRows")->trigger();
        QTRY_COMPARE(view->rowSizes().scale, before);
        action("fitRows")->trigger();
        action("rowsTaller")->trigger();
        QVERIFY(!action("fitRows")->isChecked());
    }

    // Another file does not start where the last one was scrolled, and that one is found as it was left.
    void aFileOpensAtItsOwnView()
    {
        open({"1f1b"}, 32, 32);
        TimelineView* view = m_window->workspace().views().timeline;
        FindField* find = m_window->workspace().views().find;
        const RunRef first = m_window->workspace().shown().ref();
        find->setText(QStringLiteral("rank:20 mb:3 F"));
        view->setScrollTop(400);
        QCOMPARE(view->scene().scroll, 400.0);
        open({"zb-h1"}, 24, 32);
        QCOMPARE(view->scene().scroll, 0.0);
        QCOMPARE(find->text(), QString());
        QCOMPARE(m_window->workspace().views().side->summary()->verticalScrollBar()->value(), 0);
        m_window->workspace().shown().showRun(first);
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_COMPARE(view->scene().scroll, 400.0);
        QCOMPARE(find->text(), QStringLiteral("rank:20 mb:3 F"));
    }

    // A card and its outlines vanish when what they describe moves away.
    void tooltipsVanishWithWhatTheyDescribe()
    {
        open({"1f1b"}, 16, 16);
        TimelineView* view = m_window->workspace().views().timeline;
        const SpanId op = WindowFixture::spanOf(*view->panels().front()->timeline, "1F2");
        const auto hover = [&] {
            QTest::mouseMove(view, QPoint(3, 3)); // away first: a pointer that stays is not noticed
            QTest::mouseMove(view, view->rectOf({0, op})->center().toPoint());
            return QTest::qWaitFor(
                [&] {
                    return m_window->workspace().viewState()->hovered() == SpanRef{0, op};
                },
                2000);
        };
        const auto card = [&] {
            for (const HoverCard* one : m_window->findChildren<HoverCard*>())
                if (one->isVisible()) return true;
            return false;
        };
        QVERIFY(hover());
        QVERIFY(card());
        m_window->workspace().viewState()->setVisible({100 * rankShare / 10, 30 * rankShare});
        QVERIFY(!card());
        QVERIFY(!m_window->workspace().viewState()->hovered().valid());
        m_window->workspace().viewState()->fitAll();
        QVERIFY(hover());
        view->setScrollTop(200);
        QVERIFY(!card());
        view->setScrollTop(0);
        QVERIFY(hover());
        view->resize(view->width() - 60, view->height());
        QVERIFY(!card());
    }

    void cleanup()
    {
        m_window.reset();
        PreferenceStore::instance().set({});
        setTimeUnit(TimeUnit::Automatic);
        WindowTest::cleanup();
    }

    void rowsByKeysAreRemembered()
    {
        open({"1f1b"});
        TimelineView* view = m_window->workspace().views().timeline;
        QVERIFY(!action("pinRank")->isEnabled());
        QTest::keyClick(view, Qt::Key_Down, Qt::AltModifier);
        QTest::keyClick(view, Qt::Key_Down, Qt::AltModifier);
        QCOMPARE(view->rowCursor().row(), 1);
        QTest::keyClick(view, Qt::Key_P, Qt::ShiftModifier);
        QCOMPARE(rows().pinned, std::set<int>{1});
        QCOMPARE(view->rowCursor().row(), 0); // the mark stays on its rank
        QVERIFY(action("pinRank")->isChecked());
        QTest::keyClick(view, Qt::Key_Down, Qt::AltModifier);
        QTest::keyClick(view, Qt::Key_Down, Qt::AltModifier);
        QTest::keyClick(view, Qt::Key_C, Qt::ShiftModifier);
        QCOMPARE(rows().collapsed, std::set<int>{2});
        QTest::keyClick(view, Qt::Key_Down, Qt::AltModifier);
        QTest::keyClick(view, Qt::Key_T, Qt::ShiftModifier);
        QCOMPARE(rows().trackless, std::set<int>{3});
        action("groupRange")->trigger();
        again();
        QVERIFY(rows().pinned.empty()); // no run of four ranks is shown
        QCOMPARE(rows().look, GroupLook::Range);
        open({"1f1b"});
        QCOMPARE(rows().pinned, std::set<int>{1});
        QCOMPARE(rows().collapsed, std::set<int>{2});
        QCOMPARE(rows().trackless, std::set<int>{3});
        QCOMPARE(m_window->workspace().views().memory->rowTitles().first(), QStringLiteral("Rank 1"));
        action("resetRows")->trigger();
        QVERIFY(rows().pinned.empty() && rows().collapsed.empty() && rows().trackless.empty());
        QVERIFY(!action("resetRows")->isEnabled());
    }

    void groupsByActions()
    {
        open({"1f1b"}, 80, 4);
        TimelineView* view = m_window->workspace().views().timeline;
        QCOMPARE(view->scene().rows.rows.size(), std::size_t(10));
        QVERIFY(action("groupAuto")->isChecked());
        action("groupNone")->trigger();
        QCOMPARE(view->scene().rows.rows.size(), std::size_t(80));
        action("groupOf32")->trigger();
        QCOMPARE(view->scene().rows.rows.size(), std::size_t(3));
        view->rowCursor().set(1);
        QVERIFY(action("openGroup")->isEnabled());
        QTest::keyClick(view, Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(view->scene().rows.rows.size(), std::size_t(35));
        QMenu menu;
        m_window->workspace().feature<RowsController>()->fillRowMenu(menu, 1);
        QVERIFY(!menu.actions().front()->isSeparator() && !menu.actions().front()->isEnabled()); // its title
        QVERIFY2(menu.actions().front()->text().startsWith(QStringLiteral("Ranks 32")),
                 qPrintable(menu.actions().front()->text()));
        QVERIFY(menu.actions().contains(action("openGroup")) && menu.actions().contains(action("pinRank")));
        QMenu gap;
        m_window->workspace().feature<RowsController>()->fillGapMenu(gap, 0, 70, 10);
        QVERIFY(gap.actions().size() > 5);
        again();
        open({"1f1b"}, 80, 4);
        QCOMPARE(m_window->workspace().views().timeline->scene().rows.rows.size(), std::size_t(35));
    }

    // What a job's traces say of its ranks: hosts, dimensions, what its kernels are and what they were launched for.
    void ranksOfAJob()
    {
        Run run = WindowFixture::simulated("1f1b");
        TimelineBuilder builder(Provenance::Imported, run.timeline->clock(), run.timeline->ranks());
        builder.setUnits(run.timeline->timeUnit(), run.timeline->memoryUnit());
        builder.append(*run.timeline);
        Span kernel;
        kernel.start = run.timeline->begin();
        kernel.end = kernel.start + 1'000'000;
        kernel.label = builder.intern("gemm_bf16") & 0xffffffu;
        builder.addSpan(builder.addTrack(0, Lane::Kernel, "rank 0 stream 7"), kernel);
        run.timeline = builder.build().value();
        run.configuration.emplace_back(
            "rank_places", "0 gpu-01 pipeline=0\n1 gpu-01 pipeline=1\n2 gpu-02 pipeline=0\n3 gpu-02 pipeline=1");
        Workspace& workspace = m_window->workspace();
        workspace.shown().showRun(workspace.library()->addSimulated(run), -1);
        QVERIFY(WindowFixture::settle(*m_window));
        TimelineView* view = workspace.views().timeline;
        QVERIFY(action("groupHost")->isEnabled() && action("groupPipeline")->isEnabled() &&
                !action("groupTensor")->isEnabled());
        action("groupHost")->trigger();
        QCOMPARE(view->scene().rows.rows.size(), std::size_t(2));
        action("groupNone")->trigger();
        QVERIFY(action("kernelClasses")->isEnabled() && !view->panels().front()->byClass);
        action("kernelClasses")->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(view->panels().front()->byClass);
        auto* flame = workspace.feature<FlameController>();
        flame->dock()->show();
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(flame->view()->stacks() != nullptr);
        QCOMPARE(flame->view()->stacks()->nodes.front().name, std::string("gemm_bf16"));
        workspace.viewState()->setAreas({{{0, 500'000}, 0, 3}});
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY2(flame->view()->lineText().startsWith(QStringLiteral("Selected area")),
                 qPrintable(flame->view()->lineText()));
        QCOMPARE(flame->view()->stacks()->total, Nanos(500'000));
        workspace.viewState()->setAreas({{{2'000'000, 3'000'000}, 0, 3}});
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(flame->view()->stacks() == nullptr && !flame->view()->lineText().isEmpty());
        again();
        QVERIFY(action("kernelClasses")->isChecked()); // remembered
        action("kernelClasses")->trigger();
    }

    void timesAreRemembered()
    {
        open({"1f1b"});
        action("timeAbsolute")->trigger();
        QCOMPARE(m_window->workspace().viewState()->timeOrigin(), TimeOrigin::Run);
        action("unitMicros")->trigger();
        QCOMPARE(timeUnit(), TimeUnit::Microseconds);
        again();
        QCOMPARE(timeUnit(), TimeUnit::Microseconds);
        QVERIFY(action("unitMicros")->isChecked() && action("timeAbsolute")->isChecked());
        QCOMPARE(m_window->workspace().viewState()->timeOrigin(), TimeOrigin::Run);
    }

    void stepsOnOneAxis()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({stepsFile(5)});
        QVERIFY(WindowFixture::settle(*m_window));
        const auto* panel = m_window->workspace().views().timeline->panels().front().get();
        QCOMPARE(panel->steps.size(), std::size_t(1));
        const Nanos one = panel->duration;
        action("allSteps")->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
        panel = m_window->workspace().views().timeline->panels().front().get();
        QCOMPARE(panel->steps.size(), std::size_t(5));
        QVERIFY(panel->duration > 5 * one);
        QVERIFY(action("allSteps")->isChecked());
        action("chooseSteps")->trigger();
        auto* dialog = m_window->findChild<QDialog*>(QStringLiteral("chooseSteps"));
        QVERIFY(dialog != nullptr);
        const auto spins = dialog->findChildren<QSpinBox*>();
        QCOMPARE(spins.size(), 2);
        QCOMPARE(spins[1]->value(), 5);
        spins[0]->setValue(2);
        spins[1]->setValue(3);
        dialog->findChild<QPushButton*>(QStringLiteral("primary"))->click();
        QVERIFY(WindowFixture::settle(*m_window));
        panel = m_window->workspace().views().timeline->panels().front().get();
        QCOMPARE(panel->steps.size(), std::size_t(2));
        QCOMPARE(panel->steps[0].step, 1);
        // An op of the second of them can be selected, and the budget keeps the steps.
        QVERIFY(m_window->workspace().feature<BudgetController>()->setMemoryBudget(QStringLiteral("2 u")));
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels().front()->steps.size(), std::size_t(2));
        QVERIFY(action("allSteps")->isChecked());
        action("allSteps")->trigger(); // no more
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().views().timeline->panels().front()->steps.size(), std::size_t(1));
    }

    void rangeFiltersEveryView()
    {
        open({"zb-h1"});
        const auto shown = m_window->workspace().shown().view();
        const QString whole = m_window->workspace().views().side->headline();
        const Nanos half = shown->panel->duration / 2;
        m_window->workspace().viewState()->setAreas({{{0, half}, 0, 3}});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().views().side->filtered() &&
                                     m_window->workspace().feature<RangeController>()->settled(),
                                 20000);
        QVERIFY(m_window->workspace().views().side->plainText().contains(
            QStringLiteral("All figures are for the selected range")));
        QVERIFY(m_window->workspace().views().side->headline() != whole);
        AggregationPanel* table = m_window->workspace().feature<RangeController>()->table();
        QVERIFY(table->isVisible());
        QCOMPARE(table->table().ranks, 4);
        QVERIFY(m_window->workspace().views().memory->accessibleDescription().contains(QStringLiteral("in range")));
        // The bars beside it leave the table all its columns.
        auto* bars = table->findChild<QWidget*>(QStringLiteral("durationBars"));
        for (const int wide : {1100, 1280, 1440, 1900}) {
            m_window->resize(wide, 800);
            QVERIFY(WindowFixture::settle(*m_window));
            if (bars->isVisible()) QCOMPARE(table->view()->horizontalScrollBar()->maximum(), 0);
        }
        QVERIFY(bars->isVisible());
        // Ctrl+C copies the table that has the focus.
        table->view()->setFocus();
        QTRY_VERIFY(table->view()->hasFocus());
        QTest::keyClick(table->view(), Qt::Key_C, Qt::ControlModifier);
        QTRY_VERIFY(QGuiApplication::clipboard()->text().startsWith(QStringLiteral("What,Count,")));
        // Another run does not inherit it.
        m_window->workspace().viewState()->clearSelection();
        QTRY_VERIFY(!m_window->workspace().views().side->filtered());
        QCOMPARE(m_window->workspace().views().side->headline(), whole);
        QVERIFY(!table->isVisible());
    }

    // Two adjacent ranges add up to the whole: busy time, idle time by cause, transfers.
    void rangesAddUp()
    {
        open({"zb-v"});
        const auto shown = m_window->workspace().shown().view();
        const RunReport& all = *shown->figures;
        const Nanos begin = all.bubbles.windowBegin, end = all.bubbles.windowEnd;
        for (const Nanos cut : {begin + 1, begin + (end - begin) / 3, begin + (end - begin) / 2 + 7, end - 5}) {
            const RunReport a = reportIn(all, *shown->run->timeline, begin, cut),
                            b = reportIn(all, *shown->run->timeline, cut, end);
            QCOMPARE(a.bubbles.busy + b.bubbles.busy, all.bubbles.busy);
            QCOMPARE(a.bubbles.idle + b.bubbles.idle, all.bubbles.idle);
            for (std::size_t c = 0; c < idleCauseCount; ++c)
                QCOMPARE(a.bubbles.byCause[c] + b.bubbles.byCause[c], all.bubbles.byCause[c]);
            QCOMPARE(a.overlap.commTime + b.overlap.commTime, all.overlap.commTime);
            QCOMPARE(a.overlap.hiddenTime + b.overlap.hiddenTime, all.overlap.hiddenTime);
            for (std::size_t r = 0; r < all.bubbles.ranks.size(); ++r) {
                const RankBubbles& part = a.bubbles.ranks[r];
                QCOMPARE(part.busy + part.apart + part.idle, cut - begin);
                QCOMPARE(std::max(a.peaks()[r], b.peaks()[r]), all.peaks()[r]);
            }
        }
        const RunReport same = reportIn(all, *shown->run->timeline, begin - 100, end + 100);
        QCOMPARE(same.bubbles.bubbleFraction, all.bubbles.bubbleFraction);
        QCOMPARE(same.overlap.messages, all.overlap.messages);
    }

    void chartsAreRemembered()
    {
        open({"1f1b"});
        action("memoryOwnScale")->trigger();
        QVERIFY(m_window->workspace().views().memory->settings().ownScale);
        QVERIFY(action("memoryActivations")->isChecked());
        QVERIFY(!action("memoryPredicted")->isEnabled()); // it is simulated itself
        again();
        QVERIFY(m_window->workspace().views().memory->settings().ownScale);
    }
};

QTEST_MAIN(TestRows)
#include "tst_rows.moc"
