// Recordings on another computer, as the window shows them: the list below the runs, fetching, attaching, a lost
// connection, stopping and forgetting. The other computer is a second home of this one, reached by a program in ssh's
// place (tests/cli/hosts.sh has a real sshd).
#include <QDir>
#include <QMenu>
#include <QProcess>
#include <QScopeGuard>
#include <QTreeWidget>
#include <QTreeWidgetItem>

#include "app/ui/record/jobs_controller.h"
#include "app/ui/workspace/banner.h"
#include "tests/ui/window_fixture.h"
#include "widgets/hosts/jobs_list.h"

using namespace stagewright;

namespace {

constexpr int longWait = 40000;

} // namespace

class TestJobsElsewhere : public QObject {
    Q_OBJECT

    std::unique_ptr<WindowFixture> m_fixture;

    // The program, until it ends; what it said if that was not well.
    static QByteArray said(const QStringList& arguments)
    {
        QProcess program;
        program.setProcessChannelMode(QProcess::MergedChannels);
        program.start(findStagewright(), arguments);
        if (!program.waitForFinished(longWait)) return "it did not end";
        return program.exitStatus() == QProcess::NormalExit && program.exitCode() == 0 ? QByteArray()
                                                                                       : program.readAll();
    }
    QByteArray begun(const QString& output, int steps)
    {
        return said({QStringLiteral("record"),
                     QStringLiteral("--host"),
                     QStringLiteral("near"),
                     QStringLiteral("--detach"),
                     QStringLiteral("-s"),
                     QStringLiteral("1f1b"),
                     QStringLiteral("-p"),
                     QStringLiteral("2"),
                     QStringLiteral("-m"),
                     QStringLiteral("4"),
                     QStringLiteral("--model"),
                     QStringLiteral("layers=4,hidden=32,heads=2,seq=16"),
                     QStringLiteral("--microbatch-size"),
                     QStringLiteral("1"),
                     QStringLiteral("--clock"),
                     QStringLiteral("virtual"),
                     QStringLiteral("--warmup"),
                     QStringLiteral("0"),
                     QStringLiteral("--steps"),
                     QString::number(steps),
                     QStringLiteral("-o"),
                     output});
    }
    static JobsList* listOf(MainWindow& window) { return window.findChild<JobsList*>(); }
    static const JobEntry* onlyJob(MainWindow& window)
    {
        const JobsList* list = listOf(window);
        return list->jobs().size() == 1 ? &list->jobs().front() : nullptr;
    }
    // Through the menu of its row.
    static bool choose(MainWindow& window, const QString& what)
    {
        JobsList* list = listOf(window);
        QTreeWidget* tree = list->tree();
        const QTreeWidgetItem* row = tree->topLevelItem(0);
        if (row == nullptr) return false;
        emit tree->customContextMenuRequested(tree->visualItemRect(row).center());
        for (QMenu* menu : list->findChildren<QMenu*>())
            for (QAction* action : menu->actions())
                if (action->text() == what && menu->isVisible()) {
                    action->trigger();
                    menu->close();
                    return true;
                }
        return false;
    }
    void killConnections()
    {
        QFile pids(m_fixture->dir.filePath(QStringLiteral("connections")));
        if (!pids.open(QIODevice::ReadOnly)) return;
        for (const QByteArray& pid : pids.readAll().split('\n'))
            if (!pid.isEmpty())
                QProcess::execute(
                    QStringLiteral("sh"),
                    {QStringLiteral("-c"),
                     QStringLiteral("pkill -KILL -P %1; kill -KILL %1 2>/dev/null").arg(QString::fromLatin1(pid))});
    }

private slots:
    void initTestCase() { QVERIFY2(WindowFixture::recordsWithBuiltProgram(), "the program stagewright is not built"); }
    void init()
    {
        m_fixture = std::make_unique<WindowFixture>();
        const QDir dir(m_fixture->dir.path());
        QVERIFY(dir.mkdir(QStringLiteral("here")) && dir.mkdir(QStringLiteral("there")) &&
                dir.mkdir(QStringLiteral("scratch")));
        QFile ssh(dir.filePath(QStringLiteral("ssh")));
        QVERIFY(ssh.open(QIODevice::WriteOnly));
        ssh.write("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\necho $$ >>'" +
                  dir.filePath(QStringLiteral("connections")).toUtf8() + "'\n[ ! -e '" +
                  dir.filePath(QStringLiteral("down")).toUtf8() +
                  "' ] || { echo 'ssh: connect to host near port 22: No route to host' >&2; exit 255; }\ncd '" +
                  dir.filePath(QStringLiteral("there")).toUtf8() +
                  "' || exit 255\nHOME=$PWD XDG_STATE_HOME= exec sh -c \"$*\"\n");
        ssh.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        ssh.close();
        qputenv("HOME", dir.filePath(QStringLiteral("here")).toUtf8());
        qunsetenv("XDG_CONFIG_HOME");
        qunsetenv("XDG_STATE_HOME");
        qputenv("STAGEWRIGHT_SSH", ssh.fileName().toUtf8());
        const QString programs = QFileInfo(findStagewright()).path();
        QCOMPARE(said({QStringLiteral("hosts"), QStringLiteral("add"), QStringLiteral("near"), QStringLiteral("near"),
                       QStringLiteral("--scratch"), dir.filePath(QStringLiteral("scratch")), QStringLiteral("--setup"),
                       QStringLiteral("export PATH='%1':$PATH").arg(programs)}),
                 QByteArray());
    }
    void cleanup()
    {
        // where a test left one running
        static_cast<void>(said({QStringLiteral("hosts"), QStringLiteral("stop"), QStringLiteral("latest")}));
        m_fixture.reset();
    }

