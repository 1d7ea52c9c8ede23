// The real window, offscreen, driven by synthetic events: open, select, find, steps, compare, edit, export, themes,
// errors.
#include <QComboBox>
#include <QDialog>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTreeView>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/exchange/export_controller.h"
#include "app/ui/program/command_line.h"
#include "app/ui/program/showing.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/text/csv.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/panel/side_panel.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestMainWindow : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;

private slots:
    void init() { m_fixture = std::make_unique<WindowFixture>(); }
    void cleanup() { m_fixture.reset(); }

    void emptyWindowSaysWhatToDo()
    {
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
        QStringList buttons;
        for (const auto* button : window.findChildren<QPushButton*>())
            if (button->isVisible()) buttons << button->text();
        QVERIFY(buttons.contains(QStringLiteral("Record…")));
        QVERIFY(buttons.contains(QStringLiteral("Open…")));
        QVERIFY(!window.workspace().actions()["exportPicture"]->isEnabled());
        QVERIFY(window.workspace().actions()["record"]->isEnabled());
        // The window is not blank: many colours in both themes, and the themes differ.
        Appearance::choose(ThemeChoice::Light);
        const QImage light = window.grab().toImage();
        Appearance::choose(ThemeChoice::Dark);
        const QImage dark = window.grab().toImage();
        QVERIFY(light.pixelColor(5, 5).lightness() > 200);
        QVERIFY(dark.pixelColor(5, 5).lightness() < 60);
    }

    void opensAFileAndShowsItsFirstRun()
    {
        const QString path = m_fixture->file("demo.stagewright", {"1f1b", "zb-h1"});
        QVERIFY(!path.isEmpty());
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
        QCOMPARE(window.workspace().shown().ref().id, 1);
        QCOMPARE(window.workspace().runs()->refs().size(), std::size_t(2));
        // The headline is the analysis' figure.
        auto report = analyseBubbles(*window.workspace().views().timeline->panels().front()->timeline, 0);
        QVERIFY(report.has_value());
        QCOMPARE(window.workspace().views().side->headline(), percentText(report->bubbleFraction));
        QVERIFY(window.workspace().views().side->plainText().contains(QStringLiteral("Stages × microbatches: 4 × 8")));
        // Remembered.
        QVERIFY(QSettings().value(QStringLiteral("files/recent")).toStringList().contains(path));
        // The list selects the other run.
        auto* tree = window.findChild<QTreeView*>();
        tree->setCurrentIndex(window.workspace().runs()->indexOf({path, 2}));
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().shown().ref().id == 2; }, 10000));
    }

    void clickingAnOpExplainsIt()
    {
        const QString path = m_fixture->file("demo.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        const Timeline& timeline = *window.workspace().views().timeline->panels().front()->timeline;
        const SpanId span = WindowFixture::spanOf(timeline, "1B3");
        QVERIFY(span != noSpan);
        QTest::mouseClick(window.workspace().views().timeline, Qt::LeftButton, {},
                          WindowFixture::centre(window, {0, span}));
        QVERIFY((window.workspace().viewState()->selected() == SpanRef{0, span}));
        const QString text = window.workspace().views().side->plainText();
        QVERIFY2(text.contains(QStringLiteral("Waits for: ")) && text.contains(QStringLiteral("2B3 on rank 2")),
                 qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral("0B3 on rank 0")), qPrintable(text));
        QTest::keyClick(&window, Qt::Key_Escape);
        QTest::keyClick(window.workspace().views().timeline, Qt::Key_Escape);
        QVERIFY(!window.workspace().viewState()->selected().valid());
    }

    void findsOpsFromTheKeyboard()
    {
        const QString path = m_fixture->file("demo.stagewright", {"zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        window.activateWindow();
        auto* field = window.findChild<QLineEdit*>(QStringLiteral("find"));
        window.workspace().actions()["find"]->trigger();
        QTRY_VERIFY(field->hasFocus());
        QTest::keyClicks(field, QStringLiteral("rank:2 mb:5 I"));
        QCOMPARE(field->text(), QStringLiteral("rank:2 mb:5 I")); // letters stay in the field
        QTest::keyClick(field, Qt::Key_Return);
        const Timeline& timeline = *window.workspace().views().timeline->panels().front()->timeline;
        QCOMPARE(window.workspace().viewState()->selected().span, WindowFixture::spanOf(timeline, "2I5"));
        // Next and previous go through the matches and wrap around.
        field->setText(QStringLiteral("mb:0 F"));
        QTest::keyClick(field, Qt::Key_Return);
        const SpanId first = window.workspace().viewState()->selected().span;
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(window.workspace().viewState()->selected().span != first);
        QTest::keyClick(field, Qt::Key_Return, Qt::ShiftModifier);
        QCOMPARE(window.workspace().viewState()->selected().span, first);
        QTest::keyClick(field, Qt::Key_Escape);
        QTRY_VERIFY(window.workspace().views().timeline->hasFocus());
    }

    void comparesTwoRuns()
    {
        const QString a = m_fixture->file("a.stagewright", {"1f1b"});
        const QString b = m_fixture->file("b.stagewright", {"zb-h1"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({a, b});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().feature<RunComparing>()->show({{a, 1}, {b, 1}}); // of two files
        QVERIFY(WindowFixture::settle(window));
        QTRY_COMPARE(window.workspace().shown().mode(), Shown::Mode::Compare);
        QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t(2));
        QVERIFY(window.workspace().shown().comparison() != nullptr);
        QVERIFY(window.workspace().shown().comparison()->change.makespanDelta < 0);
        const QString text = window.workspace().feature<CompareController>()->panel()->plainText();
        QVERIFY2(text.contains(QStringLiteral("Why B is faster")), qPrintable(text));
        QVERIFY(text.contains(QString::fromStdString(window.workspace().shown().comparison()->headline)));
        QCOMPARE(window.workspace().runs()->indexOf({b, 1}).data(RunsModel::MarkRole).toString(), QStringLiteral("B"));
        window.workspace().actions()["swapCompare"]->trigger();
        QVERIFY(WindowFixture::settle(window));
        QTRY_VERIFY(window.workspace().shown().comparison()->change.makespanDelta > 0);
        window.workspace().actions()["compare"]->trigger(); // leaves
        QVERIFY(WindowFixture::settle(window));
        QTRY_COMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
    }

    void editsByMouseAndUndoes()
    {
        const QString path = m_fixture->file("demo.stagewright", {"zb-h1"}, 2, 4);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().actions()["editMode"]->trigger();
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Edit);
        QTest::qWait(50); // the panels lay themselves out
        ScheduleEditor& editor = window.workspace().feature<OrderEditing>()->editor();
        const Schedule original = editor.schedule();
        // Rank 1: its first W to after the op that follows it.
        const auto& row = original.order[1];
        int w = 0;
        while (row[static_cast<std::size_t>(w)].kind != OpKind::WeightGrad) ++w;
        QVERIFY(w + 2 < static_cast<int>(row.size()));
        const SpanId from = editor.spanAt({1, w});
        const SpanId to = editor.spanAt({1, w + 1});
        const auto target = window.workspace().views().timeline->rectOf({0, to});
        QVERIFY(target.has_value());
        WindowFixture::drag(window.workspace().views().timeline, WindowFixture::centre(window, {0, from}),
                            QPoint(static_cast<int>(target->right()) - 2, static_cast<int>(target->center().y())));
        QVERIFY2(editor.changed(), "the drop moved the op");
        QVERIFY2(editor.schedule().order[1][static_cast<std::size_t>(w) + 1] == row[static_cast<std::size_t>(w)],
                 (toText(original) + " -> " + toText(editor.schedule())).c_str());
        QVERIFY(!editor.previewing());
        window.workspace().actions()["undo"]->trigger();
        QVERIFY(editor.schedule() == original);
        window.workspace().actions()["redo"]->trigger();
        QVERIFY(editor.changed());
        window.workspace().actions()["undo"]->trigger();
        // By keyboard: the selected op one place later.
        window.workspace().viewState()->select({0, editor.spanAt({1, w})});
        QTest::keyClick(window.workspace().views().timeline, Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(editor.changed());
        // A fault is reported and outlined, and the order can't run.
        const Op firstForward = editor.schedule().order[0][0];
        editor.move({0, 0}, static_cast<int>(editor.schedule().order[0].size()) - 1);
        QVERIFY(!editor.valid());
        QVERIFY(window.workspace().feature<EditController>()->panel()->plainText().contains(
            QString::fromStdString(toText(firstForward))));
        QVERIFY(!window.workspace().actions()["runEdited"]->isEnabled());
        QVERIFY(window.findChild<EditOverlay*>()->faults().size() >= 2);
        window.workspace().actions()["editMode"]->trigger();
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        QVERIFY(!editor.active());
    }

    void exportsPicturesAndSchedules()
    {
        const QString path = m_fixture->file("demo.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        for (const char* name : {"x.png", "x.svg", "x.pdf"}) {
            const QString out = m_fixture->dir.filePath(QString::fromLatin1(name));
            auto done = window.workspace().feature<ExportController>()->write(out);
            QVERIFY2(done.has_value(), name);
            QVERIFY(QFileInfo(out).size() > 2000);
        }
        const QImage picture(m_fixture->dir.filePath(QStringLiteral("x.png")));
        const QColor forward = window.workspace().theme().of(OpKind::Forward).fill;
        int found = 0;
        for (int y = 0; y < picture.height(); y += 3)
            for (int x = 0; x < picture.width(); x += 3) found += picture.pixelColor(x, y) == forward ? 1 : 0;
        QVERIFY2(found > 200, "the forward ops are in the picture");
        QVERIFY(
            !window.workspace().feature<ExportController>()->write(m_fixture->dir.filePath(QStringLiteral("x.bmp"))));
        const QString copy = m_fixture->dir.filePath(QStringLiteral("copy.stagewright"));
        bool answered = false;
        window.workspace().library()->saveCopy(path, copy, [&](Result<void> done) { answered = done.has_value(); });
        QVERIFY(QTest::qWaitFor([&] { return answered; }, 10000));
        auto opened = RunFile::open(copy.toStdString(), OpenMode::Read);
        QVERIFY(opened.has_value());
        QCOMPARE((*opened)->runs()->size(), std::size_t(1));
    }

    void errorsAreABannerWithARemedy()
    {
        const QString broken = m_fixture->dir.filePath(QStringLiteral("broken.stagewright"));
        QFile file(broken);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("this is not a run file at all");
        file.close();
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({broken});
        QTRY_VERIFY_WITH_TIMEOUT(!window.workspace().banner()->text().isEmpty(), 10000);
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("broken.stagewright")));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Empty);
        QTest::keyClick(&window, Qt::Key_Escape);
        QVERIFY(window.workspace().banner()->text().isEmpty());
        const QString csv = m_fixture->dir.filePath(QStringLiteral("bad.csv"));
        QFile text(csv);
        QVERIFY(text.open(QIODevice::WriteOnly));
        text.write("0F0,0X9\n");
        text.close();
        window.workspace().feature<FileOpening>()->openFiles({csv});
        QVERIFY(window.workspace().banner()->text().contains(QStringLiteral("bad.csv")));
    }

    void opensASchedule()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("own.csv"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        const std::string csv = *writeScheduleCsv(*makeSchedule("zb-h1", Shape{2, 4, 0}));
        file.write(csv.data(), static_cast<qint64>(csv.size()));
        file.close();
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        QCOMPARE(window.workspace().shown().mode(), Shown::Mode::Run);
        window.workspace().feature<LibraryOpening>()->newFromLibrary(QStringLiteral("1f1b"), Shape{4, 8, 0});
        QVERIFY(WindowFixture::settle(window));
        QVERIFY(window.windowTitle().contains(QStringLiteral("1F1B")));
        window.workspace().feature<LibraryOpening>()->newFromLibrary(QStringLiteral("no-such-schedule"),
                                                                     Shape{4, 8, 0});
        QVERIFY(WindowFixture::settle(window));
        QVERIFY(!window.workspace().banner()->text().isEmpty());
    }

    void keysPageAndSteps()
    {
        const QString path = m_fixture->file("demo.stagewright", {"1f1b"}, 2, 2);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        window.workspace().feature<FileOpening>()->openFiles({path});
        QVERIFY(WindowFixture::settle(window));
        window.workspace().actions()["keys"]->trigger();
        auto* keys = window.findChild<QDialog*>(QStringLiteral("keyMap"));
        QVERIFY(keys != nullptr && keys->isVisible());
        QVERIFY(keys->findChildren<QLabel*>().size() > 40);
        keys->close();
        window.workspace().actions()["play"]->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().actions()["play"]->isChecked(), 20000);
        QTest::keyClick(&window, Qt::Key_Escape);
        QVERIFY(!window.workspace().actions()["play"]->isChecked());
        QVERIFY(!window.workspace().actions()["nextStep"]->isEnabled()); // one step only
    }

    void actionsAreDeclaredOnce()
    {
        QSet<QString> names;
        QMap<QString, QString> keys;
        MainWindow window;
        for (const auto& [entry, action] : window.workspace().actions().all()) {
            QVERIFY2(!names.contains(QString::fromLatin1(entry.id)), entry.id.data());
            names << QString::fromLatin1(entry.id);
            for (const QString& key : entry.keys.split(QLatin1Char('|'), Qt::SkipEmptyParts)) {
                QVERIFY2(!QKeySequence(key, QKeySequence::PortableText).isEmpty(), qPrintable(entry.keys));
                QVERIFY2(!keys.contains(key), qPrintable(key + QStringLiteral(" twice")));
                keys[key] = QString::fromLatin1(entry.id);
            }
        }
    }

    void commandLine()
    {
        CommandLine line = parseCommandLine(
            {"a.stagewright", "--screenshot=o.png", "--size", "800x600", "--theme", "dark", "--compare", "1", "2"});
        QVERIFY2(line.fault.isEmpty(), qPrintable(line.fault));
        QCOMPARE(line.size, QSize(800, 600));
        QCOMPARE(line.compare, (QStringList{"1", "2"}));
        QVERIFY(line.leaves());
        QVERIFY(line.theme == ThemeName::Dark);
        QVERIFY(!parseCommandLine({"--size", "huge"}).fault.isEmpty());
        QVERIFY(!parseCommandLine({"--export", "gif", "-o", "x", "f"}).fault.isEmpty());
        QVERIFY(!parseCommandLine({"--export", "png", "f"}).fault.isEmpty());
        QVERIFY(!parseCommandLine({"--nonsense"}).fault.isEmpty());
        QVERIFY(!parseCommandLine({"--run"}).fault.isEmpty());
        QCOMPARE(parseCommandLine({"a.stagewright", "--baseline", "1f1b"}).baseline, QString("1f1b"));
        QVERIFY(!parseCommandLine({"--baseline", "2"}).fault.isEmpty());
        const CommandLine link = parseCommandLine({"stagewright:/tmp/a%20b.stagewright#run=2&step=3&op=1B0&range=5-9"});
        QVERIFY2(link.fault.isEmpty(), qPrintable(link.fault));
        QCOMPARE(link.files, QStringList("/tmp/a b.stagewright"));
        QCOMPARE(link.run, QString("2"));
        QCOMPARE(link.step, 2);
        QCOMPARE(link.select, QString("1B0"));
        QVERIFY((link.range == std::pair<Nanos, Nanos>(5, 9)));
        QVERIFY(parseCommandLine({"stagewright:x#step=0"}).fault.contains("not a number from 1"));
        QCOMPARE(parseCommandLine({"file:///tmp/a%20b.stagewright"}).files, QStringList("/tmp/a b.stagewright"));
    }

    // What Copy link gives opens another window at the same run, op and range.
    void aLinkOpensItsPlace()
    {
        const QString path = m_fixture->file("linked.stagewright", {"1f1b", "zb-h1"});
        MainWindow first, second;
        const auto openLink = [](MainWindow& window, const QString& link) {
            QVERIFY(WindowFixture::show(window));
            const CommandLine line = parseCommandLine({link});
            QVERIFY2(line.fault.isEmpty(), qPrintable(line.fault));
            QCOMPARE(showAsked(window, line), 0);
            QVERIFY(WindowFixture::settle(window));
            showPlace(window, line);
            QVERIFY(WindowFixture::finish(window));
        };
        openLink(first, QStringLiteral("stagewright:%1#run=2&op=2I3").arg(path));
        const auto selected = [](MainWindow& window) { return window.workspace().viewState()->selected(); };
        QVERIFY(selected(first).valid());
        first.workspace().viewState()->setVisible({5 * rankShare, 15 * rankShare});
        const QString link = first.workspace().feature<ExportController>()->link();
        QVERIFY2(link.contains("run=2") && link.contains("range="), qPrintable(link));
        openLink(second, link);
        QVERIFY(selected(second) == selected(first));
        const Nanos off = second.workspace().viewState()->visible().begin - 5 * rankShare;
        QVERIFY(std::abs(off) <= rankShare);
        QCOMPARE(second.workspace().feature<ExportController>()->link().section('&', 0, 2), link.section('&', 0, 2));
    }
};

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
