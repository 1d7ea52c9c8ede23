// CommunicationStreams: each rank's sends and receives, one after the other in the order in which they were posted
// (Channels::oneStream). A message goes over from when it is its turn on both sides; until it is there it holds both.
// Messages posted together run at once. Times may lie ahead: simulated ones, and those of an emulated link. Not for
// several threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "schedules/base/units.h"

namespace stagewright {

class CommunicationStreams {
public:
    struct Side {
        std::uint32_t message = 0;
        bool send = false;
    };

    CommunicationStreams(std::size_t ranks, std::size_t messages) : m_streams(ranks), m_messages(messages) {}

    void append(int rank, std::span<const Side> together, Nanos posted)
    {
        if (together.empty()) return;
        m_streams[static_cast<std::size_t>(rank)].batches.push_back(
            {{together.begin(), together.end()}, posted, false});
    }

    // Starts what may start on the rank's stream, and what follows from that on others. start(message, ready) gives its
    // arrival.
    template <typename Start>
    void advance(int rank, Start&& start)
    {
        std::vector<int> look{rank};
        while (!look.empty()) {
            const int at = look.back();
            look.pop_back();
            while (advanceHead(at, look, start)) {
            }
        }
    }

    bool reached(const Side& side) const { return m_messages[side.message].turn[side.send ? 1 : 0] >= 0; }
    // What the rank's stream is held by: the first at its head that has not gone over. Empty: nothing is left on it.
    std::optional<Side> heldBy(int rank) const
    {
        const auto& batches = m_streams[static_cast<std::size_t>(rank)].batches;
        if (batches.empty()) return std::nullopt;
        for (const Side& side : batches.front().sides)
            if (m_messages[side.message].arrival < 0) return side;
        return std::nullopt;
    }

private:
    struct Batch {
        std::vector<Side> sides;
        Nanos posted = 0;
        bool open = false; // it is its turn
    };
    struct Stream {
        std::deque<Batch> batches;
        Nanos free = 0;
    };
    struct State {
        std::array<Nanos, 2> turn{-1, -1}; // of its receive, of its send
        std::array<int, 2> rank{-1, -1};
        Nanos arrival = -1;
        int past = 0; // sides that are through: after both it may be posted again
    };

    // Whether the head of the stream is through.
    template <typename Start>
    bool advanceHead(int rank, std::vector<int>& look, Start&& start)
    {
        Stream& stream = m_streams[static_cast<std::size_t>(rank)];
        if (stream.batches.empty()) return false;
        Batch& batch = stream.batches.front();
        const Nanos at = std::max(batch.posted, stream.free);
        if (!std::exchange(batch.open, true))
            for (const Side& side : batch.sides) {
                State& state = m_messages[side.message];
                const std::size_t own = side.send ? 1 : 0;
                state.turn[own] = at;
                state.rank[own] = rank;
                if (state.turn[1 - own] < 0) continue;
                state.arrival = start(side.message, std::max(at, state.turn[1 - own]));
                look.push_back(state.rank[1 - own]);
            }
        Nanos end = at;
        for (const Side& side : batch.sides) {
            if (m_messages[side.message].arrival < 0) return false;
            end = std::max(end, m_messages[side.message].arrival);
        }
        for (const Side& side : batch.sides)
            if (++m_messages[side.message].past == 2) m_messages[side.message] = {};
        stream.free = end;
        stream.batches.pop_front();
        return true;
    }

    std::vector<Stream> m_streams;
    std::vector<State> m_messages;
};

} // namespace stagewright
