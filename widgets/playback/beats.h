// Beats: the moments at which a picture is read step by step. Every begin of an op is one; begins closer than 1 % of the
// median op are the same. Pure functions over panels, for any thread; any timeline, whatever it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "widgets/timeline/timeline_panel.h"
#include "widgets/view_state.h"

namespace stagewright {

struct Beat {
    Nanos time = 0;          // axis time of its earliest op
    std::uint32_t first = 0; // its ops: Beats::ops [first, last)
    std::uint32_t last = 0;
    bool isFirst = false;     // the first op of its kind on a rank begins
    bool interesting = false; // likewise, or a gap of half an op begins or ends, a peak is reached, a pattern breaks, a last op
    int rounds = 0; // > 0: what was seen twice before goes on, and after this beat that many rounds are left
    QString words; // what happens; may be empty
};

// A message between ranks: on its way in [sent, arrival), at its receiver until it is consumed.
struct Parcel {
    int panel = 0;
    int from = 0; // indices into TimelinePanel::ranks
    int to = 0;
    int microbatch = -1; // −1: none
    OpKind kind = OpKind::Forward; // of the op that made it
    Nanos sent = 0; // axis time
    Nanos arrival = 0;
    Nanos consumed = 0;
};

struct Beats {
    std::vector<Beat> beats; // by time
    std::vector<SpanRef> ops;
    std::vector<Parcel> parcels; // by time sent
    Nanos unit = 1; // played in half a second: a rank share, or the median forward of a measured timeline
    Nanos end = 0;  // of the longest panel

    int at(Nanos time) const; // the last beat at or before it; −1: before the first
};

// Panels without ops give no beats. O(n log n) over the ops shown.
std::shared_ptr<const Beats> makeBeats(const std::vector<std::shared_ptr<const TimelinePanel>>& panels);

} // namespace stagewright
