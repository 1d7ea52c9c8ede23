// Notes, bookmarks and saved queries: what users write down about a run. A note is anchored to an op (rank, op text,
// step), so that it finds the same op in a re-run of the schedule, or to a time range of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

enum class NoteAnchor : std::uint8_t {
    Op,
    Range,
};
std::string_view toText(NoteAnchor anchor); // "op", "range"

struct Note {
    std::int64_t id = 0; // within its run, from 1
    std::string text;    // UTF-8, several lines allowed
    NoteAnchor anchor = NoteAnchor::Op;
    int step = 0;       // 0-based
    int rank = -1;      // Op: its rank. Range: the first, −1: all
    int lastRank = -1;  // Range only, inclusive
    std::string op;     // Op: its text ("2F0"), or the label of foreign work
    int occurrence = 0; // Op: its index among ops with that text on the rank in the step, from 0
    Nanos begin = 0;    // Range: ns from the start of the step
    Nanos end = 0;
    std::int64_t createdUnixMs = 0;
    std::int64_t fromRun = 0; // 0: of the run itself; else carried over from that run of the same schedule

    bool operator==(const Note&) const = default;
};

struct Bookmark { // a saved view
    int slot = 0; // 1 … 9, each once per file
    std::int64_t run = 0;
    int step = 0;
    Nanos begin = 0; // of the view, from the start of the step
    Nanos end = 0;
    std::optional<Note> selection; // its anchor only
    bool operator==(const Bookmark&) const = default;
};

struct SavedQuery {
    std::string name; // unique
    std::string sql;
    std::string about; // one line; may be empty
    bool operator==(const SavedQuery&) const = default;
};

// A note on a span, without text. Precondition: span < timeline.spans().size(). O(spans of its track in the step).
Note noteOnSpan(const Timeline& timeline, SpanId span);
// The span of an Op note; noSpan if the timeline has no such op (another schedule, fewer steps). O(spans of the rank in
// the step).
SpanId spanOfNote(const Timeline& timeline, const Note& note);
// earliest of its ranks; the timeline's start if there is no such step
Nanos beginOfStep(const Timeline& timeline, int step);
// "2F0 on rank 2, step 1" (steps from 1), "ranks 0 to 3, 10.4 to 141.5 ms, step 1"
std::string placeText(const Note& note);

} // namespace stagewright
