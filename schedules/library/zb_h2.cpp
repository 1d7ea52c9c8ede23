// ZB-H2 (Qi et al. 2024, arXiv 2401.10241, section 2): no bubble from a rank's first op to its last, for twice the
// memory.
//
// Rank r warms up with min(m, 2(p−r)−1) forwards; then I, the oldest W once more than 2r backwards are done, and a
// forward if any is left (I, W, F: the cap of 2p−1 microbatches holds); the other W last. Ranks start and end at
// different times, a parallelogram: it pays where no barrier ends the step (optimizer=rank). The paper writes B for I.
#include <algorithm>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeZbH2(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("zb-h2", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(m));
        int forward = 0;
        int weight = 0;
        while (forward < std::min(m, 2 * (p - r) - 1)) ops.push_back(makeOp(OpKind::Forward, r, forward++));
        for (int j = 0; j < m; ++j) {
            ops.push_back(makeOp(OpKind::InputGrad, r, j));
            if (j >= 2 * r) ops.push_back(makeOp(OpKind::WeightGrad, r, weight++));
            if (forward < m) ops.push_back(makeOp(OpKind::Forward, r, forward++));
        }
        while (weight < m) ops.push_back(makeOp(OpKind::WeightGrad, r, weight++));
    }
    appendOptimizers(out, shape);
    return out;
}

ClosedForm closedFormZbH2(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (shape.microbatches < 2 * shape.ranks - 1) return form;
    if (forward == inputGrad && inputGrad == weightGrad)
        form.makespan = (3 * shape.microbatches + shape.ranks - 1) * forward;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), 2 * shape.ranks - 1);
    return form;
}

} // namespace

extern const ScheduleInfo zb_h2;
constinit const ScheduleInfo zb_h2{
    .name = "zb-h2",
    .title = "ZB-H2 (zero bubble, twice 1F1B's memory)",
    .summary = "no idle between a rank's first and last op at equal costs; about twice 1F1B's peak memory",
    .paper = "Qi et al. 2024, arXiv 2401.10241, section 2",
    .constraints = "any ranks, any microbatches; zero bubble for microbatches >= 2 ranks - 1 and F = I = W",
    .formulas = "makespan  mT + (p-1)F                     (F = I = W, m >= 2p-1)\n"
                "span      mT: no idle within a rank\n"
                "peak      2p-1 on every rank (2(p-r)-1 where I frees everything)",
    .drawing = "rank 0 |F0 F1 F2 F3 F4 F5 F6 I0 W0 F7 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5 I6 W6 I7 W7 .........|\n"
               "rank 1 |...F0 F1 F2 F3 F4 I0 F5 I1 F6 I2 W0 F7 I3 W1 I4 W2 I5 W3 I6 W4 I7 W5 W6 W7 ......|\n"
               "rank 2 |......F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 F6 I4 W0 F7 I5 W1 I6 W2 I7 W3 W4 W5 W6 W7 ...|\n"
               "rank 3 |.........F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 F6 I6 W0 F7 I7 W1 W2 W3 W4 W5 W6 W7 |\n",
    .aliases = "zb2p, zb-2p, zbh2",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeZbH2,
    .closedForm = closedFormZbH2,
    .parameters = optimizerParameters,
    .drawnMicrobatches = 8,
};

} // namespace stagewright::library
