#include "traces/analysis/levers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/median.h"
#include "schedules/base/step_number.h"
#include "schedules/edit/edit_timing.h"
#include "schedules/execute/simulate.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/layer_costs.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/shard_rules.h"
#include "schedules/plan/plan_request.h"
#include "traces/analysis/lever_subject.h"
#include "traces/analysis/step_context.h"
#include "traces/step/slow_ranks.h"

namespace stagewright {

namespace {

constexpr double least = 1.02;                // a rank, link or delay this far above the others gets a row of its own
constexpr std::size_t mostOfAKind = 8;        // ranks, links or delays with a row
constexpr std::int64_t mostPlannedOps = 4096; // ranks × microbatches of a plan without a cap

std::vector<OpKind> computeKinds()
{
    std::vector<OpKind> kinds;
    for (std::size_t k = 0; k < allKinds().size(); ++k)
        if (isCompute(static_cast<OpKind>(k))) kinds.push_back(static_cast<OpKind>(k));
    return kinds;
}

std::string reasonOf(const Error& error)
{
    return error.remedy.empty() ? error.message : error.message + "; " + error.remedy;
}

Schedule withoutKinds(const Schedule& schedule, bool (*of)(OpKind))
{
    return without(schedule, [of](const Op& op) { return of(op.kind); });
}
void scaleKinds(CostModel& costs, bool (*of)(OpKind), int stage, double factor)
{
    for (const KindTraits& rule : allKinds())
        if (of(rule.kind)) costs.scale(rule.kind, stage, factor);
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
        for (const auto part :
             {&Levers::ranks, &Levers::stages, &Levers::links, &Levers::collectives, &Levers::reductions,
              &Levers::buckets, &Levers::launch, &Levers::jitter, &Levers::transients, &Levers::microbatches,
              &Levers::channels, &Levers::recompute, &Levers::offload, &Levers::order, &Levers::cap})
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

    void addCosts(LeverKind kind, const std::string& name, std::string title, Change change)
    {
        add(kind, name, std::move(title), changed(change));
        m_changes.emplace(name, std::move(change));
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
        Levers again(changedSubject, m_stop);
        again.m_table.simulated = m_table.simulated; // gains of these are not used
        again.ranks();
        again.stages();
        const auto change = again.m_changes.find(second.name);
        if (change == again.m_changes.end()) return {};
        // by the changes themselves, not by what points into the other subject
        CostModel costs = changedSubject.costs;
        change->second(costs);
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

    std::vector<RankSlowness> slowness() const
    {
        std::map<std::tuple<int, int, OpKind>, std::int64_t> counts;
        for (std::size_t rank = 0; rank < m_subject.schedule.order.size(); ++rank)
            for (const Op& op : m_subject.schedule.order[rank])
                if (isCompute(op.kind)) ++counts[{static_cast<int>(rank), op.stage, op.kind}];
        const std::vector<int> back = firstStagesBack(m_subject.schedule);
        std::vector<ChunkWork> work;
        for (const auto& [key, count] : counts) {
            const auto& [rank, stage, kind] = key;
            // like is compared with like
            const auto share = static_cast<std::int64_t>(backwardShare(m_subject.schedule, back, rank, stage));
            const std::int64_t size = sizeClass(m_subject.costs.sizes, m_subject.schedule.replicaOf(rank));
            if (const Nanos duration = m_subject.costs.duration(kind, stage, rank); duration > 0)
                work.push_back(
                    {rank, stage,
                     (size * 3 + share) * static_cast<std::int64_t>(opKindRoom) + static_cast<std::int64_t>(kind),
                     count, duration});
        }
        return slownessOf(work, m_subject.schedule.ranks);
    }

    void ranks()
    {
        m_slowness = slowness();
        std::vector<std::size_t> slow;
        for (std::size_t rank = 0; rank < m_slowness.size(); ++rank)
            if (m_slowness[rank].factor > least) slow.push_back(rank);
        std::stable_sort(slow.begin(), slow.end(),
                         [&](std::size_t a, std::size_t b) { return m_slowness[a].factor > m_slowness[b].factor; });
        if (slow.size() > mostOfAKind) slow.resize(mostOfAKind);
        for (const std::size_t rank : slow)
            addCosts(LeverKind::Rank, fmt::format("rank:{}", rank),
                     fmt::format("{} as fast as the others (it takes {:.2f}× as long)",
                                 m_subject.schedule.replicas > 1
                                     ? fmt::format("replica {}'s rank {}",
                                                   m_subject.schedule.replicaOf(static_cast<int>(rank)),
                                                   m_subject.schedule.pipelineRankOf(static_cast<int>(rank)))
                                     : fmt::format("rank {}", rank),
                                 m_slowness[rank].factor),
                     [this, rank, factor = 1 / m_slowness[rank].factor](CostModel& costs) {
                         scaleRank(costs, static_cast<int>(rank), factor);
                     });
        replicas();
    }

    // A pipeline all of whose ranks are slow: one of them alone as fast as the others would hardly help.
    void replicas()
    {
        const Schedule& schedule = m_subject.schedule;
        const int pipeline = schedule.pipelineRanks();
        if (schedule.replicas < 2 || pipeline < 2) return;
        for (int replica = 0; replica < schedule.replicas; ++replica) {
            const auto first = m_slowness.begin() + static_cast<std::ptrdiff_t>(replica) * pipeline;
            const std::vector<RankSlowness> own(first, first + pipeline);
            if (!std::all_of(own.begin(), own.end(), [](const RankSlowness& rank) { return rank.factor > slowRank; }))
                continue;
            std::vector<double> factors;
            for (const RankSlowness& rank : own) factors.push_back(rank.factor);
            addCosts(LeverKind::Replica, fmt::format("replica:{}", replica),
                     fmt::format("replica {} as fast as the others (it takes {:.2f}× as long)", replica,
                                 lowerMedian(factors)),
                     [this, replica, pipeline, factors](CostModel& costs) {
                         for (int k = 0; k < pipeline; ++k)
                             scaleRank(costs, replica * pipeline + k, 1 / factors[static_cast<std::size_t>(k)]);
                     });
        }
    }

    void scaleRank(CostModel& costs, int rank, double factor) const
    {
        for (const int stage : m_subject.schedule.placement.stagesOf(rank))
            for (const OpKind kind : computeKinds())
                costs.scaleOnRank(kind, stage, rank, m_subject.schedule.placement, factor);
    }

    CostModel withRank(int rank, double factor) const
    {
        CostModel costs = m_subject.costs;
        scaleRank(costs, rank, factor);
        return costs;
    }

    // Mean duration over a stage's copies on ranks of equal speed; 0: the stage has no such op.
    double evenDuration(OpKind kind, int stage) const
    {
        const auto& copies = m_subject.schedule.placement.copiesOf(stage);
        double sum = 0;
        for (const auto& copy : copies) {
            const RankSlowness& slow = m_slowness[static_cast<std::size_t>(copy.rank)];
            sum += static_cast<double>(m_subject.costs.duration(kind, stage, copy.rank)) /
                   (slow.known && slow.factor > least ? slow.factor : 1);
        }
        return copies.empty() ? 0 : sum / static_cast<double>(copies.size());
    }

    void stages()
    {
        const Schedule& schedule = m_subject.schedule;
        if (schedule.stages < 2 || schedule.placement.stages() < schedule.stages) return;
        if (wholeLayers()) return;
        std::vector<std::tuple<OpKind, int, double>> factors;
        for (const OpKind kind : computeKinds()) {
            std::vector<double> even;
            double sum = 0;
            int there = 0;
            for (int stage = 0; stage < schedule.stages; ++stage) {
                even.push_back(evenDuration(kind, stage));
                sum += even.back();
                there += even.back() > 0 ? 1 : 0;
            }
            for (int stage = 0; stage < schedule.stages; ++stage) {
                const double own = even[static_cast<std::size_t>(stage)];
                if (own <= 0) continue;
                const double factor = sum / there / own;
                if (std::fabs(factor - 1) < 1e-9) continue;
                factors.emplace_back(kind, stage, factor);
            }
        }
        if (!factors.empty())
            addCosts(LeverKind::Stages, "stages",
                     fmt::format("layers and head spread evenly over the stages{}",
                                 m_subject.costs.layers.empty() ? "" : " (whole layers can't be)"),
                     [factors](CostModel& costs) {
                         for (const auto& [kind, stage, factor] : factors) costs.scale(kind, stage, factor);
                     });
    }

    // Where the costs know layers: a division that can be set, whole layers by stage. False: there is none that differs.
    bool wholeLayers()
    {
        const CostModel& measured = m_subject.costs;
        const std::vector<int>& now = m_subject.layers;
        const int stages = m_subject.schedule.stages;
        if (measured.layers.empty() || static_cast<int>(now.size()) != stages ||
            std::accumulate(now.begin(), now.end(), 0) != blocksOf(measured.layers))
            return false;
        const std::vector<int> then = balancedBlocks(measured.layers, stages);
        const auto before = costsByLayer(measured, m_subject.schedule, now);
        const auto after = costsByLayer(measured, m_subject.schedule, then);
        if (then.empty() || then == now || !before || !after) return false;
        std::vector<std::tuple<OpKind, int, double>> factors;
        for (const OpKind kind : computeKinds())
            for (int stage = 0; stage < stages; ++stage)
                if (const Nanos was = before->duration(kind, stage, -1); was > 0)
                    factors.emplace_back(
                        kind, stage, static_cast<double>(after->duration(kind, stage, -1)) / static_cast<double>(was));
        addCosts(LeverKind::Stages, "stages",
                 fmt::format("layers spread evenly over the stages: {} instead of {}", fmt::join(then, ","),
                             fmt::join(now, ",")),
                 [factors](CostModel& costs) {
                     for (const auto& [kind, stage, factor] : factors) costs.scale(kind, stage, factor);
                 });
        m_table.levers.back().layers = then;
        return true;
    }

    // How long messages take between two ranks, of the larger direction, and the links of both; only pairs that exchange
    // any.
    struct UsedLink {
        Nanos delay = 0;
        Link there, back;
    };
    std::map<std::pair<int, int>, UsedLink> usedLinks() const
    {
        const Schedule& schedule = m_subject.schedule;
        std::map<std::pair<int, int>, UsedLink> out;
        for (const auto& [stage, next] : schedule.graph.edges(schedule.stages)) {
            const Bytes bytes =
                stage < m_subject.costs.stages() ? m_subject.costs.memory[static_cast<std::size_t>(stage)].boundary : 0;
            std::set<int> starts{0};
            for (const int of : {stage, next})
                for (const auto& copy : schedule.placement.copiesOf(of)) starts.insert(copy.firstMicrobatch);
            for (const int microbatch : starts) {
                const int a = schedule.placement.rankOf(stage, microbatch);
                const int b = schedule.placement.rankOf(next, microbatch);
                if (a == b) continue;
                const Links& links = m_subject.costs.links;
                UsedLink& used = out[{std::min(a, b), std::max(a, b)}];
                used.delay = std::max({used.delay, links.delay(a, b, bytes), links.delay(b, a, bytes)});
                used.there = links.of(std::min(a, b), std::max(a, b));
                used.back = links.of(std::max(a, b), std::min(a, b));
            }
        }
        return out;
    }

    // Only those beside compute: a reduction on the compute lane is work of the rank.
    void collectives()
    {
        if (m_subject.costs.links.collectives == ResourceUse::Compute) return;
        const Change noTime = [](CostModel& costs) {
            for (int stage = 0; stage < costs.stages(); ++stage) scaleKinds(costs, isCollective, stage, 0);
        };
        CostModel free = m_subject.costs;
        noTime(free);
        if (free == m_subject.costs) return;
        addCosts(LeverKind::Collectives, "collectives", "gathers and reductions that take no time", noTime);
        gathers();
    }

    // A gather that is slow for its weights: longer than those of most other stages, and for each byte, too. It gets
    // what these take.
    void gathers()
    {
        const CostModel& costs = m_subject.costs;
        const auto takesFor = [&costs](bool (*of)(OpKind), int stage) {
            Nanos sum = 0;
            for (const KindTraits& rule : allKinds())
                if (of(rule.kind)) sum += costs.duration(rule.kind, stage, -1);
            return sum;
        };
        const auto takes = [&takesFor](int stage) { return takesFor(isGather, stage); };
        const auto bytes = [&costs](int stage) {
            return static_cast<double>(std::max<Bytes>(1, costs.memory[static_cast<std::size_t>(stage)].weight));
        };
        std::vector<int> gathered;
        for (int stage = 0; stage < costs.stages(); ++stage)
            if (takes(stage) > 0) gathered.push_back(stage);
        if (gathered.empty()) return;
        bool reduces = false;
        for (int stage = 0; stage < costs.stages(); ++stage) reduces = reduces || takesFor(isReduction, stage) > 0;
        if (reduces)
            addCosts(LeverKind::Gathers, "gathers", "gathers that take no time", [gathered](CostModel& free) {
                for (const int stage : gathered) scaleKinds(free, isGather, stage, 0);
            });
        std::vector<std::tuple<double, int, Nanos>> slow; // how many times as long as usual, and what is usual
        for (const int stage : gathered) {
            std::vector<Nanos> others;
            std::vector<double> rates;
            for (const int other : gathered)
                if (other != stage) {
                    others.push_back(takes(other));
                    rates.push_back(static_cast<double>(takes(other)) / bytes(other));
                }
            if (others.empty()) continue;
            const Nanos usual = std::max<Nanos>(lowerMedian(others), std::llround(lowerMedian(rates) * bytes(stage)));
            const double factor = static_cast<double>(takes(stage)) / static_cast<double>(usual);
            if (factor > slowRank) slow.emplace_back(-factor, stage, usual);
        }
        std::sort(slow.begin(), slow.end());
        if (slow.size() > mostOfAKind) slow.resize(mostOfAKind);
        for (const auto& [factor, stage, usual] : slow) {
            addCosts(LeverKind::Gather, fmt::format("gather:{}", stage),
                     fmt::format("stage {}'s weights gathered as fast as the others' (it takes {:.2f}× as long)", stage,
                                 -factor),
                     [stage = stage, share = static_cast<double>(usual) / static_cast<double>(takes(stage))](
                         CostModel& as) { scaleKinds(as, isGather, stage, share); });
        }
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

    void buckets()
    {
        if (std::all_of(m_subject.bucketing.begin(), m_subject.bucketing.end(), [](Nanos more) { return more <= 0; }))
            return;
        addCosts(LeverKind::Buckets, "buckets", "a stage's gradients reduced at once, not in buckets",
                 [this](CostModel& whole) {
                     whole.sharding.bucket = 0;
                     const int stages = std::min<int>(whole.stages(), static_cast<int>(m_subject.bucketing.size()));
                     for (int stage = 0; stage < stages; ++stage) {
                         const Nanos takes = whole.reduction(stage, -1);
                         const Nanos more = std::min(takes, m_subject.bucketing[static_cast<std::size_t>(stage)]);
                         if (more > 0)
                             whole.scale(OpKind::ReduceGrad, stage,
                                         static_cast<double>(takes - more) / static_cast<double>(takes));
                     }
                 });
    }

    void links()
    {
        if (!m_subject.noArrivals.empty())
            return unknown(LeverKind::Links, "links", "messages that arrive instantly", m_subject.noArrivals);
        const auto used = usedLinks();
        std::vector<Nanos> delays;
        delays.reserve(used.size());
        for (const auto& [ends, link] : used) delays.push_back(link.delay);
        if (delays.empty() || *std::max_element(delays.begin(), delays.end()) == 0) return;
        const auto asked = [this](std::pair<int, int> ends) {
            return std::find(m_subject.emulatedLinks.begin(), m_subject.emulatedLinks.end(), ends) !=
                   m_subject.emulatedLinks.end();
        };
        if (used.size() > 1 || !asked(used.begin()->first))
            addCosts(LeverKind::Links, "links", "messages that arrive instantly", [](CostModel& free) {
                free.links = Links{{}, {}, free.links.collectives, free.links.copies};
            });
        if (used.size() == 1 && !asked(used.begin()->first)) return; // the only link is all of them: one row
        // A slow link gets the latency and the bandwidth that most others have; the only link gets 0.
        std::vector<std::pair<Nanos, std::pair<int, int>>> slow;
        slow.reserve(used.size());
        for (const auto& [ends, link] : used) slow.emplace_back(link.delay, ends);
        std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        std::size_t rows = 0;
        for (const auto& [delay, ends] : slow) {
            const Link usual = usualWithout(used, ends);
            const auto& [there, back] = std::pair(used.at(ends).there, used.at(ends).back);
            const std::pair<int, int> other{ends.second, ends.first};
            const Link thereAs = asFast(there, usual), backAs = asFast(back, usual);
            if (delay == 0 || (thereAs == there && backAs == back)) continue;
            addCosts(
                LeverKind::Link, fmt::format("link:{}-{}", ends.first, ends.second),
                used.size() == 1
                    ? fmt::format("messages between ranks {} and {} that arrive instantly", ends.first, ends.second)
                    : fmt::format("the link between ranks {} and {} as fast as the others", ends.first, ends.second),
                [ends = ends, other, thereAs, backAs](CostModel& costs) {
                    costs.links.overrides[ends] = thereAs;
                    costs.links.overrides[other] = backAs;
                });
            if (++rows == mostOfAKind) break;
        }
    }

    // What the other links usually take in both directions; without others a link that takes no time.
    static Link usualWithout(const std::map<std::pair<int, int>, UsedLink>& used, std::pair<int, int> ends)
    {
        std::vector<Nanos> latencies;
        std::vector<double> perByte; // seconds
        for (const auto& [other, link] : used) {
            if (other == ends) continue;
            for (const Link& way : {link.there, link.back}) {
                latencies.push_back(way.latency);
                perByte.push_back(way.bytesPerSecond > 0 ? 1 / way.bytesPerSecond : 0);
            }
        }
        if (latencies.empty()) return {};
        const double each = upperMedian(std::move(perByte));
        return {upperMedian(std::move(latencies)), each > 0 ? 1 / each : 0};
    }

    // The link itself unless it is slower than usual.
    static Link asFast(const Link& link, const Link& usual)
    {
        Link out = link;
        if (static_cast<double>(link.latency) > least * static_cast<double>(usual.latency)) out.latency = usual.latency;
        const bool limited = link.bytesPerSecond > 0;
        if (limited && (usual.bytesPerSecond == 0 || link.bytesPerSecond * least < usual.bytesPerSecond))
            out.bytesPerSecond = usual.bytesPerSecond;
        return out;
    }

    void launch()
    {
        if (!m_subject.noArrivals.empty())
            return unknown(LeverKind::Launch, "launch", "no launch delay", m_subject.noArrivals);
        const std::vector<Nanos>& delays = m_subject.costs.launch;
        if (std::all_of(delays.begin(), delays.end(), [](Nanos delay) { return delay == 0; })) return;
        addCosts(LeverKind::Launch, "launch", "no launch delay", [](CostModel& costs) { costs.launch.clear(); });
        std::vector<std::pair<Nanos, std::size_t>> slow;
        for (std::size_t rank = 0; rank < delays.size(); ++rank) slow.emplace_back(delays[rank], rank);
        std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        for (std::size_t i = 0; i < std::min(slow.size(), mostOfAKind); ++i) {
            const auto [delay, rank] = slow[i];
            std::vector<Nanos> others = delays;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
            if (static_cast<double>(delay) <= least * static_cast<double>(lowerMedian(others))) break;
            addCosts(LeverKind::LaunchRank, fmt::format("launch:{}", rank),
                     fmt::format("no launch delay on rank {}", rank), [rank = rank](CostModel& costs) {
                         if (rank < costs.launch.size()) costs.launch[rank] = 0;
                     });
        }
    }

    void jitter()
    {
        if (m_subject.costs.jitter <= 0) return;
        addCosts(LeverKind::Jitter, "jitter", "no jitter: every op takes its usual time",
                 [](CostModel& costs) { costs.jitter = 0; });
    }

    void microbatches()
    {
        if (!m_subject.costs.hasMicrobatchDurations()) return;
        addCosts(LeverKind::Microbatches, "microbatches", "microbatches that all take as long as most of their stage",
                 [](CostModel& costs) { costs.clearMicrobatchDurations(); });
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
    Time m_base; // of the subject itself
    std::vector<RankSlowness> m_slowness;
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
