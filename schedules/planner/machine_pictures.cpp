#include "schedules/planner/machine_pictures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/planner/picture_parts.h"

namespace stagewright {

namespace {

constexpr std::int64_t mostBoxes = 20'000; // of a picture

// Sized as shares of the whole height.
void stack(Plot& upper, std::vector<Plot> below, double share, double tall)
{
    upper.share = share;
    upper.tall = tall;
    for (Plot& plot : below) plot.share = (1 - share) / static_cast<double>(below.size());
    upper.below = std::move(below);
}

PlotItem bandItem(std::size_t column, std::string text)
{
    const auto x = static_cast<double>(column);
    return PlotItem::band(x - 0.5, x + 0.5, std::move(text), static_cast<int>(column), static_cast<int>(column));
}

PlotSeries barSeries(std::string title, PlotInk ink, const std::vector<double>& values)
{
    PlotSeries bars{std::move(title), {}, PlotMark::Bars, ink};
    for (std::size_t i = 0; i < values.size(); ++i) bars.points.push_back({static_cast<double>(i), values[i]});
    return bars;
}

// Short lines across the bars, where there is such a value.
PlotSeries levelSeries(std::string title, const std::vector<double>& values)
{
    PlotSeries levels = barSeries(std::move(title), {PlotHue::Critical}, values);
    levels.mark = PlotMark::Levels;
    return levels;
}

} // namespace

PlannerPicture partitionPicture(std::span<const std::string> names, std::span<const std::int64_t> costs,
                                std::span<const int> cuts, const std::optional<Partition>& best)
{
    if (!best)
        return {fmt::format("Only {} for a cut, fewer than the stages need.",
                            counted(static_cast<long long>(cuts.size()), "place")),
                nothingPlot("no partition")};
    PlannerPicture out;
    std::int64_t sum = 0;
    for (const std::int64_t cost : costs) sum += cost;
    const std::size_t parts = best->bounds.size() - 1;
    const double even = static_cast<double>(sum) / static_cast<double>(parts);
    out.sentence = fmt::format("The largest of {} is {}, {}× an even share; {} it.",
                               counted(static_cast<long long>(parts), "part"), best->largest,
                               even > 0 ? shortNumber(static_cast<double>(best->largest) / even, 2) : "–",
                               best->ways == 1 ? "1 partition has" : fmt::format("{} partitions have", best->ways));
    Plot& plot = out.plot;
    plot = {names.empty() ? "Item" : "Node of the model's graph", "Cost", {}};
    plot.legend = PlotLegend::None;
    Plot sums{"Part", "Sum of its costs", {}};
    sums.legend = PlotLegend::None;
    PlotSeries all{"", {}, PlotMark::Bars};
    for (std::size_t part = 0; part < parts; ++part) {
        PlotSeries bars{"", {}, PlotMark::Bars, partInk(part)};
        double own = 0;
        for (auto i = static_cast<std::size_t>(best->bounds[part]);
             i < static_cast<std::size_t>(best->bounds[part + 1]); ++i) {
            bars.points.push_back({static_cast<double>(i), static_cast<double>(costs[i])});
            own += static_cast<double>(costs[i]);
        }
        plot.series.push_back(std::move(bars));
        all.points.push_back({static_cast<double>(part), own, {}, partInk(part)});
        sums.across.names.push_back(std::to_string(part));
        sums.items.push_back(bandItem(part, fmt::format("Part {}: {} to {}, {} in all.", part, best->bounds[part],
                                                        best->bounds[part + 1] - 1, shortNumber(own))));
    }
    sums.series.push_back(std::move(all));
    sums.rules.push_back({even, false, "even share", {PlotHue::Secondary}});
    for (std::size_t i = 0; i < costs.size(); ++i) {
        plot.across.names.push_back(names.empty() ? std::to_string(i) : names[i]);
        plot.items.push_back(bandItem(i, fmt::format("{}: {}.", plot.across.names.back(), costs[i])));
    }
    if (!names.empty())
        for (const int cut : cuts) plot.rules.push_back({cut - 0.5, true, {}, {PlotHue::Secondary}, PlotDash::Dot});
    for (std::size_t part = 1; part < parts; ++part)
        plot.rules.push_back({best->bounds[part] - 0.5, true, {}, {PlotHue::Critical}, PlotDash::Solid});
    stack(plot, {std::move(sums)}, 0.6, 1.3);
    return out;
}

namespace {

// An axis on which caps are below its end, too.
double headroom(const std::vector<double>& caps, const std::vector<double>& lower, const std::vector<double>& upper)
{
    double most = 0;
    for (std::size_t i = 0; i < caps.size(); ++i) most = std::max({most, caps[i], lower[i] + upper[i]});
    return 1.06 * most;
}

} // namespace

PlannerPicture pictureOf(const RecomputeProblem& problem, const RecomputePlan& plan)
{
    PlannerPicture out;
    out.sentence = plan.slowest ? fmt::format("The slowest stage takes {}, {} where every layer is recomputed.",
                                              *plan.slowest, plan.all)
                                : "";
    std::vector<double> kept, again, fixed, activations, caps;
    Plot layers{"", "Layers", {}}, memory{"Stage", "Memory", {}};
    layers.across.hidden = true;
    const std::size_t stages = plan.kept.size();
    for (std::size_t i = 0; i < stages; ++i) {
        const auto held = std::min<std::int64_t>(problem.microbatches, static_cast<std::int64_t>(stages - i));
        const std::int64_t keeps = plan.kept[i].value_or(0), rest = problem.layers[i] - keeps;
        const std::int64_t moving =
            held * (keeps * problem.kept + rest * problem.input) + (rest > 0 ? problem.kept : 0);
        kept.push_back(static_cast<double>(keeps));
        again.push_back(static_cast<double>(rest));
        fixed.push_back(static_cast<double>(problem.fixed[i]));
        activations.push_back(static_cast<double>(moving));
        caps.push_back(static_cast<double>(problem.cap[i]));
        layers.across.names.push_back(std::to_string(i));
        const std::int64_t lacks = problem.fixed[i] + moving - problem.cap[i];
        if (!plan.kept[i])
            out.sentence += fmt::format("{}Stage {} lacks {} even where it recomputes every layer.",
                                        out.sentence.empty() ? "" : " ", i, lacks);
        layers.items.push_back(bandItem(i, fmt::format("Stage {}: keeps {} of {} for {}, {} of {} memory.", i, keeps,
                                                       counted(problem.layers[i], "layer"), counted(held, "microbatch"),
                                                       problem.fixed[i] + moving, problem.cap[i])));
    }
    memory.across.names = layers.across.names;
    layers.series = {barSeries("kept", {PlotHue::Forward}, kept), barSeries("recomputed", {PlotHue::Faint}, again)};
    memory.series = {barSeries("weights and state", {PlotHue::Optimizer}, fixed),
                     barSeries("activations", {PlotHue::Memory}, activations), levelSeries("cap", caps)};
    memory.up.most = headroom(caps, fixed, activations);
    stack(layers, {std::move(memory)}, 0.45, 1.3);
    out.plot = std::move(layers);
    return out;
}

PlannerPicture pipelinePicture(std::int64_t ranks, std::int64_t microbatches, double forward, double recompute,
                               double backward)
{
    const double end = static_cast<double>(microbatches + ranks - 1) * (forward + recompute + backward);
    PlannerPicture out;
    out.sentence = fmt::format(
        "{} {} {} for {}; {} % of it is idle.", counted(ranks, "rank"), ranks == 1 ? "takes" : "take", shortNumber(end),
        counted(microbatches, "microbatch"),
        shortNumber(100.0 * static_cast<double>(ranks - 1) / static_cast<double>(microbatches + ranks - 1), 1));
    if (ranks < 1 || microbatches < 1 || ranks > mostBoxes / 2 / microbatches) return out;
    // 1F1B: each rank's order, and what each pass waits for
    const auto p = static_cast<std::size_t>(ranks), m = static_cast<std::size_t>(microbatches);
    std::vector<std::vector<double>> ends[2]; // forward, backward: by rank and microbatch
    for (auto& of : ends) of.assign(p, std::vector<double>(m, -1));
    std::vector<std::size_t> done[2] = {std::vector<std::size_t>(p, 0), std::vector<std::size_t>(p, 0)};
    std::vector<double> free(p, 0);
    std::vector<std::string> rows;
    for (std::size_t rank = 0; rank < p; ++rank) rows.push_back(fmt::format("rank {}", rank));
    out.plot = lanesPlot("Time", std::move(rows));
    PlotSeries boxes[] = {{"forward", {}, PlotMark::Boxes, PlotInk{PlotHue::Forward}},
                          {"recomputation", {}, PlotMark::Boxes, PlotInk{PlotHue::Forward, 0.35F}},
                          {"backward", {}, PlotMark::Boxes, PlotInk{PlotHue::Backward}}};
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t rank = 0; rank < p; ++rank)
            for (;;) {
                const std::size_t f = done[0][rank], b = done[1][rank], ahead = std::min(m, p - rank);
                const bool back = b < m && (f == m || f - b >= ahead);
                if (b == m) break;
                const std::size_t which = back ? b : f;
                const double from = back ? (rank + 1 < p ? ends[1][rank + 1][which] : ends[0][rank][which])
                                         : (rank > 0 ? ends[0][rank - 1][which] : 0);
                if (from < 0) break;
                const double start = std::max(free[rank], from);
                const std::string name = std::to_string(which);
                const auto box = [&](std::size_t of, double at, double length) {
                    if (length <= 0) return;
                    boxes[of].points.push_back(
                        laneBox(static_cast<double>(rank), at, at + length, name, *boxes[of].ink, 0.44));
                    out.plot.items.push_back(
                        laneItem(static_cast<double>(rank), at, at + length,
                                 fmt::format("{} of microbatch {} on rank {}: {} to {}.", boxes[of].title, which, rank,
                                             shortNumber(at), shortNumber(at + length)),
                                 static_cast<int>(out.plot.items.size()), static_cast<int>(which), 0.44));
                };
                if (back) {
                    box(1, start, recompute);
                    box(2, start + recompute, backward);
                } else {
                    box(0, start, forward);
                }
                free[rank] = start + (back ? recompute + backward : forward);
                ends[back][rank][which] = free[rank];
                ++done[back][rank];
                moved = true;
            }
    }
    for (PlotSeries& series : boxes) out.plot.series.push_back(std::move(series));
    return out;
}

