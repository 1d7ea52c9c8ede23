// Other computers: what the program says as values, the page that adds and tests hosts, the list of jobs. A script
// stands in for the program.
#include <QFile>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTreeWidget>
#include <QtTest>

#include "widgets/hosts/hosts_page.h"
#include "widgets/hosts/jobs_list.h"

using namespace stagewright;

class TestHostsPage : public QObject {
    Q_OBJECT

    QTemporaryDir m_dir;

    // Keeps hosts in a file; the host "far" can't be reached.
    QString program()
    {
        const QString path = m_dir.filePath(QStringLiteral("stagewright"));
        QFile file(path);
        [&] { QVERIFY(file.open(QIODevice::WriteOnly)); }();
        file.write(R"(#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
case "$2" in
    list) printf '{"hosts":['; cat "$here/kept" 2>/dev/null; echo ']}' ;;
    add) for last; do before=$name; name=$last; done
         [ "$name" != -x ] || { echo "stagewright: target '-x' would be an option of ssh" >&2; echo "  give a host name" >&2; exit 2; }
         printf '{"name":"%s","target":"%s","setup":["module load cuda"]}' "$before" "$name" >"$here/kept" ;;
    test) [ "$5" != far ] || { echo "stagewright: host far is out of reach: timed out" >&2; echo "  see ssh far" >&2; exit 4; }
          echo '{"facts":[{"label":"Stagewright","value":null,"remedy":"stagewright hosts install '$5'","needed":true},{"label":"CPUs","value":"16","remedy":null}]}'; exit 1 ;;
    install) echo '{"version":"1"}' ;;
    remove) rm -f "$here/kept" ;;
esac
)");
        file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
        return path;
    }
    QString calls() const
    {
        QFile file(m_dir.filePath(QStringLiteral("calls")));
        return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
    }

