// The window on a real X server, driven by its mouse and keyboard: what offscreen events can't test.
#include <QDialogButtonBox>
#include <QDir>
#include <QFileInfo>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalSpy>

#include "app/ui/edit/edit_controller.h"
#include "app/ui/exchange/export_controller.h"
#include "app/ui/lessons/lesson_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "tests/ui/real_input.h"
#include "tests/ui/small_lesson.h"
#include "tests/ui/window_fixture.h"
#include "widgets/edit/edit_record.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/export/export_dialog.h"
#include "widgets/lessons/lesson_shelf.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_process.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestRealServer : public QObject {
    Q_OBJECT

    // Without a window manager nothing sets the focus.
    static bool show(MainWindow& window)
    {
        window.setGeometry(0, 0, 1400, 860);
        window.show();
        if (!QTest::qWaitForWindowExposed(&window, 20000)) return false;
        window.activateWindow();
        return QTest::qWaitForWindowActive(&window, 20000);
    }
    static void write(const QString& path, const char* text)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
    }

private slots:
    void initTestCase()
    {
        const QString missing = RealInput::missing();
        if (!missing.isEmpty()) QSKIP(qPrintable(missing));
        QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built");
    }

    void recordEditRunCompare()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(show(window));
        QSignalSpy ended(window.workspace().feature<Recording>()->process(), &RecordProcess::finished);

        QVERIFY(RealInput::key(QStringLiteral("ctrl+r")));
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<RecordDialog*>() != nullptr, 20000);
        auto* dialog = window.findChild<RecordDialog*>();
        QVERIFY(QTest::qWaitForWindowExposed(dialog, 20000));
        dialog->setSetup(WindowFixture::tinyRecording()); // small; the input below is real
        dialog->setTargets({}, fixture.dir.filePath(QStringLiteral("loop.stagewright")));
        QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
        QPushButton* start = nullptr;
        for (QPushButton* button : dialog->findChildren<QPushButton*>())
            if (button->isDefault() || button->objectName() == QLatin1String("primary")) start = button;
        QVERIFY(start != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(start->isEnabled(), 20000);
        QVERIFY(RealInput::click(start));
        QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty(), 120000);
        QVERIFY2(window.workspace().feature<Recording>()->process()->state() == RecordProcess::State::Finished,
                 qPrintable(window.workspace().feature<Recording>()->process()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Run && window.workspace().settled(),
                                 60000);

        window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&window, 20000));
        window.workspace().views().timeline->setFocus();
        QVERIFY(RealInput::key(QStringLiteral("e")));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Edit, 20000);
        QTest::qWait(100); // the panels lay themselves out

        ScheduleEditor& editor = window.workspace().feature<OrderEditing>()->editor();
        const auto row = editor.schedule().order[0];
        int w = 0;
        while (w < static_cast<int>(row.size()) && row[static_cast<std::size_t>(w)].kind != OpKind::WeightGrad) ++w;
        QVERIFY(w + 1 < static_cast<int>(row.size()));
        const auto target = window.workspace().views().timeline->rectOf({0, editor.spanAt({0, w + 1})});
        QVERIFY(target.has_value());
        QVERIFY(RealInput::drag(window.workspace().views().timeline,
                                WindowFixture::centre(window, {0, editor.spanAt({0, w})}),
                                QPoint(static_cast<int>(target->right()) - 1, static_cast<int>(target->center().y()))));
        QTRY_VERIFY_WITH_TIMEOUT(editor.changed(), 20000);
        QVERIFY(editor.valid());

        QVERIFY(RealInput::key(QStringLiteral("ctrl+z")));
        QTRY_VERIFY_WITH_TIMEOUT(!editor.changed(), 20000);
        QVERIFY(RealInput::key(QStringLiteral("ctrl+shift+z")));
        QTRY_VERIFY_WITH_TIMEOUT(editor.changed(), 20000);

        ended.clear();
        QVERIFY(RealInput::key(QStringLiteral("ctrl+Return")));
        QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty(), 120000);
        QVERIFY2(window.workspace().feature<Recording>()->process()->state() == RecordProcess::State::Finished,
                 qPrintable(window.workspace().feature<Recording>()->process()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().shown().mode() == Shown::Mode::Compare && window.workspace().settled(), 60000);
        // the original, the prediction, the measurement
        QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t(3));
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
    }

    void walkAndZoomByHand()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(show(window));
        window.workspace().feature<FileOpening>()->openFiles({fixture.file("walk.stagewright", {"1f1b"})});
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Run && window.workspace().settled(),
                                 60000);
        TimelineView* view = window.workspace().views().timeline;
        const Timeline& timeline = *view->panels().front()->timeline;
        QVERIFY(RealInput::click(view, WindowFixture::centre(window, {0, WindowFixture::spanOf(timeline, "1F2")})));
        QTRY_COMPARE_WITH_TIMEOUT(
            QString::fromStdString(timeline.nameOf(timeline.spans()[window.workspace().viewState()->selected().span])),
            QStringLiteral("1F2"), 20000);
        QVERIFY(RealInput::key(QStringLiteral("period")));
        QTRY_COMPARE_WITH_TIMEOUT(
            QString::fromStdString(timeline.nameOf(timeline.spans()[window.workspace().viewState()->selected().span])),
            QStringLiteral("1B0"), 20000);
        QVERIFY(RealInput::key(QStringLiteral("Next"))); // the same microbatch on the next stage
        QTRY_COMPARE_WITH_TIMEOUT(
            QString::fromStdString(timeline.nameOf(timeline.spans()[window.workspace().viewState()->selected().span])),
            QStringLiteral("2B0"), 20000);

        const TimeRange all = window.workspace().viewState()->visible();
        QVERIFY(RealInput::move(view, view->rect().center()));
        QVERIFY(RealInput::send({QStringLiteral("keydown"), QStringLiteral("ctrl"), QStringLiteral("click"),
                                 QStringLiteral("4"), QStringLiteral("keyup"), QStringLiteral("ctrl")}));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().viewState()->visible().duration() < all.duration(), 20000);
        QVERIFY(RealInput::key(QStringLiteral("Home")));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().viewState()->isFitted(), 20000);

        // An area, by dragging over idle time and ops.
        QVERIFY(RealInput::drag(view, QPoint(400, 60), QPoint(700, 160)));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().viewState()->areas().size() == 1, 20000);
        QVERIFY(RealInput::key(QStringLiteral("Escape")));
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().viewState()->areas().empty(), 20000);
    }

    // A schedule from elsewhere becomes a run: search, note, picture.
    void importSearchNoteExport()
    {
        WindowFixture fixture;
        const QString csv = fixture.dir.filePath(QStringLiteral("own.csv"));
        write(csv, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
        const QString runs = fixture.dir.filePath(QStringLiteral("own.stagewright"));
        QProcess import;
        import.start(QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright"),
                     {QStringLiteral("import"), csv, QStringLiteral("-o"), runs});
        QVERIFY(import.waitForFinished(60000));
        QVERIFY2(import.exitCode() == 0, import.readAllStandardError().constData());

        MainWindow window;
        QVERIFY(show(window));
        window.workspace().feature<FileOpening>()->openFiles({runs});
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().shown().mode() == Shown::Mode::Run && window.workspace().settled(),
                                 60000);
        window.workspace().views().timeline->setFocus();
        QVERIFY(RealInput::key(QStringLiteral("slash")));
        QVERIFY(RealInput::type(QStringLiteral("1B1")));
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        const auto selected = [&] {
            const SpanRef ref = window.workspace().viewState()->selected();
            if (!ref.valid()) return QString();
            const Timeline& timeline = *window.workspace().views().timeline->panels().front()->timeline;
            return QString::fromStdString(timeline.nameOf(timeline.spans()[ref.span]));
        };
        QTRY_COMPARE_WITH_TIMEOUT(selected(), QStringLiteral("1B1"), 20000);
        window.workspace().views().timeline->setFocus();
        QVERIFY(RealInput::key(QStringLiteral("shift+m")));
        const auto kept = [&] {
            auto file = RunFile::open(runs.toStdString(), OpenMode::Read);
            return file ? (*file)->notes(1).value_or(std::vector<Note>{}) : std::vector<Note>{};
        };
        QTRY_COMPARE_WITH_TIMEOUT(kept().size(), std::size_t(1), 20000);
        QCOMPARE(kept()[0].op, std::string("1B1"));
        QVERIFY(RealInput::type(QStringLiteral("comes late"))); // its text is open for writing
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        QTRY_COMPARE_WITH_TIMEOUT(kept()[0].text, std::string("comes late"), 20000);

        // Ctrl+E shows the preview, Escape closes it; the file is written as the dialog writes it.
        const QString picture = fixture.dir.filePath(QStringLiteral("own.png"));
        QVERIFY(RealInput::key(QStringLiteral("ctrl+e")));
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<ExportDialog*>() != nullptr, 20000);
        auto* dialog = window.findChild<ExportDialog*>();
        QVERIFY(QTest::qWaitForWindowExposed(dialog, 20000));
        QVERIFY(QTest::qWaitFor([&] { return dialog->settled(); }, 60000));
        QVERIFY(!dialog->preview().isNull());
        QVERIFY(RealInput::key(QStringLiteral("Escape")));
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<ExportDialog*>() == nullptr, 20000);
        const auto written = window.workspace().feature<ExportController>()->write(picture);
        QVERIFY2(written.has_value(), written ? "" : written.error().message.c_str());
        QVERIFY(!QImage(picture).isNull());
        QVERIFY2(window.workspace().banner()->text().isEmpty(), qPrintable(window.workspace().banner()->text()));
    }

    // A whole lesson by hand, from its card on the shelf to the real run and back.
    void aLessonFromTheShelf()
    {
        WindowFixture fixture;
        qputenv("XDG_DATA_HOME", fixture.dir.path().toUtf8());
        const QString folder = fixture.dir.filePath(QStringLiteral("stagewright/lessons"));
        QVERIFY(QDir().mkpath(folder));
        write(folder + QStringLiteral("/small.md"), smallLesson);
        MainWindow window;
        QVERIFY(show(window));
        LessonController& lessons = *window.workspace().feature<LessonController>();
        const auto ready = [&] {
            QTest::qWait(60);
            return QTest::qWaitFor([&] { return lessons.settled() && window.workspace().settled(); }, 120000);
        };
        const auto button = [&](QWidget* in, const QString& text) -> QPushButton* {
            for (QPushButton* one : in->findChildren<QPushButton*>())
                if (one->text() == text && one->isVisible()) return one;
            return nullptr;
        };
        QVERIFY(RealInput::key(QStringLiteral("ctrl+shift+n")));
        QTRY_VERIFY_WITH_TIMEOUT(lessons.shelf()->isVisible() && !lessons.shelf()->cards().empty(), 60000);
        QVERIFY(ready());
        LessonCard* card = nullptr;
        for (LessonCard* one : lessons.shelf()->cards())
            if (one->entry().lesson->id == "small") card = one;
        QVERIFY(card != nullptr);
        for (QWidget* above = card->parentWidget(); above != nullptr; above = above->parentWidget())
            if (auto* scroll = qobject_cast<QScrollArea*>(above)) scroll->ensureWidgetVisible(card);
        QTest::qWait(60);
        QVERIFY(RealInput::click(card));
        QTRY_VERIFY_WITH_TIMEOUT(lessons.session() != nullptr, 20000);
        QVERIFY(ready());
        LessonPanel* panel = lessons.panel();

        QVERIFY(RealInput::click(panel->findChild<QLineEdit*>()));
        QVERIFY(RealInput::type(QStringLiteral("17")));
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        QTRY_COMPARE_WITH_TIMEOUT(panel->nextReason(), QString(), 20000);
        QVERIFY(RealInput::key(QStringLiteral("ctrl+alt+Right")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->pageIndex(), 1, 20000);
        QVERIFY(ready());
        auto* words = panel->findChild<QLineEdit*>(QStringLiteral("editInWords"));
        QVERIFY(words != nullptr);
        words->setFocus();
        QVERIFY(RealInput::type(QStringLiteral("warmup 2,1")));
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->markOf("low-memory"), lessons::Mark::Done, 20000);
        QVERIFY(ready());
        QVERIFY(RealInput::click(button(panel, QStringLiteral("Next"))));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->pageIndex(), 2, 20000);
        QVERIFY(ready());
        QPushButton* run = button(panel, QStringLiteral("Run it for real"));
        QVERIFY(run != nullptr);
        run->setFocus(); // scrolls to it
        QTest::qWait(100);
        QVERIFY(RealInput::key(QStringLiteral("space")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->markOf("real"), lessons::Mark::Proved, 240000);
        QVERIFY(ready());
        QVERIFY(RealInput::key(QStringLiteral("ctrl+alt+Right")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->pageIndex(), 3, 20000);
        QVERIFY(ready());
        QPushButton* last = button(panel, QStringLiteral("To the lessons"));
        QVERIFY(last != nullptr);
        QVERIFY(RealInput::click(last));
        QTRY_VERIFY_WITH_TIMEOUT(lessons.shelf()->isVisible(), 20000);
        QVERIFY(ready());
        lessons::Mark mark = lessons::Mark::None;
        for (LessonCard* one : lessons.shelf()->cards())
            if (one->entry().lesson->id == "small") mark = one->entry().mark;
        QCOMPARE(mark, lessons::Mark::Proved);
        qunsetenv("XDG_DATA_HOME");
    }

    // The gesture of lesson 1: ops are dragged from the tray to their row.
    void theFirstLessonByTheMouse()
    {
        WindowFixture fixture;
        qputenv("XDG_DATA_HOME", fixture.dir.path().toUtf8());
        MainWindow window;
        QVERIFY(show(window));
        LessonController& lessons = *window.workspace().feature<LessonController>();
        const auto ready = [&] {
            QTest::qWait(60);
            return QTest::qWaitFor([&] { return lessons.settled() && window.workspace().settled(); }, 120000);
        };
        lessons.start(QStringLiteral("why-pipelines"));
        QVERIFY(ready());
        QVERIFY(RealInput::click(lessons.panel()->findChild<QLineEdit*>()));
        QVERIFY(RealInput::type(QStringLiteral("5")));
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.panel()->nextReason(), QString(), 20000);
        QVERIFY(RealInput::key(QStringLiteral("ctrl+alt+Right")));
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->pageIndex(), 1, 20000);
        QVERIFY(ready());
        OpTray* tray = window.workspace().feature<EditController>()->deck().tray();
        TimelineView* view = window.workspace().views().timeline;
        for (const char* op : {"0F0", "1F0", "1B0", "0B0"}) {
            QListView* list = tray->list();
            QModelIndex chip;
            for (int row = 0; row < list->model()->rowCount(); ++row)
                if (list->model()->index(row, 0).data().toString() == QLatin1String(op))
                    chip = list->model()->index(row, 0);
            QVERIFY2(chip.isValid(), op);
            const auto row = view->scene().rowRect(0, op[0] - '0');
            QVERIFY2(row.has_value(), op);
            const QPoint from = list->viewport()->mapTo(&window, list->visualRect(chip).center());
            const QPoint to = view->mapTo(&window, QPoint(static_cast<int>(view->scene().axis.toX(5 * rankShare)),
                                                          static_cast<int>(row->center().y())));
            QVERIFY(RealInput::drag(&window, from, to));
            QVERIFY(ready());
        }
        QTRY_COMPARE_WITH_TIMEOUT(lessons.session()->markOf("staircase"), lessons::Mark::Done, 20000);
        QCOMPARE(lessons.panel()->nextReason(), QString());
        QVERIFY(lessons.panel()->plainText().contains(QStringLiteral("You guessed 5 units. It is 6 units.")));
        qunsetenv("XDG_DATA_HOME");
    }

    // The program is killed while an order is edited, and recovers it at its next start.
    void killedWhileEditing()
    {
        // Keys for another process need its focus, which a busy server without a window manager may take away.
        if (qEnvironmentVariableIsEmpty("STAGEWRIGHT_KILL_ON_X"))
            QSKIP("set STAGEWRIGHT_KILL_ON_X=1 on a quiet machine; tst_editing kills and recovers without a server");
        WindowFixture fixture;
        const QString window = QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright-ui");
        if (!QFileInfo(window).isExecutable()) QSKIP("the program stagewright-ui is not built");
        const QString runs = fixture.file("kept.stagewright", {"1f1b"});
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        for (const char* place : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"})
            environment.insert(QLatin1String(place), fixture.dir.filePath(QStringLiteral("home")));
        const QDir autosave(fixture.dir.filePath(QStringLiteral("home/stagewright/autosave")));
        const auto records = [&] {
            std::vector<EditRecord> all;
            for (const QString& name : autosave.entryList({QStringLiteral("*.edit")}, QDir::Files)) {
                QFile file(autosave.filePath(name));
                if (!file.open(QIODevice::ReadOnly)) continue;
                const QByteArray bytes = file.readAll();
                if (auto record =
                        readEditRecord(std::string_view(bytes.constData(), static_cast<std::size_t>(bytes.size()))))
                    all.push_back(*record);
            }
            return all;
        };
        const auto focus = [] {
            return RealInput::send({QStringLiteral("search"), QStringLiteral("--onlyvisible"), QStringLiteral("--name"),
                                    QStringLiteral("Stagewright"), QStringLiteral("windowfocus")});
        };
        const auto start = [&](QProcess& program, const QStringList& words) {
            program.setProcessEnvironment(environment);
            program.setProcessChannelMode(QProcess::ForwardedChannels);
            program.start(window, words);
            if (!program.waitForStarted(20000)) return false;
            // Wait until the server shows it; without a window manager, set the focus here.
            return QTest::qWaitFor(focus, 60000);
        };
        Schedule edited;
        {
            QProcess program;
            QVERIFY(start(program, {runs}));
            // Enter edit mode, move the first op one place later, and wait until that is on disk.
            QVERIFY(QTest::qWaitFor(
                [&] {
                    (void)focus(); // a window that is shown again has lost it
                    for (const char* key : {"Escape", "e", "period", "period", "ctrl+Right"})
                        RealInput::key(QLatin1String(key));
                    return QTest::qWaitFor([&] { return !records().empty(); }, 4000);
                },
                90000));
            program.kill(); // SIGKILL
            QVERIFY(program.waitForFinished(20000));
            edited = records().front().edited;
            QVERIFY(!(edited == records().front().original));
        }
        QCOMPARE(records().size(), std::size_t(1));
        QProcess program;
        QVERIFY(start(program, {}));
        // Alt+R recovers it: it is edited again, and kept under the name of the new process.
        const QString before = autosave.entryList({QStringLiteral("*.edit")}, QDir::Files).value(0);
        QVERIFY(QTest::qWaitFor(
            [&] {
                (void)focus();
                RealInput::key(QStringLiteral("alt+r"));
                return QTest::qWaitFor(
                    [&] {
                        const QStringList now = autosave.entryList({QStringLiteral("*.edit")}, QDir::Files);
                        return !now.isEmpty() && !now.contains(before) && !records().empty();
                    },
                    4000);
            },
            90000));
        QVERIFY(records().front().edited == edited);
        program.kill();
        QVERIFY(program.waitForFinished(20000));
    }
};

QTEST_MAIN(TestRealServer)
#include "tst_real_server.moc"