PlannerPicture subPipelinePicture(std::int64_t segments, double compute, double reduce, double loss)
{
    const SubPipeline times = subPipeline(segments, compute, reduce, loss);
    PlannerPicture out;
    const double faster = times.unsplit - times.split;
    out.sentence = fmt::format("{} {} {}, in two halves {}: {} {}.",
                               counted(static_cast<long long>(segments), "segment"), segments == 1 ? "takes" : "take",
                               shortNumber(times.unsplit), shortNumber(times.split), shortNumber(std::abs(faster)),
                               faster > 0   ? "less"
                               : faster < 0 ? "more, a loss"
                                            : "less");
    if (segments > mostBoxes / 6) return out;
    out.plot = lanesPlot("Time", {"whole: compute", "whole: all-reduce", "halves: compute", "halves: all-reduce"});
    PlotSeries boxes{"", {}, PlotMark::Boxes};
    const auto add = [&](int row, double from, double to, std::int64_t segment, int half) {
        if (to <= from) return;
        constexpr PlotHue hues[] = {PlotHue::Forward, PlotHue::Weight};
        const bool travels = row % 2 == 1;
        boxes.points.push_back(
            laneBox(row, from, to,
                    fmt::format("{}{}", segment,
                                half < 0    ? ""
                                : half == 0 ? "a"
                                            : "b"),
                    {travels ? PlotHue::Communication : hues[std::max(0, half)], half == 1 && travels ? 0.55F : 1}));
        out.plot.items.push_back(laneItem(row, from, to,
                                          fmt::format("Segment {}{}: {} to {}.", segment,
                                                      half < 0    ? ""
                                                      : half == 0 ? ", first half"
                                                                  : ", second half",
                                                      shortNumber(from), shortNumber(to)),
                                          static_cast<int>(out.plot.items.size()), static_cast<int>(segment)));
    };
    double computes = 0, reduces = 0, ready[2] = {0, 0};
    for (std::int64_t segment = 0; segment < segments; ++segment) {
        const double start = static_cast<double>(segment) * (compute + reduce);
        add(0, start, start + compute, segment, -1);
        add(1, start + compute, start + compute + reduce, segment, -1);
        for (const int half : {0, 1}) {
            const double from = std::max(computes, ready[half]);
            computes = from + compute * loss / 2;
            add(2, from, computes, segment, half);
            const double sent = std::max(reduces, computes);
            ready[half] = reduces = sent + reduce / 2;
            add(3, sent, reduces, segment, half);
        }
    }
    out.plot.series.push_back(std::move(boxes));
    for (const auto& [at, name] : {std::pair(times.unsplit, "whole"), std::pair(times.split, "halves")})
        out.plot.rules.push_back({at, true, name, {PlotHue::Critical}});
    return out;
}

