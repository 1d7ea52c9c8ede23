// V-Half (Qi et al. 2024, arXiv 2405.15362, section 3, table 9): half of 1F1B's activations from a building block.
//
// Two stages per rank in a V. The block is the passes of one microbatch, repeated every 6 slots: F0 = 2i, F1 = 3p−2−i,
// I1 = 3p+e+2i−1, I0 = 6p+e−2−i on rank i, e = 3 where p is even: forwards down the V take two slots a hop, up it one.
// The paper's table has the spare slot at the first turn instead (turn=paper). W goes into the first idle slots
// (schedules/heuristic/building_block.h repeats, fills, squeezes and reorders). The block is printed by `schedules
// v-half --block`.
#include <algorithm>

#include "schedules/library/of_block.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter parametersVHalf[] = {
    {"turn", "code", "code|paper",
     "where the block's spare slot is: at the last turn (authors' program) or at the first (paper)", "2",
     "paper=first turn spare"},
    reorderParameter,
};

Result<Schedule> makeVHalf(const Shape& shape)
{
    return ofBlock(
        "v-half",
        vHalfBlock(shape.ranks, shape.parameter("turn") == "paper" ? SpareSlot::FirstTurn : SpareSlot::LastTurn),
        shape);
}

ClosedForm closedFormVHalf(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int p = shape.ranks;
    if (shape.microbatches < p) return form;
    if (shape.parameter("reorder") == "no") {
        if (forward == inputGrad && inputGrad == weightGrad && p > 1)
            form.makespan = (3.0 * shape.microbatches + 1.75 * p - (p % 2 == 0 ? 1 : 1.75) -
                             (shape.parameter("turn") == "paper" ? 0.5 : 0)) *
                            forward;
        return form;
    }
    if (isForUnitCosts(shape, forward, inputGrad, weightGrad))
        form.makespan =
            (3.0 * shape.microbatches + std::max(searchedBubble(p, 2 * ((p + 2) / 2)), p - 1) / 2.0) * forward;
    return form;
}

} // namespace

extern const ScheduleInfo v_half;
constinit const ScheduleInfo v_half{
    .name = "v-half",
    .title = "V-Half (half of the activations)",
    .summary = "building block with half the memory of 1F1B and about half its bubble",
    .paper = "Qi et al. 2024, arXiv 2405.15362, section 3, table 9",
    .constraints = "any ranks, any microbatches; two stages per rank in V placement",
    .formulas = "makespan  3m + b/2, b = 3p-1-3k + max(3p, p-1+2(1+floor((k+1)/2))), k = twice the peak, at F = I = W "
                "and m >= p >= 3\n"
                "          3m + (7p-4)/4 for even p, 3m + 7(p-1)/4 for odd (reorder=no); 1/2 less with turn=paper\n"
                "peak      floor((p+2)/2) on every rank",
    .drawing = "rank 0 |F0 F1 F2 F3 .........F0 I0 F1 I1 W0 W1 ...F2 I0 I2 W0 W2 F3 I3 I1 W3 I2 W1 W2 ...I3 W3 |\n"
               "rank 1 |...F0 F1 F2 F3 ...F0 ...F1 I0 W0 I1 W1 F2 I0 W0 ...I2 F3 W2 I1 I3 I2 W1 W3 W2 I3 W3 ...|\n"
               "rank 2 |......F0 F1 F2 F0 F3 F1 ......I0 W0 F2 I0 I1 W0 W1 F3 I2 I1 W2 I2 I3 W1 W2 I3 W3 W3 ...|\n"
               "rank 3 |.........F0 F0 F1 F1 F2 F2 ......I0 I0 W0 F3 W0 F3 I1 I1 I2 I2 W1 W1 I3 I3 W2 W2 W3 W3 |\n",
    .aliases = "vhalf",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeVHalf,
    .closedForm = closedFormVHalf,
    .parameters = parametersVHalf,
    .searches = true,
};

} // namespace stagewright::library
