// EditRow: one rank's list with a mark at each op that is issued together with the next, so that pairs survive an edit
// if both members are still adjacent after it, and are dissolved otherwise.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/model/schedule.h"

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
