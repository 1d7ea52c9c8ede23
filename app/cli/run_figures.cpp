#include "app/cli/run_figures.h"

#include <algorithm>

#include <fmt/core.h>

#include "schedules/base/step_number.h"

namespace stagewright {

Bytes RunFigures::largestPeak(MemoryCategory category) const
{
    Bytes largest = 0;
    for (const RankMemory& rank : memory) largest = std::max(largest, rank.peak[static_cast<std::size_t>(category)]);
    return largest;
}

Result<RunFigures> analyseRun(const Run& run, int step, std::optional<Bytes> memoryCap)
{
    const Timeline& timeline = *run.timeline;
    if (step >= timeline.steps())
        return fail(ErrorCode::Usage, fmt::format("there is no step {}; the run has {}", stepNumber(step), plural(timeline.steps(), "step")),
                    timeline.steps() > 0 ? fmt::format("steps are 1 to {}, warm-up included", timeline.steps()) : std::string());
    if (timeline.steps() == 0) return fail(ErrorCode::Invalid, "the run has no complete step", "record it again with more steps");
    RunFigures figures;
    figures.step = step >= 0 ? step : std::clamp(run.representativeStep(), 0, timeline.steps() - 1);
    figures.units = {timeline.timeUnit(), timeline.memoryUnit()};
    auto bubbles = analyseBubbles(timeline, figures.step, BubbleOptions{memoryCap});
    if (!bubbles) return tl::unexpected(std::move(bubbles.error()));
    figures.bubbles = std::move(*bubbles);
    figures.overlap = analyseOverlap(timeline, figures.step);
    figures.criticalPath = criticalPath(timeline, figures.step);
    if (timeline.hasMemory()) {
        for (int rank = 0; rank < timeline.ranks(); ++rank) {
            RankMemory memory;
            for (std::size_t c = 0; c < memoryCategoryCount; ++c) {
                const auto category = static_cast<MemoryCategory>(c);
                const MemorySeries series = memorySeries(timeline, rank, category, figures.step);
                memory.peak[c] = series.peak;
                if (category == MemoryCategory::Activations) {
                    memory.peakTime = series.peakTime;
                    memory.holders = holdersAt(timeline, rank, category, series.peakTime);
                }
            }
            figures.memory.push_back(std::move(memory));
        }
    }
    return figures;
}

std::string clockText(const Run& run)
{
    const std::string& clock = run.info.clock;
    if (clock == "virtual") return fmt::format("virtual clock: projected for {} devices", run.info.ranks);
    if (clock == "wall") return "wall clock";
    if (clock == "model") {
        std::string text = "model time";
        if (run.costs && !run.costs->origin.empty()) text += ": " + run.costs->origin;
        return text;
    }
    return clock.empty() ? "clock unknown" : clock + " clock";
}

double medianOf(std::vector<double> values)
{
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::vector<double> measuredValues(const Run& run, std::string_view metric)
{
    const Metric* found = run.metric(metric);
    if (!found) return {};
    const auto skip = std::min(found->values.size(), static_cast<std::size_t>(std::max(0, run.info.warmupSteps)));
    return {found->values.begin() + static_cast<std::ptrdiff_t>(skip), found->values.end()};
}

} // namespace stagewright
