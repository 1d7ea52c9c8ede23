#include "engine/training/watchdog.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/base/step_number.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

std::string whatRankDoes(const TrainingState& state, std::size_t rank)
{
    const RankStatus& status = state.ranks[rank].status;
    const int position = status.position.load(std::memory_order_relaxed);
    const RankPlan& plan = state.planNow().ranks[rank];
    const bool inList = position >= 0 && static_cast<std::size_t>(position) < plan.ops.size();
    const std::string op =
        inList ? fmt::format("op {} ({})", opNumber(position), toText(plan.ops[static_cast<std::size_t>(position)].op))
               : std::string();
    switch (status.phase.load(std::memory_order_relaxed)) {
    case RankPhase::AtRest: return {};
    case RankPhase::Preparing: return "prepares the step";
    case RankPhase::Waiting: {
        if (!inList) return "waits for a message";
        const PlannedOp& planned = plan.ops[static_cast<std::size_t>(position)];
        const PlannedMessage& input = plan.inputs[planned.firstInput];
        return fmt::format("waits before {} for the {} of microbatch {} from rank {}", op,
                           input.key.gradient ? "gradient" : "activations", input.key.microbatch, input.rank);
    }
    case RankPhase::Message: return "waits at a send or receive";
    case RankPhase::Reload: return fmt::format("waits for copies from the host{}{}", inList ? " before " : "", op);
    case RankPhase::Permit: return fmt::format("waits for a permit{}{}", inList ? " before " : "", op);
    case RankPhase::Running: return "runs " + op;
    case RankPhase::Sleeping: return "sleeps in " + op;
    case RankPhase::Barrier: return "waits for the other ranks";
    case RankPhase::Norm: return fmt::format("computes the gradient norm of stage {}", position);
    case RankPhase::Optimizer: return fmt::format("runs the optimizer of stage {}", position);
    case RankPhase::Norms: return "waits for the gradient norms of other ranks";
    case RankPhase::Copies: return fmt::format("waits for the gradients of the copies of stage {}", position);
    }
    return {};
}

// How long a rank may rest without being stuck: a delay, and behind it a message on its way.
Nanos longestPause(const TrainingState& state)
{
    if (state.clock == ClockMode::Virtual) return 0; // nothing is delayed
    const TrainingOptions& options = state.options;
    int samples = options.microbatchSize;
    for (const int size : options.replicaSamples) samples = std::max(samples, size);
    const Bytes message = static_cast<Bytes>(sizeof(float)) * samples * options.workload->positions() *
                          static_cast<Bytes>(options.workload->width());
    Nanos delay = 0;
    Nanos transfer = 0;
    std::map<std::pair<int, int>, Nanos> links; // where messages wait for each other: of all of a step
    const bool queue = options.channels.limited() || options.links.haveBandwidth();
    for (std::size_t rank = 0; rank < state.plan.ranks.size(); ++rank) {
        const RankPlan& plan = state.plan.ranks[rank];
        for (const PlannedOp& planned : plan.ops) {
            if (isDelay(planned.op.kind)) delay = std::max<Nanos>(delay, planned.op.delay);
            for (const PlannedMessage& input : plan.inputsOf(planned))
                if (const Nanos own = options.links.delay(input.rank, static_cast<int>(rank), message); queue)
                    transfer = std::max(transfer, links[{input.rank, static_cast<int>(rank)}] += own);
                else
                    transfer = std::max(transfer, own);
        }
    }
    Nanos lane = 0; // pieces of shared state leave one after the other
    for (std::size_t rank = 0; state.shared && rank < state.plan.ranks.size(); ++rank) {
        Nanos own = 0;
        for (const PlannedOp& planned : state.plan.ranks[rank].ops)
            for (const StageRun& run : state.stages)
                if (isCollective(planned.op.kind) && run.share && run.slice.stage == planned.op.stage &&
                    run.rank != static_cast<int>(rank))
                    own += options.links.delay(static_cast<int>(rank), run.rank,
                                               static_cast<Bytes>(sizeof(float)) * run.share->flat.padded);
        lane = std::max(lane, own);
    }
    return delay + transfer + lane;
}

