// Chimera (Li & Hoefler 2021, arXiv 2107.06925): f pairs of pipelines in opposite directions over the same ranks.
//
// D = p ranks, even; 2f pipelines, each with its own copy of the weights. Down pipeline i has stage s on rank (s +
// iD/f) mod D, up pipeline i is its mirror. Microbatches are dealt in blocks: pipeline q (downs first) has m/(2f)
// consecutive ones.
//
// The order comes from slots. A block has D slots, in which each pipeline starts D/(2f) items two slots apart: in a
// forward block item k runs stage s at slot 2k + s, in a backward block at 2k + D−1−s. All stages of all pipelines then
// fall into different slots of a rank, and blocks follow each other without a gap but D/f − 2 slots at the end.
//   direct    F block, B block, …: as in the paper's figure 2, for F = B
//   doubling  F of two microbatches, B of the first, B of the second (section 3.5): at B = 2F all slots are equally
//             long
//   halving   F, B of the first half of a microbatch, B of the second: the same with half the memory
// With two backwards to a forward the slots alone would hold more than direct does (twice that under doubling), since
// two blocks of backwards follow one of forwards. So there they are only the order of preference: in each slot a rank
// takes the op with the least one that is ready and fits into that memory, with at most D/(2f) items of a pipeline
// under way. No slot is lost by that.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "schedules/library/draft.h"

namespace stagewright::library {

namespace {

constexpr ScheduleParameter chimeraParameters[] = {
    {"f", "1", "whole", "pairs of pipelines; a divisor of half the ranks; 2f copies of the weights", "2", "{} pairs"},
    {"join", "direct", "direct|doubling|halving",
     "what balances B = 2F: nothing, forwards over two microbatches, or backwards over half microbatches", "2",
     "doubling=doubled forwards|halving=halved backwards"},
    {"sync", "end", "end|eager|eager-opt",
     "when copies' gradients are summed: after the step, after a copy's last backward, or only there if idle slots "
     "follow",
     "2", "eager=eager sums|eager-opt=eager sums in idle slots"}};

enum class Join {
    Direct,
    Doubling,
    Halving,
};

struct Plan {
    int ranks;
    int microbatches;
    int pairs;
    Join join;

