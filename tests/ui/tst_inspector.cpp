// The panels at the right under their tabs: a selection leaves the summary as and where it is, every text fits at every
// width, long lists are summed; and the room below, which docks take and give back.
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QLabel>
#include <QMimeData>
#include <QPushButton>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedWidget>
#include <QTabBar>

#include "app/ui/explain/gaps_controller.h"
#include "app/ui/flame/flame_controller.h"
#include "app/ui/tables/tables_controller.h"
#include "app/ui/workspace/banner.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "traces/report/table_document.h"
#include "widgets/gaps/gaps_overlay.h"
#include "widgets/panel/inspector.h"

using namespace stagewright;

class TestInspector : public WindowTest {
    Q_OBJECT

    using Tab = Inspector::Tab;

    void open(std::initializer_list<const char*> schedules, int ranks = 4, int microbatches = 8)
    {
        const QString path =
            m_fixture->file(qPrintable(QStringLiteral("runs%1_%2.stagewright").arg(ranks).arg(++m_files)), schedules,
                            ranks, microbatches);
        m_window->workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(*m_window));
        m_refs = m_window->workspace().runs()->refs();
    }
    Inspector* inspector() const { return m_window->workspace().room().inspector(); }
    QTabBar* tabs() const { return inspector()->findChild<QTabBar*>(QStringLiteral("inspectorTabs")); }
    void choose(Tab tab) const
    {
        QTest::mouseClick(tabs(), Qt::LeftButton, {}, tabs()->tabRect(static_cast<int>(tab)).center());
    }
    SidePanel* side() const { return m_window->workspace().views().side; }
    void select(SpanId span) const { m_window->workspace().viewState()->select({0, span}); }
    // A trace of kernels alone: what its ops are is not known.
    // Without their launches their step is not known either; the host's ranges say where steps are.
    QString kernels(bool inSteps = true) const
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("kernels.stagewright"));
        TimelineBuilder builder(Provenance::Imported, "steady", 2);
        std::vector<SpanId> collectives; // of rank 0
        for (int rank = 0; rank < 2; ++rank) {
            const int track = builder.addTrack(rank, Lane::Kernel, "stream 7");
            const int other = builder.addTrack(rank, Lane::Kernel, "stream 20");
            const int host = builder.addTrack(rank, Lane::Other, "python");
            for (int step = 0; step < 2 && !inSteps; ++step) {
                Span span;
                span.start = step * 12'000'000;
                span.end = span.start + 12'000'000;
                span.step = step;
                span.label = builder.intern("train");
                builder.addSpan(host, span);
            }
            for (int i = 0; i < 12; ++i) {
                Span span;
                if (!inSteps) span.step = -1; // in none
                span.start = (2 * i + rank) * 1'000'000;
                span.end = span.start + 900'000;
                span.label = builder.intern(i % 3 == 0 ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
                                                       : "volta_sgemm_128x32_sliced1x4_tn");
                const SpanId added = builder.addSpan(i % 3 == 0 ? other : track, span);
                if (i % 3 != 0) continue;
                if (rank == 0)
                    collectives.push_back(added);
                else // entered last by rank 1
                    builder.addEdge(added, collectives[static_cast<std::size_t>(i / 3)], EdgeKind::Transfer,
                                    span.start);
            }
        }
        auto timeline = builder.build();
        if (!timeline) return {};
        Run run;
        run.timeline = *timeline;
        run.info.name = "kernels";
        run.info.provenance = Provenance::Imported;
        run.info.ranks = 2;
        run.info.steps = inSteps ? 1 : 2;
        auto file = RunFile::open(path.toStdString(), OpenMode::Create);
        return file && (*file)->add(run) ? path : QString();
    }

    std::vector<RunRef> m_refs;
    int m_files = 0;

