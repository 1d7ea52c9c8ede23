// What a rank remembers of its last messages: bounded, always on, read when a run stalls. So a stall is explained
// without the schedule, also where a rank's record is missing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedules/base/units.h"
#include "schedules/execute/deadlock.h"
#include "schedules/model/op.h"

namespace stagewright {

struct FlightEntry {
    Op op; // SEND or RECV as in a lowered list; any other: what the rank ran last
    std::int32_t peer = -1;
    std::int32_t position = -1; // in the rank's list, −1: not known
    Bytes bytes = 0;            // of a message; what the side expects or sends
    std::uint32_t sequence = 0; // of the messages with this peer in this direction, from 0
    bool done = false;          // the rank waits at those that are not
};

struct RankRecord {
    int rank = 0;
    bool present = true;              // false: nothing came from this rank
    std::vector<FlightEntry> entries; // oldest first
    std::uint64_t forgotten = 0;      // older entries that the bound has dropped
};

// The newest entries of one rank; written by its own thread, read while the rank is blocked. No allocation after the
// constructor.
class FlightRing {
public:
    explicit FlightRing(std::size_t capacity = 256);

    // A message is posted (done false) or over; the index serves finish().
    std::uint64_t add(const FlightEntry& entry);
    void finish(std::uint64_t index); // no effect where the entry has been dropped
    RankRecord record(int rank) const;

private:
    std::vector<FlightEntry> m_entries;
    std::uint64_t m_count = 0;
};

// Which entries of two ranks are the sides of one message: as their transport matches them.
enum class MessageMatching : std::uint8_t {
    BySequence, // the n-th from rank a to rank b, whatever either side believes it to be
    ByOp,       // a receive takes the send of the same name
};

// Who waits for whom. A rank that is not at a message (it computes, or hangs by itself) and ranks without a record are
// named; two sides of one message that differ in op or bytes are reported as such. Records may come in any order; a
// rank is named once. The order of a lowered schedule is not known here: no fix.
Deadlock explainStall(std::span<const RankRecord> records, MessageMatching matching = MessageMatching::BySequence);

} // namespace stagewright
