// Replicas and sharded state: values, the ops in the lists and where the rules put them, their times and their memory.
#include <QtTest>

#include <cmath>

#include "mutated_schedules.h"
#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"
#include "schedules/messages/lower.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/mesh.h"
#include "schedules/model/shard_rules.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"

using namespace stagewright;

namespace {

constexpr std::array<ShardLevel, 4> everyLevel{ShardLevel::None, ShardLevel::Optimizer, ShardLevel::Gradients,
                                               ShardLevel::Weights};

Schedule made(const char* name, int ranks, int microbatches, int chunks = 0)
{
    return makeSchedule(name, Shape(ranks, microbatches, chunks)).value();
}

ShardRules rulesOf(unsigned n)
{
    ShardRules out;
    out.gather = n % 2 == 0 ? GatherRule::Batch : GatherRule::Microbatch;
    out.prefetch = static_cast<int>(n / 2 % 4);
    out.reduce = static_cast<ReduceRule>(n / 8 % 3);
    return out;
}

int countOf(const Schedule& schedule, int rank, OpKind kind)
{
    const auto& ops = schedule.order[static_cast<std::size_t>(rank)];
    return static_cast<int>(std::count_if(ops.begin(), ops.end(), [kind](const Op& op) { return op.kind == kind; }));
}

// Times and bytes that differ by stage, and a sharded state.
CostModel costsFor(const Schedule& schedule, const StateSharding& sharding, int replicas,
                   const CollectiveCosts& collectives, ResourceUse lane = ResourceUse::Beside)
{
    CostModel costs = CostModel::uniform(schedule);
    for (int s = 0; s < schedule.stages; ++s) {
        StageMemory& memory = costs.memory[static_cast<std::size_t>(s)];
        memory.weight = memory.gradient = 2000 * (s + 1);
        memory.optimizer = 12000 * (s + 1);
        costs.setDuration(OpKind::Optimizer, s, 600 * (s + 1));
    }
    costs.sharding = sharding;
    costs.replicas = replicas;
    costs.links.collectives = lane;
    setCollectiveTimes(costs, schedule, collectives);
    return costs;
}

CollectiveCosts linkOf(Nanos latency, double bytesPerSecond)
{
    CollectiveCosts out;
    out.within = {latency, bytesPerSecond};
    return out;
}

} // namespace

