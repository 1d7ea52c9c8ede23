// Tables of a report in the window: the first one with rows is open, a course is drawn above its table, by keyboard and
// in both themes.
#include <QLineEdit>
#include <QTreeWidget>
#include <QtTest>

#include "schedules/library/registry.h"
#include "traces/report/table_curves.h"
#include "traces/run/simulated_run.h"
#include "widgets/document/figure_table.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/table_copy.h"
#include "widgets/tables/tables_panel.h"

using namespace stagewright;

namespace {

std::shared_ptr<const std::vector<ReportTable>> tablesOfRun(bool curves)
{
    const Schedule schedule = *makeSchedule("1f1b", Shape{4, 8, 0});
    Run run = *simulatedRun(schedule, CostModel::uniform(schedule));
    if (curves)
        run.metrics = {{"loss", "nats", {5.5, 4.25, 3.75}},
                       {"synchronous_loss", "nats", {5.5, 4.0, 3.5}},
                       {"deviation", "", {0.0, 0.01, 0.02}}};
    return std::make_shared<const std::vector<ReportTable>>(reportTables(StepContext(run, 0)));
}

} // namespace

class TestTablesPanel : public QObject {
    Q_OBJECT

private slots:
    void opensOnATableWithRows()
    {
        TablesPanel panel;
        panel.resize(900, 400);
        const auto tables = tablesOfRun(false);
        const auto unknown = std::count_if(tables->begin(), tables->end(), [](const ReportTable& table) {
            return !table.unknown.empty() || table.rows.empty();
        });
        QVERIFY(unknown > 0);
        auto first = *tables; // as of a run whose first table has none
        first.front().rows.clear();
        first.front().unknown = "no kernels were recorded";
        panel.setTables(std::make_shared<const std::vector<ReportTable>>(first), {});
        QVERIFY(panel.chosen() > 0);
        QVERIFY(panel.table() != nullptr && panel.table()->model()->rowCount() > 0);
        panel.choose(QStringLiteral("loss_curves")); // the user's choice stays, though it is empty
        const int chosen = panel.chosen();
        QVERIFY(panel.table() == nullptr && panel.plot() == nullptr);
        panel.setTables(tables, {});
        QCOMPARE(panel.chosen(), chosen);
    }

    // A run without ops opens it on why nothing computes, not on the first table that has rows.
    void withoutOpsItOpensOnWhyNothingComputes()
    {
        auto tables = *tablesOfRun(false);
        for (ReportTable& table : tables) {
            const bool device = table.analysis->part == ReportPart::Device;
            table.unknown = device ? "" : "no range of this trace is known as an op";
            table.rows.clear();
            if (device) table.rows.push_back(TableRow(table.columns.size()));
        }
        TablesPanel panel;
        panel.setTables(std::make_shared<const std::vector<ReportTable>>(tables), {});
        QCOMPARE(panel.names()->currentItem()->text(0), QStringLiteral("Why devices do not compute"));
        QCOMPARE(
            std::count_if(tables.begin(), tables.end(), [](const ReportTable& table) { return table.analysis->leads; }),
            1);
    }

    // By subject, with what the run has not folded below; a few letters narrow the list.
    void namesAreGroupedAndFound()
    {
        TablesPanel panel;
        panel.setTables(tablesOfRun(false), {});
        const QTreeWidget* names = panel.names();
        QVERIFY(names->topLevelItemCount() >= 2);
        const QTreeWidgetItem* first = names->topLevelItem(0);
        const QTreeWidgetItem* unknown = names->topLevelItem(names->topLevelItemCount() - 1);
        QVERIFY(first->isExpanded());
        QCOMPARE(unknown->text(0), QStringLiteral("Not known of this run"));
        QVERIFY(!unknown->isExpanded() && unknown->childCount() > 0 && !unknown->child(0)->toolTip(0).isEmpty());
        QStringList known, all;
        for (int i = 0; i < names->topLevelItemCount(); ++i)
            for (int k = 0; k < names->topLevelItem(i)->childCount(); ++k) {
                all << names->topLevelItem(i)->child(k)->text(0);
                if (names->topLevelItem(i) != unknown) known << all.last();
            }
        QCOMPARE(all.size(), static_cast<int>(allAnalyses().size()));
        QVERIFY(known.contains(QStringLiteral("Slack of ops")) || known.filter(QStringLiteral("lack")).size() > 0);
        QVERIFY(!known.contains(QStringLiteral("Loss beside synchronous training")));
        panel.filter()->setText(QStringLiteral("slack kind"));
        QStringList left;
        for (int i = 0; i < names->topLevelItemCount(); ++i)
            for (int k = 0; k < names->topLevelItem(i)->childCount(); ++k)
                if (!names->topLevelItem(i)->isHidden() && !names->topLevelItem(i)->child(k)->isHidden())
                    left << names->topLevelItem(i)->child(k)->text(0);
        QVERIFY2(!left.isEmpty() && left.size() < 4, qPrintable(left.join(QStringLiteral(", "))));
        panel.filter()->clear();
        QVERIFY(!names->topLevelItem(0)->isHidden());
    }

    void courseAboveItsTable()
    {
        TablesPanel panel;
        panel.resize(900, 500);
        panel.setTables(tablesOfRun(true), {});
        panel.choose(QStringLiteral("loss_curves"));
        panel.show();
        PlotWidget* plot = panel.plot();
        QVERIFY(plot != nullptr && plot->isVisible());
        QVERIFY(panel.table() != nullptr && panel.table()->isVisible());
        QVERIFY(plot->geometry().bottom() <= panel.table()->geometry().top() + 1);
        QCOMPARE(plot->items(), 3);
        plot->setFocus();
        QTest::keyClick(plot, Qt::Key_End);
        QCOMPARE(plot->textOf(plot->chosen()), QStringLiteral("Step 3: loss 3.750, synchronous 3.500"));
        QCOMPARE(plot->accessibleDescription(), plot->textOf(2));
        QTest::mouseClick(plot, Qt::LeftButton, {}, plot->itemRect(1).center().toPoint());
        QCOMPARE(plot->chosen(), 1);
        QCOMPARE(copyableTable(plot).rows.size(), 3);
        panel.setTheme(Theme::light());
        const QImage light = plot->grab().toImage();
        panel.setTheme(Theme::darkTheme());
        QVERIFY(plot->grab().toImage() != light);
        for (const PlotSeries& curve : curvesOf((*tablesOfRun(true))[static_cast<std::size_t>(panel.chosen())]).series)
            QCOMPARE(curve.points.size(), std::size_t{3});
        panel.choose(QStringLiteral("bubbles"));
        QVERIFY(panel.plot() == nullptr);
    }
};

QTEST_MAIN(TestTablesPanel)
#include "tst_tables_panel.moc"
