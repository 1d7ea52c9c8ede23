// Real shards: ranks that hold a stage share its weights, gradients and optimizer state, and give the unsharded
// one-rank replay's gradients, losses and weights bit for bit; what they do not own is not allocated, and what travels
// is counted.
#include <QTest>

#include "../schedules/random_schedules.h"
#include "engine/check/check.h"
#include "engine/workload/gpt/stage_memory.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

constexpr ShardLevel everyLevel[] = {ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Gradients,
                                     ShardLevel::Weights};

TrainingOptions trained(const StateSharding& sharding, ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions options = fakeOptions(clock);
    options.backend = "cpu";
    options.sharding = sharding;
    return options;
}

ShardRules rulesOf(unsigned n, ShardLevel level)
{
    ShardRules out;
    out.gather = n % 2 == 0 ? GatherRule::Batch : GatherRule::Microbatch;
    out.prefetch = static_cast<int>(n / 2 % 3);
    out.reduce = static_cast<ReduceRule>(n / 6 % 3);
    // refused
    if (out.reduce == ReduceRule::Microbatch && level < ShardLevel::Gradients) out.reduce = ReduceRule::Overlapped;
    return out;
}

StateSharding shardingOf(ShardLevel level, unsigned n, int members)
{
    StateSharding out;
    out.level = level;
    if (level == ShardLevel::None) return out;
    if (n % 4 == 1) out.by = ShardBy::Layer;
    if (n % 4 == 2) {
        out.by = ShardBy::Shares; // the second has nothing
        out.shares.assign(static_cast<std::size_t>(members), {1, members});
        out.shares[0] = {2, members};
        out.shares[1] = {0, 1};
    }
    if (n % 4 == 3) out.bucket = 1000;
    return out;
}

QString nameOf(const Schedule& schedule, const StateSharding& sharding, const ShardRules& rules)
{
    return QString::fromStdString(schedule.name + " x" + std::to_string(schedule.replicas) + " " + toText(sharding) +
                                  " gather " + gatherText(rules) + " reduce " + std::string(toText(rules.reduce)) +
                                  " bucket " + std::to_string(sharding.bucket));
}

// Steps of a training, the last one's outcome.
std::pair<std::unique_ptr<Training>, StepOutcome> run(const Schedule& schedule, const TrainingOptions& options,
                                                      int steps = 2)
{
    auto training = trainingOf(schedule, options);
    if (!training) qFatal("%s", training.error().message.c_str());
    StepOutcome last;
    for (int i = 0; i < steps; ++i) {
        auto outcome = (*training)->step({});
        if (!outcome) qFatal("%s", outcome.error().message.c_str());
        last = std::move(*outcome);
    }
    return {std::move(*training), std::move(last)};
}

Schedule sharedSchedule(const char* name, int ranks, int microbatches, int replicas, ShardLevel level,
                        const ShardRules& rules, int chunks = 0)
{
    return addShardOps(overReplicas(librarySchedule(name, ranks, microbatches, chunks), replicas).value(), level, rules)
        .value();
}

Bytes elementsOf(const Workload& workload, int stages, int stage)
{
    const std::vector<StageSlice> slices = slicesOf(workload, stages).value();
    Bytes sum = 0;
    for (const std::int64_t layer : workload.layerElements(slices[static_cast<std::size_t>(stage)])) sum += layer;
    return sum;
}

} // namespace