class TestShards : public QObject {
    Q_OBJECT

private slots:
    // Stepped: a stage's OPT is behind the next one's reduction; gathers of stepped weights come at the end.
    void stepsOnArrivalInLists()
    {
        const Schedule plain = overReplicas(made("gpipe", 1, 1), 2).value();
        // one stage: nothing is left to do
        QVERIFY(
            !stepsOnArrival(addShardOps(plain, ShardLevel::None, {GatherRule::Batch, 0, ReduceRule::Stepped}).value()));
        const Schedule bfs = overReplicas(made("bfs", 1, 1, 3), 2).value();
        const Schedule whole =
            addShardOps(bfs, ShardLevel::Optimizer, {GatherRule::Batch, 0, ReduceRule::Stepped}).value();
        QCOMPARE(QString::fromStdString(toText(whole)).section('\n', 0, 0),
                 QString("0F0 1F0 2F0 2B0 2REDUCE_GRAD 1B0 1REDUCE_GRAD 2OPT 0B0 0REDUCE_GRAD 1OPT 0OPT 2UNSHARD "
                         "1UNSHARD 0UNSHARD"));
        QVERIFY(stepsOnArrival(whole));
        QVERIFY(!stepsOnArrival(
            addShardOps(bfs, ShardLevel::Optimizer, {GatherRule::Batch, 0, ReduceRule::Overlapped}).value()));
        for (const char* name : {"interleaved", "zbv", "bfs", "chimera", "v-half"})
            for (const ShardLevel level : everyLevel) {
                const Schedule lists = addShardOps(overReplicas(made(name, 2, 4), 2).value(), level,
                                                   {GatherRule::Batch, 0, ReduceRule::Stepped})
                                           .value();
                QVERIFY2(validate(lists).valid(), name);
                QVERIFY2(simulate(lists, costsFor(lists, {level, ShardBy::Even, {}, 0}, 1, {})), name);
            }
        // The optimizer runs while the rank goes back on: the step ends earlier where its reductions are hidden.
        const auto endOf = [](ReduceRule rule) {
            const Schedule lists = addShardOps(overReplicas(made("bfs", 2, 8, 3), 2).value(), ShardLevel::None,
                                               {GatherRule::Batch, 0, rule})
                                       .value();
            CostModel costs = CostModel::uniform(lists);
            costs.links.collectives = ResourceUse::Beside;
            for (int stage = 0; stage < lists.stages; ++stage) {
                costs.setDuration(OpKind::ReduceGrad, stage, rankShare / 10);
                costs.setDuration(OpKind::Optimizer, stage, rankShare);
            }
            const SimResult result = simulate(lists, costs).value();
            return *std::max_element(result.end.begin(), result.end.end());
        };
        QVERIFY(endOf(ReduceRule::Stepped) <= endOf(ReduceRule::Overlapped));
        // In n buckets an OPT starts when the first has arrived, but so late that it needn't wait for the last: by
        // hand, of a reduction of 8 that starts at 0 and an optimizer of 4 behind it, in 4 buckets: max(2, 8 − 3) = 5;
        // of 12, max(2, 8 − 9) = 2.
        for (const int buckets : {1, 4})
            for (const Nanos step : {4, 12}) {
                // 2REDUCE_GRAD 1B0 1REDUCE_GRAD 2OPT 0B0 …
                const Schedule one = overReplicas(made("bfs", 1, 1, 3), 2).value();
                Schedule early =
                    addShardOps(one, ShardLevel::None, {GatherRule::Batch, 0, ReduceRule::Stepped}).value();
                CostModel costs = CostModel::uniform(early);
                costs.links.collectives = ResourceUse::Beside;
                for (int stage = 0; stage < 3; ++stage) {
                    costs.memory[static_cast<std::size_t>(stage)].gradient = 1000;
                    for (const OpKind kind : {OpKind::Forward, OpKind::Backward}) costs.setDuration(kind, stage, 0);
                    costs.setDuration(OpKind::ReduceGrad, stage, stage == 2 ? 8 : 0);
                    costs.setDuration(OpKind::Optimizer, stage, stage == 2 ? step : 0);
                }
                costs.sharding.bucket = 1000 / buckets;
                const SimResult result = simulate(early, costs).value();
                const auto& ops = early.order[0];
                const auto at = static_cast<std::size_t>(
                    std::find(ops.begin(), ops.end(), makeOp(OpKind::Optimizer, 2)) - ops.begin());
                QCOMPARE(result.start[result.indexOf(0, at)], buckets == 1 ? 8 : step == 4 ? 5 : 2);
                QCOMPARE(result.end[result.indexOf(0, at)] - result.start[result.indexOf(0, at)], step);
            }
        // Stages that are finished in other orders would wait for each other.
        const Schedule unlike[] = {made("bfs", 1, 2, 2), overReplicas(made("bfs", 1, 2, 2), 1).value()};
        Schedule turned = unlike[1];
        const auto last = std::find_if(turned.order[0].begin(), turned.order[0].end(),
                                       [](const Op& op) { return op.kind == OpKind::Backward; });
        turned.order[0].erase(last, turned.order[0].end());
        for (const char* text : {"1I0", "0I0", "0W0", "1I1", "0I1", "0W1", "1W0", "1W1"})
            turned.order[0].push_back(*parseOp(text));
        const Schedule parts[] = {unlike[0], turned};
        const auto refused =
            addShardOps(overReplicas(parts).value(), ShardLevel::None, {GatherRule::Batch, 0, ReduceRule::Stepped});
        QVERIFY(!refused && refused.error().code == ErrorCode::Usage);
    }

