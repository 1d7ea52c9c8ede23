// V-ZB (Qi et al. 2024, arXiv 2405.15362, section 3, figure 3): no bubble in the middle, from a building block.
//
// Two stages per rank in a V. The block is the passes of one microbatch, repeated every 6 slots: F0 = 4i, F1 = 6p−5−2i,
// I1 = 6p−4+4i, I0 = 12p−9−2i on rank i, each W two slots after its I; hops of 4 and −2 slots leave every rank the same
// residues (schedules/heuristic/building_block.h repeats, squeezes and reorders). The block is printed by `schedules
// v-zb --block`.
#include <algorithm>

#include "schedules/library/of_block.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter parametersVZb[] = {
    reorderParameter,
};

Result<Schedule> makeVZb(const Shape& shape) { return ofBlock("v-zb", vZbBlock(shape.ranks), shape); }

ClosedForm closedFormVZb(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int p = shape.ranks;
    if (shape.microbatches < p) return form;
    if (shape.parameter("reorder") == "no") {
        if (forward == inputGrad && inputGrad == weightGrad && p > 1)
            form.makespan = (3.0 * shape.microbatches + p - 1.5) * forward;
        return form;
    }
    if (isForUnitCosts(shape, forward, inputGrad, weightGrad))
        form.makespan = (3.0 * shape.microbatches + (p - 1) / 2.0) * forward;
    return form;
}

} // namespace

extern const ScheduleInfo v_zb;
constinit const ScheduleInfo v_zb{
    .name = "v-zb",
    .title = "V-ZB (zero bubble from a building block)",
    .summary = "building block without a bubble in the middle, at the memory of 1F1B, the same on every rank",
    .paper = "Qi et al. 2024, arXiv 2405.15362, section 3, figure 3",
    .constraints = "any ranks, any microbatches; two stages per rank in V placement",
    .formulas = "makespan  3m + (p-1)/2 at F = I = W and m >= p; the repeated block as it is 3m + p - 1.5\n"
                "peak      p on every rank for m >= 2p",
    .drawing = "rank 0 |F0 F1 F2 F3 .........F0 I0 F1 I1 F2 I2 F3 I3 I0 W0 I1 W1 I2 W2 I3 W3 W0 W1 W2 W3 |\n"
               "rank 1 |...F0 F1 F2 ......F0 F3 F1 I0 F2 I1 F3 I2 I0 I3 I1 W0 I2 W1 I3 W2 W0 W3 W1 W2 W3 |\n"
               "rank 2 |......F0 F1 ...F0 F2 F1 F3 F2 I0 F3 I1 I0 I2 I1 I3 I2 W0 I3 W1 W0 W2 W1 W3 W2 W3 |\n"
               "rank 3 |.........F0 F0 F1 F1 F2 F2 F3 F3 I0 I0 I1 I1 I2 I2 I3 I3 W0 W0 W1 W1 W2 W2 W3 W3 |\n",
    .aliases = "vzb",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeVZb,
    .closedForm = closedFormVZb,
    .parameters = parametersVZb,
    .searches = true,
};

} // namespace stagewright::library
