#include "schedules/setup/prepare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "schedules/base/text.h"
#include "schedules/execute/ready_order.h"
#include "schedules/heuristic/block_schedule.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/layout/choose.h"
#include "schedules/layout/cluster.h"
#include "schedules/layout/layout_links.h"
#include "schedules/library/registry.h"
#include "schedules/messages/messages.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/layer_costs.h"
#include "schedules/model/offload.h"
#include "schedules/model/profiles.h"
#include "schedules/model/recompute.h"
#include "schedules/plan/offload_plan.h"
#include "schedules/text/csv.h"
#include "schedules/text/link_text.h"
#include "schedules/text/megatron.h"

namespace stagewright {

bool namesFile(const std::string& nameOrFile)
{
    return nameOrFile.ends_with(".csv") || nameOrFile.ends_with(".block") || nameOrFile.find('/') != std::string::npos;
}

void noteOwnShape(const std::string& path, const Setup& setup, bool block, const SetupSources& sources)
{
    std::string names;
    const auto add = [&](bool given, const char* name) {
        if (given) names += (names.empty() ? "" : ", ") + std::string(name);
    };
    add(setup.names("--ranks"), "--ranks");
    add(setup.names("--microbatches") && !block, "--microbatches");
    add(setup.names("--chunks"), "--chunks");
    if (!names.empty()) sources.tell(fmt::format("{} has its own shape: {} not used", path, names));
}

Schedule overlapping(Schedule schedule, const Setup& setup, const SetupSources& sources)
{
    if (setup.overlap != "serial") return schedule;
    if (!overlapsOps(schedule))
        sources.tell(fmt::format("--overlap is not used: {} has no overlapped pairs", schedule.name));
    return serialised(std::move(schedule));
}

Shape shapeOf(const Setup& setup)
{
    Shape shape(setup.ranks, setup.microbatches, setup.chunks);
    shape.costs = generatorCosts(setup);
    return shape;
}

namespace {

Result<Schedule> readScheduleFile(const std::string& path, const Setup& setup, const SetupSources& sources,
                                  const GeneratorCosts& costs)
{
    if (!sources.csv || !sources.text)
        return fail(ErrorCode::Usage, fmt::format("{}: files can't be read here", path),
                    "name a schedule of the library");
    noteOwnShape(path, setup, path.ends_with(".block"), sources);
    if (path.ends_with(".block")) {
        STAGEWRIGHT_TRY(auto text, sources.text(path));
        auto block = parseBlock(text);
        if (!block) return tl::unexpected(std::move(block.error()).with(path));
        BlockOptions options;
        options.costs = costs;
        auto made = scheduleOf(*block, setup.microbatches, options);
        if (!made) return tl::unexpected(std::move(made.error()).with(path));
        return made;
    }
    auto schedule = sources.csv(path);
    if (!schedule) return schedule;
    if (!sources.note) return overlapping(std::move(*schedule), setup, sources);
    if (const std::string known = recognise(*schedule); !known.empty())
        sources.tell(fmt::format("{} is {} for {} ranks and {} microbatches", path, known, schedule->ranks,
                                 schedule->microbatches));
    return overlapping(std::move(*schedule), setup, sources);
}

} // namespace

Result<Schedule> readSchedule(const std::string& nameOrFile, const Setup& setup, const SetupSources& sources,
                              const GeneratorCosts& costs)
{
    if (namesFile(nameOrFile)) return readScheduleFile(nameOrFile, setup, sources, costs);
    auto info = scheduleInfoOf(nameOrFile);
    if (!info) {
        Error error = std::move(info.error()).with("--schedule");
        if (sources.text && sources.text(nameOrFile))
            error.remedy = fmt::format("to name a file, use .csv or a slash: ./{}", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    if (setup.chunks > 0 && (*info)->fixedChunks > 0 && setup.chunks != (*info)->fixedChunks)
        sources.tell(fmt::format("{} has {} stage{} per rank: --chunks {} is not used", (*info)->name,
                                 (*info)->fixedChunks, (*info)->fixedChunks == 1 ? "" : "s", setup.chunks));
    Shape full = shapeOf(setup);
    full.costs = costs;
    auto made = makeSchedule(nameOrFile, full);
    return made ? overlapping(std::move(*made), setup, sources) : made;
}

Result<std::shared_ptr<const CheckedSchedule>> chooseSchedule(const std::string& nameOrFile, const Setup& setup,
                                                              const SetupSources& sources)
{
    STAGEWRIGHT_TRY(auto schedule, readSchedule(nameOrFile, setup, sources));
    const Schedule& lists = schedule; // which stay where they are if they have faults
    Validation validation;
    auto checked = CheckedSchedule::ifValid(std::move(schedule), validation);
    if (!checked) {
        if (!validation.cycle.empty() && sources.cyclic) sources.cyclic(lists);
        Error error = std::move(validation.toResult().error()).with(nameOrFile);
        if (error.remedy.empty() && namesFile(nameOrFile))
            error.remedy = fmt::format("'stagewright validate {} --all' shows every fault", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    return checked;
}

Result<Schedule> recomputed(const Schedule& schedule, const Setup& setup, const SetupSources& sources)
{
    auto stages = parseRecompute(setup.recompute, schedule.stages);
    if (!stages) return tl::unexpected(std::move(stages.error()).with("--recompute"));
    if (setup.hoist && std::none_of(stages->begin(), stages->end(), [](bool on) { return on; }))
        sources.tell("--hoist is not used: no stage recomputes; --recompute names them");
    if (setup.recompute == "none") return schedule;
    return withRecompute(schedule, *stages, setup.hoist);
}

bool limitsMessages(const Setup& setup)
{
    Channels channels;
    return readLimit(setup.channels, channels) && channels.limited();
}

void noteUnusedAlone(const Schedule& schedule, std::initializer_list<std::pair<const char*, bool>> given,
                     const SetupSources& sources)
{
    std::vector<std::string> unused;
    for (const auto& [name, asked] : given)
        if (asked) unused.emplace_back(name);
    if (schedule.ranks == 1 && !unused.empty())
        sources.tell(fmt::format("{} not used: a single rank sends no messages", fmt::join(unused, ", ")));
}

Result<ChannelChoice> chooseChannels(const Schedule& schedule, bool lowered, const Setup& setup,
                                     const SetupSources& sources)
{
    ChannelChoice out;
    out.channels.sends = setup.sends == "rendezvous" ? SendMode::Rendezvous : SendMode::Buffered;
    readLimit(setup.channels, out.channels);
    if (schedule.ranks == 1 && !lowered) {
        noteUnusedAlone(schedule,
                        {{"--sends", out.channels.sends == SendMode::Rendezvous},
                         {"--channels", setup.channels != "shared"},
                         {"--lower", !setup.lower.empty()},
                         {"--receives", !setup.receives.empty()}},
                        sources);
        return out;
    }
    if (!setup.lower.empty()) {
        auto rule = parseLowering(setup.lower);
        if (!rule) return tl::unexpected(std::move(rule.error()).with("--lower"));
        out.lowering = *rule;
    } else if ((out.channels.sends == SendMode::Rendezvous || out.channels.limited()) && !lowered) {
        out.lowering = Lowering{};
        sources.tell("sends and receives inserted just in time; --lower chooses another rule");
    }
    if (out.lowering && lowered) {
        sources.tell(schedule.name + " already has its sends and receives: --lower is not used");
        out.lowering.reset();
    }
    if (!setup.receives.empty() && !out.lowering && !lowered)
        sources.tell(
            "--receives is not used: there are no receives in the order; --lower or --sends rendezvous inserts them");
    if (out.lowering) out.channels.receives = receivesOf(out.lowering->rule);
    if (!setup.receives.empty())
        out.channels.receives = setup.receives == "posted" ? ReceiveMode::Posted : ReceiveMode::Blocking;
    return out;
}

Result<LoweredChoice> chooseLowering(const Schedule& schedule, const Setup& setup, const SetupSources& sources)
{
    STAGEWRIGHT_TRY(auto chosen, chooseChannels(schedule, isLowered(schedule), setup, sources));
    LoweredChoice out{schedule, chosen.channels, chosen.lowering};
    if (out.lowering) {
        auto lowered = lower(schedule, *out.lowering);
        if (lowered)
            out.schedule = std::move(*lowered);
        else
            out.lowering.reset();
    }
    return out;
}

namespace {

constexpr std::string_view analytic = "analytic:", profiled = "pipefisher:";

// Into how many an inversion is divided; a text that can't be read is refused where it is used.
int piecesOf(const Setup& setup) { return parseFill(setup.fill).value_or(FillRule()).pieces; }

bool isMeasured(const Setup& setup) { return !setup.costsFrom.empty() || setup.costs.ends_with(".json"); }

constexpr std::pair<std::string_view, double SetupUnits::*> unitKinds[] = {
    {"F", &SetupUnits::forward},          {"I", &SetupUnits::inputGrad},   {"W", &SetupUnits::weightGrad},
    {"B", &SetupUnits::backward},         {"OPT", &SetupUnits::optimizer}, {"UNSHARD", &SetupUnits::gather},
    {"REDUCE_GRAD", &SetupUnits::reduce}, {"COPY", &SetupUnits::copy},     {"FACTOR_A", &SetupUnits::factorA},
    {"FACTOR_G", &SetupUnits::factorG},   {"INVERT", &SetupUnits::invert}};

} // namespace

Result<SetupUnits> parseUnitCosts(std::string_view text, SetupUnits costs)
{
    for (const std::string_view part : split(text, ",")) {
        const auto [key, number] = keyValueOf(part);
        double value = 0;
        if (!number || !readNumber(*number, value) || value < 0 || value > 1e6)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not a cost", part),
                        "write F=1,I=1,W=1 with numbers of at least 0, or name a .json file");
        const auto* kind = std::find_if(std::begin(unitKinds), std::end(unitKinds),
                                        [&key = key](const auto& one) { return one.first == key; });
        if (kind == std::end(unitKinds))
            return fail(ErrorCode::Usage, fmt::format("there is no kind '{}'", key),
                        "kinds are F (forward), I (input gradient), W (weight gradient), B (full backward), OPT "
                        "(optimizer), UNSHARD and REDUCE_GRAD (of replicas), COPY (an OFFLOAD or RELOAD), FACTOR_A, "
                        "FACTOR_G and INVERT (K-FAC)");
        costs.*kind->second = value;
    }
    return costs;
}

Result<SetupUnits> unitsOf(const Setup& setup)
{
    SetupUnits units;
    if (!setup.costs.empty()) {
        auto given = parseUnitCosts(setup.costs);
        if (!given) return tl::unexpected(std::move(given.error()).with("--costs"));
        units = *given;
    }
    units.latency = std::max(setup.comm, 0.0) * units.forward;
    units.freedAtInput = setup.freeAtInput;
    units.pieces = piecesOf(setup);
    return units;
}

std::string unitCostsText(const SetupUnits& costs, const SetupUnits& from)
{
    std::string text;
    for (const auto& [name, place] : unitKinds)
        if (costs.*place != from.*place && costs.*place >= 0)
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, costs.*place);
    return text;
}

Result<ClusterLinks> clusterLinksOf(const Schedule& schedule, const Setup& setup, const SetupSources& sources)
{
    if (setup.comm >= 0 || !setup.link.empty())
        return fail(ErrorCode::Usage, "--cluster has the links: it can't be combined with --comm or --link",
                    "leave them out");
    auto cluster = namedCluster(setup.cluster, sources.text);
    if (!cluster) return tl::unexpected(std::move(cluster.error()).with("--cluster"));
    auto links = clusterLinks(schedule, *cluster, {});
    if (!links) return tl::unexpected(std::move(links.error()).with("--cluster"));
    return ClusterLinks{std::move(*links),
                        fmt::format("links of {}: {}", toText(*cluster), wordsOf(StepConstants{}, *cluster))};
}

Result<std::optional<Copies>> copiesOf(const Setup& setup)
{
    if (setup.copies.empty()) return std::optional<Copies>();
    auto copies = parseCopies(setup.copies);
    if (!copies) return tl::unexpected(std::move(copies.error()).with("--copies"));
    return std::optional<Copies>(*copies);
}

namespace {

constexpr const char* clusterNeedsTimes = "--cluster gives times, but the costs are in units";
constexpr const char* timesRemedy = "use --costs analytic:MODEL@DEVICE, or measured costs (--costs-from FILE#RUN)";

Result<CostModel> undisturbedCosts(const Schedule& schedule, const Setup& setup, const SetupSources& sources)
{
    const bool derived = setup.costs.starts_with(analytic);
    const bool profile = setup.costs.starts_with(profiled);
    if (!derived && !profile && !isMeasured(setup)) {
        STAGEWRIGHT_TRY(const auto units, unitsOf(setup));
        if (!setup.link.empty())
            return fail(ErrorCode::Usage, "--link gives times, but the costs are in units",
                        "use --comm C, or measured costs (--costs-from FILE#RUN)");
        STAGEWRIGHT_TRY(const auto copies, copiesOf(setup));
        if (copies && (copies->known() || copies->latency > 0))
            return fail(
                ErrorCode::Usage, "--copies gives speeds, but the costs are in units",
                "write --costs COPY=0.5, an activation's copy in forwards of a rank; --copies duplex=full alone "
                "is for both");
        if (!setup.cluster.empty()) return fail(ErrorCode::Usage, clusterNeedsTimes, timesRemedy);
        CostModel costs = CostModel::uniform(schedule, units);
        if (copies) costs.links.copies = *copies;
        const double part = schedule.stages > 0 ? static_cast<double>(schedule.pipelineRanks()) / schedule.stages : 1;
        const auto nanos = [part](double cost) { return std::llround(cost * part * static_cast<double>(rankShare)); };
        for (int stage = 0; stage < schedule.stages; ++stage) {
            if (units.gather > 0) costs.setGather(stage, nanos(units.gather));
            if (units.reduce > 0) costs.setReduction(stage, nanos(units.reduce));
        }
        for (StageMemory& memory : costs.memory)
            memory.boundary = std::llround(setup.keep * static_cast<double>(memory.activation));
        return costs;
    }
    if (setup.keep > 0)
        return fail(ErrorCode::Usage, "--keep: these costs already include the size of a stage's input",
                    "use it with unit costs only");
    Result<CostModel> costs;
    if (derived) {
        auto read = parseAnalyticCosts(std::string_view(setup.costs).substr(analytic.size()));
        if (!read) return tl::unexpected(std::move(read.error()).with("--costs"));
        read->layers = setup.stageLayers;
        costs = analyticCosts(schedule, *read);
        if (!costs) return tl::unexpected(std::move(costs.error()).with("--costs"));
    } else if (profile) {
        costs = profiledCosts(schedule, std::string_view(setup.costs).substr(profiled.size()), piecesOf(setup));
        if (!costs) return tl::unexpected(std::move(costs.error()).with("--costs"));
    } else {
        costs = sources.measured
                    ? sources.measured(schedule, setup)
                    : fail(ErrorCode::Usage, "--costs: files and runs can't be read here", "give unit costs");
        if (!costs) return costs;
    }
    STAGEWRIGHT_TRY(const auto copies, copiesOf(setup));
    if (copies && copies->known()) costs->links.copies = *copies;
    if (copies && !copies->known()) costs->links.copies.fullDuplex = copies->fullDuplex;
    if (!setup.cluster.empty()) {
        if (costs->timeUnit != 1) return fail(ErrorCode::Usage, clusterNeedsTimes, timesRemedy);
        STAGEWRIGHT_TRY(auto own, clusterLinksOf(schedule, setup, sources));
        own.links.collectives = costs->links.collectives;
        own.links.copies = costs->links.copies;
        costs->links = std::move(own.links);
    } else if (!setup.link.empty()) {
        auto link = parseLink(setup.link);
        if (!link) return tl::unexpected(std::move(link.error()).with("--link"));
        costs->links = Links{*link, {}, costs->links.collectives, costs->links.copies};
    } else if (setup.comm >= 0) {
        costs->links = Links{{}, {}, costs->links.collectives, costs->links.copies};
        costs->links.all.latency = std::llround(setup.comm * static_cast<double>(forwardUnit(schedule, *costs)));
    }
    return costs;
}

// of a microbatch that the costs are of; units: 1; measured ones: 0, not known
int samplesOf(const Setup& setup)
{
    if (isMeasured(setup) || setup.costs.starts_with(profiled)) return 0;
    if (!setup.costs.starts_with(analytic)) return 1;
    const auto read = parseAnalyticCosts(std::string_view(setup.costs).substr(analytic.size()));
    return !read ? 0 : read->microbatchSize > 0 ? read->microbatchSize : read->model.microbatchSize;
}

} // namespace

Result<Perturbation> choosePerturbation(const std::vector<std::string>& parts, int ranks)
{
    auto read = parsePerturbation(joined(parts, ","), ranks);
    if (!read) return tl::unexpected(std::move(read.error()).with("--perturb"));
    return read;
}

Result<Setup> withLayout(Setup setup)
{
    if (setup.layout.empty()) return setup;
    auto layout = readMegatronLayout(setup.layout, setup.ranks);
    if (!layout) return tl::unexpected(std::move(layout.error()).with("--layout"));
    for (const auto& stage : layout->stages)
        if (stage.predictions > 0)
            return fail(ErrorCode::Usage, "--layout: multi-token prediction (m) is not part of a model here",
                        "leave it out, or write t for a layer that takes as long");
    if (setup.names("--chunks") && setup.chunks != layout->chunks())
        return fail(ErrorCode::Usage,
                    fmt::format("--layout has {} stages for {} ranks, --chunks {} asks for {}", layout->stages.size(),
                                setup.ranks, setup.chunks, setup.chunks * setup.ranks),
                    "leave out --chunks, or add or remove a |");
    if (layout->chunks() > 1) setup.chunks = layout->chunks();
    setup.stageLayers = layout->layers();
    setup.layout.clear();
    return setup;
}

GeneratorCosts generatorCosts(const Setup& setup)
{
    Setup plain = setup;
    if (isMeasured(setup) || !unitsOf(setup)) plain.costs.clear();
    const SetupUnits units = *unitsOf(plain);
    return {.forward = units.forward,
            .inputGrad = units.inputGrad,
            .weightGrad = units.weightGrad,
            .latency = units.latency,
            .memoryLimit = numberOf(setup.memoryLimit).value_or(0),
            .freedAtInput = units.freedAtInput};
}

Result<CostModel> chooseCosts(const Schedule& schedule, const Setup& setup, const SetupSources& sources)
{
    STAGEWRIGHT_TRY(auto perturbation, choosePerturbation(setup.perturb, schedule.ranks));
    if (auto one = checkOneStep(perturbation); !one) return tl::unexpected(std::move(one.error()).with("--perturb"));
    auto costs = undisturbedCosts(schedule, setup, sources);
    if (!costs) return costs;
    const Nanos unit = forwardUnit(schedule, *costs);
    const bool byLayer =
        std::accumulate(setup.stageLayers.begin(), setup.stageLayers.end(), 0) == blocksOf(costs->layers);
    if (!setup.stageLayers.empty() && costs->source != CostSource::Analytic && !byLayer) {
        costs = withStageLayers(schedule, *costs, setup.stageLayers);
        if (!costs) return tl::unexpected(std::move(costs.error()).with("--stage-layers"));
    }
    if (perturbation.empty()) return costs;
    return perturbed(schedule, *costs, perturbation, unit, static_cast<std::uint64_t>(setup.seed));
}

namespace {

// The schedule of that name for another number of microbatches, as replicas of their own batches need it.
template <typename Read>
auto ofMicrobatches(const std::string& name, const Setup& setup, const SetupSources& sources, const Read& read)
{
    return [=, &sources](int microbatches) -> Result<Schedule> {
        Setup other = setup;
        other.microbatches = microbatches;
        STAGEWRIGHT_TRY(const Schedule lists, read(other));
        if (lists.microbatches != microbatches)
            return fail(
                ErrorCode::Usage,
                fmt::format("--replica-batch: {} has {} microbatches, not {}", name, lists.microbatches, microbatches),
                "give a schedule of the library");
        return recomputed(lists, setup, sources);
    };
}

} // namespace

namespace {

Result<Schedule> offloaded(Schedule schedule, const Setup& setup, const SetupSources& sources)
{
    if (setup.offload.empty()) return schedule;
    STAGEWRIGHT_TRY(const auto rule, parseOffload(setup.offload));
    if (rule.which != OffloadRule::Which::Cap) return withOffloads(schedule, rule);
    STAGEWRIGHT_CHECK(validate(schedule).toResult());
    const std::vector<bool> every(static_cast<std::size_t>(schedule.stages), true);
    STAGEWRIGHT_TRY(const auto costs,
                    chooseCosts(rule.recompute ? withRecompute(schedule, every) : schedule, setup, sources));
    STAGEWRIGHT_TRY(const Bytes cap, parseActivations(rule.cap, costs));
    OffloadOptions options;
    options.recompute = rule.recompute;
    auto plan =
        planOffloads(schedule, costs, std::vector<Bytes>(static_cast<std::size_t>(schedule.ranks), cap), options);
    if (!plan) return tl::unexpected(std::move(plan.error()).with("--offload"));
    const auto recomputed = std::count(plan->recomputed.begin(), plan->recomputed.end(), true);
    sources.tell(fmt::format(
        "--offload: {} of {} activations{}, {}", plan->offloads, offloadableOf(schedule).size(),
        rule.recompute ? fmt::format(" and {} of {} stages recomputed", recomputed, schedule.stages) : std::string(),
        plan->makespan == plan->bound ? std::string("a step as short as without them")
        : plan->all                   ? fmt::format("the shortest step of all {} choices under the cap", plan->trials)
                                      : fmt::format("the shortest step of {} that were tried; not proven to be the "
                                                                      "shortest",
                                                    plan->trials)));
    return std::move(plan->schedule);
}

} // namespace

Result<ReplicaLists> simulatedLists(const std::string& name, const Setup& setup, const SetupSources& sources)
{
    const GeneratorCosts costs = generatorCosts(setup);
    STAGEWRIGHT_TRY(auto schedule, readSchedule(name, setup, sources, costs));
    STAGEWRIGHT_TRY(schedule, recomputed(schedule, setup, sources));
    STAGEWRIGHT_TRY(schedule, offloaded(std::move(schedule), setup, sources));
    SharedHow how{.samplesOfCosts = samplesOf(setup)};
    if (const auto& layers = setup.stageLayers; !layers.empty())
        how.layersOf = [&layers](int stages) -> Result<std::vector<int>> {
            if (layers.size() == static_cast<std::size_t>(stages)) return layers;
            return fail(ErrorCode::Usage,
                        fmt::format("--stage-layers: {} numbers for {} stages", layers.size(), stages),
                        "give one for each stage");
        };
    how.ofMicrobatches = ofMicrobatches(name, setup, sources, [&](const Setup& other) -> Result<Schedule> {
        auto one = readSchedule(name, other, sources, costs);
        if (one)
            if (auto valid = validate(*one).toResult(); !valid)
                return tl::unexpected(std::move(valid.error()).with(name));
        return one;
    });
    return shareState(schedule, setup, how);
}

Result<ReplicaLists> trainedLists(const Schedule& chosen, const std::string& name, const Setup& setup,
                                  const SetupSources& sources,
                                  const std::function<Result<std::vector<int>>(int stages)>& layersOf)
{
    STAGEWRIGHT_TRY(auto schedule, recomputed(chosen, setup, sources));
    Setup planned = setup; // a cap is planned for with costs in units: nothing is measured yet
    planned.copies.clear();
    if (planned.costs.empty()) planned.costs = "COPY=0.5";
    STAGEWRIGHT_TRY(schedule, offloaded(std::move(schedule), planned, sources));
    return shareState(schedule, setup,
                      {.by = SharedBy::Training,
                       .layersOf = layersOf,
                       .ofMicrobatches = ofMicrobatches(name, setup, sources, [&](const Setup& other) {
                           const auto one = chooseSchedule(name, other, sources);
                           return one ? Result<Schedule>((*one)->given()) : tl::unexpected(one.error());
                       })});
}

Result<CostModel> costsOf(const ReplicaLists& state, const Schedule& lists, const Setup& setup,
                          const SetupSources& sources)
{
    auto costs = chooseCosts(lists, setup, sources);
    if (costs) shareCosts(*costs, state);
    return costs;
}

namespace {

// The order that ranks find while they run.
Result<Schedule> ordered(const ReplicaLists& state, const Setup& setup, const SetupSources& sources)
{
    if (setup.order.empty()) return state.schedule;
    STAGEWRIGHT_TRY(const auto order, parseReadyOrder(setup.order));
    if (order.by == ReadyOrder::By::List) return state.schedule;
    STAGEWRIGHT_CHECK(validate(state.schedule).toResult());
    SetupSources quiet = sources; // the costs are chosen again for the new order
    quiet.note = nullptr;
    STAGEWRIGHT_TRY(const auto costs, costsOf(state, state.schedule, setup, quiet));
    STAGEWRIGHT_TRY(auto found, orderByReadiness(state.schedule, costs, order));
    found.name = fmt::format("{} order={}", state.schedule.name, toText(order));
    return found;
}

// The gaps of the lists hold work that can wait; of the cycle's steps one is shown.
Result<std::optional<FilledCycle>> filled(ReplicaLists& state, const Setup& setup, const SetupSources& sources)
{
    if (setup.fill.empty()) return std::optional<FilledCycle>();
    STAGEWRIGHT_TRY(const auto rule, parseFill(setup.fill));
    if (!rule.any) return std::optional<FilledCycle>();
    STAGEWRIGHT_CHECK(validate(state.schedule).toResult());
    SetupSources quiet = sources; // the costs are chosen again for the new lists
    quiet.note = nullptr;
    STAGEWRIGHT_TRY(const auto costs, costsOf(state, state.schedule, setup, quiet));
    auto cycle = fillSchedule(state.schedule, costs, rule);
    if (!cycle) return tl::unexpected(std::move(cycle.error()).with("--fill"));
    if (rule.step > cycle->steps)
        return fail(ErrorCode::Usage, fmt::format("--fill: step {} of a cycle of {}", rule.step, cycle->steps),
                    "leave step out, or give a smaller one");
    state.schedule = cycle->schedules[static_cast<std::size_t>(rule.step) - 1];
    return std::optional<FilledCycle>(std::move(*cycle));
}

} // namespace

Result<Prepared> prepare(const std::string& name, const Setup& setup, const SetupSources& sources)
{
    Prepared out;
    STAGEWRIGHT_TRY(out.state, simulatedLists(name, setup, sources));
    STAGEWRIGHT_TRY(out.state.schedule, ordered(out.state, setup, sources));
    STAGEWRIGHT_TRY(out.fill, filled(out.state, setup, sources));
    STAGEWRIGHT_TRY(out.lists, chooseLowering(out.state.schedule, setup, sources));
    out.validation = validate(out.lists.schedule, out.lists.channels);
    if (!out.validation.valid()) return out;
    STAGEWRIGHT_TRY(out.costs, costsOf(out.state, out.lists.schedule, setup, sources));
    if (!setup.cluster.empty() && sources.note) {
        STAGEWRIGHT_TRY(const auto own, clusterLinksOf(out.lists.schedule, setup, sources));
        sources.tell(own.words);
    }
    return out;
}

} // namespace stagewright