    int pipelines() const { return 2 * pairs; }
    int perPipeline() const { return microbatches / pipelines(); }
    int itemSize() const { return join == Join::Doubling ? 2 : 1; } // microbatches of a forward
    int itemsPerPipeline() const { return perPipeline() / itemSize(); }
    int itemsPerBlock() const { return ranks / pipelines(); }
    int backwardsPerItem() const { return join == Join::Direct ? 1 : 2; }
    int blocksPerUnit() const { return 1 + backwardsPerItem(); }
    int rankOf(int pipeline, int stage) const
    {
        const int down = (stage + pipeline % pairs * (ranks / pairs)) % ranks;
        return pipeline < pairs ? down : ranks - 1 - down;
    }
};

Join joinOf(const Shape& shape)
{
    const std::string& join = shape.parameter("join");
    return join == "doubling" ? Join::Doubling : join == "halving" ? Join::Halving : Join::Direct;
}

Result<Plan> planOf(const Shape& shape)
{
    const Plan plan{shape.ranks, shape.microbatches, shape.number("f", 1), joinOf(shape)};
    const int factor = plan.pipelines() * plan.itemSize();
    const auto works = [&](int p, int m) { return p % (2 * plan.pairs) == 0 && m % factor == 0; };
    if (works(plan.ranks, plan.microbatches)) return plan;
    if (plan.ranks % 2 != 0)
        return fail(ErrorCode::Usage, fmt::format("chimera: {} ranks; two directions need an even number", plan.ranks),
                    nearestThatWork(plan.ranks, plan.microbatches, works));
    const int half = plan.ranks / 2;
    if (half % plan.pairs != 0) {
        int below = std::min(plan.pairs, half);
        while (half % below != 0) --below;
        const int multiple = 2 * below * plan.itemSize();
        const bool fits = plan.microbatches % multiple == 0;
        return fail(ErrorCode::Usage,
                    fmt::format("chimera: {} pairs of pipelines on {} ranks; a divisor of {} is needed", plan.pairs,
                                plan.ranks, half),
                    fits ? fmt::format("the nearest below that works is f={}", below)
                         : fmt::format("the nearest below that works is f={} with {} microbatches", below,
                                       std::max(1, plan.microbatches / multiple) * multiple));
    }
    return fail(ErrorCode::Usage,
                fmt::format("chimera: {} microbatches for {} pipelines{}; a multiple of {} is needed",
                            plan.microbatches, plan.pipelines(),
                            plan.join == Join::Doubling ? ", two to a forward" : "", factor),
                nearestThatWork(plan.ranks, plan.microbatches, works));
}

Placement placementOf(const Plan& plan)
{
    std::vector<std::vector<Placement::Copy>> copies(static_cast<std::size_t>(plan.ranks));
    for (int s = 0; s < plan.ranks; ++s)
        for (int q = 0; q < plan.pipelines(); ++q)
            copies[static_cast<std::size_t>(s)].push_back({q * plan.perPipeline(), plan.rankOf(q, s)});
    return Placement::of(std::move(copies));
}

struct Slot {
    int slot;
    Op op;
};

// The slots of an item's forward and of its backwards (part 0, and 1 where there are two) in one pipeline.
int forwardSlot(const Plan& plan, int item, int stage)
{
    const int unit = item / plan.itemsPerBlock();
    return unit * plan.blocksPerUnit() * plan.ranks + 2 * (item % plan.itemsPerBlock()) + stage;
}
int backwardSlot(const Plan& plan, int item, int part, int stage)
{
    const int unit = item / plan.itemsPerBlock();
    const int inUnit = plan.backwardsPerItem() * (item % plan.itemsPerBlock()) + part;
    return (unit * plan.blocksPerUnit() + 1) * plan.ranks + 2 * inUnit + plan.ranks - 1 - stage;
}

Op forwardOf(const Plan& plan, int pipeline, int stage, int item)
{
    Op op = makeOp(OpKind::Forward, stage, pipeline * plan.perPipeline() + item * plan.itemSize());
    op.count = static_cast<std::uint16_t>(plan.itemSize());
    return op;
}
Op backwardOf(const Plan& plan, int pipeline, int stage, int item, int part)
{
    Op op = makeOp(OpKind::Backward, stage, pipeline * plan.perPipeline() + item * plan.itemSize());
    if (plan.join == Join::Doubling) op.microbatch += part;
    if (plan.join == Join::Halving) op.half = static_cast<std::uint8_t>(part + 1);
    return op;
}

// Every rank's ops by slot.
std::vector<std::vector<Slot>> bySlot(const Plan& plan)
{
    std::vector<std::vector<Slot>> rows(static_cast<std::size_t>(plan.ranks));
    for (int q = 0; q < plan.pipelines(); ++q)
        for (int s = 0; s < plan.ranks; ++s) {
            auto& row = rows[static_cast<std::size_t>(plan.rankOf(q, s))];
            for (int item = 0; item < plan.itemsPerPipeline(); ++item) {
                row.push_back({forwardSlot(plan, item, s), forwardOf(plan, q, s, item)});
                row.push_back({backwardSlot(plan, item, 0, s), backwardOf(plan, q, s, item, 0)});
            }
        }
    for (auto& row : rows)
        std::sort(row.begin(), row.end(), [](const Slot& a, const Slot& b) { return a.slot < b.slot; });
    return rows;
}

// Items that each rank holds at most under direct concatenation.
std::vector<int> directPeaks(const Plan& plan)
{
    std::vector<int> peaks;
    for (const auto& row : bySlot({plan.ranks, 2 * plan.ranks, plan.pairs, Join::Direct})) { // two units
        int held = 0;
        int peak = 0;
        for (const Slot& slot : row) peak = std::max(peak, held += slot.op.kind == OpKind::Forward ? 1 : -1);
        peaks.push_back(peak);
    }
    return peaks;
}

// Every rank's ops where an item has two backwards: run slot by slot, the least slot first of what is ready and fits.
std::vector<std::vector<Slot>> byReadiness(const Plan& plan)
{
    struct Done {
        int forwards = 0;  // items
        int backwards = 0; // halves of items
    };
    struct Pick {
        int preference = std::numeric_limits<int>::max();
        int pipeline = 0;
        int stage = 0;
        bool backward = false;
    };
    const int d = plan.ranks;
    const int items = plan.itemsPerPipeline();
    const std::vector<int> most = directPeaks(plan);
    std::vector<std::vector<Slot>> rows(static_cast<std::size_t>(d));
    for (auto& row : rows) row.reserve(3 * static_cast<std::size_t>(items * plan.pipelines()));
    std::vector<std::vector<Done>> done(static_cast<std::size_t>(plan.pipelines()),
                                        std::vector<Done>(static_cast<std::size_t>(d)));
    std::vector<int> held(static_cast<std::size_t>(d)); // halves of items
    std::vector<Pick> picks(static_cast<std::size_t>(d));
    int left = 3 * items * plan.pipelines() * d;
    for (int slot = 0; left > 0; ++slot) {
        std::fill(picks.begin(), picks.end(), Pick());
        for (int q = 0; q < plan.pipelines(); ++q) {
            const auto& stages = done[static_cast<std::size_t>(q)];
            for (int s = 0; s < d; ++s) {
                const auto rank = static_cast<std::size_t>(plan.rankOf(q, s));
                const auto here = static_cast<std::size_t>(s);
                const Done& own = stages[here];
                Pick& pick = picks[rank];
                const bool arrived = s == 0 ? own.forwards - own.backwards / 2 < plan.itemsPerBlock()
                                            : own.forwards < stages[here - 1].forwards;
                if (own.forwards < items && arrived && held[rank] + 2 <= 2 * most[rank])
                    if (const int at = forwardSlot(plan, own.forwards, s); at < pick.preference)
                        pick = {at, q, s, false};
                const bool returned = s + 1 == d || own.backwards < stages[here + 1].backwards;
                if (own.backwards < 2 * own.forwards && returned)
                    if (const int at = backwardSlot(plan, own.backwards / 2, own.backwards % 2, s);
                        at < pick.preference)
                        pick = {at, q, s, true};
            }
        }
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const auto& [preference, q, s, backward] = picks[r];
            if (preference == std::numeric_limits<int>::max()) continue;
            Done& own = done[static_cast<std::size_t>(q)][static_cast<std::size_t>(s)];
            if (backward) {
                rows[r].push_back({slot, backwardOf(plan, q, s, own.backwards / 2, own.backwards % 2)});
                ++own.backwards;
            } else {
                rows[r].push_back({slot, forwardOf(plan, q, s, own.forwards++)});
            }
            held[r] += backward ? -1 : 2;
            --left;
        }
    }
    return rows;
}

// REDUCE_GRAD after the last backward of each stage copy; `onlyBeforeIdle`: where an idle slot follows on the rank.
std::vector<Op> withReductions(const std::vector<Slot>& row, bool onlyBeforeIdle)
{
    std::vector<Op> out;
    bool idleFollows = false;
    std::vector<int> seen;
    for (std::size_t i = row.size(); i-- > 0;) { // from behind: the first backward met of a stage is its last
        const Op& op = row[i].op;
        if (i + 1 < row.size() && row[i + 1].slot > row[i].slot + 1) idleFollows = true;
        const bool last = op.kind == OpKind::Backward && std::find(seen.begin(), seen.end(), op.stage) == seen.end();
        if (last) {
            seen.push_back(op.stage);
            if (!onlyBeforeIdle || idleFollows) out.push_back(makeOp(OpKind::ReduceGrad, op.stage));
        }
        out.push_back(op);
    }
    std::reverse(out.begin(), out.end());
    return out;
}

Result<Schedule> makeChimera(const Shape& shape)
{
    STAGEWRIGHT_TRY(auto plan, planOf(shape));
    const int d = plan.ranks;
    Schedule out = draft("chimera", d, d, plan.microbatches, placementOf(plan));
    const auto rows = plan.join == Join::Direct ? bySlot(plan) : byReadiness(plan);
    const std::string& sync = shape.parameter("sync");
    for (int r = 0; r < d; ++r) {
        const auto& row = rows[static_cast<std::size_t>(r)];
        auto& ops = out.order[static_cast<std::size_t>(r)];
        if (sync == "eager" || sync == "eager-opt") {
            ops = withReductions(row, sync == "eager-opt");
        } else {
            ops.reserve(row.size());
            for (const Slot& slot : row) ops.push_back(slot.op);
        }
    }
    return out;
}

ClosedForm closedFormChimera(const Shape& shape, double forward, double inputGrad, double weightGrad)
{
    ClosedForm form;
    const Plan plan{shape.ranks, shape.microbatches, shape.number("f", 1), joinOf(shape)};
    const int d = plan.ranks;
    const int m = plan.microbatches;
    const double backward = inputGrad + weightGrad;
    const int tail = d / plan.pairs - 2; // idle slots
    if (plan.join == Join::Direct) {
        if (m % d != 0) return form;
        const int units = m / d;
        if (backward == forward)
            form.makespan = (2 * m + tail) * forward;
        else if (backward == 2 * forward && plan.pairs == 1)
            form.makespan = (units * (4 * d - 2) + d - 2) * forward;
    } else if (backward == 2 * forward && m % (plan.itemSize() * d) == 0) {
        form.makespan = (3 * m + plan.itemSize() * tail) * forward;
    }
    if (plan.pairs == 1 && m % (plan.itemSize() * d) == 0)
        for (int r = 0; r < d; ++r) {
            const int items = d / 2 + 1 + std::min(r, d - 1 - r);
            form.peakActivation.push_back(plan.itemSize() * items);
        }
    return form;
}

} // namespace

