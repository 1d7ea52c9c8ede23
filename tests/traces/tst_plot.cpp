// The one plot: round ticks, scales, names that give way, items by place, and its forms as text.
#include <QRegularExpression>
#include <QtTest>

#include "schedules/base/ticks.h"
#include "traces/plot/drawing.h"
#include "traces/plot/plot_files.h"
#include "traces/plot/svg_canvas.h"
#include "traces/plot/tikz_canvas.h"

using namespace stagewright;

namespace {

const PlotBox room{0, 0, 800, 400};

std::vector<std::string> texts(const std::vector<PlotTick>& ticks)
{
    std::vector<std::string> out;
    for (const PlotTick& tick : ticks) out.push_back(tick.text);
    return out;
}

Plot lineOver(std::vector<PlotPoint> points) { return {"across", "up", {{"one", std::move(points)}}}; }

} // namespace

class TestPlot : public QObject {
    Q_OBJECT
private slots:
    void stepsAreOneTwoOrFive()
    {
        QCOMPARE(roundStep(0.011).size, 0.02);
        QCOMPARE(roundStep(2.0).size, 2.0);
        QCOMPARE(roundStep(2.0001).size, 5.0);
        QCOMPARE(roundStep(51).size, 100.0);
        QCOMPARE(roundStep(51).lead, 1);
        QCOMPARE(roundStep(0.02).decimals(), 2);
        QCOMPARE(roundStep(30).decimals(), 0);
        QCOMPARE(roundValues(-0.3, 0.41, 0.2), (std::vector<double>{-0.2, 0, 0.2, 0.4}));
    }

    void eachScaleHasItsTicks()
    {
        const SvgCanvas canvas(SvgCanvas::Colours::Light);
        Plot plot = lineOver({{0, 0}, {10, 3'000'000}});
        plot.up.scale = PlotScale::Time;
        const PlotLayout time(plot, room, canvas);
        QCOMPARE(time.up.title, std::string("up, ms"));
        QCOMPARE(texts(time.up.ticks).front(), std::string("0.0"));
        QCOMPARE(texts(time.up.ticks).back(), std::string("3.0"));
        plot = lineOver({{1, 1 << 20}, {1000, 4 << 20}});
        plot.up.scale = PlotScale::Bytes;
        plot.across.scale = PlotScale::Log10;
        plot.up.least = 0;
        const PlotLayout bytes(plot, room, canvas);
        QCOMPARE(bytes.up.title, std::string("up, MiB"));
        QCOMPARE(bytes.up.ticks[1].at, 1048576.0);
        const std::vector<std::string> decades = texts(bytes.across.ticks);
        QVERIFY(std::find(decades.begin(), decades.end(), "100") != decades.end());
        QVERIFY(std::abs(bytes.across.share(31.6227766) - (bytes.across.share(10) + bytes.across.share(100)) / 2) <
                1e-6);
        plot = lineOver({{0, 0.1}, {1, 0.3}});
        plot.up.scale = PlotScale::Share;
        QCOMPARE(texts(PlotLayout(plot, room, canvas).up.ticks).front(), std::string("10 %"));
    }

