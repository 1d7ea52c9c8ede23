#include "schedules/layout/layout.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/json_input.h"
#include "schedules/execute/simulate.h"
#include "schedules/layout/layout_links.h"
#include "schedules/library/registry.h"
#include "schedules/planner/problem.h"

namespace stagewright {

namespace {

constexpr int mostStages = 4096, mostLayers = 100'000, mostLayoutSamples = 1'000'000;

tl::unexpected<Error> notALayout(std::string what)
{
    return fail(ErrorCode::Unreadable, std::move(what),
                "write {\"ranks\": …, \"microbatches\": …, \"samples\": …, \"stages\": [{\"layers\": …, \"devices\": "
                "[…], \"tensor\": …}]} (docs/cli.md)");
}

// "full", or by layer ["full", "none", …].
std::vector<KeptActivations> keptOfStage(JsonInput& in, const JsonInput::Json& json)
{
    const int layers = in.get<int>("layers");
    if (layers < 0 || layers > mostLayers) in.wrong(fmt::format("layers is 0 to {}, not {}", mostLayers, layers));
    const auto named = [&](const std::string& name) {
        const auto kept = keptNamed(name);
        if (!kept) in.wrong(fmt::format("recompute is none, selective or full, not '{}'", name.substr(0, 40)));
        return kept.value_or(KeptActivations::All);
    };
    if (!in.problem().empty()) return {};
    const auto found = json.find("recompute");
    if (found == json.end() || found->is_string())
        return std::vector<KeptActivations>(static_cast<std::size_t>(layers),
                                            named(in.get<std::string>("recompute", std::string("none"))));
    std::vector<KeptActivations> out;
    for (const auto& name : in.all<std::string>("recompute")) out.push_back(named(name));
    if (out.size() != static_cast<std::size_t>(layers))
        in.wrong(fmt::format("recompute names {} of {} layers", out.size(), layers));
    return out;
}

// Parameters of a device, by layer of the stage whose first is this one.
std::vector<double> parametersOf(const LayoutStage& stage, const Parallelism& way, int first, const ModelPreset& model,
                                 const StepConstants& constants)
{
    std::vector<double> out;
    for (std::size_t i = 0; i < stage.layers.size(); ++i)
        out.push_back(model.layerParameters() / stage.tensor *
                      constants.measuredAt(way).keptOf(first + static_cast<int>(i)).parameters);
    return out;
}

// Schedules that turn around, such as V-shaped ones, put stages on other ranks: only where all ranks are equal.
bool isFor(const Schedule& schedule, const Layout& layout)
{
    const bool equal = std::all_of(layout.stages.begin(), layout.stages.end(), [&](const LayoutStage& one) {
        return one.tensor == layout.stages[0].tensor && one.devices.size() == layout.stages[0].devices.size();
    });
    if (!schedule.placement.hasCopies() && !equal)
        for (int stage = 0; stage < schedule.stages; ++stage)
            if (schedule.placement.rankOf(stage, 0) != stage % layout.ranks) return false;
    return schedule.ranks == layout.ranks && schedule.stages == static_cast<int>(layout.stages.size()) &&
           !schedule.placement.hasCopies() && schedule.weights == WeightRule::Synchronous &&
           sliceStartsOf(schedule).empty();
}

LayoutStep stepOfSchedule(const Schedule& schedule, const SimResult& result, const CostModel& costs,
                          const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                          const StepConstants& constants)
{
    LayoutStep out;
    out.schedule = schedule.name;
    out.pipeline = static_cast<double>(figuresOf(schedule, result).makespan) / 1e9;
    out.ranks.resize(static_cast<std::size_t>(layout.ranks));
    std::vector<double> parameters(out.ranks.size(), 0), reduce(out.ranks.size(), 0);
    const int last = schedule.stages - 1;
    const bool together = schedule.placement.rankOf(0, 0) == schedule.placement.rankOf(last, 0);
    int layers = 0; // of the stages before
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const auto stage = static_cast<int>(k);
        const int rank = schedule.placement.rankOf(stage, 0);
        const Parallelism way = wayOf(layout, stage);
        // a tied head is with the embedding where both are on one rank
        const bool head = stage == last && !(together && last > 0 && model.embeddings == Embeddings::Tied);
        const double ends = model.embeddingParameters(stage == 0, head) / way.tensor;
        const auto each = parametersOf(layout.stages[k], way, layers, model, constants);
        layers += static_cast<int>(each.size());
        const double own = std::accumulate(each.begin(), each.end(), ends);
        const double largest = each.empty() ? 0 : *std::max_element(each.begin(), each.end());
        parameters[static_cast<std::size_t>(rank)] += own;
        reduce[static_cast<std::size_t>(rank)] += reduceSeconds(own, cluster, way, constants);
        out.ranks[static_cast<std::size_t>(rank)].state +=
            stateBytes(way) * own + gatheredBytes(way, static_cast<double>(each.size()), largest, ends);
        if (stage == 0 && !together)
            reduce[static_cast<std::size_t>(rank)] += tiedSeconds(model, cluster, way, constants);
    }
    out.reduce = *std::max_element(reduce.begin(), reduce.end());
    out.optimizer = optimizerSeconds(*std::max_element(parameters.begin(), parameters.end()), cluster, constants);
    out.seconds = out.pipeline + out.reduce + out.optimizer;
    const auto peaks = activationPeaks(schedule, costs);
    out.fits = true;
    for (std::size_t rank = 0; rank < out.ranks.size(); ++rank) {
        out.ranks[rank].activations = rank < peaks.size() ? static_cast<double>(peaks[rank]) : 0;
        out.fits = out.fits && out.ranks[rank].state + out.ranks[rank].activations <= cluster.memory;
    }
    return out;
}

} // namespace

