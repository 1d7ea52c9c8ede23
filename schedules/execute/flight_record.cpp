#include "schedules/execute/flight_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/messages/messages.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/model/kinds.h"

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
    for (std::uint64_t i = m_count - kept; i < m_count; ++i) out.entries.push_back(m_entries[i % m_entries.size()]);
    return out;
}

namespace {

const RankRecord* recordOf(std::span<const RankRecord> records, int rank)
{
    for (const RankRecord& record : records)
        if (record.rank == rank) return &record;
    return nullptr;
}

// The peer's side of a message.
const FlightEntry* otherSide(const RankRecord& peer, int rank, const FlightEntry& entry, MessageMatching matching)
{
    const Op counterpart = isSend(entry.op.kind) ? receiveOf(entry.op) : sendOf(entry.op);
    for (auto other = peer.entries.rbegin(); other != peer.entries.rend(); ++other) { // of an earlier step: older
        if (other->peer != rank || !isMessage(other->op.kind) || isSend(other->op.kind) == isSend(entry.op.kind))
            continue;
        if (matching == MessageMatching::ByOp ? other->op == counterpart && !other->done
                                              : other->sequence == entry.sequence)
            return &*other;
    }
    return nullptr;
}

BlockedRank blockedAt(std::span<const RankRecord> records, int rank, const FlightEntry& open, MessageMatching matching)
{
    BlockedRank out;
    out.rank = rank;
    out.position = open.position;
    out.op = open.op;
    if (!isMessage(open.op.kind)) {
        out.sentence = fmt::format("rank {} is in {} and waits for {}", rank, toText(open.op),
                                   isReduction(open.op.kind) ? "the other copies of the stage" : "no message");
        return out;
    }
    out.onRank = open.peer;
    out.waitsFor = isSend(open.op.kind) ? receiveOf(open.op) : sendOf(open.op);
    // What a receive will bring is not known yet.
    const std::string size = open.bytes > 0 ? fmt::format("{} bytes, message {}", open.bytes, open.sequence)
                                            : fmt::format("message {}", open.sequence);
    out.sentence =
        fmt::format("rank {} waits to {} {} ({}) {} rank {}", rank, isSend(open.op.kind) ? "send" : "receive",
                    toText(open.op), size, isSend(open.op.kind) ? "to" : "from", open.peer);
    const RankRecord* peer = recordOf(records, open.peer);
    if (!peer || !peer->present) {
        out.sentence += ", whose record is missing";
        return out;
    }
    const FlightEntry* other = otherSide(*peer, rank, open, matching);
    if (!other) return out;
    out.onPosition = other->position;
    if (other->op != out.waitsFor)
        out.sentence += fmt::format(", which has {} there: the orders of the two ranks differ", toText(other->op));
    else if (other->bytes != open.bytes && other->bytes > 0 && open.bytes > 0)
        out.sentence += fmt::format(", which has {} bytes there: the sizes differ", other->bytes);
    out.waitsFor = other->op;
    return out;
}

} // namespace

Deadlock explainStall(std::span<const RankRecord> records, MessageMatching matching)
{
    Deadlock out;
    int ranks = 0;
    for (const RankRecord& record : records) {
        ranks = std::max(ranks, record.rank + 1);
        for (const FlightEntry& entry : record.entries) ranks = std::max(ranks, entry.peer + 1);
    }
    // A rank that posted several messages together waits for each of them.
    std::vector<BlockedRank> all;
    std::vector<Wait> waits;
    for (int r = 0; r < ranks; ++r) {
        const RankRecord* record = recordOf(records, r);
        if (!record || !record->present) {
            out.missing.push_back(r);
            continue;
        }
        for (const FlightEntry& entry : record->entries) {
            if (entry.done) continue;
            all.push_back(blockedAt(records, r, entry, matching));
            const BlockedRank& blocked = all.back();
            if (blocked.onRank >= 0)
                waits.push_back(
                    {r, blocked.position, blocked.op, blocked.onRank, blocked.onPosition, blocked.waitsFor});
        }
    }
    const std::vector<Wait> cycle = shortestCycle(ranks, waits);
    for (const BlockedRank& blocked : all) {
        const bool closes = std::any_of(cycle.begin(), cycle.end(), [&](const Wait& wait) {
            return wait.rank == blocked.rank && wait.op == blocked.op && wait.onRank == blocked.onRank;
        });
        if (out.blocked.empty() || out.blocked.back().rank != blocked.rank)
            out.blocked.push_back(blocked); // the oldest holds up the others
        else if (closes)
            out.blocked.back() = blocked;
    }
    findCycle(out, ranks);
    return out;
}

} // namespace stagewright
