#include "traces/lessons/settings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/kinds.h"
#include "schedules/model/offload.h"
#include "schedules/model/recompute.h"
#include "schedules/model/shard_rules.h"
#include "schedules/plan/fill_plan.h"
#include "schedules/setup/replica_lists.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace {

constexpr int mostRanks = 64;
constexpr int mostMicrobatches = 512;

tl::unexpected<Error> wrongSetting(const std::string& word, const std::string& what, const std::string& remedy = {})
{
    return fail(ErrorCode::Usage, fmt::format("setting '{}': {}", word, what), remedy);
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
constexpr std::string_view everyName[] = {"ranks",      "microbatches", "chunks",   "costs",   "comm",   "cap",
                                          "recompute",  "hoist",        "keep",     "layers",  "head",   "share",
                                          "slow",       "link",         "replicas", "shard",   "gather", "reduce",
                                          "parameters", "sends",        "lower",    "offload", "fill"};

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

// Keys whose empty text is written "none".
bool mayBeNone(std::string_view name)
{
    for (const std::string_view one : {"lower", "gather", "reduce", "offload", "fill"})
        if (name == one) return true;
    return false;
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
        if (name == "reduce" && !value.empty()) STAGEWRIGHT_CHECK(parseReduce(value));
        if (name == "gather" && !value.empty()) STAGEWRIGHT_CHECK(parseGather(value, rules));
        if (name == "recompute") STAGEWRIGHT_CHECK(parseRecompute(value, 4096));
        if (name == "offload" && value.starts_with("cap"))
            return fail(ErrorCode::Usage, "a cap is planned for, which takes long",
                        "write all, longest or all:ahead=2");
        return setKey(settings, key, value);
    }();
    return good ? good : wrongSetting(word, good.error().message, good.error().remedy);
}