// Whether both say that a rank is blocked at the same op, or at ops that it issues together.
bool standsAlike(const Deadlock& found, const Deadlock& predicted, int rank, const Schedule& lowered)
{
    const auto of = [rank](const Deadlock& deadlock) {
        return std::find_if(deadlock.blocked.begin(), deadlock.blocked.end(),
                            [rank](const BlockedRank& blocked) { return blocked.rank == rank; });
    };
    const auto a = of(found);
    const auto b = of(predicted);
    if (a == found.blocked.end() || b == predicted.blocked.end())
        return a == found.blocked.end() && b == predicted.blocked.end();
    if (a->position < 0 || b->position < 0) return a->position == b->position;
    return groupBegin(lowered, rank, static_cast<std::size_t>(a->position)) ==
           groupBegin(lowered, rank, static_cast<std::size_t>(b->position));
}

// What the ranks recorded; where the lowered lists can't end and the ranks (those of the cycle, if one is found) are
// where they stop, all that is known about it.
Deadlock explainRun(const TrainingState& state)
{
    std::vector<RankRecord> records;
    std::vector<int> ranks;
    for (std::size_t rank = 0; rank < state.ranks.size(); ++rank) {
        records.push_back(state.communicator->flightOf(static_cast<int>(rank)));
        ranks.push_back(static_cast<int>(rank));
    }
    Deadlock found = explainStall(records, MessageMatching::ByOp);
    if (!state.lowered) return found;
    Result<Deadlock> predicted = explainDeadlock(*state.lowered, state.options.channels);
    if (!predicted || !predicted->hung()) return found;
    if (!found.cycle.empty() && found.cycle == predicted->cycle) ranks = found.cycle;
    const bool same = std::all_of(ranks.begin(), ranks.end(),
                                  [&](int rank) { return standsAlike(found, *predicted, rank, *state.lowered); });
    return same ? std::move(*predicted) : found;
}

} // namespace

Watchdog::Watchdog(const TrainingState& state, Nanos timeout)
    : m_state(state), m_timeout(timeout), m_longestPause(longestPause(state)), m_lastLook(monotonicNow())
{
}

std::optional<Error> Watchdog::look(Nanos now)
{
    std::uint64_t progress = 0;
    for (const RankRun& rank : m_state.ranks) progress += rank.status.progress.load(std::memory_order_relaxed);
    if (progress != m_progress) {
        m_progress = progress;
        m_still = 0;
        m_lastLook = now;
        return std::nullopt;
    }
    m_still += std::min(now - m_lastLook, m_timeout / 4);
    m_lastLook = now;
    if (m_still - m_longestPause < m_timeout) return std::nullopt;
    m_stall = explainRun(m_state);
    std::string ranks;
    for (const int rank : m_stall.cycle)
        for (const BlockedRank& blocked : m_stall.blocked)
            if (blocked.rank == rank) ranks += (ranks.empty() ? "" : "; ") + blocked.sentence;
    for (std::size_t rank = 0; rank < m_state.ranks.size(); ++rank) {
        std::string what = whatRankDoes(m_state, rank);
        if (const std::string silent = m_state.communicator->silence(static_cast<int>(rank)); !silent.empty())
            what = fmt::format("({}) hangs: last it {}", silent, what);
        if (!what.empty() && m_stall.cycle.empty())
            ranks += fmt::format("{}rank {} {}", ranks.empty() ? "" : "; ", rank, what);
    }
    // An order that waits for itself is a fault of the schedule.
    return Error{m_state.lowered && !m_stall.cycle.empty() ? ErrorCode::Invalid : ErrorCode::Failed,
                 fmt::format("step {}: no progress for {:g} s: {}", stepNumber(m_state.step),
                             static_cast<double>(m_timeout + m_longestPause) / 1e9, ranks),
                 m_stall.cycle.empty() ? "allow more time if an op is just slow"
                                       : "run 'stagewright validate --sends rendezvous' on the schedule for a way out"};
}

} // namespace stagewright
