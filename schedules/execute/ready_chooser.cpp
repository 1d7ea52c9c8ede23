#include "schedules/execute/ready_chooser.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/core.h>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

constexpr Nanos notYet = std::numeric_limits<Nanos>::max();
constexpr std::size_t searched = 512; // ops of a list behind its next one

bool hasForwardOf(const std::vector<Op>& ops, int stage)
{
    return std::any_of(ops.begin(), ops.end(),
                       [&](const Op& op) { return isForward(op.kind) && static_cast<int>(op.stage) == stage; });
}

// Ops of a stage that keep their order: those of a kind, and all that add to its weight gradients, whose sum depends on
// it.
bool keepOrder(const Op& a, const Op& b)
{
    return a.stage == b.stage && (a.kind == b.kind || (makesWeightGradient(a.kind) && makesWeightGradient(b.kind)));
}

} // namespace

ReadyChooser::ReadyChooser(const Schedule& schedule, const CostModel& costs, const ReadyOrder& order, int rank)
    : m_schedule(schedule), m_ops(schedule.order[static_cast<std::size_t>(rank)]), m_order(order),
      m_activations(schedule, costs), m_rank(rank), m_lastRank(rank + 1 == schedule.ranks), m_inputs(m_ops.size()),
      m_missing(m_ops.size()), m_ready(m_ops.size())
{
    Bytes held = 0;
    for (const Op& op : m_ops) m_most = std::max(m_most, held += changeOf(op));
    if (order.limit <= 0) return;
    Bytes microbatch = 0;
    for (int stage = 0; stage < schedule.stages; ++stage)
        if (hasForwardOf(m_ops, stage)) microbatch += costs.memory[static_cast<std::size_t>(stage)].activation;
    m_most = std::max(m_most, order.limit * microbatch); // the list itself can run in any case
}

void ReadyChooser::restart()
{
    m_missing = m_inputs;
    std::fill(m_ready.begin(), m_ready.end(), 0);
    m_left.clear();
    for (std::size_t i = 0; i < m_ops.size(); i += opsAt(i)) m_left.push_back(i);
    m_held = 0;
    m_started = 0;
    m_backwardNext.reset();
}

bool ReadyChooser::supply(std::size_t position, Nanos from)
{
    m_ready[position] = std::max(m_ready[position], from);
    return --m_missing[position] == 0;
}

Bytes ReadyChooser::changeOf(const Op& op) const
{
    Bytes out = 0;
    for (int k = 0; k < op.count; ++k) out += m_activations.deltaOf(op, k);
    return out;
}

Bytes ReadyChooser::changeAt(std::size_t position) const
{
    Bytes out = 0;
    for (std::size_t k = 0; k < opsAt(position); ++k) out += changeOf(opAt(position + k));
    return out;
}

Nanos ReadyChooser::readyAt(std::size_t position) const { return m_missing[position] > 0 ? notYet : m_ready[position]; }

std::optional<std::size_t> ReadyChooser::choose(Nanos now) const
{
    if (m_left.empty()) return std::nullopt;
    return m_order.by == ReadyOrder::By::Arrival ? byArrival(now) : byHint(now);
}

std::optional<Nanos> ReadyChooser::nextChoice(Nanos now) const
{
    std::vector<Nanos> moments{now};
    for (std::size_t i = 0; i < std::min(m_left.size(), searched); ++i)
        if (const Nanos ready = readyAt(m_left[i]); ready != notYet && ready > now) moments.push_back(ready);
    std::sort(moments.begin(), moments.end());
    const auto found =
        std::find_if(moments.begin(), moments.end(), [this](Nanos at) { return choose(at).has_value(); });
    return found == moments.end() ? std::nullopt : std::optional(*found);
}

void ReadyChooser::started(std::size_t position)
{
    m_left.erase(std::find(m_left.begin(), m_left.end(), position));
    m_held += changeAt(position);
    const OpKind kind = opAt(position).kind;
    m_started += isForward(kind) ? 1 : 0;
    if (m_backwardNext && (*m_backwardNext ? isReturn(kind) : isForward(kind))) m_backwardNext.reset();
}

