// Comparing in the window: two to four runs, the pair, alignment, steps, units, the waterfall, the ops, the baseline; both themes.
#include <QComboBox>
#include <QLabel>
#include <QPushButton>

#include "app/ui/compare/compare_controller.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/compare/baseline_strip.h"
#include "widgets/compare/op_table.h"
#include "widgets/compare/waterfall_chart.h"
#include "window_fixture.h"

using namespace stagewright;

class TestCompareWindow : public QObject {
    Q_OBJECT

    static bool compare(MainWindow& window, const std::vector<RunRef>& refs)
    {
        window.compare()->show(refs);
        return QTest::qWaitFor([&] { return window.mode() == MainWindow::Mode::Compare && window.settled(); }, 30000);
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
        QCOMPARE(window.timelineView()->panels().size(), std::size_t{4});
        QCOMPARE(window.compare()->comparisons().size(), std::size_t{3});
        QCOMPARE(window.runs()->indexOf({b, 1}).data(RunsModel::MarkRole).toString(), QStringLiteral("C"));
        QVERIFY(window.statusBar() != nullptr);
        // the panel shows the last one first; the key moves on to the others
        QCOMPARE(window.compare()->against(), 3);
        QVERIFY(window.comparePanel()->plainText().contains("Differences from A"));
        window.actions()[ActionId::NextCompared]->trigger();
        QCOMPARE(window.compare()->against(), 1);
        QVERIFY(window.comparePanel()->plainText().contains("Why B is faster"));
        window.actions()[ActionId::NextCompared]->trigger();
        const QString text = window.comparePanel()->plainText();
        QVERIFY2(text.contains("Why C is faster"), qPrintable(text));
        QVERIFY(text.contains("C is "));
        // swapped: A and the one compared
        window.actions()[ActionId::SwapCompare]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return window.settled() && window.shownRef() == RunRef{b, 1}; }, 20000));
        QVERIFY(window.comparison()->change.makespanDelta > 0);
        for (const ThemeChoice theme : {ThemeChoice::Dark, ThemeChoice::Light}) {
            window.setThemeChoice(theme);
            const QImage image = window.comparePanel()->waterfall()->grab().toImage();
            int coloured = 0;
            for (int y = 0; y < image.height(); y += 2)
                for (int x = 0; x < image.width(); x += 2) coloured += image.pixelColor(x, y) == window.theme().worse ? 1 : 0;
            QVERIFY2(coloured > 20, qPrintable(QString::number(coloured)));
        }
        window.actions()[ActionId::Compare]->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(window.mode(), MainWindow::Mode::Run, 20000);
    }

    void theWaterfallSumsToTheChange()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h2"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        for (const int kind : {0, 1}) {
            window.comparePanel()->waterfallKind()->setCurrentIndex(kind);
            const auto& bars = window.comparePanel()->waterfall()->bars();
            QVERIFY(bars.size() >= 3);
            QVERIFY(bars.front().total && bars.back().total);
            Nanos now = bars.front().to;
            for (std::size_t i = 1; i + 1 < bars.size(); ++i) {
                QCOMPARE(bars[i].from, now);
                now = bars[i].to;
            }
            QCOMPARE(now, bars.back().to);
            QCOMPARE(bars.back().to - bars.front().to, window.comparison()->change.makespanDelta);
            QVERIFY(!window.comparePanel()->waterfall()->accessibleDescription().isEmpty());
        }
    }

    void alignedAtAnOp()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"gpipe", "1f1b"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        QVERIFY(!window.actions()[ActionId::AlignAtOp]->isChecked());
        const Timeline& first = *window.timelineView()->panels()[0]->timeline;
        window.viewState()->select({0, WindowFixture::spanOf(first, "0B0")});
        window.actions()[ActionId::AlignAtOp]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return window.settled() && window.compare()->alignedAt().has_value(); }, 20000));
        std::vector<Nanos> starts;
        for (const auto& panel : window.timelineView()->panels()) starts.push_back(panel->toAxis(panel->timeline->spans()[WindowFixture::spanOf(*panel->timeline, "0B0")].start));
        QCOMPARE(starts[0], starts[1]);
        QVERIFY(window.actions()[ActionId::AlignAtOp]->isChecked());
        // the figures are those of the steps, independent of alignment
        QCOMPARE(window.comparison()->reportA.bubbles.makespan(), window.timelineView()->panels()[0]->duration - window.timelineView()->panels()[0]->lead);
        window.actions()[ActionId::AlignAtOp]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return window.settled() && !window.compare()->alignedAt().has_value(); }, 20000));
        QCOMPARE(window.timelineView()->panels()[1]->lead, 0);
        // nothing selected: a message, and nothing changes
        window.viewState()->clearSelection();
        window.actions()[ActionId::AlignAtOp]->trigger();
        QVERIFY2(window.bannerText().contains("no op is selected", Qt::CaseInsensitive), qPrintable(window.bannerText()));
        QVERIFY(!window.actions()[ActionId::AlignAtOp]->isChecked());
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
        const RunRef measured = window.library()->addSimulated(*simulatedRun(schedule, costs)); // never saved
        QVERIFY(compare(window, {{a, 1}, measured}));
        QVERIFY(!window.comparison()->sameUnits);
        const QString text = window.comparePanel()->plainText();
        QVERIFY2(text.contains("unit of time: rank shares in A, nanoseconds in B"), qPrintable(text));
        QVERIFY(!text.contains("faster") && !text.contains("slower"));
        QVERIFY(!window.comparePanel()->waterfall()->isVisible());
        QVERIFY(!window.comparePanel()->ops()->isVisible());
    }

    void opsAreSortedAndChosen()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        QVERIFY(compare(window, {{a, 1}, {a, 2}}));
        CompareOpTable* table = window.comparePanel()->ops();
        QVERIFY(table->model()->rowCount() > 50);
        table->sortByColumn(CompareOpModel::Start, Qt::DescendingOrder);
        qlonglong last = std::numeric_limits<qlonglong>::max();
        for (int i = 0; i < table->model()->rowCount(); ++i) {
            const qlonglong change = table->model()->index(i, CompareOpModel::Start).data(CompareOpModel::SortRole).toLongLong();
            QVERIFY(change <= last);
            last = change;
        }
        table->setFocus();
        table->selectRow(0);
        QVERIFY(window.viewState()->selected().valid());
        QCOMPARE(window.viewState()->selected().panel, 1);
    }

    // Every run shown is compared with the baseline until it is cleared.
    void theBaselineStays()
    {
        WindowFixture fixture;
        const QString a = fixture.file("a.stagewright", {"1f1b", "zb-h1", "gpipe"});
        MainWindow window;
        QVERIFY(fixture.open(window, {a}));
        BaselineStrip* strip = window.compare()->strip();
        QVERIFY(!strip->isVisible());
        window.actions()[ActionId::SetBaseline]->trigger();
        QVERIFY(QTest::qWaitFor([&] { return window.compare()->baseline().valid(); }, 20000));
        QVERIFY(strip->isVisible());
        QVERIFY(strip->plainText().contains("This is the baseline"));
        window.showRun({a, 2});
        QVERIFY(QTest::qWaitFor([&] { return window.shownRef() == RunRef{a, 2} && window.settled() && window.compare()->againstBaseline(); }, 20000));
        QTRY_VERIFY2_WITH_TIMEOUT(strip->plainText().contains("Time") && strip->plainText().contains(QStringLiteral("−")), qPrintable(strip->plainText()), 10000);
        // Every figure of the panel also shows its change: ZB-H1 is shorter and idles less; a range has none.
        SidePanel* side = window.sidePanel();
        const auto line = [&](const char* begin) {
            for (const QString& one : side->plainText().split(QLatin1Char('\n')))
                if (one.startsWith(QLatin1String(begin))) return one;
            return QString();
        };
        QVERIFY2(line("Step time").contains(QRegularExpression(QStringLiteral("  −[0-9.]+ %$"))), qPrintable(line("Step time")));
        QVERIFY2(line("Rank 0: ").contains(QRegularExpression(QStringLiteral("  −[0-9]+ pt$"))), qPrintable(line("Rank 0: ")));
        QVERIFY2(line("Peak activation").contains(QRegularExpression(QStringLiteral(" %$"))), qPrintable(line("Peak activation")));
        QVERIFY2(line("Warm-up").contains(QRegularExpression(QStringLiteral("  [−+]?[0-9.]+ %$"))), qPrintable(line("Warm-up")));
        for (const QLabel* label : side->findChildren<QLabel*>()) {
            if (!label->isVisibleTo(side) || label->text().isEmpty()) continue;
            QVERIFY2(label->mapTo(side->widget(), QPoint(label->width(), 0)).x() <= side->viewport()->width(), qPrintable(label->text()));
        }
        window.viewState()->setAreas({{{0, rankShare * 10}, 0, 3}});
        QTRY_VERIFY_WITH_TIMEOUT(side->filtered(), 20000);
        QVERIFY(!side->plainText().contains(QStringLiteral(" pt")));
        window.viewState()->setAreas({});
        QTRY_VERIFY_WITH_TIMEOUT(!side->filtered(), 20000);
        QVERIFY(line("Step time").endsWith(QStringLiteral(" %")));
        window.showRun({a, 3});
        QVERIFY(QTest::qWaitFor([&] { return window.shownRef() == RunRef{a, 3} && window.settled(); }, 20000));
        QVERIFY(strip->isVisible());
        QVERIFY(!window.actions()[ActionId::SetBaseline]->isChecked());
        for (QPushButton* button : strip->findChildren<QPushButton*>())
            if (!button->isCheckable()) button->click(); // Clear
        QVERIFY(!strip->isVisible());
        QVERIFY(!window.compare()->baseline().valid());
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
        const RunRef ref = window.library()->addSimulated(std::move(empty));
        window.compare()->show({{a, 1}, ref});
        QVERIFY(fixture.settle(window));
        QVERIFY(window.mode() == MainWindow::Mode::Compare || !window.bannerText().isEmpty());
    }
};

QTEST_MAIN(TestCompareWindow)
#include "tst_compare_window.moc"