PlannerPicture pictureOf(const UnevenProblem& problem, const UnevenAnswer& answer)
{
    if (!answer.best) {
        std::string why = fmt::format("Nothing fits: no devices have room for the activations of {}",
                                      counted(problem.samples, "sample"));
        if (answer.room)
            why = fmt::format("Nothing fits: the state is {}, activations of any division leave {} for it at most: {} "
                              "are missing",
                              shortNumber(problem.state, 2), shortNumber(*answer.room, 2),
                              shortNumber(problem.state - *answer.room, 2));
        return {why + ".", nothingPlot("no division fits")};
    }
    PlannerPicture out;
    out.sentence = fmt::format("The slowest device takes {}.", shortNumber(answer.best->time, 2));
    const auto against = [&](const char* what, const UnevenPlan& plan) {
        out.sentence += plan.fits ? fmt::format(" {}: {}×.", what, shortNumber(plan.time / answer.best->time, 2))
                                  : fmt::format(" {}: does not fit.", what);
    };
    against("Even division", answer.even);
    against("By speed", answer.speed);
    Plot samples{"", "Samples", {}}, memory{"Device", "Memory", {}}, times{"", "Time", {}};
    samples.across.hidden = times.across.hidden = true;
    std::vector<double> taken, held, shares, caps, took;
    for (std::size_t i = 0; i < problem.devices.size(); ++i) {
        const UnevenDevice& device = problem.devices[i];
        const auto pick = answer.best->picks[i];
        const double activations = unevenMemory(device, pick);
        const double time = unevenTime(problem, device, pick);
        taken.push_back(pick.all());
        took.push_back(time);
        held.push_back(activations);
        shares.push_back(answer.best->shares[i] * problem.state);
        caps.push_back(device.cap);
        samples.across.names.push_back(std::to_string(i));
        samples.items.push_back(bandItem(
            i, fmt::format("Device {}: {} of {}, time {}; {} of activations and {} of the state in {}.", i,
                           counted(pick.count, "microbatch"), counted(pick.samples, "sample"), shortNumber(time, 2),
                           shortNumber(activations, 2), shortNumber(shares.back(), 2), shortNumber(device.cap, 2))));
    }
    memory.across.names = times.across.names = samples.across.names;
    samples.series = {barSeries("", {PlotHue::Forward}, taken)};
    for (std::size_t i = 0; i < taken.size(); ++i)
        samples.series[0].points[i].name =
            fmt::format("{}×{}", answer.best->picks[i].count, answer.best->picks[i].samples);
    times.series = {barSeries("", {PlotHue::Backward}, took)};
    times.rules.push_back({answer.best->time, false, "slowest"});
    memory.series = {barSeries("state", {PlotHue::Optimizer}, shares),
                     barSeries("activations", {PlotHue::Memory}, held), levelSeries("cap", caps)};
    memory.up.most = headroom(caps, shares, held);
    stack(samples, {std::move(times), std::move(memory)}, 0.3, 1.8);
    out.plot = std::move(samples);
    return out;
}

