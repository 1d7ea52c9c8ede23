#include "schedules/flight_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/kinds.h"
#include "schedules/messages.h"

namespace stagewright {

FlightRing::FlightRing(std::size_t capacity) : m_entries(std::max<std::size_t>(1, capacity)) {}

std::uint64_t FlightRing::add(const FlightEntry& entry)
{
    m_entries[m_count % m_entries.size()] = entry;
    return m_count++;
}

void FlightRing::finish(std::uint64_t index)
{
    if (index < m_count && m_count - index <= m_entries.size()) m_entries[index % m_entries.size()].done = true;
}

RankRecord FlightRing::record(int rank) const
{
    RankRecord out;
    out.rank = rank;
    const std::uint64_t kept = std::min<std::uint64_t>(m_count, m_entries.size());
    out.forgotten = m_count - kept;
    for (std::uint64_t i = m_count - kept; i < m_count; ++i)
        out.entries.push_back(m_entries[i % m_entries.size()]);
    return out;
}

namespace {

const RankRecord* recordOf(std::span<const RankRecord> records, int rank)
{
    for (const RankRecord& record : records)
        if (record.rank == rank) return &record;
    return nullptr;
}

const FlightEntry* openOf(const RankRecord& record)
{
    for (const FlightEntry& entry : record.entries) // the oldest open one holds up the others
        if (!entry.done) return &entry;
    return nullptr;
}

// The peer's side of a message.
const FlightEntry* otherSide(const RankRecord& peer, int rank, const FlightEntry& entry)
{
    for (const FlightEntry& other : peer.entries)
        if (other.peer == rank && other.sequence == entry.sequence && isMessage(other.op.kind) &&
            isSend(other.op.kind) != isSend(entry.op.kind))
            return &other;
    return nullptr;
}

std::string standsAt(int rank, const FlightEntry& entry)
{
    return fmt::format("rank {} waits to {} {} ({} bytes, message {}) {} rank {}", rank, isSend(entry.op.kind) ? "send" : "receive",
                       toText(entry.op), entry.bytes, entry.sequence, isSend(entry.op.kind) ? "to" : "from", entry.peer);
}

} // namespace

Deadlock explainStall(std::span<const RankRecord> records)
{
    Deadlock out;
    int ranks = 0;
    for (const RankRecord& record : records) {
        ranks = std::max(ranks, record.rank + 1);
        for (const FlightEntry& entry : record.entries)
            ranks = std::max(ranks, entry.peer + 1);
    }
    for (int r = 0; r < ranks; ++r) {
        const RankRecord* record = recordOf(records, r);
        if (!record || !record->present) {
            out.missing.push_back(r);
            continue;
        }
        const FlightEntry* open = openOf(*record);
        if (!open) continue; // it is done with its messages
        BlockedRank blocked;
        blocked.rank = r;
        blocked.position = open->position;
        blocked.op = open->op;
        if (!isMessage(open->op.kind)) {
            blocked.sentence = fmt::format("rank {} stands in {} and waits for no message", r, toText(open->op));
            out.blocked.push_back(std::move(blocked));
            continue;
        }
        blocked.onRank = open->peer;
        blocked.waitsFor = isSend(open->op.kind) ? receiveOf(open->op) : sendOf(open->op);
        blocked.sentence = standsAt(r, *open);
        const RankRecord* peer = recordOf(records, open->peer);
        const FlightEntry* other = peer && peer->present ? otherSide(*peer, r, *open) : nullptr;
        if (!peer || !peer->present) {
            blocked.sentence += ", whose record is missing";
        } else if (other) {
            blocked.onPosition = other->position;
            const Op expected = blocked.waitsFor;
            blocked.waitsFor = other->op;
            if (other->op != expected)
                blocked.sentence += fmt::format(", which has {} there: the orders of the two ranks differ", toText(other->op));
            else if (other->bytes != open->bytes)
                blocked.sentence += fmt::format(", which has {} bytes there: the sizes differ", other->bytes);
        }
        out.blocked.push_back(std::move(blocked));
    }
    findCircle(out, ranks);
    return out;
}

} // namespace stagewright
