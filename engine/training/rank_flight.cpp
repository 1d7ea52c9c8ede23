#include "engine/training/rank_flight.h"

#include "schedules/messages/messages.h"

namespace stagewright {

namespace {

Op receiveOp(const MessageKey& key)
{
    Op op = makeOp(receiveKind(key.gradient), key.stage, key.microbatch);
    op.slice = key.slice;
    op.half = key.half;
    return op;
}

} // namespace

RankFlight::RankFlight(TrainingState& state, int rank) : m_log(state.ranks[static_cast<std::size_t>(rank)].flight) {}

std::uint64_t RankFlight::add(Op op, int peer, int position, Bytes bytes, std::uint32_t sequence)
{
    FlightEntry entry;
    entry.op = op;
    entry.peer = peer;
    entry.position = position;
    entry.bytes = bytes;
    entry.sequence = sequence;
    return m_log.add(entry);
}

std::uint64_t RankFlight::sending(const MessageKey& key, int peer, int position, const Buffer& buffer)
{
    return add(sendOf(receiveOp(key)), peer, position, static_cast<Bytes>(buffer.size() * sizeof(float)),
               m_sent[peer]++);
}

std::uint64_t RankFlight::receiving(const MessageKey& key, int peer, int position)
{
    return add(receiveOp(key), peer, position, 0, m_received[peer]++);
}

std::uint64_t RankFlight::running(const Op& op, int position) { return add(op, -1, position, 0, 0); }

} // namespace stagewright
