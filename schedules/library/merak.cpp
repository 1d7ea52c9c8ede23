// Merak's shifted critical path (Lai et al. 2022, arXiv 2206.04959, and the authors' code): 1F1B with recomputation
// placed so that it delays as little as possible.
//
// Every forward keeps only its input, and R makes the activations again before B, except that
//  - the last rank recomputes nothing: its B follows at once;
//  - R comes before the wait for its gradient, so that it fills that wait;
//  - forwards whose R would lie on the critical path keep their activations: microbatch j of rank r with m − j + r < p
//  (not
//    on rank p−2), the first one on rank p−2; variant=full: the first two on rank p−2 and the first one on rank p−3;
//  - variant=full: rank p−2 runs its third forward before its first backward, which moves the path off the last rank.
#include <algorithm>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter merakParameters[] = {
    {"variant", "full", "pre|full",
     "pre: recomputation before the gradient arrives; full: also an earlier forward on the last rank but one", "2",
     "pre=early recomputation only"}};

bool keepsActivations(int p, int m, int rank, int microbatch, bool full)
{
    if (rank == p - 1) return true;
    if (rank == p - 2) return microbatch < (full ? 2 : 1);
    if (full && rank == p - 3 && microbatch == 0) return true;
    return m - microbatch + rank < p;
}

Result<Schedule> makeMerak(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const bool full = shape.parameter("variant") != "pre";
    Schedule out = draft("merak", p, p, m, Placement::loop(p, p));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(3 * static_cast<std::size_t>(m));
        const bool swapped = full && r == p - 2 && m >= 3;
        bool held = false; // rank p−2: B of microbatch 0 waits for the third forward
        oneForwardOneBackward(m, p - 1 - r, [&](OpKind kind, int microbatch) {
            if (kind == OpKind::Backward && swapped && microbatch == 0) {
                held = true;
                return;
            }
            if (kind == OpKind::Backward && !keepsActivations(p, m, r, microbatch, full))
                ops.push_back(makeOp(OpKind::Recompute, r, microbatch));
            ops.push_back(makeOp(kind, r, microbatch));
            if (held) {
                ops.push_back(makeOp(OpKind::Backward, r, 0));
                held = false;
            }
        });
    }
    return out;
}

// Inputs that wait for R weigh nothing here (their size is a stage's boundary): what counts is the kept microbatches in
// flight and the one that is being recomputed.
ClosedForm closedFormMerak(const Shape& shape, double, double, double)
{
    ClosedForm form;
    if (shape.ranks == 1) form.peakActivation = {1};
    return form;
}

} // namespace

extern const ScheduleInfo merak;
constinit const ScheduleInfo merak{
    .name = "merak",
    .title = "Merak (1F1B with shifted recomputation)",
    .summary =
        "1F1B that recomputes activations in the waits for gradients and keeps those whose recomputation would delay",
    .paper = "Lai et al. 2022, arXiv 2206.04959, and the authors' code",
    .constraints = "any ranks, any microbatches",
    .formulas =
        "recomputed  every microbatch but: all on rank p-1; m-j+r < p on ranks other than p-2; the first on rank\n"
        "            p-2 (two in the full variant); the first on rank p-3 (full variant)\n"
        "peak        the kept microbatches in flight, one recomputed, and the inputs of the others",
    .drawing = "rank 0 |F0 F1 F2 F3 R0 ...............B0--- ......B1--- ...B2--- ...B3--- |\n"
               "rank 1 |...F0 F1 F2 ............B0--- F3 R1 B1--- ...B2--- ...B3--- ......|\n"
               "rank 2 |......F0 F1 F2 ...B0--- ...B1--- F3 R2 B2--- R3 B3--- ............|\n"
               "rank 3 |.........F0 B0--- F1 B1--- F2 B2--- F3 B3--- .....................|\n",
    .aliases = "shifted-critical-path, merak-full",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeMerak,
    .closedForm = closedFormMerak,
    .parameters = merakParameters,
};

} // namespace stagewright::library
