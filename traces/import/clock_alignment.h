// Aligning the clocks of ranks by known orders of events. What pins them: a collective in which everybody waits for
// everybody ends on all ranks at about the same time, so the ends of many say how far one clock is ahead, and their
// spread how well that is known. What limits them: a message's send started before its receive ended, and nobody left
// such a collective before the last entered it (Cristian 1989).
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

struct ClockAlignment {
    std::vector<Nanos> correction; // to be added to the times of each rank; 0 if the clocks agree within the band
    Nanos error = -1;              // ± between ranks that talk, the largest; −1: nothing pins or limits the clocks
    Nanos contradiction = 0;       // the limits of a pair of ranks contradict each other by this much: a clock drifted
    int corrected = 0;             // ranks moved
    bool least = false;            // one of them by the least that its limits allow: nothing pins it
};

class ClockBounds {
public:
    // Something at `before` on the clock of rank `from` preceded something at `after` on the clock of rank `to`.
    void add(int from, Nanos before, int to, Nanos after);
    // The same moment on two clocks, but for a spread.
    void addSame(int from, Nanos at, int to, Nanos there);
    // Along the pairs that are known best, from rank 0. A pair is moved by the median of its same moments, within its
    // limits; where that is less than their band, not at all. Pinned by nothing, by the least that its limits allow.
    // O(pairs × log).
    ClockAlignment align(std::size_t ranks) const;

private:
    std::map<std::pair<int, int>, Nanos> m_most;              // clock of second − clock of first, at most
    std::map<std::pair<int, int>, std::vector<Nanos>> m_same; // the same, as seen; first < second
};

} // namespace stagewright
