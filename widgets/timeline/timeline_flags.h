// TimelineFlags: users' marks on a timeline: notes as flags with text, and the ops that a search or a query found.
// Immutable, shared; times are axis time. Painted over the frame, also in exports.
#pragma once

#include <memory>
#include <vector>

#include <QPainter>
#include <QString>

#include "widgets/theme.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct TimelineScene;

struct NoteFlag {
    int number = 0; // the owner's, returned by flagAt()
    int panel = 0;
    SpanId span = noSpan; // of a note on an op; otherwise the range applies
    TimeRange range;
    int firstRank = -1; // −1: all
    int lastRank = -1;
    QString text;         // its first line is painted
    bool passing = false; // not saved yet: dashed
    bool carried = false; // from another run of the schedule: outlined
    bool chosen = false;
};

struct TimelineFlags {
    std::vector<NoteFlag> notes;
    int hitPanel = 0;
    std::shared_ptr<const std::vector<SpanId>> hits; // sorted by id; may be null
    SpanId current = noSpan;                         // of the hits
    std::vector<Nanos> moments;                      // found times without a span, sorted
    bool empty() const { return notes.empty() && (!hits || hits->empty()) && moments.empty(); }
};

// O(notes + rows in view × pixels × log hits).
void paintFlags(QPainter& painter, const TimelineScene& scene, const Theme& theme, const TimelineFlags& flags);
// The number of the topmost note flag at that place; −1: none.
int flagAt(const TimelineScene& scene, const TimelineFlags& flags, QPointF point);

} // namespace stagewright
