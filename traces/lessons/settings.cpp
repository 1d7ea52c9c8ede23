#include "traces/lessons/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/execute/perturb.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

constexpr int mostRanks = 64;
constexpr int mostMicrobatches = 512;

tl::unexpected<Error> wrongSetting(const std::string& word, const std::string& what, const std::string& remedy = {})
{
    return fail(ErrorCode::Usage, fmt::format("setting '{}': {}", word, what), remedy);
}

Result<void> setCosts(Settings& settings, const std::string& word, std::string_view text)
{
    for (const std::string& part : partsOf(text, ",")) {
        const auto [kind, number] = keyValueOf(part);
        const auto value = number ? numberOf(*number) : std::nullopt;
        if (!value || *value < 0 || *value > 1e6)
            return wrongSetting(word, fmt::format("'{}' is not a cost", part), "write costs=F=1,I=1,W=1");
        if (kind == "F")
            settings.forward = *value;
        else if (kind == "I")
            settings.inputGrad = *value;
        else if (kind == "W")
            settings.weightGrad = *value;
        else if (kind == "B")
            settings.backward = *value;
        else if (kind == "UNSHARD")
            settings.unshard = *value;
        else if (kind == "REDUCE_GRAD")
            settings.reduceGrad = *value;
        else
            return wrongSetting(word, fmt::format("there is no kind '{}'", kind),
                                "kinds are F, I, W, B, UNSHARD and REDUCE_GRAD");
    }
    return {};
}

Result<void> setWhole(int& out, const std::string& word, std::string_view value, int least, int most)
{
    const auto number = wholeOf(value);
    if (!number || *number < least || *number > most)
        return wrongSetting(word, fmt::format("'{}' is not a whole number from {} to {}", value, least, most));
    out = *number;
    return {};
}

Result<void> setReal(double& out, const std::string& word, std::string_view value, double least, double most)
{
    const auto number = numberOf(value);
    if (!number || *number < least || *number > most)
        return wrongSetting(word, fmt::format("'{}' is not a number from {} to {}", value, least, most));
    out = *number;
    return {};
}

Result<void> setList(std::vector<double>& out, const std::string& word, std::string_view value)
{
    const auto numbers = numbersOf(value);
    if (!numbers || numbers->size() > std::size_t{4} * mostRanks)
        return wrongSetting(word, fmt::format("'{}' is not a list of numbers", value), "such as 4,4,3,1");
    for (const double number : *numbers)
        if (number < 0 || number > 1e6)
            return wrongSetting(word, fmt::format("{} is not between 0 and 1000000", number));
    out = *numbers;
    return {};
}

Result<void> setSharing(Settings& settings, const std::string& word, std::string_view key, std::string_view value)
{
    const auto taken = [&](const auto& read, std::string& out) -> Result<void> {
        if (!read) return wrongSetting(word, read.error().message, read.error().remedy);
        out = std::string(value);
        return {};
    };
    if (key == "shard") return taken(parseSharding(value), settings.shard);
    if (key == "reduce") return taken(parseReduce(value), settings.reduce);
    ShardRules rules;
    return taken(parseGather(value, rules), settings.gather);
}

