// A mixed cluster: replicas of other speeds and memory. Cephalo (arXiv 2411.01075) divides compute by speed and state
// by what memory is left; one division for both is slow where it is even, and over the fast card's memory where it is
// by speed.
#include <QtTest>

#include <map>
#include <numeric>

#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

constexpr int replicas = 3, chunks = 2, batch = 12;
constexpr std::array<int, replicas> speeds{3, 2, 1};
constexpr std::array<Bytes, replicas> memory{130'000, 150'000, 160'000}; // the fast one has the least
constexpr Bytes weight = 12'000, state = 8 * weight, activation = 4'000; // of a chunk; of a chunk and microbatch
constexpr Nanos latency = 1000;
constexpr double bytesPerSecond = 1e7;
constexpr Nanos forward = rankShare / chunks; // of a microbatch, speed 1; a backward takes twice as long

using Parts = std::array<int, replicas>;

struct Split {
    Parts microbatches;
    Parts shares; // of the state, in twelfths
};

struct Outcome {
    Nanos makespan = 0;
    std::array<Bytes, replicas> peak{};
    bool fits() const
    {
        for (std::size_t i = 0; i < replicas; ++i)
            if (peak[i] > memory[i]) return false;
        return true;
    }
};

// Layer-wise: all microbatches of a chunk, then the next, so that a chunk is gathered once for all of them.
Outcome simulated(const Split& split)
{
    std::vector<Schedule> each;
    StateSharding sharding{ShardLevel::Weights, ShardBy::Shares, {}, 0};
    for (std::size_t i = 0; i < replicas; ++i) {
        each.push_back(makeSchedule("bfs", Shape(1, split.microbatches[i], chunks)).value());
        sharding.shares.push_back({split.shares[i], batch});
    }
    const Schedule schedule = addShardOps(overReplicas(each).value(), ShardLevel::Weights, {}).value();
    CostModel costs = CostModel::uniform(schedule);
    costs.links.collectives = ResourceUse::Beside;
    costs.sharding = sharding;
    for (int stage = 0; stage < chunks; ++stage) {
        StageMemory& held = costs.memory[static_cast<std::size_t>(stage)];
        held = {};
        held.weight = held.gradient = weight;
        held.optimizer = 6 * weight;
        held.activation = activation;
        for (int rank = 0; rank < replicas; ++rank)
            for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                costs.scaleOnRank(kind, stage, rank, schedule.placement, 1.0 / speeds[static_cast<std::size_t>(rank)]);
    }
    CollectiveCosts link;
    link.within = {latency, bytesPerSecond};
    setCollectiveTimes(costs, schedule, link);
    const SimResult result = simulate(schedule, costs).value();
    const auto timeline = timelineOf(schedule, result, costs).value();
    Outcome out;
    out.makespan = result.makespan;
    for (int rank = 0; rank < replicas; ++rank) {
        Bytes now = 0;
        for (const MemoryEvent& event : timeline->memoryOf(rank)) {
            now += event.delta;
            out.peak[static_cast<std::size_t>(rank)] = std::max(out.peak[static_cast<std::size_t>(rank)], now);
        }
    }
    return out;
}

// The slowest rank's compute; 2v − 1 gathers and v reductions, each a ring whose steps carry the largest piece.
Nanos expectedTime(const Split& split)
{
    Nanos compute = 0;
    for (std::size_t i = 0; i < replicas; ++i)
        compute = std::max(compute, split.microbatches[i] * 3 * chunks * forward / speeds[i]);
    const Bytes largest = weight * *std::max_element(split.shares.begin(), split.shares.end()) / batch;
    const Nanos collective =
        (replicas - 1) * (latency + static_cast<Nanos>(static_cast<double>(largest) * 1e9 / bytesPerSecond));
    return compute + (3 * chunks - 1) * collective;
}

// Its part of the state, one chunk's gathered weights, the whole gradients of the chunks gone back through so far (they
// are reduced at the end) and the activations of all its microbatches in the others: at the first backward or at a
// later chunk's.
Bytes expectedPeak(const Split& split, std::size_t rank)
{
    Bytes most = 0;
    for (int done = 0; done < chunks; ++done)
        most = std::max(most, weight + (done + 1) * weight + (chunks - done) * split.microbatches[rank] * activation);
    return chunks * state * split.shares[rank] / batch + most;
}

} // namespace

class TestMixedCluster : public QObject {
    Q_OBJECT

private slots:
    void decoupledSplitWins()
    {
        const Split even{{4, 4, 4}, {4, 4, 4}}, bySpeed{{6, 4, 2}, {6, 4, 2}}, decoupled{{6, 4, 2}, {2, 4, 6}};
        std::map<const Split*, Outcome> outcomes;
        for (const Split* split : {&even, &bySpeed, &decoupled}) {
            const Outcome& outcome = outcomes[split] = simulated(*split);
            QCOMPARE(outcome.makespan, expectedTime(*split));
            for (std::size_t i = 0; i < replicas; ++i) QCOMPARE(outcome.peak[i], expectedPeak(*split, i));
        }
        QVERIFY(outcomes[&even].fits());
        QVERIFY(!outcomes[&bySpeed].fits());
        QCOMPARE(outcomes[&bySpeed].peak[0], Bytes(168'000)); // the fast card has most work and, so divided, most state
        QVERIFY(outcomes[&decoupled].fits());
        QCOMPARE(outcomes[&even].makespan, Nanos(12 * rankShare + 5 * 2 * (1000 + 400'000)));
        QCOMPARE(outcomes[&decoupled].makespan, Nanos(6 * rankShare + 5 * 2 * (1000 + 600'000)));
        QCOMPARE(outcomes[&decoupled].makespan, outcomes[&bySpeed].makespan); // what fits costs no time
    }

    // The fastest division that is the same for compute and state, and fits, is slower, too.
    void noCoupledSplitIsAsFast()
    {
        Nanos fastest = std::numeric_limits<Nanos>::max();
        Parts best{};
        int fitting = 0, all = 0;
        for (int a = 1; a < batch; ++a)
            for (int b = 1; a + b < batch; ++b) {
                const Split split{{a, b, batch - a - b}, {a, b, batch - a - b}};
                const Outcome outcome = simulated(split);
                ++all;
                if (!outcome.fits()) continue;
                ++fitting;
                if (outcome.makespan >= fastest) continue;
                fastest = outcome.makespan;
                best = split.microbatches;
            }
        QCOMPARE(all, 55);
        QVERIFY(fitting > 0 && fitting < all);
        QCOMPARE(best, (Parts{4, 5, 3}));
        QCOMPARE(fastest, expectedTime({best, best}));
        QVERIFY(simulated({{6, 4, 2}, {2, 4, 6}}).makespan * 10 < fastest * 8);
    }
};

QTEST_APPLESS_MAIN(TestMixedCluster)
#include "tst_mixed_cluster.moc"
