#include "engine/training/ready_rank.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/training/training_state.h"
#include "profiler/record/clock.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr Nanos nothingLeft = std::numeric_limits<Nanos>::max();

} // namespace

ReadyClock::ReadyClock(int ranks) : m_ranks(static_cast<std::size_t>(ranks)) {}

void ReadyClock::restart()
{
    const std::lock_guard lock(m_mutex);
    for (Rank& rank : m_ranks) rank = {};
}

void ReadyClock::interrupt()
{
    {
        const std::lock_guard lock(m_mutex);
        m_interrupted = true;
    }
    m_changed.notify_all();
}

void ReadyClock::sent(int toRank, const MessageKey& key, Nanos at)
{
    {
        const std::lock_guard lock(m_mutex);
        m_ranks[static_cast<std::size_t>(toRank)].came.emplace_back(key, at);
    }
    m_changed.notify_all();
}

// A message is there later than the moment at which its op started: that of the earliest other rank is a bound of all
// that is still to come.
std::optional<Nanos> ReadyClock::awaitTurn(int rank, const std::function<void(const MessageKey&, Nanos)>& take,
                                           const std::function<std::optional<Nanos>()>& next)
{
    std::unique_lock lock(m_mutex);
    Rank& own = m_ranks[static_cast<std::size_t>(rank)];
    for (;;) {
        if (m_interrupted) return std::nullopt;
        for (const auto& [key, at] : own.came) take(key, at);
        own.came.clear();
        const Nanos at = next().value_or(nothingLeft);
        if (at != own.at) m_changed.notify_all();
        own.at = at;
        const bool first = std::all_of(m_ranks.begin(), m_ranks.end(),
                                       [&](const Rank& other) { return &other == &own || other.at >= at; });
        if (first && at != nothingLeft) return at;
        m_changed.wait(lock);
    }
}

void ReadyClock::leave(int rank)
{
    {
        const std::lock_guard lock(m_mutex);
        m_ranks[static_cast<std::size_t>(rank)].at = nothingLeft;
    }
    m_changed.notify_all();
}

ReadyTraining::ReadyTraining(const Schedule& schedule, const ReadyOrder& anOrder, CostModel someCosts)
    : order(anOrder), costs(std::move(someCosts)), clock(schedule.ranks)
{
}

ReadyRank::ReadyRank(TrainingState& state, int rank)
    : m_state(state), m_rank(rank), m_plan(state.plan.ranks[static_cast<std::size_t>(rank)]),
      m_virtual(state.clock == ClockMode::Virtual),
      m_chooser(*state.schedule, state.ready->costs, state.ready->order, rank), m_users(m_plan.ops.size())
{
    const OpIndex& index = state.checked->index();
    for (std::size_t i = 0; i < m_plan.ops.size(); ++i) {
        const std::size_t group = groupOf(i);
        for (const PlannedMessage& input : m_plan.inputsOf(m_plan.ops[i])) {
            if (input.rank == rank) continue;
            m_chooser.expect(group);
            m_expected.emplace_back(input.key, group);
        }
        index.eachInput(m_plan.ops[i].op, [&](std::uint32_t producer, const Need&, int) {
            if (producer == noOp) return;
            const OpPlace from = index.placeOf(producer);
            if (from.rank != rank || groupOf(from.position) == group) return;
            m_chooser.expect(group);
            m_users[from.position].push_back(group);
        });
    }
}

std::size_t ReadyRank::groupOf(std::size_t position) const
{
    return position > 0 && m_plan.ops[position - 1].pairedWithNext ? position - 1 : position;
}

void ReadyRank::restart()
{
    m_chooser.restart();
    m_keys.clear();
    m_for.clear();
    for (const auto& [key, op] : m_expected) {
        m_keys.push_back(key);
        m_for.push_back(op);
    }
    m_now = 0;
}

