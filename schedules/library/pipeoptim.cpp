// PipeOptim (Guan et al. 2023, arXiv 2312.00839): asynchronous 1F1B whose forwards predict the weights of their
// backward.
//
// The list is PipeDream's: an Optimizer op after every B. No version is kept for the backward. A forward on rank r uses
// w − lr·s·d, where s = p−1−r is the number of updates before its backward and d the optimizer's own direction; the
// backward uses the current weights. The last rank has s = 0.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makePipeoptim(const Shape& shape)
{
    return updatedAfterEveryBackward("pipeoptim", WeightRule::Predicted, shape);
}

} // namespace

extern const ScheduleInfo pipeoptim;
constinit const ScheduleInfo pipeoptim{
    .name = "pipeoptim",
    .title = "PipeOptim (asynchronous, weight prediction)",
    .summary = "PipeDream's order; forwards use weights predicted for their backward, so one version is enough",
    .paper = "Guan et al. 2023, arXiv 2312.00839",
    .constraints = "any ranks, any microbatches; not the mathematics of synchronous training",
    .formulas = "makespan  (m+p-1)T for m microbatches from an empty pipeline; T per microbatch after that\n"
                "peak      min(m, p-r) on rank r\n"
                "weights   the current ones and the predicted ones; s = p-1-r updates ahead on rank r",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................B0--- ...B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 ............B0--- F3 B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 ......B0--- F2 B1--- F3 B2--- ...B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- ..................|\n",
    .aliases = "weight-prediction",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makePipeoptim,
    .closedForm = closedForm1f1b,
};

} // namespace stagewright::library