Result<void> setOne(Settings& settings, const std::string& word)
{
    const KeyValue given = keyValueOf(word);
    const std::string_view key = given.key, value = given.value.value_or("");
    if (key == "hoist" && !given.value) {
        settings.hoist = true;
        return {};
    }
    if (key == "hoist") {
        settings.hoist = value == "yes";
        return value == "yes" || value == "no" ? Result<void>{} : wrongSetting(word, "it takes yes or no");
    }
    if (key == "ranks") return setWhole(settings.ranks, word, value, 1, mostRanks);
    if (key == "microbatches") return setWhole(settings.microbatches, word, value, 1, mostMicrobatches);
    if (key == "chunks") return setWhole(settings.chunks, word, value, 0, 16);
    if (key == "costs") return setCosts(settings, word, value);
    if (key == "comm") return setReal(settings.comm, word, value, 0, 1e6);
    if (key == "replicas") return setWhole(settings.replicas, word, value, 1, 4096);
    if (key == "parameters") return setReal(settings.parameters, word, value, 0, 1e6);
    if (key == "shard" || key == "gather" || key == "reduce") return setSharing(settings, word, key, value);
    if (key == "keep") return setReal(settings.keep, word, value, 0, 1);
    if (key == "head") return setReal(settings.head, word, value, 0, 1e6);
    if (key == "share") return setReal(settings.share, word, value, 1e-6, 1e6);
    if (key == "layers") return setList(settings.layers, word, value);
    if (key == "slow") return setList(settings.slow, word, value);
    if (key == "cap") {
        if (value == "none") {
            settings.cap.reset();
            return {};
        }
        double cap = 0;
        auto set = setReal(cap, word, value, 0, 1e6);
        if (set) settings.cap = cap;
        return set;
    }
    if (key == "recompute") {
        auto stages = parseRecompute(value, 4096);
        if (!stages) return wrongSetting(word, stages.error().message, stages.error().remedy);
        settings.recompute = std::string(value);
        return {};
    }
    if ((key == "link" || key == "launch") && value == "none") {
        settings.disturbed.clear();
        return {};
    }
    if (key == "link" || key == "launch") {
        auto read = parsePerturbation(word, mostRanks);
        if (!read) return wrongSetting(word, read.error().message, read.error().remedy);
        settings.disturbed += (settings.disturbed.empty() ? "" : ",") + word;
        return {};
    }
    if (key == "sends") {
        settings.rendezvous = value == "rendezvous";
        return value == "rendezvous" || value == "buffered" ? Result<void>{}
                                                            : wrongSetting(word, "it takes buffered or rendezvous");
    }
    if (key == "lower") {
        if (value != "none")
            if (auto read = parseLowering(value); !read)
                return wrongSetting(word, read.error().message, read.error().remedy);
        settings.lower = value == "none" ? std::string() : std::string(value);
        return {};
    }
    return wrongSetting(word, "there is no such setting",
                        "settings are ranks, microbatches, chunks, costs, comm, cap, recompute, hoist, keep, layers, "
                        "head, share, slow, link, launch, "
                        "replicas, shard, gather, reduce, parameters, sends, lower");
}

void setLayers(const Schedule& schedule, const Settings& settings, CostModel& costs)
{
    for (int stage = 0; stage < schedule.stages; ++stage) {
        const double count = static_cast<std::size_t>(stage) < settings.layers.size()
                                 ? settings.layers[static_cast<std::size_t>(stage)]
                                 : 0;
        const double work = (count + (stage + 1 == schedule.stages ? settings.head : 0)) / settings.share;
        for (std::size_t k = 0; k < allKinds().size(); ++k)
            if (const auto kind = static_cast<OpKind>(k); isCompute(kind))
                costs.setDuration(kind, stage, scaled(costs.duration(kind, stage, -1), work));
        StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        memory.activation = scaled(memory.activation, work);
        memory.freedAtInput = scaled(memory.freedAtInput, work);
    }
}

void setSlow(const Schedule& schedule, const Settings& settings, CostModel& costs)
{
    for (int stage = 0; stage < schedule.stages; ++stage)
        for (const auto& copy : schedule.placement.copiesOf(stage)) {
            const auto rank = static_cast<std::size_t>(copy.rank);
            if (rank >= settings.slow.size() || settings.slow[rank] == 1) continue;
            for (std::size_t k = 0; k < allKinds().size(); ++k)
                if (const auto kind = static_cast<OpKind>(k); isCompute(kind))
                    costs.setDuration(kind, stage, copy.rank,
                                      scaled(costs.duration(kind, stage, -1), settings.slow[rank]));
        }
}

} // namespace

Result<Settings> withSettings(Settings settings, std::string_view text)
{
    for (const std::string& word : partsOf(text, " \t\n")) STAGEWRIGHT_CHECK(setOne(settings, word));
    return settings;
}

