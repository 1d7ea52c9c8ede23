// Gathers and reductions that an order with shared state lacks, and where each belongs.
#pragma once

#include <vector>

#include "schedules/edit/edit_ops.h"

namespace stagewright {

struct MissingCollective {
    Op op;         // a gather before an op without its weights; a reduction before its stage's optimizer step
    OpPosition at; // where it would be inserted
};

// By rank and place. A stage counts as shared where its rank's list gathers or releases it, or where another rank of
// the stage, or another stage, gathers or reduces; the microbatch is named as in the rank's other gathers. O(ops +
// stages × ranks).
std::vector<MissingCollective> missingCollectives(const Schedule& schedule);
// The place of the first that is this op; invalid: it is none of them.
OpPosition placeOfMissing(const Schedule& schedule, const Op& op);

} // namespace stagewright