int Layout::layers() const
{
    const auto all = layersByStage();
    return std::accumulate(all.begin(), all.end(), 0);
}

std::vector<int> Layout::layersByStage() const
{
    std::vector<int> out;
    for (const LayoutStage& stage : stages) out.push_back(static_cast<int>(stage.layers.size()));
    return out;
}

Layout layoutOf(const ModelPreset& model, const Parallelism& way)
{
    const int stages = way.pipeline * way.chunks, width = way.tensor * way.replicas;
    Layout out{way.pipeline, way.microbatches, way.samples * way.replicas, {}};
    for (int k = 0; k < stages; ++k) {
        LayoutStage stage;
        stage.layers.assign(static_cast<std::size_t>(model.layers / stages), way.kept);
        stage.devices.resize(static_cast<std::size_t>(width));
        std::iota(stage.devices.begin(), stage.devices.end(), k % way.pipeline * width);
        stage.tensor = way.tensor;
        stage.zero = way.zero;
        stage.sequence = way.sequence;
        out.stages.push_back(std::move(stage));
    }
    return out;
}

Parallelism wayOf(const Layout& layout, int stage)
{
    const LayoutStage& one = layout.stages[static_cast<std::size_t>(stage)];
    Parallelism out;
    out.tensor = one.tensor;
    out.pipeline = layout.ranks;
    out.chunks = layout.chunks();
    out.replicas = one.replicas();
    out.samples = layout.samples / out.replicas;
    out.microbatches = layout.microbatches;
    out.zero = one.zero;
    out.sequence = one.sequence;
    out.kept = one.layers.empty() ? KeptActivations::All : one.layers.front();
    return out;
}

