#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/cluster_option.h"
#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/layout/calibration.h"
#include "schedules/layout/choose.h"
#include "schedules/layout/layer_table.h"
#include "schedules/layout/layout.h"
#include "schedules/layout/layout_links.h"
#include "schedules/library/registry.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/megatron.h"
#include "traces/fit/measured_layers.h"
#include "traces/fit/measured_step.h"
#include "traces/format/atomic_file.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

constexpr const char* usualModel = "gpt3-175b";

struct LayoutChoice {
    std::string model; // empty: the run's of layersFrom, else usualModel
    std::string cluster = "64@a100";
    int samples = 64;
    std::string zero = "1";
    std::string pinned;
    int top = 10;
    int simulated = 50;
    std::string constants, table, output;
    std::string layout, savedLayout;
    std::string layersFrom; // FILE#RUN
    std::string layers;     // a table's file
};

// What of a question's layers a run measured, in words; empty: nothing.
struct AskedLayout {
    LayoutQuestion question;
    std::string measured;
};

Result<AskedLayout> questionOf(const LayoutChoice& options)
{
    LayoutQuestion question;
    std::optional<StoredRun> stored;
    if (!options.layersFrom.empty()) {
        STAGEWRIGHT_TRY(stored, readRun(parseRunReference(options.layersFrom)));
    }
    std::optional<LayerTable> layers;
    if (!options.layers.empty()) {
        if (!options.table.empty())
            return fail(ErrorCode::Usage, "--calibrate fits the constants of formulas, not of --layers",
                        "leave one of them out");
        STAGEWRIGHT_TRY(const auto text, readFile(options.layers));
        auto read = parseLayerTable(text);
        if (!read) return tl::unexpected(std::move(read.error()).with(options.layers));
        layers = std::move(*read);
        if (options.model.empty() && layers->model.empty())
            return fail(ErrorCode::Usage, fmt::format("{}: it does not say its model", options.layers),
                        "add \"model\": \"layers=…,hidden=…,heads=…\" to it, or give --model");
    }
    auto model = !options.model.empty() ? parseModelShape(options.model)
                 : layers               ? parseModelShape(layers->model)
                 : stored               ? trainedModelOf(stored->run)
                                        : parseModelShape(usualModel);
    if (!model)
        return tl::unexpected(
            std::move(model.error()).with(options.model.empty() && layers ? options.layers + ": model" : "--model"));
    STAGEWRIGHT_TRY(question.cluster, clusterOf(options.cluster));
    question.model = *model;
    question.samples = options.samples;
    question.zero = options.zero == "any" ? -1 : wholeOf<int>(options.zero).value_or(1);
    if (auto pinned = pin(options.pinned, question); !pinned)
        return tl::unexpected(std::move(pinned.error()).with("--pin"));
    if (!options.constants.empty()) {
        STAGEWRIGHT_TRY(const auto text, readFile(options.constants));
        auto constants = parseStepConstants(text);
        if (!constants) return tl::unexpected(std::move(constants.error()).with(options.constants));
        question.constants = *constants;
    }
    if (layers) {
        auto made = constantsOf(*layers, question.model, question.cluster, question.constants);
        if (!made) return tl::unexpected(std::move(made.error()).with(options.layers));
        question.constants = std::move(made->constants);
        return AskedLayout{question, fmt::format("of {}: {}", options.layers, made->words)};
    }
    if (!stored) return AskedLayout{question, {}};
    auto measured = measuredConstants(stored->run, question.model, question.cluster, question.constants);
    if (!measured) return tl::unexpected(std::move(measured.error()).with("--layers-from"));
    question.constants = std::move(measured->constants);
    return AskedLayout{question, std::move(measured->words)};
}

std::string secondsText(double seconds) { return formatDuration(static_cast<Nanos>(std::llround(seconds * 1e9))); }
std::string sizeText(double bytes) { return formatBytes(std::llround(bytes)); }

