#include "app/cli/options/replica_options.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "app/cli/option_set.h"
#include "app/cli/options/cost_options.h"
#include "app/cli/options/options.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

constexpr double mostSpeed = 1000;

// "overlapped:bucket=25MB" into the rule and the sharding's bucket.
Result<void> readReduce(const std::string& text, ReplicaChoice& choice)
{
    const auto [name, parameter] = keyValueOf(text, ':');
    auto rule = parseReduce(name);
    if (!rule) return tl::unexpected(std::move(rule.error()).with("--reduce"));
    choice.rules.reduce = *rule;
    if (!parameter) return {};
    const auto [key, value] = keyValueOf(*parameter);
    if (key != "bucket" || !value)
        return fail(ErrorCode::Usage, fmt::format("--reduce: '{}' is not the size of a bucket", *parameter),
                    "write bucket=SIZE, such as bucket=25MB");
    auto bytes = parseBytes(std::string(*value));
    if (!bytes) return tl::unexpected(std::move(bytes.error()).with("--reduce"));
    if (*bytes < 1)
        return fail(ErrorCode::Usage, "--reduce: a bucket of 0 bytes holds nothing",
                    "leave bucket= out for a stage's gradients at once");
    choice.sharding.bucket = *bytes;
    return {};
}

Result<void> readRules(const ReplicaOptions& options, ReplicaChoice& choice)
{
    if (!options.gather.empty())
        if (auto read = parseGather(options.gather, choice.rules); !read)
            return tl::unexpected(std::move(read.error()).with("--gather"));
    return options.reduce.empty() ? Result<void>() : readReduce(options.reduce, choice);
}

// Of a schedule that stands for so many replicas.
Result<void> checkHolders(const Schedule& schedule, const StateSharding& sharding, int standsFor)
{
    for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
        const auto holders = static_cast<int>(holdersOf(schedule.placement, stage).size());
        if (auto fits = checkMembers(sharding, holders * standsFor); !fits)
            return tl::unexpected(std::move(fits.error()).with("--shard"));
    }
    return {};
}

Result<std::vector<ReplicaBatch>> readBatches(const std::string& text, int replicas, int samplesOfCosts,
                                              std::vector<double>& sizes)
{
    auto read = parseReplicaBatches(text, replicas);
    if (!read) return tl::unexpected(std::move(read.error()).with("--replica-batch"));
    if (std::none_of(read->begin(), read->end(), [](const ReplicaBatch& batch) { return batch.samples > 0; }))
        return read;
    if (samplesOfCosts == 0)
        return fail(
            ErrorCode::Usage, "--replica-batch: these costs do not say how many samples a microbatch has",
            "give the number of microbatches alone, such as 3,5, or costs in units or analytic ones to simulate");
    for (const ReplicaBatch& batch : *read)
        sizes.push_back(batch.samples > 0 ? static_cast<double>(batch.samples) / samplesOfCosts : 1);
    return read;
}

Result<std::vector<double>> readSpeeds(const std::string& text, int replicas, int pipelineRanks)
{
    std::vector<double> given;
    for (const std::string_view item : split(text, ",")) {
        const auto speed = numberOf(item);
        if (!speed || *speed <= 0 || *speed > mostSpeed)
            return fail(ErrorCode::Usage, fmt::format("--speed: '{}' is not a speed", item),
                        "give numbers above 0; 0.5 takes twice as long");
        given.push_back(*speed);
    }
    const auto ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(pipelineRanks);
    if (given.size() == ranks) return given;
    if (given.size() != static_cast<std::size_t>(replicas))
        return fail(
            ErrorCode::Usage,
            fmt::format("--speed: {} speeds for {} replicas of {} ranks", given.size(), replicas, pipelineRanks),
            "give one for each replica or one for each rank");
    std::vector<double> out;
    for (const double speed : given) out.insert(out.end(), static_cast<std::size_t>(pipelineRanks), speed);
    return out;
}

Result<void> checkUses(const Schedule& schedule, const ReplicaOptions& options, const ReplicaChoice& choice)
{
    if (choice.sharding.level != ShardLevel::None && options.replicas < 2 && !schedule.placement.hasCopies())
        return fail(ErrorCode::Usage, fmt::format("--shard {}: a single replica has none to share with", options.shard),
                    "give --replicas 2 or more");
    if (!options.gather.empty() && choice.sharding.level != ShardLevel::Weights)
        return fail(ErrorCode::Usage, "--gather: the weights are not sharded, so nothing is gathered for an op",
                    "give --shard weights, or leave it out");
    const bool alone = std::max(options.replicas, schedule.replicas) < 2;
    for (const auto& [name, text] : {std::pair("--replica-batch", options.batch), std::pair("--speed", options.speed),
                                     std::pair("--cut", options.cut)})
        if (!text.empty() && alone)
            return fail(ErrorCode::Usage, fmt::format("{}: there is one replica", name), "give --replicas 2 or more");
    for (const auto& [name, text] :
         {std::pair("--reduce", options.reduce), std::pair("--collectives", options.collectives)})
        if (!text.empty() && alone && !schedule.placement.hasCopies())
            return fail(ErrorCode::Usage,
                        fmt::format("{}: there is one replica, which shares nothing with others", name),
                        "give --replicas 2 or more");
    if (schedule.replicas > 1 && (options.replicas > 1 || !options.batch.empty()))
        return fail(ErrorCode::Usage,
                    fmt::format("--replicas: {} is over {} replicas already", schedule.name, schedule.replicas),
                    "leave the option out");
    return {};
}

