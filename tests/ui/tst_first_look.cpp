// A window's first ten minutes: no row widens a panel, keys go where they should, messages move nothing and disappear
// with their subject, small and large screens, the console's rows, the export's suffix, and one figure that is the same
// everywhere.
#include <algorithm>
#include <set>

#include <QBuffer>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QRegularExpression>
#include <QScopeGuard>
#include <QScrollBar>
#include <QSplitter>
#include <QStackedWidget>
#include <QSvgGenerator>
#include <QTableView>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <QXmlStreamReader>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/exchange/export_controller.h"
#include "app/ui/explain/gaps_controller.h"
#include "app/ui/explain/rows_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/screen_fit.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "widgets/compare/baseline_strip.h"
#include "widgets/console/sql_console.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/export_dialog.h"
#include "widgets/memory/memory_view.h"
#include "widgets/numbers.h"
#include "widgets/panel/side_panel.h"
#include "widgets/preferences/preferences.h"
#include "widgets/search/find_field.h"
#include "widgets/timeline/timeline_painter.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

namespace {

// Content beyond the right edge of the visible panel, or clipped in it.
QStringList tooWide(MainWindow& window)
{
    QWidget* page = window.workspace().room().panels()->currentWidget();
    if (auto* both = qobject_cast<SidePanel*>(page)) page = both->currentWidget();
    auto* column = qobject_cast<SectionColumn*>(page);
    if (column == nullptr) return {QStringLiteral("no panel of sections is shown")};
    QStringList found;
    const int room = column->viewport()->width();
    if (column->widget()->width() > room)
        found << QStringLiteral("the body is %1 wide in %2").arg(column->widget()->width()).arg(room);
    for (QWidget* child : column->widget()->findChildren<QWidget*>()) {
        if (!child->isVisibleTo(column->widget()) || internal(child) ||
            child->parentWidget()->inherits("QAbstractScrollArea") || child->width() == 0)
            continue;
        const int right = child->mapTo(column->widget(), QPoint(child->width(), 0)).x();
        if (right > room + 1) found << QStringLiteral("%1 ends at %2 of %3").arg(described(child)).arg(right).arg(room);
    }
    return found + clipped(column);
}

QString textsOf(const QByteArray& svg)
{
    QXmlStreamReader reader(svg);
    QStringList texts;
    while (!reader.atEnd())
        if (reader.readNext() == QXmlStreamReader::Characters && !reader.isWhitespace())
            texts << reader.text().toString().trimmed();
    return texts.join(QLatin1Char('\n'));
}

QString paintedTexts(const TimelineView& view, const Theme& theme)
{
    QByteArray svg;
    QBuffer buffer(&svg);
    buffer.open(QIODevice::WriteOnly);
    {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setSize(view.size());
        QPainter painter(&generator);
        view.paintTo(painter, QRectF(view.rect()), theme);
    }
    return textsOf(svg);
}

} // namespace

class TestFirstLook : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;

    void open(std::initializer_list<const char*> schedules, QSize size = {1400, 900})
    {
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("runs.stagewright", schedules)}, size));
        m_window->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_window.get()));
    }
    QTreeView* tree() const { return m_window->findChild<QTreeView*>(); }
    void clickRun(int row)
    {
        const QModelIndex run = tree()->model()->index(row, 0, tree()->model()->index(0, 0));
        QTest::mouseClick(tree()->viewport(), Qt::LeftButton, {}, tree()->visualRect(run).center());
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().shown().ref(), m_window->workspace().runs()->refAt(run));
        QTRY_VERIFY(tree()->hasFocus());
    }
    static void press(int key, Qt::KeyboardModifiers modifiers = {}) { WindowFixture::press(key, modifiers); }
    double rowHeight() const { return m_window->workspace().views().timeline->scene().rows.metrics.height; }
    void wheel(int notches, Qt::KeyboardModifiers modifiers)
    {
        TimelineView* view = m_window->workspace().views().timeline;
        const QPointF at(view->width() / 2.0, view->height() / 2.0);
        QWheelEvent event(at, view->mapToGlobal(at), {}, {0, 120 * notches}, Qt::NoButton, modifiers, Qt::NoScrollPhase,
                          false);
        QCoreApplication::sendEvent(view, &event);
    }

