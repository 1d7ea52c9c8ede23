// How ops are painted in plots: as on the timeline.
#pragma once

#include "schedules/base/plot.h"
#include "schedules/model/kinds.h"

namespace stagewright {

inline PlotInk inkOf(OpKind kind)
{
    constexpr PlotHue hues[colourClassCount] = {PlotHue::Forward,       PlotHue::Backward,  PlotHue::Weight,
                                                PlotHue::Communication, PlotHue::Optimizer, PlotHue::Delay};
    return {hues[static_cast<std::size_t>(ruleOf(kind).colour)]};
}

} // namespace stagewright