Json jsonOf(const LayoutCandidate& one, const std::optional<LayoutStep>& simulated, const std::string& why)
{
    const Parallelism& way = one.way;
    return {{"tensor", way.tensor},
            {"pipeline", way.pipeline},
            {"chunks", way.chunks},
            {"replicas", way.replicas},
            {"microbatch_size", way.samples},
            {"microbatches", way.microbatches},
            {"recompute", std::string(toText(way.kept))},
            {"sequence_parallel", way.sequence},
            {"zero", way.zero},
            {"step_s", one.step.sum()},
            {"parts_s",
             {{"compute", one.step.compute},
              {"recompute", one.step.recompute},
              {"bubble", one.step.bubble},
              {"tensor", one.step.tensor},
              {"messages", one.step.messages},
              {"data", one.step.data},
              {"optimizer", one.step.optimizer}}},
            {"state_bytes", one.memory.state},
            {"activation_bytes", one.memory.activations},
            {"embedding_bytes", one.memory.embedding},
            {"gathered_bytes", one.memory.gathered},
            {"fits", one.fits},
            {"schedule", simulated ? Json(simulated->schedule) : Json(nullptr)},
            {"simulated_s", simulated ? Json(simulated->seconds) : Json(nullptr)},
            {"why", why.empty() ? Json(nullptr) : Json(why)}};
}

std::string tableOf(const LayoutQuestion& question, const std::vector<LayoutCandidate>& shown,
                    const std::vector<std::optional<LayoutStep>>& simulated, bool colour)
{
    const auto right = Table::Align::Right;
    Table table({{"way"},
                 {"step", right},
                 {"compute", right},
                 {"recompute", right},
                 {"bubble", right},
                 {"tensor", right},
                 {"messages", right},
                 {"data", right},
                 {"optimizer", right},
                 {"memory", right},
                 {"best schedule"},
                 {"its step", right},
                 {"why not the first"}});
    for (std::size_t i = 0; i < shown.size(); ++i) {
        const LayoutCandidate& one = shown[i];
        const StepParts& step = one.step;
        std::vector<std::string> cells{toText(question, one.way), secondsText(step.sum())};
        for (const double part :
             {step.compute, step.recompute, step.bubble, step.tensor, step.messages, step.data, step.optimizer})
            cells.push_back(part > 0 ? formatPercent(part / step.sum()) : "·");
        cells.push_back(sizeText(one.memory.sum()));
        cells.push_back(simulated[i] ? simulated[i]->schedule : "–");
        cells.push_back(simulated[i] ? secondsText(simulated[i]->seconds) : "–");
        cells.push_back(one.fits && shown.front().fits ? whyItLoses(one, shown.front()) : "");
        table.add(std::move(cells), i == 0 && one.fits ? Tint::Bold : Tint::None);
    }
    return table.text(colour);
}

// What is missing where nothing fits, of the way that needs least.
std::string missing(const LayoutCandidate& least, double cap)
{
    return fmt::format("nothing fits {}: {} needs {} at least, {}", sizeText(cap), toText(least.way),
                       sizeText(least.memory.sum()), toText(least.memory));
}

// Rows of a table, or the runs of a file that are such rows.
Result<std::vector<MeasuredStep>> measuredSteps(const LayoutChoice& options, Session& session)
{
    if (!options.table.ends_with(".stagewright")) {
        STAGEWRIGHT_TRY(const auto text, readFile(options.table));
        return parseMeasuredSteps(text);
    }
    STAGEWRIGHT_TRY(const auto file, RunFile::open(options.table, OpenMode::Read, session.stop()));
    STAGEWRIGHT_TRY(const auto infos, file->runs());
    std::vector<MeasuredStep> out;
    std::optional<Error> left;
    for (const RunInfo& info : infos) {
        STAGEWRIGHT_TRY(const auto run, file->read(info.id));
        auto row = measuredStepOf(run);
        if (row) {
            out.push_back(std::move(*row));
            continue;
        }
        session.note("left out: " + row.error().message);
        left = std::move(row.error());
    }
    if (out.empty())
        return left ? Result<std::vector<MeasuredStep>>(tl::unexpected(std::move(*left)))
                    : fail(ErrorCode::Usage, "it has no runs", "record some");
    return out;
}

