// 2BP-GPipe (Rae et al. 2024, arXiv 2405.18047): GPipe with the backward in two parts, all weight gradients in one op.
//
// Rank r runs m forwards, m input gradients, then one W over all microbatches, whose inputs and output gradients are
// stacked along the batch. Nothing that W needs is freed before.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeTwoBpGpipe(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("2bp-gpipe", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m) + 1);
        for (int j = 0; j < m; ++j) ops.push_back(makeOp(OpKind::Forward, r, j));
        for (int j = 0; j < m; ++j) ops.push_back(makeOp(OpKind::InputGrad, r, j));
        appendConcatenatedWeightGrads(ops, r, 0, m - 1);
    }
    return out;
}

ClosedForm closedFormTwoBpGpipe(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    form.makespan = shape.microbatches * (forward + inputGrad + weightGrad) + (shape.ranks - 1) * (forward + inputGrad);
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.microbatches);
    return form;
}

} // namespace

extern const ScheduleInfo two_bp_gpipe;
constinit const ScheduleInfo two_bp_gpipe{
    .name = "2bp-gpipe",
    .title = "2BP on GPipe (backward in two parts)",
    .summary = "GPipe whose weight gradients wait for the end, one concatenated op per rank: less bubble, the same "
               "microbatches held",
    .paper = "Rae et al. 2024, arXiv 2405.18047",
    .constraints = "any ranks, any microbatches",
    .formulas = "makespan  mT + (p-1)(F+I)\n"
                "bubble    (p-1)(F+I) per rank\n"
                "peak      m on every rank, until W",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................I0 I1 I2 I3 W0--------- |\n"
               "rank 1 |...F0 F1 F2 F3 ............I0 I1 I2 I3 W0--------- ...|\n"
               "rank 2 |......F0 F1 F2 F3 ......I0 I1 I2 I3 W0--------- ......|\n"
               "rank 3 |.........F0 F1 F2 F3 I0 I1 I2 I3 W0--------- .........|\n",
    .aliases = "2bp, two-stage-backprop-gpipe",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeTwoBpGpipe,
    .closedForm = closedFormTwoBpGpipe,
};

} // namespace stagewright::library