void ReadyChooser::ended(std::size_t position)
{
    if (m_order.by != ReadyOrder::By::Arrival) return;
    if (isForward(opAt(position).kind) && m_lastRank) m_backwardNext = true;
    if (isReturn(opAt(position).kind) && m_rank == 0) m_backwardNext = false;
}

std::optional<std::size_t> ReadyChooser::byArrival(Nanos now) const
{
    std::optional<std::size_t> forward, backward;
    for (std::size_t i = 0; i < m_left.size() && !(forward && backward); ++i) {
        const OpKind kind = opAt(m_left[i]).kind;
        if (isForward(kind) && !forward) forward = m_left[i];
        if (isReturn(kind) && !backward) backward = m_left[i];
    }
    if (!forward && !backward) return readyAt(m_left.front()) <= now ? std::optional(m_left.front()) : std::nullopt;
    const auto came = [&](const std::optional<std::size_t>& at) { return at ? readyAt(*at) : notYet; };
    if (m_backwardNext && (*m_backwardNext ? backward : forward)) return *m_backwardNext ? backward : forward;
    if (m_rank == 0) { // its forwards need nothing
        const int limit = m_order.limit > 0 ? m_order.limit : m_schedule.ranks;
        if (forward && m_started < limit) return forward;
        return came(backward) <= now ? backward : std::nullopt;
    }
    const bool forwardCame = came(forward) <= now, backwardCame = came(backward) <= now;
    if (!forwardCame || !backwardCame) return forwardCame ? forward : backwardCame ? backward : std::nullopt;
    const bool takesForward = m_order.first == ReadyOrder::First::Forward ||
                              (m_order.first == ReadyOrder::First::Came && came(forward) <= came(backward));
    return takesForward ? forward : backward;
}

std::optional<std::size_t> ReadyChooser::byHint(Nanos now) const
{
    if (readyAt(m_left.front()) <= now) return m_left.front();
    Bytes held = m_held, most = m_held; // of the list up to the op that may go ahead
    std::vector<Op> passed;
    for (std::size_t i = 0; i < std::min(m_left.size(), searched); ++i) {
        const std::size_t at = m_left[i];
        const Op& op = opAt(at);
        if (worksOnState(op.kind) || isDelay(op.kind)) return std::nullopt; // all before it comes before it
        const bool mayGoAhead = opsAt(at) == 1 && (isForward(op.kind) || (isCompute(op.kind) && isDeferrable(op.kind)));
        if (mayGoAhead && readyAt(at) <= now &&
            std::none_of(passed.begin(), passed.end(), [&](const Op& other) { return keepOrder(op, other); }) &&
            most + changeOf(op) <= m_most)
            return at;
        for (std::size_t k = 0; k < opsAt(at); ++k) passed.push_back(opAt(at + k));
        most = std::max(most, held += changeAt(at));
    }
    return std::nullopt;
}

Result<void> checkReadyOrder(const Schedule& schedule, const ReadyOrder& order)
{
    const auto refuse = [&](const char* what, const char* remedy) {
        return fail(ErrorCode::Usage, fmt::format("--order {}: {} {}", toText(order), schedule.name, what), remedy);
    };
    const bool arrival = order.by == ReadyOrder::By::Arrival;
    if (arrival && schedule.stages != schedule.ranks)
        return refuse("has several stages on a rank or several ranks for a stage", "use --order hint");
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        bool other = false;
        for (const Op& op : schedule.order[r]) {
            other = other || !isCompute(op.kind);
            if (arrival && other && isCompute(op.kind))
                return refuse("has other ops between its passes", "use --order hint");
            if (isMessage(op.kind))
                return refuse("has sends and receives in its lists",
                              "give it without them; --lower inserts them behind");
            if (isCopy(op.kind)) return refuse("has copies to the host in its lists", "leave out --offload");
            const bool pass =
                (isForward(op.kind) || isFullBackward(op.kind)) && op.count == 1 && op.slice < 0 && op.half == 0;
            if (arrival && isCompute(op.kind) && (!pass || op.stage != r))
                return refuse("has other ops than a forward and a backward of a microbatch, on the rank of its stage",
                              "use --order hint");
        }
    }
    return {};
}

} // namespace stagewright
