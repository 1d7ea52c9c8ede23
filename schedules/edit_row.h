// EditRow: one rank's list with a mark at each op that is issued together with its follower, so that pairs survive an edit
// where both members still stand side by side after it, and are dissolved where they do not.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/schedule.h"

namespace stagewright {

struct EditRow {
    struct Entry {
        Op op;
        int pairId = -1; // both members of a pair carry it
    };
    std::vector<Entry> entries;

    EditRow(const Schedule& schedule, int rank); // precondition: the rank exists
    void insert(std::size_t at, const Op& op);   // at ≤ size
    void erase(std::size_t at);
    void writeTo(Schedule& schedule, int rank) const; // order and pairs of that rank
};

} // namespace stagewright
