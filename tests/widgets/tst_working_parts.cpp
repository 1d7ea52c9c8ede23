// The parts of search, palette, console and notes: fuzzy matching, ranking, queries and their rows, the language of the
// search field, completion; every model under Qt's own tester.
#include <QAbstractButton>
#include <QAbstractItemModelTester>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTabBar>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>

#include "schedules/library/registry.h"
#include "traces/run/simulated_run.h"
#include "widgets/console/sql_console.h"
#include "widgets/notes/notes_panel.h"
#include "widgets/palette/command_palette.h"
#include "widgets/palette/fuzzy.h"
#include "widgets/panel/op_query.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/panel/side_panel.h"
#include "widgets/preferences/preferences_dialog.h"
#include "widgets/search/search_panel.h"
#include "widgets/style.h"
#include "widgets/theme.h"
#include "widgets/timeline/span_card.h"

using namespace stagewright;

class TestWorkingParts : public QObject {
    Q_OBJECT

    static std::shared_ptr<const TimelinePanel> panelOf(const char* name)
    {
        const Schedule schedule = *makeSchedule(name, Shape{4, 8, 0});
        const Run run = *simulatedRun(schedule, CostModel::uniform(schedule));
        return makePanel(run.timeline, {});
    }
    static std::size_t found(const TimelinePanel& panel, const char* query)
    {
        const OpQuery parsed = parseOpQuery(QString::fromUtf8(query));
        if (!parsed.fault.isEmpty()) return 999999;
        return findSpans(*panel.timeline, parsed, 0).size();
    }

    // What the side panel says of a run of one rank with this span selected.
    static QStringList panelLabels(std::shared_ptr<const Timeline> timeline, SpanId selected)
    {
        auto run = std::make_shared<Run>();
        run->timeline = std::move(timeline);
        run->info.ranks = 1;
        SidePanel side;
        side.setRun(run, std::make_shared<const RunReport>(reportOf(*run, {.withoutSteps = true}).value()));
        side.setSelection(selected);
        QStringList labels;
        for (const QLabel* label : side.findChildren<QLabel*>()) labels << label->text();
        return labels;
    }

private slots:
    // A fault is not shown over the rows of the query before.
    void aFaultTakesTheRowsAway()
    {
        SqlConsole console;
        console.showRows({{"n"}, {{"1"}, {"2"}}, false}, 3);
        QCOMPARE(console.model()->rowCount({}), 2);
        console.showFault(QStringLiteral("no such table: runz"), QStringLiteral("tables are runs, spans"));
        QCOMPARE(console.model()->rowCount({}), 0);
        console.showRows({{"n"}, {{"1"}}, false}, 3);
        QCOMPARE(console.model()->rowCount({}), 1);
    }

    // A link of a panel starts where the text of the other rows does, and its row is as high.
    void linksAreInLine()
    {
        QWidget panel;
        panel.setStyleSheet(styleSheet(Theme::light()));
        PanelSection section(QStringLiteral("Title"), &panel);
        section.addRow(QStringLiteral("Ill"), QStringLiteral("5 ms"));
        auto* link = new LinkButton(QStringLiteral("Ill"), QString());
        section.addRow(link, QStringLiteral("5 ms"));
        section.addRow(QStringLiteral("Ill"), QStringLiteral("5 ms"));
        section.resize(300, section.sizeHint().height());
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        std::vector<QLabel*> rows;
        for (QLabel* label : section.findChildren<QLabel*>())
            if (label->text() == QStringLiteral("Ill")) rows.push_back(label);
        QCOMPARE(rows.size(), std::size_t(2));
        const auto firstInk = [](QWidget* widget) {
            const QImage image = widget->grab().toImage();
            for (int x = 0; x < image.width(); ++x)
                for (int y = 0; y < image.height(); ++y)
                    if (qGray(image.pixel(x, y)) < 150) return x;
            return -1;
        };
        QVERIFY(firstInk(rows[0]) >= 0);
        const int text = rows[0]->mapTo(&section, QPoint()).x() + firstInk(rows[0]);
        const int linked = link->mapTo(&section, QPoint()).x() + firstInk(link);
        QVERIFY2(linked <= text && linked >= text - 1, // its letters are a little bolder
                 qPrintable(QStringLiteral("%1 and %2").arg(linked).arg(text)));
        QVERIFY2(link->height() <= rows[0]->height() + 2,
                 qPrintable(QStringLiteral("%1 and %2").arg(link->height()).arg(rows[0]->height())));
    }

