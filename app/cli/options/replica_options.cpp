#include "app/cli/options/replica_options.h"

#include <algorithm>

#include <fmt/core.h>

#include "app/cli/option_set.h"
#include "app/cli/options/options.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"

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
        return fail(ErrorCode::Usage, fmt::format("--reduce: '{}' is not the size of a bucket", *parameter), "write bucket=SIZE, such as bucket=25MB");
    auto bytes = parseBytes(std::string(*value));
    if (!bytes) return tl::unexpected(std::move(bytes.error()).with("--reduce"));
    if (*bytes < 1) return fail(ErrorCode::Usage, "--reduce: a bucket of 0 bytes takes nothing", "leave bucket= out for a stage's gradients at once");
    choice.sharding.bucket = *bytes;
    return {};
}

Result<void> readRules(const ReplicaOptions& options, ReplicaChoice& choice)
{
    if (!options.gather.empty())
        if (auto read = parseGather(options.gather, choice.rules); !read) return tl::unexpected(std::move(read.error()).with("--gather"));
    return options.reduce.empty() ? Result<void>() : readReduce(options.reduce, choice);
}

// Of a schedule that stands for so many replicas.
Result<void> checkHolders(const Schedule& schedule, const StateSharding& sharding, int standsFor)
{
    for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
        const auto holders = static_cast<int>(holdersOf(schedule.placement, stage).size());
        if (auto fits = checkMembers(sharding, holders * standsFor); !fits) return tl::unexpected(std::move(fits.error()).with("--shard"));
    }
    return {};
}

// "two-level:per-host=8:between=50us,10GB/s:shared"
Result<void> readCollectives(const std::string& text, ReplicaChoice& choice)
{
    bool first = true;
    for (const std::string_view part : split(text, ":")) {
        const auto [key, value] = keyValueOf(part);
        if (std::exchange(first, false)) {
            auto algorithm = parseCollectiveAlgorithm(part);
            if (!algorithm) return tl::unexpected(std::move(algorithm.error()).with("--collectives"));
            choice.collectives.algorithm = *algorithm;
        } else if (key == "per-host" && value) {
            const auto count = wholeOf<int>(*value);
            if (!count || *count < 1) return fail(ErrorCode::Usage, fmt::format("--collectives: '{}' is not a number of ranks on a host", *value), "write per-host=8");
            choice.collectives.perHost = *count;
        } else if (key == "between" && value) {
            auto link = parseLink(std::string(*value));
            if (!link) return tl::unexpected(std::move(link.error()).with("--collectives"));
            choice.collectives.between = *link;
        } else if (part == "shared") {
            choice.lane = CollectiveLane::Shared;
        } else {
            return fail(ErrorCode::Usage, fmt::format("--collectives: '{}' is not known", part),
                        "after ring, tree or two-level come :per-host=N, :between=LATENCY,BANDWIDTH and :shared");
        }
    }
    return {};
}

Result<std::vector<ReplicaBatch>> readBatches(const std::string& text, int replicas)
{
    auto read = parseReplicaBatches(text, replicas);
    if (!read) return tl::unexpected(std::move(read.error()).with("--replica-batch"));
    if (std::any_of(read->begin(), read->end(), [](const ReplicaBatch& batch) { return batch.samples > 0; }))
        return fail(ErrorCode::Usage, "--replica-batch: microbatches of other sizes can be trained but not simulated", "give their number alone, such as 3,5");
    return read;
}

Result<std::vector<double>> readSpeeds(const std::string& text, int replicas, int pipelineRanks)
{
    std::vector<double> given;
    for (const std::string_view item : split(text, ",")) {
        const auto speed = numberOf(item);
        if (!speed || *speed <= 0 || *speed > mostSpeed)
            return fail(ErrorCode::Usage, fmt::format("--speed: '{}' is not a speed", item), "give numbers above 0; 0.5 takes twice as long");
        given.push_back(*speed);
    }
    const auto ranks = static_cast<std::size_t>(replicas) * static_cast<std::size_t>(pipelineRanks);
    if (given.size() == ranks) return given;
    if (given.size() != static_cast<std::size_t>(replicas))
        return fail(ErrorCode::Usage, fmt::format("--speed: {} speeds for {} replicas of {} ranks", given.size(), replicas, pipelineRanks),
                    "give one for each replica or one for each rank");
    std::vector<double> out;
    for (const double speed : given) out.insert(out.end(), static_cast<std::size_t>(pipelineRanks), speed);
    return out;
}