Result<int> runCalibration(const LayoutChoice& options, const LayoutQuestion& question, Session& session)
{
    auto rows = measuredSteps(options, session);
    if (!rows) return tl::unexpected(std::move(rows.error()).with(options.table));
    // With constants that are given the rows only test them.
    STAGEWRIGHT_TRY(const auto fitted,
                    options.constants.empty()
                        ? calibrate(*rows, question.cluster, session.reporter("fit"))
                        : Result<Calibration>(residualsOf(*rows, question.cluster, question.constants)));
    session.progress().clear();
    const std::string constants = toJson(fitted.constants);
    if (!options.output.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.output, constants));
    Json residuals = Json::array();
    const auto right = Table::Align::Right;
    Table table({{"way"}, {"measured", right}, {"predicted", right}, {"error", right}});
    for (std::size_t i = 0; i < rows->size(); ++i) {
        const MeasuredStep& row = (*rows)[i];
        const double predicted = row.seconds * (1 + fitted.errors[i]);
        residuals.push_back({{"measured_s", row.seconds}, {"predicted_s", predicted}, {"error", fitted.errors[i]}});
        table.add({toText(row.way), secondsText(row.seconds), secondsText(predicted), formatChange(fitted.errors[i])});
    }
    Json named = Json::object();
    for (const auto& [key, value] : namedConstants(fitted.constants)) named[key] = Json(value);
    if (session.json)
        session.answer({{"constants", std::move(named)},
                        {"fitted", fitted.fitted},
                        {"mean_error", fitted.mean},
                        {"largest_error", fitted.largest},
                        {"rows", std::move(residuals)}});
    session.out(table.text(session.colourOut()));
    session.out(fmt::format("\n{}mean error {}, largest {}, of {} measured steps\n", constants,
                            formatPercent(fitted.mean), formatPercent(fitted.largest), rows->size()));
    if (fitted.fitted > 0 && fitted.fitted < namedConstants(fitted.constants).size())
        session.out(
            fmt::format("fitted: the first {}, as many as there are steps; the others are those of the A100's table\n",
                        fitted.fitted));
    if (!options.output.empty())
        session.note(fmt::format("use them: stagewright choose --constants {}", options.output));
    return ExitDone;
}

Result<void> saveLayout(const LayoutChoice& options, const Layout& layout, Session& session)
{
    if (options.savedLayout.empty()) return {};
    STAGEWRIGHT_CHECK(writeFileAtomically(options.savedLayout, toJson(layout)));
    session.note(fmt::format("its layout: {}; change it, and see what it takes: choose --layout {}",
                             options.savedLayout, options.savedLayout));
    return {};
}

// A layout from a file, or Megatron-LM's text with what is pinned.
Result<Layout> givenLayout(const LayoutChoice& options, const LayoutQuestion& question)
{
    const auto named = [](auto&& error, std::string_view what) {
        return tl::unexpected(std::move(error).with(std::string(what)));
    };
    if (options.layout.ends_with(".json")) {
        STAGEWRIGHT_TRY(const auto text, readFile(options.layout));
        auto layout = parseLayout(text);
        if (!layout) return named(std::move(layout.error()), options.layout);
        return layout;
    }
    Parallelism way;
    way.tensor = std::max(1, question.tensor);
    way.pipeline = std::max(1, question.pipeline);
    way.samples = std::max(1, question.microbatch);
    way.zero = std::max(0, question.zero);
    way.kept = question.kept.value_or(KeptActivations::All);
    way.sequence = way.kept == KeptActivations::Selective;
    way.replicas =
        question.replicas > 0 ? question.replicas : std::max(1, question.cluster.devices / (way.tensor * way.pipeline));
    way.microbatches = std::max(1, question.samples / (way.samples * way.replicas));
    auto megatron = readMegatronLayout(options.layout, way.pipeline);
    if (!megatron) return named(std::move(megatron.error()), "--layout");
    way.chunks = megatron->chunks();
    return withLayers(layoutOf(question.model, way), megatron->layers());
}

