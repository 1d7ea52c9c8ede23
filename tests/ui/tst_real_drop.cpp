// Files dragged from another program and dropped onto the window, on a real X server with its mouse.
#include <QDir>
#include <QFileInfo>
#include <QLineEdit>

#include "app/ui/exchange/import_controller.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/library/registry.h"
#include "tests/ui/real_input.h"
#include "tests/ui/window_fixture.h"
#include "traces/export/kineto_writer.h"
#include "widgets/timeline/timeline_view.h"

using namespace stagewright;

class TestRealDrop : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;
    std::unique_ptr<MainWindow> m_window;

    // The source's report of the drag; empty if it could not be made.
    QString drop(const QStringList& files, const QWidget* onto)
    {
        QProcess source;
        source.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        source.start(QStringLiteral(STAGEWRIGHT_DRAG_SOURCE), files);
        QString said;
        const auto says = [&](const QString& word) {
            return QTest::qWaitFor(
                [&] {
                    said += QString::fromLocal8Bit(source.readAllStandardOutput());
                    return said.contains(word);
                },
                30000);
        };
        if (!says(QStringLiteral("ready"))) return {};
        const auto mouse = [](const QStringList& words) { return RealInput::send(words); };
        const auto move = [&](QPoint to) {
            return mouse({QStringLiteral("mousemove"), QString::number(to.x()), QString::number(to.y())});
        };
        const QPoint from(1510, 100), to = onto->mapToGlobal(onto->rect().center());
        bool done = move(from) && mouse({QStringLiteral("mousedown"), QStringLiteral("1")});
        // the drag starts and enters the window
        for (int step = 1; step <= 8 && done; ++step) done = move(from + (to - from) * step / 8);
        // the window answers whether it accepts them
        QTest::qWait(200);
        done = done && move(to + QPoint(3, 3)) && mouse({QStringLiteral("mouseup"), QStringLiteral("1")});
        if (done) says(QStringLiteral("ed\n"));
        source.kill();
        source.waitForFinished(20000);
        return said.section(QLatin1Char('\n'), 1, 1);
    }

private slots:
    void initTestCase()
    {
        const QString missing = RealInput::missing();
        if (!missing.isEmpty()) QSKIP(qPrintable(missing));
    }
    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        m_window = std::make_unique<MainWindow>();
        m_window->setGeometry(0, 0, 1400, 860);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get(), 20000));
        m_window->activateWindow(); // without a window manager nothing sets the focus
        QVERIFY(QTest::qWaitForWindowActive(m_window.get(), 20000));
    }
    void cleanup()
    {
        m_window.reset();
        m_fixture.reset();
    }

    void tracesAreImported()
    {
        const Schedule order = *makeSchedule("1f1b", Shape{4, 8, 0});
        // with characters that URLs escape
        const QString folder = m_fixture->dir.filePath(QStringLiteral("a job's traces"));
        QVERIFY(writeKinetoFolder(*simulatedRun(order, CostModel::uniform(order)), folder.toStdString()).has_value());
        QStringList files;
        for (const QString& name : QDir(folder).entryList(QDir::Files, QDir::Name))
            files << QDir(folder).filePath(name);
        QCOMPARE(drop(files, m_window.get()), QStringLiteral("copied"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().feature<ImportController>()->dialog() != nullptr, 20000);
        ImportDialog* dialog = m_window->workspace().feature<ImportController>()->dialog();
        QTRY_VERIFY_WITH_TIMEOUT(dialog->settled() && dialog->reading(), 60000);
        QCOMPARE(dialog->question().words, files);
        QVERIFY2(dialog->detailsText().contains(QStringLiteral("4 ranks, 1 step, 4 stages, 8 microbatches")),
                 qPrintable(dialog->detailsText()));
        dialog->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(dialog, 20000));
        QVERIFY(RealInput::key(QStringLiteral("alt+i")));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().feature<ImportController>()->dialog() == nullptr &&
                                     m_window->workspace().shown().mode() == Shown::Mode::Run &&
                                     m_window->workspace().settled(),
                                 60000);
        QCOMPARE(m_window->workspace().shown().view()->run->info.scheduleName, std::string("1f1b"));
        QVERIFY(QFileInfo::exists(m_window->workspace().shown().ref().file));
    }

    // Also onto the current view, and run files open as usual.
    void runFilesAreOpened()
    {
        const QString first = m_fixture->file("first.stagewright", {"1f1b"}),
                      second = m_fixture->file("second.stagewright", {"zb-h1"});
        QCOMPARE(drop({first}, m_window.get()), QStringLiteral("copied"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().shown().mode() == Shown::Mode::Run &&
                                     m_window->workspace().settled() &&
                                     m_window->workspace().shown().ref().file == first,
                                 60000);
        QCOMPARE(drop({second}, m_window->workspace().views().timeline), QStringLiteral("copied"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().settled() && m_window->workspace().shown().ref().file == second,
                                 60000);
        QVERIFY(m_window->workspace().feature<ImportController>()->dialog() == nullptr);
        QVERIFY2(m_window->workspace().banner()->text().isEmpty(), qPrintable(m_window->workspace().banner()->text()));
    }

    // Text fields don't take files: the window does.
    void fieldsLeaveThemToTheWindow()
    {
        const QString file = m_fixture->file("runs.stagewright", {"gpipe"});
        m_window->workspace().feature<FileOpening>()->openFiles({m_fixture->file("other.stagewright", {"1f1b"})});
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().shown().mode() == Shown::Mode::Run && m_window->workspace().settled(), 60000);
        QLineEdit* field = nullptr;
        for (auto* one : m_window->findChildren<QLineEdit*>())
            if (one->isVisible() && one->width() > 40) field = one;
        QVERIFY(field != nullptr);
        const QString before = field->text();
        QCOMPARE(drop({file}, field), QStringLiteral("copied"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().settled() && m_window->workspace().shown().ref().file == file,
                                 60000);
        QCOMPARE(field->text(), before);
    }
};

QTEST_MAIN(TestRealDrop)
#include "tst_real_drop.moc"
