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

// Keys of a canvas beside those of a setup.
struct OwnNumber {
    std::string_view name;
    double Settings::*place;
    double least;
};
constexpr OwnNumber ownNumbers[] = {
    {"head", &Settings::head, 0}, {"share", &Settings::share, 1e-6}, {"parameters", &Settings::parameters, 0}};
struct OwnList {
    std::string_view name;
    std::vector<double> Settings::*place;
};
constexpr OwnList ownLists[] = {{"layers", &Settings::layers}, {"slow", &Settings::slow}};

// In the order in which they are written; costs are of several kinds, link and launch parts of a disturbance.
constexpr std::string_view everyName[] = {"ranks",      "microbatches", "chunks",   "costs",  "comm",   "cap",
                                          "recompute",  "hoist",        "keep",     "layers", "head",   "share",
                                          "slow",       "link",         "replicas", "shard",  "gather", "reduce",
                                          "parameters", "sends",        "lower"};

Result<double> numberFrom(const std::string& word, std::string_view text, double least)
{
    const auto number = numberOf(text);
    if (!number || *number < least || *number > 1e6)
        return wrongSetting(word, fmt::format("'{}' is not a number from {} to {}", text, least, 1e6));
    return *number;
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

// What a key of the command line takes, and smaller shapes.
Result<void> setOfSetup(Settings& settings, const std::string& word, const SetupKey& key, std::string_view value)
{
    const auto good = [&]() -> Result<void> {
        ShardRules rules;
        const auto most = [&](int number) { return wholeNumber(1, number)(std::string(value)); };
        const std::string name = key.name();
        std::string fault = name == "ranks" ? most(mostRanks) : name == "microbatches" ? most(mostMicrobatches) : "";
        if (!fault.empty()) return fail(ErrorCode::Usage, std::move(fault));
        if (name == "shard") STAGEWRIGHT_CHECK(parseSharding(value));
        if (name == "reduce") STAGEWRIGHT_CHECK(parseReduce(value));
        if (name == "gather") STAGEWRIGHT_CHECK(parseGather(value, rules));
        if (name == "recompute") STAGEWRIGHT_CHECK(parseRecompute(value, 4096));
        return setKey(settings, key, value);
    }();
    return good ? good : wrongSetting(word, good.error().message, good.error().remedy);
}

Result<void> setOne(Settings& settings, const std::string& word)
{
    const KeyValue given = keyValueOf(word);
    const std::string_view name = given.key;
    const std::string_view value = given.value.value_or(name == "hoist" ? "yes" : "");
    if (name == "costs") return setCosts(settings, word, value);
    if (name == "cap" && value == "none") {
        settings.cap.reset();
        return {};
    }
    if (name == "cap") {
        STAGEWRIGHT_TRY(settings.cap, numberFrom(word, value, 0));
        return {};
    }
    for (const OwnNumber& own : ownNumbers)
        if (own.name == name) {
            STAGEWRIGHT_TRY(settings.*own.place, numberFrom(word, value, own.least));
            return {};
        }
    for (const OwnList& own : ownLists)
        if (own.name == name) return setList(settings.*own.place, word, value);
    if (name == "link" || name == "launch") {
        if (value == "none") {
            settings.perturb.clear();
            return {};
        }
        auto read = parsePerturbation(word, mostRanks);
        if (!read) return wrongSetting(word, read.error().message, read.error().remedy);
        settings.perturb.push_back(word);
        return {};
    }
    if (std::find(std::begin(everyName), std::end(everyName), name) != std::end(everyName))
        return setOfSetup(settings, word, *findSetupKey(name), value == "none" && name == "lower" ? "" : value);
    return wrongSetting(word, "there is no such setting",
                        fmt::format("settings are {}, launch", fmt::join(everyName, ", ")));
}

// The words that set a key as the settings have it; those of costs and of disturbances are where they differ from
// others.
std::string wordsFor(std::string_view name, const Settings& settings, const Settings& from)
{
    const auto word = [name](const std::string& value) { return fmt::format("{}={}", name, value); };
    if (name == "cap") return word(settings.cap ? fmt::format("{}", *settings.cap) : "none");
    for (const OwnNumber& own : ownNumbers)
        if (own.name == name) return word(fmt::format("{}", settings.*own.place));
    for (const OwnList& own : ownLists)
        if (own.name == name) return word(fmt::format("{}", fmt::join(settings.*own.place, ",")));
    if (name == "link") {
        std::vector<std::string> parts = settings.perturb;
        if (!from.perturb.empty() && parts != from.perturb) parts.insert(parts.begin(), "link=none");
        return joined(parts, " ");
    }
    if (name != "costs") {
        const std::string text = textOf(settings, *findSetupKey(name));
        return word(text.empty() ? "none" : text);
    }
    std::string costs;
    for (const auto& [kind, place] :
         {std::pair("F", &Settings::forward), std::pair("I", &Settings::inputGrad),
          std::pair("W", &Settings::weightGrad), std::pair("B", &Settings::backward),
          std::pair("UNSHARD", &Settings::unshard), std::pair("REDUCE_GRAD", &Settings::reduceGrad)})
        if (settings.*place != from.*place && settings.*place >= 0)
            costs += fmt::format("{}{}={}", costs.empty() ? "" : ",", kind, settings.*place);
    return word(costs);
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
    for (const std::string_view name : everyName) {
        const std::string words = wordsFor(name, settings, from);
        if (words != wordsFor(name, from, from)) text += (text.empty() ? "" : " ") + words;
    }
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
    if ((settings.lower.empty() && settings.sends != "rendezvous") || has(isMessage)) return out;
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
    if (settings.perturb.empty()) return costs;
    STAGEWRIGHT_TRY(auto disturbance, parsePerturbation(joined(settings.perturb, ","), schedule.ranks));
    STAGEWRIGHT_CHECK(checkOneStep(disturbance));
    return perturbed(schedule, costs, disturbance, scaled(rankShare, settings.forward));
}

Channels channelsOf(const Settings& settings)
{
    Channels channels;
    channels.sends = settings.sends == "rendezvous" ? SendMode::Rendezvous : SendMode::Buffered;
    if (!settings.lower.empty())
        if (auto lowering = parseLowering(settings.lower)) channels.receives = receivesOf(lowering->rule);
    return channels;
}

} // namespace stagewright::lessons
