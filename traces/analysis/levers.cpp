#include "traces/analysis/levers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/edit/edit_timing.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"
#include "schedules/plan/plan_request.h"
#include "traces/analysis/cost_levers.h"
#include "traces/analysis/lever_subject.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

namespace {

constexpr std::int64_t mostPlannedOps = 4096; // ranks × microbatches of a plan without a cap

std::string reasonOf(const Error& error)
{
    return error.remedy.empty() ? error.message : error.message + "; " + error.remedy;
}

Schedule withoutKinds(const Schedule& schedule, bool (*of)(OpKind))
{
    return without(schedule, [of](const Op& op) { return of(op.kind); });
}
// Gathers of stepped weights at the lists' ends; whether there were any.
bool leaveOutBehind(Schedule& schedule)
{
    bool any = false;
    for (std::vector<Op>& ops : schedule.order)
        while (!ops.empty() && isGather(ops.back().kind)) {
            ops.pop_back();
            any = true;
        }
    return any;
}

class Levers {
public:
    Levers(const LeverSubject& subject, const std::stop_token& stop) : m_subject(subject), m_stop(stop) {}

    LeverTable table(const SimResult* known)
    {
        m_table.step = m_subject.step;
        m_table.idle = m_subject.idle;
        m_table.behind = m_subject.behind;
        m_table.measured = m_subject.measured;
        if (known != nullptr) {
            m_base = timeOf(m_subject.schedule, m_subject.costs, *known);
        } else if (auto base = timeOf(m_subject.schedule, m_subject.costs, m_subject.channels)) {
            m_base = *base;
        } else {
            m_table.reason = reasonOf(base.error());
            return std::move(m_table);
        }
        m_table.simulated = m_base.makespan;
        for (CostLever& lever : costLeversOf(m_subject)) add(std::move(lever));
        for (const auto part : {&Levers::reductions, &Levers::transients, &Levers::channels, &Levers::recompute,
                                &Levers::offload, &Levers::order, &Levers::cap})
            if (!m_stop.stop_requested()) (this->*part)();
        std::stable_sort(m_table.levers.begin(), m_table.levers.end(), [&](const Lever& a, const Lever& b) {
            if (a.makespan.has_value() != b.makespan.has_value()) return a.makespan.has_value();
            if (a.gain != b.gain) return a.gain > b.gain;
            return a.kind < b.kind;
        });
        together();
        return std::move(m_table);
    }

private:
    using Change = std::function<void(CostModel&)>;

    struct Time {
        Nanos makespan = 0;
        std::optional<Bytes> peak;
    };

    Result<Time> timeOf(const Schedule& schedule, const CostModel& costs, const Channels& channels) const
    {
        if (m_stop.stop_requested()) return fail(ErrorCode::Cancelled, "simulating was cancelled");
        STAGEWRIGHT_TRY(const auto result, simulate(schedule, costs, channels));
        return timeOf(schedule, costs, result);
    }
    Time timeOf(const Schedule& schedule, const CostModel& costs, const SimResult& result) const
    {
        Time out;
        out.makespan = figuresOf(schedule, result).step + m_subject.behind;
        if (costs.knowsActivations())
            for (const Bytes peak : result.peakActivation) out.peak = std::max(out.peak.value_or(0), peak);
        return out;
    }

    void unknown(LeverKind kind, std::string name, std::string title, std::string reason)
    {
        Lever lever;
        lever.kind = kind;
        lever.name = std::move(name);
        lever.title = std::move(title);
        lever.reason = std::move(reason);
        m_table.levers.push_back(std::move(lever));
    }

    // Against `before`, else the simulated step.
    void add(LeverKind kind, std::string name, std::string title, const Result<Time>& with,
             std::optional<Nanos> before = {}, int step = -1)
    {
        if (!with) return unknown(kind, std::move(name), std::move(title), reasonOf(with.error()));
        Lever lever;
        lever.kind = kind;
        lever.name = std::move(name);
        lever.title = std::move(title);
        lever.step = step;
        lever.makespan = with->makespan;
        lever.gain = before.value_or(*m_table.simulated) - with->makespan;
        lever.peak = with->peak;
        m_table.levers.push_back(std::move(lever));
    }

    Result<Time> changed(const Change& first, const Change& second = {}) const
    {
        CostModel costs = m_subject.costs;
        first(costs);
        if (second) second(costs);
        return timeOf(m_subject.schedule, costs, m_subject.channels);
    }

    void add(CostLever lever)
    {
        if (!lever.change) return unknown(lever.kind, lever.name, lever.title, lever.reason);
        add(lever.kind, lever.name, lever.title, changed(lever.change));
        m_table.levers.back().layers = lever.layers;
        m_changes.emplace(lever.name, std::move(lever.change));
    }

