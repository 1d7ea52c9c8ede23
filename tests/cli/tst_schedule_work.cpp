// On its way from a verb to the ranks a schedule is checked, indexed and lowered once: counted over whole calls of the
// command line.
#include <QTemporaryDir>
#include <QTest>

#include <fstream>
#include <string>
#include <vector>

#include "app/cli/call.h"
#include "app/cli/session.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/work_counts.h"
#include "schedules/text/csv.h"

using namespace stagewright;

namespace {

struct Work {
    int validations = 0, indexes = 0, cells = 0, strips = 0, lowerings = 0;
    bool operator==(const Work&) const = default;
};

char* toString(const Work& work) // found by QCOMPARE
{
    return qstrdup(qPrintable(QStringLiteral("%1 validations, %2 indexes, %3 cells, %4 strips, %5 lowerings")
                                  .arg(work.validations)
                                  .arg(work.indexes)
                                  .arg(work.cells)
                                  .arg(work.strips)
                                  .arg(work.lowerings)));
}

Work workNow()
{
    return {workCounts.validations, workCounts.indexes, workCounts.cells, workCounts.strips, workCounts.lowerings};
}

// What a call does that ends well.
Work workOf(const QString& call)
{
    std::vector<std::string> words{"stagewright"};
    for (const QString& word : call.split(' ', Qt::SkipEmptyParts)) words.push_back(word.toStdString());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const Work before = workNow();
    Session session;
    auto read = readCall(static_cast<int>(pointers.size()), pointers.data(), session);
    if (!read) qFatal("%s", read.error().message.c_str());
    session.silent = true;
    const auto code = read->run(session);
    if (!code) qFatal("%s", code.error().message.c_str());
    if (*code != 0) qFatal("%s: code %d", qPrintable(call), *code);
    const Work after = workNow();
    return {after.validations - before.validations, after.indexes - before.indexes, after.cells - before.cells,
            after.strips - before.strips, after.lowerings - before.lowerings};
}

} // namespace

class TestScheduleWork : public QObject {
    Q_OBJECT

private slots:
    void recording_data()
    {
        QTest::addColumn<QString>("schedule");
        QTest::addColumn<QString>("options");
        QTest::addColumn<Work>("expected");
        const auto row = [](const char* name, const char* schedule, const char* options, const Work& expected) {
            QTest::newRow(name) << schedule << options << expected;
        };
        row("virtual clock", "1f1b", "--clock virtual", {1, 1, 1, 0, 0});
        row("wall clock", "1f1b", "--clock wall", {1, 1, 1, 0, 0});
        row("rule without use", "1f1b", "--clock virtual --lower grouped", {1, 1, 1, 0, 0});
        row("rendezvous", "1f1b", "--sends rendezvous --lower grouped", {1, 1, 1, 0, 1});
        // the lists without them have an index of their own; two rules are tried until one makes the same lists
        row("with messages", "lowered", "--sends rendezvous", {1, 4, 4, 4, 2});
        row("several", "1f1b,gpipe", "--clock virtual", {2, 2, 2, 0, 0});
        // As chosen, for errors that name the user's schedule, and as edited.
        row("recomputed", "1f1b", "--clock virtual --recompute all", {2, 2, 2, 0, 0});
        row("replicas", "1f1b", "--clock virtual --replicas 2 --recompute all", {2, 2, 2, 0, 0});
    }

    void recording()
    {
        QFETCH(QString, schedule);
        QFETCH(QString, options);
        QFETCH(Work, expected);
        QTemporaryDir folder;
        if (schedule == "lowered") {
            schedule = folder.filePath("lowered.csv");
            const auto lowered = lower(*makeSchedule("1f1b", Shape(2, 4)), {LoweringRule::Grouped, 0, false});
            std::ofstream(schedule.toStdString()) << *writeScheduleCsv(*lowered);
        }
        for (const int steps : {1, 3}) { // a step adds nothing
            const QString file = folder.filePath(QStringLiteral("%1.stagewright").arg(steps));
            const QString words = QStringLiteral("record -s %1 -p 2 -m 4 --model layers=4,hidden=32,heads=2,seq=16 "
                                                 "--microbatch-size 1 --warmup 0 --steps %2 -o %3 ")
                                      .arg(schedule)
                                      .arg(steps)
                                      .arg(file);
            Work wanted = expected; // the ends of shared lists, a few ops, are placed on the virtual clock in each step
            if (options.contains(QStringLiteral("--replicas"))) wanted.cells += steps;
            QCOMPARE(workOf(words + options), wanted);
        }
    }

    void checking_data()
    {
        QTest::addColumn<QString>("options");
        QTest::addColumn<Work>("expected");
        const auto row = [](const char* name, const char* options, const Work& expected) {
            QTest::newRow(name) << options << expected;
        };
        // The schedule and the undivided model's; besides, one simulation, which finds cells, says whether the channels
        // block it.
        row("plain", "", {2, 2, 3, 0, 0});
        // that of lists with messages: their index
        row("rendezvous", "--sends rendezvous --lower grouped", {2, 3, 3, 0, 1});
        row("links in forward times", "--comm 0.1", {2, 2, 3, 0, 0});
        row("recomputed", "--recompute all", {3, 3, 4, 0, 0}); // as chosen and as edited
    }

    void checking()
    {
        QFETCH(QString, options);
        QFETCH(Work, expected);
        for (const int steps : {1, 3})
            QCOMPARE(workOf(QStringLiteral("check -s 1f1b -p 2 -m 4 --backend cpu --steps %1 ").arg(steps) + options),
                     expected);
    }
};

QTEST_GUILESS_MAIN(TestScheduleWork)
#include "tst_schedule_work.moc"