// --cut into the layer of each replica, and the lists without what lies below; `layers` are those of each stage.
Result<Schedule> cutLists(const Schedule& schedule, const ReplicaOptions& options, std::vector<int>& cuts,
                          std::vector<int>& layers)
{
    layers.assign(static_cast<std::size_t>(schedule.stages), 1);
    if (options.layersOf) {
        STAGEWRIGHT_TRY(layers, options.layersOf(schedule.stages));
    }
    auto read = parseCuts(options.cut, schedule.replicas, std::accumulate(layers.begin(), layers.end(), 0));
    if (!read) return tl::unexpected(std::move(read.error()).with("--cut"));
    cuts = std::move(*read);
    std::vector<int> first;
    first.reserve(cuts.size());
    for (const int cut : cuts) first.push_back(firstStageOf(cut, layers));
    auto lists = withoutBackwardBelow(schedule, first);
    if (!lists) return tl::unexpected(std::move(lists.error()).with("--cut"));
    return lists;
}

bool hasOptimizerSteps(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const std::vector<Op>& ops) {
        return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return isOptimizer(op.kind); });
    });
}

// Simulated ops are of whole stages.
Result<void> endAtStages(const std::vector<int>& cuts, const std::vector<int>& layers)
{
    for (const int cut : cuts) {
        int begin = 0;
        for (std::size_t stage = 0; stage < layers.size() && begin < cut; ++stage) begin += layers[stage];
        if (begin == cut) continue;
        return fail(
            ErrorCode::Usage,
            fmt::format("--cut {}: the layer is inside a stage; a simulated backward ends at a stage's first layer",
                        cut),
            fmt::format("give {}, or record it, which can end inside a stage", begin));
    }
    return {};
}

} // namespace

void addReplicaOptions(OptionSet& verb, ReplicaOptions& options)
{
    verb.value("--replicas", &options.replicas, "Pipelines side by side that train one model [1]")
        .form("N")
        .check(wholeNumber(1, 4096));
    verb.value("--shard", &options.shard,
               "What replicas share instead of each having all of it: none, optimizer, gradients, weights (ZeRO 0 to "
               "3; each includes the one before), with :by=layer or :shares=3/5,2/5 [none]")
        .form("WHAT");
    verb.value("--gather", &options.gather,
               "Sharded weights: for each microbatch, or batch: while the next K + 1 stages of a rank need them; "
               ":prefetch=K [batch]")
        .form("microbatch|batch[:prefetch=K]");
    verb.value("--reduce", &options.reduce,
               "Gradients: late (at the end), overlapped (after a stage's last one), microbatch (after each), stepped "
               "(overlapped, and OPT once they have arrived, without a barrier); :bucket=SIZE [late]")
        .form("WHEN[:bucket=SIZE]");
    verb.value("--collectives", &options.collectives,
               "How ranks gather and reduce over --link: ring, tree, two-level; :per-host=N of a stage's ranks, "
               ":between=LATENCY,BANDWIDTH of hosts [--link], :shared with messages [ring]")
        .form("HOW");
    verb.value("--replica-batch", &options.batch,
               "Microbatches of each replica, or with their samples, 3x2,5x1; simulated costs in units are of one "
               "sample, analytic ones of their b")
        .form("M[xB],M[xB]");
    verb.value("--speed", &options.speed, "Speed of each replica, or of each rank; 0.5 takes twice as long")
        .form("X,X");
    verb.value("--cut", &options.cut,
               "Partial backward: the layer that each replica goes back to; one of them 0, the number of layers for "
               "the head only. A layer's gradient is then the mean over the replicas that reach it. simulate and plan "
               "count stages, or layers by --stage-layers")
        .form("LAYER,LAYER");
}

