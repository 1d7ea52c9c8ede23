// ZBV (Qi et al. 2024, arXiv 2401.10241, section 6): zero bubble with 1F1B's memory, two stages per rank in a V.
//
// Stage s < p is on rank s, stage s ≥ p on rank 2p−1−s: the loss is on rank 0. In the order that PyTorch fixed, rank r
// runs 2(p−r)−1 forwards of its first stage (0); r times F of both; p−r times F1 I1 W1; then F0 (if any) I0 W0 F1 I1 W1
// until all forwards are done; r times I0 I1; p−r times I0 W0; the other W. It is built for at least 2p−1 microbatches,
// and the surplus is dropped. No bubble in a rank's span only if F = I = W.
#include <algorithm>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeZbv(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int full = std::max(m, 2 * p - 1);
    Schedule out = draft("zbv", p, 2 * p, m, Placement::vShape(p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(6 * static_cast<std::size_t>(m));
        int next[3][2] = {}; // by kind F, I, W and by the rank's stage
        auto add = [&](OpKind kind, int chunk) {
            const int row = kind == OpKind::Forward ? 0 : kind == OpKind::InputGrad ? 1 : 2;
            const int microbatch = next[row][chunk]++;
            if (microbatch < m) ops.push_back(makeOp(kind, chunk == 0 ? r : 2 * p - 1 - r, microbatch));
        };
        auto backward = [&](int chunk) {
            add(OpKind::InputGrad, chunk);
            add(OpKind::WeightGrad, chunk);
        };
        for (int i = 0; i < 2 * (p - r) - 1; ++i) add(OpKind::Forward, 0);
        for (int i = 0; i < r; ++i) {
            add(OpKind::Forward, 1);
            add(OpKind::Forward, 0);
        }
        for (int i = 0; i < p - r; ++i) {
            add(OpKind::Forward, 1);
            backward(1);
        }
        while (next[0][1] < full || next[0][0] < full) {
            if (next[0][0] < full) add(OpKind::Forward, 0);
            backward(0);
            add(OpKind::Forward, 1);
            backward(1);
        }
        for (int i = 0; i < r; ++i) {
            add(OpKind::InputGrad, 0);
            add(OpKind::InputGrad, 1);
        }
        for (int i = 0; i < p - r; ++i) backward(0);
        while (next[2][1] < full) add(OpKind::WeightGrad, 1);
        while (next[2][0] < full) add(OpKind::WeightGrad, 0);
    }
    appendOptimizers(out, shape);
    return out;
}

ClosedForm closedFormZbv(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    if (shape.microbatches < 2 * shape.ranks - 1) return form;
    if (forward == inputGrad && inputGrad == weightGrad)
        form.makespan = (3 * shape.microbatches + (shape.ranks - 1) / 2.0) * forward;
    form.peakActivation.assign(static_cast<std::size_t>(shape.ranks), shape.ranks);
    return form;
}

} // namespace

extern const ScheduleInfo zbv;
constinit const ScheduleInfo zbv{
    .name = "zbv",
    .title = "ZBV (zero bubble in a V)",
    .summary = "two stages per rank in a V: no idle within a rank at equal costs, with 1F1B's peak on every rank",
    .paper = "Qi et al. 2024, arXiv 2401.10241, section 6; the order as PyTorch fixed it",
    .constraints = "any ranks, any microbatches; zero bubble for microbatches >= 2 ranks - 1 and F = I = W",
    .formulas = "makespan  mT + (p-1)F/2                   (F = I = W, m >= 2p-1)\n"
                "span      mT: no idle within a rank\n"
                "peak      p on every rank                 (m >= 2p-1)",
    .drawing =
        "rank 0 "
        "|F0F1F2F3F4F5F6F0I0W0F1I1W1F2I2W2F3I3W3F7I0W0F4I4W4I1W1F5I5W5I2W2F6I6W6I3W3F7I7W7I4W4I5W5I6W6I7W7......|\n"
        "rank 1 "
        "|..F0F1F2F3F4F0F5F1I0W0F2I1W1F3I2W2F6I0W0F4I3W3F7I1W1F5I4W4I2W2F6I5W5I3W3F7I6W6I4I7I5W4I6W5I7W6W7W7....|\n"
        "rank 2 "
        "|....F0F1F2F0F3F1F4F2I0W0F3I1W1F5I0W0F4I2W2F6I1W1F5I3W3F7I2W2F6I4W4I3W3F7I5W5I4I6I5I7I6W4I7W5W6W7W6W7..|\n"
        "rank 3 "
        "|......F0F0F1F1F2F2F3F3I0W0F4I0W0F4I1W1F5I1W1F5I2W2F6I2W2F6I3W3F7I3W3F7I4W4I4I5I5I6I6I7I7W4W5W6W7W5W6W7|\n",
    .aliases = "zb-v, ScheduleZBVZeroBubble, ZBVZeroBubble",
    .fixedChunks = 2,
    .defaultChunks = 2,
    .make = makeZbv,
    .closedForm = closedFormZbv,
    .parameters = optimizerParameters,
    .drawnMicrobatches = 8,
};

} // namespace stagewright::library
