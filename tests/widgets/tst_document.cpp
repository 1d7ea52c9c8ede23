// Documents: what an analysis says once is in text, JSON, page, Markdown and panel, without a line in any of them; places of JSON;
// every figure of a run's report has the same value everywhere.
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>

#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "sample_runs.h"
#include "traces/analysis/step_context.h"
#include "traces/export/document_html.h"
#include "traces/report/run_document.h"
#include "traces/report/table_document.h"
#include "widgets/document/figure_table.h"
#include "widgets/document/section_view.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/plot/plot_widget.h"

using namespace stagewright;

namespace {

std::vector<TableColumn> columns()
{
    return {{"place", "Place", ColumnKind::Whole}, {"length_ns", "Length", ColumnKind::Time}};
}

// Rows, a key figure, a curve, a sentence and marks, of the first two ops.
Result<AnalysisRows> rows(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    AnalysisRows out;
    for (std::int64_t place = 1; place <= 3; ++place) {
        out.rows.push_back({place, place * 1'000'000});
        out.ops.push_back(static_cast<SpanId>(place));
    }
    out.sentence = "the third is the longest";
    out.figures = {{"longest_ns", "Longest of all", ColumnKind::Time, 3e6}};
    out.figures.front().meaning = "the longest op";
    out.marks.title = "Two ops";
    out.marks.spans = {document::stretchOf(timeline, 0), document::stretchOf(timeline, 1)};
    out.marks.gaps = {{2, 7'000'000, 9'000'000, "an idle time"}};
    out.marks.arrows = {{out.marks.spans[0], out.marks.spans[1], "an arrow"}};
    return out;
}

const AnalysisInfo lengths{.name = "lengths",
                           .title = "Lengths of ops",
                           .columns = columns,
                           .unknown = [](const Run& run) { return std::string(run.info.ranks == 0 ? "no ranks" : ""); },
                           .rows = rows,
                           .curves = {"Length, ns", {"length_ns"}}};

document::Section sectionOf(const Run& run)
{
    return tableSection(reportTable(lengths, StepContext(run, 0)), "tables.lengths", 100);
}

QString text(const std::string& of) { return QString::fromStdString(of); }

} // namespace

class TestDocument : public QObject {
    Q_OBJECT

private slots:
    void anAnalysisIsEverywhere()
    {
        Run run = samples::simulatedRun("1f1b", 4, 8);
        document::Document document;
        document.sections.push_back(sectionOf(run));

        const Json json = documentJson(document);
        const Json& own = *json.find("tables")->find("lengths");
        QCOMPARE(*own.find("title")->text(), std::string("Lengths of ops"));
        QCOMPARE(own.find("columns")->size(), std::size_t{2});
        QCOMPARE(own.find("rows")->at(2).find("length_ns")->number(), std::optional(3e6));
        QCOMPARE(own.find("figures")->find("longest_ns")->number(), std::optional(3e6));
        QCOMPARE(own.find("plot")->find("series")->at(0).find("points")->size(), std::size_t{3});
        QCOMPARE(*own.find("sentence")->text(), std::string("the third is the longest"));
        const Json& marks = *own.find("marks");
        QCOMPARE(marks.find("spans")->size(), std::size_t{2});
        QCOMPARE(*marks.find("gaps")->at(0).find("text")->text(), std::string("an idle time"));
        QCOMPARE(*marks.find("arrows")->at(0).find("text")->text(), std::string("an arrow"));

        const QString printed = text(documentText(document, {})), page = text(documentHtml(document)),
                      notes = text(documentText(document, {false, {}, true}));
        for (const QString& said : {printed, page, notes}) {
            for (const char* word : {"engths of ops", "ongest of all", "3.00 ms", "third is the longest", "ength",
                                     "wo ops", "an idle time", "an arrow"})
                QVERIFY2(said.contains(QLatin1String(word)), qPrintable(said + QLatin1String(word)));
        }
        QVERIFY(printed.contains(QStringLiteral("▁▅█")) || printed.contains(QStringLiteral("▁▄█"))); // the curve
        QVERIFY(page.contains(QStringLiteral("<svg class=\"sw\"")));
        QVERIFY2(notes.startsWith(QStringLiteral("## Lengths of ops\n\n- Longest of all: **3.00 ms**\n")) &&
                     notes.contains(QStringLiteral("\n\n| Place | Length |\n|--:|--:|\n| 1 | 1.00 ms |\n")),
                 qPrintable(notes));

        SectionView panel(document.sections.front(), {}, nullptr);
        QCOMPARE(panel.lineText(), QStringLiteral("The third is the longest"));
        QCOMPARE(panel.table()->model()->rowCount(), 3);
        QCOMPARE(panel.plot()->items(), 3);
        QCOMPARE(panel.figures()->figures().front().first, QStringLiteral("tables.lengths.figures.longest_ns"));
        QCOMPARE(panel.figures()->figures().front().second, QStringLiteral("3.00 ms"));
        QSignalSpy chosen(&panel, &SectionView::marksChosen), op(&panel, &SectionView::spanChosen);
        panel.marks()->click();
        QCOMPARE(chosen.count(), 1);
        panel.table()->setCurrentIndex(panel.table()->model()->index(1, 0));
        QCOMPARE(op.takeLast().front().value<SpanId>(), SpanId{2});
    }

