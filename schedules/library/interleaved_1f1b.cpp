// Interleaved 1F1B (Megatron-LM, Narayanan et al. 2021, arXiv 2104.04473, section 2.2): v stages per rank in a loop.
//
// Microbatches go round in groups of q = m / max(1, ⌊m/p⌋): a rank runs one group through its first stage, then the
// same group through its second, and so on. Virtual op k has chunk ⌊(k mod qv)/q⌋ and microbatch ⌊k/(qv)⌋·q + k mod q;
// backwards take the chunks from last to first. Rank r warms up with min(mv, 2(p−1−r) + (v−1)q) forwards, then pairs F
// and B. Megatron requires m mod p = 0 (q = p); PyTorch relaxes it to m mod max(1, ⌊m/p⌋) = 0, and so does this.
#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

Result<Schedule> makeInterleaved1f1b(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    const auto group = loopGroup("interleaved-1f1b", p, m);
    if (v < 2)
        return fail(ErrorCode::Usage, fmt::format("interleaved-1f1b: {} stage per rank, 2 or more needed", v),
                    group ? "use 2 chunks, or 1f1b for one stage per rank" : "use 1f1b for one stage per rank");
    if (!group) return tl::unexpected(group.error());
    const int q = *group;
    Schedule out = draft(fmt::format("interleaved-1f1b v={}", v), p, p * v, m, Placement::loop(p, p * v));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(m) * static_cast<std::size_t>(v));
        oneForwardOneBackward(m * v, 2 * (p - 1 - r) + (v - 1) * q,
                              [&](OpKind kind, int k) { ops.push_back(loopedOp(kind, r, p, v, q, k)); });
    }
    return out;
}

ClosedForm closedFormInterleaved1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    ClosedForm form;
    if (m % p != 0) return form;
    const double t = forward + inputGrad + weightGrad;
    form.makespan = m * t + (p - 1) * t / v;
    if (m > p)
        for (int r = 0; r < p; ++r)
            form.peakActivation.push_back(static_cast<double>((v - 1) * p + 2 * (p - 1 - r) + 1) / v);
    return form;
}

} // namespace

extern const ScheduleInfo interleaved_1f1b;
constinit const ScheduleInfo interleaved_1f1b{
    .name = "interleaved-1f1b",
    .title = "Interleaved 1F1B (Megatron)",
    .summary = "v stages per rank divide the bubble by v, for v times the messages and more memory",
    .paper = "Narayanan et al. 2021, arXiv 2104.04473, section 2.2",
    .constraints = "2 or more chunks; microbatches a multiple of max(1, floor(m/p)), e.g. of the ranks",
    .formulas = "makespan  mT + (p-1)T/v                   (m a multiple of p)\n"
                "bubble    (p-1)T/v per rank\n"
                "peak      ((v-1)p + 2(p-1-r) + 1)/v on rank r (m a multiple of p, m > p)",
    .drawing = "rank 0 |F0F1F2F3F0F1F2F3............B0- ..B1- ..B2- ..B3- B0- B1- B2- B3- |\n"
               "rank 1 |..F0F1F2F3F0F1F2F3......B0- ..B1- ..B2- ..B3- B0- B1- B2- B3- ....|\n"
               "rank 2 |....F0F1F2F3F0F1F2..B0- F3B1- ..B2- ..B3- B0- B1- B2- B3- ........|\n"
               "rank 3 |......F0F1F2F3F0B0- F1B1- F2B2- F3B3- B0- B1- B2- B3- ............|\n"
               "the second F0 to F3 of a rank and its first B0 to B3 are of its second stage\n",
    .aliases = "interleaved, vpp, virtual-pipeline, megatron, ScheduleInterleaved1F1B",
    .fixedChunks = 0,
    .defaultChunks = 2,
    .make = makeInterleaved1f1b,
    .closedForm = closedFormInterleaved1f1b,
};

} // namespace stagewright::library