    // Microbatches of other sizes in a replica: activations and messages of that replica alone.
    void microbatchSizes()
    {
        const Schedule lists = overReplicas(made("1f1b", 2, 4), 2).value();
        CostModel costs = CostModel::uniform(lists);
        for (StageMemory& memory : costs.memory) memory.boundary = 1000;
        costs.links.all = {0, 1e9}; // 1,000 ns
        const std::vector<Bytes> before = activationPeaks(lists, costs);
        costs.sizes = {1, 2.5};
        const std::vector<Bytes> peaks = activationPeaks(lists, costs);
        for (std::size_t rank = 0; rank < 4; ++rank)
            QCOMPARE(peaks[rank], rank < 2 ? before[rank] : before[rank] * 5 / 2);
        const SimResult result = simulate(lists, costs).value();
        QCOMPARE(result.start[result.indexOf(1, 0)] - result.end[result.indexOf(0, 0)], 1000);
        QCOMPARE(result.start[result.indexOf(3, 0)] - result.end[result.indexOf(2, 0)], 2500);
        QCOMPARE(readCostsJson(writeCostsJson(costs)).value(), costs);
        QVERIFY(!readCostsJson(R"({"format":"stagewright costs","version":2,"microbatch_sizes":[0]})"));
    }

    void opTexts()
    {
        for (const char* text :
             {"2UNSHARD3", "2UNSHARD", "1RESHARD0", "1RESHARD", "0REDUCE_GRAD", "0REDUCE_GRAD7", "0REDUCE_GRAD0-3"}) {
            const auto op = parseOp(text);
            QVERIFY2(op, text);
            QCOMPARE(QString::fromStdString(toText(*op)), QString(text));
        }
        QCOMPARE(parseOp("2UNSHARD")->microbatch, -1);
        QVERIFY(!parseOp("2OPT3"));
        QVERIFY(!parseOp("2UNSHARDx"));
    }

    void placesByRule()
    {
        const Schedule gpipe = made("gpipe", 1, 2);
        struct Case {
            ShardLevel level;
            const char* gather;
            ReduceRule reduce;
            const char* expected;
        };
        const Case cases[] = {
            {ShardLevel::Weights, "batch", ReduceRule::Late, "0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD 0REDUCE_GRAD 0OPT\n"},
            {ShardLevel::Weights, "microbatch", ReduceRule::Overlapped,
             "0UNSHARD0 0F0 0RESHARD0 0UNSHARD1 0F1 0RESHARD1 0UNSHARD0 0B0 0RESHARD0 0UNSHARD1 0B1 0REDUCE_GRAD "
             "0RESHARD1 0OPT\n"},
            {ShardLevel::Gradients, "batch", ReduceRule::Microbatch,
             "0F0 0F1 0B0 0REDUCE_GRAD0 0B1 0REDUCE_GRAD1 0OPT 0UNSHARD\n"},
            {ShardLevel::Optimizer, "batch", ReduceRule::Late, "0F0 0F1 0B0 0B1 0REDUCE_GRAD 0OPT 0UNSHARD\n"},
            {ShardLevel::None, "batch", ReduceRule::Overlapped, "0F0 0F1 0B0 0B1 0REDUCE_GRAD 0OPT\n"},
        };
        for (const Case& one : cases) {
            ShardRules rules;
            QVERIFY(parseGather(one.gather, rules));
            rules.reduce = one.reduce;
            const auto sharded = addShardOps(gpipe, one.level, rules);
            QVERIFY(sharded);
            QCOMPARE(QString::fromStdString(toText(*sharded)), QString(one.expected));
        }
    }

    // Gathers a step of breadth-first, v chunks a rank and b = prefetch + 1 gathered at once: 2v − b; of 1F1B by
    // microbatch 2m.
    void countsGathers()
    {
        for (int v = 1; v <= 5; ++v)
            for (int b = 1; b <= v; ++b)
                for (int m : {2, 4, 8}) {
                    ShardRules rules;
                    rules.prefetch = b - 1;
                    const Schedule sharded = addShardOps(made("bfs", 2, m, v), ShardLevel::Weights, rules).value();
                    for (int r = 0; r < 2; ++r) {
                        QCOMPARE(countOf(sharded, r, OpKind::Unshard), 2 * v - b);
                        QCOMPARE(countOf(sharded, r, OpKind::Reshard), 2 * v - b);
                        QCOMPARE(countOf(sharded, r, OpKind::ReduceGrad), v);
                    }
                }
        ShardRules each;
        each.gather = GatherRule::Microbatch;
        each.reduce = ReduceRule::Microbatch;
        const Schedule depth = addShardOps(made("1f1b", 4, 8), ShardLevel::Weights, each).value();
        for (int r = 0; r < 4; ++r) {
            QCOMPARE(countOf(depth, r, OpKind::Unshard), 2 * 8);
            QCOMPARE(countOf(depth, r, OpKind::ReduceGrad), 8);
        }
    }