    // Names overlap neither each other nor a point, and are inside; the chosen point has one.
    void namesGiveWay()
    {
        Plot plot{"x", "y", {{"points", {}, PlotMark::Points}}};
        for (int i = 0; i < 60; ++i) {
            const double x = i % 10 + 0.01 * i, y = (i * 7) % 13;
            plot.series[0].points.push_back({x, y, "a name of point " + std::to_string(i)});
            plot.items.push_back(PlotItem::at(x, y, "text", i, 0));
        }
        plot.series[0].priority = 1;
        const SvgCanvas canvas(SvgCanvas::Colours::Light);
        const PlotDrawing drawing(plot, room, canvas, 17);
        const std::vector<PlotBox> labels = drawing.labels();
        QVERIFY(labels.size() > 10 && labels.size() < 60);
        bool chosen = false;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            QVERIFY(room.contains(labels[i]));
            for (std::size_t j = i + 1; j < labels.size(); ++j) QVERIFY(!labels[i].meets(labels[j]));
            for (int k = 0; k < drawing.items(); ++k)
                QVERIFY(!labels[i].meets(PlotBox::around(drawing.boxOf(k).centre(), 4)));
            const PlotPlace at = drawing.boxOf(17).centre();
            chosen = chosen || labels[i].grown(40).contains(at);
        }
        QVERIFY(chosen);
    }

    // In TikZ, too: at every width of a column each name has its own room.
    void namesGiveWayInTikz()
    {
        Plot plot{"x", "y", {{"points", {}, PlotMark::Points}}};
        for (int i = 0; i < 60; ++i)
            plot.series[0].points.push_back(
                {i % 10 + 0.01 * i, static_cast<double>((i * 7) % 13), "name " + std::to_string(i)});
        const QString tikz = QString::fromStdString(plotTikz(plot, "t", "c"));
        const QRegularExpression node(
            QStringLiteral("anchor=mid west,text=\\w+\\] at \\(([\\d.]+),([\\d.]+)\\) \\{(name \\d+)\\}"));
        for (const double column : {240.0, 345.0, 500.0}) {
            std::vector<PlotBox> boxes;
            for (auto at = node.globalMatch(tikz); at.hasNext();) {
                const auto found = at.next();
                const double x = found.captured(1).toDouble() * column / 440,
                             y = found.captured(2).toDouble() * column / 440;
                boxes.push_back({x, y - 3, x + 3 * static_cast<double>(found.captured(3).size()), y + 3}); // of 6 pt
            }
            QVERIFY2(boxes.size() > 8 && boxes.size() < 60, qPrintable(QString::number(boxes.size())));
            for (std::size_t i = 0; i < boxes.size(); ++i) {
                QVERIFY((PlotBox{0, 0, column, 0.6 * column}.contains(boxes[i])));
                for (std::size_t j = i + 1; j < boxes.size(); ++j) QVERIFY(!boxes[i].meets(boxes[j]));
            }
        }
    }

    void itemsAreWhereTheyAreDrawn()
    {
        const SvgCanvas canvas(SvgCanvas::Colours::Light);
        Plot plot = lineOver({{0, 1}, {1, 2}, {2, std::nan("")}, {3, 4}});
        plot.items = {PlotItem::at(0, 1, "first", 0, 0), PlotItem::at(3, 4, "last", 1, 0)};
        Plot below{"x", "", {{"bars", {{0, 3}, {1, 1}}, PlotMark::Bars}}};
        below.items = {PlotItem::band(-0.5, 0.5, "bar 0", 0), PlotItem::band(0.5, 1.5, "bar 1", 1)};
        plot.below.push_back(below);
        const PlotDrawing drawing(plot, room, canvas);
        QCOMPARE(drawing.items(), 4);
        for (int i = 0; i < drawing.items(); ++i) QCOMPARE(drawing.itemAt(drawing.boxOf(i).centre()), i);
        QCOMPARE(drawing.itemAt({5, 5}), -1);
        QVERIFY(drawing.boxOf(1).bottom < drawing.boxOf(2).top);
        QCOMPARE(drawing.boxOf(2).right, drawing.boxOf(3).left);
        // what is not a number interrupts the line: two paths, the second a lone point
        const QString svg = QString::fromStdString(plotPicture(plot, "", ""));
        QCOMPARE(svg.count(QRegularExpression("stroke-width=\"2\" d=\"M")), 1);
        QCOMPARE(svg.count("r=\"3\""), 1);
        QVERIFY(!svg.contains("nan"));
    }

    void textForms()
    {
        Plot plot{"Rank", "Share, %", {{"low & high", {{0, 2, "a\nb"}, {1, 3}}, PlotMark::Bars}}};
        plot.across.names = {"zero", "one"};
        plot.rules.push_back({2.5, false, "limit"});
        QCOMPARE(plotCsv(plot), std::string("plot,series,x,y,name,to_x,to_y\n\"Share, %\",low & high,zero,2,a,,\n"
                                            "\"Share, %\",low & high,one,3,,,\n"));
        const QString tikz = QString::fromStdString(plotTikz(plot, "Title, 5 %", "caption"));
        for (const char* part : {"% Title, 5 \\%\n% caption\n", "x=0.00227\\linewidth", "{Share, \\%}", "{zero}",
                                 "{limit}", "% low \\& high\n", "\\definecolor{sw2F5D9C}", "\\end{tikzpicture}"})
            QVERIFY2(tikz.contains(QLatin1String(part)), part);
        QCOMPARE(tikz.count('{') - tikz.count("\\{"), tikz.count('}') - tikz.count("\\}"));
        QCOMPARE(latex("a_b {c} 50% \\x ±2σ −3 × 4 µs ≤ 10⁹ …"),
                 std::string(
                     "a\\_b \\{c\\} 50\\% \\textbackslash{}x $\\pm$2$\\sigma$ $-$3 $\\times$ 4 $\\mu$s $\\le$ 10$^9$ "
                     "\\dots{}"));
        QVERIFY(plotText(plot, "t", "c", "x.svg").value().starts_with("<svg"));
        QVERIFY(plotText(plot, "t", "c", "x.tex").value().starts_with("% t"));
        QVERIFY(!plotText(plot, "t", "c", "x.gif").has_value());
    }
};

QTEST_MAIN(TestPlot)
#include "tst_plot.moc"
