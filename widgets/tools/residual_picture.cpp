#include "widgets/tools/residual_picture.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "schedules/model/kinds.h"
#include "traces/plot/kind_ink.h"

namespace stagewright {

ResidualPicture residualPicture(const Run& run, int step, const CostModel& costs)
{
    ResidualPicture out;
    auto residuals = residualsOf(run, costs);
    if (!residuals) {
        out.fault = residuals.error();
        return out;
    }
    out.residuals = std::move(*residuals);
    for (const OpResidual& of : residualsOfStep(*run.timeline, step, costs))
        out.dots.push_back({run.timeline->spans()[of.span].op.kind, of});
    out.worst.resize(out.dots.size());
    std::iota(out.worst.begin(), out.worst.end(), std::size_t(0));
    std::stable_sort(out.worst.begin(), out.worst.end(), [&](std::size_t a, std::size_t b) {
        return std::llabs(out.dots[a].of.residual()) > std::llabs(out.dots[b].of.residual());
    });
    return out;
}

Plot residualPlot(const ResidualPicture& picture, const Units& units)
{
    Plot plot{"Predicted", "Measured − predicted", {}};
    plot.legend = PlotLegend::None;
    for (PlotAxis* axis : {&plot.across, &plot.up}) {
        if (units.shares())
            axis->title += ", units";
        else
            axis->scale = PlotScale::Time;
    }
    plot.rules.push_back({0, false, {}, {PlotHue::Secondary}, PlotDash::Solid});
    const auto marks = [](PlotShape shape) { return PlotSeries{"ops", {}, PlotMark::Points, {}, {}, shape, 3}; };
    std::vector<PlotSeries> shapes{marks(PlotShape::Square), marks(PlotShape::Disc), marks(PlotShape::Triangle),
                                   marks(PlotShape::Diamond)};
    plot.items.resize(picture.dots.size());
    for (std::size_t i = 0; i < picture.dots.size(); ++i) {
        const ResidualDot& dot = picture.dots[i];
        const double x = units.timeValue(dot.of.predicted), y = units.timeValue(dot.of.residual());
        const std::size_t shape = isForward(dot.kind) ? 1 : isWeightGrad(dot.kind) ? 2 : isRecompute(dot.kind) ? 3 : 0;
        shapes[shape].points.push_back({x, y, {}, inkOf(dot.kind)});
        plot.items[i] = PlotItem::at(x, y, {}, 0, 0, static_cast<int>(i));
    }
    for (std::size_t place = 0; place < picture.worst.size(); ++place)
        plot.items[picture.worst[place]].column = static_cast<int>(place);
    plot.series = std::move(shapes);
    return plot;
}

} // namespace stagewright
