// PipeDream-2BW (Narayanan et al. 2021, arXiv 2006.09503): 1F1B without a flush, two weight versions.
//
// Gradients are summed over the m ≥ p microbatches of a step and applied once, at the end of each rank's list;
// microbatches already in the pipeline keep the version they began with, new ones use the newest. With m ≥ p two
// versions suffice and every gradient is exactly one update old: w(t+1) = w(t) − lr·∇f(w(t−1)).
#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makePipedream2bw(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    if (m < p)
        return fail(ErrorCode::Usage,
                    fmt::format("pipedream-2bw: {} microbatches on {} ranks; two versions need at least as many "
                                "microbatches as ranks",
                                m, p),
                    fmt::format("the nearest that works is {} microbatches", p));
    Schedule out = draft("pipedream-2bw", p, p, m, Placement::loop(p, p));
    out.weights = WeightRule::TwoVersions;
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m) + 1);
        oneForwardOneBackward(m, p - 1 - r,
                              [&](OpKind kind, int microbatch) { ops.push_back(makeOp(kind, r, microbatch)); });
        ops.push_back(makeOp(OpKind::Optimizer, r));
    }
    return out;
}

} // namespace

extern const ScheduleInfo pipedream_2bw;
constinit const ScheduleInfo pipedream_2bw{
    .name = "pipedream-2bw",
    .title = "PipeDream-2BW (asynchronous, two weight versions)",
    .summary = "1F1B without a flush: one update per step, one step late, with two versions of the weights",
    .paper = "Narayanan et al. 2021, arXiv 2006.09503",
    .constraints = "microbatches >= ranks; not the mathematics of synchronous training",
    .formulas = "makespan  (m+p-1)T for the first step; mT per step after that\n"
                "peak      p-r on rank r\n"
                "weights   2 versions, gradients 1 update old",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................B0--- ...B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 ............B0--- F3 B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 ......B0--- F2 B1--- F3 B2--- ...B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- ..................|\n",
    .aliases = "2bw, double-buffered",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makePipedream2bw,
    .closedForm = closedForm1f1b,
};

} // namespace stagewright::library