private slots:
    void valuesOfTheProgram()
    {
        const auto hosts = hostsIn(
            R"({"hosts":[{"name":"a","target":"u@a","scratch":null,"setup":["x","y z"]},{"target":"nameless"},7]})");
        QCOMPARE(hosts.size(), 1);
        QVERIFY(
            (hosts[0] ==
             HostEntry{QStringLiteral("a"), QStringLiteral("u@a"), {}, {QStringLiteral("x"), QStringLiteral("y z")}}));
        QVERIFY(hostsIn("no JSON").isEmpty() && jobsIn("[]").isEmpty() && findingsIn("{\"facts\":3}").isEmpty());
        const auto jobs = jobsIn(
            R"({"jobs":[{"job":"a-1","host":"a","file":"/r","state":"running","steps":12,"steps_asked":300,"exit_code":null},
            {"job":"b-1","host":null,"state":"queued","slurm_job":"42","detail":"waits for resources"},{"job":"c","host":"c","state":"ended","exit_code":130,"steps":4},
            {"job":"d","host":"d","state":"lost","steps":1},{"job":"e","host":"e","state":"lost","detail":"it reached its time limit","steps":2}]})");
        QCOMPARE(jobs.size(), 5);
        QCOMPARE(jobText(jobs[4]), QStringLiteral("it reached its time limit, 2 steps kept · e"));
        QCOMPARE(jobText(jobs[0]), QStringLiteral("running, step 12 of 300 · a"));
        QCOMPARE(jobText(jobs[1]), QStringLiteral("queued · this computer, Slurm"));
        QCOMPARE(jobText(jobs[2]), QStringLiteral("stopped, 4 steps · c"));
        QCOMPARE(jobText(jobs[3]), QStringLiteral("ended without a message, 1 step kept · d"));
        QVERIFY(!jobs[0].over() && !jobs[1].over() && jobs[2].over() && jobs[3].over());
        QCOMPARE(addArguments({QStringLiteral("a"),
                               QStringLiteral("-x"),
                               QStringLiteral("/s"),
                               {QStringLiteral("module load cuda"), QStringLiteral(" ")}})
                     .join(QLatin1Char('|')),
                 QStringLiteral("hosts|add|--json|--scratch=/s|--setup=module load cuda|--|a|-x"));
    }

    void aProgramThatFails()
    {
        const ProgramAnswer none = askProgram(QStringLiteral("/nowhere/stagewright"), {});
        QVERIFY(!none.good() && none.message.contains(QStringLiteral("could not be started")));
        QVERIFY(askProgram({}, {}).message.contains(QStringLiteral("not found")));
        const ProgramAnswer far =
            askProgram(program(), {QStringLiteral("hosts"), QStringLiteral("test"), QStringLiteral("--json"),
                                   QStringLiteral("--"), QStringLiteral("far")});
        QCOMPARE(far.exitCode, 4);
        QCOMPARE(far.message, QStringLiteral("host far is out of reach: timed out"));
        QCOMPARE(far.remedy, QStringLiteral("see ssh far"));
        std::stop_source stop;
        stop.request_stop();
        // or it never returns
        QVERIFY(!askProgram(QStringLiteral("/bin/sleep"), {QStringLiteral("infinity")}, stop.get_token()).good());
    }

    void thePage()
    {
        HostsPage page;
        QTreeWidget* hosts = page.findChildren<QTreeWidget*>().first();
        page.setProgram(program());
        QTRY_VERIFY(page.settled());
        QCOMPARE(hosts->topLevelItemCount(), 0);
        const auto button = [&](const char* text) {
            for (QPushButton* one : page.findChildren<QPushButton*>())
                if (one->text() == QLatin1String(text)) return one;
            return static_cast<QPushButton*>(nullptr);
        };
        QVERIFY(button("Test") != nullptr && !button("Test")->isEnabled() && !button("Save host")->isEnabled());
        auto* name = page.findChild<QLineEdit*>(QStringLiteral("hostName"));
        auto* target = page.findChild<QLineEdit*>(QStringLiteral("hostTarget"));
        name->setText(QStringLiteral("node1"));
        target->setText(QStringLiteral("-x"));
        button("Save host")->click();
        QTRY_VERIFY(page.settled());
        QCOMPARE(page.message(), QStringLiteral("Target '-x' would be an option of ssh; give a host name"));
        target->setText(QStringLiteral("u@node1"));
        button("Save host")->click();
        QTRY_COMPARE(hosts->topLevelItemCount(), 1);
        QTRY_VERIFY(page.settled());
        QCOMPARE(hosts->topLevelItem(0)->text(0), QStringLiteral("node1"));
        QVERIFY(button("Test")->isEnabled());
        button("Test")->click();
        QVERIFY(!button("Install")->isEnabled()); // one at a time
        QTRY_VERIFY(page.settled());
        QCOMPARE(page.message(), QStringLiteral("Node1 can't be used yet."));
        QTreeWidget* findings = page.findChildren<QTreeWidget*>().last();
        QCOMPARE(findings->topLevelItemCount(), 2);
        QCOMPARE(findings->topLevelItem(0)->text(1), QStringLiteral("missing"));
        QCOMPARE(findings->topLevelItem(0)->text(2), QStringLiteral("stagewright hosts install node1"));
        QCOMPARE(findings->topLevelItem(1)->text(1), QStringLiteral("16"));
        button("Install")->click();
        QTRY_VERIFY(page.settled());
        QCOMPARE(page.message(), QStringLiteral("Stagewright is installed on node1."));
        QVERIFY(calls().contains(QStringLiteral("hosts install --json -- node1")));
        button("Remove")->click();
        QTRY_COMPARE(hosts->topLevelItemCount(), 0);
        QTRY_VERIFY(page.settled());
        QVERIFY(!button("Test")->isEnabled());
    }

    void theJobs()
    {
        using Request = JobsList::Request;
        JobsList list;
        QVERIFY(list.isHidden());
        JobEntry running;
        running.id = QStringLiteral("a-1");
        running.host = QStringLiteral("a");
        running.state = QStringLiteral("running");
        JobEntry over = running;
        over.id = QStringLiteral("a-0");
        over.state = QStringLiteral("ended");
        list.setJobs({running, over});
        QVERIFY(!list.isHidden());
        QCOMPARE(list.tree()->topLevelItemCount(), 2);
        QVERIFY(JobsList::requestsOf(running).contains(Request::Stop) &&
                !JobsList::requestsOf(over).contains(Request::Stop));
        QVERIFY(JobsList::requestsOf(over).contains(Request::Forget) &&
                !JobsList::requestsOf(running).contains(Request::Forget));
        QSignalSpy asked(&list, &JobsList::asked);
        emit list.tree()->itemActivated(list.tree()->topLevelItem(0), 0);
        QCOMPARE(asked.size(), 1);
        QCOMPARE(asked.first().at(0).value<JobEntry>().id, running.id);
        QCOMPARE(asked.first().at(1).value<JobsList::Request>(), Request::Attach);
        list.setBusy(over.id, QStringLiteral("fetching"));
        QCOMPARE(list.tree()->topLevelItem(1)->text(0), QStringLiteral("fetching"));
        list.setJobs({});
        QVERIFY(list.isHidden());
    }
};

QTEST_MAIN(TestHostsPage)
#include "tst_hosts_page.moc"