    // While a recording has only its warm-up nothing is diagnosed: a rank that is slow there may be so by chance.
    void theWarmUpIsNotDiagnosed()
    {
        const auto textsOf = [](RunState state, int steps) {
            const Schedule schedule = *makeSchedule("1f1b", {4, 8});
            CostModel costs = CostModel::uniform(schedule);
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.scale(kind, 2, 3);
            auto run = std::make_shared<Run>(*simulatedRun(schedule, costs));
            run->info.state = state;
            run->info.steps = steps;
            run->info.warmupSteps = 1;
            SidePanel side;
            side.setRun(
                run, std::make_shared<const RunReport>(reportOf(*run, {.levers = true, .withoutSteps = true}).value()));
            QString texts;
            for (const QLabel* label : side.findChildren<QLabel*>())
                if (!label->isHidden()) texts += label->text() + u'\n';
            return texts;
        };
        const QString warm = textsOf(RunState::Recording, 1), measured = textsOf(RunState::Recording, 2);
        QVERIFY2(warm.contains(QLatin1String("The warm-up is running")), qPrintable(warm));
        QVERIFY2(!warm.contains(QLatin1String("Each is simulated")), qPrintable(warm));
        QVERIFY2(!warm.contains(QLatin1String("longer than the median rank")), qPrintable(warm));
        for (const QString& texts : {measured, textsOf(RunState::Complete, 1)}) {
            QVERIFY2(!texts.contains(QLatin1String("The warm-up is running")), qPrintable(texts));
            QVERIFY2(texts.contains(QLatin1String("ach is simulated")), qPrintable(texts));
            QVERIFY2(texts.contains(QLatin1String("longer than the median rank")), qPrintable(texts));
        }
    }

    void lettersMatchInOrder()
    {
        QVERIFY(fuzzyMatch(QStringLiteral("cp"), QStringLiteral("Critical path")));
        QVERIFY(!fuzzyMatch(QStringLiteral("xz"), QStringLiteral("Critical path")));
        QVERIFY(!fuzzyMatch(QStringLiteral("critical path and more"), QStringLiteral("Critical path")));
        QCOMPARE(fuzzyMatch({}, QStringLiteral("Open"))->score, 0);
        const auto match = fuzzyMatch(QStringLiteral("crpa"), QStringLiteral("Critical path"));
        QVERIFY(match.has_value());
        QCOMPARE(match->places, (std::vector<int>{0, 1, 9, 10})); // at the start of words
        // At the start of words and adjacent scores more than scattered.
        QVERIFY(fuzzyMatch(QStringLiteral("cp"), QStringLiteral("Critical path"))->score >
                fuzzyMatch(QStringLiteral("cp"), QStringLiteral("Escape"))->score);
        QVERIFY(fuzzyMatch(QStringLiteral("open"), QStringLiteral("Open file"))->score >
                fuzzyMatch(QStringLiteral("open"), QStringLiteral("Show predictions even"))->score);
    }

