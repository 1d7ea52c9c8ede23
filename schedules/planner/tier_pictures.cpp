#include "schedules/planner/tier_pictures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/planner/picture_parts.h"

namespace stagewright {

namespace {

constexpr std::size_t mostTierBoxes = 4000;

std::string countText(std::int64_t count, const char* one, const char* more)
{
    return fmt::format("{} {}", count, count == 1 ? one : more);
}

Plot loadsPlot(const LoadsByCap& byCap, int shown)
{
    Plot plot{"Cap, pieces", "Loads", {}};
    plot.up.least = 0;
    plot.legend = PlotLegend::LineEnds;
    for (std::size_t policy = 0; policy < std::size(evictions); ++policy) {
        constexpr const char* titles[] = {"known future", "LRU", "FIFO"};
        PlotSeries line{titles[policy], {}};
        line.dots = byCap.caps.size() < 40;
        for (std::size_t i = 0; i < byCap.caps.size(); ++i) {
            const std::int64_t loads = byCap.loads[policy][i];
            const double x = byCap.caps[i], y = loads < 0 ? std::nan("") : static_cast<double>(loads);
            line.points.push_back({x, y});
            if (loads >= 0)
                plot.items.push_back(PlotItem::at(x, y,
                                                  fmt::format("{}, {} on the device: {}.", line.title,
                                                              countText(byCap.caps[i], "piece", "pieces"),
                                                              countText(loads, "load", "loads")),
                                                  static_cast<int>(i), static_cast<int>(policy)));
        }
        plot.series.push_back(std::move(line));
    }
    if (shown > 0) plot.rules.push_back({static_cast<double>(shown), true, "shown"});
    return plot;
}

} // namespace

PlannerPicture residencyPicture(const AccessTrace& trace, std::span<const int> capByMoment, bool cyclic,
                                const LoadsByCap& byCap, int shown)
{
    PlannerPicture out;
    const auto found = trace.replay(capByMoment, Eviction::Belady, cyclic, true);
    if (!found) {
        out.sentence = fmt::format("It does not run: {}.", found.error().message);
        out.plot = byCap.caps.empty() ? nothingPlot(out.sentence) : loadsPlot(byCap, shown);
        return out;
    }
    // From moment to moment at which a piece is there.
    std::vector<std::vector<std::pair<int, int>>> stays(static_cast<std::size_t>(trace.pieces()));
    for (const auto& moment : found->log) {
        for (const int piece : moment.evicted) stays[static_cast<std::size_t>(piece)].back().second = moment.moment;
        for (const int piece : moment.loaded)
            stays[static_cast<std::size_t>(piece)].emplace_back(moment.moment, trace.moments());
    }
    PlotSeries boxes{"on the device", {}, PlotMark::Boxes, PlotInk{PlotHue::Memory}};
    Plot raster{"Moment", "Piece", {}};
    raster.up.downwards = true;
    raster.up.least = -0.5;
    raster.up.most = trace.pieces() - 0.5;
    raster.across.least = 0;
    raster.across.most = trace.moments();
    std::size_t left = mostTierBoxes;
    for (std::size_t piece = 0; piece < stays.size() && left > 0; ++piece)
        for (const auto& [from, to] : stays[piece]) {
            if (left-- == 0) break;
            boxes.points.push_back(laneBox(static_cast<double>(piece), from, to, {}, *boxes.ink));
            raster.items.push_back(
                laneItem(static_cast<double>(piece), from, to,
                         fmt::format("Piece {}: loaded before moment {}, {}.", piece, from,
                                     to == trace.moments() ? std::string("stays") : fmt::format("gone before {}", to)),
                         from, static_cast<int>(piece)));
        }
    raster.series.push_back(std::move(boxes));
    std::string others;
    for (const Eviction eviction : {Eviction::LeastRecent, Eviction::FirstIn})
        if (const auto other = trace.replay(capByMoment, eviction, cyclic))
            others += fmt::format("{}{} by {}", others.empty() ? "" : ", ", other->loads,
                                  eviction == Eviction::LeastRecent ? "LRU" : "FIFO");
    out.sentence = fmt::format(
        "{} by the known future, {}. {} moved where each piece has one place, {} where clean ones "
        "have a copy on the host.{}",
        countText(found->loads, "load", "loads"), others, countText(found->moved(), "piece is", "pieces are"),
        found->movedIfChanged(), left == 0 ? " The picture has the first pieces." : "");
    out.plot = std::move(raster);
    if (byCap.caps.size() > 1) {
        out.plot.below.push_back(loadsPlot(byCap, shown));
        out.plot.share = 0.55;
        out.plot.below.front().share = 0.45;
        out.plot.tall = 1.6;
    }
    return out;
}

PlannerPicture packPicture(std::span<const std::int64_t> sizes, std::int64_t chunk,
                           const std::optional<std::vector<std::vector<int>>>& chunks)
{
    PlannerPicture out;
    if (!chunks) {
        out.sentence = "A tensor is larger than a chunk.";
        out.plot = nothingPlot(out.sentence);
        return out;
    }
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < chunks->size(); ++i) rows.push_back(fmt::format("chunk {}", i));
    Plot plot = lanesPlot("Elements", std::move(rows));
    PlotSeries boxes{"tensors", {}, PlotMark::Boxes, PlotInk{PlotHue::Forward}};
    std::int64_t used = 0;
    for (std::size_t i = 0; i < chunks->size(); ++i) {
        std::int64_t at = 0;
        for (const int tensor : (*chunks)[i]) {
            const std::int64_t size = sizes[static_cast<std::size_t>(tensor)];
            const PlotInk ink = partInk(static_cast<std::size_t>(tensor));
            boxes.points.push_back(laneBox(static_cast<double>(i), static_cast<double>(at),
                                           static_cast<double>(at + size), std::to_string(tensor), ink));
            plot.items.push_back(laneItem(static_cast<double>(i), static_cast<double>(at),
                                          static_cast<double>(at + size),
                                          fmt::format("Tensor {}: {} elements in chunk {}.", tensor, size, i),
                                          static_cast<int>(plot.items.size()), tensor));
            at += size;
        }
        used += at;
    }
    plot.across.most = static_cast<double>(chunk);
    plot.legend = PlotLegend::None;
    plot.series.push_back(std::move(boxes));
    out.sentence =
        fmt::format("{} of {} elements, {} % of them used.",
                    countText(static_cast<std::int64_t>(chunks->size()), "chunk", "chunks"), chunk,
                    shortNumber(100.0 * static_cast<double>(used) /
                                    std::max(1.0, static_cast<double>(chunk) * static_cast<double>(chunks->size())),
                                1));
    out.plot = std::move(plot);
    return out;
}

