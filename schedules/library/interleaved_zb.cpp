// Interleaved zero bubble (PyTorch's InterleavedZeroBubble; Qi et al. 2024, arXiv 2401.10241): ZB-H1 over looped stages.
//
// The stages go round as in interleaved 1F1B, in groups of q = m / max(1, ⌊m/p⌋) microbatches, but rank r warms up with only
// (v−1)q + p−1−r forwards: one per hop, not two. The backward is split; W starts once r backwards are done and fills what
// was bubble. One stage per rank gives ZB-H1.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

bool works(int ranks, int microbatches)
{
    return microbatches >= 1 && microbatches % std::max(1, microbatches / ranks) == 0;
}

Result<Schedule> make(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    const int groups = std::max(1, m / p);
    if (!works(p, m)) {
        int below = m;
        int above = m;
        while (!works(p, below))
            --below;
        while (!works(p, above))
            ++above;
        return fail(ErrorCode::Usage,
                    fmt::format("interleaved-zb: {} microbatches do not divide into {} groups on {} ranks", m, groups, p),
                    fmt::format("the nearest that work are {} and {} microbatches", below, above));
    }
    const int q = m / groups;
    const int total = m * v;
    Schedule out = draft(fmt::format("interleaved-zb v={}", v), p, p * v, m, Placement::loop(p, p * v));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(total));
        auto add = [&](OpKind kind, int k) {
            const int chunk = (k % (q * v)) / q;
            const int stage = (kind == OpKind::Forward ? chunk : v - 1 - chunk) * p + r;
            ops.push_back(makeOp(kind, stage, k / (q * v) * q + k % q));
        };
        int forward = 0;
        int weight = 0;
        while (forward < std::min(total, (v - 1) * q + p - 1 - r))
            add(OpKind::Forward, forward++);
        for (int k = 0; k < total; ++k) {
            if (forward < total) add(OpKind::Forward, forward++);
            add(OpKind::InputGrad, k);
            if (k >= r) add(OpKind::WeightGrad, weight++);
        }
        while (weight < total)
            add(OpKind::WeightGrad, weight++);
    }
    appendOptimizers(out, shape);
    return out;
}

ClosedForm closedForm(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    if (m % p != 0) return form;
    if (forward == inputGrad && inputGrad == weightGrad)
        form.makespan = 3 * m * forward + (p - 1) * forward / v;
    form.peakActivation.assign(static_cast<std::size_t>(p), p);
    return form;
}

} // namespace

extern const ScheduleInfo interleaved_zb;
constinit const ScheduleInfo interleaved_zb{
    .name = "interleaved-zb",
    .title = "Interleaved zero bubble (ZB1P over looped stages)",
    .summary = "interleaved 1F1B with a split backward and half the warm-up: ZB-H1's bubble divided by the stages per rank",
    .paper = "Qi et al. 2024, arXiv 2401.10241; the looped form is PyTorch's InterleavedZeroBubble",
    .constraints = "microbatches a multiple of max(1, floor(m/p)), e.g. of the ranks",
    .formulas = "makespan  mT + (p-1)F/v                   (F = I = W, m a multiple of p)\n"
                "bubble    (p-1)F/v per rank\n"
                "peak      p on every rank                 (m a multiple of p)",
    .drawing = "rank 0 |F0F1F2F3F0F1F2F3......I0W0I1W1I2W2I3W3I0W0I1W1I2W2I3W3|\n"
               "rank 1 |..F0F1F2F3F0F1F2....I0F3I1W0I2W1I3W2I0W3I1W0I2W1I3W2W3|\n"
               "rank 2 |....F0F1F2F3F0F1..I0F2I1F3I2W0I3W1I0W2I1W3I2W0I3W1W2W3|\n"
               "rank 3 |......F0F1F2F3F0I0F1I1F2I2F3I3W0I0W1I1W2I2W3I3W0W1W2W3|\n",
    .aliases = "zb1p-interleaved, ScheduleInterleavedZeroBubble, InterleavedZeroBubble, FlexibleInterleaved1F1B",
    .fixedChunks = 0,
    .defaultChunks = 2,
    .make = make,
    .closedForm = closedForm,
    .parameters = optimizerParameters,
};

} // namespace stagewright::library
