// LinkLane: one way between two ranks, and until when what it carries takes it (schedules/messages/channels.h).
#pragma once

#include <algorithm>
#include <vector>

#include "schedules/base/units.h"
#include "schedules/messages/channels.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

class LinkLane {
public:
    explicit LinkLane(const Channels& channels = {})
        : m_slots(static_cast<std::size_t>(std::max(0, channels.perDirection)), 0), m_shared(!channels.apart)
    {
    }

    bool limited() const { return !m_slots.empty(); }
    // When a message that can leave at `ready` starts. In the order of the calls, which for messages without a limit is
    // that of `ready`.
    Nanos take(Nanos ready, const Transit& transit)
    {
        const bool shares = m_shared && transit.occupied > 0;
        Nanos begin = shares ? std::max(ready, m_wire) : ready;
        if (!m_slots.empty()) {
            const auto slot = std::min_element(m_slots.begin(), m_slots.end());
            begin = std::max(begin, *slot);
            *slot = begin + transit.delay;
        }
        if (shares) m_wire = begin + transit.occupied;
        return begin;
    }

private:
    std::vector<Nanos> m_slots; // when each channel is free; empty: no limit
    Nanos m_wire = 0;           // until when the bandwidth is taken
    bool m_shared;
};

} // namespace stagewright
