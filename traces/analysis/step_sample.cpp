#include "traces/analysis/step_sample.h"

#include <algorithm>
#include <cmath>

#include "traces/analysis/step_context.h"

namespace stagewright {

namespace {

// The largest k ≥ 1 such that the k-th smallest and the k-th largest of `count` values miss the median with a
// probability of at most 5 %: 2 P(Binomial(count, ½) < k) ≤ 0.05. 0: there is none.
int orderOf(int count)
{
    double probability = std::pow(0.5, count); // of exactly i values below the median
    double below = 0;
    int k = 0;
    for (int i = 0; i < count; ++i) {
        below += probability;
        if (2 * below > 0.05) break;
        k = i + 1;
        probability *= static_cast<double>(count - i) / (i + 1);
    }
    return k;
}

std::vector<int> evenlySpread(int first, int count, int most)
{
    std::vector<int> out;
    const int taken = std::min(count, most);
    out.reserve(static_cast<std::size_t>(std::max(0, taken)));
    for (int i = 0; i < taken; ++i)
        out.push_back(
            first + static_cast<int>(
                        taken == 1 ? 0 : (static_cast<std::int64_t>(i) * (count - 1) + (taken - 1) / 2) / (taken - 1)));
    return out;
}

std::int64_t spansOf(const Timeline& timeline, int step)
{
    std::int64_t count = 0;
    for (const Track& track : timeline.tracks()) {
        const auto [first, last] = timeline.stepRange(track, step);
        count += last - first;
    }
    return count;
}

} // namespace

std::vector<int> sampledSteps(int first, int steps, std::int64_t spansOfFirst, std::int64_t spans)
{
    const int measured = std::max(0, steps - first);
    if (measured < 2) return {};
    // steps may not be read
    const auto each = static_cast<std::size_t>(std::max<std::int64_t>({1, spansOfFirst, spans / steps}));
    const int most = std::clamp(static_cast<int>(std::min<std::size_t>(mostSampledOps / each, mostSampledSteps)), 2,
                                mostSampledSteps);
    return evenlySpread(first, measured, most);
}

std::optional<FigureSample> figureSampleOf(std::vector<double> values)
{
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    if (values.empty()) return std::nullopt;
    std::sort(values.begin(), values.end());
    FigureSample out;
    out.steps = static_cast<int>(values.size());
    out.median = values[(values.size() - 1) / 2];
    const auto k = static_cast<std::size_t>(std::max(1, orderOf(out.steps))); // below six the least and the greatest
    out.low = values[k - 1];
    out.high = values[values.size() - k];
    return out;
}

const FigureSample* StepSamples::find(std::string_view key) const
{
    for (const auto& [name, sample] : figures)
        if (name == key) return &sample;
    return nullptr;
}

StepSamples sampleSteps(const StepContext& shown)
{
    StepSamples out;
    const Run& run = shown.run();
    const Timeline& timeline = shown.timeline();
    const int first = std::max(0, run.info.warmupSteps);
    out.measured = std::max(0, timeline.steps() - first);
    const auto spans = run.median ? run.info.spanCount : static_cast<std::int64_t>(timeline.spans().size());
    std::vector<std::pair<std::string, std::vector<double>>> values;
    const auto add = [&values](const std::string& key, double value) {
        for (auto& [name, of] : values)
            if (name == key) return of.push_back(value);
        values.push_back({key, {value}});
    };
    for (const int step : sampledSteps(first, timeline.steps(), spansOf(timeline, first), spans)) {
        if (shown.stop().stop_requested()) break;
        std::optional<StepContext> other;
        if (step != shown.step()) other.emplace(run, step, shown.options(), shown.stop());
        const StepContext& context = other ? *other : shown;
        const auto& bubbles = context.bubbles();
        if (!bubbles || bubbles->makespan() <= 0) continue;
        out.steps.push_back(step);
        add("whole_step", static_cast<double>(bubbles->stepTime()));
        add("makespan", static_cast<double>(bubbles->makespan()));
        add("span", static_cast<double>(bubbles->span));
        add("busy", static_cast<double>(bubbles->busy));
        if (!bubbles->partial) {
            add("bubble_fraction", bubbles->bubbleFraction);
            add("bubble_rate_span", bubbles->bubbleRateSpan);
            add("idle", static_cast<double>(bubbles->idle));
        }
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause)
            if (bubbles->knows(static_cast<IdleCause>(cause)))
                add("idle_by_cause." + std::string(toText(static_cast<IdleCause>(cause))),
                    static_cast<double>(bubbles->byCause[cause]));
        if (bubbles->noArrivals.empty()) {
            const OverlapReport& overlap = context.overlap();
            add("comm_time", static_cast<double>(overlap.commTime));
            add("exposed_time", static_cast<double>(overlap.exposedTime));
        }
        if (!timeline.hasMemory()) continue;
        const auto peaks = peakByRank(timeline, step);
        if (!peaks.empty()) add("peak_activation", static_cast<double>(*std::max_element(peaks.begin(), peaks.end())));
    }
    for (auto& [key, of] : values)
        if (auto sample = figureSampleOf(std::move(of))) out.figures.emplace_back(key, *sample);
    return out;
}

} // namespace stagewright
