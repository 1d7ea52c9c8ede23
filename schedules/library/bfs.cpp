// Breadth-first (Lamy-Poirier 2022, arXiv 2211.05953): looped stages, all microbatches of a stage before the next
// stage.
//
// A rank runs all forwards of its first stage, then of its second …; then all backwards of its last stage, of the one
// before …. A stage's weights are gathered, and its gradient reduced, once per step, which suits sharded weights.
// Within a stage the author runs backwards in rising order of microbatches, PyTorch in falling order.
#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter bfsParameters[] = {{"order", "ascending", "ascending|descending",
                                                "order of the microbatches in the backwards of a stage: ascending as "
                                                "the author runs it, descending as PyTorch does",
                                                "2", "descending=descending order"}};

int chunksOf(const Shape& shape) { return shape.chunks > 0 ? shape.chunks : 2; }

Result<Schedule> makeBfs(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = chunksOf(shape);
    const bool descending = shape.parameter("order") == "descending";
    Schedule out = draft(fmt::format("bfs v={}", v), p, p * v, m, Placement::loop(p, p * v));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m) * static_cast<std::size_t>(v));
        for (int chunk = 0; chunk < v; ++chunk)
            for (int j = 0; j < m; ++j) ops.push_back(makeOp(OpKind::Forward, chunk * p + r, j));
        for (int chunk = v - 1; chunk >= 0; --chunk)
            for (int j = 0; j < m; ++j)
                ops.push_back(makeOp(OpKind::Backward, chunk * p + r, descending ? m - 1 - j : j));
    }
    return out;
}

ClosedForm closedFormBfs(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int v = chunksOf(shape);
    const double t = forward + inputGrad + weightGrad;
    if (shape.microbatches >= shape.ranks || v == 1) form.makespan = shape.microbatches * t + (shape.ranks - 1) * t / v;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.microbatches);
    return form;
}

} // namespace

extern const ScheduleInfo bfs;
constinit const ScheduleInfo bfs{
    .name = "bfs",
    .title = "Breadth-first (looped BFS)",
    .summary =
        "looped stages, one whole pass of all microbatches at a time: weights gathered once a step, memory of GPipe",
    .paper = "Lamy-Poirier 2022, arXiv 2211.05953",
    .constraints = "any ranks, any microbatches; the makespan for microbatches >= ranks",
    .formulas = "makespan  mT + (p-1)T/v                   (m >= p)\n"
                "bubble    (p-1)T/v per rank\n"
                "peak      m on every rank",
    .drawing = "rank 0 |F0F1F2F3F0F1F2F3..................B0- B1- B2- B3- B0- B1- B2- B3- |\n"
               "rank 1 |..F0F1F2F3F0F1F2F3............B0- B1- B2- B3- B0- B1- B2- B3- ....|\n"
               "rank 2 |....F0F1F2F3F0F1F2F3......B0- B1- B2- B3- B0- B1- B2- B3- ........|\n"
               "rank 3 |......F0F1F2F3F0F1F2F3B0- B1- B2- B3- B0- B1- B2- B3- ............|\n",
    .aliases = "breadth-first, looped-bfs, ScheduleLoopedBFS, LoopedBFS, breadth-first-pp",
    .fixedChunks = 0,
    .defaultChunks = 2,
    .make = makeBfs,
    .closedForm = closedFormBfs,
    .parameters = bfsParameters,
};

} // namespace stagewright::library