extern const ScheduleInfo chimera;
constinit const ScheduleInfo chimera{
    .name = "chimera",
    .title = "Chimera (bidirectional pipelines)",
    .summary = "pipelines in opposite directions fill each other's bubbles; weights held 2f times, gradients summed "
               "over copies",
    .paper = "Li & Hoefler 2021, arXiv 2107.06925",
    .constraints =
        "even ranks; f a divisor of half the ranks; microbatches a multiple of 2f (of 4f under doubling); closed "
        "forms for a multiple of the ranks (of twice the ranks under doubling)",
    .formulas = "makespan  (2m + p/f - 2)F                 (B = F, m = Kp)\n"
                "          (K(4p-2) + p-2)F                (B = 2F, f = 1, direct)\n"
                "          (3m + 2(p/f-2))F                (B = 2F, doubling);  (3m + p/f-2)F  (B = 2F, halving)\n"
                "peak      p/2 + 1 + min(r, p-1-r)         (f = 1; twice that under doubling)",
    .drawing = "rank 0 |F0 F1 ...F2 B2--- F3 B3--- ...B0--- ......B1--- |\n"
               "rank 1 |...F0 F2 F1 F3 ...B2--- B0--- B3--- B1--- ......|\n"
               "rank 2 |...F2 F0 F3 F1 ...B0--- B2--- B1--- B3--- ......|\n"
               "rank 3 |F2 F3 ...F0 B0--- F1 B1--- ...B2--- ......B3--- |\n",
    .aliases = "bidirectional",
    .fixedChunks = 1,
    .defaultChunks = 1,
    .make = makeChimera,
    .closedForm = closedFormChimera,
    .parameters = chimeraParameters,
};

} // namespace stagewright::library
