// The one table of memory categories: what they are called in text, on screen and over a chart, and how they are shown.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stagewright {

enum class MemoryCategory : std::uint8_t {
    Weights,
    Gradients,
    Optimizer,
    Activations,
    Communication,
    Workspace,
    Gathered, // weights of other owners, from a gather until the release
    Buckets,  // gradients on their way to their owners
};
inline constexpr std::size_t memoryCategoryCount = 8;

// What an area of a category is painted like, mixed towards the canvas.
enum class MemoryHue : std::uint8_t {
    Activations,
    Neutral,
    Communication,
    Weight,
    Backward,
};

struct MemoryTraits {
    MemoryCategory category = MemoryCategory::Activations;
    std::string_view text;  // in reports and files: "buckets"
    std::string_view title; // on screen: "Gradient buckets"
    std::string_view chart; // over a chart of it alone: "Weight memory"
    std::string_view key;   // of the action that shows it: "memoryBuckets"
    std::string_view menu;  // in a menu: "&Weights"
    std::string_view help;
    MemoryHue hue = MemoryHue::Activations;
    float strength = 1;         // of the hue; the rest is canvas
    bool ofSharedState = false; // there only where ranks share weights, gradients or optimizer state
};

// In the order of MemoryCategory.
inline constexpr std::array<MemoryTraits, memoryCategoryCount> memoryTraits{{
    {MemoryCategory::Weights, "weights", "Weights", "Weight memory", "memoryWeights", "&Weights",
     "Parameters of the rank's stages", MemoryHue::Neutral, 0.3F},
    {MemoryCategory::Gradients, "gradients", "Gradients", "Gradient memory", "memoryGradients", "&Gradients",
     "Weight gradients, until the optimizer has used them", MemoryHue::Backward, 0.45F},
    {MemoryCategory::Optimizer, "optimizer", "Optimizer", "Optimizer memory", "memoryOptimizer", "&Optimizer",
     "State of the optimizer, such as momentum", MemoryHue::Neutral, 0.6F},
    {MemoryCategory::Activations, "activations", "Activations", "Activation memory", "memoryActivations",
     "&Activations", "What forwards keep for their backwards; the budget applies to these"},
    {MemoryCategory::Communication, "communication", "Communication", "Communication memory", "memoryCommunication",
     "&Communication", "Buffers of messages in flight, stacked on the activations", MemoryHue::Communication, 0.55F},
    {MemoryCategory::Workspace, "workspace", "Workspace", "Workspace memory", "memoryWorkspace", "Wor&kspace",
     "What an op needs while it runs", MemoryHue::Weight, 0.45F},
    {MemoryCategory::Gathered, "gathered weights", "Gathered weights", "Gathered weights", "memoryGathered",
     "Gathered weights", "Weights of other owners, from a gather until their release", MemoryHue::Communication, 0.35F,
     true},
    {MemoryCategory::Buckets, "buckets", "Gradient buckets", "Gradient buckets", "memoryBuckets", "Gradient buckets",
     "Gradients on their way to their owners", MemoryHue::Backward, 0.65F, true},
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
inline std::string_view toText(MemoryCategory category) { return traitsOf(category).text; }

} // namespace stagewright
