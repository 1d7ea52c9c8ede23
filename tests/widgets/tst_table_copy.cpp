// Tables as text: CSV and Markdown of synthetic cells, models, grids and panels, and the keys that copy them.
#include <QClipboard>
#include <QGridLayout>
#include <QLabel>
#include <QMimeData>
#include <QPushButton>
#include <QStandardItemModel>
#include <QTableView>
#include <QtTest>

#include "widgets/panel/panel_parts.h"
#include "widgets/panel/side_panel.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

using namespace stagewright;

class TestTableCopy : public QObject {
    Q_OBJECT
private slots:
    void csvQuotesAndReadsAsNumbers()
    {
        const TableText table{
            "t", {"name", "change"}, {{"a,b", "\u22121.5 ms"}, {"say \"x\"", "two\nlines"}, {"short"}}};
        QCOMPARE(toText(table, TableFormat::Csv),
                 QString("name,change\n\"a,b\",-1.5 ms\n\"say \"\"x\"\"\",\"two\nlines\"\nshort,\n"));
    }
    void markdownEscapesAndAlignsFigures()
    {
        const TableText table{"Idle | all", {"rank", "time"}, {{"r|0", "1.5 ms"}, {"a\nb", "\u22122.0 ms"}}};
        QCOMPARE(toText(table, TableFormat::Markdown), QString("**Idle \\| all**\n\n| rank | time |\n| --- | ---: |\n| "
                                                               "r\\|0 | 1.5 ms |\n| a<br>b | \u22122.0 ms |\n"));
    }
    void emptyTableIsNothing()
    {
        QVERIFY(TableText{}.isEmpty());
        QCOMPARE(toText({}, TableFormat::Csv), QString());
        QApplication::clipboard()->setText("kept");
        copyTable({}, TableFormat::Csv);
        QCOMPARE(QApplication::clipboard()->text(), QString("kept"));
    }
    void modelWithChildrenAndHiddenColumns()
    {
        QStandardItemModel model;
        model.setHorizontalHeaderLabels({"op", "secret", "time"});
        auto* parent = new QStandardItem("file");
        parent->appendRow({new QStandardItem("run"), new QStandardItem("s"), new QStandardItem("3 ms")});
        model.appendRow({parent, new QStandardItem("t"), new QStandardItem("")});
        model.appendRow({new QStandardItem("last"), new QStandardItem("u"), new QStandardItem("4 ms")});
        QCOMPARE(toText(tableOf(model), TableFormat::Csv),
                 QString("op,secret,time\nfile,t,\nrun,s,3 ms\nlast,u,4 ms\n"));
        QTableView view;
        view.setModel(&model);
        view.hideColumn(1);
        QCOMPARE(toText(tableOf(view), TableFormat::Csv), QString("op,time\nfile,\nrun,3 ms\nlast,4 ms\n"));
        view.selectRow(0); // a single row is the current one, not a selection
        QCOMPARE(tableOf(view).rows.size(), 3);
    }
    void gridWithAnEmptyCorner()
    {
        QWidget widget;
        auto* grid = new QGridLayout(&widget);
        grid->addWidget(new QLabel("A"), 0, 1);
        grid->addWidget(new QLabel("B"), 0, 2);
        grid->addWidget(new QPushButton("&Time"), 1, 0);
        grid->addWidget(new QLabel("1"), 1, 1);
        grid->addWidget(new QLabel("2"), 1, 2);
        QCOMPARE(toText(tableOf(*grid), TableFormat::Csv), QString(",A,B\nTime,1,2\n"));
    }
    void sectionIsCopiedByKeys()
    {
        SectionColumn column;
        column.resize(300, 300);
        PanelSection* first = column.addSection("Memory");
        first->addRow("Peak", "6.5 GiB");
        first->addRow("a_long_name_with_parts", "2_3_4_5_6_7_8_9_10_11_12");
        PanelSection* second = column.addSection("Idle");
        second->addRow("Rank 0", "1 ms");
        column.finish();
        column.show();
        QVERIFY(QTest::qWaitForWindowExposed(&column));
        QCOMPARE(copyableTable(second).title, QString("Idle"));
        QCOMPARE(copyableTable(column.widget()).rows.size(), 3);
        QTest::keyClick(&column, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(
            QApplication::clipboard()->text(),
            QString("Memory,Peak,6.5 GiB\nMemory,a_long_name_with_parts,2_3_4_5_6_7_8_9_10_11_12\nIdle,Rank 0,1 ms\n"));
        QVERIFY(QApplication::clipboard()->mimeData()->hasHtml());
        QVERIFY(QApplication::clipboard()->mimeData()->hasFormat("text/csv"));
        // From a figure inside a section, nothing selected: that section.
        QLabel* figure = nullptr;
        for (QLabel* label : second->findChildren<QLabel*>())
            if (label->text() == "1 ms") figure = label;
        QVERIFY(figure != nullptr);
        QTest::keyClick(figure, Qt::Key_C, Qt::ControlModifier | Qt::ShiftModifier);
        QCOMPARE(QApplication::clipboard()->text(),
                 QString("**Idle**\n\n|  |  |\n| --- | ---: |\n| Rank 0 | 1 ms |\n"));
        QTest::keyClick(figure, Qt::Key_C, Qt::ControlModifier);
        QCOMPARE(QApplication::clipboard()->text(), QString("Rank 0,1 ms\n"));
    }
};

QTEST_MAIN(TestTableCopy)
#include "tst_table_copy.moc"