Result<void> setOne(Settings& settings, const std::string& word)
{
    const KeyValue given = keyValueOf(word);
    const std::string_view name = given.key;
    const std::string_view value = given.value.value_or(name == "hoist" ? "yes" : "");
    if (name == "costs") {
        if (value.empty()) return {};
        const auto units = parseUnitCosts(value, settings.units());
        if (!units) return wrongSetting(word, units.error().message, "write costs=F=1,I=1,W=1");
        settings.costs = unitCostsText(*units);
        return {};
    }
    if (name == "cap") {
        settings.memoryLimit.clear();
        if (value == "none") return {};
        STAGEWRIGHT_TRY(const double cap, numberFrom(word, value, 0));
        settings.memoryLimit = fmt::format("{}", cap);
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
    if (isSetting(name))
        return setOfSetup(settings, word, *findSetupKey(name), value == "none" && mayBeNone(name) ? "" : value);
    return wrongSetting(word, "there is no such setting", "settings are " + settingList());
}

// The words that set a key as the settings have it; those of costs and of disturbances are where they differ from
// others.
std::string wordsFor(std::string_view name, const Settings& settings, const Settings& from)
{
    const auto word = [name](const std::string& value) { return fmt::format("{}={}", name, value); };
    if (name == "cap") return word(settings.memoryLimit.empty() ? "none" : settings.memoryLimit);
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
    return word(unitCostsText(settings.units(), from.units()));
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

// 2 bytes of weight, 2 of gradient and 12 of optimizer state a parameter.
void setWeights(const Schedule& schedule, const Settings& settings, CostModel& costs)
{
    if (settings.parameters == 0) return;
    // a rank's stages
    const double parts = std::max(1.0, static_cast<double>(schedule.stages) / std::max(1, schedule.ranks));
    for (StageMemory& memory : costs.memory) {
        memory.weight = memory.gradient = std::llround(2e9 * settings.parameters / parts);
        memory.optimizer = std::llround(12e9 * settings.parameters / parts);
    }
}

} // namespace

bool isSetting(std::string_view name)
{
    return name == "launch" || std::find(std::begin(everyName), std::end(everyName), name) != std::end(everyName);
}

std::string settingList() { return fmt::format("{}, launch", fmt::join(everyName, ", ")); }

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

SetupUnits Settings::units() const { return unitsOf(*this).value_or(SetupUnits()); }

namespace {

// As the command line has it, which takes a rule of gathers only where there is something to gather.
Setup setupOf(const Settings& settings)
{
    Setup setup = settings;
    if (setup.replicas < 2) setup.shard = "none";
    if (!setup.shard.starts_with("weights")) setup.gather.clear();
    if (setup.replicas < 2) setup.reduce.clear();
    return setup;
}

} // namespace

Result<Schedule> makeFor(const std::string& name, const Settings& settings)
{
    return readSchedule(name, settings, {}, generatorCosts(settings));
}

Result<Schedule> passedThrough(const Schedule& schedule, const Settings& settings)
{
    const auto has = [&](const auto& wanted) {
        for (const auto& list : schedule.order)
            if (std::any_of(list.begin(), list.end(), [&](const Op& op) { return wanted(op.kind); })) return true;
        return false;
    };
    const Setup setup = setupOf(settings);
    Schedule out = schedule;
    if (!has(isRecompute)) {
        STAGEWRIGHT_TRY(out, recomputed(out, setup, {}));
    }
    if (!has(isCopy) && !setup.offload.empty()) {
        STAGEWRIGHT_TRY(const auto rule, parseOffload(setup.offload));
        out = withOffloads(out, rule);
    }
    if (!has(fillsGaps) && !setup.fill.empty()) {
        STAGEWRIGHT_TRY(const auto rule, parseFill(setup.fill));
        STAGEWRIGHT_TRY(const auto costs, costsFor(out, settings));
        auto cycle = rule.any ? fillSchedule(out, costs, rule) : fail(ErrorCode::Invalid, {});
        if (!cycle && cycle.error().code == ErrorCode::Usage) return tl::unexpected(std::move(cycle.error()));
        if (cycle && rule.step > cycle->steps)
            return fail(ErrorCode::Usage, fmt::format("step {} of a cycle of {}", rule.step, cycle->steps),
                        "show an earlier step");
        if (cycle) out = std::move(cycle->schedules[static_cast<std::size_t>(rule.step) - 1]); // else it can't run
    }
    if (!has(isCollective)) {
        STAGEWRIGHT_TRY(auto state, shareState(out, setup, {}));
        out = std::move(state.schedule);
    }
    out.name = schedule.name;
    if (has(isMessage)) return out;
    STAGEWRIGHT_TRY(const auto chosen, chooseChannels(out, false, setup, {}));
    return chosen.lowering ? lower(out, *chosen.lowering) : out;
}

Result<CostModel> costsFor(const Schedule& schedule, const Settings& settings)
{
    Setup setup = setupOf(settings);
    setup.perturb.clear(); // of the layers' costs
    STAGEWRIGHT_TRY(auto costs, chooseCosts(schedule, setup, {}));
    if (settings.replicas > 1) {
        ReplicaLists state;
        state.schedule = schedule;
        state.standsFor = schedule.replicas > 1 ? 1 : settings.replicas;
        state.shared = true;
        STAGEWRIGHT_TRY(state.sharding, parseSharding(settings.shard));
        shareCosts(costs, state);
    }
    setWeights(schedule, settings, costs);
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
    STAGEWRIGHT_TRY(const auto disturbance, choosePerturbation(settings.perturb, schedule.ranks));
    STAGEWRIGHT_CHECK(checkOneStep(disturbance));
    return perturbed(schedule, costs, disturbance, scaled(rankShare, settings.units().forward));
}

Channels channelsOf(const Settings& settings)
{
    Schedule any;
    any.ranks = std::max(2, settings.ranks);
    const auto chosen = chooseChannels(any, false, setupOf(settings), {});
    return chosen ? chosen->channels : Channels();
}

} // namespace stagewright::lessons
