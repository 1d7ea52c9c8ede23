// 2BP-1F1B (Rae et al. 2024, arXiv 2405.18047): 1F1B with the backward in two parts and the weight gradients delayed.
//
// As in the authors' training code: rank r runs p−r forwards; input gradients and forwards alternate until no forward
// is left; in the cool-down each input gradient is followed by W of the oldest microbatch, which fills the wait for the
// next gradient; one concatenated W does the rest. w=last is the code's earlier form: every W in the one op at the end.
#include <algorithm>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter twoBpParameters[] = {{"w", "cooldown", "cooldown|last",
                                                  "where weight gradients run: one after each input gradient of the "
                                                  "cool-down and the rest in one op, or all in one op at the end",
                                                  "2", "last=W last"}};

Result<Schedule> makeTwoBp1f1b(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const bool last = shape.parameter("w") == "last";
    Schedule out = draft("2bp-1f1b", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(m));
        int forward = 0;
        int weight = 0;
        while (forward < std::min(m, p - r)) ops.push_back(makeOp(OpKind::Forward, r, forward++));
        for (int j = 0; j < m; ++j) {
            ops.push_back(makeOp(OpKind::InputGrad, r, j));
            if (forward < m)
                ops.push_back(makeOp(OpKind::Forward, r, forward++));
            else if (!last)
                ops.push_back(makeOp(OpKind::WeightGrad, r, weight++));
        }
        appendConcatenatedWeightGrads(ops, r, weight, m - 1);
    }
    return out;
}

ClosedForm closedFormTwoBp1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const double t = forward + inputGrad + weightGrad;
    if (shape.parameter("w") == "last")
        form.makespan = shape.microbatches * t + (shape.ranks - 1) * (forward + inputGrad);
    else if (forward == inputGrad && inputGrad == weightGrad && shape.microbatches >= shape.ranks)
        form.makespan = shape.microbatches * t + (shape.ranks - 1) * forward;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.microbatches);
    return form;
}

} // namespace

extern const ScheduleInfo two_bp_1f1b;
constinit const ScheduleInfo two_bp_1f1b{
    .name = "2bp-1f1b",
    .title = "2BP on 1F1B (backward in two parts)",
    .summary = "1F1B with delayed weight gradients, most of them in one concatenated op: a third of the bubble, "
               "GPipe's memory",
    .paper = "Rae et al. 2024, arXiv 2405.18047; the order of the authors' training code",
    .constraints = "any ranks, any microbatches; the makespan for microbatches >= ranks",
    .formulas = "makespan  mT + (p-1)F                     (F = I = W, m >= p)\n"
                "          mT + (p-1)(F+I)                 (w=last)\n"
                "peak      m on every rank, until W",
    .drawing = "rank 0 |F0 F1 F2 F3 .........I0 W0 I1 W1 I2 W2 I3 W3 |\n"
               "rank 1 |...F0 F1 F2 ......I0 F3 I1 W0 I2 W1 I3 W2 W3 |\n"
               "rank 2 |......F0 F1 ...I0 F2 I1 F3 I2 W0 I3 W1 W2--- |\n"
               "rank 3 |.........F0 I0 F1 I1 F2 I2 F3 I3 W0 W1------ |\n",
    .aliases = "2bp-1f1b-1, 2bp-1f1b-2, two-stage-backprop-1f1b",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeTwoBp1f1b,
    .closedForm = closedFormTwoBp1f1b,
    .parameters = twoBpParameters,
};

} // namespace stagewright::library
