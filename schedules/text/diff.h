// The difference of two schedules, and the library schedule nearest to one. Orders are compared as compute orders:
// sends and receives follow from them and are left out, unless both schedules are lowered.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "schedules/model/schedule.h"

namespace stagewright {

// The first position at which the lists of a rank differ; an op is absent where its list ends there.
struct RankDifference {
    int rank = 0;
    std::size_t position = 0;
    std::optional<Op> a;
    std::optional<Op> b;
};

// An op that both have on one rank, but at a different place among the others: on each rank as few as possible are
// moved, all others keep their order.
struct MovedOp {
    int rank = 0;
    Op op;
    std::size_t fromPosition = 0; // in A
    std::size_t toPosition = 0;   // in B
};

struct PlacedOp { // in one schedule only, or on another rank there
    int rank = 0;
    std::size_t position = 0;
    Op op;
};

struct ScheduleDiff {
    std::vector<std::string> shape;    // "ranks: 4 and 8" …, weights, slice lengths, pairs; empty: all alike
    std::vector<RankDifference> first; // by rank; ranks without a difference are omitted
    std::vector<MovedOp> moved;        // by rank and position in B
    std::vector<PlacedOp> onlyA;
    std::vector<PlacedOp> onlyB;

    bool same() const { return shape.empty() && first.empty(); }
    // Ops to move, remove or insert to get from A to B; an op that changed its rank counts once.
    std::size_t distance() const { return moved.size() + std::max(onlyA.size(), onlyB.size()); }
};

// O(ops log ops).
ScheduleDiff diffSchedules(const Schedule& a, const Schedule& b);
// "rank 1, op 3: 1F1 here, 1B0 there"
std::string describeFirst(const RankDifference& difference, const std::string& here = "here",
                          const std::string& there = "there");

struct NearestSchedule {
    std::string name;  // of the library, with parameters
    ScheduleDiff diff; // from the given one to it
};
// The library schedule, at its defaults or with one parameter set to another of its alternatives, whose order is
// nearest; the first of equally near ones. None where the shape fits none, or the schedule is too long to try all (4
// million ops in total).
std::optional<NearestSchedule> nearestSchedule(const Schedule& schedule);

} // namespace stagewright