private slots:
    // Three recorded runs ship with the program: they open from the start page, and can be compared.
    void runsToLookAtShipWithTheProgram()
    {
        qputenv("XDG_DATA_HOME", m_fixture->dir.path().toUtf8());
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
        QPushButton* look = nullptr;
        for (QPushButton* button : m_window->findChildren<QPushButton*>())
            if (button->isVisible() && button->text().startsWith(QStringLiteral("Look at recorded runs")))
                look = button;
        QVERIFY(look != nullptr);
        look->click();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Run, 20000);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        const auto refs = m_window->workspace().runs()->refs();
        QCOMPARE(refs.size(), std::size_t(3));
        QStringList names;
        for (const RunRef& ref : refs) {
            const RunInfo* info = m_window->workspace().runs()->info(ref);
            QVERIFY(info->ranks == 4 && info->microbatches == 8 && info->steps >= 3);
            names << QString::fromStdString(info->scheduleName);
        }
        QCOMPARE(names, (QStringList{"gpipe", "1f1b", "zb-h1"}));
        QVERIFY(m_window->workspace().shown().view()->run->info.provenance == Provenance::Measured);
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[2]});
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Compare, 20000);
    }

    // A recording, an edit to recover and a message are cards over the views: the canvas stays where it is.
    void barsDoNotMoveTheCanvas()
    {
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("still.stagewright", {"1f1b"})}));
        const TimelineView* view = m_window->workspace().views().timeline;
        const QRect before(view->mapTo(m_window.get(), QPoint()), view->size());
        Banner* banner = m_window->workspace().banner();
        auto* bar = new QFrame(m_window->centralWidget());
        auto* inside = new QVBoxLayout(bar);
        inside->addWidget(new QLabel(QStringLiteral("An order was being edited"), bar));
        banner->carry(bar);
        bar->show();
        banner->showNote(QStringLiteral("A note"));
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(QRect(view->mapTo(m_window.get(), QPoint()), view->size()), before);
        QVERIFY(!bar->geometry().intersects(banner->geometry())); // one above the other
        QVERIFY(banner->geometry().bottom() < bar->geometry().top());
        bar->hide();
        QTRY_VERIFY(banner->geometry().bottom() > m_window->workspace().room().pages()->geometry().bottom() - 80);
        for (const char* name : {"RecordStrip", "RecoveryBar"}) // what is in the layout would move what is under it
            for (const QWidget* one : m_window->findChildren<QWidget*>())
                if (QLatin1String(one->metaObject()->className()).endsWith(QLatin1String(name)))
                    QVERIFY2(m_window->centralWidget()->layout()->indexOf(const_cast<QWidget*>(one)) < 0, name);
    }

    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        PreferenceStore::instance().reload();
    }
    void cleanup()
    {
        m_window.reset();
        m_fixture.reset();
    }

    void noRowWidensAPanel()
    {
        open({"1f1b", "zb-h1", "interleaved-1f1b"}, {1024, 700});
        const int least = m_window->workspace().room().panelColumn()->parentWidget()->minimumWidth();
        QStringList found;
        const auto look = [&](const char* what) {
            m_window->workspace().room().columns()->setSizes({0, 5000, 0});
            QTest::qWait(60);
            (void)QTest::qWaitFor([&] { return tooWide(*m_window).isEmpty(); }, 3000);
            for (const QString& one : tooWide(*m_window)) found << QLatin1String(what) + QStringLiteral(": ") + one;
            if (m_window->workspace().room().panelColumn()->parentWidget()->width() > least)
                found << QStringLiteral("%1: the panel is %2 wide")
                             .arg(QLatin1String(what))
                             .arg(m_window->workspace().room().panelColumn()->parentWidget()->width());
        };
        const auto refs = m_window->workspace().runs()->refs();
        for (const RunRef& ref : refs) {
            m_window->workspace().shown().showRun(ref);
            QVERIFY(WindowFixture::settle(*m_window));
            m_window->workspace().viewState()->select({0, 9});
            look("run");
            const BubbleReport& report = m_window->workspace().shown().view()->figures->bubbles;
            std::set<IdleCause> seen;
            for (const int gap : gapsByLength(report)) {
                if (!seen.insert(report.gaps[static_cast<std::size_t>(gap)].cause).second) continue;
                m_window->workspace().feature<GapsController>()->chooseGap(gap);
                QVERIFY(WindowFixture::settle(*m_window));
                look("gap");
            }
            QVERIFY(!seen.empty());
        }
        m_window->workspace().feature<CompareController>()->setBaseline(refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().shown().showRun(refs[0]);
        QVERIFY(WindowFixture::settle(*m_window));
        look("against a baseline");
        for (const ActionId id : {"whatIf", "loweredView"}) {
            m_window->workspace().actions()[id]->trigger();
            QVERIFY(WindowFixture::settle(*m_window));
            look("tool");
        }
        m_window->workspace().shown().setTool(Shown::Tool::None);
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        look("compare");
        m_window->workspace().shown().showRun(refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        look("edit");
        QVERIFY2(found.isEmpty(), qPrintable(QLatin1Char('\n') + found.join(QLatin1Char('\n'))));
    }

    void theTimelinesKeysWorkAfterAClickOnARun()
    {
        open({"1f1b", "zb-h1", "interleaved-1f1b"});
        clickRun(1);
        const RunRef shown = m_window->workspace().shown().ref();
        WindowFixture::walkByKeys(*m_window);
        // names of runs begin with them
        for (const char letter : {'i', 'z', '1'}) QTest::keyClick(QApplication::focusWidget(), letter);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().shown().ref(), shown);
        QVERIFY(tree()->hasFocus());
        press(Qt::Key_Down); // the list keeps its arrows
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(!(m_window->workspace().shown().ref() == shown));
        press(Qt::Key_G); // actions of the window as well
        QVERIFY(m_window->workspace().feature<GapsController>()->chosenGap() >= 0);
    }

    void lettersOfABoxDoNotChangeTheStep()
    {
        open({"1f1b"});
        for (auto* box : m_window->findChildren<QComboBox*>()) {
            if (!box->isVisible() || !box->isEnabled() || box->count() < 2) continue;
            box->setFocus();
            const int before = box->currentIndex();
            for (const char letter : {'s', 'a', 'c'}) QTest::keyClick(box, letter);
            QCOMPARE(box->currentIndex(), before);
        }
    }

    void runsAreFoundByAField()
    {
        open({"1f1b", "zb-h1", "interleaved-1f1b"});
        auto* field = m_window->findChild<QLineEdit*>(QStringLiteral("findRun"));
        QVERIFY(field != nullptr && field->isVisible());
        field->setFocus();
        QTRY_VERIFY(field->hasFocus());
        const TimeRange before = m_window->workspace().viewState()->visible();
        QTest::keyClicks(field, QStringLiteral("inter"));
        QCOMPARE(field->text(), QStringLiteral("inter"));
        QCOMPARE(m_window->workspace().viewState()->visible(), before);
        const QModelIndex file = tree()->model()->index(0, 0);
        int shown = 0;
        for (int row = 0; row < 3; ++row) shown += tree()->isRowHidden(row, file) ? 0 : 1;
        QCOMPARE(shown, 1);
        press(Qt::Key_Return);
        QVERIFY(WindowFixture::settle(*m_window));
        QCOMPARE(m_window->workspace().shown().ref(), m_window->workspace().runs()->refs()[2]);
        field->setFocus();
        press(Qt::Key_Escape);
        QVERIFY(field->text().isEmpty());
        for (int row = 0; row < 3; ++row) QVERIFY(!tree()->isRowHidden(row, file));
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
    }

    // The run that is shown is in view in the list, however many there are.
    void theShownRunIsInTheList()
    {
        const QString path = m_fixture->file("many_runs.stagewright", {"1f1b"});
        {
            auto file = RunFile::open(path.toStdString(), OpenMode::Write);
            QVERIFY(file.has_value());
            for (int i = 0; i < 30; ++i) QVERIFY((*file)->add(WindowFixture::simulated("gpipe", 2, 2)).has_value());
        }
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::open(*m_window, {path}));
        const RunRef last = m_window->workspace().runs()->refs().back();
        m_window->workspace().shown().showRun(last);
        QVERIFY(WindowFixture::settle(*m_window));
        QTreeView* tree = m_window->workspace().views().runs->tree();
        QVERIFY(tree->viewport()->rect().contains(tree->visualRect(tree->currentIndex()).center()));
        QVERIFY(tree->verticalScrollBar()->value() > 0);
    }

    void escapeClearsTheSelectionFirst()
    {
        open({"1f1b", "zb-h1"});
        clickRun(1);
        m_window->workspace().viewState()->select({0, 9});
        m_window->workspace().banner()->showError(QStringLiteral("something is wrong"), QStringLiteral("mend it"));
        press(Qt::Key_Escape);
        QVERIFY(!m_window->workspace().viewState()->selected().valid());
        QVERIFY(!m_window->workspace().banner()->text().isEmpty());
        press(Qt::Key_Escape);
        QVERIFY(m_window->workspace().banner()->text().isEmpty());
    }

    void returnPressesTheFocusedButton()
    {
        open({"1f1b"});
        QAction* memory = m_window->workspace().actions()["memory"];
        QToolButton* tool = nullptr;
        for (auto* one : m_window->findChildren<QToolButton*>())
            if (one->defaultAction() == memory) tool = one;
        QVERIFY(tool != nullptr);
        const bool before = memory->isChecked();
        tool->setFocus();
        press(Qt::Key_Return);
        QCOMPARE(memory->isChecked(), !before);
        m_window->workspace().banner()->showError(QStringLiteral("something is wrong"), QStringLiteral("mend it"));
        auto* dismiss = m_window->workspace().banner()->findChild<QPushButton*>(QStringLiteral("flat"));
        QVERIFY(dismiss != nullptr);
        dismiss->setFocus();
        press(Qt::Key_Enter);
        QVERIFY(m_window->workspace().banner()->text().isEmpty());
    }

    // A button that is disabled by its own click would hand the keys to its neighbour, and Return would press that.
    void aClickInTheEditPanelLeavesTheKeys()
    {
        open({"1f1b"});
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().views().timeline->setFocus();
        m_window->workspace().feature<EditController>()->selection().choose({{0, 4}});
        QPushButton* split = nullptr;
        for (auto* button : m_window->workspace().feature<EditController>()->panel()->findChildren<QPushButton*>())
            if (button->text() == QLatin1String("Split B")) split = button;
        QVERIFY(split != nullptr && split->isEnabled());
        QTest::mouseClick(split, Qt::LeftButton);
        QVERIFY(m_window->workspace().feature<OrderEditing>()->editor().changed());
        QVERIFY(!split->isEnabled());
        QVERIFY(qobject_cast<QAbstractButton*>(QApplication::focusWidget()) == nullptr);
        const Schedule order = m_window->workspace().feature<OrderEditing>()->editor().schedule();
        press(Qt::Key_Return);
        press(Qt::Key_Space);
        QVERIFY(m_window->workspace().feature<OrderEditing>()->editor().schedule() == order);
        press(Qt::Key_Period); // the timeline's keys
        QVERIFY(m_window->workspace().viewState()->selected().valid());
        m_window->workspace().feature<OrderEditing>()->editor().revert();
        m_window->workspace().feature<OrderEditing>()->leaveEdit();
    }

    void aButtonThatDisappearsLeavesTheFocusToTheTimeline()
    {
        open({"1f1b", "gpipe", "zb-h1"});
        auto* field = m_window->findChild<QLineEdit*>(QStringLiteral("findRun"));
        QVERIFY(field != nullptr && field->isVisible());
        QPushButton button(field->parentWidget());
        QWidget::setTabOrder(&button, field);
        button.show();
        button.setFocus();
        QTRY_VERIFY(button.hasFocus());
        button.hide();
        QTRY_VERIFY(!field->hasFocus());
        QVERIFY(m_window->workspace().views().timeline->hasFocus());
    }

    void aNoteAsksForItsText()
    {
        open({"1f1b"});
        m_window->workspace().views().timeline->setFocus();
        m_window->workspace().viewState()->select({0, 9});
        press(Qt::Key_M);
        QLineEdit* field = m_window->workspace().feature<NotesController>()->field();
        QVERIFY(field != nullptr && field->isVisible());
        QTRY_VERIFY(field->hasFocus());
        QVERIFY(m_window->workspace().views().timeline->rect().contains(field->geometry()));
        QTest::keyClicks(field, QStringLiteral("slow here"));
        press(Qt::Key_Return);
        QVERIFY(m_window->workspace().feature<NotesController>()->field() == nullptr);
        QVERIFY(m_window->workspace().feature<NotesController>()->passing().has_value());
        QCOMPARE(QString::fromStdString(m_window->workspace().feature<NotesController>()->passing()->text),
                 QStringLiteral("slow here"));
        QTRY_VERIFY(m_window->workspace().views().timeline->hasFocus());
        press(Qt::Key_M);
        QTRY_VERIFY(m_window->workspace().feature<NotesController>()->field() != nullptr &&
                    m_window->workspace().feature<NotesController>()->field()->hasFocus());
        press(Qt::Key_Escape);
        QVERIFY(m_window->workspace().feature<NotesController>()->field() == nullptr &&
                !m_window->workspace().feature<NotesController>()->passing().has_value());
    }

    void aBannerMovesNothingAndGoesWithItsSubject()
    {
        open({"1f1b", "zb-h1"});
        const auto refs = m_window->workspace().runs()->refs();
        const QRect timeline(m_window->workspace().views().timeline->mapTo(m_window.get(), QPoint()),
                             m_window->workspace().views().timeline->size());
        m_window->workspace().banner()->showError(QStringLiteral("something is wrong with this run"),
                                                  QStringLiteral("mend it"));
        QTest::qWait(50);
        QCOMPARE(QRect(m_window->workspace().views().timeline->mapTo(m_window.get(), QPoint()),
                       m_window->workspace().views().timeline->size()),
                 timeline);
        const QRect banner(m_window->workspace().banner()->mapTo(m_window.get(), QPoint()),
                           m_window->workspace().banner()->size());
        QVERIFY(m_window->rect().contains(banner) && m_window->workspace().banner()->isVisible());
        QVERIFY(banner.top() > timeline.top() + 60); // the ruler and the first ranks stay visible
        // and so do the legend and, where it is all that memory has, the heading above it
        const int legend = m_window->workspace().views().legend->mapTo(m_window.get(), QPoint()).y();
        QVERIFY2(banner.bottom() < legend - 24, qPrintable(QString::number(legend - banner.bottom())));
        m_window->workspace().shown().showRun(refs[0]); // the same one
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY(!m_window->workspace().banner()->text().isEmpty());
        m_window->workspace().shown().showRun(refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
        m_window->workspace().banner()->showNote(QStringLiteral("about this run"));
        QTest::qWait(10);
        m_window->workspace().feature<OrderEditing>()->enterEdit();
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
    }

    void aFileThatFailsIsSaidBesideTheOneThatOpens()
    {
        open({"1f1b"});
        QFile broken(m_fixture->dir.filePath(QStringLiteral("broken.stagewright")));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write("not a run file at all");
        broken.close();
        m_window->workspace().feature<FileOpening>()->openFiles(
            {broken.fileName(), m_fixture->file("more.stagewright", {"zb-h1"})});
        QTRY_VERIFY(m_window->workspace().runs()->refs().size() == 2 && m_window->workspace().settled());
        QVERIFY2(m_window->workspace().banner()->text().contains(QStringLiteral("broken")),
                 qPrintable(m_window->workspace().banner()->text()));
        QTest::qWait(50);
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().shown().showRun(refs[m_window->workspace().shown().ref() == refs[0] ? 1 : 0]);
        QVERIFY(WindowFixture::settle(*m_window));
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
    }

    void anExpectedRefusalIsNoError()
    {
        open({"1f1b", "zb-h1"});
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        m_window->workspace().actions()["alignAtOp"]->trigger(); // no op is selected
        QVERIFY(!m_window->workspace().banner()->text().isEmpty() && !m_window->workspace().banner()->isError());
        m_window->workspace().banner()->showError(QStringLiteral("a disk is full"), QString());
        QVERIFY(m_window->workspace().banner()->isError());
    }

    // A window manager's frame counts: left 3, top 25, right 3 and bottom 6 here.
    void theFirstWindowFitsItsScreenWithItsFrame_data()
    {
        QTest::addColumn<QRect>("room");
        QTest::addColumn<QPoint>("at");
        QTest::newRow("small") << QRect(0, 0, 1024, 700) << QPoint(0, 0);
        QTest::newRow("beside a bar") << QRect(60, 30, 1220, 690) << QPoint(0, 0);
        QTest::newRow("as large as the window") << QRect(0, 0, 1600, 1000) << QPoint(0, 0);
        QTest::newRow("too far right") << QRect(0, 0, 2560, 1440) << QPoint(1400, 900);
        QTest::newRow("roomy") << QRect(0, 0, 2560, 1440) << QPoint(300, 200);
    }
    void theFirstWindowFitsItsScreenWithItsFrame()
    {
        QFETCH(QRect, room);
        QFETCH(QPoint, at);
        const QSize frame(6, 31), least(800, 500);
        const QSize first = firstSize(QSize(1600, 1000), room.size());
        QVERIFY(first.width() <= room.width() && first.height() <= room.height());
        for (const QSize window : {first, QSize(1600, 1000)}) { // or larger than asked
            const QRect fits = keptOnScreen(QRect(at, window + frame), window, room, least);
            QVERIFY(room.contains(QRect(fits.topLeft(), fits.size() + frame)));
            const QSize most = (room.size() - frame).boundedTo(window);
            QCOMPARE(fits.size(), most); // no smaller than needed
            if (room.contains(QRect(at, window + frame))) QCOMPARE(fits.topLeft(), at);
        }
        // What can't be made smaller starts where its title can be reached.
        const QRect large =
            keptOnScreen(QRect(QPoint(-50, -50), QSize(900, 800) + frame), {900, 800}, {0, 0, 640, 480}, least);
        QCOMPARE(large, QRect(QPoint(0, 0), least));
    }

    // A long list of ranks does not push the causes out of sight.
    void manyRanksLeaveRoomForTheCauses()
    {
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("many.stagewright", {"1f1b"}, 48, 48)}));
        const QString text = m_window->workspace().views().side->plainText();
        QVERIFY2(text.contains(QStringLiteral("Ranks 0 to ")), qPrintable(text));
        QVERIFY(text.contains(QStringLiteral("Idle time by cause")));
    }

    // No heading without rows: a range without a gap has no longest one.
    void aRangeWithoutGapsNamesNone()
    {
        open({"1f1b"});
        QVERIFY(m_window->workspace().views().side->plainText().contains(QStringLiteral("Longest gaps")));
        int without = 0;
        for (Nanos begin = 12 * rankShare; begin < 18 * rankShare; begin += rankShare / 4) {
            m_window->workspace().viewState()->setAreas({{{begin, begin + rankShare / 5}, 0, 3}});
            QTRY_VERIFY_WITH_TIMEOUT(
                m_window->workspace().settled() &&
                    m_window->workspace().views().side->plainText().contains(QStringLiteral("Filtered")),
                20000);
            const QString text = m_window->workspace().views().side->plainText();
            const bool heading = text.contains(QStringLiteral("Longest gaps"));
            QCOMPARE(heading, text.contains(QRegularExpression(QStringLiteral("Rank \\d+, (before|at)"))));
            without += heading ? 0 : 1;
        }
        QVERIFY(without > 0);
    }

    void fitsASmallScreen()
    {
        open({"1f1b", "zb-h1"}, {1024, 700});
        QCOMPARE(m_window->size(), QSize(1024, 700));
        QVERIFY(m_window->minimumSizeHint().width() <= 1024 && m_window->minimumSizeHint().height() <= 700);
        QLineEdit* find = m_window->workspace().views().find;
        QVERIFY(find->isVisible() && find->width() >= 150);
        QVERIFY(m_window->rect().contains(QRect(find->mapTo(m_window.get(), QPoint()), find->size())));
        find->setFocus();
        QTest::keyClicks(find, QStringLiteral("2F5"));
        press(Qt::Key_Return);
        QVERIFY(m_window->workspace().viewState()->selected().valid());
        (void)QTest::qWaitFor([&] { return clipped(m_window.get()).isEmpty(); }, 5000);
        QVERIFY2(clipped(m_window.get()).isEmpty(), qPrintable(clipped(m_window.get()).join(QLatin1Char('\n'))));
        // What has no room is behind a button that shows its arrow.
        auto* more = m_window->findChild<QToolButton*>(QStringLiteral("qt_toolbar_ext_button"));
        QVERIFY(more != nullptr && more->isVisible());
        const QImage picture = more->grab().toImage();
        int ink = 0;
        for (int y = 4; y < picture.height() - 4; ++y)
            for (int x = 2; x < picture.width() - 2; ++x)
                ink += qAbs(qGray(picture.pixel(x, y)) - qGray(picture.pixel(x, 3))) > 40 ? 1 : 0;
        QVERIFY2(ink >= 8, qPrintable(QString::number(ink)));
        // The cross that clears a field is in its middle.
        for (QToolButton* cross : find->findChildren<QToolButton*>())
            if (cross->isVisible())
                QVERIFY2(qAbs(cross->geometry().center().y() - find->rect().center().y()) <= 1,
                         qPrintable(QString::number(cross->geometry().center().y())));
        // Narrow gutter: more of the width is time, and it still names the ranks.
        QVERIFY(m_window->workspace().views().timeline->scene().axis.width >
                0.7 * m_window->workspace().views().timeline->width());
        QVERIFY(paintedTexts(*m_window->workspace().views().timeline, m_window->workspace().theme())
                    .contains(QStringLiteral("Rank 3")));
    }

    // Beside the start page, which is larger than what they leave of a small screen.
    void noDockMakesTheWindowLarger()
    {
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::show(*m_window));
        m_window->resize(1024, 700);
        int shown = 0;
        for (QDockWidget* dock : m_window->findChildren<QDockWidget*>()) {
            dock->show();
            QVERIFY(WindowFixture::settle(*m_window));
            QCoreApplication::processEvents();
            QVERIFY2(m_window->size() == QSize(1024, 700),
                     qPrintable(QStringLiteral("%1: %2").arg(dock->objectName()).arg(m_window->height())));
            shown += dock->isVisible() ? 1 : 0;
            dock->hide();
        }
        QVERIFY(shown >= 5);
    }

    void rowsGrowWithTheScreenAndAreRemembered()
    {
        open({"1f1b", "zb-h1"}, {1600, 1000});
        QCOMPARE(rowHeight(), 48.0);
        m_window->resize(2560, 1440);
        QTRY_VERIFY(rowHeight() > 64);
        // all rows visible
        QVERIFY(m_window->workspace().views().timeline->scene().contentHeight() <=
                m_window->workspace().views().timeline->height() + 1);
        m_window->resize(1600, 1000);
        QTRY_COMPARE(rowHeight(), 48.0);
        const TimeRange visible = m_window->workspace().viewState()->visible();
        wheel(2, Qt::ControlModifier | Qt::ShiftModifier);
        const double taller = rowHeight();
        QVERIFY(taller > 55);
        QCOMPARE(m_window->workspace().viewState()->visible(), visible); // it does not zoom
        m_window->workspace().actions()["rowsTaller"]->trigger();
        QVERIFY(rowHeight() > taller);
        m_window->workspace().actions()["rowsLower"]->trigger();
        QCOMPARE(rowHeight(), taller);
        QVERIFY(!m_window->workspace().actions()["rowsAutomatic"]->isChecked());
        m_window.reset();
        open({"1f1b", "zb-h1"}, {1600, 1000});
        QTRY_COMPARE(rowHeight(), taller);
        m_window->workspace().actions()["rowsAutomatic"]->trigger();
        QCOMPARE(rowHeight(), 48.0);
    }

    void kindsAreHatchedOnScreenAsInPictures()
    {
        open({"zb-h1"});
        QVERIFY(!m_window->workspace().theme().hatched());
        Appearance::choose(ThemeChoice::HighContrast); // where colours are hard to distinguish
        QVERIFY(m_window->workspace().theme().hatched() && m_window->workspace().actions()["hatchKinds"]->isChecked());
        Appearance::choose(ThemeChoice::Light);
        QVERIFY(!m_window->workspace().theme().hatched());
        const Timeline& timeline = *m_window->workspace().views().timeline->panels().front()->timeline;
        const auto inks = [&](const char* op) { // colours of one slice, left of its label
            const QRect rect = m_window->workspace()
                                   .views()
                                   .timeline->rectOf({0, WindowFixture::spanOf(timeline, op)})
                                   ->toRect()
                                   .adjusted(2, 2, -2, -2);
            const QImage image = m_window->workspace()
                                     .views()
                                     .timeline->grab(QRect(rect.topLeft(), QSize(rect.width() / 4, rect.height())))
                                     .toImage();
            std::set<QRgb> colours;
            for (int y = 0; y < image.height(); ++y)
                for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, y));
            return colours.size();
        };
        const auto forward = inks("1F3"), input = inks("1I3"), weight = inks("1W3");
        m_window->workspace().actions()["hatchKinds"]->trigger();
        QVERIFY(m_window->workspace().theme().hatched());
        QCOMPARE(PreferenceStore::instance().value().hatch, HatchChoice::Always);
        QTest::qWait(150);
        QCOMPARE(inks("1F3"), forward);
        QVERIFY(inks("1I3") > input);
        QVERIFY(inks("1W3") > weight);
        Appearance::choose(ThemeChoice::Dark);
        QVERIFY(m_window->workspace().theme().hatched() && m_window->workspace().theme().dark);
    }

    void theConsoleOpensWithTenRows_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::newRow("small") << QSize(1024, 700);
        QTest::newRow("usual") << QSize(1400, 900);
    }
    void theConsoleOpensWithTenRows()
    {
        QFETCH(QSize, size);
        open({"1f1b"}, size);
        m_window->workspace().feature<SqlController>()->open();
        m_window->workspace().feature<SqlController>()->ask(
            QStringLiteral("SELECT rank, kind, duration_ns FROM spans LIMIT 40"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().settled() &&
                                     !m_window->workspace().feature<SqlController>()->console()->running(),
                                 30000);
        auto* table = m_window->findChild<QTableView*>(QStringLiteral("queryTable"));
        QTRY_VERIFY2(table->viewport()->height() >= 10 * table->rowHeight(0),
                     qPrintable(QString::number(table->viewport()->height())));
        QVERIFY(m_window->workspace().views().timeline->isVisible() &&
                m_window->workspace().views().timeline->height() >= 100);
        QCOMPARE(m_window->size(), size);
    }

    // A desktop's icons (a red cross on Cancel) are of another hand than the rest.
    void buttonsOfDialogsHaveNoIcons()
    {
        open({"1f1b"});
        m_window->workspace().actions()["exportPicture"]->trigger();
        QTRY_VERIFY(m_window->findChild<ExportDialog*>() != nullptr);
        auto* dialog = m_window->findChild<ExportDialog*>();
        for (const QPushButton* button : dialog->findChildren<QPushButton*>())
            QVERIFY2(button->icon().isNull(), qPrintable(button->text()));
        const QDialogButtonBox standard(QDialogButtonBox::Ok | QDialogButtonBox::Cancel, dialog);
        for (const QAbstractButton* button : standard.buttons())
            QVERIFY2(button->icon().isNull(), qPrintable(button->text()));
        dialog->close();
    }

    void theSuffixFollowsTheFormat()
    {
        open({"1f1b"});
        ExportDialog* dialog = m_window->workspace().feature<ExportController>()->openDialog();
        QVERIFY(dialog != nullptr);
        dialog->setKind(PictureKind::Svg);
        PictureStyle style = dialog->style();
        style.look = PictureStyle::Look::Paper;
        style.widthMm = 123;
        style.without.clear();
        dialog->setStyle(style);
        PictureStyle nothing = style;
        for (const PicturePart& part : m_window->workspace().feature<ExportController>()->picture().parts)
            if (part.role == PicturePart::Role::View) nothing.without << part.name;
        dialog->setStyle(nothing); // a failed write leaves the dialog open
        m_window->workspace().feature<ExportController>()->savePicture(
            dialog, m_fixture->dir.filePath(QStringLiteral("picture.png")));
        QVERIFY(dialog->isVisible() && m_window->workspace().banner()->text().isEmpty());
        QVERIFY2(dialog->noteText().contains(QStringLiteral("Nothing to draw")), qPrintable(dialog->noteText()));
        QCOMPARE(dialog->style().widthMm, 123.0);
        dialog->setStyle(style);
        m_window->workspace().feature<ExportController>()->savePicture(
            dialog, m_fixture->dir.filePath(QStringLiteral("picture.png")));
        QTRY_VERIFY(QFileInfo::exists(m_fixture->dir.filePath(QStringLiteral("picture.svg"))));
        QVERIFY(!QFileInfo::exists(m_fixture->dir.filePath(QStringLiteral("picture.png"))));
        QFile file(m_fixture->dir.filePath(QStringLiteral("picture.svg")));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const auto width =
            QRegularExpression(QStringLiteral("<svg width=\"([0-9.]+)mm\"")).match(QString::fromUtf8(file.readAll()));
        QVERIFY(width.hasMatch() && std::abs(width.captured(1).toDouble() - 123) < 0.1);
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
    }

    void aPictureOfOneColumnIsAsGoodAsOneOfTwo()
    {
        open({"1f1b", "zb-h1"});
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        const auto labels = [&](double millimetres) { // of the ops: the charts' numbers are of other axes
            PictureStyle style;
            style.look = PictureStyle::Look::Paper;
            style.without << QStringLiteral("Memory");
            style.widthMm = millimetres;
            const QStringList lines =
                textsOf(*pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style,
                                      PictureKind::Svg))
                    .split(QLatin1Char('\n'));
            return std::count_if(lines.begin(), lines.end(),
                                 [](const QString& line) { return line.size() == 1 && line.front().isDigit(); });
        };
        const auto two = labels(twoColumnsMm), one = labels(oneColumnMm);
        QVERIFY2(one * 10 >= two * 9, qPrintable(QStringLiteral("%1 labels instead of %2").arg(one).arg(two)));
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        style.widthMm = oneColumnMm;
        const QSizeF size = pictureMillimetres(m_window->workspace().feature<ExportController>()->picture(), style);
        QVERIFY2(size.height() <= 90, qPrintable(QString::number(size.height())));
        const QString texts = textsOf(
            *pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style, PictureKind::Svg));
        for (const char* text : {"Rank 0", "Rank 3", "1F1B", "ZB-H1"})
            QVERIFY2(texts.contains(QLatin1String(text)), text);
        QVERIFY2(!texts.contains(QChar(0x2026)), qPrintable(texts)); // nothing is cut
    }

    // Whether a narrow op has its number depends on its width, not on which digits it is of.
    void everyNumberOfARowOrNone()
    {
        open({"1f1b"});
        qsizetype most = 0;
        for (int millimetres = 60; millimetres <= 180; millimetres += 6) {
            PictureStyle style;
            style.look = PictureStyle::Look::Paper;
            style.without << QStringLiteral("Memory");
            style.widthMm = millimetres;
            const QStringList lines =
                textsOf(*pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style,
                                      PictureKind::Svg))
                    .split(QLatin1Char('\n'));
            const auto ones = lines.count(QStringLiteral("1"));
            // the ruler has neither; a rank's op may be a pixel wider than another's, not those of all four ranks
            for (const char* other : {"3", "7"})
                QVERIFY2(std::abs(lines.count(QLatin1String(other)) - ones) < 4,
                         qPrintable(lines.join(QLatin1Char(' '))));
            most = std::max(most, ones);
        }
        QCOMPARE(most, 8); // F and B of each rank, where there is room
    }

    // The labels of the ruler are equally far apart, at any zoom.
    void theRulerHasNoHoles()
    {
        open({"1f1b"});
        const TimelineView& view = *m_window->workspace().views().timeline;
        ViewState& state = *m_window->workspace().viewState();
        const Nanos end = state.extent().end;
        int labels = 0;
        for (Nanos part = end; part > end / 3000; part = part * 4 / 5) {
            state.setVisible({end - part, end - part + part * 9 / 10});
            QByteArray bytes;
            QBuffer buffer(&bytes);
            QVERIFY(buffer.open(QIODevice::WriteOnly));
            QSvgGenerator generator;
            generator.setOutputDevice(&buffer);
            generator.setViewBox(view.rect());
            QPainter painter(&generator);
            paintRulerOf(painter, view.scene(), Theme::light());
            painter.end();
            std::vector<double> values;
            for (const QString& line : textsOf(bytes).split(QLatin1Char('\n'))) {
                bool number = false;
                const double value =
                    QString(line.section(QLatin1Char(' '), 0, 0)).remove(QLatin1Char(',')).toDouble(&number);
                if (number) values.push_back(value);
            }
            QVERIFY(values.size() >= 2);
            for (std::size_t i = 2; i < values.size(); ++i)
                QVERIFY2(std::abs((values[i] - values[i - 1]) - (values[1] - values[0])) < 1e-6 * (1 + values[i]),
                         qPrintable(textsOf(bytes)));
            labels += static_cast<int>(values.size());
        }
        QVERIFY(labels > 100);
    }

    // No entry of the legend is lost at any width: it takes as many lines as it needs, and has their height.
    void theLegendIsWholeAtAnyWidth()
    {
        open({"1f1b", "zb-h1"});
        Legend* legend = m_window->workspace().views().legend;
        const QStringList entries = legend->accessibleDescription().split(QStringLiteral(", "));
        QVERIFY(entries.size() >= 5);
        for (int width = 240; width <= 1700; width += 20) {
            legend->setFixedWidth(width);
            QCOMPARE(legend->heightFor(width), static_cast<double>(legend->minimumHeight()));
            QByteArray bytes;
            QBuffer buffer(&bytes);
            QVERIFY(buffer.open(QIODevice::WriteOnly));
            QSvgGenerator generator;
            generator.setOutputDevice(&buffer);
            const QSize size(width, static_cast<int>(legend->heightFor(width)));
            generator.setViewBox(QRect(QPoint(), size));
            QPainter painter(&generator);
            legend->paintTo(painter, QRectF(QPointF(), size), Theme::light());
            painter.end();
            const QString said = textsOf(bytes);
            for (const QString& entry : entries)
                QVERIFY2(said.contains(entry), qPrintable(QStringLiteral("%1 at %2").arg(entry).arg(width)));
        }
    }

    // Every rank's memory is whole in a picture, however low the view on screen is, or the picture says how many are not
    // in it.
    void aPictureHasEveryRanksMemory()
    {
        open({"dualpipev", "zbv"}, {1200, 720});
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        style.widthMm = twoColumnsMm;
        const auto texts = [&] {
            return textsOf(
                *pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style, PictureKind::Svg));
        };
        const QString said = texts();
        for (int rank = 0; rank < 4; ++rank) // twice on the timelines, once in the charts
            QVERIFY2(said.count(QStringLiteral("Rank %1").arg(rank)) >= 3, qPrintable(said));
        QVERIFY2(!said.contains(QStringLiteral("fullest")), qPrintable(said));
        MemoryView* memory = m_window->workspace().views().memory;
        QVERIFY(memory->height() < memory->paintedHeight()); // on screen it scrolls
        const PictureContent content = m_window->workspace().feature<ExportController>()->picture();
        QVERIFY(content.parts[1].height(1000) >= memory->paintedHeight());
        QVERIFY(memory->paintedHeight() >= 4 * 60);
        // A long legend takes none of them away in one column.
        style.widthMm = oneColumnMm;
        for (const RunRef& ref : refs) {
            m_window->workspace().shown().showRun(ref);
            QVERIFY(WindowFixture::settle(*m_window));
            const QString one = texts();
            for (int rank = 0; rank < 4; ++rank)
                QVERIFY2(one.count(QStringLiteral("Rank %1").arg(rank)) == 2, qPrintable(one));
            QVERIFY2(!one.contains(QStringLiteral("fullest")), qPrintable(one));
        }
    }

    // All of three runs are named, each by its letter, and the charts name those that they are of.
    void aPictureOfThreeRunsNamesEach()
    {
        open({"1f1b", "zb-h1", "gpipe"});
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1], refs[2]});
        QVERIFY(WindowFixture::settle(*m_window));
        for (const double width : {oneColumnMm, twoColumnsMm}) {
            PictureStyle style;
            style.look = PictureStyle::Look::Paper;
            style.widthMm = width;
            const QString said = textsOf(
                *pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style, PictureKind::Svg));
            for (const char* text : {"A: 1F1B", "B: ZB-H1", "C: GPipe"})
                QVERIFY2(said.contains(QLatin1String(text)), qPrintable(said));
            QVERIFY2(said.contains(QLatin1String(width == oneColumnMm ? "solid C, dashed A" : "solid = C (GPipe)")),
                     qPrintable(said));
        }
    }

    // The peaks of all charts have one form: with the unit or without.
    void peaksOfAPictureHaveOneForm()
    {
        open({"1f1b"}); // rank 3 holds one microbatch
        PictureStyle style;
        style.look = PictureStyle::Look::Paper;
        for (const double width : {oneColumnMm, twoColumnsMm}) {
            style.widthMm = width;
            const QString said = textsOf(
                *pictureBytes(m_window->workspace().feature<ExportController>()->picture(), style, PictureKind::Svg));
            const QStringList lines = said.split(QLatin1Char('\n'));
            const auto form = [&](const QString& number, const QString& unit) {
                return lines.contains(number + QLatin1Char(' ') + unit)                             ? 1
                       : lines.contains(QStringLiteral("peak ") + number + QLatin1Char(' ') + unit) ? 2
                                                                                                    : 0;
            };
            QVERIFY2(form(QStringLiteral("1"), QStringLiteral("microbatch")) ==
                         form(QStringLiteral("4"), QStringLiteral("microbatches")),
                     qPrintable(said));
        }
    }

    void aPictureOfManyRanksSaysWhatIsLeftOut()
    {
        m_window = std::make_unique<MainWindow>();
        QVERIFY(WindowFixture::open(*m_window, {m_fixture->file("many.stagewright", {"1f1b"}, 20, 20)}));
        static const QRegularExpression left(QStringLiteral("the ([0-9]+ )?fullest of 20 ranks"));
        const auto leftOut = [&](double millimetres) {
            PictureStyle paper;
            paper.look = PictureStyle::Look::Paper;
            paper.widthMm = millimetres;
            return left.match(textsOf(
                *pictureBytes(m_window->workspace().feature<ExportController>()->picture(), paper, PictureKind::Svg)));
        };
        QVERIFY(!leftOut(twoColumnsMm).hasMatch()); // there all have room
        QVERIFY(leftOut(oneColumnMm).hasMatch());
    }

    void aChangeIsTheSameEverywhere()
    {
        open({"1f1b", "zb-h1"});
        const auto refs = m_window->workspace().runs()->refs();
        m_window->workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        QVERIFY(WindowFixture::settle(*m_window));
        const auto& metrics = m_window->workspace().shown().comparison()->metrics;
        const auto time = std::find_if(metrics.begin(), metrics.end(),
                                       [](const MetricDelta& one) { return one.key == "makespan_ns"; });
        QVERIFY(time != metrics.end());
        const QString change = changeText(time->a, time->b);
        QVERIFY2(change.startsWith(QChar(0x2212)) && change.endsWith(QStringLiteral(" %")), qPrintable(change));
        QStringList texts;
        for (const QLabel* label : m_window->workspace().feature<CompareController>()->panel()->findChildren<QLabel*>())
            texts << label->text();
        QVERIFY2(texts.contains(change), qPrintable(texts.join(QLatin1Char('\n'))));
        const QString painted = paintedTexts(*m_window->workspace().views().timeline, m_window->workspace().theme());
        QVERIFY2(painted.contains(change), qPrintable(painted));
        m_window->workspace().feature<CompareController>()->setBaseline(refs[0]);
        m_window->workspace().shown().showRun(refs[1]);
        QVERIFY(WindowFixture::settle(*m_window));
        QTRY_VERIFY2(m_window->findChild<BaselineStrip*>()->plainText().contains(change),
                     qPrintable(m_window->findChild<BaselineStrip*>()->plainText()));
        QTRY_VERIFY2(m_window->workspace().views().side->plainText().contains(change),
                     qPrintable(m_window->workspace().views().side->plainText()));
    }

    void countsAreInTheRightNumber()
    {
        const auto ops = [](qint64 count) {
            return countText(count, QStringLiteral("1 op"), QStringLiteral("%L1 ops"));
        };
        QCOMPARE(ops(0), QStringLiteral("0 ops"));
        QCOMPARE(ops(1), QStringLiteral("1 op"));
        QCOMPARE(ops(32), QStringLiteral("32 ops"));
        open({"1f1b"});
        m_window->workspace().feature<SqlController>()->open();
        for (const auto& [limit, says] : {std::pair{1, "1 row,"}, {2, "2 rows,"}}) {
            m_window->workspace().feature<SqlController>()->ask(
                QStringLiteral("SELECT rank FROM spans LIMIT %1").arg(limit));
            QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().settled() &&
                                         !m_window->workspace().feature<SqlController>()->console()->running(),
                                     30000);
            QVERIFY2(
                m_window->workspace().feature<SqlController>()->console()->status().startsWith(QLatin1String(says)),
                qPrintable(m_window->workspace().feature<SqlController>()->console()->status()));
        }
        QCOMPARE(changeText(335.2, 279.3), QString(QChar(0x2212)) + QStringLiteral("16.7 %"));
        QCOMPARE(changeText(4, 4), QStringLiteral("0.0 %"));
        QCOMPARE(changeText(0, 4), QStringLiteral("new"));
        QCOMPARE(changeText(2, 24), QStringLiteral("× 12"));
    }
};

QTEST_MAIN(TestFirstLook)
#include "tst_first_look.moc"
