// How far the clock of another process is from this one's, by repeated ping-pong: of all round trips the shortest says
// most, and half of it is how wrong that can be (Cristian 1989).
#pragma once

#include <span>

#include "schedules/base/units.h"

namespace stagewright {

struct PingPong {
    Nanos sent = 0;     // here
    Nanos there = 0;    // the other's clock when it answered
    Nanos received = 0; // here
};

struct ClockOffset {
    Nanos offset = 0; // to add to the other's times to have this process's
    Nanos band = 0;   // the true offset is within offset ± band
};

// At least one round trip.
ClockOffset clockOffsetOf(std::span<const PingPong> roundTrips);

} // namespace stagewright
