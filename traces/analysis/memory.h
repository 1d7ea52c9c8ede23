// Memory by rank over time, its peak, and who holds it at any moment (stage, microbatch).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct MemoryPoint { // in use from `time` on
    Nanos time = 0;
    Bytes inUse = 0;
};

struct MemorySeries {
    int rank = 0;
    MemoryCategory category = MemoryCategory::Activations;
    std::vector<MemoryPoint> points; // one per distinct time; the value after all changes at it
    Bytes peak = 0;                  // largest value of a point
    Nanos peakTime = 0;              // its first time
};

struct Holder {
    int stage = 0;
    int microbatch = -1;
    Bytes bytes = 0;
};

// step −1: all steps. Values carry over from earlier steps (weights are allocated once).
MemorySeries memorySeries(const Timeline& timeline, int rank, int step = -1,
                          MemoryCategory category = MemoryCategory::Activations);
// Who holds memory of the category on the rank at `time`, largest first. O(events of the rank before time).
std::vector<Holder> holdersAt(const Timeline& timeline, int rank, Nanos time,
                              MemoryCategory category = MemoryCategory::Activations);
// Largest value within a step's points (and what is carried into it), by rank.
std::vector<Bytes> peakByRank(const Timeline& timeline, int step,
                              MemoryCategory category = MemoryCategory::Activations);

struct RankMemory {
    std::array<Bytes, memoryCategoryCount> peak{}; // by category
    Nanos peakTime = 0;                            // of activations
    std::vector<Holder> holders;                   // of activations at that time, largest first; of a range: none
    Bytes activations() const { return peak[static_cast<std::size_t>(MemoryCategory::Activations)]; }
    Bytes& activations() { return peak[static_cast<std::size_t>(MemoryCategory::Activations)]; }
};
// In a step, by rank; empty where the timeline has no memory.
std::vector<RankMemory> memoryByRank(const Timeline& timeline, int step);

struct Run;
// Why a run has no memory, and what to record: a clause, lower case; "": it has some.
std::string whyNoMemory(const Run& run);
// of one with memory that belongs to nothing
inline constexpr std::string_view noMemoryUses = "the trace does not say what its memory is used for";

} // namespace stagewright
