// The runs list: the rules of QAbstractItemModelTester, and the text of its rows.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QtTest>

#include "widgets/runs/runs_model.h"
#include "widgets/runs/runs_panel.h"

using namespace stagewright;

class TestRunsModel : public QObject {
    Q_OBJECT

    static RunInfo info(std::int64_t id, const char* schedule, RunState state = RunState::Complete)
    {
        RunInfo made;
        made.id = id;
        made.name = schedule;
        made.scheduleName = schedule;
        made.state = state;
        made.clock = "virtual";
        made.ranks = 4;
        made.stages = 4;
        made.microbatches = 8;
        made.steps = 3;
        return made;
    }

private slots:
    void obeysTheModelRules()
    {
        RunsModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.addFile(QStringLiteral("/a.stagewright"));
        model.setRuns(QStringLiteral("/a.stagewright"), {info(1, "1f1b"), info(2, "zb-h1")});
        model.setRuns(QStringLiteral("/b.stagewright"), {info(1, "gpipe")});
        model.setRuns(QStringLiteral("/a.stagewright"), {info(2, "zb-h1"), info(3, "gpipe"), info(4, "1f1b")});
        QCOMPARE(model.rowCount(), 2);
        QCOMPARE(model.rowCount(model.index(0, 0)), 3);
        QVERIFY(!model.indexOf({QStringLiteral("/a.stagewright"), 1}).isValid());
        model.setFailed(QStringLiteral("/b.stagewright"), QStringLiteral("damaged"));
        model.removeFile(QStringLiteral("/a.stagewright"));
        QCOMPARE(model.rowCount(), 1);
        model.removeFile(QStringLiteral("/nothing"));
        QCOMPARE(model.rowCount(), 1);
    }

    // A long list comes and goes as one change, and the list of the window looks at each row once, not at all of them
    // for each.
    void longLists()
    {
        class Counted : public RunsModel {
        public:
            mutable qint64 looks = 0;
            QVariant data(const QModelIndex& index, int role) const override
            {
                ++looks;
                return RunsModel::data(index, role);
            }
        };
        const auto looksFor = [](std::int64_t count) {
            Counted model;
            RunsPanel panel(&model);
            std::vector<RunInfo> runs;
            for (std::int64_t id = 1; id <= count; ++id) runs.push_back(info(id, "1f1b"));
            const QString path = QStringLiteral("/many.stagewright");
            QSignalSpy inserted(&model, &QAbstractItemModel::rowsInserted);
            QSignalSpy removed(&model, &QAbstractItemModel::rowsRemoved);
            model.setRuns(path, runs);
            for (const RunInfo& run : runs) model.setSummary({path, run.id}, {1, 0.5, {}});
            // its file, and all of its runs
            const bool came = inserted.count() == 2 && model.runCount() == count && model.hasSummary({path, count});
            runs.erase(runs.begin() + 1, runs.end() - 1);
            model.setRuns(path, runs);
            return came && removed.count() == 1 && model.runCount() == 2 && model.indexOf({path, count}).row() == 1
                       ? model.looks
                       : -1;
        };
        const qint64 few = looksFor(1000);
        const qint64 many = looksFor(4000);
        QVERIFY(few >= 0 && many >= 0);
        QVERIFY2(many <= 5 * few + 1000,
                 qPrintable(QStringLiteral("%1 looks for 1,000 runs, %2 for 4,000").arg(few).arg(many)));
    }

    // What stays, what goes and what comes, mixed: rows and ids agree.
    void idsFindTheirRows()
    {
        RunsModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QString path = QStringLiteral("/a.stagewright");
        std::vector<RunInfo> odd, third;
        for (std::int64_t id = 1; id <= 60; ++id) {
            if (id % 2 == 1) odd.push_back(info(id, "1f1b"));
            if (id % 3 == 0) third.push_back(info(id, "gpipe"));
        }
        for (const auto* runs : {&odd, &third, &odd}) {
            model.setRuns(path, *runs);
            QCOMPARE(model.runCount(), static_cast<qsizetype>(runs->size()));
            for (const RunInfo& run : *runs) {
                QCOMPARE(model.refAt(model.indexOf({path, run.id})), (RunRef{path, run.id}));
                QCOMPARE(model.info({path, run.id})->id, run.id);
            }
        }
        QVERIFY(!model.indexOf({path, 6}).isValid() && model.info({path, 6}) == nullptr);
    }

