// Aligning the clocks of ranks by known orders of events: a message's send started before its receive ended, and
// no rank left a collective before the last one entered it. Each such pair bounds how far one clock is ahead of the other (Cristian 1989;
// the bounds of both directions meet at the fastest message).
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

struct ClockAlignment {
    std::vector<Nanos> correction; // to be added to the times of each rank; 0 if the clocks agree within the bounds
    Nanos error = -1;              // ± between ranks that talk, the largest; −1: nothing bounds the clocks
    Nanos contradiction = 0;       // the bounds of a pair of ranks contradict each other by this much: a clock drifted
    int corrected = 0;             // ranks moved
};

class ClockBounds {
public:
    // Something at `before` on the clock of rank `from` preceded something at `after` on the clock of rank `to`.
    void add(int from, Nanos before, int to, Nanos after);
    // Along the pairs with the tightest bounds, from rank 0. A pair whose clocks may agree is assumed to agree, else it gets the middle
    // of the bounds. O(pairs × log).
    ClockAlignment align(std::size_t ranks) const;

private:
    std::map<std::pair<int, int>, Nanos> m_most; // clock of second − clock of first, at most
};

} // namespace stagewright