Result<Layout> layoutOfPlan(const InterOperatorProblem& problem, const InterOperatorPlan& plan)
{
    if (plan.devices.size() != plan.stages.size())
        return fail(ErrorCode::Usage, "the submeshes of the plan's stages do not fit the hosts side by side",
                    "choose submeshes that divide a host");
    Layout out;
    out.ranks = static_cast<int>(plan.stages.size());
    out.microbatches = static_cast<int>(problem.microbatches);
    for (std::size_t k = 0; k < plan.stages.size(); ++k) {
        const StageOption& one = plan.stages[k];
        LayoutStage& stage = out.stages.emplace_back();
        stage.layers.assign(static_cast<std::size_t>(one.last - one.first + 1), KeptActivations::All);
        stage.devices = plan.devices[k];
        const int each = std::min(problem.submeshes[static_cast<std::size_t>(one.submesh)].perHost,
                                  static_cast<int>(stage.devices.size()));
        for (int t = 1; t <= std::min(8, each); ++t)
            if (each % t == 0) stage.tensor = t;
        const auto samples = std::lcm<std::int64_t, std::int64_t>(out.samples, stage.replicas());
        if (samples > mostLayoutSamples)
            return fail(ErrorCode::Usage, "the stages' replicas have no common number of samples up to a million",
                        "choose submeshes that divide each other");
        out.samples = static_cast<int>(samples);
    }
    return out;
}

Result<std::optional<SolvedLayout>> layoutOfProblem(std::string_view text, const std::string& file,
                                                    const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto problem, interOperatorProblem(text));
    STAGEWRIGHT_TRY(const auto plan, planInterOperator(problem, progress));
    if (!plan) return std::nullopt;
    STAGEWRIGHT_TRY(auto layout, layoutOfPlan(problem, *plan));
    return SolvedLayout{std::move(layout),
                        fmt::format("stagewright choose --layout {} --model layers={},hidden=…,heads=… --cluster "
                                    "{}@DEVICE:per-host={}",
                                    file, problem.layers, problem.hosts * problem.perHost, problem.perHost)};
}

std::string toJson(const Layout& layout)
{
    using Json = JsonInput::Json;
    Json stages = Json::array();
    for (const LayoutStage& stage : layout.stages) {
        Json one{{"layers", stage.layers.size()}, {"devices", stage.devices}, {"tensor", stage.tensor}};
        const bool same =
            std::adjacent_find(stage.layers.begin(), stage.layers.end(), std::not_equal_to<>()) == stage.layers.end();
        if (same)
            one["recompute"] = toText(stage.layers.empty() ? KeptActivations::All : stage.layers.front());
        else
            for (const KeptActivations kept : stage.layers) one["recompute"].push_back(toText(kept));
        one["zero"] = stage.zero;
        one["sequence_parallel"] = stage.sequence;
        stages.push_back(std::move(one));
    }
    return Json{{"ranks", layout.ranks},
                {"microbatches", layout.microbatches},
                {"samples", layout.samples},
                {"stages", stages}}
               .dump(2) +
           "\n";
}

Result<Layout> parseLayout(std::string_view text)
{
    const auto json = readForeignJson<JsonInput::Json>(text);
    if (!json.is_object()) return notALayout("it is not a JSON object");
    JsonInput in(json);
    Layout out{in.get<int>("ranks"), in.get<int>("microbatches"), in.get<int>("samples"), {}};
    for (const auto& [key, value] : {std::pair{"ranks", out.ranks}, std::pair{"microbatches", out.microbatches},
                                     std::pair{"samples", out.samples}})
        if (value < 1 || value > 1'000'000) in.wrong(fmt::format("{} is 1 to 1000000, not {}", key, value));
    const auto& stages = in.list("stages");
    if (!in.problem().empty()) return notALayout(in.problem());
    if (stages.empty() || stages.size() > mostStages || stages.size() % static_cast<std::size_t>(out.ranks) != 0)
        return notALayout(fmt::format("{} stages for {} ranks: a multiple, and {} at most, is expected", stages.size(),
                                      out.ranks, mostStages));
    std::map<int, int> rankOf; // by device
    for (const auto& json : stages) {
        const std::size_t k = out.stages.size();
        if (!json.is_object()) return notALayout(fmt::format("stage {} is not an object", k));
        JsonInput of(json);
        LayoutStage stage;
        stage.layers = keptOfStage(of, json);
        stage.devices = of.all<int>("devices");
        stage.tensor = of.get<int>("tensor", 1);
        stage.zero = of.get<int>("zero", 1);
        stage.sequence = of.get<bool>("sequence_parallel", false);
        const auto count = static_cast<int>(std::min<std::size_t>(stage.devices.size(), 1'000'000));
        if (stage.tensor < 1 || count < stage.tensor || count % stage.tensor != 0)
            of.wrong(fmt::format("{} devices are not whole groups of {}", count, stage.tensor));
        else if (out.samples % (count / stage.tensor) != 0)
            of.wrong(fmt::format("{} samples can't be divided among {} replicas", out.samples, count / stage.tensor));
        if (stage.zero < 0 || stage.zero > 3) of.wrong(fmt::format("zero is 0 to 3, not {}", stage.zero));
        const auto rank = static_cast<int>(k) % out.ranks;
        for (const int device : stage.devices)
            if (device < 0 || rankOf.emplace(device, rank).first->second != rank)
                of.wrong(fmt::format("device {} is {}", device, device < 0 ? "below 0" : "of another rank, too"));
        if (std::set(stage.devices.begin(), stage.devices.end()).size() != stage.devices.size())
            of.wrong("a device is in it twice");
        if (!of.problem().empty()) return notALayout(fmt::format("stage {}: {}", k, of.problem()));
        out.stages.push_back(std::move(stage));
    }
    return out;
}

