// Steps as a sample: a figure over the measured steps of a run, beside that of the step shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

class StepContext; // step_context.h

// Median (for an even number the lower of the two in the middle) and its 95 % confidence interval by order statistics:
// the narrowest k-th smallest to k-th largest that contains the median step time with a probability of at least 95 %,
// whatever the distribution. It needs six values; with fewer, low and high are the smallest and the largest.
struct FigureSample {
    double median = 0;
    double low = 0;
    double high = 0;
    int steps = 0;
    bool interval() const { return steps >= fewestForInterval; }
    static constexpr int fewestForInterval = 6;
};
std::optional<FigureSample> figureSampleOf(std::vector<double> values); // nothing: no values

inline constexpr int mostSampledSteps = 64;

// Figures of measured steps, by the keys of `report --json`: makespan, span, bubble_fraction, bubble_rate_span, busy,
// idle, idle_by_cause.CAUSE, peak_activation (of the fullest rank), comm_time, exposed_time; in timeline units.
struct StepSamples {
    std::vector<int> steps; // those used, from 0
    int measured = 0;       // out of this many
    std::vector<std::pair<std::string, FigureSample>> figures;

    const FigureSample* find(std::string_view key) const;
};

// Evenly spread over the measured steps, the first and the last among them, at most mostSampledSteps, and as many as
// have no more than mostSampledOps spans (two at least). Empty: the run has fewer than two measured steps. O(spans of
// the steps).
inline constexpr std::size_t mostSampledOps = 200'000;
// Which these are: of `steps` steps those from `first` on, `spansOfFirst` the spans of that one, `spans` of all.
std::vector<int> sampledSteps(int first, int steps, std::int64_t spansOfFirst, std::int64_t spans);
// Over the steps of a run, whichever is shown; where it is stopped, over those until then.
StepSamples sampleSteps(const StepContext& shown);

} // namespace stagewright