    void whatIsUnknownSaysWhy()
    {
        Run run = samples::simulatedRun("1f1b", 4, 8);
        run.info.ranks = 0;
        document::Document document;
        document.sections.push_back(sectionOf(run));
        const Json json = documentJson(document);
        const Json& own = *json.find("tables")->find("lengths");
        QVERIFY(own.find("rows")->isNull() && own.find("sentence")->isNull());
        QCOMPARE(*own.find("unknown")->text(), std::string("no ranks"));
        QVERIFY(text(documentText(document, {})).contains("no ranks") &&
                text(documentHtml(document)).contains("no ranks"));
        SectionView panel(document.sections.front(), {}, nullptr);
        QCOMPARE(panel.lineText(), QStringLiteral("No ranks"));
        QVERIFY(panel.table() == nullptr && panel.plot() == nullptr);
    }

    // Lists, objects by key, columns scattered over a place, an object of which nothing is known, two units.
    void placesOfJson()
    {
        using namespace document;
        Document document;
        document.units = {10, 1};
        Section& section = document.add();
        Table list{"list.#", {unshown("name"), unshown("of.a", ColumnKind::Time), unshown("of.b")}};
        list.rows = {{{std::string("x"), std::int64_t{25}, {}}}, {{std::string("y"), {}, {}}}};
        section.add(list);
        Table keyed{"", {TableColumn{}, unshown("sum.*.all", ColumnKind::Time), unshown("parts.*")}};
        keyed.rows = {{{std::string("a.b"), std::int64_t{20}, std::int64_t{1}}}, {{{}, std::int64_t{9}, {}}}};
        section.add(keyed);
        section.add(listOf("values", ColumnKind::Whole, {std::int64_t{4}, std::int64_t{5}}));
        section.add(Table{"none.#", {unshown("x")}});
        Table unknown{"why.#", {unshown("x")}};
        unknown.unknown = "a reason";
        section.add(unknown);
        section.fact("list.1.more", ColumnKind::Truth, 1);
        QCOMPARE(text(documentJson(document).line()),
                 QStringLiteral("{\"list\":[{\"name\":\"x\",\"of\":{\"a\":2.5,\"b\":null}},"
                                "{\"name\":\"y\",\"of\":null,\"more\":true}],\"sum\":{\"a.b\":{\"all\":2.0}},"
                                "\"parts\":{\"a.b\":1},\"values\":[4,5],\"none\":[],\"why\":null}"));
    }

    // Every figure that people are shown is in text and page with the same words, and every place is in JSON.
    void aReportIsTheSameEverywhere_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<double>("latency");
        for (const char* name : {"gpipe", "1f1b", "zb-h1", "chimera", "interleaved-1f1b"})
            for (const double latency : {0.0, 0.5}) QTest::addRow("%s %g", name, latency) << QString(name) << latency;
    }
    void aReportIsTheSameEverywhere()
    {
        QFETCH(QString, name);
        QFETCH(double, latency);
        const Run run = samples::simulatedRun(name.toStdString(), 4, 8, latency);
        const ReportOptions asked{.levers = true};
        const auto context = *contextOf(run, asked);
        RunDocumentOptions parts;
        parts.context = context.get();
        parts.explained = 3;
        document::Document document = runDocument(run, *reportOf(*context, asked), parts);
        for (const AnalysisInfo* analysis : allAnalyses())
            document.sections.push_back(
                tableSection(reportTable(*analysis, *context), "tables." + std::string(analysis->name), 1'000'000));
        const Json json = documentJson(document);
        const QString printed = text(documentText(document, {})), page = text(documentHtml(document)),
                      notes = text(documentText(document, {false, {}, true})).remove(QLatin1Char('\\'));
        std::size_t figures = 0, cells = 0;
        for (const document::Section& section : document.sections)
            for (const document::Element& element : section.elements) {
                if (const auto* figure = std::get_if<document::Figure>(&element)) {
                    const Json* at = &json;
                    for (const QString& key : text(figure->key).split('.', Qt::SkipEmptyParts))
                        if (at != nullptr && !at->isArray()) at = at->find(key.toStdString());
                    QVERIFY2(at != nullptr, figure->key.c_str());
                    if (!figure->shown) continue;
                    const QString value = text(document::textOf(*figure, document.units));
                    QVERIFY2(printed.contains(value) && page.contains(value) && notes.contains(value),
                             figure->key.c_str());
                    ++figures;
                } else if (const auto* table = std::get_if<document::Table>(&element);
                           table != nullptr && table->shown) {
                    for (const document::Row& row : table->rows)
                        for (const std::size_t c : document::shownColumns(*table)) {
                            const std::string value =
                                document::textOf(table->columns[c], row, row.cells[c], document.units);
                            if (!row.shown || cells++ % 7 != 0) continue; // some of the many
                            QVERIFY2(printed.contains(text(table->columns[c].brief ? shortened(value) : value)) &&
                                         page.contains(text(value).toHtmlEscaped()) && notes.contains(text(value)),
                                     value.c_str());
                        }
                }
            }
        QVERIFY(figures >= 4 && cells > 500);
    }
};

QTEST_MAIN(TestDocument)
#include "tst_document.moc"
