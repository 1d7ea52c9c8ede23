// HTML reports: whole pages without outside resources, every text escaped, the figures of the analyses in them; SVG of
// rows.
#include <cmath>

#include <QRegularExpression>
#include <QXmlStreamReader>
#include <QtTest>

#include "schedules/base/quantity.h"
#include "schedules/library/registry.h"
#include "traces/analysis/bubbles.h"
#include "traces/compare/device_tables.h"
#include "traces/export/html_report.h"
#include "traces/export/timeline_svg.h"
#include "traces/plot/plot_files.h"
#include "traces/plot/svg_colours.h"
#include "traces/run/simulated_run.h"

using namespace stagewright;

namespace {

Run simulated(const char* name, int ranks = 4, int microbatches = 8)
{
    const Schedule schedule = *makeSchedule(name, Shape{ranks, microbatches, 0});
    return *simulatedRun(schedule, CostModel::uniform(schedule));
}

// The page as XML, void elements closed. Empty: well-formed.
QString faultOf(QString html)
{
    html.remove(QStringLiteral("<!DOCTYPE html>\n"));
    html.replace(QRegularExpression(QStringLiteral("<meta ([^>]*)>")), QStringLiteral("<meta \\1/>"));
    QXmlStreamReader reader(html);
    while (!reader.atEnd()) reader.readNext();
    return reader.hasError() ? QStringLiteral("line %1: %2").arg(reader.lineNumber()).arg(reader.errorString())
                             : QString();
}

} // namespace

