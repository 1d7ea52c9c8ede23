// Comparing in the window: two to four runs, the pair, alignment, steps, units, the waterfall, the ops, the baseline;
// both themes.
#include <QComboBox>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/compare/device_tables.h"
#include "traces/store/run_file.h"
#include "widgets/compare/baseline_strip.h"
#include "widgets/compare/compare_overlay.h"
#include "widgets/compare/compare_panel.h"
#include "widgets/compare/op_table.h"
#include "widgets/compare/waterfall_chart.h"
#include "widgets/panel/inspector.h"
#include "widgets/panel/side_panel.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/timeline/timeline_view.h"
#include "window_fixture.h"

using namespace stagewright;

class TestCompareWindow : public QObject {
    Q_OBJECT

    static bool compare(MainWindow& window, const std::vector<RunRef>& refs)
    {
        window.workspace().feature<CompareController>()->show(refs);
        return QTest::qWaitFor(
            [&] { return window.workspace().shown().mode() == Shown::Mode::Compare && window.workspace().settled(); },
            30000);
    }

private slots:
    void fourRunsOnOneAxis()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1", "gpipe"});
        const QString b = fixture.file("b.stagewright", {"zb-h2"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a, b}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}, {b, 1}, {a, 3}}));
        QCOMPARE(window.workspace().views().timeline->panels().size(), std::size_t{4});
        QCOMPARE(window.workspace().feature<CompareController>()->comparisons().size(), std::size_t{3});
        QCOMPARE(window.workspace().runs()->indexOf({b, 1}).data(RunsModel::MarkRole).toString(), QStringLiteral("C"));
        QVERIFY(window.statusBar() != nullptr);
        // the panel shows the last one first; the key moves on to the others
        QCOMPARE(window.workspace().feature<CompareController>()->against(), 3);
        QVERIFY(window.workspace().feature<CompareController>()->panel()->plainText().contains("Differences from A"));
        window.workspace().actions()["nextCompared"]->trigger();
        QCOMPARE(window.workspace().feature<CompareController>()->against(), 1);
        QVERIFY(window.workspace().feature<CompareController>()->panel()->plainText().contains("Why B is faster"));
        window.workspace().actions()["nextCompared"]->trigger();
        const QString text = window.workspace().feature<CompareController>()->panel()->plainText();
        QVERIFY2(text.contains("Why C is faster"), qPrintable(text));
        QVERIFY(text.contains("C is "));
        // swapped: A and the one compared
        window.workspace().actions()["swapCompare"]->trigger();
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().settled() && window.workspace().shown().ref() == RunRef{b, 1};
            },
            20000));
        QVERIFY(window.workspace().shown().comparison()->change.makespanDelta > 0);
        for (const ThemeChoice theme : {ThemeChoice::Dark, ThemeChoice::Light}) {
            Appearance::choose(theme);
            const QImage image =
                window.workspace().feature<CompareController>()->panel()->waterfall()->grab().toImage();
            int coloured = 0;
            for (int y = 0; y < image.height(); y += 2)
                for (int x = 0; x < image.width(); x += 2)
                    coloured += image.pixelColor(x, y) == window.workspace().theme().worse ? 1 : 0;
            QVERIFY2(coloured > 20, qPrintable(QString::number(coloured)));
        }
        window.workspace().actions()["compare"]->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().shown().mode(), Shown::Mode::Run, 20000);
    }

    // The dialog proposes the run shown and its neighbour, the older of them as A, and Return compares.
    void theDialogComparesWithTheOlderOne()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1", "gpipe"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        window.workspace().shown().showRun({a, 2});
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().settled() && window.workspace().shown().ref() == (RunRef{a, 2}),
                                 20000);
        window.workspace().actions()["compare"]->trigger();
        QDialog* dialog = nullptr;
        QTRY_VERIFY_WITH_TIMEOUT((dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget())) != nullptr,
                                 20000);
        const auto boxes = dialog->findChildren<QComboBox*>();
        QVERIFY(boxes.size() >= 2);
        const auto* runs = window.workspace().runs();
        const auto created = [&](int number) { return runs->info({a, number})->createdUnixMs; };
        const auto numberIn = [](const QComboBox* box) {
            return box->currentText().section(QStringLiteral("run "), 1).section(QLatin1Char(')'), 0, 0).toInt();
        };
        const int first = numberIn(boxes[0]), second = numberIn(boxes[1]);
        QVERIFY(first != second && (first == 2 || second == 2));
        QVERIFY(created(first) < created(second) || (created(first) == created(second) && first < second));
        auto* ok = dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
        QVERIFY(ok->isDefault());
        QTest::keyClick(dialog, Qt::Key_Return);
        QTRY_COMPARE_WITH_TIMEOUT(window.workspace().shown().mode(), Shown::Mode::Compare, 20000);
    }

    void theWaterfallSumsToTheChange()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h2"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        for (const int kind : {0, 1}) {
            window.workspace().feature<CompareController>()->panel()->waterfallKind()->setCurrentIndex(kind);
            const auto& bars = window.workspace().feature<CompareController>()->panel()->bars();
            QVERIFY(bars.size() >= 3);
            QVERIFY(bars.front().total && bars.back().total);
            Nanos now = bars.front().to;
            for (std::size_t i = 1; i + 1 < bars.size(); ++i) {
                QCOMPARE(bars[i].from, now);
                now = bars[i].to;
            }
            QCOMPARE(now, bars.back().to);
            QCOMPARE(bars.back().to - bars.front().to, window.workspace().shown().comparison()->change.makespanDelta);
            // and whose change it is: elsewhere in the panel changes are summed over ranks
            const QString sum =
                signedDurationText(bars.back().to - bars.front().to, window.workspace().shown().units());
            QString said;
            for (const QLabel* label :
                 window.workspace().feature<CompareController>()->panel()->findChildren<QLabel*>())
                if (label->text().contains(QStringLiteral("not summed over"))) said = label->text();
            QVERIFY2(said.endsWith(QStringLiteral("the bars add up to %1.").arg(sum)), qPrintable(said));
            QVERIFY2(said.contains(QStringLiteral("path through the ranks")) == (kind == 0), qPrintable(said));
            QVERIFY(!window.workspace()
                         .feature<CompareController>()
                         ->panel()
                         ->waterfall()
                         ->accessibleDescription()
                         .isEmpty());
        }
    }

    void alignedAtAnOp()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"gpipe", "1f1b"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        QVERIFY(!window.workspace().actions()["alignAtOp"]->isChecked());
        const Timeline& first = *window.workspace().views().timeline->panels()[0]->timeline;
        window.workspace().viewState()->select({0, WindowFixture::spanOf(first, "0B0")});
        window.workspace().actions()["alignAtOp"]->trigger();
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().settled() &&
                       window.workspace().feature<CompareController>()->alignedAt().has_value();
            },
            20000));
        std::vector<Nanos> starts;
        for (const auto& panel : window.workspace().views().timeline->panels())
            starts.push_back(
                panel->toAxis(panel->timeline->spans()[WindowFixture::spanOf(*panel->timeline, "0B0")].start));
        QCOMPARE(starts[0], starts[1]);
        QVERIFY(window.workspace().actions()["alignAtOp"]->isChecked());
        // the figures are those of the steps, independent of alignment
        QCOMPARE(window.workspace().shown().comparison()->reportA.bubbles.makespan(),
                 window.workspace().views().timeline->panels()[0]->duration -
                     window.workspace().views().timeline->panels()[0]->lead);
        window.workspace().actions()["alignAtOp"]->trigger();
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().settled() &&
                       !window.workspace().feature<CompareController>()->alignedAt().has_value();
            },
            20000));
        QCOMPARE(window.workspace().views().timeline->panels()[1]->lead, 0);
        // nothing selected: a message, and nothing changes
        window.workspace().viewState()->clearSelection();
        window.workspace().actions()["alignAtOp"]->trigger();
        QVERIFY2(window.workspace().banner()->text().contains("no op is selected", Qt::CaseInsensitive),
                 qPrintable(window.workspace().banner()->text()));
        QVERIFY(!window.workspace().actions()["alignAtOp"]->isChecked());
    }

    void unitsAreNeverMixed()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        const Schedule schedule = *makeSchedule("zb-h1", Shape(4, 8));
        CostModel costs = CostModel::uniform(schedule);
        costs.timeUnit = costs.memoryUnit = 1;
        // never saved
        const RunRef measured = window.workspace().library()->addSimulated(*simulatedRun(schedule, costs));
        QVERIFY(compare(window, {{a, 1}, measured}));
        QVERIFY(!window.workspace().shown().comparison()->sameUnits);
        const QString text = window.workspace().feature<CompareController>()->panel()->plainText();
        QVERIFY2(text.contains("unit of time: units in A, nanoseconds in B"), qPrintable(text));
        QVERIFY(!text.contains("faster") && !text.contains("slower"));
        QVERIFY(!window.workspace().feature<CompareController>()->panel()->waterfall()->isVisible());
        QVERIFY(!window.workspace().feature<CompareController>()->panel()->ops()->isVisible());
    }

    // Traces without ops: the rows and sentences of the command line; a kernel leads to its call.
    void kernelsOfTwoTraces()
    {
        WindowFixture fixture;
        const auto store = [&](const char* name, Nanos longest, const char* last) {
            TimelineBuilder builder(Provenance::Imported, "wall", 1);
            const int track = builder.addTrack(0, Lane::Kernel, "rank 0 stream 7");
            Nanos at = 0;
            for (int i = 0; i < 4; ++i) {
                Span span;
                span.start = at;
                span.end = at += i == 2 ? longest : 10'000;
                span.label = builder.intern(i < 3 ? "gemm" : last, "grid 8×1×1, block 128×1×1") & 0xffffffu;
                builder.addSpan(track, span);
            }
            Run run;
            run.timeline = builder.build().value();
            run.info.name = name;
            run.info.ranks = run.info.steps = 1;
            run.info.provenance = Provenance::Imported;
            const QString path = fixture.dir.filePath(QString::fromLatin1(name) + ".stagewright");
            auto file = RunFile::open(path.toStdString(), OpenMode::Create);
            if (!file || !(*file)->add(run)) qFatal("not stored");
            return path;
        };
        const QString a = store("before", 10'000, "gelu"), b = store("after", 40'000, "relu");
        MainWindow window;
        QVERIFY(fixture.open(window, {a, b}));
        QVERIFY(compare(window, {{a, 1}, {b, 1}}));
        ComparePanel* panel = window.workspace().feature<CompareController>()->panel();
        const auto comparison = window.workspace().shown().comparison();
        QVERIFY(comparison->devices.has_value());
        // The band between their ends is as long as what it says, though their steps are unknown.
        const auto& panels = window.workspace().views().timeline->panels();
        const auto [before, after] = comparedTimes(*panels[0], *panels[1]);
        QCOMPARE(after - before, Nanos(30'000));
        const QString text = panel->plainText();
        for (const std::string& why : comparison->devices->why)
            QVERIFY2(text.contains(QString::fromStdString(why), Qt::CaseInsensitive), qPrintable(text));
        for (const document::Section& section : deviceSections(*comparison->devices)) {
            QVERIFY2(section.title.starts_with("device time") ||
                         text.contains(QString::fromStdString(section.title), Qt::CaseInsensitive),
                     qPrintable(text));
            for (const document::Row& row : std::get<document::Table>(section.elements.front()).rows)
                QVERIFY2(
                    text.contains(QString::fromStdString(std::get<std::string>(row.cells[0])), Qt::CaseInsensitive),
                    qPrintable(text));
        }
        QPushButton* gemm = nullptr;
        for (QPushButton* button : panel->findChildren<QPushButton*>())
            if (button->text() == "Gemm" || button->text() == "gemm") gemm = button;
        QVERIFY(gemm != nullptr);
        QVERIFY2(gemm->toolTip().contains("Shape: grid 8×1×1, block 128×1×1") &&
                     gemm->toolTip().contains("Matched by: shape and order"),
                 qPrintable(gemm->toolTip()));
        gemm->click();
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().viewState()->selected().valid(); }, 5000));
        QCOMPARE(window.workspace().viewState()->selected().panel, 1);
        QCOMPARE(window.workspace().viewState()->selected().span, SpanId{2});
    }

    void opsAreSortedAndChosen()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        CompareOpTable* table = window.workspace().feature<CompareController>()->panel()->ops();
        QVERIFY(table->model()->rowCount() > 50);
        table->sortByColumn(CompareOpModel::Start, Qt::DescendingOrder);
        qlonglong last = std::numeric_limits<qlonglong>::max();
        for (int i = 0; i < table->model()->rowCount(); ++i) {
            const qlonglong change =
                table->model()->index(i, CompareOpModel::Start).data(CompareOpModel::SortRole).toLongLong();
            QVERIFY(change <= last);
            last = change;
        }
        // Every change is read whole where the panel is narrow, and none of a simulation is called noise.
        Inspector* inspector = window.workspace().room().inspector();
        for (const int width : {320, 420}) {
            inspector->setFixedWidth(width);
            QVERIFY(WindowFixture::settle(window));
            QVERIFY(width < 420 || table->horizontalHeader()->length() <= table->viewport()->width());
            for (int column = CompareOpModel::OpName; column < CompareOpModel::Steps; ++column) {
                const int needed = static_cast<QAbstractItemView*>(table)->sizeHintForColumn(column);
                QVERIFY2(table->columnWidth(column) >= needed && needed > 0,
                         qPrintable(QStringLiteral("%1: column %2 has %3 of %4 px")
                                        .arg(width)
                                        .arg(column)
                                        .arg(table->columnWidth(column))
                                        .arg(needed)));
                QVERIFY(table->columnWidth(column) >= table->horizontalHeader()->sectionSizeHint(column));
            }
        }
        for (int i = 0; i < table->model()->rowCount(); ++i)
            for (const int column : {CompareOpModel::Start, CompareOpModel::Duration}) {
                const QString said = table->model()->index(i, column).data(Qt::ToolTipRole).toString();
                QVERIFY2(said == QStringLiteral("no change") || said == QStringLiteral("simulated: without noise"),
                         qPrintable(said));
            }
        table->setFocus();
        table->selectRow(0);
        QVERIFY(window.workspace().viewState()->selected().valid());
        QCOMPARE(window.workspace().viewState()->selected().panel, 1);
    }

    // Every run shown is compared with the baseline until it is cleared.
    void theBaselineStays()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1", "gpipe"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        BaselineStrip* strip = window.workspace().feature<CompareController>()->strip();
        QVERIFY(!strip->isVisible());
        window.workspace().actions()["setBaseline"]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return window.workspace().feature<CompareController>()->baseline().valid(); },
                                20000));
        QVERIFY(strip->isVisible());
        QVERIFY(strip->plainText().contains("This is the baseline"));
        window.workspace().shown().showRun({a, 2});
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().shown().ref() == RunRef{a, 2} && window.workspace().settled() &&
                       window.workspace().feature<CompareController>()->againstBaseline();
            },
            20000));
        QTRY_VERIFY2_WITH_TIMEOUT(strip->plainText().contains("time") &&
                                      strip->plainText().contains(QStringLiteral("−")),
                                  qPrintable(strip->plainText()), 10000);
        // Every figure of the panel also shows its change: ZB-H1 is shorter and idles less; a range has none.
        SidePanel* side = window.workspace().views().side;
        const auto line = [&](const char* begin) {
            for (const QString& one : side->plainText().split(QLatin1Char('\n')))
                if (one.startsWith(QLatin1String(begin))) return one;
            return QString();
        };
        QVERIFY2(line("Step time").contains(QRegularExpression(QStringLiteral("  −[0-9.]+ %$"))),
                 qPrintable(line("Step time")));
        QVERIFY2(line("Rank 0: ").contains(QRegularExpression(QStringLiteral("  −[0-9]+ pt$"))),
                 qPrintable(line("Rank 0: ")));
        QVERIFY2(line("Peak activation").contains(QRegularExpression(QStringLiteral(" %$"))),
                 qPrintable(line("Peak activation")));
        QVERIFY2(line("Warm-up").contains(QRegularExpression(QStringLiteral("  [−+]?[0-9.]+ %$"))),
                 qPrintable(line("Warm-up")));
        for (const QLabel* label : side->summary()->findChildren<QLabel*>()) {
            if (!label->isVisibleTo(side->summary()) || label->text().isEmpty()) continue;
            QVERIFY2(label->mapTo(side->summary()->widget(), QPoint(label->width(), 0)).x() <=
                         side->summary()->viewport()->width(),
                     qPrintable(label->text()));
        }
        window.workspace().viewState()->setAreas({{{0, rankShare * 10}, 0, 3}});
        QTRY_VERIFY_WITH_TIMEOUT(side->filtered(), 20000);
        QVERIFY(!side->plainText().contains(QStringLiteral(" pt")));
        window.workspace().viewState()->setAreas({});
        QTRY_VERIFY_WITH_TIMEOUT(!side->filtered(), 20000);
        QVERIFY(line("Step time").endsWith(QStringLiteral(" %")));
        window.workspace().shown().showRun({a, 3});
        QVERIFY(QTest::qWaitFor(
            [&] {
                return window.workspace().shown().ref() == RunRef{a, 3} && window.workspace().settled();
            },
            20000));
        QVERIFY(strip->isVisible());
        QVERIFY(!window.workspace().actions()["setBaseline"]->isChecked());
        for (QPushButton* button : strip->findChildren<QPushButton*>())
            if (!button->isCheckable()) button->click(); // Clear
        QVERIFY(!strip->isVisible());
        QVERIFY(!window.workspace().feature<CompareController>()->baseline().valid());
        QVERIFY(!line("Step time").endsWith(QStringLiteral(" %")));
    }

    void anEmptyRunIsNoCrash()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        Run empty;
        empty.info.name = "empty";
        empty.timeline = TimelineBuilder(Provenance::Imported, "", 2).build().value();
        const RunRef ref = window.workspace().library()->addSimulated(std::move(empty));
        window.workspace().feature<CompareController>()->show({{a, 1}, ref});
        QVERIFY(fixture.settle(window));
        QVERIFY(window.workspace().shown().mode() == Shown::Mode::Compare ||
                !window.workspace().banner()->text().isEmpty());
    }
};

QTEST_MAIN(TestCompareWindow)
#include "tst_compare_window.moc"