std::string changesOf(const Settings& settings, const Settings& from)
{
    std::string text;
    const auto add = [&](bool differs, const std::string& word) {
        if (differs) text += (text.empty() ? "" : " ") + word;
    };
    add(settings.ranks != from.ranks, fmt::format("ranks={}", settings.ranks));
    add(settings.microbatches != from.microbatches, fmt::format("microbatches={}", settings.microbatches));
    add(settings.chunks != from.chunks, fmt::format("chunks={}", settings.chunks));
    std::string costs;
    const auto addCost = [&](double value, double other, const char* kind) {
        if (value != other) costs += fmt::format("{}{}={}", costs.empty() ? "costs=" : ",", kind, value);
    };
    addCost(settings.forward, from.forward, "F");
    addCost(settings.inputGrad, from.inputGrad, "I");
    addCost(settings.weightGrad, from.weightGrad, "W");
    if (settings.backward >= 0) addCost(settings.backward, from.backward, "B");
    addCost(settings.unshard, from.unshard, "UNSHARD");
    addCost(settings.reduceGrad, from.reduceGrad, "REDUCE_GRAD");
    add(!costs.empty(), costs);
    add(settings.comm != from.comm, fmt::format("comm={}", settings.comm));
    add(settings.cap != from.cap, settings.cap ? fmt::format("cap={}", *settings.cap) : "cap=none");
    add(settings.recompute != from.recompute, "recompute=" + settings.recompute);
    add(settings.hoist != from.hoist, settings.hoist ? "hoist=yes" : "hoist=no");
    add(settings.keep != from.keep, fmt::format("keep={}", settings.keep));
    add(settings.layers != from.layers, fmt::format("layers={}", fmt::join(settings.layers, ",")));
    add(settings.head != from.head, fmt::format("head={}", settings.head));
    add(settings.share != from.share, fmt::format("share={}", settings.share));
    add(settings.slow != from.slow, fmt::format("slow={}", fmt::join(settings.slow, ",")));
    if (settings.disturbed != from.disturbed)
        for (const std::string& part : partsOf(settings.disturbed, ",")) add(true, part);
    add(settings.replicas != from.replicas, fmt::format("replicas={}", settings.replicas));
    add(settings.shard != from.shard, "shard=" + settings.shard);
    add(settings.gather != from.gather, "gather=" + settings.gather);
    add(settings.reduce != from.reduce, "reduce=" + settings.reduce);
    add(settings.parameters != from.parameters, fmt::format("parameters={}", settings.parameters));
    add(settings.rendezvous != from.rendezvous, settings.rendezvous ? "sends=rendezvous" : "sends=buffered");
    add(settings.lower != from.lower, settings.lower.empty() ? "lower=none" : "lower=" + settings.lower);
    return text;
}

namespace {

// The lists of one of the replicas, which are alike, with the ops of what they share.
Result<Schedule> withSharing(const Schedule& schedule, const Settings& settings)
{
    ShardRules rules;
    const auto sharding = parseSharding(settings.shard);
    const auto reduce = parseReduce(settings.reduce);
    const auto gather = parseGather(settings.gather, rules);
    if (!sharding) return tl::unexpected(sharding.error());
    if (!reduce) return tl::unexpected(reduce.error());
    if (!gather) return tl::unexpected(gather.error());
    rules.reduce = *reduce;
    return addShardOps(schedule, sharding->level, rules);
}

// 2 bytes of weight, 2 of gradient and 12 of optimizer state a parameter; what replicas share of them.
void setSharedState(const Schedule& schedule, const Settings& settings, CostModel& costs)
{
    // a rank's stages
    const double parts = std::max(1.0, static_cast<double>(schedule.stages) / std::max(1, schedule.ranks));
    for (int stage = 0; stage < schedule.stages; ++stage) {
        StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        memory.weight = memory.gradient = std::llround(2e9 * settings.parameters / parts);
        memory.optimizer = std::llround(12e9 * settings.parameters / parts);
        costs.setGather(stage, std::llround(settings.unshard * static_cast<double>(rankShare) / parts));
        costs.setReduction(stage, std::llround(settings.reduceGrad * static_cast<double>(rankShare) / parts));
    }
    if (settings.replicas < 2) return;
    costs.replicas = settings.replicas;
    costs.links.collectives = ResourceUse::Beside;
    if (const auto sharding = parseSharding(settings.shard)) costs.sharding = *sharding;
}

} // namespace