PlannerPicture deviceChunksPicture(Bytes cap, Bytes other, Bytes fp16, Bytes optimizer, std::int64_t count)
{
    PlannerPicture out;
    Plot plot{"", "Bytes", {}};
    plot.up.scale = PlotScale::Bytes;
    plot.across.names = {"device"};
    for (const auto& [title, bytes] :
         {std::pair("not in chunks", other), {"fp16 chunks", fp16}, {"optimizer chunks", optimizer}}) {
        PlotSeries bar{title, {}, PlotMark::Bars};
        bar.points.push_back({0, static_cast<double>(bytes)});
        plot.items.push_back(PlotItem::at(0, static_cast<double>(bytes), fmt::format("{}: {} bytes.", title, bytes), 0,
                                          static_cast<int>(plot.items.size())));
        plot.series.push_back(std::move(bar));
    }
    plot.rules.push_back({static_cast<double>(cap), false, "cap"});
    out.sentence = fmt::format("{} of optimizer state on the device, in 80 % of what is left.",
                               countText(count, "chunk", "chunks"));
    out.plot = std::move(plot);
    return out;
}

PlannerPicture bucketPicture(std::span<const BucketRow> rows)
{
    PlannerPicture out;
    Plot plot = lanesPlot("Time", {"in", "optimizer", "out"});
    const char* titles[] = {"loaded", "stepped", "stored"};
    constexpr PlotHue hues[] = {PlotHue::Communication, PlotHue::Optimizer, PlotHue::Communication};
    Nanos stepping = 0;
    for (std::size_t lane = 0; lane < 3; ++lane) {
        PlotSeries boxes{titles[lane], {}, PlotMark::Boxes, PlotInk{hues[lane], lane == 2 ? 0.6F : 1.0F}};
        for (std::size_t i = 0; i < rows.size() && i < mostTierBoxes / 3; ++i) {
            const auto& [start, end] = lane == 0 ? rows[i].in : lane == 1 ? rows[i].step : rows[i].out;
            boxes.points.push_back(laneBox(static_cast<double>(lane), static_cast<double>(start),
                                           static_cast<double>(end), std::to_string(i), *boxes.ink));
            plot.items.push_back(laneItem(static_cast<double>(lane), static_cast<double>(start),
                                          static_cast<double>(end),
                                          fmt::format("Bucket {}: {} from {} to {}.", i, titles[lane], start, end),
                                          static_cast<int>(i), static_cast<int>(lane)));
        }
        plot.series.push_back(std::move(boxes));
    }
    for (const BucketRow& row : rows) stepping += row.step.second - row.step.first;
    const Nanos end = rows.back().out.second;
    out.sentence = fmt::format("{} end at {}; stepping alone takes {}.{}",
                               countText(static_cast<std::int64_t>(rows.size()), "bucket", "buckets"), end, stepping,
                               rows.size() > mostTierBoxes / 3 ? " The picture has the first ones." : "");
    out.plot = std::move(plot);
    return out;
}