    // A job begun in a shell appears by itself; it is fetched, its runs open, and it can be forgotten.
    void itIsListedFetchedAndForgotten()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("far.stagewright"));
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QVERIFY(listOf(window) != nullptr && !listOf(window)->isVisible());
        const QByteArray why = begun(path, 3);
        QVERIFY2(why.isEmpty(), why);
        QTRY_VERIFY_WITH_TIMEOUT(onlyJob(window) != nullptr && listOf(window)->isVisible(), longWait);
        QCOMPARE(onlyJob(window)->host, QStringLiteral("near"));
        QTRY_VERIFY_WITH_TIMEOUT(choose(window, JobsList::textOf(JobsList::Request::Fetch)) &&
                                     QTest::qWaitFor([&] { return window.workspace().settled(); }, longWait) &&
                                     onlyJob(window)->over(),
                                 longWait);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().runs()->rowCount() == 1 && WindowFixture::settle(window), longWait);
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file);
        QCOMPARE((*file)->runs()->front().steps, 3);
        QVERIFY(choose(window, JobsList::textOf(JobsList::Request::Forget)));
        QTRY_VERIFY_WITH_TIMEOUT(listOf(window)->jobs().isEmpty() && !listOf(window)->isVisible(), longWait);
        QVERIFY(QFileInfo::exists(path)); // the run stays
    }

    // A double click follows a running one: its steps arrive live, a lost connection is a note and not the end, and
    // stopping keeps what came.
    void itIsAttachedToAndLosesTheConnection()
    {
        const QString path = m_fixture->dir.filePath(QStringLiteral("long.stagewright"));
        const QByteArray why = begun(path, 1000000);
        QVERIFY2(why.isEmpty(), why);
        MainWindow window;
        QVERIFY(WindowFixture::show(window));
        QTRY_VERIFY_WITH_TIMEOUT(onlyJob(window) != nullptr, longWait);
        emit listOf(window)->tree()->itemActivated(listOf(window)->tree()->topLevelItem(0), 0);
        RecordProcess* process = window.workspace().feature<Recording>()->process();
        QTRY_VERIFY_WITH_TIMEOUT(process->running() && process->done() >= 2, longWait);
        QVERIFY(process->elsewhere());
        QTRY_VERIFY_WITH_TIMEOUT(
            window.workspace().runs()->rowCount() == 1 && window.workspace().shown().view() != nullptr, longWait);

        QFile down(m_fixture->dir.filePath(QStringLiteral("down")));
        QVERIFY(down.open(QIODevice::WriteOnly));
        down.close();
        killConnections();
        QTRY_VERIFY_WITH_TIMEOUT(!process->disconnected().isEmpty(), longWait);
        QTRY_VERIFY2_WITH_TIMEOUT(window.workspace().banner()->text().contains(QStringLiteral("The job goes on there")),
                                  qPrintable(window.workspace().banner()->text()), longWait);
        QVERIFY(QApplication::activeModalWidget() == nullptr && process->running());
        const int before = process->done();
        QVERIFY(down.remove());
        QTRY_VERIFY_WITH_TIMEOUT(process->disconnected().isEmpty() && process->done() > before, longWait);
        QTRY_VERIFY2_WITH_TIMEOUT(window.workspace().banner()->text().contains(QStringLiteral("Connected again")),
                                  qPrintable(window.workspace().banner()->text()), longWait);

        process->cancel();
        QTRY_VERIFY_WITH_TIMEOUT(!process->running(), longWait);
        QTRY_VERIFY_WITH_TIMEOUT(onlyJob(window) != nullptr && onlyJob(window)->over(), longWait);
        QVERIFY(WindowFixture::settle(window));
        auto file = RunFile::open(path.toStdString(), OpenMode::Read);
        QVERIFY(file);
        const RunInfo run = (*file)->runs()->front();
        QVERIFY2(run.steps >= before, QByteArray::number(run.steps));
        const auto steps = (*file)->steps(run.id);
        QVERIFY(steps);
        QCOMPARE(steps->size(), static_cast<std::size_t>(run.steps)); // none is missing between
    }
};

QTEST_MAIN(TestJobsElsewhere)
#include "tst_jobs_elsewhere.moc"
