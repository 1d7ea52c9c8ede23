// TimelineNotes: what an explanation marks on the first panel of a timeline: gaps of one cause, the gap being explained
// with the chain of ops back to its root, and how much slack each op has. Immutable, shared; times are axis time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPainter>

#include "widgets/theme.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct TimelineScene;

struct GapNote {
    int rank = 0;
    TimeRange range;
};

struct TimelineNotes {
    std::vector<GapNote> gaps;       // tinted; by rank, then start, not overlapping
    std::optional<GapNote> selected; // outlined
    // from what the gap waited for, back to the root; arrows lead from the root to the gap
    std::vector<SpanId> chain;
    // by span; null: not shown. Ops fade by slack; those without keep their colour
    std::shared_ptr<const std::vector<Nanos>> slack;
    Nanos mostSlack = 0;
};

void paintNotes(QPainter& painter, const TimelineScene& scene, const Theme& theme);

} // namespace stagewright