namespace {

constexpr int clusterSteps = 4; // to each side of the map, by factors of √2
double clusterFactor(int step) { return std::exp2(step / 2.0); }

const ClusterSplit* bestSplit(const ClusterAnswer& answer)
{
    const auto at = std::find_if(answer.rows.begin(), answer.rows.end(),
                                 [&](const ClusterSplit& row) { return answer.best && row.model == *answer.best; });
    return at == answer.rows.end() ? nullptr : &*at;
}

const char* limitText(ClusterSplit::Limit limit)
{
    return limit == ClusterSplit::Limit::Network  ? "network"
           : limit == ClusterSplit::Limit::Memory ? "memory"
                                                  : "compute";
}

std::string rateText(double bytes) { return shortNumber(bytes / 1e9, bytes < 1e10 ? 1 : 0); } // in GB/s
std::string memoryText(double bytes) { return formatBytes(std::llround(bytes)); }

// The best split of each network and memory around the cluster's own; what limits it is the ink.
Plot clusterMap(const ClusterStudy& study)
{
    Plot map{"Network of a device, GB/s", "Memory of a device: best M, its step in s", {}};
    map.legend = PlotLegend::Right;
    PlotSeries limits[] = {{"limited by compute", {}, PlotMark::Cells, PlotInk{PlotHue::Forward, 0.8F}},
                           {"limited by memory", {}, PlotMark::Cells, PlotInk{PlotHue::Memory, 0.8F}},
                           {"limited by network", {}, PlotMark::Cells, PlotInk{PlotHue::Communication, 0.8F}}};
    PlotSeries none{"nothing fits", {}, PlotMark::Cells, PlotInk{PlotHue::Idle}};
    for (int y = -clusterSteps; y <= clusterSteps; ++y)
        for (int x = -clusterSteps; x <= clusterSteps; ++x) {
            ClusterStudy other = study;
            other.between = study.between * clusterFactor(x);
            other.capacity = study.capacity * clusterFactor(y);
            if (y == -clusterSteps) map.across.names.push_back(rateText(other.between));
            if (x == -clusterSteps) map.up.names.push_back(memoryText(other.capacity));
            const auto answer = studyCluster(other);
            const ClusterSplit* best = answer ? bestSplit(*answer) : nullptr;
            const int column = x + clusterSteps, row = y + clusterSteps;
            PlotPoint point{static_cast<double>(column), static_cast<double>(row), "–"};
            if (best != nullptr)
                point.name = fmt::format("{}: {}\n{}", best->model,
                                         shortNumber(best->step(), best->step() < 10 ? 2 : 0), best->model);
            (best == nullptr ? none : limits[static_cast<int>(best->limit)]).points.push_back(point);
            map.items.push_back(PlotItem::cell(
                column, row,
                fmt::format("{} GB/s, {}: {}.", rateText(other.between), memoryText(other.capacity),
                            best == nullptr ? "no split fits"
                                            : fmt::format("M = {} takes {} s; {} limits it", best->model,
                                                          shortNumber(best->step(), 2), limitText(best->limit)))));
        }
    for (PlotSeries& one : limits)
        if (!one.points.empty()) map.series.push_back(std::move(one));
    if (!none.points.empty()) map.series.push_back(std::move(none));
    return map;
}

double priceOf(const ClusterStudy& study)
{
    return static_cast<double>(study.devices) *
           (study.prices.device + study.capacity / 1e9 * study.prices.memory +
            study.expansion / 1e9 * study.prices.expansion + study.between / 1e9 * study.prices.network);
}

// Steps against prices of the same clusters; those that no other one beats in both.
Plot pricePlot(const ClusterStudy& study)
{
    Plot plot{"Price of the cluster, millions", "Step, s", {}};
    struct Point {
        double price, step;
        std::string text;
    };
    std::vector<Point> points;
    for (int y = -clusterSteps; y <= clusterSteps; ++y)
        for (int x = -clusterSteps; x <= clusterSteps; ++x) {
            ClusterStudy other = study;
            other.between = study.between * clusterFactor(x);
            other.capacity = study.capacity * clusterFactor(y);
            const auto answer = studyCluster(other);
            if (const ClusterSplit* best = answer ? bestSplit(*answer) : nullptr)
                points.push_back({priceOf(other) / 1e6, best->step(),
                                  fmt::format("{}, {} GB/s, M = {}", memoryText(other.capacity),
                                              rateText(other.between), best->model)});
        }
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return std::pair(a.price, a.step) < std::pair(b.price, b.step);
    });
    PlotSeries all{"", {}, PlotMark::Points, PlotInk{PlotHue::Faint}},
        frontier{"no other is cheaper and faster", {}, PlotMark::Line, PlotInk{PlotHue::Accent}};
    all.named = false;
    frontier.dots = true;
    frontier.dash = PlotDash::Solid;
    double least = INFINITY;
    for (std::size_t i = 0; i < points.size(); ++i) {
        all.points.push_back({points[i].price, points[i].step});
        plot.items.push_back(PlotItem::at(points[i].price, points[i].step,
                                          fmt::format("{}: {} million, a step of {} s.", points[i].text,
                                                      shortNumber(points[i].price, 1), shortNumber(points[i].step, 2)),
                                          static_cast<int>(i), 0));
        if (points[i].step >= least) continue;
        least = points[i].step;
        frontier.points.push_back({points[i].price, points[i].step});
    }
    plot.series = {std::move(frontier), std::move(all)};
    return plot;
}

} // namespace

