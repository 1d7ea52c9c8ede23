// The list of one rank under DualPipe and DualPipeV, which differ only in what their two phases are.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/model/op.h"

namespace stagewright::library {

// What a rank runs in one phase: a direction of DualPipe, a chunk of DualPipeV. Microbatches first … first + n − 1.
struct DualPipePhase {
    int stage = 0;
    int firstMicrobatch = 0;
};

struct DualPipeList {
    std::vector<Op> ops;
    std::vector<std::uint32_t> paired; // positions issued together with the next
};

// `outer` is the rank's distance h from where its own phase starts, `half` is H (ranks from there to the turn), n the
// microbatches of a phase; n ≥ 2·half.
DualPipeList dualPipeList(DualPipePhase own, DualPipePhase other, int outer, int half, int n);

} // namespace stagewright::library
