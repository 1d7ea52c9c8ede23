// Narration: the beats of a timeline's step and their texts. A beat is a moment at which ops start; starts closer than
// 1 % of the median op are one beat. One event is described per beat, by priority: fault, cap, first, gap, phase,
// transfer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/execute/deadlock.h"
#include "schedules/timeline/timeline.h"

namespace stagewright::lessons {

enum class BeatEvent {
    None,          // nothing to say
    FirstForward,  // of rank 0
    Arrival,       // a forward arrives downstream for the first time
    FirstBackward, // at the last stage
    FirstReturn,   // the first backward on another rank
    Steady,        // a rank starts to alternate
    GapBegins,
    GapEnds,
    Filler, // W in what would be a gap
    Peak,
    CapReached,
    LastForward,
    DrainOver,
    SteadySkip, // the pattern repeats
    Hang,
};
std::string_view toText(BeatEvent event); // "first forward"

struct Beat {
    Nanos time = 0;       // of the timeline
    SpanId span = noSpan; // the op it is about; noSpan: none
    int rank = -1;
    BeatEvent event = BeatEvent::None;
    bool interesting = false; // where "next interesting" stops
    int skip = 0;             // SteadySkip: this many beats from here repeat the pattern
    std::string plain;        // "" if there is nothing to say
    std::string terse;
};

struct NarrationOptions {
    std::optional<Bytes> memoryCap; // activations of a rank
    const Deadlock* hang = nullptr; // described at the end
};

// In time order; empty for a step without ops. O(spans log spans) and the analysis of its gaps.
std::vector<Beat> beatsOf(const Timeline& timeline, int step, const NarrationOptions& options = {});

} // namespace stagewright::lessons