PlannerPicture pictureOf(const ClusterStudy& study, const ClusterAnswer& answer)
{
    PlannerPicture out;
    if (const ClusterSplit* best = bestSplit(answer)) {
        out.sentence =
            fmt::format("M = {} and D = {} take {} s with {} a device; {} limits it.", best->model, best->data,
                        shortNumber(best->step(), 1), memoryText(best->bytes), limitText(best->limit));
    } else if (!answer.rows.empty()) {
        const auto least =
            std::min_element(answer.rows.begin(), answer.rows.end(),
                             [](const ClusterSplit& a, const ClusterSplit& b) { return a.bytes < b.bytes; });
        out.sentence = fmt::format("No split fits: M = {} needs least, {} of {}, {} too much.", least->model,
                                   memoryText(least->bytes), memoryText(study.capacity + study.expansion),
                                   memoryText(least->bytes - study.capacity - study.expansion));
    }
    if (study.prices.device > 0)
        out.sentence += fmt::format(" The cluster costs {} million.", shortNumber(priceOf(study) / 1e6, 1));
    Plot steps{"Model-parallel devices, M", "Step, s", {}};
    PlotSeries parts[] = {{"compute", {}, PlotMark::Bars, PlotInk{PlotHue::Forward}},
                          {"network of a layer", {}, PlotMark::Bars, PlotInk{PlotHue::Communication}},
                          {"network of gradients", {}, PlotMark::Bars, PlotInk{PlotHue::Weight}}};
    PlotSeries over{"does not fit", {}, PlotMark::Bars, PlotInk{PlotHue::Faint}};
    for (std::size_t i = 0; i < answer.rows.size(); ++i) {
        const ClusterSplit& row = answer.rows[i];
        const double x = static_cast<double>(i), times[] = {row.compute, row.modelNetwork, row.dataNetwork};
        steps.across.names.push_back(std::to_string(row.model));
        if (row.fits)
            for (std::size_t part = 0; part < std::size(times); ++part) parts[part].points.push_back({x, times[part]});
        else
            over.points.push_back({x, row.step()});
        steps.items.push_back(bandItem(i, fmt::format("M = {}, D = {}: {} s, {}{}; {} limits it.", row.model, row.data,
                                                      shortNumber(row.step(), 2), memoryText(row.bytes),
                                                      row.fits ? "" : ", does not fit", limitText(row.limit))));
    }
    for (PlotSeries& one : parts) steps.series.push_back(std::move(one));
    steps.series.push_back(std::move(over));
    std::vector<Plot> below{clusterMap(study)};
    if (study.prices.device > 0) below.push_back(pricePlot(study));
    const bool two = below.size() > 1;
    stack(steps, std::move(below), two ? 0.26 : 0.38, two ? 2.2 : 1.7);
    out.plot = std::move(steps);
    return out;
}

