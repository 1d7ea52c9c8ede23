// ZB-H1 (Qi et al. 2024, arXiv 2401.10241, section 2): the backward in two parts, with the memory of 1F1B.
//
// 1F1B with I (input gradient) in B's place; W (weight gradient) of a microbatch waits until r backwards are done and
// then fills what was bubble, the last ones in the drain. The paper writes B for I.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeZbH1(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("zb-h1", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(m));
        int weight = 0;
        oneForwardOneBackward(m, p - 1 - r, [&](OpKind kind, int microbatch) {
            const bool forward = kind == OpKind::Forward;
            ops.push_back(makeOp(forward ? kind : OpKind::InputGrad, r, microbatch));
            if (!forward && microbatch >= r) ops.push_back(makeOp(OpKind::WeightGrad, r, weight++));
        });
        while (weight < m) ops.push_back(makeOp(OpKind::WeightGrad, r, weight++));
    }
    appendOptimizers(out, shape);
    return out;
}

ClosedForm closedFormZbH1(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (shape.microbatches < shape.ranks) return form;
    if (weightGrad <= inputGrad)
        form.makespan = shape.microbatches * (forward + inputGrad + weightGrad) +
                        (shape.ranks - 1) * (forward + inputGrad - weightGrad);
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.ranks);
    return form;
}

} // namespace

extern const ScheduleInfo zb_h1;
constinit const ScheduleInfo zb_h1{
    .name = "zb-h1",
    .title = "ZB-H1 (zero bubble, 1F1B memory)",
    .summary = "splits the backward; weight gradients fill two thirds of 1F1B's bubble at 1F1B's peak memory",
    .paper = "Qi et al. 2024, arXiv 2401.10241, section 2",
    .constraints = "any ranks, any microbatches; closed forms for microbatches >= ranks and W <= I",
    .formulas = "makespan  mT + (p-1)(F+I-W)\n"
                "bubble    (p-1)(F+I-W) per rank\n"
                "peak      p on every rank (p-r where I frees everything)",
    .drawing = "rank 0 |F0 F1 F2 F3 .........I0 W0 I1 W1 I2 W2 I3 W3 |\n"
               "rank 1 |...F0 F1 F2 ......I0 F3 I1 W0 I2 W1 I3 W2 W3 |\n"
               "rank 2 |......F0 F1 ...I0 F2 I1 F3 I2 W0 I3 W1 W2 W3 |\n"
               "rank 3 |.........F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3 |\n",
    .aliases = "zb1p, zb-1p, zbh1, InterleavedZeroBubble (v=1)",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeZbH1,
    .closedForm = closedFormZbH1,
    .parameters = optimizerParameters,
};

} // namespace stagewright::library