private slots:
    void aSelectionLeavesTheSummary()
    {
        open({"1f1b"});
        m_window->resize(1400, 560); // it scrolls
        QVERIFY(WindowFixture::settle(*m_window));
        QScrollBar* bar = side()->summary()->verticalScrollBar();
        QTRY_VERIFY(bar->maximum() > 150);
        QVERIFY(inspector()->current() == Tab::Summary);
        bar->setValue(140);
        const QString text = side()->summary()->plainText();
        select(9);
        QTRY_VERIFY(inspector()->current() == Tab::Selection);
        QVERIFY(side()->selection()->isVisible() && !side()->summary()->isVisible());
        QVERIFY(side()->selection()->plainText().contains(QStringLiteral("Waits for")));
        QCOMPARE(side()->summary()->plainText(), text);
        select(12);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().viewState()->clearSelection();
        QVERIFY(inspector()->current() == Tab::Summary);
        QCOMPARE(bar->value(), 140);
        QCOMPARE(side()->summary()->plainText(), text);
        // Back to the summary while an op is selected: further ones do not open their tab …
        select(3);
        QVERIFY(inspector()->current() == Tab::Selection);
        choose(Tab::Summary);
        select(4);
        QVERIFY(inspector()->current() == Tab::Summary);
        QCOMPARE(bar->value(), 140);
        // … until it is asked for, by the tab or its key.
        m_window->workspace().actions()["details"]->trigger();
        QVERIFY(inspector()->current() == Tab::Selection);
    }

    void anOpsSelectionEndsTheChainOfAGap()
    {
        open({"gpipe"});
        m_window->workspace().actions()["nextGap"]->trigger();
        QVERIFY(inspector()->current() == Tab::Selection);
        QTRY_VERIFY(side()->selection()->plainText().contains(QStringLiteral("Next gap")) ||
                    side()->selection()->plainText().contains(QStringLiteral("Cause: ")));
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(side()->gaps()->anySelected());
        QString ofChain;
        for (const auto* link : side()->selection()->findChildren<LinkButton*>())
            if (link->text().contains(QStringLiteral(" on rank ")) && ofChain.isEmpty()) ofChain = link->text();
        QVERIFY(!ofChain.isEmpty());
        const Timeline& timeline = *m_window->workspace().shown().view()->run->timeline;
        SpanId chained = noSpan, other = noSpan;
        for (SpanId id = 0; id < timeline.spans().size(); ++id) {
            bool inChain = false;
            for (const auto* link : side()->selection()->findChildren<LinkButton*>())
                inChain = inChain || link->text() == opOnRank(timeline, id);
            (inChain ? chained : other) = id;
        }
        QVERIFY(chained != noSpan && other != noSpan);
        select(chained); // walking along the chain keeps it
        QVERIFY(side()->gaps()->anySelected());
        select(other);
        QVERIFY(!side()->gaps()->anySelected());
        QVERIFY(side()->selection()->plainText().contains(QStringLiteral("Waits for")));
    }

    // What sums are of is said once, for the tables of devices together.
    void devicesAreSummedOnce()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({kernels()});
        QVERIFY(WindowFixture::settle(*m_window));
        const QString text = side()->summary()->plainText();
        QVERIFY2(text.contains(QStringLiteral("Computing")) && text.contains(QStringLiteral("Waited for")),
                 qPrintable(text));
        QVERIFY2(text.count(QStringLiteral("Summed over 2 devices")) == 1, qPrintable(text));
    }

    // Kernels whose step is not known are found from the summary, which calls nothing of them zero.
    void kernelsOutsideStepsAreALinkAway()
    {
        m_window->workspace().feature<FileOpening>()->openFiles({kernels(false)});
        QVERIFY(WindowFixture::settle(*m_window));
        const QString text = side()->summary()->plainText();
        QVERIFY2(text.contains(QStringLiteral("Unknown: no kernel is known to be of a step")), qPrintable(text));
        QVERIFY2(!text.contains(QStringLiteral("Waited for")), qPrintable(text));
        QPushButton* all = nullptr;
        for (QPushButton* button : side()->summary()->findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Show all steps")) all = button;
        QVERIFY(all != nullptr && all->isVisible());
        all->click();
        QTRY_COMPARE(m_window->workspace().views().timeline->panels().front()->steps.size(), std::size_t(2));
    }

    void compareIsATabToo()
    {
        open({"1f1b", "gpipe"});
        choose(Tab::Compare);
        QPushButton* ask = nullptr;
        for (auto* button : inspector()->pages()->currentWidget()->findChildren<QPushButton*>())
            if (button->text() == QStringLiteral("Compare with another run…")) ask = button;
        QVERIFY(ask != nullptr && ask->isVisible() && ask->isEnabled());
        m_window->workspace().feature<RunComparing>()->show({m_refs[0], m_refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(inspector()->current() == Tab::Compare);
        QVERIFY(m_window->findChild<ComparePanel*>()->isVisible());
        // Beside it the summary of A, and of each run what is selected in it. Nothing there is a button without effect:
        // what would help acts on the run, the rest is text.
        choose(Tab::Summary);
        QVERIFY2(side()->summary()->plainText().contains(QStringLiteral("A: 1F1B")),
                 qPrintable(side()->summary()->plainText()));
        int findings = 0;
        for (const auto* button : side()->summary()->findChildren<QPushButton*>()) {
            const bool opens = button->text().endsWith(QStringLiteral("…")); // a budget, a list
            const auto& levers = m_window->workspace().shown().view()->figures->levers->levers;
            const bool finding = std::any_of(levers.begin(), levers.end(), [&](const Lever& one) {
                return button->text().compare(QString::fromStdString(one.title), Qt::CaseInsensitive) == 0;
            });
            QVERIFY2(!button->isVisible() || !button->isEnabled() || opens || finding, qPrintable(button->text()));
            findings += finding && button->isVisible() && button->isEnabled() ? 1 : 0;
        }
        QVERIFY(findings > 0);
        m_window->workspace().viewState()->select({1, 7});
        QTRY_VERIFY(inspector()->current() == Tab::Selection);
        const Timeline& second = *m_window->workspace().shown().other()->run->timeline;
        QVERIFY2(side()->selection()->plainText().contains(QString::fromStdString(second.nameOf(second.spans()[7]))),
                 qPrintable(side()->selection()->plainText()));
        m_window->workspace().shown().showRun(m_refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(inspector()->current() == Tab::Summary);
        QVERIFY(!side()->summary()->plainText().contains(QStringLiteral("A: 1F1B")));
    }

    void aToolHasATab()
    {
        open({"1f1b"});
        QCOMPARE(tabs()->count(), 3);
        m_window->workspace().actions()["whatIf"]->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(tabs()->count(), 4);
        QVERIFY(inspector()->current() == Tab::Tool);
        choose(Tab::Summary);
        QVERIFY(side()->summary()->isVisible());
        m_window->workspace().shown().setTool(Shown::Tool::None);
        QCOMPARE(tabs()->count(), 3);
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(!tabs()->isVisible() && m_window->findChild<EditPanel*>()->isVisible());
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(tabs()->isVisible() && side()->summary()->isVisible());
    }

    // No text of the panels is cut at any width that they can have.
    void everyTextFits()
    {
        QStringList found;
        const auto look = [&](const QString& what) {
            QSplitter* columns = m_window->workspace().room().columns();
            for (const int width : {320, 360, 430, 560}) {
                QList<int> sizes = columns->sizes();
                sizes[1] += sizes[2] - width;
                sizes[2] = width;
                columns->setSizes(sizes);
                QVERIFY(WindowFixture::settle(*m_window));
                (void)QTest::qWaitFor([&] { return clipped(inspector()).isEmpty(); }, 1500);
                for (const QString& text : clipped(inspector()))
                    found << QStringLiteral("%1, %2 px: %3").arg(what).arg(inspector()->width()).arg(text);
                // nor does anything reach out of the column
                for (const auto* column : inspector()->findChildren<SectionColumn*>())
                    for (const QLabel* label : column->findChildren<QLabel*>())
                        if (column->isVisible() && label->isVisible() && !label->text().isEmpty() &&
                            label->mapTo(column->widget(), QPoint(label->width(), 0)).x() > column->viewport()->width())
                            found << QStringLiteral("%1, %2 px reaches out: %3")
                                         .arg(what)
                                         .arg(inspector()->width())
                                         .arg(label->text());
            }
            QVERIFY(inspector()->width() >= 320);
        };
        m_window->resize(1600, 900);
        open({"1f1b", "interleaved-1f1b"});
        look(QStringLiteral("summary"));
        select(9);
        look(QStringLiteral("op"));
        m_window->workspace().actions()["nextGap"]->trigger();
        QVERIFY(WindowFixture::settle(*m_window));
        look(QStringLiteral("gap"));
        m_window->workspace().viewState()->setAreas({{{2 * rankShare, 9 * rankShare}, 1, 2}});
        QVERIFY(WindowFixture::settle(*m_window));
        choose(Tab::Selection);
        look(QStringLiteral("area"));
        choose(Tab::Summary);
        look(QStringLiteral("summary of an area"));
        m_window->workspace().viewState()->setAreas({});
        choose(Tab::Compare);
        look(QStringLiteral("invitation"));
        for (const char* tool : {"whatIf", "loweredView", "residuals"}) {
            if (!m_window->workspace().actions()[tool]->isEnabled()) continue;
            m_window->workspace().actions()[tool]->trigger();
            QVERIFY(WindowFixture::settle(*m_window));
            look(QString::fromLatin1(tool));
        }
        m_window->workspace().shown().setTool(Shown::Tool::None);
        m_window->workspace().feature<RunComparing>()->show({m_refs[0], m_refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        look(QStringLiteral("comparison"));
        m_window->workspace().shown().showRun(m_refs[0]);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        look(QStringLiteral("edit"));
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
        open({"gpipe"}, 48, 48);
        m_window->workspace().shown().showRun(m_refs.back());
        QVERIFY(WindowFixture::settle(*m_window));
        look(QStringLiteral("many ranks"));
        m_window->workspace().feature<FileOpening>()->openFiles({kernels()});
        QVERIFY(WindowFixture::settle(*m_window));
        look(QStringLiteral("trace"));
        select(2);
        look(QStringLiteral("kernel"));
        QVERIFY2(found.isEmpty(), qPrintable(found.join(QLatin1Char('\n'))));
    }

    // Ranks with the same share are one line; each of them is there on demand.
    void equalRanksAreOneLine()
    {
        open({"gpipe"}, 32, 32);
        const auto rows = [&] {
            QStringList lines;
            for (const QString& line : side()->summary()->plainText().split(QLatin1Char('\n')))
                if (line.startsWith(QStringLiteral("Rank ")) && line.endsWith(QStringLiteral(" %"))) lines << line;
            for (const QString& line : side()->summary()->plainText().split(QLatin1Char('\n')))
                if (line.startsWith(QStringLiteral("Ranks "))) lines << line;
            return lines;
        };
        QCOMPARE(rows().size(), 1);
        QVERIFY2(rows().front().startsWith(QStringLiteral("Ranks 0 to 31: ")), qPrintable(rows().front()));
        QVERIFY(side()->summary()->plainText().contains(QStringLiteral("Idle time by cause")));
        const auto press = [&](const QString& text) {
            for (auto* button : side()->summary()->findChildren<LinkButton*>())
                if (button->text() == text) {
                    button->click();
                    return true;
                }
            return false;
        };
        QVERIFY(press(QStringLiteral("Each of the 32 ranks…")));
        QTRY_COMPARE(rows().size(), 32);
        QVERIFY(press(QStringLiteral("Fewer rows")));
        QTRY_COMPARE(rows().size(), 1);
    }

    // What a dock takes of the timeline it gives back.
    void aClosedDockGivesItsRoomBack()
    {
        open({"1f1b"}, 16, 16);
        m_window->resize(1400, 900);
        QVERIFY(WindowFixture::settle(*m_window));
        QCoreApplication::processEvents();
        const QWidget* timeline = m_window->workspace().views().timeline;
        m_window->workspace().shown().splitViews();
        const int before = timeline->height();
        QAction* tables = m_window->workspace().actions()["tables"];
        tables->trigger();
        QTRY_VERIFY(timeline->height() < before);
        tables->trigger();
        QTRY_COMPARE(timeline->height(), before);
        // as the user had set it
        QSplitter* rows = m_window->workspace().room().rows();
        rows->setSizes({before - 60, rows->height() - before + 60});
        emit rows->splitterMoved(before - 60, 1);
        tables->trigger();
        QTRY_VERIFY(timeline->height() < before - 60);
        tables->trigger();
        QTRY_VERIFY2(
            std::abs(timeline->height() - (before - 60)) <= 2,
            qPrintable(
                QStringLiteral("%1 of %2, not %3").arg(timeline->height()).arg(rows->height()).arg(before - 60)));
    }

    // A flame graph of a run without kernels is away, and back with one that has some.
    void theFlameGraphGoesWhereNothingFolds()
    {
        const QString with = kernels();
        m_window->workspace().feature<FileOpening>()->openFiles({with});
        QVERIFY(WindowFixture::settle(*m_window));
        QDockWidget* dock = m_window->workspace().feature<FlameController>()->dock();
        m_window->workspace().actions()["flame"]->trigger();
        QTRY_VERIFY(dock->isVisible());
        open({"1f1b"});
        QTRY_VERIFY(!dock->isVisible());
        m_window->workspace().shown().showRun({with, 1});
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_VERIFY(dock->isVisible());
        // Asked for by hand it says why it is empty.
        open({"gpipe"});
        QTRY_VERIFY(!dock->isVisible());
        m_window->workspace().actions()["flame"]->trigger();
        QTRY_VERIFY(dock->isVisible());
    }

    // A run in memory has a name that can be changed; a name that is taken gets a number.
    void simulatedRunsAreRenamed()
    {
        RunLibrary* library = m_window->workspace().library();
        const RunRef first = library->addSimulated(WindowFixture::simulated("1f1b"));
        const RunRef second = library->addSimulated(WindowFixture::simulated("gpipe"));
        m_window->workspace().shown().showRun(second);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(m_window->workspace().actions()["renameRun"]->isEnabled());
        library->rename(second, QStringLiteral("my order"));
        QCOMPARE(m_window->workspace().runs()->info(second)->name, std::string("my order"));
        library->rename(first, QStringLiteral("my order"));
        QCOMPARE(m_window->workspace().runs()->info(first)->name, std::string("my order (2)"));
        m_window->workspace().shown().showAgain();
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_VERIFY2(m_window->windowTitle().contains(QStringLiteral("my order")), qPrintable(m_window->windowTitle()));
    }

    // Files over the window: it says what a drop would do.
    void aSignSaysWhatADropDoes()
    {
        QMimeData files;
        files.setUrls(
            {QUrl::fromLocalFile(QStringLiteral("/tmp/a.json")), QUrl::fromLocalFile(QStringLiteral("/tmp/b.json"))});
        QDragEnterEvent enter(QPoint(300, 300), Qt::CopyAction, &files, Qt::LeftButton, Qt::NoModifier);
        QCoreApplication::sendEvent(m_window.get(), &enter);
        QVERIFY(enter.isAccepted());
        auto* sign = m_window->findChild<QLabel*>(QStringLiteral("dropSign"));
        QVERIFY(sign != nullptr && sign->isVisible() && sign->text().contains(QStringLiteral("2 files")));
        QDragLeaveEvent leave;
        QCoreApplication::sendEvent(m_window.get(), &leave);
        QVERIFY(!sign->isVisible());
    }

    // While an edit makes the step shorter the axis stays, so that it looks so.
    void theAxisOfAnEditStays()
    {
        open({"gpipe"});
        const TimeRange before = m_window->workspace().viewState()->visible();
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        ScheduleEditor& editor = m_window->workspace().feature<OrderEditing>()->editor();
        const Nanos was = editor.figures().makespan;
        editor.replace(QStringLiteral("a shorter order"), *makeSchedule("zb-h1", Shape{4, 8, 0}));
        QVERIFY(editor.figures().makespan < was);
        QCOMPARE(m_window->workspace().viewState()->visible().end, before.end);
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().viewState()->leastEnd(), Nanos(0));
    }

    // What a note says of one run goes with it, and it moves nothing.
    void aNoteGoesWithItsRun()
    {
        open({"1f1b", "gpipe"});
        const QWidget* timeline = m_window->workspace().views().timeline;
        const QPoint place = timeline->mapTo(m_window.get(), QPoint(0, 0));
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(m_window->workspace().feature<OrderEditing>()->editor().move({1, 5}, 0));
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        Banner* banner = m_window->workspace().banner();
        QTRY_VERIFY(banner->isVisible() && banner->text().contains(QStringLiteral("still has a fault")));
        QCOMPARE(timeline->mapTo(m_window.get(), QPoint(0, 0)), place);
        QTest::qWait(50); // what the note is about is known
        m_window->workspace().shown().showRun(m_refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_VERIFY(!banner->isVisible());
    }
};

QTEST_MAIN(TestInspector)
#include "tst_inspector.moc"
