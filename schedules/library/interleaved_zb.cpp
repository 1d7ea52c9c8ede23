// Interleaved zero bubble (PyTorch's InterleavedZeroBubble; Qi et al. 2024, arXiv 2401.10241): ZB-H1 over looped
// stages.
//
// The stages go round as in interleaved 1F1B, in groups of q = m / max(1, ⌊m/p⌋) microbatches, but rank r warms up with
// only (v−1)q + p−1−r forwards: one per hop, not two. The backward is split; W starts once r backwards are done and
// fills what was bubble. One stage per rank gives ZB-H1.
//
// w=now runs each W directly after its I, as interleaving with small groups does (PipeOffload, Wan et al. 2025, arXiv
// 2503.01328): the bubble stays, but rank r holds r/v microbatches less. group=g sets q, down to half of the ranks:
// less memory for a bubble of (p−g)(v−1) ops more.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter interleavedZbParameters[] = {
    {"group", "auto", "auto|whole",
     "microbatches per group, from half the ranks to all of them; auto: m / max(1, floor(m/p))", "2", "groups of {}"},
    {"w", "late", "late|now",
     "late: weight gradients fill bubbles once r backwards are done; now: each directly after its input gradient", "2",
     "now=W at once"},
    optimizerParameter};

Result<int> groupOf(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    if (shape.parameter("group") == "auto") return loopGroup("interleaved-zb", p, m);
    const int group = shape.number("group", p);
    const int least = (p + 1) / 2;
    const int nearest = std::clamp(group, least, p);
    const auto works = [&](int, int microbatches) { return microbatches % nearest == 0; };
    if (group != nearest)
        return fail(ErrorCode::Usage,
                    fmt::format("interleaved-zb: groups of {} on {} ranks; {} to {} work", group, p, least, p),
                    m % nearest == 0 ? fmt::format("the nearest that works is group={}", nearest)
                                     : fmt::format("take group={}; {}", nearest, nearestThatWork(p, m, works)));
    if (!works(p, m))
        return fail(ErrorCode::Usage,
                    fmt::format("interleaved-zb: {} microbatches in groups of {}; a multiple is needed", m, group),
                    nearestThatWork(p, m, works));
    return group;
}

Result<Schedule> makeInterleavedZb(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    STAGEWRIGHT_TRY(const auto group, groupOf(shape));
    const int q = group;
    const bool late = shape.parameter("w") != "now";
    const int total = m * v;
    Schedule out = draft(fmt::format("interleaved-zb v={}", v), p, p * v, m, Placement::loop(p, p * v));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(total));
        auto add = [&](OpKind kind, int k) { ops.push_back(loopedOp(kind, r, shape, q, k)); };
        int weight = 0;
        oneForwardOneBackward(total, (v - 1) * q + p - 1 - r, [&](OpKind kind, int k) {
            add(kind == OpKind::Backward ? OpKind::InputGrad : kind, k);
            if (kind == OpKind::Backward && k >= (late ? r : 0)) add(OpKind::WeightGrad, weight++);
        });
        while (weight < total) add(OpKind::WeightGrad, weight++);
    }
    appendOptimizers(out, shape);
    return out;
}

ClosedForm closedFormInterleavedZb(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    const auto group = groupOf(shape);
    if (!group || m < p || *group > p) return form;
    const int q = *group;
    const bool late = shape.parameter("w") != "now";
    if (forward == inputGrad && inputGrad == weightGrad && (!late || q == p))
        form.makespan = 3 * m * forward + ((late ? 1 : 2) * (p - 1) + (p - q) * (v - 1)) * forward / v;
    for (int r = 0; r < p; ++r)
        form.peakActivation.push_back(static_cast<double>(q * (v - 1) + p - (late ? 0 : r)) / v);
    return form;
}

} // namespace

extern const ScheduleInfo interleaved_zb;
constinit const ScheduleInfo interleaved_zb{
    .name = "interleaved-zb",
    .title = "Interleaved zero bubble (ZB1P over looped stages)",
    .summary =
        "interleaved 1F1B with a split backward and half the warm-up: ZB-H1's bubble divided by the stages per rank",
    .paper = "Qi et al. 2024, arXiv 2401.10241; the looped form is PyTorch's InterleavedZeroBubble; group and w=now: "
             "Wan et al. "
             "2025, arXiv 2503.01328",
    .constraints = "microbatches a multiple of max(1, floor(m/p)), e.g. of the ranks; or of the group if one is given",
    .formulas = "makespan  mT + (p-1)F/v                   (F = I = W, m a multiple of p)\n"
                "          mT + (2(p-1) + (p-g)(v-1))F/v   (F = I = W, w=now, groups of g)\n"
                "peak      (g(v-1) + p)/v on every rank; (g(v-1) + p-r)/v on rank r (w=now)",
    .drawing = "rank 0 |F0F1F2F3F0F1F2F3......I0W0I1W1I2W2I3W3I0W0I1W1I2W2I3W3|\n"
               "rank 1 |..F0F1F2F3F0F1F2....I0F3I1W0I2W1I3W2I0W3I1W0I2W1I3W2W3|\n"
               "rank 2 |....F0F1F2F3F0F1..I0F2I1F3I2W0I3W1I0W2I1W3I2W0I3W1W2W3|\n"
               "rank 3 |......F0F1F2F3F0I0F1I1F2I2F3I3W0I0W1I1W2I2W3I3W0W1W2W3|\n",
    .aliases = "zb1p-interleaved, ScheduleInterleavedZeroBubble, InterleavedZeroBubble, FlexibleInterleaved1F1B, GIS",
    .fixedChunks = 0,
    .defaultChunks = 2,
    .make = makeInterleavedZb,
    .closedForm = closedFormInterleavedZb,
    .parameters = interleavedZbParameters,
};

} // namespace stagewright::library