Result<void> checkUses(const Schedule& schedule, const ReplicaOptions& options, const ReplicaChoice& choice)
{
    if (!options.cut.empty())
        return fail(ErrorCode::Usage, "--cut: backwards to a cut of each replica can't be run yet", "leave it out: every replica goes back to the first layer");
    if (choice.sharding.level != ShardLevel::None && options.replicas < 2 && !schedule.placement.hasCopies())
        return fail(ErrorCode::Usage, fmt::format("--shard {}: one replica has nobody to share with", options.shard), "give --replicas 2 or more");
    if (!options.gather.empty() && choice.sharding.level != ShardLevel::Weights)
        return fail(ErrorCode::Usage, "--gather: the weights are not sharded, so nothing is gathered for an op", "give --shard weights, or leave it out");
    for (const auto& [name, text] : {std::pair("--replica-batch", options.batch), std::pair("--speed", options.speed)})
        if (!text.empty() && std::max(options.replicas, schedule.replicas) < 2)
            return fail(ErrorCode::Usage, fmt::format("{}: there is one replica", name), "give --replicas 2 or more");
    if (schedule.replicas > 1 && (options.replicas > 1 || !options.batch.empty()))
        return fail(ErrorCode::Usage, fmt::format("--replicas: {} is over {} replicas already", schedule.name, schedule.replicas), "leave the option out");
    return {};
}

} // namespace

void addReplicaOptions(OptionSet& verb, ReplicaOptions& options)
{
    verb.value("--replicas", &options.replicas, "Pipelines side by side that train one model [1]").form("N").check(wholeNumber(1, 4096));
    verb.value("--shard", &options.shard, "What replicas share instead of each having all of it: none, optimizer, gradients, weights (ZeRO 0 to 3; each includes the one before), with :by=layer or :shares=3/5,2/5 [none]").form("WHAT");
    verb.value("--gather", &options.gather, "Sharded weights: for each microbatch, or batch: while the next K + 1 stages of a rank need them; :prefetch=K [batch]").form("microbatch|batch[:prefetch=K]");
    verb.value("--reduce", &options.reduce, "Gradients: late (at the end), overlapped (after a stage's last one), microbatch (after each); :bucket=SIZE [late]").form("WHEN[:bucket=SIZE]");
    verb.value("--collectives", &options.collectives, "How ranks gather and reduce over --link: ring, tree, two-level; :per-host=N, :between=LATENCY,BANDWIDTH of hosts, :shared with messages [ring]").form("HOW");
    verb.value("--replica-batch", &options.batch, "Microbatches of each replica; record and check also take their samples, 3x2,5x1").form("M[xB],M[xB]");
    verb.value("--speed", &options.speed, "Speed of each replica, or of each rank; 0.5 takes twice as long").form("X,X");
    verb.value("--cut", &options.cut, "Partial backward: the layer each replica goes back to").form("LAYER[,…]");
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
    if (Result<void> uses = checkUses(schedule, options, out); !uses) return tl::unexpected(std::move(uses.error()));
    if (Result<void> read = readRules(options, out); !read) return tl::unexpected(std::move(read.error()));
    if (!options.collectives.empty())
        if (auto read = readCollectives(options.collectives, out); !read) return tl::unexpected(std::move(read.error()));
    const int replicas = std::max(options.replicas, schedule.replicas);
    if (Result<void> fits = checkHolders(schedule, out.sharding, schedule.replicas > 1 ? 1 : replicas); !fits) return tl::unexpected(std::move(fits.error()));
    if (!options.speed.empty()) {
        auto speeds = readSpeeds(options.speed, replicas, schedule.pipelineRanks());
        if (!speeds) return tl::unexpected(std::move(speeds.error()));
        out.speeds = std::move(*speeds);
    }
    std::vector<ReplicaBatch> batches;
    if (!options.batch.empty()) {
        auto read = readBatches(options.batch, replicas);
        if (!read) return tl::unexpected(std::move(read.error()));
        batches = std::move(*read);
    }
    const auto shared = [&](const Schedule& one) { return addShardOps(one, out.sharding.level, out.rules); };
    const bool alike = batches.empty() && out.speeds.empty() && out.sharding.by == ShardBy::Even;
    if (schedule.replicas > 1 || alike) {
        auto lists = shared(schedule);
        if (!lists) return tl::unexpected(std::move(lists.error()));
        out.schedule = std::move(*lists);
        out.standsFor = schedule.replicas > 1 ? 1 : replicas;
        return out;
    }
    std::vector<Schedule> each;
    for (int replica = 0; replica < replicas; ++replica) {
        Result<Schedule> one = batches.empty() ? Result<Schedule>(schedule) : ofMicrobatches(batches[static_cast<std::size_t>(replica)].microbatches);
        if (one) one = shared(*one);
        if (!one) return tl::unexpected(std::move(one.error()).with(fmt::format("replica {}", replica)));
        each.push_back(std::move(*one));
    }
    auto whole = overReplicas(each);
    if (!whole) return tl::unexpected(std::move(whole.error()));
    out.schedule = std::move(*whole);
    return out;
}