PlannerPicture pictureOf(const PackingProblem& partial, const Packing& packing, const PackingProblem* full,
                         const Packing* fullPacking)
{
    PlannerPicture out;
    const auto lanes = [](const PackingProblem& problem, const Packing& plan, std::string title) {
        std::vector<std::string> rows;
        for (int gpu = 0; gpu < problem.gpus; ++gpu) rows.push_back(fmt::format("GPU {}", gpu));
        Plot plot = lanesPlot("Time", std::move(rows));
        plot.up.title = std::move(title);
        std::vector<double> free(static_cast<std::size_t>(problem.gpus), 0);
        for (std::size_t job = 0; job < plan.places.size(); ++job) {
            PlotSeries boxes{fmt::format("job {}", job), {}, PlotMark::Boxes, partInk(job)};
            for (std::size_t worker = 0; worker < plan.places[job].size(); ++worker) {
                const int gpu = plan.places[job][worker];
                double& at = free[static_cast<std::size_t>(gpu)];
                const double end = at + static_cast<double>(problem.jobs[job][worker]);
                boxes.points.push_back(laneBox(gpu, at, end, fmt::format("{}.{}", job, worker), *boxes.ink));
                plot.items.push_back(laneItem(
                    gpu, at, end,
                    fmt::format("Worker {} of job {} on GPU {}: {}.", worker, job, gpu, problem.jobs[job][worker]),
                    static_cast<int>(plot.items.size()), static_cast<int>(job)));
                at = end;
            }
            plot.series.push_back(std::move(boxes));
        }
        plot.rules.push_back({static_cast<double>(plan.packed), true, "period"});
        plot.across.most = static_cast<double>(plan.packed) * 1.08;
        return plot;
    };
    const double bound =
        static_cast<double>(packing.rotatedNumerator) / static_cast<double>(packing.rotatedDenominator);
    const auto used = [](const PackingProblem& problem, const Packing& one) {
        return 100.0 * static_cast<double>(one.work) /
               static_cast<double>(std::max<std::int64_t>(1, one.packed * problem.gpus));
    };
    out.sentence =
        fmt::format("Packed, every job goes on each {}; first come first served {}, as gangs {}. {} % of the GPUs' "
                    "time is used; no "
                    "rotation is shorter than {}{}.",
                    packing.packed, packing.fifo, packing.gang, shortNumber(used(partial, packing), 1),
                    shortNumber(bound, 1), packing.proven ? "" : ", and the packing is not proven to be the best");
    out.plot = lanes(
        partial, packing,
        fmt::format("Partial backward, packed: {}, {} % used", packing.packed, shortNumber(used(partial, packing), 1)));
    std::vector<Plot> below;
    if (full != nullptr && fullPacking != nullptr) {
        below.push_back(lanes(*full, *fullPacking,
                              fmt::format("Full backward, packed: {}, {} % used", fullPacking->packed,
                                          shortNumber(used(*full, *fullPacking), 1))));
        const double most = static_cast<double>(std::max(packing.packed, fullPacking->packed)) * 1.08;
        out.plot.across.most = below.front().across.most = most;
        below.front().legend = PlotLegend::None;
        out.sentence += fmt::format(" Full backward takes {} packed.", fullPacking->packed);
    }
    out.sentence += " Training with partial backward is not synchronous training.";
    Plot periods{"", "Period", {}};
    periods.across.names = {"FIFO", "gang", packing.proven ? "packed" : "packed, not proven", "rotation, bound"};
    const auto barsOf = [](std::string title, const Packing& one, int group, PlotInk ink) {
        PlotSeries bars =
            barSeries(std::move(title), ink,
                      {static_cast<double>(one.fifo), static_cast<double>(one.gang), static_cast<double>(one.packed),
                       static_cast<double>(one.rotatedNumerator) / static_cast<double>(one.rotatedDenominator)});
        bars.group = group;
        return bars;
    };
    periods.series.push_back(barsOf("partial backward", packing, 0, {PlotHue::Backward}));
    if (fullPacking != nullptr) periods.series.push_back(barsOf("full backward", *fullPacking, 1, {PlotHue::Faint}));
    below.push_back(std::move(periods));
    const double share = below.size() > 1 ? 0.36 : 0.6;
    stack(out.plot, std::move(below), share, 1.8);
    return out;
}

} // namespace stagewright