Result<ReplicaChoice> chooseReplicas(const Schedule& schedule, const ReplicaOptions& options,
                                     const std::function<Result<Schedule>(int microbatches)>& ofMicrobatches)
{
    ReplicaChoice out;
    out.schedule = schedule;
    if (!options.any() && schedule.replicas == 1) return out;
    out.shared = true;
    auto sharding = parseSharding(options.shard);
    if (!sharding) return tl::unexpected(std::move(sharding.error()).with("--shard"));
    out.sharding = *sharding;
    STAGEWRIGHT_CHECK(checkUses(schedule, options, out));
    STAGEWRIGHT_CHECK(readRules(options, out));
    if (!options.collectives.empty()) {
        auto way = parseCollectives(options.collectives);
        if (!way) return tl::unexpected(std::move(way.error()).with("--collectives"));
        out.collectives = way->costs;
        out.lane = way->lane;
        out.way = options.collectives;
    }
    const int replicas = std::max(options.replicas, schedule.replicas);
    STAGEWRIGHT_CHECK(checkHolders(schedule, out.sharding, schedule.replicas > 1 ? 1 : replicas));
    if (!options.speed.empty()) {
        STAGEWRIGHT_TRY(out.speeds, readSpeeds(options.speed, replicas, schedule.pipelineRanks()));
    }
    std::vector<ReplicaBatch> batches;
    if (!options.batch.empty()) {
        STAGEWRIGHT_TRY(batches, readBatches(options.batch, replicas, options.samplesOfCosts, out.sizes));
    }
    const auto shared = [&](const Schedule& one) { return addShardOps(one, out.sharding.level, out.rules); };
    const bool alike = batches.empty() && out.speeds.empty() && out.sharding.by == ShardBy::Even && options.cut.empty();
    if ((schedule.replicas > 1 && options.cut.empty()) || alike) {
        STAGEWRIGHT_TRY(out.schedule, shared(schedule));
        out.standsFor = schedule.replicas > 1 ? 1 : replicas;
        return out;
    }
    std::vector<Schedule> each;
    for (int replica = 0; replica < replicas && schedule.replicas == 1; ++replica) {
        Result<Schedule> one = batches.empty()
                                   ? Result<Schedule>(schedule)
                                   : ofMicrobatches(batches[static_cast<std::size_t>(replica)].microbatches);
        if (one && options.cut.empty()) one = shared(*one);
        if (!one) return tl::unexpected(std::move(one.error()).with(fmt::format("replica {}", replica)));
        each.push_back(std::move(*one));
    }
    auto whole = schedule.replicas > 1 ? Result<Schedule>(schedule) : overReplicas(each);
    if (whole && !options.cut.empty()) {
        whole = cutLists(*whole, options, out.cuts, out.layers);
        if (auto ends = endAtStages(out.cuts, out.layers); whole && !ends)
            return tl::unexpected(std::move(ends.error()));
        if (whole) whole = shared(*whole);
    }
    if (!whole) return tl::unexpected(std::move(whole.error()));
    out.schedule = std::move(*whole);
    return out;
}

Result<TrainedReplicas> trainedReplicas(const Schedule& schedule, const ReplicaOptions& options, int microbatchSize,
                                        const std::function<Result<Schedule>(int microbatches)>& ofMicrobatches)
{
    if (!options.collectives.empty())
        return fail(ErrorCode::Usage,
                    "--collectives: trained ranks exchange their pieces point to point, each link as --link says; "
                    "other ways can be simulated but not trained",
                    "leave it out, or use it with simulate");
    ReplicaChoice choice;
    choice.schedule = schedule;
    auto sharding = parseSharding(options.shard);
    if (!sharding) return tl::unexpected(std::move(sharding.error()).with("--shard"));
    choice.sharding = *sharding;
    STAGEWRIGHT_CHECK(checkUses(schedule, options, choice));
    STAGEWRIGHT_CHECK(readRules(options, choice));
    const int replicas = std::max(options.replicas, schedule.replicas);
    if (!options.speed.empty()) {
        STAGEWRIGHT_TRY(choice.speeds, readSpeeds(options.speed, replicas, schedule.pipelineRanks()));
    }
    Result<Schedule> whole = schedule;
    std::vector<int> samples;
    if (options.replicas > 1 && options.batch.empty()) {
        whole = overReplicas(schedule, options.replicas);
    } else if (options.replicas > 1) {
        auto batches = parseReplicaBatches(options.batch, options.replicas);
        if (!batches) return tl::unexpected(std::move(batches.error()).with("--replica-batch"));
        if (std::any_of(batches->begin(), batches->end(), [](const ReplicaBatch& batch) { return batch.samples > 0; }))
            for (const ReplicaBatch& batch : *batches)
                samples.push_back(batch.samples > 0 ? batch.samples : microbatchSize);
        std::vector<Schedule> each;
        for (const ReplicaBatch& batch : *batches) {
            STAGEWRIGHT_TRY(auto one, ofMicrobatches(batch.microbatches));
            each.push_back(std::move(one));
        }
        whole = overReplicas(each);
    }
    if (!whole) return tl::unexpected(std::move(whole.error()));
    std::vector<int> cuts;
    if (std::vector<int> layers; !options.cut.empty()) {
        whole = cutLists(*whole, options, cuts, layers);
        if (!whole) return tl::unexpected(std::move(whole.error()));
    }
    const bool asked = choice.sharding.level != ShardLevel::None || !options.gather.empty() ||
                       !options.reduce.empty() || !cuts.empty();
    bool sharing = asked;
    if (asked) {
        STAGEWRIGHT_CHECK(checkHolders(*whole, choice.sharding, 1));
        whole = addShardOps(*whole, choice.sharding.level, choice.rules);
        if (!whole) return tl::unexpected(std::move(whole.error()));
    } else if (options.replicas > 1 && whole->weights == WeightRule::Synchronous && !hasOptimizerSteps(*whole)) {
        // --reduce late, as a simulation has it
        if (auto reduced = addShardOps(*whole, ShardLevel::None, choice.rules)) {
            whole = std::move(*reduced);
            sharing = true;
        }
    }
    return TrainedReplicas{
        std::move(*whole),
        {choice.sharding, choice.rules, std::move(choice.speeds), std::move(samples), std::move(cuts), sharing}};
}

