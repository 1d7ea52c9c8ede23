// Checking a schedule: every fault, with rank, position and both ops.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/model/schedule.h"

namespace stagewright {

enum class FaultKind {
    Shape,
    Count,
    Duplicate,
    WrongRank,
    Order,
    Deadlock,
    BadOp,
};

struct Fault {
    FaultKind kind = FaultKind::Shape;
    int rank = -1;      // −1: the whole schedule
    int position = -1;  // index in order[rank]
    Op op;              // the op at fault
    int otherRank = -1; // position of the other op, −1: none
    int otherPosition = -1;
    Op other;
    std::string message; // "rank 2, op 7 (3B1): backward before forward; forward is at op 9"
    std::string remedy;  // "move 3B1 after 3F1"
};

inline constexpr std::size_t mostFaults = 100'000; // put into words; further ones are counted

struct Validation {
    std::vector<Fault> faults; // in order of rank and position; deadlock last; empty: valid
    std::size_t more = 0;      // found besides, beyond mostFaults
    std::vector<Wait> cycle;   // of the deadlock, in waiting order

    bool valid() const { return faults.empty(); }
    Result<void> toResult() const; // the first fault as an Error, with its remedy
};

// Checks shape (ranks, placement, slice lengths), counts (m F per stage; #I = #W; #B + #I = m, but of none of a
// replica's stages before its first one with a backward, where another replica goes back to stage 0), duplicates, ops
// on the wrong rank, order within a rank, and deadlock: of a compute-only schedule as it waits across ranks, of a
// lowered one as its sends and receives wait under these channels. O(ops).
//   SEND, RECV   in a lowered schedule every input from another rank is sent once, after the op that makes it, and
//                received once, before the op that needs it.
//   R            between its F and its B or I.
//   slices       of a microbatch: forwards in rising, gradients in falling order.
//   UNSHARD, RESHARD   in turn, on a rank that holds the stage; the list repeats, so that its end is also before its
//                      start, and what it
//                leaves gathered may be gathered again. Of all stages with as many copies, or of none. F, B, I and R
//                only while the stage is gathered, and not between its OPT and the gather behind it. Its ranks gather
//                equally often.
//   REDUCE_GRAD of microbatches   each microbatch that the rank has once, after its B or W, and all of them where one
//                                 is.
//   REDUCE_GRAD of some stages: of all with as many copies.
//   REDUCE_GRAD, OPT   on a rank that holds the stage. Synchronous weights: at most one each per stage and rank, after
//                      the
//                stage's last B or W there, the reduction before the optimizer, and an OPT for every stage or none.
//                Other weight rules: anywhere, at least one OPT per stage and rank.
Validation validate(const Schedule& schedule, const Channels& channels = {});

} // namespace stagewright