Result<TrainedReplicas> trainedReplicas(const Schedule& schedule, const ReplicaOptions& options, int microbatchSize,
                                        const std::function<Result<Schedule>(int microbatches)>& ofMicrobatches)
{
    if (!options.collectives.empty())
        return fail(ErrorCode::Usage, "--collectives: trained ranks exchange their pieces point to point, each link as --link says; other ways can be simulated but not trained",
                    "leave it out, or use it with simulate");
    ReplicaChoice choice;
    choice.schedule = schedule;
    auto sharding = parseSharding(options.shard);
    if (!sharding) return tl::unexpected(std::move(sharding.error()).with("--shard"));
    choice.sharding = *sharding;
    if (Result<void> uses = checkUses(schedule, options, choice); !uses) return tl::unexpected(std::move(uses.error()));
    if (Result<void> read = readRules(options, choice); !read) return tl::unexpected(std::move(read.error()));
    const int replicas = std::max(options.replicas, schedule.replicas);
    if (!options.speed.empty()) {
        auto speeds = readSpeeds(options.speed, replicas, schedule.pipelineRanks());
        if (!speeds) return tl::unexpected(std::move(speeds.error()));
        choice.speeds = std::move(*speeds);
    }
    Result<Schedule> whole = schedule;
    std::vector<int> samples;
    if (options.replicas > 1 && options.batch.empty()) {
        whole = overReplicas(schedule, options.replicas);
    } else if (options.replicas > 1) {
        auto batches = parseReplicaBatches(options.batch, options.replicas);
        if (!batches) return tl::unexpected(std::move(batches.error()).with("--replica-batch"));
        if (std::any_of(batches->begin(), batches->end(), [](const ReplicaBatch& batch) { return batch.samples > 0; }))
            for (const ReplicaBatch& batch : *batches) samples.push_back(batch.samples > 0 ? batch.samples : microbatchSize);
        std::vector<Schedule> each;
        for (const ReplicaBatch& batch : *batches) {
            auto one = ofMicrobatches(batch.microbatches);
            if (!one) return tl::unexpected(std::move(one.error()));
            each.push_back(std::move(*one));
        }
        whole = overReplicas(each);
    }
    if (!whole) return tl::unexpected(std::move(whole.error()));
    const bool sharing = choice.sharding.level != ShardLevel::None || !options.gather.empty() || !options.reduce.empty();
    if (sharing) {
        if (Result<void> fits = checkHolders(*whole, choice.sharding, 1); !fits) return tl::unexpected(std::move(fits.error()));
        whole = addShardOps(*whole, choice.sharding.level, choice.rules);
        if (!whole) return tl::unexpected(std::move(whole.error()));
    }
    return TrainedReplicas{std::move(*whole), choice.sharding, choice.rules, std::move(choice.speeds), std::move(samples), sharing};
}

void addSpeeds(Perturbation& perturbation, const std::vector<double>& speeds)
{
    if (speeds.empty()) return;
    const double fastest = *std::max_element(speeds.begin(), speeds.end());
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
        if (speeds[rank] < fastest) perturbation.ranks.emplace_back(static_cast<int>(rank), fastest / speeds[rank]);
}

void addReplicaFacts(TextPairs& configuration, const ReplicaChoice& choice)
{
    if (!choice.shared) return;
    configuration.emplace_back("replicas", std::to_string(choice.schedule.replicas * choice.standsFor));
    configuration.emplace_back("shard", toText(choice.sharding));
    if (choice.sharding.shards(ShardLevel::Weights)) configuration.emplace_back("gather", gatherText(choice.rules));
    configuration.emplace_back("reduce", std::string(toText(choice.rules.reduce)));
    if (choice.sharding.bucket > 0) configuration.emplace_back("bucket_bytes", std::to_string(choice.sharding.bucket));
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
    for (std::size_t rank = 0; rank < choice.speeds.size(); ++rank)
        for (const int stage : choice.schedule.placement.stagesOf(static_cast<int>(rank)))
            for (std::size_t k = 0; k < opKindCount; ++k) {
                const auto kind = static_cast<OpKind>(k);
                if (choice.speeds[rank] != 1 && (isCompute(kind) || kind == OpKind::Optimizer))
                    costs.scaleOnRank(kind, stage, static_cast<int>(rank), choice.schedule.placement, 1 / choice.speeds[rank]);
            }
}

} // namespace stagewright