    void meshRoundTrip()
    {
        for (unsigned seed = 0; seed < 60; ++seed) {
            std::vector<Schedule> parts;
            for (int i = 0; i < 3; ++i) parts.push_back(test::randomSchedule(seed));
            const auto whole = overReplicas(parts);
            QVERIFY2(whole, whole ? "" : whole.error().message.c_str());
            QCOMPARE(whole->ranks, 3 * parts[0].ranks);
            QVERIFY2(validate(*whole).valid(),
                     validate(*whole).valid() ? "" : validate(*whole).faults[0].message.c_str());
            for (int i = 0; i < 3; ++i) QVERIFY(replicaSchedule(*whole, i) == parts[static_cast<std::size_t>(i)]);
            QVERIFY(replicasAlike(*whole));
        }
        const Schedule uneven[] = {made("1f1b", 2, 3), made("1f1b", 2, 5)};
        const Schedule job = overReplicas(uneven).value();
        QCOMPARE(job.microbatches, 8);
        QVERIFY(!replicasAlike(job));
        QVERIFY(replicaSchedule(job, 1) == uneven[1]);
        QVERIFY(validate(job).valid());
        const Schedule other[] = {made("1f1b", 2, 3), made("1f1b", 4, 3)};
        QCOMPARE(QString::fromStdString(overReplicas(other).error().message),
                 QString("replica 1: it has 4 ranks, the first 2"));
    }

    void readsTexts()
    {
        for (const char* text :
             {"none", "optimizer", "gradients:by=layer", "weights:shares=3/5,2/5", "weights:shares=1/3,1/3,1/3,0"})
            QCOMPARE(QString::fromStdString(toText(parseSharding(text).value())), QString(text));
        for (const char* text : {"", "weight", "weights:shares=1/2", "weights:shares=1/2,1/2,1/2", "weights:by=rank",
                                 "none:by=layer", "weights:shares=2,-1", "weights:shares=a/b"}) {
            const auto read = parseSharding(text);
            QVERIFY2(!read && !read.error().remedy.empty(), text);
        }
        QVERIFY(!checkMembers(parseSharding("weights:shares=3/5,2/5").value(), 3));
        QCOMPARE(QString::fromStdString(toText(parseReplicaBatches("3x2,5x1", 2).value())), QString("3x2,5x1"));
        for (const char* text : {"3", "3,0", "3,5,7", "3x0,5"}) QVERIFY2(!parseReplicaBatches(text, 2), text);
    }

