// PipeDream (Narayanan et al. 2019, arXiv 1806.03377): 1F1B without a flush, a weight update after every backward.
//
// Rank r runs the list of 1F1B with an Optimizer op after each B. A forward uses the newest weights and keeps them for
// its own backward, so that rank r holds p−r versions and its gradients are p−1−r updates old:
// w(t+1) = w(t) − lr·∇f(w₁(t−p+1), …, w_p(t)). In the steady state there is no bubble; steps follow each other
// unflushed.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makePipedream(const Shape& shape)
{
    return updatedAfterEveryBackward("pipedream", WeightRule::Stashed, shape);
}

} // namespace

extern const ScheduleInfo pipedream;
constinit const ScheduleInfo pipedream{
    .name = "pipedream",
    .title = "PipeDream (asynchronous, weight stashing)",
    .summary =
        "1F1B without a flush: every backward updates the weights, each microbatch keeps its version; stale gradients",
    .paper = "Narayanan et al. 2019, arXiv 1806.03377",
    .constraints = "any ranks, any microbatches; not the mathematics of synchronous training",
    .formulas = "makespan  (m+p-1)T for m microbatches from an empty pipeline; T per microbatch after that\n"
                "peak      min(m, p-r) on rank r\n"
                "weights   p-r versions on rank r, gradients p-1-r updates old",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................B0--- ...B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 ............B0--- F3 B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 ......B0--- F2 B1--- F3 B2--- ...B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- ..................|\n",
    .aliases = "pipedream-async, weight-stashing",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makePipedream,
    .closedForm = closedForm1f1b,
};

} // namespace stagewright::library
