// A pattern of ops, copied from some microbatches and pasted onto the following ones: a schedule as one repeated
// trajectory (Qi et al. 2024, arXiv 2405.15362, section 3, calls it the building block). And a change of the number of
// microbatches.
#pragma once

#include <vector>

#include "schedules/edit/edit_ops.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

struct OpPattern {
    struct Item {
        int rank = 0;
        Op op;
        Nanos start = 0;
    };
    std::vector<Item> items; // by rank, in list order
    int microbatches = 1;    // covered, from the smallest to the largest: what one copy moves on by
    Nanos period = 0;        // from one copy to the next: the most work of one rank
    bool empty() const { return items.empty(); }
};

// Selected ops with the times they have. Delays come along; ops of other kinds without a microbatch are left out. Fails
// (Usage) where nothing with a microbatch is selected.
Result<OpPattern> copyPattern(const Schedule& schedule, const CostModel& costs, const SimResult& times,
                              std::vector<OpPosition> positions);

struct Stamped {
    Edited edited;
    int shoved = 0; // ops already in the order before which their rank now does something new
};
// Puts the pattern's k-th copy down: each op with its microbatch raised by k × pattern.microbatches, at the time it had
// plus k × period, before the first op of its rank that starts then or later. Ops of these microbatches and kinds
// elsewhere are removed there. k = 0 puts the pattern itself back (after a cut). Fails (Usage) where a microbatch does
// not exist.
Result<Stamped> stampPattern(const Schedule& schedule, const SimResult& times, const OpPattern& pattern, int k);

// The order for another number of microbatches (`count` ≥ 1). Fewer: the last are removed. More: a library schedule is
// generated again; any other is cut in its middle, and the microbatch there repeated one period later. Fails (Usage)
// where the result is not valid or a rank would hold more than before.
Result<Schedule> withMicrobatches(const Schedule& schedule, const CostModel& costs, int count);

} // namespace stagewright
