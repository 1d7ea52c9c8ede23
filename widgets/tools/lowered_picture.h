// LoweredPicture: a lowered schedule (schedules/survey/lowered.h), prepared for drawing. A pure function for any thread.
#pragma once

#include "schedules/survey/lowered.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct LoweredPicture : LoweredFigures {
    std::shared_ptr<const TimelinePanel> panel; // null on a fault
    double bubbleFraction = 0;
};

inline LoweredPicture loweredPicture(const LoweredRequest& request)
{
    LoweredPicture out{loweredFigures(request), nullptr};
    if (!out.timeline) return out;
    PanelOptions options;
    options.step = 0;
    out.panel = makePanel(out.timeline, options);
    out.bubbleFraction = out.panel->bubbleFraction;
    return out;
}

} // namespace stagewright
