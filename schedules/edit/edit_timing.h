// Changes of an order that depend on times: fill a gap, snap to the earliest place, carry what depends on an op along;
// and why a move is refused. Times are those of a placement of the same schedule (SimResult, rank-major). All are
// O(ops) or O(ops log ops).
#pragma once

#include <string>
#include <vector>

#include "schedules/edit/edit_ops.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// When each op's last input is ready, rank-major; 0 for an op without inputs or with inputs that nobody makes.
std::vector<Nanos> arrivalsOf(const Schedule& schedule, const CostModel& costs, const SimResult& times);

// The idle time before place `before` of a rank's list (= size: none).
struct RowGap {
    int rank = -1;
    int before = -1;
    Nanos begin = 0;
    Nanos end = 0;
    bool valid() const { return rank >= 0 && end > begin; }
};
RowGap gapBefore(const SimResult& times, int rank, int place);
RowGap gapAt(const SimResult& times, int rank, Nanos time); // not valid where an op runs, and after the last

// Moves into the gap the weight gradients later on the rank whose inputs are ready and that fit into what is left of
// it: the longest first, and the first of equally long ones. Fails (Usage) where none fits, and says which comes
// nearest.
Result<Edited> fillGap(const Schedule& schedule, const CostModel& costs, const SimResult& times, const RowGap& gap);

// Each chosen op goes before the first op of its rank that starts when its inputs are ready, or later. Ops that are
// already there stay.
Result<Edited> snapToEarliest(const Schedule& schedule, const CostModel& costs, const SimResult& times,
                              const std::vector<OpPosition>& positions);
// Every rank takes the op whose inputs came first; of several the first in the list. Pairs are kept where they are
// still adjacent. The order without its idle time that waiting ops could fill; it may hold more activations.
// The first kept[rank] ops of each rank stay in their order among themselves (empty: none).
Schedule earliestOrder(const Schedule& schedule, const CostModel& costs, const std::vector<std::size_t>& kept = {});

// Moves one op within its rank. If the lists then deadlock, ops that depend on it are put off, each after the next op
// of its rank that does not (if it goes to the left, what it depends on is brought forward), until the order completes.
Result<Edited> moveCarrying(const Schedule& schedule, OpPosition from, int to);

// Why an op may not be at place `to` of its rank's list (of the list without it), and the nearest place where it may.
struct MoveRefusal {
    bool refused = false;
    std::string reason;                       // "0B1 needs 1B1 of rank 1, which waits for 0F3, at place 6 here"
    int goThere = -1;                         // the nearest place that is valid
    std::string where;                        // "earliest place: after 0F3"
    std::string sentence(const Op& op) const; // "0B1 can't go there: …. Earliest place: after 0F3."
};
MoveRefusal explainMove(const Schedule& schedule, OpPosition from, int to);

} // namespace stagewright
