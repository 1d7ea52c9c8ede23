// Beats: the moments at which playback stops, with their captions (traces/lessons/narrate.h), and the messages in
// flight between them. Pure functions over panels, for any thread and any timeline, whatever its source.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

struct Beat {
    Nanos time = 0;           // axis time
    bool isFirst = false;     // something happens for the first time
    bool interesting = false; // where "next interesting" stops
    bool repeats = false;     // a known pattern continues
    QString words;            // caption; may be empty
};

// A message between ranks: in flight in [sent, arrival), then at its receiver until consumed.
struct Parcel {
    int panel = 0;
    int from = 0; // indices into TimelinePanel::ranks
    int to = 0;
    int microbatch = -1; // −1: none
    OpKind kind{};       // of the op that sent it
    Nanos sent = 0;      // axis time
    Nanos arrival = 0;
    Nanos consumed = 0;
};

struct Beats {
    std::vector<Beat> beats;     // by time
    std::vector<Parcel> parcels; // by time sent
    // time played in half a second: a rank share, or the median forward of a measured timeline
    Nanos unit = 1;
    Nanos end = 0; // of the longest panel

    int at(Nanos time) const; // the last beat at or before it; −1: before the first
};

// For several panels, the beats of all, each with its letter. Panels without ops have none. cap: activations per rank.
// O(n log n) over the ops shown.
std::shared_ptr<const Beats> makeBeats(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                                       std::optional<Bytes> cap = {});

} // namespace stagewright