Result<void> checkLayout(const Layout& layout, const ModelPreset& model, const Cluster& cluster)
{
    if (layout.layers() != model.layers)
        return fail(ErrorCode::Usage,
                    fmt::format("the layout has {} layers, the model {}", layout.layers(), model.layers),
                    "change one of them");
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const LayoutStage& stage = layout.stages[k];
        const int last = *std::max_element(stage.devices.begin(), stage.devices.end());
        if (last >= cluster.devices)
            return fail(ErrorCode::Usage, fmt::format("stage {}: device {} of {} (from 0)", k, last, cluster.devices),
                        "choose a larger cluster");
        if (model.heads % stage.tensor != 0 || model.hidden % stage.tensor != 0)
            return fail(ErrorCode::Usage,
                        fmt::format("stage {}: {} devices can't share {} heads of width {}", k, stage.tensor,
                                    model.heads, model.hidden / model.heads),
                        "choose a tensor degree that divides both");
    }
    return {};
}

Layout withLayers(Layout layout, const std::vector<int>& layers)
{
    for (std::size_t k = 0; k < layout.stages.size(); ++k) {
        const KeptActivations kept = wayOf(layout, static_cast<int>(k)).kept;
        layout.stages[k].layers.assign(static_cast<std::size_t>(layers[k]), kept);
    }
    return layout;
}

std::vector<int> titanLayers(int layers, const TitanStages& stages)
{
    if (stages.layersPerStage < 1 || stages.firstLess < 0 || stages.lastLess < 0 || layers < 1) return {};
    const int all = layers + stages.firstLess + stages.lastLess;
    const int count = (all + stages.layersPerStage - 1) / stages.layersPerStage;
    const int each = all / count, more = all % count;
    if (count > 1 && (stages.firstLess > each || stages.lastLess > each)) return {};
    if (count == 1) return {layers};
    std::vector<int> out(static_cast<std::size_t>(count), each);
    for (int k = 0; k < more; ++k) ++out[static_cast<std::size_t>(k)];
    out.front() -= stages.firstLess;
    out.back() -= stages.lastLess;
    return out;
}

std::optional<TitanStages> titanStages(const std::vector<int>& layers)
{
    if (layers.empty()) return std::nullopt;
    const int all = std::accumulate(layers.begin(), layers.end(), 0);
    const int most = *std::max_element(layers.begin(), layers.end());
    const auto count = static_cast<int>(layers.size());
    std::optional<TitanStages> best;
    const auto distance = [](const TitanStages& one) {
        return std::abs(one.firstLess - 1) + std::abs(one.lastLess - 1); // 1 is its default
    };
    for (int first = 0; first <= most; ++first)
        for (int last = 0; last <= most; ++last) {
            const TitanStages one{(all + first + last + count - 1) / count, first, last};
            if (titanLayers(all, one) == layers && (!best || distance(one) < distance(*best))) best = one;
        }
    return best;
}

