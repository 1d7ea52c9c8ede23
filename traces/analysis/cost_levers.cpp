#include "traces/analysis/cost_levers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/median.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/layer_costs.h"
#include "schedules/model/partial_backward.h"
#include "traces/step/slow_ranks.h"

namespace stagewright {

namespace {

constexpr double least = 1.02;         // a rank, link or delay this far above the others gets a row of its own
constexpr std::size_t mostOfAKind = 8; // ranks, links or delays with a row

std::vector<OpKind> computeKinds()
{
    std::vector<OpKind> kinds;
    for (std::size_t k = 0; k < allKinds().size(); ++k)
        if (isCompute(static_cast<OpKind>(k))) kinds.push_back(static_cast<OpKind>(k));
    return kinds;
}

void scaleKinds(CostModel& costs, bool (*of)(OpKind), int stage, double factor)
{
    for (const KindTraits& rule : allKinds())
        if (of(rule.kind)) costs.scale(rule.kind, stage, factor);
}

// "5,4,3"; of many stages runs of the same number, "0,1×4094,2", and no more of these than a line holds.
std::string byStageText(const std::vector<int>& layers)
{
    constexpr std::size_t most = 16;
    if (layers.size() <= most) return fmt::format("{}", fmt::join(layers, ","));
    std::vector<std::string> runs;
    for (auto at = layers.begin(); at != layers.end();) {
        const auto end = std::find_if(at, layers.end(), [at](int count) { return count != *at; });
        if (runs.size() == most) {
            runs.emplace_back("…");
            break;
        }
        runs.push_back(end - at == 1 ? std::to_string(*at) : fmt::format("{}×{}", *at, end - at));
        at = end;
    }
    return fmt::format("{}", fmt::join(runs, ","));
}

class CostLevers {
public:
    explicit CostLevers(const LeverSubject& subject) : m_subject(subject), m_slowness(slowness()) {}