    // The second lever's change once the first one is made. How uneven stages are, and how slow ranks, is measured again: what
    // was spread evenly is not made faster again.
    Change after(const Lever& first, const Lever& second) const
    {
        const bool seen = first.kind == LeverKind::Stages || second.kind == LeverKind::Stages;
        if (!seen) return m_changes.at(second.name);
        LeverSubject changedSubject = m_subject;
        m_changes.at(first.name)(changedSubject.costs);
        if (!first.layers.empty()) changedSubject.layers = first.layers;
        const std::vector<CostLever> again = costLeversOf(changedSubject);
        const auto found = std::find_if(again.begin(), again.end(),
                                        [&second](const CostLever& lever) { return lever.name == second.name; });
        if (found == again.end() || !found->change) return {};
        // by the changes themselves, not by what points into the other subject
        CostModel costs = changedSubject.costs;
        found->change(costs);
        return [costs = std::move(costs)](CostModel& out) { out = costs; };
    }

    // The two largest gains of this step, unless one contains the other.
    void together()
    {
        const auto whole = [](LeverKind kind) { // of all its ranks or links
            switch (kind) {
            case LeverKind::Link: return LeverKind::Links;
            case LeverKind::LaunchRank: return LeverKind::Launch;
            case LeverKind::Gathers:
            case LeverKind::Gather:
            case LeverKind::Buckets: return LeverKind::Collectives;
            case LeverKind::Replica: return LeverKind::Rank;
            default: return kind;
            }
        };
        const Lever* first = nullptr;
        for (const Lever& lever : m_table.levers) {
            if (!lever.makespan || lever.gain <= 0 || lever.step >= 0 || !m_changes.contains(lever.name)) continue;
            if (first == nullptr) {
                first = &lever;
                continue;
            }
            if (whole(lever.kind) == whole(first->kind) && lever.kind != LeverKind::Rank) continue;
            const auto both = changed(m_changes.at(first->name), after(*first, lever));
            if (!both) return;
            const Nanos gain = *m_table.simulated - both->makespan;
            m_table.together = {first->name, lever.name, both->makespan, gain, first->gain + lever.gain - gain};
            return;
        }
    }

    // The schedule with its compute ops in another order: sends and receives are put in again.
    Result<Schedule> communicating(const Schedule& schedule) const
    {
        if (!m_subject.lowering) return schedule;
        return lower(withoutMessages(schedule), *m_subject.lowering);
    }

    // Reductions behind a rank's last op, though their stages' gradients were known before.
    void reductions()
    {
        const Schedule now = m_subject.lowering ? withoutMessages(m_subject.schedule) : m_subject.schedule;
        if (now.weights != WeightRule::Synchronous) return;
        Schedule bare = withoutKinds(now, isReduction);
        if (bare.opCount() == now.opCount()) return;
        const std::size_t stepping = bare.opCount();
        bare = withoutKinds(bare, isOptimizer);
        const bool steps = bare.opCount() < stepping;
        const bool gathers = leaveOutBehind(bare);
        auto early = addShardOps(bare, gathers ? ShardLevel::Optimizer : ShardLevel::None,
                                 {GatherRule::Batch, 0, ReduceRule::Overlapped});
        if (!early) return;
        if (!steps) *early = withoutKinds(*early, isOptimizer);
        if (early->order == now.order) return;
        auto lists = communicating(*early);
        if (!lists) return;
        add(LeverKind::Reductions, "reductions",
            "each stage's reduction right after its last gradient (--reduce overlapped)",
            timeOf(*lists, m_subject.costs, m_subject.channels));
    }

    CostModel withRank(int rank, double factor) const
    {
        CostModel costs = m_subject.costs;
        scaleRank(costs, m_subject.schedule, rank, factor);
        return costs;
    }

    void transients()
    {
        for (const SlowStep& slow : m_subject.slowSteps) {
            const Schedule& schedule = m_subject.schedule;
            const auto other =
                timeOf(schedule, withRank(slow.rank, slow.inCosts ? 1 / slow.factor : slow.factor), m_subject.channels);
            Result<Time> with = other;
            std::optional<Nanos> before;
            if (other && !slow.inCosts) { // the costs are those of the other steps
                before = other->makespan;
                with = m_base;
            }
            add(LeverKind::Transient, fmt::format("transient:{}@{}", slow.rank, stepNumber(slow.step)),
                fmt::format("{}rank {} in step {} as fast as in its other steps (it takes {:.2f}× as long)",
                            slow.step == m_subject.step ? "" : "another step: ", slow.rank, stepNumber(slow.step),
                            slow.factor),
                with, before, slow.step);
        }
    }

