// Noise: how much a figure differs from step to step of one run, and whether a change between two runs exceeds that.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/run/run.h"

namespace stagewright {

// One figure over the measured steps.
struct StepSample {
    int count = 0;
    Nanos median = 0; // for an even number the lower of the two in the middle
    Nanos mad = 0;    // median of |value − median|
    Nanos least = 0;
    Nanos low = 0; // quartiles: the values at (count − 1) / 4 and 3 (count − 1) / 4 of the sorted ones
    Nanos high = 0;
    Nanos most = 0;
    double sigma = 0; // 1.4826 × mad; if that is 0 and the values differ, 1.2533 × mean of |value − median|
};
StepSample sampleOf(std::span<const Nanos> values);

inline constexpr int fewestSteps = 4; // with fewer the noise is unknown

// A change from A to B counts if |change| ≥ 2 √(σ_A² + σ_B²); the right side is the spread, rounded up.
struct NoiseVerdict {
    std::optional<Nanos> spread; // empty: the noise is unknown
    bool shows = true;           // with an unknown spread: false
};
NoiseVerdict verdictOn(Nanos change, const StepSample& a, const StepSample& b);
// A run without noise (its clock is the model) has σ = 0.
StepSample certain(Nanos value);
bool hasNoise(const Run& run);
// Time of the measured steps of a run, for the noise of its makespan; makespan is that of the step shown, which is all
// of a run without noise.
StepSample stepTimesOf(const Run& run, Nanos makespan);

// Start (from the step's window begin) and duration of every op in every measured step; of a large run in those that a
// report reads.
class OpHistory {
public:
    // Null if the run has fewer than two measured steps, or more than 4 million ops in them, or once stop is requested.
    // O(spans).
    static std::shared_ptr<const OpHistory> of(const Run& run, const std::stop_token& stop = {});

    // By measured step that was read; empty: the op does not occur. A step without it repeats −1.
    std::span<const Nanos> durations(const Op& op, int rank) const { return row(m_durations, op, rank); }
    std::span<const Nanos> starts(const Op& op, int rank) const { return row(m_starts, op, rank); }
    StepSample duration(const Op& op, int rank) const;
    StepSample start(const Op& op, int rank) const;

private:
    std::span<const Nanos> row(const std::vector<Nanos>& values, const Op& op, int rank) const;

    struct Hash {
        std::size_t operator()(const std::pair<int, Op>& key) const
        {
            return std::hash<Op>()(key.second) * 31 + static_cast<std::size_t>(key.first);
        }
    };
    std::size_t m_steps = 0;
    std::unordered_map<std::pair<int, Op>, std::size_t, Hash> m_rows; // (rank, op)
    std::vector<Nanos> m_starts;
    std::vector<Nanos> m_durations;
};

} // namespace stagewright
