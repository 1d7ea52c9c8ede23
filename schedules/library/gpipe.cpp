// GPipe (Huang et al. 2019, arXiv 1811.06965): all forwards, then all backwards.
//
// Rank r runs F0 … F(m−1), then B0 … B(m−1). The paper's figure runs the backwards in falling order; time and memory
// are the same either way, and rising order is what PyTorch runs.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeGpipe(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("gpipe", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m));
        for (int j = 0; j < m; ++j) ops.push_back(makeOp(OpKind::Forward, r, j));
        for (int j = 0; j < m; ++j) ops.push_back(makeOp(OpKind::Backward, r, j));
    }
    return out;
}

ClosedForm closedFormGpipe(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    form.makespan = (shape.microbatches + shape.ranks - 1) * (forward + inputGrad + weightGrad);
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.microbatches);
    return form;
}

} // namespace

extern const ScheduleInfo gpipe;
constinit const ScheduleInfo gpipe{
    .name = "gpipe",
    .title = "GPipe",
    .summary = "all forwards, then all backwards; simplest, and memory grows with the microbatches",
    .paper = "Huang et al. 2019, arXiv 1811.06965",
    .constraints = "any ranks, any microbatches",
    .formulas = "makespan  (m+p-1)T\n"
                "bubble    (p-1)T per rank, a share of (p-1)/(m+p-1)\n"
                "peak      m on every rank",
    .drawing = "rank 0 |F0 F1 F2 F3 ...........................B0--- B1--- B2--- B3--- |\n"
               "rank 1 |...F0 F1 F2 F3 ..................B0--- B1--- B2--- B3--- ......|\n"
               "rank 2 |......F0 F1 F2 F3 .........B0--- B1--- B2--- B3--- ............|\n"
               "rank 3 |.........F0 F1 F2 F3 B0--- B1--- B2--- B3--- ..................|\n",
    .aliases = "g-pipe, fill-drain, ScheduleGPipe",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeGpipe,
    .closedForm = closedFormGpipe,
};

} // namespace stagewright::library
