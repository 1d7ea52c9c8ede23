// 1F1B (PipeDream-flush, arXiv 1806.03377; DAPPLE, arXiv 2007.01045): one forward, one backward.
//
// Rank r warms up with min(m, p−1−r) forwards; then each further forward is followed by the oldest backward; the rest
// are backwards. As fast as GPipe, but rank r never holds more than p−r microbatches.
#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeOneFOneB(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    Schedule out = draft("1f1b", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m));
        oneForwardOneBackward(m, p - 1 - r,
                              [&](OpKind kind, int microbatch) { ops.push_back(makeOp(kind, r, microbatch)); });
    }
    return out;
}

} // namespace

extern const ScheduleInfo one_f_one_b;
constinit const ScheduleInfo one_f_one_b{
    .name = "1f1b",
    .title = "1F1B (one forward, one backward)",
    .summary = "GPipe's time with at most p-r microbatches in memory; sensitive to link latency",
    .paper = "Narayanan et al. 2019, arXiv 1806.03377 (PipeDream-flush); Fan et al. 2021, arXiv 2007.01045 (DAPPLE)",
    .constraints = "any ranks, any microbatches",
    .formulas = "makespan  (m+p-1)T\n"
                "bubble    (p-1)T per rank, a share of (p-1)/(m+p-1)\n"
                "peak      min(m, p-r) on rank r",
    .drawing = "rank 0 |F0 F1 F2 F3 ..................B0--- ...B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 ............B0--- F3 B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 ......B0--- F2 B1--- F3 B2--- ...B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- ..................|\n",
    .aliases = "one-f-one-b, pipedream-flush, dapple, Schedule1F1B",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeOneFOneB,
    .closedForm = closedForm1f1b,
};

} // namespace stagewright::library