    std::vector<CostLever> all()
    {
        ranks();
        stages();
        links();
        collectives();
        buckets();
        launch();
        jitter();
        microbatches();
        return std::move(m_levers);
    }

private:
    void add(LeverKind kind, std::string name, std::string title, std::function<void(CostModel&)> change)
    {
        m_levers.push_back({kind, std::move(name), std::move(title), std::move(change)});
    }
    void unknown(LeverKind kind, std::string name, std::string title, std::string reason)
    {
        m_levers.push_back({kind, std::move(name), std::move(title), {}, std::move(reason)});
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
        std::vector<std::size_t> slow;
        for (std::size_t rank = 0; rank < m_slowness.size(); ++rank)
            if (m_slowness[rank].factor > least) slow.push_back(rank);
        std::stable_sort(slow.begin(), slow.end(),
                         [&](std::size_t a, std::size_t b) { return m_slowness[a].factor > m_slowness[b].factor; });
        if (slow.size() > mostOfAKind) slow.resize(mostOfAKind);
        for (const std::size_t rank : slow)
            add(LeverKind::Rank, fmt::format("rank:{}", rank),
                fmt::format("{} as fast as the others (it takes {:.2f}× as long)",
                            m_subject.schedule.replicas > 1
                                ? fmt::format("replica {}'s rank {}",
                                              m_subject.schedule.replicaOf(static_cast<int>(rank)),
                                              m_subject.schedule.pipelineRankOf(static_cast<int>(rank)))
                                : fmt::format("rank {}", rank),
                            m_slowness[rank].factor),
                [&schedule = m_subject.schedule, rank, factor = 1 / m_slowness[rank].factor](CostModel& costs) {
                    scaleRank(costs, schedule, static_cast<int>(rank), factor);
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
            add(LeverKind::Replica, fmt::format("replica:{}", replica),
                fmt::format("replica {} as fast as the others (it takes {:.2f}× as long)", replica,
                            lowerMedian(factors)),
                [&schedule, replica, pipeline, factors](CostModel& costs) {
                    for (int k = 0; k < pipeline; ++k)
                        scaleRank(costs, schedule, replica * pipeline + k, 1 / factors[static_cast<std::size_t>(k)]);
                });
        }
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
            add(LeverKind::Stages, "stages",
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
        add(LeverKind::Stages, "stages",
            fmt::format("layers spread evenly over the stages: {} instead of {}", byStageText(then), byStageText(now)),
            [factors](CostModel& costs) {
                for (const auto& [kind, stage, factor] : factors) costs.scale(kind, stage, factor);
            });
        m_levers.back().layers = then;
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
        const auto noTime = [](CostModel& costs) {
            for (int stage = 0; stage < costs.stages(); ++stage) scaleKinds(costs, isCollective, stage, 0);
        };
        CostModel free = m_subject.costs;
        noTime(free);
        if (free == m_subject.costs) return;
        add(LeverKind::Collectives, "collectives", "gathers and reductions that take no time", noTime);
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
            add(LeverKind::Gathers, "gathers", "gathers that take no time", [gathered](CostModel& free) {
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
            add(LeverKind::Gather, fmt::format("gather:{}", stage),
                fmt::format("stage {}'s weights gathered as fast as the others' (it takes {:.2f}× as long)", stage,
                            -factor),
                [stage = stage, share = static_cast<double>(usual) / static_cast<double>(takes(stage))](CostModel& as) {
                    scaleKinds(as, isGather, stage, share);
                });
        }
    }

    void buckets()
    {
        if (std::all_of(m_subject.bucketing.begin(), m_subject.bucketing.end(), [](Nanos more) { return more <= 0; }))
            return;
        add(LeverKind::Buckets, "buckets", "a stage's gradients reduced at once, not in buckets",
            [&bucketing = m_subject.bucketing](CostModel& whole) {
                whole.sharding.bucket = 0;
                const int stages = std::min<int>(whole.stages(), static_cast<int>(bucketing.size()));
                for (int stage = 0; stage < stages; ++stage) {
                    const Nanos takes = whole.reduction(stage, -1);
                    const Nanos more = std::min(takes, bucketing[static_cast<std::size_t>(stage)]);
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
            add(LeverKind::Links, "links", "messages that arrive instantly", [](CostModel& free) {
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
            add(LeverKind::Link, fmt::format("link:{}-{}", ends.first, ends.second),
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
        add(LeverKind::Launch, "launch", "no launch delay", [](CostModel& costs) { costs.launch.clear(); });
        std::vector<std::pair<Nanos, std::size_t>> slow;
        for (std::size_t rank = 0; rank < delays.size(); ++rank) slow.emplace_back(delays[rank], rank);
        std::stable_sort(slow.begin(), slow.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
        for (std::size_t i = 0; i < std::min(slow.size(), mostOfAKind); ++i) {
            const auto [delay, rank] = slow[i];
            std::vector<Nanos> others = delays;
            others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
            if (static_cast<double>(delay) <= least * static_cast<double>(lowerMedian(others))) break;
            add(LeverKind::LaunchRank, fmt::format("launch:{}", rank), fmt::format("no launch delay on rank {}", rank),
                [rank = rank](CostModel& costs) {
                    if (rank < costs.launch.size()) costs.launch[rank] = 0;
                });
        }
    }

    void jitter()
    {
        if (m_subject.costs.jitter <= 0) return;
        add(LeverKind::Jitter, "jitter", "no jitter: every op takes its usual time",
            [](CostModel& costs) { costs.jitter = 0; });
    }

    void microbatches()
    {
        if (!m_subject.costs.hasMicrobatchDurations()) return;
        add(LeverKind::Microbatches, "microbatches", "microbatches that all take as long as most of their stage",
            [](CostModel& costs) { costs.clearMicrobatchDurations(); });
    }

    const LeverSubject& m_subject;
    std::vector<RankSlowness> m_slowness;
    std::vector<CostLever> m_levers;
};

} // namespace

std::vector<CostLever> costLeversOf(const LeverSubject& subject) { return CostLevers(subject).all(); }

void scaleRank(CostModel& costs, const Schedule& schedule, int rank, double factor)
{
    for (const int stage : schedule.placement.stagesOf(rank))
        for (const OpKind kind : computeKinds()) costs.scaleOnRank(kind, stage, rank, schedule.placement, factor);
}

} // namespace stagewright
