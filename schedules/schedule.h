// Schedule: what every rank does, in order. A value: copy, compare, hash, diff, print. It holds no times and no idle:
// start times always follow from the order; a wanted delay is an op of kind Filler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "schedules/op.h"
#include "schedules/placement.h"

namespace stagewright {

struct Schedule {
    std::string name; // library name with its parameters, or a file's name; a label, not part of equality
    int ranks = 0;
    int stages = 0;
    int microbatches = 0;
    Placement placement;
    std::vector<std::vector<Op>> order; // by rank
    // Positions that are issued together with the next one (overlapped pairs), by rank, ascending. Usually all empty.
    std::vector<std::vector<std::uint32_t>> paired;

    bool operator==(const Schedule& other) const;
    std::size_t opCount() const;
    bool isPaired(int rank, std::size_t position) const;
    bool splitsBackward() const; // has I or W
};

std::uint64_t hashOf(const Schedule& schedule); // stable across machines; name not included

// One line per rank, ops separated by spaces; for messages and tests.
std::string toText(const Schedule& schedule);

// What a schedule's generator needs to know.
struct Shape {
    int ranks = 4;
    int microbatches = 8;
    int chunks = 0; // stages per rank; 0: the schedule's own default
};

} // namespace stagewright