PlannerPicture bucketMemoryPicture(const BucketMemory& memory)
{
    PlannerPicture out;
    Plot plot{"", "Bytes", {}};
    plot.up.scale = PlotScale::Bytes;
    plot.up.least = 0;
    plot.across.names = {"all on the device", "in buckets: device", "in buckets: host"};
    PlotSeries bars{"", {}, PlotMark::Bars, PlotInk{PlotHue::Memory}};
    const Bytes values[] = {memory.deviceWithout, memory.device, memory.host};
    for (std::size_t i = 0; i < std::size(values); ++i) {
        bars.points.push_back({static_cast<double>(i), static_cast<double>(values[i])});
        plot.items.push_back(PlotItem::at(static_cast<double>(i), static_cast<double>(values[i]),
                                          fmt::format("{}: {} bytes.", plot.across.names[i], values[i]),
                                          static_cast<int>(i), 0));
    }
    plot.series.push_back(std::move(bars));
    out.sentence =
        fmt::format("{} leave {} of {} bytes on the device; each step copies {} bytes in and as many out.",
                    countText(memory.buckets, "bucket", "buckets"), memory.device, memory.deviceWithout, memory.in);
    out.plot = std::move(plot);
    return out;
}

PlannerPicture ownersPicture(std::span<const std::int64_t> cost, int members)
{
    struct Rule {
        const char* title;
        Owners owners;
    };
    const Rule rules[] = {{"Round robin", ownersRoundRobin(cost, members)},
                          {"In order", ownersInOrder(cost, members)},
                          {"Longest first", ownersLongestFirst(cost, members)}};
    PlannerPicture out;
    Plot plot{"Member", "Cost", {}};
    plot.up.least = 0;
    const std::int64_t bound = ownersBound(cost, members);
    out.sentence = fmt::format("No owners have less than {}.", bound);
    for (int rule = 0; rule < 3; ++rule) {
        PlotSeries bars{rules[rule].title, {}, PlotMark::Bars};
        bars.group = rule;
        std::vector<std::int64_t> load(static_cast<std::size_t>(members));
        for (std::size_t layer = 0; layer < cost.size(); ++layer)
            load[static_cast<std::size_t>(rules[rule].owners.owner[layer])] += cost[layer];
        for (int member = 0; member < members; ++member) {
            const auto value = static_cast<double>(load[static_cast<std::size_t>(member)]);
            bars.points.push_back({static_cast<double>(member), value});
            plot.items.push_back(PlotItem::at(
                member, value,
                fmt::format("{}: member {} has {}.", rules[rule].title, member, load[static_cast<std::size_t>(member)]),
                member, rule));
        }
        plot.series.push_back(std::move(bars));
        out.sentence += fmt::format(" {}: {}, {} times the bound.", rules[rule].title, rules[rule].owners.makespan,
                                    shortNumber(static_cast<double>(rules[rule].owners.makespan) /
                                                std::max<double>(1, static_cast<double>(bound))));
    }
    for (int member = 0; member < members; ++member) plot.across.names.push_back(std::to_string(member));
    plot.rules.push_back({static_cast<double>(bound), false, "bound"});
    out.plot = std::move(plot);
    return out;
}