Result<Schedule> passedThrough(const Schedule& schedule, const Settings& settings)
{
    const auto has = [&](const auto& wanted) {
        for (const auto& list : schedule.order)
            if (std::any_of(list.begin(), list.end(), [&](const Op& op) { return wanted(op.kind); })) return true;
        return false;
    };
    Schedule out = schedule;
    if (settings.recompute != "none" && !has([](OpKind kind) { return isRecompute(kind); })) {
        auto stages = parseRecompute(settings.recompute, schedule.stages);
        if (!stages) return tl::unexpected(std::move(stages.error()).with("recompute"));
        out = withRecompute(out, *stages, settings.hoist);
        out.name = schedule.name;
    }
    if (settings.replicas > 1 && !has(isCollective)) {
        auto shared = withSharing(out, settings);
        if (!shared) return shared;
        out = std::move(*shared);
        out.name = schedule.name;
    }
    if ((settings.lower.empty() && !settings.rendezvous) || has(isMessage)) return out;
    STAGEWRIGHT_TRY(auto lowering, parseLowering(settings.lower.empty() ? "just-in-time" : settings.lower));
    return lower(out, lowering);
}

Result<Schedule> makeFor(const std::string& name, const Settings& settings)
{
    Shape shape(settings.ranks, settings.microbatches, settings.chunks);
    shape.costs.forward = settings.forward;
    shape.costs.inputGrad = settings.inputGrad;
    shape.costs.weightGrad = settings.weightGrad;
    shape.costs.latency = settings.comm * settings.forward;
    if (settings.cap) shape.costs.memoryLimit = *settings.cap;
    return makeSchedule(name, shape);
}

Result<CostModel> costsFor(const Schedule& schedule, const Settings& settings)
{
    CostModel::UnitCosts units;
    units.forward = settings.forward;
    units.inputGrad = settings.inputGrad;
    units.weightGrad = settings.weightGrad;
    units.backward = settings.backward;
    units.latency = settings.comm * settings.forward;
    CostModel costs = CostModel::uniform(schedule, units);
    if (settings.parameters > 0 || settings.replicas > 1) setSharedState(schedule, settings, costs);
    for (StageMemory& memory : costs.memory)
        memory.boundary = std::llround(settings.keep * static_cast<double>(memory.activation));
    if (!settings.layers.empty()) {
        if (settings.layers.size() != static_cast<std::size_t>(schedule.stages))
            return fail(ErrorCode::Usage,
                        fmt::format("the layers are for {} stages, the schedule has {}", settings.layers.size(),
                                    schedule.stages),
                        "give one number per stage");
        setLayers(schedule, settings, costs);
    }
    if (!settings.slow.empty()) setSlow(schedule, settings, costs);
    if (settings.disturbed.empty()) return costs;
    STAGEWRIGHT_TRY(auto disturbance, parsePerturbation(settings.disturbed, schedule.ranks));
    STAGEWRIGHT_CHECK(checkOneStep(disturbance));
    return perturbed(schedule, costs, disturbance, scaled(rankShare, settings.forward));
}

Channels channelsOf(const Settings& settings)
{
    Channels channels;
    channels.sends = settings.rendezvous ? SendMode::Rendezvous : SendMode::Buffered;
    if (!settings.lower.empty())
        if (auto lowering = parseLowering(settings.lower)) channels.receives = receivesOf(lowering->rule);
    return channels;
}

} // namespace stagewright::lessons
