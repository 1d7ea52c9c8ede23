// The one table of memory categories: what they are called in text, on screen and over a chart.
#pragma once

#include <array>
#include <string_view>

#include "schedules/timeline/timeline.h"

namespace stagewright {

struct MemoryTraits {
    MemoryCategory category = MemoryCategory::Activations;
    std::string_view text;      // in reports and files: "buckets"
    std::string_view title;     // on screen: "Gradient buckets"
    std::string_view chart;     // over a chart of it alone: "Weight memory"
    bool ofSharedState = false; // there only where ranks share weights, gradients or optimizer state
};

// In the order of MemoryCategory.
inline constexpr std::array<MemoryTraits, memoryCategoryCount> memoryTraits{{
    {MemoryCategory::Weights, "weights", "Weights", "Weight memory"},
    {MemoryCategory::Gradients, "gradients", "Gradients", "Gradient memory"},
    {MemoryCategory::Optimizer, "optimizer", "Optimizer", "Optimizer memory"},
    {MemoryCategory::Activations, "activations", "Activations", "Activation memory"},
    {MemoryCategory::Communication, "communication", "Communication", "Communication memory"},
    {MemoryCategory::Workspace, "workspace", "Workspace", "Workspace memory"},
    {MemoryCategory::Gathered, "gathered weights", "Gathered weights", "Gathered weights", true},
    {MemoryCategory::Buckets, "buckets", "Gradient buckets", "Gradient buckets", true},
}};

constexpr bool memoryInOrder()
{
    for (std::size_t i = 0; i < memoryTraits.size(); ++i)
        if (static_cast<std::size_t>(memoryTraits[i].category) != i) return false;
    return true;
}
static_assert(memoryInOrder(), "one row per category, in the order of MemoryCategory");

inline const MemoryTraits& traitsOf(MemoryCategory category)
{
    return memoryTraits[static_cast<std::size_t>(category)];
}

} // namespace stagewright
