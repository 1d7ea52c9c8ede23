// --costs, --costs-from, --comm and --link as a cost model.
#include "app/cli/options/cost_options.h"

#include "app/cli/options/options.h"

#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "app/cli/option_set.h"
#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/costs/split_sources.h"
#include "engine/workload/configured_model.h"
#include "schedules/base/text.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/layer_costs.h"
#include "schedules/text/cost_json.h"
#include "traces/fit/fit_costs.h"

namespace stagewright {

namespace {

struct GivenUnits : CostModel::UnitCosts {
    double gather = 0; // UNSHARD
    double reduce = 0; // REDUCE_GRAD
};

Result<GivenUnits> parseUnitCosts(const std::string& text)
{
    GivenUnits costs;
    for (const std::string_view part : split(text, ",")) {
        const auto [key, number] = keyValueOf(part);
        double value = 0;
        if (!number || !readNumber(*number, value) || value < 0 || value > 1e6)
            return fail(ErrorCode::Usage, fmt::format("--costs: '{}' is not a cost", part),
                        "write F=1,I=1,W=1 with numbers of at least 0, or name a .json file");
        if (key == "F")
            costs.forward = value;
        else if (key == "I")
            costs.inputGrad = value;
        else if (key == "W")
            costs.weightGrad = value;
        else if (key == "B")
            costs.backward = value;
        else if (key == "OPT")
            costs.optimizer = value;
        else if (key == "UNSHARD")
            costs.gather = value;
        else if (key == "REDUCE_GRAD")
            costs.reduce = value;
        else
            return fail(ErrorCode::Usage, fmt::format("--costs: there is no kind '{}'", key),
                        "kinds are F (forward), I (input gradient), W (weight gradient), B (full backward), OPT "
                        "(optimizer), UNSHARD and REDUCE_GRAD (of replicas)");
    }
    return costs;
}

// Measured costs have the kinds of their own schedule. A full backward is I then W (if only B is known: completeSplit).
// A recomputation costs as much as its forward.
Result<void> completeKinds(const Schedule& schedule, CostModel& costs, const std::string& origin)
{
    // cut otherwise
    if (const auto starts = sliceStartsOf(schedule); costs.sliceStarts.size() != starts.size())
        costs.sliceStarts = starts;
    if (costs.stages() != schedule.stages)
        return fail(ErrorCode::Usage,
                    fmt::format("the costs of {} are for {} stages, but {} has {}", origin, costs.stages(),
                                schedule.name, schedule.stages),
                    "take costs from a run with the same number of stages, or give --costs F=…,I=…,W=…");
    completeWhole(costs, schedule.ranks);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const int r = static_cast<int>(rank);
        for (const Op& op : schedule.order[rank]) {
            if (isDelay(op.kind) || costs.duration(op.kind, op.stage, r) > 0) continue;
            const Nanos forward = costs.forward(op.stage, r);
            if (isRecompute(op.kind) && forward > 0) {
                costs.setDuration(op.kind, op.stage, r, forward);
                continue;
            }
            if (!isCompute(op.kind)) continue;
            return fail(ErrorCode::Usage,
                        fmt::format("the costs of {} have no duration of {} on rank {}", origin, toText(op), r),
                        isFullBackward(op.kind) ? "take costs from a run that has B, or I and W"
                                                : "take costs from a run that has it, such as one of zb-h1");
        }
    }
    return {};
}

std::optional<double> givenShare(const CostOptions& options)
{
    return options.inputShare >= 0 ? std::optional(options.inputShare) : std::nullopt;
}

// Where a run's costs are for other stages or layers than the schedule's: by layer, split as a recording would split
// them.
Result<void> fitStages(const Schedule& schedule, const CostOptions& options,
                       const std::optional<ConfiguredModel>& model, CostModel& costs)
{
    std::vector<int> layers = options.stageLayers;
    const bool asked = !layers.empty() && std::accumulate(layers.begin(), layers.end(), 0) == blocksOf(costs.layers);
    if (costs.layers.empty() || (costs.stages() == schedule.stages && !asked)) return {};
    if (layers.empty() && model) layers = model->layersFor(schedule.stages);
    STAGEWRIGHT_TRY(costs, costsByLayer(costs, schedule, layers));
    return {};
}

Result<CostModel> measuredCosts(const Schedule& schedule, const CostOptions& options)
{
    CostModel costs;
    std::string origin;
    if (!options.costsFrom.empty()) {
        auto stored = readRun(parseRunReference(options.costsFrom));
        if (!stored) return tl::unexpected(std::move(stored.error()).with("--costs-from"));
        origin = fmt::format("{}#{}", stored->file, stored->run.info.id);
        auto own = costsOf(stored->run);
        if (!own) return tl::unexpected(std::move(own.error()).with(origin));
        costs = std::move(*own);
        costs.origin = "fitted from " + origin;
        // of its own replicas
        if (costs.sizes.size() != static_cast<std::size_t>(schedule.replicas)) costs.sizes.clear();
        const auto model = configuredModel(stored->run.configuration);
        if (auto fits = fitStages(schedule, options, model, costs); !fits)
            return tl::unexpected(std::move(fits.error()).with(origin));
        if (schedule.splitsBackward()) {
            STAGEWRIGHT_TRY(auto file, openRunFile(stored->file));
            STAGEWRIGHT_TRY(auto sources, splitSources(file.get(), stored->run, costs));
            completeSplit(costs, schedule.ranks, sources, givenShare(options));
        }
    } else {
        auto text = options.document.empty() ? readFile(options.costs) : Result<std::string>(options.document);
        if (!text) return tl::unexpected(std::move(text.error()).with("--costs"));
        auto read = readCostsJson(*text);
        if (!read) return tl::unexpected(std::move(read.error()).with(options.costs));
        costs = std::move(*read);
        origin = options.costs;
        if (!costs.sizes.empty() && costs.sizes.size() != static_cast<std::size_t>(schedule.replicas))
            return fail(ErrorCode::Usage,
                        fmt::format("the costs of {} have microbatch_sizes of {} replicas, but {} has {}", origin,
                                    costs.sizes.size(), schedule.name, schedule.replicas),
                        "remove the key; --replica-batch gives each replica microbatches of its own size");
        if (auto fits = fitStages(schedule, options, std::nullopt, costs); !fits)
            return tl::unexpected(std::move(fits.error()).with(origin));
        if (schedule.splitsBackward()) completeSplit(costs, schedule.ranks, {}, givenShare(options));
    }
    STAGEWRIGHT_CHECK(completeKinds(schedule, costs, origin));
    return costs;
}

Result<CostModel> undisturbedCosts(const Schedule& schedule, const CostOptions& options)
{
    constexpr std::string_view analytic = "analytic:";
    const bool derived = options.costs.starts_with(analytic);
    const bool measured = derived || !options.costsFrom.empty() || options.costs.ends_with(".json");
    if (!measured) {
        GivenUnits units;
        if (!options.costs.empty()) {
            STAGEWRIGHT_TRY(units, parseUnitCosts(options.costs));
        }
        if (!options.link.empty())
            return fail(ErrorCode::Usage, "--link gives times, but the costs are in units",
                        "use --comm C, or measured costs (--costs-from FILE#RUN)");
        units.latency = options.comm > 0 ? options.comm * units.forward : 0;
        units.freedAtInput = options.freedAtInput;
        CostModel costs = CostModel::uniform(schedule, units);
        const double part = schedule.stages > 0 ? static_cast<double>(schedule.pipelineRanks()) / schedule.stages : 1;
        const auto nanos = [part](double cost) { return std::llround(cost * part * static_cast<double>(rankShare)); };
        for (int stage = 0; stage < schedule.stages; ++stage) {
            if (units.gather > 0) costs.setGather(stage, nanos(units.gather));
            if (units.reduce > 0) costs.setReduction(stage, nanos(units.reduce));
        }
        for (StageMemory& memory : costs.memory)
            memory.boundary = std::llround(options.keep * static_cast<double>(memory.activation));
        return costs;
    }
    if (options.keep > 0)
        return fail(ErrorCode::Usage, "--keep: these costs already include the size of a stage's input",
                    "use it with unit costs only");
    Result<CostModel> costs;
    if (derived) {
        auto read = parseAnalyticCosts(std::string_view(options.costs).substr(analytic.size()));
        if (!read) return tl::unexpected(std::move(read.error()).with("--costs"));
        read->layers = options.stageLayers;
        costs = analyticCosts(schedule, *read);
        if (!costs) return tl::unexpected(std::move(costs.error()).with("--costs"));
    } else {
        costs = measuredCosts(schedule, options);
        if (!costs) return costs;
    }
    if (!options.link.empty()) {
        auto link = parseLink(options.link);
        if (!link) return tl::unexpected(std::move(link.error()).with("--link"));
        costs->links = Links{*link, {}, costs->links.collectives};
    } else if (options.comm >= 0) {
        costs->links = Links{{}, {}, costs->links.collectives};
        costs->links.all.latency = std::llround(options.comm * static_cast<double>(forwardUnit(schedule, *costs)));
    }
    return costs;
}

} // namespace