CostModel layoutCosts(const Schedule& schedule, const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                      const StepConstants& constants)
{
    const auto nanos = [](double seconds) { return std::max<Nanos>(1, std::llround(seconds * 1e9)); };
    CostModel out(schedule.stages, CostSource::Analytic);
    int number = 0; // of a layer
    for (int k = 0; k < schedule.stages; ++k) {
        Parallelism way = wayOf(layout, k);
        const LayoutStage& stage = layout.stages[static_cast<std::size_t>(k)];
        const MeasuredRatios& measured = constants.measuredAt(way);
        double forward = measured.perOp.forward, input = measured.perOp.input, weight = measured.perOp.weight, kept = 0;
        const auto add = [&](const PassRatios& ratios, double seconds) {
            forward += ratios.forward * seconds;
            input += ratios.input * seconds;
            weight += ratios.weight * seconds;
        };
        const auto addLayers = [&](int number, KeptActivations what, double count) {
            way.kept = what;
            const LayerFigures layer = layerFigures(model, cluster, way, constants, number);
            add({layer.forward, layer.input, layer.weight}, count);
            kept += count * layer.kept;
        };
        if (k == 0) add(measured.embedding, static_cast<double>(way.samples) / way.tensor);
        if (k + 1 == schedule.stages) add(measured.head, headSeconds(model, cluster, way, constants));
        // shared weights of embedding and head are gathered as those of layers are
        const double ends = model.embeddingParameters(k == 0, k + 1 == schedule.stages) / way.tensor;
        const double gather = gatherSeconds(ends, cluster, way, constants);
        add({1, 2, 0}, gather);
        if (measured.layers.empty())
            for (const KeptActivations each :
                 {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs}) {
                const auto count = std::count(stage.layers.begin(), stage.layers.end(), each);
                if (count > 0) addLayers(-1, each, static_cast<double>(count));
            }
        else
            for (const KeptActivations each : stage.layers) addLayers(number++, each, 1);
        out.setPasses(k, nanos(forward), nanos(input), nanos(weight));
        StageMemory& memory = out.memory[static_cast<std::size_t>(k)];
        memory.activation = std::llround(kept);
        memory.boundary = std::llround(messageBytes(model, way));
    }
    out.links = layoutLinks(schedule, layout, model, cluster, constants);
    out.origin = fmt::format("{} on {}, {}", model.name, toText(cluster), toText(wayOf(layout, 0)));
    return out;
}

Result<LayoutStep> stepUnder(std::string_view name, const Layout& layout, const ModelPreset& model,
                             const Cluster& cluster, const StepConstants& constants)
{
    STAGEWRIGHT_TRY(const auto schedule,
                    makeSchedule(std::string(name), {layout.ranks, layout.microbatches, layout.chunks()}));
    if (!isFor(schedule, layout))
        return fail(ErrorCode::Usage,
                    fmt::format("{} has {} stages on {} ranks, the layout {} on {}", name, schedule.stages,
                                schedule.ranks, layout.stages.size(), layout.ranks),
                    "choose a schedule with as many chunks, such as interleaved-1f1b");
    const CostModel costs = layoutCosts(schedule, layout, model, cluster, constants);
    STAGEWRIGHT_TRY(const auto result, simulate(schedule, costs));
    LayoutStep out = stepOfSchedule(schedule, result, costs, layout, model, cluster, constants);
    out.schedule = name;
    return out;
}

std::optional<LayoutStep> bestStep(const Layout& layout, const ModelPreset& model, const Cluster& cluster,
                                   const StepConstants& constants, const std::stop_token& stop)
{
    std::optional<LayoutStep> best;
    for (const ScheduleInfo& info : allSchedules()) {
        if (stop.stop_requested()) return std::nullopt;
        if (info.searches || (info.fixedChunks > 0 && info.fixedChunks != layout.chunks())) continue;
        auto step = stepUnder(info.name, layout, model, cluster, constants);
        if (!step) continue;
        if (!best || (step->fits && !best->fits) || (step->fits == best->fits && step->seconds < best->seconds))
            best = std::move(*step);
    }
    return best;
}

} // namespace stagewright
