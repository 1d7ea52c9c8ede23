// The runs list: the rules of QAbstractItemModelTester, and the text of its rows.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QtTest>

#include "widgets/runs/runs_model.h"

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
        QVERIFY2(!tip.contains("<img") && !tip.contains("<b>") && !tip.contains("<a href") && tip.contains("&lt;img"), qPrintable(tip));
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

QTEST_GUILESS_MAIN(TestRunsModel)
#include "tst_runs_model.moc"
