// SchedulePreview: the figures of a library schedule (schedules/survey/preview.h) with its picture. A pure function for any
// thread.
#pragma once

#include "schedules/survey/preview.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct SchedulePreview : PreviewFigures {
    std::shared_ptr<const TimelinePanel> panel; // null where there is no timeline
};

inline SchedulePreview previewOf(const PreviewRequest& request, const Progress& progress = {})
{
    SchedulePreview out{previewFigures(request, progress), nullptr};
    if (out.timeline) out.panel = makePanel(out.timeline);
    return out;
}

} // namespace stagewright
