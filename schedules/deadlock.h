// Deadlock explained: who stands still, the circle of waits, who only waits for the circle, and an order change that removes it.
// The same value comes from a schedule (explainDeadlock) and from what a stalled run recorded (schedules/flight_record.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/channels.h"
#include "schedules/schedule.h"

namespace stagewright {

// A rank that stands at an op, and the op of another rank that it waits for.
struct BlockedRank {
    int rank = 0;
    int position = -1; // in the rank's list; −1: not known
    Op op;
    int onRank = -1; // −1: nothing in the schedule would help, or the rank hangs by itself
    int onPosition = -1;
    Op waitsFor;
    std::string sentence; // "rank 0 waits to send 0F1 to rank 1"
};

// An op on the circle: where a rank stands, or what the rank before it waits for, behind where its own rank stands.
struct CircleOp {
    int rank = 0;
    int position = -1;
    Op op;
};

// Moves order[rank][from] so that it stands at position `to` of the list without it.
struct OrderChange {
    int rank = 0;
    std::size_t from = 0;
    std::size_t to = 0;
    Op op;
};

struct Deadlock {
    std::vector<BlockedRank> blocked; // by rank; empty: nothing hangs
    std::vector<int> cycle;           // ranks of the shortest circle, in waiting order, from its smallest rank; empty: none
    std::vector<CircleOp> circle;     // the smallest set of ops on it, in waiting order
    std::vector<int> victims;         // blocked ranks that are on no part of the circle
    std::vector<int> missing;         // ranks whose record is not there (stalled runs only)
    std::vector<OrderChange> fix;     // one after the other; checked: the result is valid and ends. Empty: none found
    std::string fixRule;              // where many moves follow one rule, that rule in words; empty: they are told one by one
    std::optional<Schedule> fixed;    // the schedule after the fix; groups of messages that were in its way are dissolved in it
    bool worksIfBuffered = false;     // the same lists end where sends are buffered
    // Each send with a receive directly behind it posted together with it: does that remove the hang? None: no such pair on the
    // circle.
    std::optional<bool> groupingWorks;
    Op groupedSend; // on the circle
    Op groupedReceive;

    bool hung() const { return !blocked.empty(); }
};

// Runs the lists under these channels and explains where they stop; not hung: an empty value. Fails (Invalid) where the schedule's
// shape is not sound. O(ops), and O(ops) for each order change tried, of which long schedules get fewer.
Result<Deadlock> explainDeadlock(const Schedule& schedule, const Channels& channels = {});

// What is wrong, in sentences: the circle, the victims, buffering and grouping, the fix.
std::string describeDeadlock(const Deadlock& deadlock);

// The circle drawn on the lists: each blocked rank's ops around where it stands, [op] where it stands, <op> what another waits
// for, and below it the arrows. Lines are at most `columns` (80 at least) wide.
std::string drawDeadlock(const Schedule& schedule, const Deadlock& deadlock, int columns);

// Fills cycle, circle and victims from `blocked`. For explainers of real runs.
void findCircle(Deadlock& deadlock, int ranks);

} // namespace stagewright