std::optional<std::size_t> ReadyRank::next()
{
    if (!m_virtual) return nextByMessages();
    const std::optional<Nanos> turn = m_state.ready->clock.awaitTurn(
        m_rank,
        [this](const MessageKey& key, Nanos at) {
            const auto found = std::find(m_keys.begin(), m_keys.end(), key);
            const auto which = static_cast<std::size_t>(found - m_keys.begin());
            m_chooser.supply(m_for[which], at);
            m_keys.erase(found);
            m_for.erase(m_for.begin() + static_cast<std::ptrdiff_t>(which));
        },
        [this] { return m_chooser.nextChoice(m_now); });
    if (!turn) return std::nullopt;
    m_now = *turn;
    const std::optional<std::size_t> chosen = m_chooser.choose(m_now);
    m_chooser.started(*chosen);
    if (*chosen >= m_plan.computeEnd) leave(); // it may wait for other ranks' norms, and sends no message
    m_now += isCompute(m_plan.ops[*chosen].op.kind) ? m_state.options.perturbation.launchOf(m_rank) : 0;
    return chosen;
}

std::optional<std::size_t> ReadyRank::nextByMessages()
{
    std::vector<std::pair<std::size_t, Nanos>> came;
    for (bool sleeps = false;; sleeps = true) {
        came.clear();
        if (!m_state.transport->awaitAny(
                m_rank, m_keys, sleeps, [this] { return m_state.control.stopped(); }, came))
            return std::nullopt;
        for (const auto& [which, at] : came) m_chooser.supply(m_for[which], at);
        for (auto one = came.rbegin(); one != came.rend(); ++one) {
            m_keys.erase(m_keys.begin() + static_cast<std::ptrdiff_t>(one->first));
            m_for.erase(m_for.begin() + static_cast<std::ptrdiff_t>(one->first));
        }
        if (const auto chosen = m_chooser.choose(monotonicNow())) {
            m_chooser.started(*chosen);
            return chosen;
        }
    }
}

void ReadyRank::ran(std::size_t position, Nanos cpu)
{
    const Op& op = m_plan.ops[position].op;
    const RunPerturbation& disturbed = m_state.options.perturbation;
    if (isDelay(op.kind))
        m_now += op.delay;
    else if (isCompute(op.kind) && disturbed.changesDurations())
        m_now += std::llround(static_cast<double>(cpu) * disturbed.factorOf(m_rank, m_state.step, op));
    else
        m_now += std::max<Nanos>(1, cpu);
    const std::size_t group = groupOf(position);
    if (position + 1 == group + (m_plan.ops[group].pairedWithNext ? 2U : 1U)) m_chooser.ended(group);
    for (const std::size_t user : m_users[position]) m_chooser.supply(user, m_virtual ? m_now : monotonicNow());
}

void ReadyRank::sent(const PlannedMessage& message, Bytes bytes)
{
    if (!m_virtual) return;
    m_state.ready->clock.sent(message.rank, message.key,
                              m_now + m_state.options.links.delay(m_rank, message.rank, bytes));
}

void ReadyRank::leave() { m_state.ready->clock.leave(m_rank); }

Result<void> checkTrainedOrder(const Schedule& schedule, const ExecutionPlan& plan, const TrainingOptions& options,
                               bool onDevice, bool virtualClock)
{
    if (options.order.by == ReadyOrder::By::List) return {};
    STAGEWRIGHT_CHECK(checkReadyOrder(schedule, options.order));
    const auto refused = [&](const std::string& what, const char* remedy) {
        return fail(ErrorCode::Usage, fmt::format("--order {}: {}", toText(options.order), what), remedy);
    };
    if (schedule.weights != WeightRule::Synchronous)
        return refused(fmt::format("the weights of {} are {}, and which an op uses depends on the list", schedule.name,
                                   toText(schedule.weights)),
                       "take a synchronous schedule");
    if (plan.shared)
        return refused("replicas gather and reduce in the order of their lists", "leave out --shard and --cut");
    if (options.channels.sends == SendMode::Rendezvous || options.channels.limited() || options.channels.oneStream)
        return refused("messages overtake each other only where sends are buffered and channels have no limit",
                       "leave out --sends and --channels");
    if (onDevice) return refused("on a GPU the order in which messages come is the driver's", "use --backend cpu");
    if (options.job && virtualClock)
        return refused("the virtual clock orders ranks of one process only",
                       "run the ranks as threads, or give --clock wall");
    return {};
}

} // namespace stagewright
