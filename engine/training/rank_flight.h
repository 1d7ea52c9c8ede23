// RankFlight: writes a rank's FlightLog. Messages are numbered by peer and direction, in the order in which the rank
// comes to them. Used by the rank's thread only.
#pragma once

#include <cstdint>
#include <map>

#include "engine/training/training_state.h"

namespace stagewright {

class RankFlight {
public:
    RankFlight(TrainingState& state, int rank);

    // Each gives the index for FlightLog::finish(). position: in the list that the rank runs, −1: not known.
    std::uint64_t sending(const MessageKey& key, int peer, int position, const Buffer& buffer);
    std::uint64_t receiving(const MessageKey& key, int peer, int position);
    std::uint64_t running(const Op& op, int position);

private:
    std::uint64_t add(Op op, int peer, int position, Bytes bytes, std::uint32_t sequence);

    FlightLog& m_log;
    std::map<int, std::uint32_t> m_sent; // by peer: few of all ranks
    std::map<int, std::uint32_t> m_received;
};

} // namespace stagewright