void addSpeeds(Perturbation& perturbation, const std::vector<double>& speeds)
{
    if (speeds.empty()) return;
    const double fastest = *std::max_element(speeds.begin(), speeds.end());
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
        if (speeds[rank] < fastest) perturbation.ranks.emplace_back(static_cast<int>(rank), fastest / speeds[rank]);
}

bool collectivesAreFree(const CostModel& costs)
{
    for (int stage = 0; stage < costs.stages(); ++stage)
        if (costs.memory[static_cast<std::size_t>(stage)].weight > 0 || costs.gather(stage, -1) > 0 ||
            costs.reduction(stage, -1) > 0)
            return false;
    return true;
}

void addReplicaFacts(TextPairs& configuration, const ReplicaChoice& choice)
{
    if (!choice.shared) return;
    configuration.emplace_back("replicas", std::to_string(choice.schedule.replicas * choice.standsFor));
    configuration.emplace_back("shard", toText(choice.sharding));
    if (choice.sharding.shards(ShardLevel::Weights)) configuration.emplace_back("gather", gatherText(choice.rules));
    configuration.emplace_back("reduce", std::string(toText(choice.rules.reduce)));
    if (choice.sharding.bucket > 0) configuration.emplace_back("bucket_bytes", std::to_string(choice.sharding.bucket));
    configuration.emplace_back("collectives", choice.way);
    if (!choice.speeds.empty()) configuration.emplace_back("speed", fmt::format("{}", fmt::join(choice.speeds, ",")));
    if (choice.cuts.empty()) return;
    configuration.emplace_back("cut", fmt::format("{}", fmt::join(choice.cuts, ",")));
    configuration.emplace_back("stage_layers", fmt::format("{}", fmt::join(choice.layers, ",")));
}

void addReplicaFacts(TextPairs& configuration, const TrainedReplicas& trained)
{
    if (trained.schedule.replicas < 2 && !trained.sharing.shared) return;
    configuration.emplace_back("replicas", std::to_string(trained.schedule.replicas));
    if (!trained.sharing.shared) return;
    if (trained.sharing.sharding.shards(ShardLevel::Weights))
        configuration.emplace_back("gather", gatherText(trained.sharing.rules));
    configuration.emplace_back("reduce", std::string(toText(trained.sharing.rules.reduce)));
}

void shareCosts(CostModel& costs, const ReplicaChoice& choice)
{
    if (!choice.shared) return;
    costs.sharding = choice.sharding;
    costs.replicas = choice.standsFor;
    costs.links.collectives = choice.lane;
    CollectiveCosts collectives = choice.collectives;
    collectives.within = costs.links.all;
    setCollectiveTimes(costs, choice.schedule, collectives);
    costs.sizes = choice.sizes;
    if (choice.speeds.empty() && choice.sizes.empty()) return;
    for (int rank = 0; rank < choice.schedule.ranks; ++rank) {
        const double slower = choice.speeds.empty() ? 1 : 1 / choice.speeds[static_cast<std::size_t>(rank)];
        const double more =
            choice.sizes.empty() ? 1 : choice.sizes[static_cast<std::size_t>(choice.schedule.replicaOf(rank))];
        for (const int stage : choice.schedule.placement.stagesOf(rank))
            for (std::size_t k = 0; k < allKinds().size(); ++k) {
                const auto kind = static_cast<OpKind>(k);
                const double factor = isCompute(kind) ? slower * more : isOptimizer(kind) ? slower : 1;
                if (factor != 1) costs.scaleOnRank(kind, stage, rank, choice.schedule.placement, factor);
            }
    }
}

} // namespace stagewright
