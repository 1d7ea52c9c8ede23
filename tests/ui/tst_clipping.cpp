// No text of the window is clipped: every page and dialog, at the smallest and at a very large size, light and dark, in
// English and in a language with longer words. STAGEWRIGHT_PICTURES names a folder that gets a picture of each.
#include <QDialog>
#include <QDir>
#include <QDockWidget>
#include <QScopeGuard>

#include "app/ui/exchange/export_controller.h"
#include "app/ui/explore/explorer_controller.h"
#include "app/ui/explore/library_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/notes/notes_controller.h"
#include "app/ui/playback/playback_controller.h"
#include "app/ui/search/search_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/key_page.h"
#include "app/ui/shell/palette_controller.h"
#include "app/ui/shell/preferences_controller.h"
#include "app/ui/sql/sql_controller.h"
#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/text_fit.h"
#include "tests/ui/window_fixture.h"
#include "widgets/console/sql_console.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/explore/explore_view.h"
#include "widgets/export/export_dialog.h"
#include "widgets/library/block_editor.h"
#include "widgets/library/schedule_browser.h"
#include "widgets/record/record_dialog.h"

using namespace stagewright;

class TestClipping : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;
    QStringList m_found;
    QSize m_size; // the window's size

    static bool ready(MainWindow& window)
    {
        const auto settled = [&] { return window.workspace().settled(); };
        if (!QTest::qWaitFor(settled, 120000)) return false;
        QTest::qWait(80); // later changes are laid out
        return QTest::qWaitFor(settled, 120000);
    }

    // A dialog instead of the window, if given.
    void look(MainWindow& window, const char* page, QWidget* dialog = nullptr)
    {
        if (!ready(window)) m_found << QString::fromLatin1(page) + QStringLiteral(": does not settle");
        QWidget* shown = dialog != nullptr ? dialog : &window;
        (void)QTest::qWaitFor([&] { return clipped(shown).isEmpty(); }, 10000); // it may still be laying itself out
        for (const QString& text : dialog != nullptr ? clipped(shown) + overlapping(shown) : clipped(shown))
            m_found << QString::fromLatin1(page) + QStringLiteral(": ") + text;
        if (window.size() != m_size) {
            m_found << QStringLiteral("%1: the window wants %2 × %3")
                           .arg(QLatin1String(page))
                           .arg(window.width())
                           .arg(window.height());
            m_size = window.size();
        }
        if (dialog != nullptr && (dialog->width() > window.width() || dialog->height() > window.height()))
            m_found << QStringLiteral("%1: %2 × %3 are more than the window has")
                           .arg(QLatin1String(page))
                           .arg(dialog->width())
                           .arg(dialog->height());
        if (const QString folder = qEnvironmentVariable("STAGEWRIGHT_PICTURES"); !folder.isEmpty())
            shown->grab().save(
                QStringLiteral("%1/%2_%3.png")
                    .arg(folder,
                         QString::fromLatin1(QTest::currentDataTag()).replace(QLatin1Char(' '), QLatin1Char('_')),
                         QLatin1String(page)));
    }

