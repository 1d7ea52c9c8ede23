#include "widgets/memory/memory_rows.h"

#include "traces/analysis/work_bytes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "widgets/sentence.h"

namespace stagewright {

namespace {

// Cumulative curves of the shown categories over the panel's window, including what was held before it.
std::vector<MemoryLayer> stackOf(const TimelinePanel& panel, const PanelRank& rank, const MemorySettings& settings)
{
    const Timeline& timeline = *panel.timeline;
    std::vector<MemoryLayer> layers;
    std::array<int, memoryCategoryCount> layerOf{};
    layerOf.fill(-1);
    const auto events = timeline.memoryOf(rank.rank);
    std::array<bool, memoryCategoryCount> present{};
    for (const MemoryEvent& event : events) present[static_cast<std::size_t>(event.category)] = true;
    for (const MemoryCategory category : stackOrder()) {
        const auto at = static_cast<std::size_t>(category);
        if (!settings.shown[at] || !present[at]) continue;
        layerOf[at] = static_cast<int>(layers.size());
        layers.push_back({category, {}});
    }
    if (layers.size() == 1) { // as in the figures: by the step's own events
        const MemoryCategory only = layers.front().category;
        const MemorySeries series = only == MemoryCategory::Activations
                                        ? rank.activations
                                        : memorySeries(timeline, rank.rank, panel.step, only);
        layers.front().curve = curveOf(series, panel.origin, panel.duration);
        return layers;
    }
    std::vector<Bytes> inUse(layers.size(), 0); // of each layer
    std::vector<Bytes> drawn(layers.size(), 0); // cumulative, as the curves have it
    bool begun = false;
    const auto tell = [&](Nanos time) {
        Bytes sum = 0;
        for (std::size_t k = 0; k < layers.size(); ++k) {
            sum += inUse[k];
            auto& points = layers[k].curve.points;
            if (begun && sum == drawn[k]) continue;
            drawn[k] = sum;
            if (!points.empty() && points.back().time == time) {
                points.back().inUse = sum;
            } else {
                points.push_back({time, sum});
            }
        }
        begun = true;
    };
    for (const MemoryEvent& event : events) {
        const int layer = layerOf[static_cast<std::size_t>(event.category)];
        if (layer < 0) continue;
        const Nanos time = event.time - panel.origin;
        if (time > panel.duration) break;
        if (time > 0 && !begun) tell(0);
        inUse[static_cast<std::size_t>(layer)] += event.delta;
        if (time >= 0) tell(time);
    }
    if (!begun) tell(0);
    for (MemoryLayer& layer : layers) {
        layer.curve.end = panel.duration;
        layer.curve.seal();
    }
    return layers;
}

MemoryCurve totalOf(const TimelinePanel& panel, std::size_t rank, const MemorySettings& settings)
{
    if (rank >= panel.ranks.size()) return {};
    auto layers = stackOf(panel, panel.ranks[rank], settings);
    return layers.empty() ? MemoryCurve{} : std::move(layers.back().curve);
}

MemoryRow counterRow(const TimelinePanel& panel, const Counter& counter)
{
    MemoryRow row;
    row.title = shownName(counter.name);
    CounterCurve curve;
    curve.unit = QString::fromStdString(counter.unit);
    curve.samples.reserve(counter.samples.size());
    Extremes all;
    for (const CounterSample& sample : counter.samples) {
        curve.samples.push_back({sample.time - panel.origin, sample.value});
        const bool inWindow = curve.samples.back().time >= 0 && curve.samples.back().time <= panel.duration;
        if (std::isfinite(sample.value) && inWindow) all.add(sample.value);
    }
    curve.index.build(curve.samples.size(), [&](std::size_t i) { return curve.samples[i].value; });
    if (!all.empty()) {
        // From zero unless that would flatten the curve.
        const bool fromNought = all.least >= 0 && all.least < 0.6 * all.most;
        curve.least = fromNought || all.least == all.most ? std::min(0.0, all.least) : all.least;
        curve.most = all.most > curve.least ? all.most + (all.most - curve.least) / 16 : curve.least + 1;
    }
    row.rankIndex = counter.rank;
    row.counter = std::move(curve);
    return row;
}

} // namespace

std::vector<bool> categoriesOf(const Timeline& timeline)
{
    std::vector<bool> present(memoryCategoryCount, false);
    for (const MemoryEvent& event : timeline.memory()) present[static_cast<std::size_t>(event.category)] = true;
    return present;
}

std::vector<MemoryRow> memoryRows(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                                  const std::shared_ptr<const TimelinePanel>& predicted, const MemorySettings& settings)
{
    std::vector<MemoryRow> rows;
    if (panels.empty()) return rows;
    const TimelinePanel& solid = *panels.back();
    const TimelinePanel* ghost = panels.size() > 1 ? panels[panels.size() - 2].get() : nullptr;
    for (std::size_t i = 0; i < solid.ranks.size(); ++i) {
        const PanelRank& rank = solid.ranks[i];
        MemoryRow row;
        row.rankIndex = static_cast<int>(i);
        row.title = rank.title;
        row.layers = stackOf(solid, rank, settings);
        row.holdings = std::make_shared<const Holdings>(*solid.timeline, rank.rank, settings.shown);
        if (ghost != nullptr && i < ghost->ranks.size()) row.ghost = totalOf(*ghost, i, settings);
        if (predicted) row.predicted = totalOf(*predicted, i, settings);
        rows.push_back(std::move(row));
    }
    if (!settings.counters) return rows;
    for (const Counter& counter : solid.timeline->counters())
        if (!counter.samples.empty() && !isWorkBytes(counter)) rows.push_back(counterRow(solid, counter));
    return rows;
}

} // namespace stagewright
