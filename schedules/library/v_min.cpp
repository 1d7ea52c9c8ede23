// V-Min (Qi et al. 2024, arXiv 2405.15362, section 3, appendix B): a third of 1F1B's activations from a building block.
//
// Two stages per rank in a V. The block is the passes of one microbatch, repeated every 6 slots: F0 = i, F1 = 2p−1−i,
// I1 = 2p+e+i, I0 = 4p+e−1−i on rank i, e = 2 where 3 divides p; every hop takes one slot. W goes into the first idle
// slots (schedules/heuristic/building_block.h repeats, fills, squeezes and reorders). The block is printed by
// `schedules v-min --block`.
#include <algorithm>

#include "schedules/library/of_block.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter parametersVMin[] = {
    reorderParameter,
};

Result<Schedule> makeVMin(const Shape& shape) { return ofBlock("v-min", vMinBlock(shape.ranks), shape); }

ClosedForm closedFormVMin(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int p = shape.ranks;
    if (shape.microbatches < p) return form;
    if (shape.parameter("reorder") == "no") {
        if (forward == inputGrad && inputGrad == weightGrad && p > 1)
            form.makespan = (3.0 * shape.microbatches + 2 * p - 2.5 + (p % 3 == 0 ? 1 : 0)) * forward;
        return form;
    }
    if ((p % 3 == 1 || p == 2) && isForUnitCosts(shape, forward, inputGrad, weightGrad))
        form.makespan =
            (3.0 * shape.microbatches + std::max(searchedBubble(p, 2 * ((p + 4) / 3)), p - 1) / 2.0) * forward;
    return form;
}

} // namespace

extern const ScheduleInfo v_min;
constinit const ScheduleInfo v_min{
    .name = "v-min",
    .title = "V-Min (a third of the activations)",
    .summary = "building block with the least memory: a third of 1F1B's, with two thirds of its bubble, more where F, "
               "I and W differ",
    .paper = "Qi et al. 2024, arXiv 2405.15362, section 3, appendix B",
    .constraints = "any ranks, any microbatches; two stages per rank in V placement",
    .formulas = "makespan  3m + (4p - 5)/2 + e, reordered 3m + b/2 where p = 3n + 1: b = 3p-1-3k + max(3p, "
                "p-1+2(1+floor((k+1)/2)))\n"
                "          (e = 1 where 3 divides p, else 0; k = twice the peak)\n"
                "peak      floor((p+4)/3) at F = I = W, any rank at most",
    .drawing = "rank 0 |F0 F1 ...............F0 I0 W0 F2 ......F1 I1 I0 W1 W0 F3 F2 I2 I1 W2 W1 ...F3 I3 I2 W3 W2 "
               ".........I3 W3 |\n"
               "rank 1 |...F0 ............F0 F1 ...I0 W0 ...F1 F2 I0 I1 W0 W1 F2 F3 I1 I2 W1 W2 F3 ...I2 I3 W2 W3 "
               "......I3 W3 ...|\n"
               "rank 2 |......F0 ......F0 ......F1 ...I0 F1 W0 I0 F2 W0 I1 F2 W1 I1 F3 W1 I2 F3 W2 I2 W2 ...I3 W3 "
               "...I3 W3 ......|\n"
               "rank 3 |.........F0 F0 ............F1 F1 I0 I0 W0 W0 F2 F2 I1 I1 W1 W1 F3 F3 I2 I2 W2 W2 ......I3 I3 "
               "W3 W3 ......|\n",
    .aliases = "vmin",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeVMin,
    .closedForm = closedFormVMin,
    .parameters = parametersVMin,
    .searches = true,
};

} // namespace stagewright::library
