// Deadlock explained: who is blocked, the cycle of waits, who only waits for the cycle, and an order change that
// removes it. The same value comes from a schedule (explainDeadlock) and from what a stalled run recorded
// (schedules/execute/flight_record.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// A rank that is blocked at an op, and the op of another rank that it waits for.
struct BlockedRank {
    int rank = 0;
    int position = -1; // in the rank's list; −1: not known
    Op op;
    int onRank = -1; // −1: nothing in the schedule would help, or the rank hangs by itself
    int onPosition = -1;
    Op waitsFor;
    std::string sentence; // "rank 0 waits to send 0F1 to rank 1"
};

// An op on the cycle: where a rank is blocked, or what the previous rank waits for, after the place where its own rank
// is blocked.
struct CycleOp {
    int rank = 0;
    int position = -1;
    Op op;
};

// Moves order[rank][from] to position `to` of the list without it.
struct OrderChange {
    int rank = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    Op op;
};

struct Deadlock {
    std::vector<BlockedRank> blocked; // by rank; empty: nothing hangs
    // ranks of the shortest cycle, in waiting order, from its smallest rank; empty: none
    std::vector<int> cycle;
    std::vector<CycleOp> cycleOps; // the smallest set of ops on it, in waiting order
    std::vector<int> victims;      // blocked ranks that are not on the cycle
    std::vector<int> missing;      // ranks whose record is missing (stalled runs only)
    std::vector<OrderChange> fix;  // one after the other; checked: the result is valid and ends. Empty: none found
    // where many moves follow one rule, that rule in words; empty: they are listed one by one
    std::string fixRule;
    // the schedule after the fix; groups of messages that were in its way are dissolved in it
    std::optional<Schedule> fixed;
    bool worksIfBuffered = false;  // the same lists end if sends are buffered
    bool worksIfPosted = false;    // and if a rank does not wait at a receive, where it does
    bool worksWithStreams = false; // and if the messages of a rank don't share one stream, where they do
    // Further ways out, in words; checked: under each the lists are valid and end. "any number of messages at once from
    // one rank to another: --channels 0"
    std::vector<std::string> otherWays;
    // Does posting each send together with a receive directly after it remove the hang? None: no such pair on the
    // cycle.
    std::optional<bool> groupingWorks;
    Op groupedSend; // on the cycle
    Op groupedReceive;

    bool hung() const { return !blocked.empty(); }
};

// Runs the lists under these channels and explains where they stop; not hung: an empty value. Fails (Invalid) where the
// schedule's shape is not sound. O(ops), and O(ops) for each order change tried, of which long schedules get fewer.
Result<Deadlock> explainDeadlock(const Schedule& schedule, const Channels& channels = {});

// Fills cycle, cycleOps and victims from `blocked`. For explainers of real runs.
void findCycle(Deadlock& deadlock, int ranks);

} // namespace stagewright
