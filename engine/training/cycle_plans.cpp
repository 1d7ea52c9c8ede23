#include "engine/training/cycle_plans.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "engine/training/training.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

Schedule withoutFillers(Schedule schedule)
{
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const std::vector<Op> list = std::move(schedule.order[rank]);
        std::vector<std::uint32_t> paired;
        schedule.order[rank].clear();
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (fillsGaps(list[i].kind)) continue;
            const auto& pairs = rank < schedule.paired.size() ? schedule.paired[rank] : paired;
            if (std::find(pairs.begin(), pairs.end(), i) != pairs.end())
                paired.push_back(static_cast<std::uint32_t>(schedule.order[rank].size()));
            schedule.order[rank].push_back(list[i]);
        }
        if (rank < schedule.paired.size()) schedule.paired[rank] = std::move(paired);
    }
    schedule.name.clear();
    return schedule;
}

// A cycle of one rank, in the order in which it runs.
class RankCycle {
public:
    RankCycle(std::vector<ExecutionPlan>& plans, int rank, int& pieces) : m_plans(plans), m_rank(rank), m_pieces(pieces)
    {
    }

    Result<void> refreshes()
    {
        for (const int stage : m_plans.front().ranks[at()].stages) STAGEWRIGHT_CHECK(refreshesOf(stage));
        return {};
    }

private:
    struct Place {
        std::size_t step;
        std::size_t position;
        auto operator<=>(const Place&) const = default;
    };
    std::size_t at() const { return static_cast<std::size_t>(m_rank); }
    PlannedOp& op(const Place& place) { return m_plans[place.step].ranks[at()].ops[place.position]; }

    tl::unexpected<Error> refused(const Place& place, const std::string& what, const char* remedy)
    {
        return fail(
            ErrorCode::Usage,
            fmt::format("rank {}, step {} of the cycle, {}: {}", m_rank, place.step + 1, toText(op(place).op), what),
            remedy);
    }

    Result<void> refreshesOf(int stage)
    {
        std::vector<Place> factors, inversions;
        std::map<std::pair<bool, int>, Place> passes; // of the first step: (F, else I or B; microbatch)
        std::size_t expected = 0;
        for (std::size_t step = 0; step < m_plans.size(); ++step) {
            const auto& ops = m_plans[step].ranks[at()].ops;
            for (std::size_t i = 0; i < ops.size(); ++i) {
                const Op& one = ops[i].op;
                if (static_cast<int>(one.stage) != stage) continue;
                if (isFactor(one.kind)) factors.push_back({step, i});
                if (gapWorkOf(one.kind) == GapWork::Inversion) inversions.push_back({step, i});
                if (step > 0 || !(isForward(one.kind) || isReturn(one.kind))) continue;
                passes.emplace(std::pair(isForward(one.kind), one.microbatch), Place{step, i});
                ++expected;
            }
        }
        if (factors.empty() && inversions.empty()) return {};
        const Place first = factors.empty() ? inversions.front() : factors.front();
        if (factors.size() != expected)
            return refused(first, fmt::format("a cycle has {} factors of the stage, not {}", factors.size(), expected),
                           "give each forward a FACTOR_A, and each I or B a FACTOR_G, once in a cycle");
        for (const Place& place : factors) {
            const Op& one = op(place).op;
            const auto found = passes.find({gapWorkOf(one.kind) == GapWork::InputFactors, one.microbatch});
            if (found == passes.end())
                return refused(place, "it is there twice, or of a microbatch that the stage does not run",
                               "give each forward a FACTOR_A, and each I or B a FACTOR_G, once in a cycle");
            op(place).cyclesBack = place < found->second ? 1 : 0;
            passes.erase(found);
        }
        if (m_pieces == 0) m_pieces = static_cast<int>(inversions.size());
        std::vector<char> seen(inversions.size(), 0);
        for (const Place& place : inversions) {
            const auto piece = static_cast<std::size_t>(op(place).op.slice);
            if (static_cast<int>(inversions.size()) != m_pieces || piece >= seen.size() || seen[piece]++ != 0)
                return refused(
                    place, fmt::format("a stage's inversion has pieces 0 to {}, each once in a cycle", m_pieces - 1),
                    "give all stages as many INVERT ops");
            STAGEWRIGHT_CHECK(placeInversion(place, factors));
        }
        if (inversions.empty()) return refused(first, "nothing inverts the stage's factors", "add INVERT ops");
        return {};
    }

    Result<void> placeInversion(const Place& place, const std::vector<Place>& factors)
    {
        const bool behindAll = std::all_of(factors.begin(), factors.end(), [&](const Place& factor) {
            return op(factor).cyclesBack == 0 && factor < place;
        });
        op(place).cyclesBack = behindAll ? 0 : 1;
        if (behindAll) return {};
        for (const Place& factor : factors)
            if (op(factor).cyclesBack == 1 && place < factor)
                return refused(place, fmt::format("it comes before {}, which it needs", toText(op(factor).op)),
                               "the damping of either factor needs both: put inversions behind all factors");
        return {};
    }

    std::vector<ExecutionPlan>& m_plans;
    int m_rank;
    int& m_pieces;
};

Result<void> checkFillers(const ExecutionPlan& plan, const TrainingOptions& options)
{
    const auto refused = [](const char* what, const char* remedy) {
        return fail(ErrorCode::Usage, fmt::format("factors in the lists: {}", what), remedy);
    };
    if (options.optimizer.kind != OptimizerKind::Kfac) return refused("they are of K-FAC", "give --optimizer kfac");
    if (options.optimizer.refresh != 1) return refused("a refresh is a cycle", "leave out refresh=");
    if (plan.shared) return refused("replicas that share state refresh at their optimizer", "leave out --shard");
    if (plan.recomputes) return refused("recomputation drops their inputs", "leave out --recompute");
    if (plan.slices || plan.halves || plan.concatenates)
        return refused("they are of whole microbatches", "take a schedule without slices, halves and W over several");
    if (plan.copies) return refused("OFFLOAD moves their inputs", "leave out --offload");
    if (options.order.by != ReadyOrder::By::List)
        return refused("their gaps are those of the lists", "leave out --order");
    return {};
}

} // namespace

Result<CyclePlans> planCycle(std::span<const std::shared_ptr<const CheckedSchedule>> cycle,
                             const TrainingOptions& options)
{
    CyclePlans out;
    out.schedules.assign(cycle.begin(), cycle.end());
    const Schedule base = withoutFillers(cycle.front()->compute());
    for (const auto& checked : cycle) {
        if (!(withoutFillers(checked->compute()) == base))
            return fail(ErrorCode::Usage,
                        fmt::format("--cycle: {} and {} differ in more than work that can wait",
                                    cycle.front()->compute().name, checked->compute().name),
                        "give lists that differ in FACTOR_A, FACTOR_G and INVERT ops only");
        STAGEWRIGHT_TRY(ExecutionPlan plan, planExecution(*checked, options.runners));
        out.plans.push_back(std::move(plan));
    }
    const bool lowered = options.channels.sends == SendMode::Rendezvous || options.channels.oneStream;
    if (cycle.size() > 1 && lowered)
        return fail(ErrorCode::Usage, "--cycle: under rendezvous a training has one order of messages",
                    "leave out --sends and --channels one");
    for (std::size_t rank = 0; rank < out.plans.front().ranks.size(); ++rank)
        STAGEWRIGHT_CHECK(RankCycle(out.plans, static_cast<int>(rank), out.pieces).refreshes());
    if (out.pieces > 0) STAGEWRIGHT_CHECK(checkFillers(out.plans.front(), options));
    return out;
}

} // namespace stagewright