    void channels()
    {
        Channels other = m_subject.channels;
        if (other.sends == SendMode::Rendezvous) {
            other.sends = SendMode::Buffered;
            add(LeverKind::Sends, "sends", "buffered sends, which never wait",
                timeOf(m_subject.schedule, m_subject.costs, other));
            other = m_subject.channels;
        }
        if (!other.limited()) return;
        const char* title = other.oneStream ? "messages that don't wait for each other on one stream"
                                            : "any number of messages in transit at once";
        other.perDirection = 0;
        other.oneStream = false;
        add(LeverKind::Channels, "channels", title, timeOf(m_subject.schedule, m_subject.costs, other));
    }

    void recompute()
    {
        const Schedule kept = withoutKinds(m_subject.schedule, isRecompute);
        if (kept.opCount() == m_subject.schedule.opCount()) return;
        add(LeverKind::Recompute, "recompute", "no recomputation", timeOf(kept, m_subject.costs, m_subject.channels));
    }

    void offload()
    {
        const Schedule kept = withoutKinds(m_subject.schedule, isCopy);
        if (kept.opCount() == m_subject.schedule.opCount()) return;
        add(LeverKind::Offload, "offload", "no offloading", timeOf(kept, m_subject.costs, m_subject.channels));
    }

    void order()
    {
        const Schedule compute = m_subject.lowering ? withoutMessages(m_subject.schedule) : m_subject.schedule;
        if (isLowered(compute)) return;
        CostModel usual = m_subject.costs;
        usual.jitter = 0; // an order is not planned for one draw
        const Schedule earliest = earliestOrder(compute, usual);
        const std::string title = "every rank runs what is ready first" + firstIn(earliest, compute);
        auto other = communicating(earliest);
        if (!other) return unknown(LeverKind::Order, "order", title, reasonOf(other.error()));
        add(LeverKind::Order, "order", title, timeOf(*other, m_subject.costs, m_subject.channels));
    }

    // What most ranks run earlier than they did: " (the next forwards first)".
    static std::string firstIn(const Schedule& order, const Schedule& before)
    {
        int forwards = 0, backwards = 0;
        for (std::size_t rank = 0; rank < order.order.size(); ++rank) {
            const auto& ops = order.order[rank];
            const auto [now, was] =
                std::mismatch(ops.begin(), ops.end(), before.order[rank].begin(), before.order[rank].end());
            if (now != ops.end()) ++(isForward(now->kind) ? forwards : backwards);
        }
        if (forwards == backwards) return {};
        return forwards > backwards ? " (the next forwards first)" : " (the next backwards first)";
    }

    // A plan of the same family without the cap.
    Result<PlanRequest> withoutCap() const
    {
        const Schedule& schedule = m_subject.schedule;
        STAGEWRIGHT_TRY(auto request, planRequestFor(schedule, m_subject.costs, schedule.splitsBackward()));
        if (static_cast<std::int64_t>(schedule.ranks) * schedule.microbatches > mostPlannedOps)
            return fail(ErrorCode::Usage,
                        fmt::format("{} ranks × {} microbatches are too many to plan here", schedule.ranks,
                                    schedule.microbatches),
                        "use stagewright plan, which takes more time");
        return request;
    }

    void cap()
    {
        if (!m_subject.cap) return;
        const std::string title = "no memory cap: a new plan without it";
        auto request = withoutCap();
        if (!request) return unknown(LeverKind::Cap, "cap", title, reasonOf(request.error()));
        auto planned = plan(*request);
        if (!planned) return unknown(LeverKind::Cap, "cap", title, reasonOf(planned.error()));
        auto schedule = communicating(planned->schedule);
        if (!schedule) return unknown(LeverKind::Cap, "cap", title, reasonOf(schedule.error()));
        CostModel costs = request->costs;
        costs.clearPairDurations();
        add(LeverKind::Cap, "cap", title, timeOf(*schedule, costs, m_subject.channels));
    }