int samplesOf(const CostOptions& options)
{
    constexpr std::string_view analytic = "analytic:";
    if (!options.costsFrom.empty() || options.costs.ends_with(".json")) return 0;
    if (!options.costs.starts_with(analytic)) return 1;
    const auto read = parseAnalyticCosts(std::string_view(options.costs).substr(analytic.size()));
    return !read ? 0 : read->microbatchSize > 0 ? read->microbatchSize : read->model.microbatchSize;
}

GeneratorCosts generatorCosts(const CostOptions& options)
{
    GeneratorCosts out;
    const bool measured = !options.costsFrom.empty() || options.costs.ends_with(".json");
    if (!measured && !options.costs.empty()) {
        if (auto parsed = parseUnitCosts(options.costs)) {
            out.forward = parsed->forward;
            out.inputGrad = parsed->inputGrad;
            out.weightGrad = parsed->weightGrad;
        }
    }
    out.latency = std::max(options.comm, 0.0) * out.forward;
    out.freedAtInput = options.freedAtInput;
    return out;
}

Result<CostModel> chooseCosts(const Schedule& schedule, const CostOptions& options)
{
    STAGEWRIGHT_TRY(auto perturbation, choosePerturbation(options.perturb, schedule.ranks));
    if (auto one = checkOneStep(perturbation); !one) return tl::unexpected(std::move(one.error()).with("--perturb"));
    auto costs = undisturbedCosts(schedule, options);
    if (!costs) return costs;
    const Nanos unit = forwardUnit(schedule, *costs);
    const bool byLayer =
        std::accumulate(options.stageLayers.begin(), options.stageLayers.end(), 0) == blocksOf(costs->layers);
    if (!options.stageLayers.empty() && costs->source != CostSource::Analytic && !byLayer) {
        costs = withStageLayers(schedule, *costs, options.stageLayers);
        if (!costs) return tl::unexpected(std::move(costs.error()).with("--stage-layers"));
    }
    if (perturbation.empty()) return costs;
    return perturbed(schedule, *costs, perturbation, unit, static_cast<std::uint64_t>(options.seed));
}

} // namespace stagewright