// The best of the first ways with equal stages, for as many samples on the same cluster. None: none fits.
std::optional<std::pair<Parallelism, LayoutStep>> bestOfEqualStages(LayoutQuestion question, const Layout& layout,
                                                                    Session& session)
{
    constexpr std::size_t simulatedWays = 3;
    question.samples = layout.samples * layout.microbatches;
    question.tensor = question.pipeline = question.chunks = question.replicas = question.microbatch = 0;
    question.kept.reset();
    const auto answer = chooseLayout(question);
    std::optional<std::pair<Parallelism, LayoutStep>> out;
    if (!answer) return out;
    const auto ways = answer->good().first(std::min(simulatedWays, answer->fitting));
    const auto steps = simulateWays(question, ways, session.reporter("ways"));
    session.progress().clear();
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i] && (!out || steps[i]->seconds < out->second.seconds)) out = std::pair(ways[i].way, *steps[i]);
    return out;
}

// What one layout takes, by stage and as a whole.
Result<int> runLayout(const LayoutChoice& options, const AskedLayout& asked, Session& session)
{
    const LayoutQuestion& question = asked.question;
    STAGEWRIGHT_TRY(const auto layout, givenLayout(options, question));
    auto possible = checkLayout(layout, question.model, question.cluster);
    if (!possible) return tl::unexpected(std::move(possible.error()).with("--layout"));
    const auto step = bestStep(layout, question.model, question.cluster, question.constants, session.stop());
    if (session.stop().stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
    if (!step)
        return fail(ErrorCode::Usage,
                    fmt::format("--layout: no schedule has {} stages on {} ranks and {} microbatches",
                                layout.stages.size(), layout.ranks, layout.microbatches),
                    "choose microbatches in whole groups of the ranks");
    STAGEWRIGHT_TRY(const auto schedule,
                    makeSchedule(step->schedule, {layout.ranks, layout.microbatches, layout.chunks()}));
    const CostModel costs = layoutCosts(schedule, layout, question.model, question.cluster, question.constants);
    const auto equal = bestOfEqualStages(question, layout, session);
    const auto right = Table::Align::Right;
    Table table({{"stage", right},
                 {"rank", right},
                 {"layers", right},
                 {"devices"},
                 {"t", right},
                 {"d", right},
                 {"recompute"},
                 {"F", right},
                 {"B", right}});
    Json stages = Json::array();
    for (int k = 0; k < schedule.stages; ++k) {
        const LayoutStage& stage = layout.stages[static_cast<std::size_t>(k)];
        std::string kept;
        for (const KeptActivations each : {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs})
            if (const auto count = std::count(stage.layers.begin(), stage.layers.end(), each); count > 0)
                kept += fmt::format("{}{} {}", kept.empty() ? "" : ", ", count, toText(each));
        const int rank = schedule.placement.rankOf(k, 0);
        const auto [first, last] = std::minmax_element(stage.devices.begin(), stage.devices.end());
        table.add({std::to_string(k), std::to_string(rank), std::to_string(stage.layers.size()),
                   *first == *last ? std::to_string(*first) : fmt::format("{} to {}", *first, *last),
                   std::to_string(stage.tensor), std::to_string(stage.replicas()), kept,
                   formatDuration(costs.forward(k, rank)), formatDuration(costs.backward(k, rank))});
        stages.push_back({{"stage", k},
                          {"rank", rank},
                          {"layers", static_cast<std::int64_t>(stage.layers.size())},
                          {"forward_ns", costs.forward(k, rank)},
                          {"backward_ns", costs.backward(k, rank)}});
    }
    Table memory({{"rank", right}, {"state", right}, {"activations", right}, {"of the cap", right}});
    Json ranks = Json::array();
    for (std::size_t rank = 0; rank < step->ranks.size(); ++rank) {
        const LayoutRank& one = step->ranks[rank];
        const double share = (one.state + one.activations) / question.cluster.memory;
        memory.add({std::to_string(rank), sizeText(one.state), sizeText(one.activations), formatPercent(share)},
                   share > 1 ? Tint::Bad : Tint::None);
        ranks.push_back({{"state_bytes", one.state}, {"activation_bytes", one.activations}});
    }
    const auto resharded = reshardings(layout, question.model, question.cluster, question.constants);
    Json boundaries = Json::array();
    std::string boundaryText;
    for (const Resharding& one : resharded) {
        const int from = one.back ? one.stage + 1 : one.stage, to = one.back ? one.stage : one.stage + 1;
        boundaries.push_back({{"from_stage", from},
                              {"to_stage", to},
                              {"tasks_between_hosts", one.tasks},
                              {"resharding_s", one.seconds},
                              {"bound_s", one.bound}});
        boundaryText += fmt::format("stage {} to {}: resharded in {}, {}{}\n", from, to, secondsText(one.seconds),
                                    one.tasks > 0 ? counted(one.tasks, "task") + " between hosts" : "within hosts",
                                    one.seconds > one.bound * (1 + 1e-9) ? ", bound " + secondsText(one.bound) : "");
    }
    const auto layers = layout.layersByStage();
    const auto titan = titanStages(layers);
    const std::string megatron = megatronLayout(layers);
    const std::string titanText =
        titan ? fmt::format("pipeline_parallel_layers_per_stage = {}, pipeline_parallel_first_stage_less_layers = {}, "
                            "pipeline_parallel_last_stage_less_layers = {}",
                            titan->layersPerStage, titan->firstLess, titan->lastLess)
              : "these layers need module_fqns_per_model_part";
    std::string whyNot;
    const std::string training = trainingCommand(question.model, layout, step->schedule, whyNot);
    if (session.json)
        session.answer({{"layout", ownJson(toJson(layout))},
                        {"megatron", megatron},
                        {"torchtitan", titan ? Json{{"layers_per_stage", titan->layersPerStage},
                                                    {"first_stage_less_layers", titan->firstLess},
                                                    {"last_stage_less_layers", titan->lastLess}}
                                             : Json(nullptr)},
                        {"measured", asked.measured.empty() ? Json(nullptr) : Json(asked.measured)},
                        {"train", whyNot.empty() ? Json(training) : Json(nullptr)},
                        {"why_not_trained", whyNot.empty() ? Json(nullptr) : Json(whyNot)},
                        {"schedule", step->schedule},
                        {"step_s", step->seconds},
                        {"fits", step->fits},
                        {"equal_stages", equal ? Json{{"way", toText(equal->first)},
                                                      {"schedule", equal->second.schedule},
                                                      {"step_s", equal->second.seconds}}
                                               : Json(nullptr)},
                        {"stages", std::move(stages)},
                        {"boundaries", std::move(boundaries)},
                        {"ranks", std::move(ranks)}});
    session.out(table.text(session.colourOut()) + "\n" + memory.text(session.colourOut()));
    if (!asked.measured.empty()) session.out("\nlayers: " + asked.measured + "\n");
    if (!boundaryText.empty()) session.out("\n" + boundaryText);
    session.out(fmt::format("\nsimulated with {}: {} a step, {} of it for gradients and optimizer\nMegatron-LM: "
                            "--pipeline-model-parallel-layout '{}'\nTorchTitan: {}\n",
                            step->schedule, secondsText(step->seconds), secondsText(step->reduce + step->optimizer),
                            megatron, titanText));
    if (equal)
        session.out(fmt::format("the best of equal stages, {}, with {}: {} a step\n", toText(equal->first),
                                equal->second.schedule, secondsText(equal->second.seconds)));
    STAGEWRIGHT_CHECK(saveLayout(options, layout, session));
    session.note(whyNot.empty() ? "train it here: " + training : "simulated only: " + whyNot);
    if (!options.output.empty()) {
        STAGEWRIGHT_CHECK(writeFileAtomically(options.output, writeCostsJson(costs)));
        session.note(fmt::format("simulate it: stagewright simulate -s {} -p {} -m {} --chunks {} --costs {}",
                                 step->schedule, layout.ranks, layout.microbatches, layout.chunks(), options.output));
    }
    if (step->fits) return ExitDone;
    session.unmet(fmt::format("the layout does not fit {}", sizeText(question.cluster.memory)));
    return ExitDoesNotHold;
}

Result<int> runChoose(const LayoutChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(const auto asked, questionOf(options));
    const LayoutQuestion& question = asked.question;
    if (!options.table.empty()) return runCalibration(options, question, session);
    if (!options.layout.empty()) return runLayout(options, asked, session);
    STAGEWRIGHT_TRY(const auto answer, chooseLayout(question));
    std::vector<LayoutCandidate> shown(
        answer.candidates.begin(),
        answer.candidates.begin() +
            static_cast<std::ptrdiff_t>(std::min({answer.candidates.size(), static_cast<std::size_t>(options.top),
                                                  answer.fitting > 0 ? answer.fitting : answer.candidates.size()})));
    const auto stop = session.stop();
    const std::size_t tried = std::min<std::size_t>(answer.fitting, static_cast<std::size_t>(options.simulated));
    auto simulated = simulateWays(question, answer.good().first(tried), session.reporter("ways"));
    std::optional<std::size_t> quickest;
    for (std::size_t i = 0; i < tried; ++i)
        if (simulated[i] && (!quickest || simulated[i]->seconds < simulated[*quickest]->seconds)) quickest = i;
    const auto fastest = quickest ? simulated[*quickest] : std::nullopt;
    simulated.resize(shown.size());
    session.progress().clear();
    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
    const LayoutCandidate& best = shown.front();
    const auto fewer = best.fits ? fewerDevices(question, best) : std::nullopt;
    const std::string bestName = simulated.front()     ? simulated.front()->schedule
                                 : best.way.chunks > 1 ? "interleaved-1f1b"
                                                       : "1f1b";
    std::string whyNot;
    const std::string training = trainingCommand(question.model, layoutOf(question.model, best.way), bestName, whyNot);
    if (session.json) {
        Json rows = Json::array();
        for (std::size_t i = 0; i < shown.size(); ++i)
            rows.push_back(jsonOf(shown[i], simulated[i], best.fits ? whyItLoses(shown[i], best) : ""));
        session.answer(
            {{"model", std::string(question.model.name)},
             {"cluster", ownJson(toJson(question.cluster))},
             {"constants", wordsOf(question.constants, question.cluster)},
             {"embeddings", wordsOfEmbeddings(question.model)},
             {"measured", asked.measured.empty() ? Json(nullptr) : Json(asked.measured)},
             {"devices", question.cluster.devices},
             {"memory_bytes", question.cluster.memory},
             {"candidates", answer.candidates.size()},
             {"fitting", answer.fitting},
             {"rows", std::move(rows)},
             {"simulated", tried},
             {"fastest_simulated", quickest ? jsonOf(answer.candidates[*quickest], fastest, "") : Json(nullptr)},
             {"train", best.fits && whyNot.empty() ? Json(training) : Json(nullptr)},
             {"why_not_trained", best.fits && !whyNot.empty() ? Json(whyNot) : Json(nullptr)},
             {"fewer_devices", fewer ? jsonOf(*fewer, std::nullopt, "") : Json(nullptr)}});
    }
    session.out(fmt::format("{} on {}, {} a step: {} of {} ways fit {}\n", question.model.name,
                            toText(question.cluster), counted(question.samples, "sample"), answer.fitting,
                            answer.candidates.size(), sizeText(question.cluster.memory)));
    session.out(wordsOf(question.constants, question.cluster) + "\n" + wordsOfEmbeddings(question.model) + "\n");
    if (!asked.measured.empty()) session.out("layers: " + asked.measured + "\n");
    session.out(tableOf(question, shown, simulated, session.colourOut()));
    if (!best.fits) {
        session.unmet(missing(best, question.cluster.memory));
        return ExitDoesNotHold;
    }
    if (quickest)
        session.out(fmt::format("of the first {} simulated {} is fastest: {} with {}\n", tried,
                                toText(question, answer.candidates[*quickest].way), secondsText(fastest->seconds),
                                fastest->schedule));
    if (fewer)
        session.out(fmt::format("fewer devices are faster: {} on {} takes {}\n", toText(fewer->way),
                                counted(fewer->way.devices(), "device"), secondsText(fewer->step.sum())));
    if (simulated.front() || !options.savedLayout.empty())
        session.note("Megatron-LM: " + megatronArguments(question.model, best.way));
    if (simulated.front()) session.note(whyNot.empty() ? "train it here: " + training : "simulated only: " + whyNot);
    const Layout layout = layoutOf(question.model, best.way);
    STAGEWRIGHT_CHECK(saveLayout(options, layout, session));
    if (!options.output.empty()) {
        STAGEWRIGHT_TRY(const auto schedule,
                        makeSchedule(bestName, {best.way.pipeline, best.way.microbatches, best.way.chunks}));
        STAGEWRIGHT_CHECK(writeFileAtomically(
            options.output,
            writeCostsJson(layoutCosts(schedule, layout, question.model, question.cluster, question.constants))));
        session.note(fmt::format("simulate it: stagewright simulate -s {} -p {} -m {} --chunks {} --costs {}", bestName,
                                 best.way.pipeline, best.way.microbatches, best.way.chunks, options.output));
    }
    return ExitDone;
}

} // namespace