    const LeverSubject& m_subject;
    const std::stop_token& m_stop;
    LeverTable m_table;
    Time m_base;                             // of the subject itself
    std::map<std::string, Change> m_changes; // of the costs, by a lever's name
};

std::vector<LeverKind> leversAbout(IdleCause cause)
{
    switch (cause) {
    case IdleCause::Transfer: return {LeverKind::Links, LeverKind::Link};
    case IdleCause::PeerWait: return {LeverKind::Sends, LeverKind::Replica};
    case IdleCause::HeadOfLine: return {LeverKind::Channels};
    case IdleCause::Memory: return {LeverKind::Cap};
    case IdleCause::Order: return {LeverKind::Order};
    case IdleCause::Imbalance: return {LeverKind::Stages, LeverKind::Rank, LeverKind::Replica};
    case IdleCause::Straggler: return {LeverKind::Rank, LeverKind::Replica, LeverKind::Transient, LeverKind::Jitter};
    case IdleCause::Microbatch: return {LeverKind::Microbatches};
    case IdleCause::RecomputeWait: return {LeverKind::Recompute};
    case IdleCause::ReloadWait: return {LeverKind::Offload};
    case IdleCause::Collective:
        return {LeverKind::Collectives, LeverKind::Gathers, LeverKind::Gather, LeverKind::Reductions,
                LeverKind::Buckets};
    case IdleCause::Launch: return {LeverKind::Launch, LeverKind::LaunchRank};
    default: return {};
    }
}

// The cause with most idle time among those that a lever is about; the first of equal ones.
IdleCause mainCause(LeverKind kind, const IdleByCause& idle)
{
    auto most = static_cast<IdleCause>(0);
    bool any = false;
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto cause = static_cast<IdleCause>(c);
        const auto kinds = leversAbout(cause);
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
        if (!any || idle[c] > idle[static_cast<std::size_t>(most)]) most = cause;
        any = true;
    }
    return most;
}

} // namespace

std::string whatIfOf(const Lever& lever)
{
    switch (lever.kind) {
    case LeverKind::Links: return "link*0";
    case LeverKind::Launch: return "launch*0";
    case LeverKind::Jitter: return "jitter*0";
    case LeverKind::Gathers: return "UNSHARD*0";
    case LeverKind::Collectives: return "UNSHARD*0,REDUCE_GRAD*0";
    case LeverKind::Sends: return "sends=buffered";
    case LeverKind::Channels: return "channels=shared";
    default: return {};
    }
}

double LeverTable::error() const
{
    return simulated && measured > 0 ? static_cast<double>(*simulated - measured) / static_cast<double>(measured) : 0;
}

std::vector<Lever> LeverTable::shown() const
{
    const bool any = std::any_of(levers.begin(), levers.end(), [this](const Lever& lever) {
        return lever.makespan && lever.gain > 0 && !ofOtherStep(lever);
    });
    std::vector<Lever> out;
    for (const Lever& lever : levers)
        if ((!any && !ofOtherStep(lever)) || !lever.makespan || lever.gain > 0) out.push_back(lever);
    return out;
}

const Lever* LeverTable::leverAgainst(IdleCause cause) const
{
    const auto kinds = leversAbout(cause);
    const Lever* best = nullptr;
    for (const Lever& lever : levers) { // the largest gain comes first
        if (best != nullptr || !lever.makespan || lever.gain <= 0 || ofOtherStep(lever)) continue;
        const bool about = std::find(kinds.begin(), kinds.end(), lever.kind) != kinds.end();
        if (about && mainCause(lever.kind, idle) == cause) best = &lever;
    }
    return best;
}

std::optional<Nanos> LeverTable::gainOf(IdleCause cause) const
{
    const auto kinds = leversAbout(cause);
    if (!simulated || kinds.empty()) return std::nullopt;
    if (const Lever* best = leverAgainst(cause)) return best->gain;
    for (const Lever& lever : levers) {
        if (ofOtherStep(lever) || std::find(kinds.begin(), kinds.end(), lever.kind) == kinds.end()) continue;
        if (!lever.makespan || (lever.gain > 0 && mainCause(lever.kind, idle) != cause)) return std::nullopt;
    }
    return 0;
}

std::vector<IdleCause> causesByGain(const IdleByCause& byCause, const LeverTable* table)
{
    std::vector<IdleCause> out;
    for (std::size_t c = 0; c < idleCauseCount; ++c)
        if (byCause[c] != 0) out.push_back(static_cast<IdleCause>(c));
    const auto gain = [table](IdleCause cause) { return table ? table->gainOf(cause).value_or(0) : Nanos{0}; };
    std::stable_sort(out.begin(), out.end(), [&](IdleCause a, IdleCause b) {
        if (gain(a) != gain(b)) return gain(a) > gain(b);
        return byCause[static_cast<std::size_t>(a)] > byCause[static_cast<std::size_t>(b)];
    });
    return out;
}

LeverTable leversOf(const LeverSubject& subject, const std::stop_token& stop, const SimResult* base)
{
    return Levers(subject, stop).table(base);
}

LeverTable leversOf(const StepContext& context)
{
    const auto subject = leverSubjectOf(context);
    if (subject) return leversOf(*subject, context.stop(), context.simulated() ? &*context.simulated() : nullptr);
    LeverTable out;
    out.reason = reasonOf(subject.error());
    return out;
}

} // namespace stagewright
