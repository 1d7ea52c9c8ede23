// eager-1F1B (Zhuang et al. 2022, arXiv 2211.05322, section 4): 1F1B that warms up nearly twice as deep.
//
// Rank r starts with min(m, 2(p−r)−1) forwards, then backwards and forwards alternate. No gain without communication;
// with it a forward transfer has a full slot of slack, so that the latency is paid once and not once per p
// microbatches.
#include <algorithm>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeEager1f1b(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("eager-1f1b", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m));
        oneForwardOneBackward(m, 2 * (p - r - 1),
                              [&](OpKind kind, int microbatch) { ops.push_back(makeOp(kind, r, microbatch)); });
    }
    return out;
}

ClosedForm closedFormEager1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    form.makespan = (shape.microbatches + shape.ranks - 1) * (forward + inputGrad + weightGrad);
    for (int r = 0; r < shape.ranks; ++r)
        form.peakActivation.push_back(std::min(shape.microbatches, 2 * (shape.ranks - r) - 1));
    return form;
}

} // namespace

extern const ScheduleInfo eager_1f1b;
constinit const ScheduleInfo eager_1f1b{
    .name = "eager-1f1b",
    .title = "Eager 1F1B (deep warm-up)",
    .summary = "1F1B with nearly twice its warm-up: slow links hide behind computation, for nearly twice the memory",
    .paper = "Zhuang et al. 2022, arXiv 2211.05322, section 4",
    .constraints = "any ranks, any microbatches",
    .formulas = "makespan  (m+p-1)T; with latency c per hop (m+p-1)T + 2(p-1)c while c <= 1.5F at B = 2F\n"
                "bubble    (p-1)T per rank\n"
                "peak      min(m, 2(p-r)-1) on rank r",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................B0--- ...B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 F3 .........B0--- ...B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 F2 ...B0--- F3 B1--- ...B2--- ...B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- ..................|\n",
    .aliases = "eager, overlap-friendly, alpa-eager, PiPPy Schedule1F1B",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeEager1f1b,
    .closedForm = closedFormEager1f1b,
};

} // namespace stagewright::library
