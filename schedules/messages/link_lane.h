// LinkLane: one way between two ranks, and until when what it carries takes it (schedules/messages/channels.h).
// CardLanes: the network cards of hosts, which the ways of many ranks share.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
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

class CardLanes {
public:
    CardLanes(const Links& links, const Channels& channels)
    {
        if (channels.apart || links.cards.hosts.empty()) return;
        m_cards = links.cards;
        std::map<std::pair<int, int>, std::size_t> known; // by host and its card
        for (const Cards::Place& place : m_cards.places())
            m_cardOf.push_back(known.try_emplace({place.first, place.card}, known.size()).first->second);
        m_wires.assign(2 * known.size(), 0);
    }
    bool any() const { return !m_wires.empty(); }
    // As LinkLane::take(), once the cards are free, too. Calls are in the order of `ready` over all ways.
    Nanos take(LinkLane& lane, int from, int to, Nanos ready, const Transit& transit)
    {
        if (!any() || transit.occupied == 0 || !m_cards.between(from, to)) return lane.take(ready, transit);
        Nanos& out = wireOf(from, false);
        Nanos& in = wireOf(to, true);
        const Nanos begin = lane.take(std::max({ready, out, in}), transit);
        out = in = begin + transit.occupied;
        return begin;
    }

private:
    Nanos& wireOf(int rank, bool in)
    {
        return m_wires[2 * m_cardOf[static_cast<std::size_t>(rank)] + (in && m_cards.fullDuplex ? 1 : 0)];
    }
    Cards m_cards;
    std::vector<std::size_t> m_cardOf; // by rank, over all hosts
    std::vector<Nanos> m_wires;        // by card, out and in: until when each is taken
};

} // namespace stagewright
