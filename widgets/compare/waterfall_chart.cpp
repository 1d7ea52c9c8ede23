#include "widgets/compare/waterfall_chart.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {

namespace {

constexpr double rowHeight = 31;

struct Waterfall { // its context of translation
    Q_DECLARE_TR_FUNCTIONS(WaterfallChart)
};

QString valueOf(const WaterfallBar& bar, const Units& units)
{
    return bar.total ? durationText(bar.to, units) : signedDurationText(bar.to - bar.from, units);
}

QString words(std::string_view text) { return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size())); }

} // namespace

std::vector<WaterfallBar> ledgerBars(const Comparison& comparison, const QString& a, const QString& b)
{
    std::vector<WaterfallBar> bars;
    if (!comparison.sameUnits || comparison.ledgerA.bottleneck < 0 || comparison.ledgerB.bottleneck < 0) return bars;
    std::vector<std::size_t> classes;
    const auto moved = [&](std::size_t i) { return comparison.ledgerB.byClass[i] - comparison.ledgerA.byClass[i]; };
    for (std::size_t i = 0; i < pathClassCount; ++i)
        if (moved(i) != 0) classes.push_back(i);
    std::stable_sort(classes.begin(), classes.end(),
                     [&](std::size_t x, std::size_t y) { return std::llabs(moved(x)) > std::llabs(moved(y)); });
    Nanos now = comparison.ledgerA.makespan;
    bars.push_back({a, u"Step time of the baseline"_s, 0, now, true});
    for (const std::size_t i : classes) {
        const auto part = static_cast<PathClass>(i);
        bars.push_back({words(titleOf(part)),
                        words(meaningOf(part)) + u"\n"_s +
                            u"Classes of the critical path; together they add up to the change in step time."_s,
                        now, now + moved(i), false});
        now += moved(i);
    }
    bars.push_back({b, u"Step time"_s, 0, now, true});
    return bars;
}

std::vector<WaterfallBar> ladderBars(const Comparison& comparison, const QString& b)
{
    std::vector<WaterfallBar> bars;
    if (comparison.ladder.size() < 2) return bars;
    for (const LadderRung& rung : comparison.ladder) {
        const QString title = sentence(rung.title);
        const bool first = rung.kind == RungKind::Start;
        bars.push_back({title, u"One change at a time, simulated with A's costs until the costs themselves change."_s,
                        first ? 0 : rung.makespan - rung.change, rung.makespan, first});
    }
    bars.push_back({u"%1 as it ran"_s.arg(b), u"Step time"_s, 0, comparison.ladder.back().makespan, true});
    return bars;
}

TableText waterfallTable(const std::vector<WaterfallBar>& bars, const Units& units)
{
    TableText table;
    table.header = {u"part"_s, u"change"_s};
    for (const WaterfallBar& bar : bars) table.rows.push_back({bar.title, valueOf(bar, units)});
    return table;
}

int waterfallHeight(const std::vector<WaterfallBar>& bars)
{
    return static_cast<int>(rowHeight * static_cast<double>(bars.size())) + 6;
}

Plot waterfallPlot(const std::vector<WaterfallBar>& bars, const Units& units)
{
    Plot plot;
    plot.legend = PlotLegend::None;
    plot.across.hidden = plot.up.downwards = plot.up.aboveRows = true;
    if (bars.empty()) return plot;
    // the axis starts a little below the smallest total, so that changes are visible, and shows that with a broken edge
    Nanos least = bars.front().to, most = least;
    for (const WaterfallBar& bar : bars) {
        least = std::min({least, bar.to, bar.total ? bar.to : bar.from});
        most = std::max({most, bar.to, bar.from});
    }
    const double range = std::max(1.0, static_cast<double>(most - least));
    plot.across.least = std::max(0.0, static_cast<double>(least) - range * 0.6);
    plot.across.most = static_cast<double>(most);
    plot.across.broken = *plot.across.least > 0;
    PlotSeries carried{"", {}, PlotMark::Line, PlotInk{PlotHue::Separator}, PlotDash::Dot}, // the total, to the next
        boxes{"", {}, PlotMark::Boxes};
    carried.size = 1;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const WaterfallBar& bar = bars[i];
        const auto row = static_cast<double>(i), to = static_cast<double>(bar.to);
        const double from = bar.total ? *plot.across.least : static_cast<double>(bar.from);
        PlotPoint box{std::min(from, to), row + 0.05, valueOf(bar, units).toStdString(),
                      PlotInk{bar.total           ? i == 0 ? PlotHue::Faint : PlotHue::Accent
                              : bar.to < bar.from ? PlotHue::Better
                              : bar.to > bar.from ? PlotHue::Worse
                                                  : PlotHue::Secondary}};
        box.toX = std::max(from, to);
        box.toY = row + 0.31;
        boxes.points.push_back(std::move(box));
        plot.up.names.push_back(bar.title.toStdString());
        plot.items.push_back(PlotItem::cell(
            0, static_cast<int>(i), u"%1: %2\n%3"_s.arg(bar.title, valueOf(bar, units), bar.tooltip).toStdString()));
        plot.items.back().x0 = *plot.across.least;
        plot.items.back().x1 = *plot.across.most;
        if (i + 1 < bars.size())
            for (const PlotPoint& end :
                 {PlotPoint{to, row + 0.31}, PlotPoint{to, row + 1.05}, PlotPoint{to, std::nan("")}})
                carried.points.push_back(end);
    }
    plot.series = {std::move(carried), std::move(boxes)};
    return plot;
}

} // namespace stagewright
