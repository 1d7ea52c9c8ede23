#include "traces/run/run.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/run/run_facts.h"

namespace stagewright {

std::string_view toText(RunState state)
{
    switch (state) {
    case RunState::Recording: return "recording";
    case RunState::Complete: return "complete";
    case RunState::Interrupted: return "interrupted";
    case RunState::Receiving: return "receiving";
    }
    return "complete";
}

const Metric* Run::metric(std::string_view metricName) const
{
    for (const Metric& m : metrics)
        if (m.name == metricName) return &m;
    return nullptr;
}

int Run::representativeStep() const
{
    if (median) return *median;
    const int steps = timeline ? timeline->steps() : info.steps;
    if (steps <= 1) return 0;
    std::vector<std::pair<Nanos, Nanos>> bounds(static_cast<std::size_t>(steps), {0, -1});
    if (timeline) {
        for (const StepMark& mark : timeline->stepMarks()) {
            auto& [begin, end] = bounds[static_cast<std::size_t>(mark.step)];
            const bool first = end < begin;
            begin = first ? mark.begin : std::min(begin, mark.begin);
            end = first ? mark.end : std::max(end, mark.end);
        }
    }
    return stagewright::representativeStep(bounds, metrics, info.warmupSteps);
}

int representativeStep(const std::vector<std::pair<Nanos, Nanos>>& bounds, const std::vector<Metric>& metrics,
                       int warmupSteps)
{
    const auto steps = static_cast<int>(bounds.size());
    const Metric* times = nullptr;
    for (const Metric& metric : metrics)
        if (metric.name == "step_time_ns" && times == nullptr) times = &metric;
    std::vector<std::pair<double, int>> byTime; // (time, step)
    const auto collect = [&](int first) {
        for (int step = first; step < steps; ++step) {
            const auto s = static_cast<std::size_t>(step);
            if (bounds[s].second < bounds[s].first) continue;
            const bool timed = times != nullptr && s < times->values.size() && times->values[s] > 0;
            byTime.emplace_back(timed ? times->values[s] : static_cast<double>(bounds[s].second - bounds[s].first),
                                step);
        }
    };
    collect(std::clamp(warmupSteps, 0, steps));
    if (byTime.empty()) collect(0);
    if (byTime.empty()) return 0;
    std::sort(byTime.begin(), byTime.end());
    return byTime[(byTime.size() - 1) / 2].second;
}

std::string weightsText(const Run& run)
{
    std::string rule;
    if (run.schedule && run.schedule->weights != WeightRule::Synchronous) rule = toText(run.schedule->weights);
    for (const auto& [key, value] : run.configuration)
        if (key == "weights") rule = value;
    for (const auto& [key, value] : run.configuration)
        if (key == "cut") rule = fmt::format("partial backward to layers {}", value);
    const Metric* deviation = run.metric("deviation");
    if (deviation == nullptr || deviation->values.empty())
        return rule.empty()
                   ? rule
                   : fmt::format("{}: record the schedule to measure the deviation from synchronous training", rule);
    return fmt::format("{}: {} from synchronous training after the last step (relative L2)",
                       rule.empty() ? "stale" : rule, distanceText(deviation->values.back()));
}

} // namespace stagewright