Command command_choose()
{
    return {
        "choose", "Choose a parallelism: tensor, pipeline, chunks, replicas, microbatch and recomputation",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<LayoutChoice>();
            verb.value("--model", &options->model,
                       "The model: a preset of 'stagewright devices --presets', or its sizes [gpt3-175b; that of "
                       "--layers or --layers-from]")
                .form("NAME|layers=L,hidden=H,heads=A[,kv=K,ffn=F,seq=S,vocab=V,experts=E,tied]");
            verb.value("--cluster", &options->cluster,
                       "Devices and their kind; :per-host=8, :memory=80GB, :within=300GB/s, :between=25GB/s of a "
                       "network card, :cards=8 of a host; or a cluster's file, also what 'devices --json' or 'hosts "
                       "test --json' "
                       "printed, with :hosts=N [64@a100]")
                .form(std::string(clusterForm));
            verb.value("--samples", &options->samples, "Samples of a step, over all replicas [64]")
                .form("B")
                .check(wholeNumber(1, 1'000'000));
            verb.value("--zero", &options->zero,
                       "What replicas share: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 weights too; any: "
                       "each, with sequence parallelism and without [1]")
                .form("0|1|2|3|any")
                .check(oneOf({"0", "1", "2", "3", "any"}));
            verb.value("--pin", &options->pinned, "Only ways with these: t, p, v, d, b, recompute, sp=yes|no")
                .form("t=8,p=4,…");
            verb.value("--top", &options->top, "Ways that are shown [10]").form("N").check(wholeNumber(1, 10'000));
            verb.value("--simulate", &options->simulated,
                       "Simulate so many of the first ways under every schedule of the library [50]")
                .form("N")
                .check(wholeNumber(0, 1000));
            verb.value("--calibrate", &options->table,
                       "Fit the constants of the formulas to the measured steps of a CSV, and print them and their "
                       "errors; with --constants test those")
                .form("TABLE.csv");
            verb.value("--constants", &options->constants, "Constants that --calibrate wrote [of A100s]")
                .form("FILE.json");
            verb.value(
                    "--layers", &options->layers,
                    "Layers of a table of one's own (docs/formats.md): what each takes and keeps, at any microbatches "
                    "and tensor degrees; others by the formulas")
                .form("FILE.json")
                .excludes("--layers-from");
            verb.value(
                    "--layers-from", &options->layersFrom,
                    "Layers as this recorded run measured them; other microbatches and tensor degrees by the formulas")
                .form("FILE#RUN")
                .excludes("--calibrate");
            verb.value("--layout", &options->layout,
                       "Only this: what a layout takes, by stage; a file of --save-layout, or Megatron-LM's text with "
                       "--pin p=,t=,b=")
                .form("FILE.json|TEXT");
            verb.value("--save-layout", &options->savedLayout, "Write the best way's layout, to be changed by hand")
                .form("FILE.json")
                .replaces();
            verb.value("-o,--output", &options->output,
                       "Write the costs of the best way's pipeline, for simulate and plan; of --calibrate the "
                       "constants")
                .form("FILE.json")
                .replaces();
            verb.notes("Every way is timed in closed form (docs/numbers.md, \"Ways to divide a model\"); the "
                       "first ones are simulated, too.\n"
                       "Examples: stagewright choose --model gpt3-175b --cluster 64@a100 --samples 64\n"
                       "          stagewright choose --model layers=32,hidden=4096,heads=32 --cluster 16@h100 "
                       "--samples 256 --pin t=1\n"
                       "          stagewright choose --calibrate measured.csv --cluster 512@a100 -o ours.json");
            return [options](Session& session) { return runChoose(*options, session); };
        },
        true, true};
}

} // namespace stagewright