class TestHtmlReport : public QObject {
    Q_OBJECT
private slots:
    void escapesEveryText()
    {
        QCOMPARE(QString::fromStdString(escaped("a<b>&\"c\"'")), QString("a&lt;b&gt;&amp;&quot;c&quot;&#39;"));
        QCOMPARE(QString::fromStdString(escaped("ms \xC2\xB5 \xE2\x88\x92")), QString("ms µ \u2212"));
        // Control characters, cut and overlong sequences, surrogates, values beyond Unicode.
        for (const char* broken :
             {"\x01", "\x7f", "\xC2", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"})
            QVERIFY2(QString::fromStdString(escaped(broken)).startsWith(QChar(0xFFFD)), broken);
        QCOMPARE(QString::fromStdString(escaped("a\xE2\x80\xAE"
                                                "b\xC2\x9B"
                                                "c")),
                 QString("a\\u202eb\\u009bc"));
        QCOMPARE(QString::fromStdString(escaped(std::string("x\xE2\x82"))).left(2), QString("x\uFFFD"));
    }

    // Loss curves are lines over labelled axes, the second dashed, in the page's colours; one without them has none.
    void lossCurvesAreDrawn()
    {
        Run run = simulated("1f1b");
        const std::string without = htmlReport(run).value();
        QVERIFY(without.find("stroke:var(--b)") == std::string::npos);
        run.metrics = {{"loss", "nats", {5.5, 4.25, 3.75, std::nan("")}},
                       {"synchronous_loss", "nats", {5.5, 4.0, 3.5, 3.25}},
                       {"deviation", "", {0.0, 0.01, 0.02, 0.03}}};
        const QString page = QString::fromStdString(htmlReport(run).value());
        QVERIFY2(faultOf(page).isEmpty(), qPrintable(faultOf(page)));
        QVERIFY(page.contains("<h2>Loss beside synchronous training</h2>"));
        QVERIFY(page.contains(">Loss, nats per token</text>"));
        QVERIFY(page.contains(">Step</text>"));
        QVERIFY(page.contains(">Synchronous</text>")); // the legend
        const QRegularExpression line(
            QStringLiteral("<path style=\"fill:none;stroke:var\\(--(f|b)\\)\" stroke-width=\"2\"( "
                           "stroke-dasharray=\"7 4\")? d=\"(M[^\"]*L[^\"]*L[^\"]*)\""));
        auto found = line.globalMatch(page);
        QStringList names;
        QList<int> points;
        while (found.hasNext()) {
            const auto match = found.next();
            names << match.captured(1) + (match.captured(2).isEmpty() ? "" : " dashed");
            QVERIFY(!match.captured(0).contains("nan"));
            points << match.captured(3).count('L') + 1;
        }
        QCOMPARE(names, (QStringList{"f", "b dashed"}));
        QCOMPARE(points, (QList<int>{3, 4}));                  // what is not a number is left out
        run.metrics[0].values = run.metrics[1].values = {5.5}; // one step makes no line
        QVERIFY(htmlReport(run).value().find("stroke:var(--b)") == std::string::npos);
    }

    void curvesHaveRoundAxes()
    {
        Plot curves{"Step", "Loss", {{"Loss", {{1, 2.31}, {2, 2.27}, {3, 2.22}}}}};
        const QString svg = QString::fromStdString(plotSvg(curves, "x"));
        for (const char* tick : {">2.22<", ">2.24<", ">2.32<", ">1<", ">2<", ">3<"})
            QVERIFY2(svg.contains(QLatin1String(tick)), tick);
        QCOMPARE(svg.count(">Loss</text>"), 1);         // the axis: one line needs no legend
        curves.series[0].points = {{4, 1.5}, {5, 1.5}}; // level
        QVERIFY(!plotSvg(curves, "x").empty());
        QVERIFY(plotSvg({}, "x").empty());
    }

    // A picture of its own: every mark, names in place of numbers, stacked bars, whole XML without classes.
    void everyMarkIsDrawn()
    {
        Plot bars{"Place", "Up", {{"low", {{0, 2}, {1, 3}}, PlotMark::Bars}, {"high", {{0, 1}}, PlotMark::Bars}}};
        bars.across.names = {"a", "b<"};
        const Plot marks{"Across",
                         "Up",
                         {{"line", {{0, 1}, {2, 4}}},
                          {"steps", {{0, 2}, {2, 3}}, PlotMark::Steps},
                          {"points", {{1, 1, "here"}, {1, 1, "here too"}, {1, 1, "and here"}}, PlotMark::Points}}};
        Plot cells{"Across", "Up", {{"x", {{0, 0, "q"}, {1, 1, "q"}}, PlotMark::Cells}}};
        cells.across.names = {"1", "2"};
        cells.up.names = {"3", "4"};
        for (const Plot& plot : {bars, marks, cells}) {
            const QString svg = QString::fromStdString(plotPicture(plot, "A <title>", "a caption"));
            QXmlStreamReader reader(svg);
            while (!reader.atEnd()) reader.readNext();
            QVERIFY2(!reader.hasError(), qPrintable(reader.errorString()));
            QVERIFY(!svg.contains("class=") && !svg.contains("nan") && svg.contains("A &lt;title&gt;"));
            for (const PlotSeries& series : plot.series)
                QVERIFY(svg.contains("<title>" + QString::fromStdString(series.title) + "</title>") ||
                        series.mark == PlotMark::Points);
        }
        const QString stacked = QString::fromStdString(plotSvg(bars, "x"));
        static const QRegularExpression bar(QStringLiteral("<rect style=\"fill:var\\(--(f|b)\\)\" x=\"([0-9.]+)\" "
                                                           "y=\"([0-9.]+)\" width=\"[0-9.]+\" height=\"([0-9.]+)\""));
        QList<QRegularExpressionMatch> bars_;
        for (auto found = bar.globalMatch(stacked); found.hasNext();)
            if (const auto match = found.next(); match.captured(4) != "11.00") bars_ << match; // not the legend's
        QCOMPARE(bars_.size(), 3);
        const auto &low = bars_[0], &other = bars_[1], &high = bars_[2];
        QCOMPARE(low.captured(2), high.captured(2)); // at the same place, one on top of the other
        QVERIFY(std::abs(high.captured(3).toDouble() + high.captured(4).toDouble() - low.captured(3).toDouble()) <
                0.02);
        QVERIFY(other.captured(4).toDouble() > low.captured(4).toDouble());
        const QString names = QString::fromStdString(plotSvg(marks, "x"));
        QCOMPARE(names.count(QStringLiteral(">here</text>")), 1);
        QVERIFY(names.contains("stroke-dasharray=\"7 4\" d=\"M")); // the second line
    }

    void runAsAPage_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b", "chimera", "dualpipe"})
            QTest::newRow(name) << name;
    }
    void runAsAPage()
    {
        QFETCH(QString, name);
        Run run = simulated(qPrintable(name));
        run.info.name = "<script>alert(1)</script> & \"quoted\"";
        run.info.note = "line one\n<img onerror=y>";
        run.configuration.emplace_back("key<", "value>");
        run.environment.emplace_back("cpu", "\x02 & co");
        const auto page = htmlReport(run, {-1, "Stagewright 9", "demo.stagewright, run 3", {}});
        QVERIFY(page.has_value());
        const QString html = QString::fromStdString(*page);
        QVERIFY2(faultOf(html).isEmpty(), qPrintable(faultOf(html)));
        for (const char* never : {"<script", "<img", "<link", "href=", "src=", "@import", "http:", "https:"})
            QVERIFY2(!html.contains(QLatin1String(never)), never);
        QCOMPARE(html.count("url("), html.count("url(#idle)")); // the page's own pattern
        QVERIFY(html.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;quoted&quot;"));
        QVERIFY(html.contains("key&lt;") && html.contains("&lt;img onerror=y&gt;") &&
                html.contains("prefers-color-scheme:dark") && html.contains("@media print"));
        const BubbleReport bubbles = *analyseBubbles(*run.timeline, 0);
        QVERIFY(html.contains(QString::fromStdString(formatPercent(bubbles.bubbleFraction))));
        QVERIFY(html.contains(QString::fromStdString(formatDuration(bubbles.makespan(), run.timeline->timeUnit()))));
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause)
            if (bubbles.byCause[cause] > 0)
                QVERIFY(html.contains(QString::fromStdString(escaped(meaningOf(static_cast<IdleCause>(cause))))));
        QVERIFY(html.contains("Stagewright 9") && html.contains("demo.stagewright, run 3"));
        QVERIFY(*htmlReport(run, {-1, "Stagewright 9", "demo.stagewright, run 3", {}}) == *page);
        const auto beyond = htmlReport(run, {7, {}, {}, {}});
        QVERIFY(!beyond && beyond.error().code == ErrorCode::Usage);
    }

    void comparisonSharesOneAxis()
    {
        const Run a = simulated("1f1b"), b = simulated("zb-h1");
        const auto page = htmlComparison(a, b);
        QVERIFY(page.has_value());
        const QString html = QString::fromStdString(*page);
        QVERIFY2(faultOf(html).isEmpty(), qPrintable(faultOf(html)));
        const auto comparison = *compareRuns(a, b);
        QVERIFY(html.contains(QString::fromStdString(escaped(comparison.headline))));
        for (const std::string& why : comparison.why) QVERIFY(html.contains(QString::fromStdString(escaped(why))));
        // The shorter run's last slice ends before the longer one's.
        QCOMPARE(html.count("aria-label=\"Timeline of"), 2);
    }

    // Kernels without ops: no figure of steps, but every row that the command line and the window show.
    void devicesAreComparedWithoutOps()
    {
        const auto runOf = [](const char* name, Nanos length, const char* last) {
            TimelineBuilder builder(Provenance::Imported, "wall", 1);
            const int track = builder.addTrack(0, Lane::Kernel, "rank 0 stream 7");
            Nanos at = 0;
            for (const char* kernel : {"gemm", "gemm", last}) {
                Span span;
                span.start = at;
                span.end = at += length;
                span.label = builder.intern(kernel, "grid 8×1×1, block 128×1×1") & 0xffffffu;
                builder.addSpan(track, span);
            }
            Run run;
            run.timeline = builder.build().value();
            run.info.name = name;
            run.info.ranks = run.info.steps = 1;
            run.info.provenance = Provenance::Imported;
            return run;
        };
        const Run a = runOf("before", 10'000, "gelu<int>"), b = runOf("after", 14'000, "relu<int>");
        const auto page = htmlComparison(a, b);
        QVERIFY(page.has_value());
        const QString html = QString::fromStdString(*page);
        QVERIFY2(faultOf(html).isEmpty(), qPrintable(faultOf(html)));
        const auto comparison = *compareRuns(a, b);
        QVERIFY(comparison.devices && !comparison.devices->why.empty());
        for (const std::string& why : comparison.devices->why)
            QVERIFY(html.contains(QString::fromStdString(escaped(why))));
        const auto sections = deviceSections(*comparison.devices);
        QCOMPARE(sections.size(), std::size_t(4));
        for (const document::Section& section : sections) {
            const auto& table = std::get<document::Table>(section.elements.front());
            for (const document::Row& row : table.rows)
                for (const std::size_t c : document::shownColumns(table)) {
                    const std::string cell = document::textOf(table.columns[c], row, row.cells[c], {});
                    QVERIFY2(html.contains(QStringLiteral(">%1</td>").arg(QString::fromStdString(escaped(cell)))),
                             cell.c_str());
                }
        }
        QVERIFY(!html.contains("0.0 %") && !html.contains("Ops by change") &&
                html.contains("steps and bubbles are not compared"));
    }

    void everySliceIsDrawnToScale()
    {
        const Run run = simulated("gpipe");
        const QString svg = QString::fromStdString(timelineSvg(run, 0));
        const auto rects =
            QRegularExpression("<rect class=\"([fbw])\" x=\"([0-9.]+)\" y=\"[0-9.]+\" width=\"([0-9.]+)\"")
                .globalMatch(svg);
        double forward = 0, backward = 0;
        int count = 0;
        for (auto at = rects; at.hasNext();) {
            const auto match = at.next();
            ++count;
            (match.captured(1) == "f" ? forward : backward) += match.captured(3).toDouble() + 0.8;
            QVERIFY(match.captured(2).toDouble() + match.captured(3).toDouble() <= 1120);
        }
        QCOMPARE(count, 4 * 8 * 2);
        QVERIFY2(std::abs(backward / forward - 2) < 0.01, qPrintable(QString::number(backward / forward)));
    }

    void fullRowsKeepTheirInk()
    {
        const Run run = simulated("1f1b", 2, 2000);
        const QString svg = QString::fromStdString(timelineSvg(run, 0));
        QVERIFY(svg.size() < 600'000);
        double ink = 0;
        for (auto at = QRegularExpression("h1v-([0-9.]+)h-1z").globalMatch(svg); at.hasNext();)
            ink += at.next().captured(1).toDouble();
        const BubbleReport bubbles = *analyseBubbles(*run.timeline, 0);
        const double wanted =
            34 * (1120 - 116 - 12) * static_cast<double>(bubbles.busy) / static_cast<double>(bubbles.makespan());
        QVERIFY2(std::abs(ink / wanted - 1) < 0.01, qPrintable(QString("%1 of %2").arg(ink).arg(wanted)));
    }

    void manyRanksAreCounted()
    {
        SvgOptions options;
        options.mostRanks = 2;
        const QString svg = QString::fromStdString(timelineSvg(simulated("gpipe", 6, 2), 0, options));
        QVERIFY(svg.contains("The first 2 of 6 ranks.") && svg.contains("Rank 1") && !svg.contains("Rank 2"));
    }

    void emptyRunSaysSo()
    {
        TimelineBuilder builder(Provenance::Imported, "wall", 1);
        Run run;
        run.info.name = "empty";
        run.timeline = *builder.build();
        const auto page = htmlReport(run);
        QVERIFY(page.has_value());
        QVERIFY(page->find("the run has no spans") != std::string::npos);
        QVERIFY(timelineSvg(run, 0).empty() && memorySvg(run, 0).empty());
        QVERIFY(!htmlComparison(run, simulated("gpipe")));
    }
};

QTEST_APPLESS_MAIN(TestHtmlReport)
#include "tst_html_report.moc"
