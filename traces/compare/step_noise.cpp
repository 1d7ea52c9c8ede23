#include "traces/compare/step_noise.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

constexpr std::size_t mostOps = 4'000'000; // in all measured steps

Nanos middleOf(const std::vector<Nanos>& sorted) { return sorted[(sorted.size() - 1) / 2]; }

} // namespace

StepSample sampleOf(std::span<const Nanos> values)
{
    StepSample sample;
    if (values.empty()) return sample;
    std::vector<Nanos> sorted(values.begin(), values.end());
    std::sort(sorted.begin(), sorted.end());
    sample.count = static_cast<int>(sorted.size());
    sample.median = middleOf(sorted);
    sample.least = sorted.front();
    sample.low = sorted[(sorted.size() - 1) / 4];
    sample.high = sorted[3 * (sorted.size() - 1) / 4];
    sample.most = sorted.back();
    double sum = 0;
    for (Nanos& value : sorted) {
        value = std::llabs(value - sample.median);
        sum += static_cast<double>(value);
    }
    std::sort(sorted.begin(), sorted.end());
    sample.mad = middleOf(sorted);
    sample.sigma = sample.mad > 0 ? 1.4826 * static_cast<double>(sample.mad) : 1.2533 * sum / sample.count;
    return sample;
}

NoiseVerdict verdictOn(Nanos change, const StepSample& a, const StepSample& b)
{
    NoiseVerdict verdict;
    verdict.shows = false;
    if (a.count < fewestSteps || b.count < fewestSteps) return verdict;
    verdict.spread = static_cast<Nanos>(std::ceil(2 * std::hypot(a.sigma, b.sigma)));
    verdict.shows = std::llabs(change) >= *verdict.spread;
    return verdict;
}

StepSample certain(Nanos value)
{
    StepSample sample;
    sample.count = fewestSteps;
    sample.median = sample.least = sample.low = sample.high = sample.most = value;
    return sample;
}

bool hasNoise(const Run& run) { return run.timeline && run.timeline->clock() != "model"; }

StepSample stepTimesOf(const Run& run, Nanos makespan)
{
    if (!hasNoise(run)) return certain(makespan);
    const Metric* times = run.metric("step_time_ns");
    const auto skip = static_cast<std::size_t>(std::max(0, run.info.warmupSteps));
    std::vector<Nanos> values;
    if (times != nullptr)
        for (std::size_t i = skip; i < times->values.size(); ++i) values.push_back(std::llround(times->values[i]));
    return sampleOf(values);
}

std::shared_ptr<const OpHistory> OpHistory::of(const Run& run, const std::stop_token& stop)
{
    if (!run.timeline) return nullptr;
    const Timeline& timeline = *run.timeline;
    auto history = std::make_shared<OpHistory>();
    const std::vector<int> numbers = stepsFrom(timeline, std::max(0, run.info.warmupSteps));
    const std::size_t steps = history->m_steps = numbers.size();
    if (steps < 2) return nullptr;
    for (std::size_t i = 0; i < steps; ++i) {
        if (stop.stop_requested()) return nullptr;
        const StepOps ops(timeline, numbers[i]);
        for (int rank = 0; rank < ops.ranks(); ++rank)
            for (const SpanId id : ops.busy(rank)) {
                const Span& span = timeline.spans()[id];
                if ((span.flags & SpanDiscarded) != 0) continue;
                const auto [at, fresh] = history->m_rows.try_emplace({rank, span.op}, history->m_rows.size() * steps);
                if (fresh) {
                    if (history->m_starts.size() + steps > mostOps) return nullptr;
                    history->m_starts.resize(history->m_starts.size() + steps, -1);
                    history->m_durations.resize(history->m_durations.size() + steps, -1);
                }
                history->m_starts[at->second + i] = span.start - ops.windowBegin();
                history->m_durations[at->second + i] = span.duration();
            }
    }
    return history;
}

std::span<const Nanos> OpHistory::row(const std::vector<Nanos>& values, const Op& op, int rank) const
{
    const auto found = m_rows.find({rank, op});
    if (found == m_rows.end()) return {};
    return std::span(values).subspan(found->second, m_steps);
}

namespace {

StepSample presentOf(std::span<const Nanos> values)
{
    std::vector<Nanos> present;
    for (const Nanos value : values)
        if (value >= 0) present.push_back(value);
    return sampleOf(present);
}

} // namespace

StepSample OpHistory::duration(const Op& op, int rank) const { return presentOf(durations(op, rank)); }
StepSample OpHistory::start(const Op& op, int rank) const { return presentOf(starts(op, rank)); }

} // namespace stagewright