private slots:
    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        qputenv("XDG_DATA_HOME", m_fixture->dir.path().toUtf8());
        m_found.clear();
    }
    void cleanup() { m_fixture.reset(); }

    void everyPage_data()
    {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<ThemeChoice>("theme");
        QTest::newRow("1024x700 light") << QSize(1024, 700) << ThemeChoice::Light;
        QTest::newRow("1280x720 light") << QSize(1280, 720) << ThemeChoice::Light;
        QTest::newRow("1280x720 dark") << QSize(1280, 720) << ThemeChoice::Dark;
        QTest::newRow("3840x2160 light") << QSize(3840, 2160) << ThemeChoice::Light;
        if (!qEnvironmentVariableIsSet("STAGEWRIGHT_PICTURES")) return; // for inspection
        QTest::newRow("3840x2160 dark") << QSize(3840, 2160) << ThemeChoice::Dark;
        QTest::newRow("1280x720 contrast") << QSize(1280, 720) << ThemeChoice::HighContrast;
    }
    void everyPage()
    {
        QFETCH(QSize, size);
        QFETCH(ThemeChoice, theme);
        MainWindow window;
        m_size = size;
        Appearance::choose(theme);
        QVERIFY(WindowFixture::show(window, size));
        look(window, "empty");
        window.workspace().feature<FileOpening>()->openFiles(
            {m_fixture->file("runs.stagewright", {"1f1b", "zb-h1", "interleaved-1f1b"})});
        QVERIFY(ready(window));
        const auto refs = window.workspace().runs()->refs();
        look(window, "run");
        window.workspace().viewState()->select({0, 9});
        look(window, "selection");
        window.workspace().viewState()->setAreas({{{2 * rankShare, 9 * rankShare}, 1, 2}});
        look(window, "area");
        window.workspace().viewState()->setAreas({});
        window.workspace().actions()["nextGap"]->trigger();
        look(window, "gap");
        for (const auto& [id, name] :
             {std::pair{"whatIf", "what_if"}, {"loweredView", "lowered"}, {"residuals", "residuals"}}) {
            if (!window.workspace().actions()[id]->isEnabled()) continue;
            window.workspace().actions()[id]->trigger();
            look(window, name);
        }
        window.workspace().shown().setTool(Shown::Tool::None);

        window.workspace().feature<NotesController>()->keep();
        window.workspace().feature<NotesController>()->dock()->show();
        window.workspace().feature<OpFinding>()->find(QStringLiteral("mb:2"));
        window.workspace().feature<SearchController>()->dock()->show();
        look(window, "lists");
        window.workspace().feature<NotesController>()->dock()->hide();
        window.workspace().feature<SearchController>()->dock()->hide();
        window.workspace().feature<SqlController>()->open();
        window.workspace().feature<SqlController>()->ask(QStringLiteral(
            "SELECT rank, kind, count(*) AS ops, sum(duration_ns) AS busy FROM spans GROUP BY rank, kind"));
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().settled() && !window.workspace().feature<SqlController>()->console()->running(), 30000);
        look(window, "sql");
        window.workspace().feature<SqlController>()->dock()->hide();

        window.workspace().actions()["nextBeat"]->trigger();
        QVERIFY(ready(window));
        look(window, "playback");
        window.workspace().feature<PlaybackController>()->player()->end();

        window.workspace().feature<RunComparing>()->show({refs[0], refs[1]});
        look(window, "compare");
        window.workspace().shown().showRun(refs[1]);
        QVERIFY(ready(window));
        window.workspace().feature<OrderEditing>()->enterEdit();
        look(window, "edit");
        window.workspace().viewState()->select(
            {0, window.workspace().feature<OrderEditing>()->editor().spanAt({1, 4})});
        QVERIFY(window.workspace().feature<OrderEditing>()->editor().move({1, 5}, 0)); // a backward before its forward
        look(window, "edit_fault");
        window.workspace().feature<OrderEditing>()->leaveEdit();

        window.workspace().feature<ExplorerController>()->setShown(true);
        look(window, "explorer");
        window.workspace().feature<ExplorerController>()->view()->select(0);
        window.workspace().feature<ExplorerController>()->view()->setChart(ExploreChart::Heat);
        look(window, "explorer_heat");
        window.workspace().feature<ExplorerController>()->setShown(false);
        window.workspace().feature<LessonController>()->openShelf();
        look(window, "lessons");
        window.workspace().feature<LessonController>()->start(QStringLiteral("latency"), false, 1);
        look(window, "lesson");
        window.workspace().feature<LessonController>()->leave();
        QVERIFY(ready(window));
        window.workspace().shown().showRun(refs[0]);
        QVERIFY(ready(window));
        window.workspace().banner()->showError(
            QObject::tr("the file could not be written"),
            {ErrorCode::Failed,
             "file /a/rather/long/path/to/a/folder/that/is/not/there/run.stagewright: no space is left on this device",
             "choose another folder"});
        look(window, "banner");
        window.workspace().banner()->clear();

        const auto dialog = [&](const char* name, QWidget* one) {
            QVERIFY2(one != nullptr, name);
            QTest::qWait(50);
            look(window, name, one);
            one->close();
        };
        window.workspace().feature<PreferencesController>()->open();
        dialog("preferences", window.findChild<QDialog*>(QStringLiteral("preferences")));
        dialog("record", window.workspace().feature<Recording>()->openRecordDialog());
        Setup onGpus = usualRecording();
        onGpus.backend = "cuda";
        onGpus.sharing = "partitions"; // the longest of their meanings
        RecordDialog* gpus = window.workspace().feature<Recording>()->openRecordDialog();
        QVERIFY(gpus->isVisible());
        gpus->setSetup(onGpus);
        dialog("record_gpus", gpus);
        Setup several = usualRecording();
        several.replicas = 2;
        several.shard = "weights"; // every field of the group
        RecordDialog* replicas = window.workspace().feature<Recording>()->openRecordDialog();
        QVERIFY(replicas->isVisible());
        replicas->setSetup(several);
        dialog("record_replicas", replicas);
        ExportDialog* picture = window.workspace().feature<ExportController>()->openDialog();
        QVERIFY(picture != nullptr);
        QVERIFY(QTest::qWaitFor([&] { return picture->settled(); }, 60000));
        dialog("export", picture);
        ScheduleBrowser* browser = window.workspace().feature<LibraryController>()->openScheduleBrowser();
        QVERIFY(QTest::qWaitFor([&] { return browser->settled(); }, 60000));
        dialog("library", browser);
        BlockEditor* block = window.workspace().feature<LibraryController>()->openBlockEditor(QStringLiteral("v-half"));
        QVERIFY(QTest::qWaitFor([&] { return block->settled(); }, 60000));
        dialog("block", block);
        showKeys(window.workspace());
        dialog("keys", window.findChild<QDialog*>(QStringLiteral("keyMap")));
        dialog("palette", window.workspace().feature<PaletteController>()->open());
        QVERIFY2(m_found.isEmpty(), qPrintable(QLatin1Char('\n') + m_found.join(QLatin1Char('\n'))));
    }
};

QTEST_MAIN(TestClipping)
#include "tst_clipping.moc"
