// DualPipe (DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1): two directions, forwards overlapped with backwards.
//
// p even; every rank holds stage r of the down direction and stage p−1−r of the up direction, so each stage has two
// copies. Half of the microbatches go each way. In the steady state a forward of one direction and a backward of the
// other are issued as one pair, inside which the expert all-to-all of one hides behind the computation of the other.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/library/draft.h"
#include "schedules/library/dual_pipe_list.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeDualpipe(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const auto works = [](int ranks, int microbatches) {
        return ranks % 2 == 0 && microbatches % 2 == 0 && microbatches >= 2 * ranks;
    };
    if (p % 2 != 0)
        return fail(ErrorCode::Usage, fmt::format("dualpipe: {} ranks; two directions need an even number", p),
                    nearestThatWork(p, m, works));
    if (!works(p, m))
        return fail(
            ErrorCode::Usage,
            fmt::format("dualpipe: {} microbatches on {} ranks; an even number from 2 × {} on is needed", m, p, p),
            nearestThatWork(p, m, works));
    const int n = m / 2;
    Schedule out = draft("dualpipe", p, p, m, Placement::bidirectional(p, m));
    out.paired.resize(out.order.size());
    for (int r = 0; r < p; ++r) {
        const DualPipePhase down{r, 0};
        const DualPipePhase up{p - 1 - r, n};
        const bool first = r < p / 2;
        DualPipeList list = dualPipeList(first ? down : up, first ? up : down, std::min(r, p - 1 - r), p / 2, n);
        out.order[static_cast<std::size_t>(r)] = std::move(list.ops);
        out.paired[static_cast<std::size_t>(r)] = std::move(list.paired);
    }
    return out;
}

ClosedForm closedFormDualpipe(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (forward == inputGrad && inputGrad == weightGrad)
        form.makespan = (3 * shape.microbatches + shape.ranks - 2) * forward;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.ranks + 1);
    return form;
}

} // namespace

extern const ScheduleInfo dualpipe;
constinit const ScheduleInfo dualpipe{
    .name = "dualpipe",
    .title = "DualPipe (two directions, overlapped pairs)",
    .summary =
        "microbatches enter at both ends; forwards overlap with backwards of the other direction; weights held twice",
    .paper = "DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1, and the authors' code",
    .constraints = "even ranks; an even number of microbatches, at least 2 x ranks",
    .formulas = "makespan  mT + (p-2)F                     (F = I = W, pairs as long as both ops)\n"
                "bubble    (p-2)F per rank\n"
                "peak      p+1 on every rank, weights twice",
    .drawing = "rank 0 |F0 F1 F2 F4 I4 W4 F5 F3------ ...F6------ B6--- ...F7------ B7--- I2 W2 I3 W3 |\n"
               "rank 1 |...F0 F4 F1 F5 F2 B4--- F6------ F3------ F7------ B6--- B2--- ...I7 I3 W7 W3 |\n"
               "rank 2 |...F4 F0 F5 F1 F6 B0--- F2------ F7------ F3------ B2--- B6--- ...I3 I7 W3 W7 |\n"
               "rank 3 |F4 F5 F6 F0 I0 W0 F1 F7------ ...F2------ B2--- ...F3------ B3--- I6 W6 I7 W7 |\n",
    .aliases = "dual-pipe, deepseek",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeDualpipe,
    .closedForm = closedFormDualpipe,
    .drawnMicrobatches = 8,
};

} // namespace stagewright::library