PlannerPicture fillPicture(std::span<const BusyOp> busy, Nanos step, std::span<const FillerWork> works,
                           const FilledGaps& filled)
{
    PlannerPicture out;
    std::vector<std::string> rows;
    const int shown = std::min(filled.steps, 64);
    for (int i = 0; i < shown; ++i) rows.push_back(fmt::format("step {}", i));
    Plot plot = lanesPlot("Time in the step", std::move(rows));
    plot.across.most = static_cast<double>(step);
    struct Pass {
        BusyOp::Kind kind;
        const char* title;
        PlotInk ink;
    };
    for (const Pass& pass : {Pass{BusyOp::Kind::Forward, "forward", {PlotHue::Forward, 0.45F}},
                             Pass{BusyOp::Kind::Backward, "backward", {PlotHue::Backward, 0.45F}},
                             Pass{BusyOp::Kind::Other, "other", {PlotHue::Faint}}}) {
        PlotSeries boxes{pass.title, {}, PlotMark::Boxes, pass.ink};
        for (int i = 0; i < shown; ++i)
            for (const BusyOp& op : busy)
                if (op.kind == pass.kind)
                    boxes.points.push_back(
                        laneBox(i, static_cast<double>(op.start), static_cast<double>(op.end), {}, pass.ink));
        if (!boxes.points.empty()) plot.series.push_back(std::move(boxes));
    }
    const auto nameOf = [&](int work) { return works[static_cast<std::size_t>(work)].name; };
    constexpr PlotHue hues[] = {PlotHue::Weight, PlotHue::Communication, PlotHue::Memory};
    for (const FillerWork::After after :
         {FillerWork::After::Forwards, FillerWork::After::Backwards, FillerWork::After::Works}) {
        constexpr const char* titles[] = {"behind forwards", "behind backwards", "behind those"};
        const auto kind = static_cast<std::size_t>(after);
        PlotSeries boxes{titles[kind], {}, PlotMark::Boxes, PlotInk{hues[kind]}};
        for (const PlacedPiece& piece : filled.placed) {
            if (works[static_cast<std::size_t>(piece.work)].after != after || piece.step >= shown) continue;
            boxes.points.push_back(laneBox(piece.step, static_cast<double>(piece.start), static_cast<double>(piece.end),
                                           nameOf(piece.work), *boxes.ink));
            plot.items.push_back(laneItem(piece.step, static_cast<double>(piece.start), static_cast<double>(piece.end),
                                          fmt::format("{} {}, step {}: {} to {}.", nameOf(piece.work), piece.item,
                                                      piece.step, piece.start, piece.end),
                                          static_cast<int>(plot.items.size()), piece.step));
        }
        if (!boxes.points.empty()) plot.series.push_back(std::move(boxes));
    }
    for (const IdleRest& rest : filled.idle) {
        if (rest.step >= shown) continue;
        const std::string why = rest.why == IdleRest::Why::NothingLeft ? "nothing is left to place"
                                : rest.why == IdleRest::Why::TooShort
                                    ? fmt::format("the next, {}, takes {} more than there is, with its margin",
                                                  nameOf(rest.work), rest.missing)
                                    : fmt::format("the next, {}, has an input missing", nameOf(rest.work));
        plot.items.push_back(
            laneItem(rest.step, static_cast<double>(rest.start), static_cast<double>(rest.end),
                     fmt::format("{} of step {} stay idle: {}.", rest.end - rest.start, rest.step, why),
                     static_cast<int>(plot.items.size()), rest.step));
    }
    Nanos used = 0, added = 0;
    for (const BusyOp& op : busy) used += op.end - op.start;
    for (const PlacedPiece& piece : filled.placed) added += piece.end - piece.start;
    const auto share = [&](Nanos time) {
        return shortNumber(100.0 * static_cast<double>(time) / std::max(1.0, static_cast<double>(step) * filled.steps),
                           1);
    };
    out.sentence =
        fmt::format("A round takes {}: {} % busy without it, {} % with it. No placement takes fewer than {}.",
                    countText(filled.steps, "step", "steps"), share(used * filled.steps),
                    share(used * filled.steps + added), filled.leastSteps);
    if (!filled.unplaced.empty())
        out.sentence +=
            fmt::format(" {} no place: {} is longer than every gap, or waits for one that is.",
                        countText(static_cast<std::int64_t>(filled.unplaced.size()), "piece has", "pieces have"),
                        nameOf(filled.unplaced.front().first));
    if (shown < filled.steps)
        out.sentence += fmt::format(" The picture has the first {}.", countText(shown, "step", "steps"));
    out.plot = std::move(plot);
    return out;
}

} // namespace stagewright
