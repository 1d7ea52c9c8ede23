#include "schedules/setup/replica_lists.h"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/partial_backward.h"
#include "schedules/text/link_text.h"

namespace stagewright {

namespace {

constexpr double mostSpeed = 1000;

// "overlapped:bucket=25MB" into the rule and the sharding's bucket.
Result<void> readReduce(const std::string& text, ReplicaLists& choice)
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

Result<void> readRules(const Setup& options, ReplicaLists& choice)
{
    if (!options.gather.empty())
        if (auto read = parseGather(options.gather, choice.rules); !read)
            return tl::unexpected(std::move(read.error()).with("--gather"));
    return options.reduce.empty() ? Result<void>() : readReduce(options.reduce, choice);
}

// The schedule stands for so many replicas.
Result<void> checkHolders(const Schedule& schedule, const StateSharding& sharding, int standsFor)
{
    for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
        const auto holders = static_cast<int>(holdersOf(schedule.placement, stage).size());
        if (auto fits = checkMembers(sharding, holders * standsFor); !fits)
            return tl::unexpected(std::move(fits.error()).with("--shard"));
    }
    return {};
}

// Microbatches of each replica, and what they hold: sizes in relation to the costs', or samples.
Result<std::vector<ReplicaBatch>> readBatches(const Setup& options, int replicas, const SharedHow& how,
                                              ReplicaLists& out)
{
    auto read = parseReplicaBatches(options.replicaBatch, replicas);
    if (!read) return tl::unexpected(std::move(read.error()).with("--replica-batch"));
    if (std::none_of(read->begin(), read->end(), [](const ReplicaBatch& batch) { return batch.samples > 0; }))
        return read;
    const bool trained = how.by == SharedBy::Training;
    if (!trained && how.samplesOfCosts == 0)
        return fail(
            ErrorCode::Usage, "--replica-batch: these costs do not say how many samples a microbatch has",
            "give the number of microbatches alone, such as 3,5, or costs in units or analytic ones to simulate");
    for (const ReplicaBatch& batch : *read)
        if (trained)
            out.samples.push_back(batch.samples > 0 ? batch.samples : options.microbatchSize);
        else
            out.sizes.push_back(batch.samples > 0 ? static_cast<double>(batch.samples) / how.samplesOfCosts : 1);
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

Result<void> checkUses(const Schedule& schedule, const Setup& options, const ReplicaLists& choice)
{
    if (choice.sharding.level != ShardLevel::None && options.replicas < 2 && !schedule.placement.hasCopies())
        return fail(ErrorCode::Usage, fmt::format("--shard {}: a single replica has none to share with", options.shard),
                    "give --replicas 2 or more");
    if (!options.gather.empty() && choice.sharding.level != ShardLevel::Weights)
        return fail(ErrorCode::Usage, "--gather: the weights are not sharded, so nothing is gathered for an op",
                    "give --shard weights, or leave it out");
    const bool alone = std::max(options.replicas, schedule.replicas) < 2;
    for (const auto& [name, text] : {std::pair("--replica-batch", options.replicaBatch),
                                     std::pair("--speed", options.speed), std::pair("--cut", options.cut)})
        if (!text.empty() && alone)
            return fail(ErrorCode::Usage, fmt::format("{}: there is one replica", name), "give --replicas 2 or more");
    for (const auto& [name, text] :
         {std::pair("--reduce", options.reduce), std::pair("--collectives", options.collectives)})
        if (!text.empty() && alone && !schedule.placement.hasCopies())
            return fail(ErrorCode::Usage,
                        fmt::format("{}: there is one replica, which shares nothing with others", name),
                        "give --replicas 2 or more");
    if (schedule.replicas > 1 && (options.replicas > 1 || !options.replicaBatch.empty()))
        return fail(ErrorCode::Usage,
                    fmt::format("--replicas: {} is over {} replicas already", schedule.name, schedule.replicas),
                    "leave the option out");
    return {};
}

// --cut into the layer of each replica, and the lists without what lies below; `layers` are those of each stage.
Result<Schedule> cutLists(const Schedule& schedule, const Setup& options, const SharedHow& how, ReplicaLists& out)
{
    out.layers.assign(static_cast<std::size_t>(schedule.stages), 1);
    if (how.layersOf) {
        STAGEWRIGHT_TRY(out.layers, how.layersOf(schedule.stages));
    }
    auto read = parseCuts(options.cut, schedule.replicas, std::accumulate(out.layers.begin(), out.layers.end(), 0));
    if (!read) return tl::unexpected(std::move(read.error()).with("--cut"));
    out.cuts = std::move(*read);
    std::vector<int> first;
    first.reserve(out.cuts.size());
    for (const int cut : out.cuts) first.push_back(firstStageOf(cut, out.layers));
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

// The schedule over all replicas, each with its own microbatches; `each` changes them before.
template <typename Each>
Result<Schedule> overAll(const Schedule& schedule, int replicas, const std::vector<ReplicaBatch>& batches,
                         const SharedHow& how, const Each& each)
{
    if (schedule.replicas > 1) return schedule;
    std::vector<Schedule> all;
    for (int replica = 0; replica < replicas; ++replica) {
        Result<Schedule> one = batches.empty()
                                   ? Result<Schedule>(schedule)
                                   : how.ofMicrobatches(batches[static_cast<std::size_t>(replica)].microbatches);
        if (one) one = each(std::move(*one));
        if (!one) return tl::unexpected(std::move(one.error()).with(fmt::format("replica {}", replica)));
        all.push_back(std::move(*one));
    }
    return overReplicas(all);
}

// Sharding, rules, collectives and speeds as they are written.
Result<ReplicaLists> readState(const Schedule& schedule, const Setup& setup, SharedBy by)
{
    if (by == SharedBy::Training && !setup.collectives.empty())
        return fail(ErrorCode::Usage,
                    "--collectives: trained ranks exchange their pieces point to point, each link as --link says; "
                    "other ways can be simulated but not trained",
                    "leave it out, or use it with simulate");
    ReplicaLists out;
    auto sharding = parseSharding(setup.shard);
    if (!sharding) return tl::unexpected(std::move(sharding.error()).with("--shard"));
    out.sharding = *sharding;
    STAGEWRIGHT_CHECK(checkUses(schedule, setup, out));
    STAGEWRIGHT_CHECK(readRules(setup, out));
    if (!setup.collectives.empty()) {
        auto way = parseCollectives(setup.collectives);
        if (!way) return tl::unexpected(std::move(way.error()).with("--collectives"));
        out.collectives = way->costs;
        out.lane = way->lane;
        out.way = setup.collectives;
    }
    if (!setup.speed.empty()) {
        STAGEWRIGHT_TRY(out.speeds,
                        readSpeeds(setup.speed, std::max(setup.replicas, schedule.replicas), schedule.pipelineRanks()));
    }
    return out;
}

Result<Schedule> withSimulated(const Schedule& schedule, const Setup& setup, const SharedHow& how, ReplicaLists& out)
{
    const int replicas = std::max(setup.replicas, schedule.replicas);
    STAGEWRIGHT_CHECK(checkHolders(schedule, out.sharding, schedule.replicas > 1 ? 1 : replicas));
    std::vector<ReplicaBatch> batches;
    if (!setup.replicaBatch.empty()) {
        STAGEWRIGHT_TRY(batches, readBatches(setup, replicas, how, out));
    }
    const auto shared = [&](const Schedule& one) { return addShardOps(one, out.sharding.level, out.rules); };
    const bool alike = batches.empty() && out.speeds.empty() && out.sharding.by == ShardBy::Even;
    if (setup.cut.empty() && (schedule.replicas > 1 || alike)) {
        out.standsFor = schedule.replicas > 1 ? 1 : replicas;
        return shared(schedule);
    }
    auto whole = overAll(schedule, replicas, batches, how,
                         [&](Schedule one) { return setup.cut.empty() ? shared(one) : Result<Schedule>(one); });
    if (!whole || setup.cut.empty()) return whole;
    whole = cutLists(*whole, setup, how, out);
    if (!whole) return whole;
    STAGEWRIGHT_CHECK(endAtStages(out.cuts, out.layers));
    return shared(*whole);
}

Result<Schedule> withTrained(const Schedule& schedule, const Setup& setup, const SharedHow& how, ReplicaLists& out)
{
    Result<Schedule> whole = schedule;
    if (setup.replicas > 1 && setup.replicaBatch.empty()) {
        whole = overReplicas(schedule, setup.replicas);
    } else if (setup.replicas > 1) {
        STAGEWRIGHT_TRY(const auto batches, readBatches(setup, setup.replicas, how, out));
        whole = overAll(schedule, setup.replicas, batches, how, [](Schedule one) { return Result<Schedule>(one); });
    }
    if (whole && !setup.cut.empty()) whole = cutLists(*whole, setup, how, out);
    if (!whole) return whole;
    out.shared =
        out.sharding.level != ShardLevel::None || !setup.gather.empty() || !setup.reduce.empty() || !out.cuts.empty();
    if (out.shared) {
        STAGEWRIGHT_CHECK(checkHolders(*whole, out.sharding, 1));
        return addShardOps(*whole, out.sharding.level, out.rules);
    }
    if (setup.replicas < 2 || whole->weights != WeightRule::Synchronous || hasOptimizerSteps(*whole)) return whole;
    auto reduced = addShardOps(*whole, ShardLevel::None, out.rules); // --reduce late, as a simulation has it
    out.shared = reduced.has_value();
    return reduced ? reduced : whole;
}

} // namespace

Result<ReplicaLists> shareState(const Schedule& schedule, const Setup& setup, const SharedHow& how)
{
    const bool trained = how.by == SharedBy::Training;
    if (!trained && !setup.sharesState() && schedule.replicas == 1) {
        ReplicaLists alone;
        alone.schedule = schedule;
        return alone;
    }
    STAGEWRIGHT_TRY(auto out, readState(schedule, setup, how.by));
    out.shared = true;
    STAGEWRIGHT_TRY(out.schedule,
                    trained ? withTrained(schedule, setup, how, out) : withSimulated(schedule, setup, how, out));
    return out;
}

Result<void> checkReplicas(const Schedule& schedule, const Setup& setup, SharedBy by, int layers)
{
    STAGEWRIGHT_TRY(auto state, readState(schedule, setup, by));
    const int replicas = std::max(setup.replicas, schedule.replicas);
    STAGEWRIGHT_CHECK(checkHolders(schedule, state.sharding, schedule.replicas > 1 ? 1 : replicas));
    if (!setup.replicaBatch.empty()) STAGEWRIGHT_CHECK(readBatches(setup, replicas, {.by = by}, state));
    if (setup.cut.empty()) return {};
    if (auto cuts = parseCuts(setup.cut, replicas, layers); !cuts)
        return tl::unexpected(std::move(cuts.error()).with("--cut"));
    if (state.sharding.shards(ShardLevel::Gradients))
        return fail(ErrorCode::Usage,
                    "--cut: replicas that go back to different layers can't share gradients or weights",
                    "share nothing, or the optimizer state");
    return {};
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

std::vector<std::pair<std::string, std::string>> factsOf(const ReplicaLists& state, SharedBy by)
{
    std::vector<std::pair<std::string, std::string>> facts;
    const auto add = [&facts](const char* key, std::string text) { facts.emplace_back(key, std::move(text)); };
    const bool simulated = by == SharedBy::Simulation;
    const int replicas = state.schedule.replicas * state.standsFor;
    if (simulated ? !state.shared : replicas < 2 && !state.shared) return facts;
    add("replicas", std::to_string(replicas));
    if (!state.shared) return facts;
    if (simulated) add("shard", toText(state.sharding));
    if (state.sharding.shards(ShardLevel::Weights)) add("gather", gatherText(state.rules));
    add("reduce", std::string(toText(state.rules.reduce)));
    if (!simulated) return facts;
    if (state.sharding.bucket > 0) add("bucket_bytes", std::to_string(state.sharding.bucket));
    add("collectives", state.way);
    if (!state.speeds.empty()) add("speed", fmt::format("{}", fmt::join(state.speeds, ",")));
    if (state.cuts.empty()) return facts;
    add("cut", fmt::format("{}", fmt::join(state.cuts, ",")));
    add("stage_layers", fmt::format("{}", fmt::join(state.layers, ",")));
    return facts;
}

void shareCosts(CostModel& costs, const ReplicaLists& choice)
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
