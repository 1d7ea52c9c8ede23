// Changes of several ops at once: moved together, to another rank, removed, put back, split, merged, swapped,
// recomputed. Pure functions over a schedule of any state, also one that is not valid or not complete; each gives the
// schedule after it and checks nothing but its own arguments (validate() reports the rest). Errors are of code Usage
// and name the op and the rank.
#pragma once

#include <optional>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// The position of an op in a schedule.
struct OpPosition {
    int rank = -1;
    int position = -1;
    bool valid() const { return rank >= 0 && position >= 0; }
    bool operator==(const OpPosition&) const = default;
    auto operator<=>(const OpPosition&) const = default;
};

const Op* opAt(const Schedule& schedule, OpPosition at); // null where there is none
// the first equal op of the rank; invalid: none
OpPosition positionOf(const Schedule& schedule, const Op& op, int rank);

// The ops of `positions` after a change: the new schedule, and the positions of those ops in it (same order, without
// those removed).
struct Edited {
    Schedule schedule;
    std::vector<OpPosition> positions;
};

// Each op passes `shift` others of its rank (< 0: to the left), as far as the row goes; they keep their order among
// themselves.
Result<Edited> moveOps(const Schedule& schedule, std::vector<OpPosition> positions, int shift);

// Moves one op to place `to` of another rank's list. A delay goes anywhere. A compute op goes where its stage has
// another copy: then all ops of its stage and microbatch go, and the placement changes accordingly. Anything else is
// refused with the reason.
Result<Edited> moveToRank(const Schedule& schedule, OpPosition from, int toRank, int to);

// Takes ops out of the order; the shape and the placement stay, so that they are reported as missing (unplacedOps).
Result<Edited> removeOps(const Schedule& schedule, std::vector<OpPosition> positions);
Result<Edited> insertOps(const Schedule& schedule, int rank, int at, const std::vector<Op>& ops);

// B → I with its W directly after it (after the pair, where it is in one); selected ops of other kinds stay. Fails
// where none is a B.
Result<Edited> splitBackward(const Schedule& schedule, const std::vector<OpPosition>& positions);
Schedule splitEveryBackward(const Schedule& schedule); // every full B, also of pairs; as it is where there is none
// I and the W of the same cell → B in the place of I. Either may be selected. Fails where none is, or where the W
// covers several microbatches.
Result<Edited> mergeBackward(const Schedule& schedule, const std::vector<OpPosition>& positions);
// R before the backward of each selected op's stage and microbatch, issued together with it; those that have one keep
// it.
Result<Edited> insertRecompute(const Schedule& schedule, const std::vector<OpPosition>& positions);
Result<Edited> swapTwo(const Schedule& schedule, OpPosition a, OpPosition b); // of one rank

std::vector<OpPosition> allPositions(const Schedule& schedule, int rank = -1); // −1: every rank

// The ops that the shape asks for and the order lacks, by stage and microbatch: F, and B, or I and W where the schedule
// splits its backward. Whole ops only; what a slice or half covers counts as there. O(ops + stages × microbatches).
std::vector<Op> unplacedOps(const Schedule& schedule);

// The first of unplacedOps() that makes an input of `op`; none: all its inputs are in the order.
std::optional<Op> unplacedInput(const Schedule& schedule, const Op& op);

// A schedule of this shape without a single op.
Schedule emptySchedule(int ranks, int stages, int microbatches);

} // namespace stagewright
