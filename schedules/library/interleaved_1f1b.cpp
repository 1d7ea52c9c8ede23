// Interleaved 1F1B (Megatron-LM, Narayanan et al. 2021, arXiv 2104.04473, section 2.2): v stages per rank in a loop.
//
// Microbatches go round in groups of q: a rank runs one group through its first stage, then the same group through its
// second, and so on. Virtual op k of whole groups has chunk ⌊(k mod qv)/q⌋ and microbatch ⌊k/(qv)⌋·q + k mod q; the
// last group has what is left. Backwards take the chunks from last to first. Rank r warms up with min(mv, 2(p−1−r) +
// (v−1)q) forwards, then pairs F and B.
//
// group=auto: q = m / max(1, ⌊m/p⌋), PyTorch's rule, which needs m mod max(1, ⌊m/p⌋) = 0 (p divides m: q = p, as in the
// paper). group=q: Megatron-LM's microbatch_group_size_per_vp_stage, any number of microbatches. Groups smaller than p
// come back to a rank's next stage before its list allows, and wait for themselves: such lists are refused with their
// cycle.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "schedules/library/draft.h"
#include "schedules/model/op_index.h"
#include "schedules/step/step_deadlock.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter interleaved1f1bParameters[] = {
    {"group", "auto", "auto|whole",
     "microbatches per group, from the ranks to all of them; the last group has what is left; auto: m / max(1, "
     "floor(m/p))",
     "8", "groups of {}"}};

// Whether groups of q can end for sure: none is smaller than the pipeline.
bool fillsPipeline(int p, int m, int q) { return q >= p && (m % q == 0 || m % q >= p); }

Schedule inGroups(const Shape& shape, int q)
{
    const int p = shape.ranks;
    const int v = shape.chunks;
    Schedule out =
        draft(fmt::format("interleaved-1f1b v={}", v), p, p * v, shape.microbatches, Placement::loop(p, p * v));
    for (int r = 0; r < p; ++r) {
        auto& ops = out.order[static_cast<std::size_t>(r)];
        ops.reserve(2 * static_cast<std::size_t>(shape.microbatches) * static_cast<std::size_t>(v));
        oneForwardOneBackward(shape.microbatches * v, 2 * (p - 1 - r) + (v - 1) * q,
                              [&](OpKind kind, int k) { ops.push_back(loopedOp(kind, r, shape, q, k)); });
    }
    return out;
}

std::vector<Wait> cycleOf(const Schedule& schedule)
{
    const auto cells = cellsOf(schedule);
    return cells ? findDeadlock(schedule, OpIndex(schedule, *cells), {}) : std::vector<Wait>();
}

// The smallest group that fills the pipeline; all microbatches as one group always end.
int smallestGroup(int p, int m)
{
    int q = std::min(p, m);
    while (q < m && !fillsPipeline(p, m, q)) ++q;
    return q;
}

// In the groups that the shape asks for; chunks are 2 or more.
Result<Schedule> inAskedGroups(const Shape& shape)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const std::string& asked = shape.parameter("group");
    const int smallest = smallestGroup(p, m);
    if (asked.empty() || asked == "auto") {
        auto group = loopGroup("interleaved-1f1b", p, m);
        if (group) return inGroups(shape, *group);
        group.error().remedy += fmt::format("; or give the size of the groups, group={}", smallest);
        return tl::unexpected(std::move(group.error()));
    }
    const int group = shape.number("group", p);
    const auto refused = [&](const std::string& why, int nearest) {
        return fail(ErrorCode::Usage,
                    fmt::format("interleaved-1f1b: groups of {} of {} microbatches on {} ranks: {}", group, m, p, why),
                    fmt::format("the nearest that works is group={}", nearest));
    };
    if (group > m) return refused("a group is larger than the batch", m);
    Schedule out = inGroups(shape, group);
    if (fillsPipeline(p, m, group)) return out;
    if (const auto cycle = cycleOf(out); !cycle.empty()) return refused(describeCycle(cycle), smallest);
    return out;
}

Result<Schedule> makeInterleaved1f1b(const Shape& given)
{
    Shape shape = given;
    if (shape.chunks == 0) shape.chunks = 2;
    if (shape.chunks > 1) return inAskedGroups(shape);
    const int asked = std::exchange(shape.chunks, 2);
    return fail(ErrorCode::Usage, fmt::format("interleaved-1f1b: {} stage per rank, 2 or more needed", asked),
                inAskedGroups(shape) ? "use 2 chunks, or 1f1b for one stage per rank"
                                     : "use 1f1b for one stage per rank");
}

ClosedForm closedFormInterleaved1f1b(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    const int p = shape.ranks;
    const int m = shape.microbatches;
    const int v = shape.chunks > 0 ? shape.chunks : 2;
    const std::string& asked = shape.parameter("group");
    const int q = asked.empty() || asked == "auto" ? m / std::max(1, m / p) : shape.number("group", p);
    ClosedForm form;
    if (!fillsPipeline(p, m, q)) return form;
    const double t = forward + inputGrad + weightGrad;
    form.makespan = m * t + (p - 1) * t / v;
    for (int r = 0; r < p; ++r)
        form.peakActivation.push_back(static_cast<double>(std::min(m * v, (v - 1) * q + 2 * (p - 1 - r) + 1)) / v);
    return form;
}

} // namespace

extern const ScheduleInfo interleaved_1f1b;
constinit const ScheduleInfo interleaved_1f1b{
    .name = "interleaved-1f1b",
    .title = "Interleaved 1F1B (Megatron)",
    .summary = "v stages per rank divide the bubble by v, for v times the messages and more memory",
    .paper = "Narayanan et al. 2021, arXiv 2104.04473, section 2.2",
    .constraints = "2 or more chunks; microbatches a multiple of max(1, floor(m/p)), e.g. of the ranks; any number "
                   "with groups of g, "
                   "all of p or more",
    .formulas = "makespan  mT + (p-1)T/v                   (groups of p or more)\n"
                "bubble    (p-1)T/v per rank\n"
                "peak      ((v-1)g + 2(p-1-r) + 1)/v on rank r, m at most (groups of g)",
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
    .parameters = interleaved1f1bParameters,
};

} // namespace stagewright::library
