#include "engine/transport/clock_offset.h"

#include <algorithm>

namespace stagewright {

ClockOffset clockOffsetOf(std::span<const PingPong> roundTrips)
{
    const auto shortest =
        std::min_element(roundTrips.begin(), roundTrips.end(), [](const PingPong& a, const PingPong& b) {
            return a.received - a.sent < b.received - b.sent;
        });
    const Nanos trip = shortest->received - shortest->sent;
    return {shortest->sent + trip / 2 - shortest->there, (trip + 1) / 2};
}

} // namespace stagewright