    // Pieces cover the vector once, in order, whoever owns them; even ones are of one size.
    void divides()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 400; ++round) {
            const int members = test::pick(random, 1, 9);
            std::vector<std::int64_t> layers;
            for (int i = test::pick(random, 1, 6); i > 0; --i) layers.push_back(test::pick(random, 1, 5000));
            StateSharding sharding;
            sharding.level = everyLevel[random() % 4];
            sharding.by = static_cast<ShardBy>(random() % 3);
            if (sharding.by == ShardBy::Shares)
                for (int i = 0; i < members; ++i) sharding.shares.push_back({i == 0 ? 3 : 1, members + 2});
            const FlatState flat = flatStateOf(sharding, layers, members);
            std::int64_t at = 0, owned = 0;
            for (const ShardPiece& piece : flat.pieces) {
                QCOMPARE(piece.begin, at);
                QVERIFY(piece.end > piece.begin && piece.owner >= 0 && piece.owner < members);
                at = piece.end;
            }
            QCOMPARE(at, flat.padded);
            for (int i = 0; i < members; ++i) owned += flat.ownedBy(i);
            QCOMPARE(owned, flat.padded);
            if (sharding.level == ShardLevel::None || sharding.by == ShardBy::Even) {
                for (int i = 0; i < members; ++i) QCOMPARE(flat.ownedBy(i), flat.padded / members);
                QVERIFY(flat.padded - flat.elements < members);
            }
            std::int64_t left = flat.elements;
            for (const ShardPiece& bucket : bucketsOf(flat.elements, 700)) {
                QCOMPARE(bucket.end, left);
                QVERIFY(bucket.size() <= 700);
                left = bucket.begin;
            }
            QCOMPARE(left, 0);
        }
    }

    // Rajbhandari et al. 2020, arXiv 1910.02054, figure 1: 7.5 billion parameters, 64 replicas; 16 bytes a parameter.
    void zeroFigures()
    {
        const Schedule one = made("gpipe", 1, 1);
        const double billions = 7.5;
        const auto parameters = static_cast<Bytes>(billions * 1e9);
        const double expected[] = {120.0, 31.4, 16.6, 1.9};
        const double volume[] = {2, 2, 2, 3}; // elements a parameter, times (N − 1) / N
        for (std::size_t i = 0; i < 4; ++i) {
            CostModel costs = CostModel::uniform(one);
            costs.memory[0].weight = costs.memory[0].gradient = 2 * parameters;
            costs.memory[0].optimizer = 12 * parameters;
            costs.sharding.level = everyLevel[i];
            costs.replicas = 64;
            const Bytes held = heldState(costs, one, 0, 0).sum();
            QVERIFY(std::abs(static_cast<double>(held) / 1e9 - expected[i]) < 0.05);
            ShardRules rules;
            rules.gather = GatherRule::Microbatch;
            const Schedule lists = addShardOps(one, everyLevel[i], rules).value();
            const CollectiveVolume moved = collectiveVolumes(lists, costs).at(0);
            const double elements = static_cast<double>(moved.gathered + moved.reduced) / 2;
            QVERIFY(std::abs(elements - volume[i] * static_cast<double>(parameters) * 63 / 64) <= 64);
        }
    }

    void collectiveTimes()
    {
        CollectiveCosts costs = linkOf(10, 1e9); // 1 byte a nanosecond
        QCOMPARE(costs.gather(8000, 8), Nanos(7 * (10 + 1000)));
        QCOMPARE(costs.gather(8000, 8, 2000), Nanos(7 * (10 + 2000)));
        QCOMPARE(costs.allReduce(8000, 8), Nanos(2 * 7 * (10 + 1000)));
        QCOMPARE(costs.gather(8000, 1), Nanos(0));
        costs.algorithm = CollectiveAlgorithm::Tree;
        QCOMPARE(costs.gather(8000, 8), Nanos(3 * 10 + 7000));
        costs.algorithm = CollectiveAlgorithm::TwoLevel;
        costs.between = {100, 1e8};
        costs.perHost = 4;
        QCOMPARE(costs.gather(8000, 8), Nanos((100 + 40000) + 3 * (10 + 2000)));
        costs.algorithm = CollectiveAlgorithm::Ring; // over both hosts: the slower link at every step
        QCOMPARE(costs.gather(8000, 8), Nanos(7 * (100 + 10000)));
    }

    // Every library and random schedule with every sharding and rule is valid, simulates, and its timeline realises its
    // lists.
    void everySchedule()
    {
        std::vector<Schedule> all;
        for (const ScheduleInfo& info : allSchedules())
            if (auto one = makeSchedule(info.name, Shape(4, 8)); one && one->weights == WeightRule::Synchronous)
                all.push_back(std::move(*one));
        for (unsigned seed = 0; seed < 60; ++seed) {
            all.push_back(test::randomSchedule(seed));
            all.push_back(test::varied(test::randomSchedule(seed), test::Variation(seed % 5), seed));
        }
        unsigned n = 0;
        for (const Schedule& plain : all)
            for (const ShardLevel level : everyLevel) {
                const ShardRules rules = rulesOf(n++);
                const auto sharded = addShardOps(plain, level, rules);
                QVERIFY2(sharded, plain.name.c_str());
                const auto fault = [&](const Schedule& schedule) {
                    const Validation checked = validate(schedule);
                    return checked.valid() ? std::string()
                                           : plain.name + " " + std::string(toText(level)) + " " + gatherText(rules) +
                                                 ": " + checked.faults[0].message;
                };
                QCOMPARE(QString::fromStdString(fault(*sharded)), QString());
                QVERIFY(withoutCollectives(*sharded).order ==
                        withoutCollectives(addShardOps(*sharded, level, rules).value()).order);
                const Schedule job = overReplicas(*sharded, 2).value();
                QCOMPARE(QString::fromStdString(fault(job)), QString());
                const CollectiveCosts link = linkOf(50, 1e8);
                StateSharding sharding;
                sharding.level = level;
                const auto lane = n % 3 == 0 ? ResourceUse::Shared : ResourceUse::Beside;
                CostModel costs = costsFor(*sharded, sharding, 2, link, lane);
                costs.links.all.latency = n % 5 == 0 ? rankShare / 10 : 0;
                const auto alone = simulate(*sharded, costs);
                QVERIFY2(alone, alone ? "" : alone.error().message.c_str());
                CostModel jobCosts = costsFor(job, sharding, 1, link, lane);
                jobCosts.links = costs.links;
                const auto together = simulate(job, jobCosts);
                QVERIFY(together);
                if (!plain.placement.hasCopies()) { // replicas that are alike are computed once
                    QCOMPARE(together->makespan, alone->makespan);
                    for (int replica = 0; replica < 2; ++replica) {
                        const std::size_t offset = together->offsets[static_cast<std::size_t>(replica * plain.ranks)];
                        QVERIFY(std::equal(alone->start.begin(), alone->start.end(),
                                           together->start.begin() + static_cast<std::ptrdiff_t>(offset)));
                        QVERIFY(std::equal(alone->end.begin(), alone->end.end(),
                                           together->end.begin() + static_cast<std::ptrdiff_t>(offset)));
                    }
                }
                const auto timeline = timelineOf(job, *together, jobCosts);
                QVERIFY2(timeline, timeline ? "" : timeline.error().message.c_str());
                QVERIFY(scheduleOf(**timeline, 0).value() == job);
                // What is gathered or on its way is released again where the state is sharded throughout.
                Bytes gathered = 0, buckets = 0;
                for (const MemoryEvent& event : (*timeline)->memory()) {
                    gathered += event.category == MemoryCategory::Gathered ? event.delta : 0;
                    buckets += event.category == MemoryCategory::Buckets ? event.delta : 0;
                }
                QCOMPARE(gathered, Bytes(0));
                QCOMPARE(buckets, Bytes(0));
                const auto csv = writeScheduleCsv(job);
                QVERIFY(csv);
                QVERIFY(readScheduleCsv(*csv)->order == job.order);
                QCOMPARE(readScheduleCsv(*csv)->replicas, 2);
            }
    }

    // Any one op removed, doubled or moved is explained or still valid; a fault names a remedy.
    void mutatedLists()
    {
        std::mt19937 random(3);
        int faults = 0;
        for (unsigned n = 0; n < 600; ++n) {
            const Schedule plain = n % 4 == 0 ? test::randomSchedule(n)
                                              : made(n % 4 == 1   ? "1f1b"
                                                     : n % 4 == 2 ? "bfs"
                                                                  : "zb-h1",
                                                     3, 4);
            Schedule broken = addShardOps(plain, everyLevel[n % 4], rulesOf(n)).value();
            auto& row = broken.order[random() % broken.order.size()];
            broken.paired.clear();
            std::vector<std::size_t> collectives;
            for (std::size_t i = 0; i < row.size(); ++i)
                if (isCollective(row[i].kind)) collectives.push_back(i);
            if (collectives.empty()) continue;
            const std::size_t at = collectives[random() % collectives.size()];
            const Op op = row[at];
            const bool needed = op.kind != OpKind::ReduceGrad || hasMicrobatch(op);
            const unsigned what = n % 3;
            row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
            if (what == 1) { // twice
                row.insert(row.begin() + static_cast<std::ptrdiff_t>(at), {op, op});
            } else if (what == 2) {
                row.insert(row.begin() + static_cast<std::ptrdiff_t>(random() % (row.size() + 1)), op);
            }
            const Validation checked = validate(broken);
            if (what == 1) QVERIFY2(!checked.valid(), toText(broken).c_str());
            if (what == 0 && needed && op.kind == OpKind::Reshard && countOf(broken, 0, OpKind::Unshard) > 1)
                QVERIFY2(!checked.valid() || broken.ranks > 1, toText(broken).c_str());
            for (const Fault& fault : checked.faults) {
                QVERIFY(!fault.message.empty());
                QVERIFY2(!fault.remedy.empty(), fault.message.c_str());
                ++faults;
            }
        }
        QVERIFY(faults > 100);
    }

    void faultsByName()
    {
        const auto firstFault = [](const char* csv) {
            const Validation checked = validate(readScheduleCsv(csv).value());
            return checked.valid()
                       ? QString()
                       : QString::fromStdString(checked.faults[0].message + " | " + checked.faults[0].remedy);
        };
        QCOMPARE(firstFault("0UNSHARD,0F0,0B0,0RESHARD"), QString());
        QCOMPARE(firstFault("0F0,0UNSHARD,0B0,0RESHARD"),
                 QString("rank 0, op 1 (0F0): forward with sharded weights | add 0UNSHARD before it"));
        QCOMPARE(firstFault("0UNSHARD,0F0,0RESHARD,0B0"),
                 QString("rank 0, op 4 (0B0): full backward with sharded weights; 0RESHARD is at op 3 | move 0RESHARD "
                         "after it, or add 0UNSHARD before it"));
        QCOMPARE(firstFault("0UNSHARD,0F0,0UNSHARD,0B0,0RESHARD"),
                 QString("rank 0, op 3 (0UNSHARD): the weights are gathered already, at op 1 | remove it, or release "
                         "the weights before it with 0RESHARD"));
        QCOMPARE(firstFault("0F0,0B0,0REDUCE_GRAD0,0F1,0B1,0REDUCE_GRAD0"),
                 QString("rank 0, op 5 (0B1): its gradient is not reduced, but those of other microbatches are; "
                         "0REDUCE_GRAD0 is at op 3 | add 0REDUCE_GRAD1 after it"));
        QVERIFY(firstFault("0F0,0B0,0REDUCE_GRAD0,0REDUCE_GRAD").contains("gradients reduced twice"));
        QVERIFY(firstFault("0F0,0REDUCE_GRAD0,0B0").contains("gradient reduction before the gradient; 0B0 is at op 3"));
        // Behind an op that needs the weights a gather is late, also where the step is behind the lists.
        QVERIFY(firstFault("0F0,0UNSHARD,0F1,0B0,0B1").startsWith("rank 0, op 1 (0F0): forward with sharded weights"));
        // 0OPT leaves the weights stepped in part; what follows needs the gather behind it.
        QVERIFY(firstFault("0F0,0B0,0OPT,0UNSHARD") == QString());
        Schedule unlike[] = {readScheduleCsv("0UNSHARD,0F0,0B0,0RESHARD").value(),
                             readScheduleCsv("0UNSHARD0,0F0,0RESHARD0,0UNSHARD0,0B0,0RESHARD0").value()};
        const Validation members = validate(overReplicas(unlike).value());
        QCOMPARE(QString::fromStdString(members.faults.at(0).message),
                 QString("stage 0: 1 UNSHARD ops on rank 0, but 2 on rank 1; all ranks of a stage take part in each"));
    }

    // Lamy-Poirier 2023, arXiv 2211.05953: the gather of the next chunk is hidden where m · T_F(chunk) ≥ its time.
    void hidesGathers()
    {
        const int m = 4, v = 3;
        ShardRules rules;
        rules.prefetch = 1;
        const Schedule sharded = addShardOps(made("bfs", 1, m, v), ShardLevel::Weights, rules).value();
        CostModel costs = CostModel::uniform(sharded);
        costs.links.collectives = ResourceUse::Beside;
        const Nanos chunk = costs.duration(OpKind::Forward, 0, 0);
        const Nanos work = simulate(made("bfs", 1, m, v), costs)->makespan;
        for (const double ratio : {0.5, 1.0, 1.5, 2.0}) {
            const Nanos gather = static_cast<Nanos>(ratio * static_cast<double>(m * chunk));
            for (int s = 0; s < v; ++s) costs.setDuration(OpKind::Unshard, s, gather);
            // Exposed: the first gather, and what the others take beyond the m forwards before them (backwards take
            // twice as long).
            const Nanos beyond = std::max<Nanos>(0, gather - m * chunk);
            const Nanos lastTurn = std::max<Nanos>(0, gather - 2 * m * chunk);
            QCOMPARE(simulate(sharded, costs)->makespan, work + gather + (v - 1) * beyond + lastTurn * (v - 2));
        }
        costs.links.collectives = ResourceUse::Compute; // nothing is hidden
        QCOMPARE(simulate(sharded, costs)->makespan,
                 work + countOf(sharded, 0, OpKind::Unshard) * costs.duration(OpKind::Unshard, 0, 0));
    }

    // A rank of a slower replica holds up the reduction of all; OPT waits for it, other compute does not.
    void waitsForSlowReplicas()
    {
        ShardRules rules;
        rules.reduce = ReduceRule::Overlapped;
        const Schedule one = addShardOps(made("1f1b", 2, 3), ShardLevel::Optimizer, rules).value();
        const Schedule job = overReplicas(one, 2).value();
        CostModel costs = costsFor(job, {ShardLevel::Optimizer, ShardBy::Even, {}, 0}, 1, linkOf(0, 1e9));
        const SimResult even = simulate(job, costs).value();
        for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
            costs.setDuration(kind, 1, 3, 2 * costs.duration(kind, 1, 3));
        const SimResult slow = simulate(job, costs).value();
        QVERIFY(slow.makespan > even.makespan);
        const auto endOf = [&](const SimResult& result, int rank, OpKind kind, int stage) {
            const auto& ops = job.order[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < ops.size(); ++i)
                if (ops[i].kind == kind && ops[i].stage == stage) return result.end[result.indexOf(rank, i)];
            return Nanos(-1);
        };
        QCOMPARE(endOf(slow, 0, OpKind::Backward, 0), endOf(even, 0, OpKind::Backward, 0)); // replica 0 computes on
        QCOMPARE(endOf(slow, 0, OpKind::ReduceGrad, 0), endOf(slow, 2, OpKind::ReduceGrad, 0));
        QVERIFY(endOf(slow, 0, OpKind::ReduceGrad, 0) > endOf(even, 0, OpKind::ReduceGrad, 0));
    }

    void memoryInClosedForm()
    {
        const Schedule sharded = addShardOps(made("gpipe", 1, 2), ShardLevel::Weights, {}).value();
        StateSharding sharding{ShardLevel::Weights, ShardBy::Even, {}, 500};
        const CostModel costs = costsFor(sharded, sharding, 4, linkOf(10, 1e9));
        const auto timeline = simulatedTimeline(sharded, costs).value();
        std::array<Bytes, memoryCategoryCount> now{}, peak{};
        for (const MemoryEvent& event : timeline->memoryOf(0)) {
            const auto c = static_cast<std::size_t>(event.category);
            now[c] += event.delta;
            peak[c] = std::max(peak[c], now[c]);
        }
        const auto at = [&](MemoryCategory category) { return peak[static_cast<std::size_t>(category)]; };
        QCOMPARE(at(MemoryCategory::Weights), Bytes(500));
        QCOMPARE(at(MemoryCategory::Gathered), Bytes(2000));
        QCOMPARE(at(MemoryCategory::Gradients), Bytes(500 + 2000));
        QCOMPARE(at(MemoryCategory::Buckets), Bytes(500));
        QCOMPARE(at(MemoryCategory::Optimizer), Bytes(3000));
    }

    void keepsCosts()
    {
        const Schedule sharded = addShardOps(made("1f1b", 2, 2), ShardLevel::Weights, {}).value();
        const CostModel costs =
            costsFor(sharded, {ShardLevel::Weights, ShardBy::Layer, {}, 4096}, 3, linkOf(10, 1e9), ResourceUse::Shared);
        const auto read = readCostsJson(writeCostsJson(costs));
        QVERIFY2(read, read ? "" : read.error().message.c_str());
        QVERIFY(*read == costs);
    }

    void manyReplicas()
    {
        const Schedule plain = made("1f1b", 64, 512);
        const Schedule sharded =
            addShardOps(plain, ShardLevel::Weights, {GatherRule::Microbatch, 0, ReduceRule::Overlapped}).value();
        const CostModel costs = costsFor(sharded, {ShardLevel::Weights, ShardBy::Even, {}, 0}, 16, linkOf(1000, 1e10));
        QElapsedTimer timer;
        timer.start();
        const auto result = simulate(sharded, costs);
        qInfo("64 ranks x 512 microbatches x 16 replicas: %.1f ms", static_cast<double>(timer.nsecsElapsed()) / 1e6);
        QVERIFY(result);
        QVERIFY(result->makespan > 0);
    }
};

QTEST_APPLESS_MAIN(TestShards)
#include "tst_shards.moc"
