// The window on a real X server, driven by its mouse and keyboard: what offscreen events can't prove.
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QPushButton>
#include <QSignalSpy>

#include "tests/ui/real_input.h"
#include "tests/ui/window_fixture.h"
#include "widgets/record/record_dialog.h"

using namespace stagewright;

class TestRealServer : public QObject {
    Q_OBJECT

    // Without a window manager nobody hands out the focus.
    static bool show(MainWindow& window)
    {
        window.setGeometry(0, 0, 1400, 860);
        window.show();
        if (!QTest::qWaitForWindowExposed(&window, 20000)) return false;
        window.activateWindow();
        return QTest::qWaitForWindowActive(&window, 20000);
    }

private slots:
    void initTestCase()
    {
        const QString missing = RealInput::missing();
        if (!missing.isEmpty()) QSKIP(qPrintable(missing));
        const QString program = QStringLiteral(STAGEWRIGHT_BINARY_DIR "/stagewright");
        QVERIFY2(QFileInfo(program).isExecutable(), "the program stagewright is not built");
        qputenv("STAGEWRIGHT_PROGRAM", program.toLocal8Bit());
    }

    void recordEditRunCompare()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(show(window));
        QSignalSpy ended(window.recording(), &RecordProcess::finished);

        QVERIFY(RealInput::key(QStringLiteral("ctrl+r")));
        QTRY_VERIFY_WITH_TIMEOUT(window.findChild<RecordDialog*>() != nullptr, 20000);
        auto* dialog = window.findChild<RecordDialog*>();
        QVERIFY(QTest::qWaitForWindowExposed(dialog, 20000));
        dialog->setSettings(WindowFixture::tinyRecording()); // small; what is pressed below is real
        dialog->setTargets({}, fixture.dir.filePath(QStringLiteral("loop.stagewright")));
        QVERIFY2(dialog->faultText().isEmpty(), qPrintable(dialog->faultText()));
        QPushButton* start = nullptr;
        for (QPushButton* button : dialog->findChildren<QPushButton*>())
            if (button->isDefault() || button->objectName() == QLatin1String("primary")) start = button;
        QVERIFY(start != nullptr);
        QTRY_VERIFY_WITH_TIMEOUT(start->isEnabled(), 20000);
        QVERIFY(RealInput::click(start));
        QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty(), 120000);
        QVERIFY2(window.recording()->state() == RecordProcess::State::Finished, qPrintable(window.recording()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Run && window.settled(), 60000);

        window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&window, 20000));
        window.timelineView()->setFocus();
        QVERIFY(RealInput::key(QStringLiteral("e")));
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Edit, 20000);
        QTest::qWait(100); // the panels lay themselves out

        ScheduleEditor& editor = *window.editor();
        const auto row = editor.schedule().order[0];
        int w = 0;
        while (w < static_cast<int>(row.size()) && row[static_cast<std::size_t>(w)].kind != OpKind::WeightGrad)
            ++w;
        QVERIFY(w + 1 < static_cast<int>(row.size()));
        const auto target = window.timelineView()->rectOf({0, editor.spanAt({0, w + 1})});
        QVERIFY(target.has_value());
        QVERIFY(RealInput::drag(window.timelineView(), WindowFixture::centre(window, {0, editor.spanAt({0, w})}),
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
        QVERIFY2(window.recording()->state() == RecordProcess::State::Finished, qPrintable(window.recording()->errorMessage()));
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Compare && window.settled(), 60000);
        QCOMPARE(window.timelineView()->panels().size(), std::size_t(2));
        QVERIFY2(window.bannerText().isEmpty(), qPrintable(window.bannerText()));
    }

    void walkAndZoomByHand()
    {
        WindowFixture fixture;
        MainWindow window;
        QVERIFY(show(window));
        window.openFiles({fixture.file("walk.stagewright", {"1f1b"})});
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() == MainWindow::Mode::Run && window.settled(), 60000);
        TimelineView* view = window.timelineView();
        const Timeline& timeline = *view->panels().front()->timeline;
        QVERIFY(RealInput::click(view, WindowFixture::centre(window, {0, WindowFixture::spanOf(timeline, "1F2")})));
        QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(timeline.nameOf(timeline.spans()[window.viewState()->selected().span])), QStringLiteral("1F2"), 20000);
        QVERIFY(RealInput::key(QStringLiteral("period")));
        QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(timeline.nameOf(timeline.spans()[window.viewState()->selected().span])), QStringLiteral("1B0"), 20000);
        QVERIFY(RealInput::key(QStringLiteral("Next"))); // the same microbatch on the next stage
        QTRY_COMPARE_WITH_TIMEOUT(QString::fromStdString(timeline.nameOf(timeline.spans()[window.viewState()->selected().span])), QStringLiteral("2B0"), 20000);

        const TimeRange all = window.viewState()->visible();
        QVERIFY(RealInput::move(view, view->rect().center()));
        QVERIFY(RealInput::send({QStringLiteral("keydown"), QStringLiteral("ctrl"), QStringLiteral("click"), QStringLiteral("4"), QStringLiteral("keyup"), QStringLiteral("ctrl")}));
        QTRY_VERIFY_WITH_TIMEOUT(window.viewState()->visible().duration() < all.duration(), 20000);
        QVERIFY(RealInput::key(QStringLiteral("Home")));
        QTRY_VERIFY_WITH_TIMEOUT(window.viewState()->isFitted(), 20000);

        // An area by dragging over idle time and ops alike.
        QVERIFY(RealInput::drag(view, QPoint(400, 60), QPoint(700, 160)));
        QTRY_VERIFY_WITH_TIMEOUT(window.viewState()->areas().size() == 1, 20000);
        QVERIFY(RealInput::key(QStringLiteral("Escape")));
        QTRY_VERIFY_WITH_TIMEOUT(window.viewState()->areas().empty(), 20000);
    }

    void openSearchExport()
    {
        WindowFixture fixture;
        const QString csv = fixture.dir.filePath(QStringLiteral("own.csv"));
        {
            QFile file(csv);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
        }
        MainWindow window;
        QVERIFY(show(window));
        window.openFiles({csv});
        QTRY_VERIFY_WITH_TIMEOUT(window.mode() != MainWindow::Mode::Empty && window.settled(), 60000);
        window.timelineView()->setFocus();
        QVERIFY(RealInput::key(QStringLiteral("slash")));
        QVERIFY(RealInput::type(QStringLiteral("1B1")));
        QVERIFY(RealInput::key(QStringLiteral("Return")));
        const auto selected = [&] {
            const SpanRef ref = window.viewState()->selected();
            if (!ref.valid()) return QString();
            const Timeline& timeline = *window.timelineView()->panels().front()->timeline;
            return QString::fromStdString(timeline.nameOf(timeline.spans()[ref.span]));
        };
        QTRY_COMPARE_WITH_TIMEOUT(selected(), QStringLiteral("1B1"), 20000);
        const QString picture = fixture.dir.filePath(QStringLiteral("own.svg"));
        const auto written = window.exporter()->write(picture);
        QVERIFY2(written.has_value(), written ? "" : written.error().message.c_str());
        QVERIFY(QFileInfo(picture).size() > 2000);
    }
};

QTEST_MAIN(TestRealServer)
#include "tst_real_server.moc"