    void rowsSayWhatARunIs()
    {
        RunsModel model;
        const QString path = QStringLiteral("/demo.stagewright");
        model.setRuns(path, {info(7, "zb-h1"), info(8, "interleaved-1f1b v=2", RunState::Interrupted)});
        const RunRef ref{path, 7};
        const QModelIndex at = model.indexOf(ref);
        QCOMPARE(at.data().toString(), QStringLiteral("ZB-H1"));
        QCOMPARE(at.siblingAtColumn(RunsModel::Clock).data().toString(), QStringLiteral("virtual clock"));
        QCOMPARE(at.siblingAtColumn(RunsModel::Time).data().toString(), QStringLiteral("…"));
        QSignalSpy changed(&model, &QAbstractItemModel::dataChanged);
        model.setSummary(ref, {37'500'000, 0.229, {}});
        QCOMPARE(changed.count(), 1);
        QCOMPARE(at.siblingAtColumn(RunsModel::Time).data().toString(), QStringLiteral("37.5 ms"));
        QCOMPARE(at.siblingAtColumn(RunsModel::Bubble).data().toString(), percentText(0.229));
        const QModelIndex second = model.indexOf({path, 8});
        QCOMPARE(second.siblingAtColumn(RunsModel::State).data().toString(), QStringLiteral("interrupted"));
        QVERIFY(second.data().toString().endsWith(QStringLiteral("v=2")));
        const QString live = QStringLiteral("/live.stagewright");
        model.setRuns(live, {info(1, "1f1b", RunState::Receiving)});
        const QModelIndex receiving = model.indexOf({live, 1});
        QCOMPARE(receiving.siblingAtColumn(RunsModel::State).data().toString(), QStringLiteral("receiving"));
        model.removeFile(live);
        QCOMPARE(model.refAt(second), (RunRef{path, 8}));
        QVERIFY(!model.refAt(model.index(0, 0)).valid());
        QVERIFY(model.data(model.index(0, 0), RunsModel::DetailRole).toString().contains(QStringLiteral("2 runs")));
    }

    void namesAreShownAsTheyAre()
    {
        RunsModel model;
        const QString path = QStringLiteral("/demo.stagewright");
        RunInfo hostile = info(1, "1f1b");
        hostile.name = "safe\xe2\x80\xae"
                       "gpj\x1b<img src=x><b>bold</b>";
        hostile.note = "<a href=\"x\">click</a>\xe2\x80\xae";
        model.setRuns(path, {hostile});
        const QModelIndex at = model.indexOf({path, 1});
        QCOMPARE(at.data().toString(), QStringLiteral("safe\\u202egpj\\x1b<img src=x><b>bold</b>"));
        const QString tip = at.data(Qt::ToolTipRole).toString();
        QVERIFY2(!tip.contains("<img") && !tip.contains("<b>") && !tip.contains("<a href") && tip.contains("&lt;img"),
                 qPrintable(tip));
        QVERIFY(!tip.contains(QChar(0x202E)) && !tip.contains(QChar(0x1B)) && tip.contains("\\u202egpj"));
        hostile.name = "plain";
        hostile.note.clear();
        model.setRuns(path, {hostile});
        QVERIFY(model.indexOf({path, 1}).data(Qt::ToolTipRole).toString().startsWith("plain, run 1: 4 ranks"));
    }

    void aListReadAgainKeepsItsRows()
    {
        RunsModel model;
        const QString path = QStringLiteral("/live.stagewright");
        model.setRuns(path, {info(1, "1f1b", RunState::Recording)});
        const QPersistentModelIndex kept(model.indexOf({path, 1}));
        model.setSummary({path, 1}, {1000, 0.5, {}});
        model.setRuns(path, {info(1, "1f1b", RunState::Recording), info(2, "zb-h1")});
        QVERIFY(kept.isValid());
        QVERIFY(model.hasSummary({path, 1}));
        QVERIFY(kept.sibling(kept.row(), RunsModel::Time).data().toString() != QStringLiteral("…"));
        // A run that grew has other figures: the old ones are dropped until it is read again.
        model.setRuns(path, {info(1, "1f1b"), info(2, "zb-h1")});
        QVERIFY(kept.isValid());
        QCOMPARE(kept.sibling(kept.row(), RunsModel::State).data().toString(), QStringLiteral("complete"));
        QVERIFY(!model.hasSummary({path, 1}));
        QCOMPARE(kept.sibling(kept.row(), RunsModel::Time).data().toString(), QStringLiteral("…"));
    }

    void marksAAndB()
    {
        RunsModel model;
        const QString path = QStringLiteral("/x.stagewright");
        model.setRuns(path, {info(1, "1f1b"), info(2, "zb-h1")});
        model.setMarks({RunRef{path, 1}, RunRef{path, 2}});
        QCOMPARE(model.indexOf({path, 1}).data(RunsModel::MarkRole).toString(), QStringLiteral("A"));
        QCOMPARE(model.indexOf({path, 2}).data(RunsModel::MarkRole).toString(), QStringLiteral("B"));
        model.setMarks({});
        QVERIFY(model.indexOf({path, 1}).data(RunsModel::MarkRole).toString().isEmpty());
    }
};

QTEST_MAIN(TestRunsModel)
#include "tst_runs_model.moc"
