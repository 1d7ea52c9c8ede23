// How memory categories are painted in charts: never stronger than the slices of ops.
#pragma once

#include "schedules/base/plot.h"
#include "schedules/model/memory_category.h"

namespace stagewright {

inline PlotInk inkOf(MemoryCategory category)
{
    const MemoryTraits& traits = traitsOf(category);
    switch (traits.hue) {
    case MemoryHue::Neutral: return {PlotHue::Secondary, traits.strength};
    case MemoryHue::Communication: return {PlotHue::Communication, traits.strength};
    case MemoryHue::Weight: return {PlotHue::Weight, traits.strength};
    case MemoryHue::Backward: return {PlotHue::Backward, traits.strength};
    case MemoryHue::Activations: break;
    }
    return {PlotHue::Memory};
}

} // namespace stagewright