class TestSharedState : public QObject {
    Q_OBJECT

private slots:
    void equalsTheReplay_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("replicas");
        QTest::addColumn<int>("level");
        for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zbv", "bfs", "chimera", "dualpipe"})
            for (const int replicas : {1, 2, 3})
                for (const ShardLevel level : everyLevel)
                    if (replicas > 1 || librarySchedule(name, 2, 4).placement.hasCopies())
                        QTest::addRow("%s %d %s", name, replicas, std::string(toText(level)).c_str())
                            << QString(name) << replicas << static_cast<int>(level);
    }

    void equalsTheReplay()
    {
        QFETCH(QString, name);
        QFETCH(int, replicas);
        QFETCH(int, level);
        const auto what = static_cast<ShardLevel>(level);
        const Schedule plain = overReplicas(librarySchedule(name.toStdString(), 2, 4), replicas).value();
        const auto members = static_cast<int>(holdersOf(plain.placement, 0).size());
        for (unsigned n = 0; n < 3; ++n) { // every rule and every division turn up over the rows
            const unsigned choice = static_cast<unsigned>(qHash(name) + 31U * static_cast<unsigned>(replicas)) + 7U * n;
            check(plain, shardingOf(what, choice + static_cast<unsigned>(level), members), rulesOf(choice, what));
        }
    }

    // The global norm is of all pieces: gradients are clipped as the replay clips them.
    void clips()
    {
        for (const ShardLevel level : everyLevel) {
            TrainingOptions options = trained(shardingOf(level, 0, 3));
            options.optimizer.clipNorm = 0.05;
            const Schedule schedule = sharedSchedule("1f1b", 2, 4, 3, level, {});
            const auto result = checkOf(schedule, options, 3, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
            const auto [free, unclipped] = run(schedule, trained(shardingOf(level, 0, 3)), 3);
            QVERIFY(unclipped.loss != result->loss); // it did clip
        }
    }

    // Optimizers that step as their stage's gradients arrive: the global norm has the last word, bit for bit as with
    // all of them known.
    void stepsOnArrival()
    {
        const ShardRules rules{GatherRule::Batch, 0, ReduceRule::Stepped};
        for (const char* name : {"bfs", "interleaved", "zbv", "chimera"})
            for (const ShardLevel level : everyLevel)
                for (const double clip : {0.0, 0.05, 1e3}) {
                    TrainingOptions options = trained(shardingOf(level, 3, 2));
                    options.optimizer.clipNorm = clip;
                    const Schedule schedule = sharedSchedule(name, 2, 4, 2, level, rules);
                    const auto result = checkOf(schedule, options, 3, {});
                    QVERIFY2(result, result ? "" : (std::string(name) + ": " + result.error().message).c_str());
                    QVERIFY2(result->passed && result->gradientsEqual && result->lossesEqual && result->weightsEqual,
                             (std::string(name) + ": " + result->note).c_str());
                    // Some rank steps before it knows of the others, unless what it knows forbids it.
                    if (clip != 0.05) QCOMPARE(result->rollbacks, 0);
                }
        // A limit that one stage keeps to, but not all of them together: steps are rolled back, and repeated exactly.
        TrainingOptions options = trained({});
        const Schedule schedule = sharedSchedule("bfs", 1, 2, 2, ShardLevel::None, rules, 4);
        int rollbacks = 0;
        for (const double clip : {0.5, 1.0, 1.5, 2.0, 3.0}) {
            options.optimizer.clipNorm = clip;
            const auto result = checkOf(schedule, options, 3, {});
            QVERIFY2(result && result->passed && result->weightsEqual,
                     result ? result->note.c_str() : result.error().message.c_str());
            rollbacks += result->rollbacks;
        }
        QVERIFY(rollbacks > 0);
    }

    // In buckets each one's part of the optimizer steps as it arrives, on the wall clock while later ones travel: bit
    // for bit with all known.
    void stepsByBuckets()
    {
        const ShardRules rules{GatherRule::Batch, 0, ReduceRule::Stepped};
        int rollbacks = 0;
        for (const ShardLevel level : everyLevel)
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual})
                for (const double clip : {0.0, 0.05, 1.0, 2.0, 3.0}) {
                    StateSharding sharding{
                        level, level == ShardLevel::Gradients ? ShardBy::Layer : ShardBy::Even, {}, 3000};
                    TrainingOptions options = trained(sharding, clock);
                    options.optimizer.clipNorm = clip;
                    const Schedule schedule = sharedSchedule("bfs", 1, 2, 2, level, rules, 4);
                    const auto result = checkOf(schedule, options, 3, {});
                    QVERIFY2(result, result ? "" : result.error().message.c_str());
                    QVERIFY2(result->passed && result->gradientsEqual && result->lossesEqual && result->weightsEqual,
                             result->note.c_str());
                    if (clip == 0) QCOMPARE(result->rollbacks, 0);
                    rollbacks += result->rollbacks;
                }
        QVERIFY(rollbacks > 0); // of steps that were taken before the norm forbade them
    }

    // Gradients accumulated layer by layer over all microbatches (Cephalo): a stage for each layer on one rank,
    // breadth-first. A layer is gathered once for F and once for B of the whole batch, and no more than two of them are
    // there at once.
    void layerWise()
    {
        TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Shares, {{1, 2}, {1, 3}, {1, 6}}, 0});
        options.workload = options.workload->withLayers(6);
        const Schedule parts[] = {librarySchedule("bfs", 1, 3, 6), librarySchedule("bfs", 1, 2, 6),
                                  librarySchedule("bfs", 1, 1, 6)};
        const Schedule schedule = addShardOps(overReplicas(parts).value(), ShardLevel::Weights,
                                              {GatherRule::Batch, 1, ReduceRule::Overlapped})
                                      .value();
        const auto result = checkOf(schedule, options, 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed && result->weightsEqual, result->note.c_str());
        Bytes largest = 0;
        for (int stage = 0; stage < 6; ++stage)
            largest = std::max(largest, elementsOf(*options.workload, 6, stage) * 4);
        const auto [training, outcome] = run(schedule, options);
        for (const RankTraffic& rank : outcome.traffic) {
            QCOMPARE(rank.gathers, 2 * 6 - 2); // the last two layers stay for their backwards
            QCOMPARE(rank.reductions, 6);
        }
        for (const Bytes peak : training->peak(MemoryCategory::Gathered)) QVERIFY(peak < 3 * largest);
    }

    void sgd()
    {
        for (const ShardLevel level : everyLevel)
            for (const double momentum : {0.0, 0.9}) {
                TrainingOptions options = trained(shardingOf(level, 1, 2));
                options.optimizer.kind = OptimizerKind::Sgd;
                options.optimizer.momentum = momentum;
                const auto result = checkOf(sharedSchedule("gpipe", 2, 4, 2, level, {}), options, 3, {});
                QVERIFY2(result, result ? "" : result.error().message.c_str());
                QVERIFY2(result->passed, result->note.c_str());
            }
    }

    void unevenReplicas()
    {
        const Schedule parts[] = {librarySchedule("1f1b", 2, 3), librarySchedule("gpipe", 2, 5),
                                  librarySchedule("zb-h1", 2, 2)};
        const Schedule plain = overReplicas(parts).value();
        for (const ShardLevel level : everyLevel)
            check(plain, shardingOf(level, 2, 3), {GatherRule::Batch, 1, ReduceRule::Overlapped});
    }

    // Lists of your own: a gather that nothing needs before the step brings the weights of before the step.
    void gathersForNothing()
    {
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            Schedule schedule =
                sharedSchedule("gpipe", 2, 4, 3, ShardLevel::Weights, {GatherRule::Batch, 0, ReduceRule::Late});
            for (auto& ops : schedule.order) {
                const auto at =
                    std::find_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::ReduceGrad; });
                const int stage = at->stage;
                ops.insert(at, {makeOp(OpKind::Unshard, stage), makeOp(OpKind::Reshard, stage)});
                ops.insert(std::find(ops.begin(), ops.end(), makeOp(OpKind::Optimizer, stage)),
                           makeOp(OpKind::Unshard, stage));
                ops.push_back(makeOp(OpKind::Reshard, stage));
            }
            QVERIFY2(validate(schedule).valid(), toText(schedule).c_str());
            const auto result = checkOf(schedule, trained({ShardLevel::Weights, ShardBy::Even, {}, 0}, clock), 3, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
        }
    }

    // Sends that wait for their receives, in lists that also gather and reduce.
    void rendezvous()
    {
        for (const ShardLevel level : everyLevel) {
            TrainingOptions options = trained(shardingOf(level, 0, 2), ClockMode::Wall);
            options.channels.sends = SendMode::Rendezvous;
            for (const LoweringRule rule : {LoweringRule::RankParity, LoweringRule::Grouped})
                for (const GatherRule gather : {GatherRule::Batch, GatherRule::Microbatch}) {
                    options.lowering.rule = rule;
                    const auto result = checkOf(
                        sharedSchedule("1f1b", 2, 4, 2, level, {gather, 0, ReduceRule::Overlapped}), options, 2, {});
                    QVERIFY2(result, result ? "" : result.error().message.c_str());
                    QVERIFY2(result->passed, result->note.c_str());
                }
        }
    }

    // Microbatches of other sizes in each replica: gradients and losses are means over all samples, so that two
    // replicas of 2 × 2 and 4 × 1 samples weigh alike.
    void microbatchesOfOtherSizes()
    {
        const Schedule parts[] = {librarySchedule("1f1b", 2, 3), librarySchedule("1f1b", 2, 5)};
        const Schedule plain = overReplicas(parts).value();
        for (const bool sharded : {false, true}) {
            TrainingOptions options =
                trained(sharded ? StateSharding{ShardLevel::Weights, ShardBy::Even, {}, 0} : StateSharding{});
            options.replicaSamples = {4, 1};
            const auto result =
                checkOf(sharded ? addShardOps(plain, ShardLevel::Weights, {}).value() : plain, options, 2, {});
            QVERIFY2(result, result ? "" : result.error().message.c_str());
            QVERIFY2(result->passed, result->note.c_str());
        }
        // The loss is the mean over all samples, which are numbered through the batch: that of one pipeline with them.
        TrainingOptions options = trained({});
        options.replicaSamples = {4, 1};
        const auto [both, outcome] = run(plain, options, 1);
        TrainingOptions alone = trained({});
        alone.microbatchSize = 1;
        const auto [training, single] = run(librarySchedule("gpipe", 2, 3 * 4 + 5 * 1), alone, 1);
        QVERIFY(std::abs(outcome.loss - single.loss) < 1e-6);
    }

    // Bytes that a rank takes in a step, with Ψ elements: a reduction and a gather each bring Ψ·(N−1)/N, whatever is
    // sharded; sharded weights are gathered once for F and once for B.
    void volumes()
    {
        TrainingOptions options = trained({});
        for (const int replicas : {2, 4})
            for (const ShardLevel level : everyLevel) {
                options.sharding.level = level;
                const Schedule schedule = level == ShardLevel::None
                                              ? sharedSchedule("gpipe", 1, 3, replicas, level, {})
                                              : sharedSchedule("bfs", 1, 3, replicas, level, {}, 2);
                const auto [training, outcome] = run(schedule, options);
                Bytes psi = 0; // bytes; padded, as pieces are of one size
                for (int stage = 0; stage < schedule.stages; ++stage) {
                    const Bytes elements = elementsOf(*options.workload, schedule.stages, stage);
                    psi += (elements + replicas - 1) / replicas * replicas * 4;
                }
                const Bytes once = psi / replicas * (replicas - 1);
                QCOMPARE(outcome.traffic.size(), static_cast<std::size_t>(replicas));
                for (const RankTraffic& rank : outcome.traffic) {
                    QCOMPARE(rank.reduced, level == ShardLevel::None ? 2 * once : once); // there the sums come back
                    // The second of two chunks stays gathered between its F and its B: it is gathered once less.
                    const Bytes second =
                        (elementsOf(*options.workload, schedule.stages, schedule.stages - 1) + replicas - 1) /
                        replicas * (replicas - 1) * 4;
                    QCOMPARE(rank.gathered, level == ShardLevel::None      ? 0
                                            : level == ShardLevel::Weights ? 2 * once - second
                                                                           : once);
                    QCOMPARE(rank.messages, 0);
                    QCOMPARE(rank.reductions, schedule.stages);
                }
            }
        // Depth first, one microbatch: 3Ψ exactly.
        options.sharding.level = ShardLevel::Weights;
        const auto [training, outcome] =
            run(sharedSchedule("gpipe", 1, 1, 4, ShardLevel::Weights, {GatherRule::Microbatch, 0, ReduceRule::Late}),
                options);
        const Bytes psi = (elementsOf(*options.workload, 1, 0) + 3) / 4 * 4 * 4;
        for (const RankTraffic& rank : outcome.traffic) QCOMPARE(rank.gathered + rank.reduced, 3 * (psi / 4 * 3));
    }

    // Breadth first: a chunk is gathered once for F and once for B of all microbatches, and reduced once; depth first:
    // for each.
    void gathersPerBatch()
    {
        const int microbatches = 6;
        const TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0});
        const ShardRules batch{GatherRule::Batch, 0, ReduceRule::Overlapped};
        const ShardRules each{GatherRule::Microbatch, 0, ReduceRule::Microbatch};
        const auto [bfs, breadth] =
            run(sharedSchedule("bfs", 2, microbatches, 2, ShardLevel::Weights, batch, 2), options);
        for (const RankTraffic& rank : breadth.traffic) {
            QCOMPARE(rank.gathers, 2 * 2 - 1); // the last chunk's F and B follow each other
            QCOMPARE(rank.reductions, 2);
        }
        // What ran, its gathers hidden: idle for (p − 1) / (m · v) of its work.
        const int chunks = 3, ranks = 2;
        const auto [threeChunks, ran] =
            run(sharedSchedule("bfs", ranks, microbatches, 2, ShardLevel::Weights, batch, chunks), options);
        const Schedule lists = scheduleOf(*ran.timeline, ran.step).value();
        QCOMPARE(ran.traffic[0].gathers, 2 * chunks - 1);
        const Nanos turn = 3 * rankShare / chunks; // forward and backward of a chunk's microbatch
        const Nanos work = microbatches * chunks * turn;
        const Nanos idle = simulate(lists, CostModel::uniform(lists)).value().makespan - work;
        QCOMPARE(idle * microbatches * chunks, work * (ranks - 1));
        const auto [oneF, depth] = run(sharedSchedule("1f1b", 2, microbatches, 2, ShardLevel::Weights, each), options);
        for (const RankTraffic& rank : depth.traffic) {
            QCOMPARE(rank.gathers, 2 * microbatches);
            QCOMPARE(rank.reductions, microbatches);
        }
    }

    // What a rank holds, by the engine's own count.
    void holdsItsPartOnly()
    {
        const int replicas = 4;
        for (const ShardLevel level : everyLevel) {
            const TrainingOptions options = trained({level, ShardBy::Even, {}, 0});
            const auto [training, outcome] = run(sharedSchedule("gpipe", 2, 2, replicas, level, {}), options);
            for (int rank = 0; rank < 2 * replicas; ++rank) {
                const Bytes elements = elementsOf(*options.workload, 2, rank % 2);
                const Bytes part = (elements + replicas - 1) / replicas * 4;
                const Bytes all = part * replicas;
                const auto peak = [&, training = training.get()](MemoryCategory category) {
                    return training->peak(category)[static_cast<std::size_t>(rank)];
                };
                QCOMPARE(peak(MemoryCategory::Weights), level == ShardLevel::Weights ? part : all);
                QCOMPARE(peak(MemoryCategory::Optimizer), level == ShardLevel::None ? 2 * all : 2 * part);
                // Sharded gradients are whole from the first weight gradient until they are handed to their owners.
                QCOMPARE(peak(MemoryCategory::Gradients), level >= ShardLevel::Gradients ? all + part : all);
                if (level < ShardLevel::Weights) QCOMPARE(peak(MemoryCategory::Gathered), 0);
                if (level == ShardLevel::Weights)
                    QVERIFY(peak(MemoryCategory::Gathered) >= all && peak(MemoryCategory::Gathered) < all + all / 4);
                Bytes held = 0; // after the step
                for (const MemoryEvent& event : outcome.timeline->memoryOf(rank))
                    if (event.category == MemoryCategory::Gradients) held += event.delta;
                QCOMPARE(held, 0); // of one step: what comes goes
            }
        }
    }

    // Buckets are free again as the backward goes on: at a chunk's reduction all have sent the one before, as its
    // weights came behind that.
    void freesBuckets()
    {
        const int chunks = 8;
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            const TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0}, clock);
            const Schedule schedule = sharedSchedule("bfs", 1, 2, 2, ShardLevel::Weights,
                                                     {GatherRule::Batch, 0, ReduceRule::Overlapped}, chunks);
            Bytes largest = 0;
            for (int stage = 0; stage < chunks; ++stage)
                largest = std::max(largest, elementsOf(*options.workload, chunks, stage) * 4);
            for (const Bytes peak : run(schedule, options).first->peak(MemoryCategory::Buckets)) {
                QVERIFY(peak >= largest);
                QVERIFY(peak <= 2 * largest + 8 * chunks); // padding
            }
        }
    }

    // A weight gradient that comes between a gather ahead and the others' pieces: it reads norms, in memory that was
    // used for something else.
    void weightGradientsBehindGathers()
    {
        for (const char* name : {"v-half", "v-min"})
            check(overReplicas(librarySchedule(name, 2, 4), 2).value(), {ShardLevel::Weights, ShardBy::Even, {}, 0},
                  {GatherRule::Microbatch, 1, ReduceRule::Microbatch});
    }

    // Lists that are unlike, of many forms.
    void randomLists()
    {
        int shared = 0, stepped = 0;
        for (unsigned seed = 0; seed < 40; ++seed) {
            const int replicas = 1 + static_cast<int>(seed % 3);
            const Schedule plain = overReplicas(randomSchedule(seed, false, seed % 4 == 0), replicas).value();
            if (!plain.placement.hasCopies()) continue;
            bool alike = true; // shares are for one number of ranks
            for (int stage = 1; stage < plain.stages; ++stage)
                alike = alike && holdersOf(plain.placement, stage).size() == holdersOf(plain.placement, 0).size();
            const auto members = static_cast<int>(holdersOf(plain.placement, 0).size());
            const ShardLevel level = everyLevel[seed / 3 % 4];
            StateSharding sharding = shardingOf(level, alike && members > 1 ? seed : seed | 1U, members);
            check(plain, sharding, rulesOf(seed * 5, level));
            ++shared;
            const ShardRules onArrival{GatherRule::Batch, 0, ReduceRule::Stepped};
            if (!addShardOps(plain, level, onArrival)) continue; // stages that are finished in other orders
            sharding.bucket = 500 + 700 * static_cast<Bytes>(seed % 5);
            check(plain, sharding, onArrival);
            ++stepped;
        }
        QVERIFY(shared > 25 && stepped > 5);
    }

    // On the wall clock with emulated links: gathers are spans beside compute, what waits for one is tied to it, and a
    // prefetch hides them.
    void gathersBesideCompute()
    {
        TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0}, ClockMode::Wall);
        options.links.all.latency = 2'000'000;
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            options.clock = clock;
            const Schedule schedule = sharedSchedule("gpipe", 1, 2, 2, ShardLevel::Weights, {});
            const auto [training, outcome] = run(schedule, options);
            for (int rank = 0; rank < 2; ++rank) {
                const Track* gathers = outcome.timeline->trackOf(rank, Lane::Gather);
                const Track* compute = outcome.timeline->trackOf(rank, Lane::Compute);
                QVERIFY(gathers && compute && outcome.timeline->trackOf(rank, Lane::Reduce));
                const auto spans = outcome.timeline->spansOf(*gathers);
                const Span& first = outcome.timeline->spansOf(*compute).front();
                const Span& gather = spans.front();
                QCOMPARE(gather.op.kind, OpKind::Unshard);
                // on a busy computer one comes late
                const Nanos peer =
                    outcome.timeline->spansOf(*outcome.timeline->trackOf(1 - rank, Lane::Gather)).front().start;
                QVERIFY(gather.end - std::min(gather.start, peer) >= 2'000'000);
                QVERIFY(first.start >= gather.end); // F waits for its weights
                bool tied = false;
                for (const Edge& edge :
                     outcome.timeline->edgesInto(static_cast<SpanId>(&first - outcome.timeline->spans().data())))
                    tied = tied ||
                           (edge.kind == EdgeKind::Order && outcome.timeline->trackOf(edge.from).lane == Lane::Gather);
                QVERIFY(tied);
                for (const Span& span : outcome.timeline->spansOf(*compute)) QVERIFY(!isCollective(span.op.kind));
            }
            const auto& counters = outcome.timeline->counters();
            QVERIFY(std::any_of(counters.begin(), counters.end(),
                                [](const Counter& counter) { return counter.name == "weights received"; }));
        }
    }

    // Prefetched, a gather over a slow link is over before anything needs it: its time is hidden where compute lasts
    // longer, and the ops are those that are simulated, in their order.
    void runsAsSimulated()
    {
        for (unsigned n = 0; n < 12; ++n)
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                const ShardLevel level = everyLevel[n % 4];
                const ShardRules rules = rulesOf(n, level);
                const Schedule schedule = sharedSchedule(n % 3 == 0   ? "bfs"
                                                         : n % 3 == 1 ? "zb-h1"
                                                                      : "1f1b",
                                                         2, 4, 2, level, rules);
                const auto [training, outcome] = run(schedule, trained(shardingOf(level, n, 2), clock), 1);
                CostModel costs = CostModel::uniform(schedule);
                costs.links.collectives = ResourceUse::Beside;
                QVERIFY(simulate(schedule, costs));
                for (int rank = 0; rank < schedule.ranks; ++rank)
                    for (const Lane lane : {Lane::Compute, Lane::Gather, Lane::Reduce}) {
                        std::vector<Op> planned;
                        for (const Op& op : schedule.order[static_cast<std::size_t>(rank)])
                            if ((op.kind == OpKind::ReduceGrad ? Lane::Reduce
                                 : isCollective(op.kind)       ? Lane::Gather
                                                               : Lane::Compute) == lane)
                                planned.push_back(op);
                        std::vector<Op> ran;
                        if (const Track* track = outcome.timeline->trackOf(rank, lane))
                            for (const Span& span : outcome.timeline->spansOf(*track))
                                if (span.label == 0) ran.push_back(span.op);
                        // gathers of the stepped weights: by stage, as all their ranks come to them
                        const bool tail = clock == ClockMode::Virtual && lane == Lane::Gather;
                        if (tail) {
                            std::sort(planned.begin(), planned.end());
                            std::sort(ran.begin(), ran.end());
                        }
                        QVERIFY2(planned == ran, (nameOf(schedule, {level, ShardBy::Even, {}, 0}, rules) +
                                                  QString(" rank %1 lane %2").arg(rank).arg(static_cast<int>(lane)))
                                                     .toUtf8()
                                                     .constData());
                    }
            }
    }

    void hidesGathers()
    {
        TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0});
        options.workload = test::gpt({4, 64, 4, 64, 256});
        const auto exposed = [&](int prefetch, Nanos latency) {
            options.links.all.latency = latency;
            const auto [training, outcome] = run(
                sharedSchedule("bfs", 1, 8, 2, ShardLevel::Weights, {GatherRule::Batch, prefetch, ReduceRule::Late}, 4),
                options);
            Nanos waited = 0; // behind the first op, for a gather
            for (int rank = 0; rank < 2; ++rank) {
                const auto spans = outcome.timeline->spansOf(*outcome.timeline->trackOf(rank, Lane::Compute));
                for (std::size_t i = 1; i < spans.size(); ++i)
                    if (isBusy(spans[i].op.kind)) waited += std::max<Nanos>(0, spans[i].start - spans[i - 1].end);
            }
            return waited;
        };
        const Nanos slow = 300'000; // far less than a chunk's 8 forwards
        const Nanos waits = exposed(0, slow);
        QVERIFY(waits >= 2 * 6 * slow); // every gather but the first waits: 2 · 4 − 1
        // One of a few: on a busy machine a rank also waits for a processor.
        QVERIFY(exposed(1, slow) < waits || exposed(1, slow) < waits || exposed(1, slow) < waits);
    }

    // A backend that can't hold a part of a stage says so, by its name.
    void refusesOtherBackends()
    {
        TrainingOptions options = fakeOptions();
        options.sharding.level = ShardLevel::Weights;
        const auto training = fakeTraining(sharedSchedule("1f1b", 2, 4, 2, ShardLevel::Weights, {}), options);
        QVERIFY(!training);
        QVERIFY2(
            QString::fromStdString(training.error().message).contains("the fake backend can't share a stage's state"),
            training.error().message.c_str());
        QVERIFY(QString::fromStdString(training.error().remedy).contains("--backend cpu"));
    }

    // Beyond a declared limit a rank's allocation is refused, by rank, op and sizes; below it the training is the same.
    void limitsMemory()
    {
        TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0});
        const Schedule schedule = sharedSchedule("gpipe", 1, 4, 2, ShardLevel::Weights, {});
        const auto [free, outcome] = run(schedule, options, 1);
        Bytes held = 0;
        for (std::size_t i = 0; i < memoryCategoryCount; ++i) held += free->peak(static_cast<MemoryCategory>(i))[1];
        options.rankMemory = {0, held};
        QCOMPARE(run(schedule, options, 1).second.loss, outcome.loss);
        options.rankMemory = {0, held / 2};
        auto training = trainingOf(schedule, options);
        QVERIFY(training);
        const auto stopped = (*training)->step({});
        QVERIFY(!stopped);
        const QString words = QString::fromStdString(stopped.error().message);
        QVERIFY2(words.startsWith("rank 1, op ") && words.contains("bytes beside the") &&
                     words.contains(QString("over the limit of %1").arg(held / 2)),
                 qPrintable(words));
        options.rankMemory = {0};
        QVERIFY(!trainingOf(schedule, options));
    }

    void refusals_data()
    {
        QTest::addColumn<QString>("words");
        for (const char* words : {"no ranks share this stage's state", "do not say when", "never gathers them",
                                  "never gathers the stepped weights", "gradients that stay whole",
                                  "2 shares of the state for 3", "follows 0UNSHARD", "are not reduced"})
            QTest::addRow("%s", words) << QString(words);
    }

    void refusals()
    {
        QFETCH(QString, words);
        const auto plain = overReplicas(librarySchedule("1f1b", 2, 4), 3).value();
        const auto added = [&](ShardLevel level, ReduceRule reduce = ReduceRule::Late) {
            return addShardOps(plain, level, {GatherRule::Batch, 0, reduce}).value();
        };
        Schedule schedule = added(ShardLevel::Weights);
        TrainingOptions options = trained({ShardLevel::Weights, ShardBy::Even, {}, 0});
        if (words == "no ranks share this stage's state")
            schedule = addShardOps(librarySchedule("1f1b", 2, 4), ShardLevel::Weights, {}).value();
        if (words == "do not say when") schedule = plain;
        if (words == "never gathers them") schedule = added(ShardLevel::None);
        if (words == "never gathers the stepped weights") {
            schedule = added(ShardLevel::None);
            options.sharding.level = ShardLevel::Optimizer;
        }
        if (words == "gradients that stay whole") {
            schedule = added(ShardLevel::Optimizer, ReduceRule::Microbatch);
            options.sharding.level = ShardLevel::Optimizer;
        }
        if (words.startsWith("2 shares"))
            options.sharding = {ShardLevel::Weights, ShardBy::Shares, {{1, 2}, {1, 2}}, 0};
        if (words == "follows 0UNSHARD" || words == "are not reduced") {
            const ShardLevel level = words == "are not reduced" ? ShardLevel::None : ShardLevel::Optimizer;
            schedule = sharedSchedule("interleaved", 2, 4, 3, level, {});
            options.sharding = {level, ShardBy::Even, {}, 0};
            for (auto& ops : schedule.order) {
                if (words == "are not reduced") {
                    std::erase_if(ops, [](const Op& op) { return op.kind == OpKind::ReduceGrad && op.stage == 0; });
                } else if (const auto at = std::find(ops.begin(), ops.end(), makeOp(OpKind::Optimizer, 0));
                           at != ops.end()) {
                    // before the other stage's reduction
                    std::erase_if(ops, [](const Op& op) {
                        return op.stage == 0 && (op.kind == OpKind::Optimizer || op.kind == OpKind::ReduceGrad ||
                                                 op.kind == OpKind::Unshard);
                    });
                    const auto other = std::find_if(ops.begin(), ops.end(),
                                                    [](const Op& op) { return op.kind == OpKind::ReduceGrad; });
                    ops.insert(other, {makeOp(OpKind::ReduceGrad, 0), makeOp(OpKind::Optimizer, 0),
                                       makeOp(OpKind::Unshard, 0)});
                }
            }
        }
        const auto training = trainingOf(schedule, options);
        QVERIFY(!training);
        QVERIFY2(QString::fromStdString(training.error().message)
                     .contains(words == "are not reduced" ? QStringLiteral("are never reduced on rank 0") : words),
                 training.error().message.c_str());
        QVERIFY(!training.error().remedy.empty());
    }

private:
    static void check(const Schedule& plain, const StateSharding& sharding, const ShardRules& rules)
    {
        const auto schedule = addShardOps(plain, sharding.level, rules);
        QVERIFY2(schedule, schedule ? "" : schedule.error().message.c_str());
        const QByteArray what = nameOf(*schedule, sharding, rules).toUtf8();
        const Validation validation = validate(*schedule);
        if (!validation.valid()) return; // uneven replicas that gather for each microbatch: refused before
        const auto result = checkOf(*schedule, trained(sharding), 2, {});
        QVERIFY2(result, (what + ": " + (result ? "" : result.error().message.c_str())).constData());
        QVERIFY2(result->gradientsEqual, what.constData());
        QVERIFY2(result->weightsEqual, what.constData());
        QVERIFY2(result->lossesEqual, what.constData());
        QVERIFY2(result->copiesEqual, what.constData());
        QVERIFY2(result->repeatEqual, what.constData());
        QVERIFY2(result->orderEqual, what.constData());
        QVERIFY2(result->passed, (what + ": " + result->note.c_str()).constData());
    }
};

QTEST_GUILESS_MAIN(TestSharedState)
#include "tst_shared_state.moc"