    void paletteRanksAndTellsWhy()
    {
        PaletteModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::Fatal);
        int performed = 0;
        std::vector<PaletteEntry> entries{
            {"a:1", "Action", "Open", {}, "Ctrl+O", {}, [&] { ++performed; }},
            {"a:2", "Action", "Close file", {}, {}, "No run is open.", [&] { performed += 100; }},
            {"r:1", "Run", "ZB-H1", "demo, run 1", {}, {}, [&] { performed += 10; }}};
        model.setEntries(entries, {"r:1"});
        QCOMPARE(model.rowCount(), 3);
        QCOMPARE(model.entry(0)->id, QStringLiteral("r:1")); // used recently
        QCOMPARE(model.entry(2)->id, QStringLiteral("a:2")); // unavailable
        model.setPattern(QStringLiteral("cl"));
        QCOMPARE(model.rowCount(), 1);
        QVERIFY(model.index(0).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("No run is open")));
        model.setPattern(QStringLiteral("run zb"));
        QCOMPARE(model.entry(0)->id, QStringLiteral("r:1"));
        model.setPattern(QStringLiteral("qqq"));
        QCOMPARE(model.rowCount(), 0);
        QVERIFY(model.entry(0) == nullptr);

        QWidget window;
        window.resize(800, 600);
        for (const Theme* theme : {&Theme::light(), &Theme::darkTheme(), &Theme::highContrastTheme()}) {
            CommandPalette palette(*theme, &window);
            palette.model()->setEntries(entries, {});
            palette.openOver(&window);
            QTest::keyClicks(palette.field(), QStringLiteral("cl"));
            QTest::keyClick(palette.field(), Qt::Key_Return); // says why, stays
            QVERIFY(palette.isVisible());
            palette.field()->clear();
            QTest::keyClick(palette.field(), Qt::Key_Down);
            QCOMPARE(palette.list()->currentIndex().row(), 1);
            QTest::keyClick(palette.field(), Qt::Key_Up);
            const int before = performed;
            QTest::keyClick(palette.field(), Qt::Key_Return);
            QVERIFY(!palette.isVisible());
            QCOMPARE(performed, before + 1);
        }
    }

    void searchFieldKnowsDurations()
    {
        const auto panel = panelOf("zb-h1"); // F, I, W of one rank share each
        const std::size_t all = found(*panel, "lane:compute");
        QCOMPARE(all, std::size_t(4 * 8 * 3));
        QCOMPARE(found(*panel, ">0.5u lane:compute"), all);
        QCOMPARE(found(*panel, ">1u lane:compute"), std::size_t(0));
        QCOMPARE(found(*panel, ">=1u lane:compute"), all);
        QCOMPARE(found(*panel, "<=1u rank:2 W"), std::size_t(8));
        QCOMPARE(found(*panel, "rank:2 B"), std::size_t(16)); // the backward is split: both parts of it
        QCOMPARE(found(*panel, "2B5"), std::size_t(2));
        QCOMPARE(found(*panel, "2I5"), std::size_t(1));
        QCOMPARE(found(*panelOf("1f1b"), "rank:2 B"), std::size_t(8));
        QCOMPARE(found(*panelOf("1f1b"), "rank:2 I"), std::size_t(0));
        QCOMPARE(found(*panel, "<1u lane:compute"), std::size_t(0));
        QCOMPARE(found(*panel, ">10ms lane:compute"), all); // a share is 10.08 ms
        QCOMPARE(found(*panel, ">10.09ms lane:compute"), std::size_t(0));
        QCOMPARE(found(*panel, "dur:>10080us lane:compute"), std::size_t(0));
        QCOMPARE(found(*panel, "\"2F3\""), std::size_t(1));
        QVERIFY(!parseOpQuery(QStringLiteral(">2parsec")).fault.isEmpty());
        QVERIFY(!parseOpQuery(QStringLiteral(">ms")).fault.isEmpty());
        QVERIFY(!parseOpQuery(QStringLiteral("lane:slow")).fault.isEmpty());
        QVERIFY(!parseOpQuery(QStringLiteral("rank:two")).fault.isEmpty());
        QVERIFY(parseOpQuery(QStringLiteral("  ")).empty());
        std::stop_source stop;
        stop.request_stop();
        QVERIFY(findSpans(*panel->timeline, parseOpQuery(QStringLiteral("F")), 0, stop.get_token()).empty());
    }

    void resultsAreATable()
    {
        const auto panel = panelOf("1f1b");
        SearchPanel shown;
        QAbstractItemModelTester tester(shown.model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
        auto hits = std::make_shared<std::vector<SearchHit>>();
        for (const SpanId span : findSpans(*panel->timeline, parseOpQuery(QStringLiteral("rank:1 F")), 0))
            hits->push_back({span, -1});
        Note range;
        range.anchor = NoteAnchor::Range;
        range.end = rankShare;
        range.text = "why idle?";
        hits->push_back({noSpan, 0});
        shown.setHits(panel, hits, {range}, QStringLiteral("F"));
        QCOMPARE(shown.model()->rowCount(), 9);
        QVERIFY(shown.countText().contains(QStringLiteral("9")));
        QCOMPARE(shown.model()->index(0, SearchModel::Op).data().toString(), QStringLiteral("1F0"));
        QCOMPARE(shown.model()->index(8, SearchModel::NoteText).data().toString(), QStringLiteral("why idle?"));
        QSignalSpy chosen(&shown, &SearchPanel::chosen);
        shown.setCurrentRow(3);
        QCOMPARE(chosen.count(), 0);
        shown.table()->setCurrentIndex(shown.model()->index(4, 0));
        QCOMPARE(chosen.count(), 1);
        shown.setHits(nullptr, nullptr, {}, {});
        QCOMPARE(shown.model()->rowCount(), 0);
    }

    void rowsSortAsNumbers()
    {
        SqlConsole console;
        QAbstractItemModelTester tester(console.model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
        console.showRows({{"name", "ns", "mixed"}, {{"b", "9", "1"}, {"a", "100", "x"}, {"c", "", ""}}, false}, 12);
        QVERIFY(console.model()->isNumeric(1));
        QVERIFY(!console.model()->isNumeric(2));
        console.table()->sortByColumn(1, Qt::DescendingOrder);
        QCOMPARE(console.table()->model()->index(0, 1).data().toString(), QStringLiteral("100"));
        QCOMPARE(console.table()->model()->index(1, 1).data().toString(), QStringLiteral("9"));
        QSignalSpy chosen(&console, &SqlConsole::rowChosen);
        console.table()->setCurrentIndex(console.table()->model()->index(0, 0));
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen.front().front().toInt(), 1); // of the query's own order
        console.showRows({{}, {}, false}, 0);
        QCOMPARE(console.model()->rowCount(), 0);
        console.showFault(QStringLiteral("query: no such table: spam"), QStringLiteral("the tables are …"));
        QVERIFY(console.status().startsWith(QStringLiteral("Query: no such table")));
    }

    void queriesAreCompletedAndRemembered()
    {
        SqlConsole console;
        QueryEditor& editor = *console.editor();
        editor.setTables({{"spans", {"rank", "duration_ns"}}, {"notes", {"text"}}});
        QCOMPARE(editor.completions(QStringLiteral("dur")), QStringList{QStringLiteral("duration_ns")});
        QVERIFY(editor.completions(QStringLiteral("sel")).contains(QStringLiteral("SELECT")));
        QVERIFY(editor.completions(QStringLiteral("qqq")).isEmpty());
        editor.setHistory({"SELECT 2", "SELECT 1"});
        editor.setPlainText(QStringLiteral("half"));
        QTest::keyClick(&editor, Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(editor.toPlainText(), QStringLiteral("SELECT 2"));
        QTest::keyClick(&editor, Qt::Key_Up, Qt::ControlModifier);
        QTest::keyClick(&editor, Qt::Key_Up, Qt::ControlModifier);
        QCOMPARE(editor.toPlainText(), QStringLiteral("SELECT 1"));
        QTest::keyClick(&editor, Qt::Key_Down, Qt::ControlModifier);
        QTest::keyClick(&editor, Qt::Key_Down, Qt::ControlModifier);
        QCOMPARE(editor.toPlainText(), QStringLiteral("half"));
        QSignalSpy asked(&console, &SqlConsole::runAsked);
        QTest::keyClick(&editor, Qt::Key_Return, Qt::ControlModifier);
        QCOMPARE(asked.count(), 1);
        editor.clear();
        QTest::keyClick(&editor, Qt::Key_Return, Qt::ControlModifier); // empty query
        QCOMPARE(asked.count(), 1);
    }

    // A named range of a foreign trace is not shown as a forward of stage 0.
    void foreignRangesAreNoOps()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        const int compute = builder.addTrack(0, Lane::Compute), other = builder.addTrack(0, Lane::Other, "other");
        Span forward;
        forward.end = 1000;
        forward.op.microbatch = 0;
        const SpanId op = builder.addSpan(compute, forward);
        Span range;
        range.end = 5000;
        range.label = builder.intern("train_step");
        const SpanId step = builder.addSpan(other, range);
        const auto timeline = builder.build();
        QVERIFY(timeline.has_value());
        const auto panel = makePanel(*timeline, {0, 0, QStringLiteral("trace")});
        CauseCache causes;
        const auto text = [&](SpanId span) {
            const CardText card = spanCard(*panel, span, Theme::light(), causes);
            QStringList lines{card.title};
            for (const auto& [name, value] : card.rows) lines << name + QLatin1Char(' ') + value;
            return lines.join(QLatin1Char('\n'));
        };
        QVERIFY2(text(op).contains(QStringLiteral("stage 0")), qPrintable(text(op)));
        QVERIFY2(!text(step).contains(QStringLiteral("stage")) &&
                     text(step).contains(QStringLiteral("train_step"), Qt::CaseInsensitive),
                 qPrintable(text(step)));
        const QStringList labels = panelLabels(*timeline, step);
        QVERIFY2(labels.contains(QStringLiteral("train_step")) && labels.contains(QStringLiteral("Rank")) &&
                     !labels.contains(QStringLiteral("Forward, rank 0")),
                 qPrintable(labels.join(QLatin1Char('\n'))));
    }

    // A kernel's section says how it was launched, as its tooltip does.
    void launchesInTheSelection()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        Span kernel;
        kernel.end = 1000;
        kernel.label = builder.intern("gemm", "grid 8×2×1, block 128×1×1, inputs [[64,512]]") & 0xffffffu;
        const SpanId id = builder.addSpan(builder.addTrack(0, Lane::Kernel, "rank 0 stream 7"), kernel);
        const QStringList labels = panelLabels(builder.build().value(), id);
        for (const char* text : {"Grid", "8×2×1", "Block", "128×1×1", "Inputs", "[[64,512]]"})
            QVERIFY2(
                labels.contains(QString::fromUtf8(text)),
                qPrintable(QString::fromUtf8(text) + QStringLiteral(" not in:\n") + labels.join(QLatin1Char('\n'))));
    }

    void notesAreATable()
    {
        NotesPanel panel;
        QAbstractItemModelTester tester(panel.model(), QAbstractItemModelTester::FailureReportingMode::Fatal);
        Note own;
        own.id = 1;
        own.rank = 2;
        own.op = "2F0";
        own.text = "late";
        Note carried = own;
        carried.fromRun = 4;
        panel.setNotes({own, carried});
        QCOMPARE(panel.model()->rowCount(), 2);
        QVERIFY(panel.model()
                    ->index(0, NotesModel::Text)
                    .data(Qt::AccessibleTextRole)
                    .toString()
                    .contains(QStringLiteral("2F0 on rank 2")));
        QSignalSpy edited(panel.model(), &NotesModel::edited);
        QVERIFY(panel.model()->setData(panel.model()->index(0, 0), QStringLiteral("later")));
        QVERIFY(!panel.model()->setData(panel.model()->index(0, 0), QStringLiteral("late"))); // no change
        QVERIFY(!panel.model()->setData(panel.model()->index(0, 0), QStringLiteral("  ")));
        QVERIFY(!panel.model()->setData(panel.model()->index(0, 1), QStringLiteral("x")));
        QCOMPARE(edited.count(), 1);
        panel.setNotes({});
        QCOMPARE(panel.model()->rowCount(), 0);
    }

    void preferencesHoldAtOnce()
    {
        QTemporaryDir dir;
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, dir.path());
        PreferenceStore& store = PreferenceStore::instance();
        store.reload();
        QCOMPARE(store.value().textScale, 100);
        QSignalSpy changed(&store, &PreferenceStore::changed);
        PreferencesDialog dialog;
        dialog.show();
        auto combos = dialog.findChildren<QComboBox*>();
        QCOMPARE(combos.size(), 5);
        QVERIFY(!store.value().hatches());
        combos[0]->setCurrentIndex(3);
        QCOMPARE(store.value().theme, ThemeChoice::HighContrast);
        QCOMPARE(changed.count(), 1);
        QVERIFY(store.value().hatches()); // where colours are hard to distinguish
        combos[1]->setCurrentIndex(2);
        QCOMPARE(store.value().hatch, HatchChoice::Never);
        QVERIFY(!store.value().hatches());
        Preferences other = store.value();
        other.recentFiles = 3;
        other.textScale = 1000; // clamped when read
        store.set(other);
        store.reload();
        QCOMPARE(store.value().textScale, largestTextScale);
        QCOMPARE(readPreferences(), store.value());
        QCOMPARE(dialog.findChildren<QSpinBox*>().front()->value(), 3);
        store.set(Preferences{});
        // Nothing is clipped, in every theme.
        for (QLabel* label : dialog.findChildren<QLabel*>())
            if (label->isVisible() && !label->wordWrap())
                QVERIFY2(label->width() >= label->sizeHint().width() - 1, qPrintable(label->text()));
        for (QWidget* field : dialog.findChildren<QWidget*>()) {
            if (qobject_cast<QTabBar*>(field->parentWidget()) != nullptr) continue; // Qt's own, hidden
            if (qobject_cast<QComboBox*>(field) || qobject_cast<QAbstractButton*>(field) ||
                qobject_cast<QSpinBox*>(field)) {
                QVERIFY2(!field->accessibleName().isEmpty() ||
                             (qobject_cast<QAbstractButton*>(field) &&
                              !qobject_cast<QAbstractButton*>(field)->text().isEmpty()),
                         field->metaObject()->className());
                QVERIFY2(!field->toolTip().isEmpty() ||
                             qobject_cast<QAbstractButton*>(field)->text() == QStringLiteral("Close"),
                         field->metaObject()->className());
            }
        }
    }
};

QTEST_MAIN(TestWorkingParts)
#include "tst_working_parts.moc"
