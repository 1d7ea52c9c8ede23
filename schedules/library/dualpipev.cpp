// DualPipeV (DeepSeek-AI's DualPipe code; Qi 2024, "cut in half"): DualPipe folded into a V.
//
// DualPipe's two halves do the same work mirrored; cutting it in half leaves one direction over 2p stages in a V, each
// stage once. Rank r holds stages r and 2p−1−r; its phases are the two stages.
#include <fmt/format.h>

#include "schedules/library/draft.h"
#include "schedules/library/dual_pipe_list.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeDualpipev(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    if (m < 2 * p)
        return fail(ErrorCode::Usage,
                    fmt::format("dualpipev: {} microbatches on {} ranks; at least 2 × {} are needed", m, p, p),
                    fmt::format("the nearest that works is {} microbatches", 2 * p));
    Schedule out = draft("dualpipev", p, 2 * p, m, Placement::vShape(p));
    out.paired.resize(out.order.size());
    for (int r = 0; r < p; ++r) {
        DualPipeList list = dualPipeList({r, 0}, {2 * p - 1 - r, 0}, r, p, m);
        out.order[static_cast<std::size_t>(r)] = std::move(list.ops);
        out.paired[static_cast<std::size_t>(r)] = std::move(list.paired);
    }
    return out;
}

ClosedForm closedFormDualpipev(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (forward == inputGrad && inputGrad == weightGrad)
        form.makespan = (3 * shape.microbatches + shape.ranks - 1) * forward;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.ranks + 0.5);
    return form;
}

} // namespace

extern const ScheduleInfo dualpipev;
constinit const ScheduleInfo dualpipev{
    .name = "dualpipev",
    .title = "DualPipeV (DualPipe in a V)",
    .summary = "DualPipe cut in half: the same overlap with every stage once, two stages per rank in a V",
    .paper =
        "the code of DeepSeek-AI's DualPipe (arXiv 2412.19437); Qi 2024, DualPipe could be better without the dual",
    .constraints = "microbatches >= 2 x ranks",
    .formulas = "makespan  mT + (p-1)F                     (F = I = W, pairs as long as both ops)\n"
                "bubble    (p-1)F per rank\n"
                "peak      p + 1/2 on every rank",
    .drawing = "rank 0 |F0F1F2F3F4F5F6F0I0W0F1I1W1F2I2W2F3F7--- ......F4--- B4- ..F5--- B5- ..F6--- B6- ..F7--- B7- "
               "I4W4I5W5I6W6I7W7|\n"
               "rank 1 |..F0F1F2F3F4F0F5F1I0W0F2I1W1F3F6--- ....F4--- F7--- F5--- B4- ..F6--- B5- ..F7--- B6- B4- "
               "..I7I5W7I6W5I7W6W7|\n"
               "rank 2 |....F0F1F2F0F3F1F4F2I0W0F3F5--- ..F4--- F6--- F5--- F7--- F6--- B4- ..F7--- B5- B4- ..B6- "
               "I5..I7I6W5I7W7W6W7|\n"
               "rank 3 |......F0F0F1F1F2F2F3F3F4B0- F4--- F5--- F5--- F6--- F6--- F7--- F7--- B4- B4- ..B5- B5- "
               "..I6I6..I7I7W6W6W7W7|\n",
    .aliases = "dual-pipe-v, ScheduleDualPipeV, cut-in-half",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeDualpipev,
    .closedForm = closedFormDualpipev,
    .drawnMicrobatches = 8,
};

} // namespace stagewright::library
