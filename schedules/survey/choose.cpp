#include "schedules/survey/choose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"
#include "schedules/layout/layer_table.h"
#include "schedules/survey/state.h"

namespace stagewright {

namespace {

struct StepPart {
    const char* key;
    const char* title;
    double StepParts::*place;
    PlotHue hue;
};
constexpr std::array stepParts{
    StepPart{"compute_ns", "compute", &StepParts::compute, PlotHue::Forward},
    StepPart{"recompute_ns", "recompute", &StepParts::recompute, PlotHue::Backward},
    StepPart{"bubble_ns", "bubble", &StepParts::bubble, PlotHue::IdleHatch},
    StepPart{"tensor_ns", "tensor", &StepParts::tensor, PlotHue::Communication},
    StepPart{"messages_ns", "pipeline", &StepParts::messages, PlotHue::Memory},
    StepPart{"data_ns", "data", &StepParts::data, PlotHue::Weight},
    StepPart{"optimizer_ns", "optimizer", &StepParts::optimizer, PlotHue::Optimizer},
};

std::int64_t nanosOf(double seconds) { return std::llround(seconds * 1e9); }
std::string timeText(double seconds) { return formatDuration(nanosOf(seconds)); }
std::string sizeText(double bytes) { return formatBytes(std::llround(bytes)); }

std::vector<SurveyField> chooseFields()
{
    SurveyField model = modelField();
    model.fallback = "gpt3-13b";
    return {
        model,
        {.name = "sizes",
         .title = "Own sizes",
         .help =
             "A model of your own instead, such as layers=32,hidden=4096,heads=32,seq=2048,vocab=50304, or a preset "
             "and what differs: gpt3-13b,tied. tied or tied=no counts embedding and head. Empty: the chosen model.",
         .kind = FieldKind::Text,
         .none = "the model's"},
        {.name = "cluster",
         .title = "Cluster",
         .help = "Devices and their kind, then :per-host=8, :memory=80GB that may be used of each, :within=300GB/s of "
                 "links in a host, :between=25GB/s of a network card, :cards=8 of a host. Or a file, NAME.json: a "
                 "cluster's, or what 'devices --json' or 'hosts test --json' printed, with :hosts=N.",
         .kind = FieldKind::Text,
         .fallback = "32@a100"},
        {.name = "samples",
         .title = "Samples per step",
         .help = "Over all replicas.",
         .fallback = "256",
         .least = 1,
         .most = 1'000'000},
        {.name = "zero",
         .title = "Replicas share",
         .help = "What replicas share of the state instead of having it whole.",
         .kind = FieldKind::Choice,
         .fallback = "1",
         .choices = {{"0", "nothing"},
                     {"1", "the optimizer's state"},
                     {"2", "gradients, too"},
                     {"3", "weights, too"},
                     {"any", "each, sequences cut or not"}}},
        {.name = "layers-from",
         .title = "Layers from",
         .help =
             "A layer table, FILE.json, or a recorded run, FILE.stagewright#RUN: its layers as measured there, and its "
             "model where no own sizes are given; other microbatches and tensor degrees by the formulas.",
         .kind = FieldKind::Text,
         .none = "none: by the formulas"},
        {.name = "pin",
         .title = "Pinned",
         .help = "Only ways with these, such as t=8,p=4,v=2,d=2,b=1,recompute=full. Empty: everything is free.",
         .kind = FieldKind::Text,
         .none = "nothing"},
        {.name = "ways",
         .title = "Ways shown",
         .help = "The best ones, by the step.",
         .fallback = "12",
         .least = 1,
         .most = 50},
        {.name = "tried",
         .title = "Simulated",
         .help = "So many of them are simulated under every schedule of the library.",
         .fallback = "12",
         .least = 0,
         .most = 50},
    };
}

Error ofField(Error error, const char* field) { return std::move(error).with(field); }

// The best way of each (t, p), as places in the answer: those that fit come first there, by their step.
std::map<std::pair<int, int>, std::size_t> bestByDegrees(const WaysAnswer& answer)
{
    std::map<std::pair<int, int>, std::size_t> out;
    for (std::size_t i = 0; i < answer.all.candidates.size(); ++i) {
        const Parallelism& way = answer.all.candidates[i].way;
        out.emplace(std::pair(way.tensor, way.pipeline), i);
    }
    return out;
}

std::string degreesText(const WaysAnswer& answer, std::size_t place)
{
    const LayoutCandidate& one = answer.all.candidates[place];
    if (!one.fits)
        return fmt::format("t={}, p={}: nothing fits; {} needs {} at least, {}.", one.way.tensor, one.way.pipeline,
                           toText(answer.question.layout, one.way), sizeText(one.memory.sum()), toText(one.memory));
    const std::string why = whyItLoses(one, answer.all.candidates.front());
    return fmt::format("t={}, p={}: {} takes {} and {}{}.", one.way.tensor, one.way.pipeline,
                       toText(answer.question.layout, one.way), timeText(one.step.sum()), sizeText(one.memory.sum()),
                       why.empty() ? std::string() : "; against the best: " + why);
}

Result<SurveyAnswer> chooseAnswer(const SurveyQuestion& asked, const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto question, WaysQuestion::of(asked));
    if (question.fromRun())
        return fail(ErrorCode::Usage, fmt::format("layers-from: the run {} is not read here", question.layersFrom));
    STAGEWRIGHT_TRY(const auto answer, waysSurvey(question, progress));
    SurveyAnswer out = toSurveyAnswer(answer);
    out.complete = !progress.cancelled();
    if (!out.complete)
        for (SurveyTable& table : out.tables) table.rows.clear();
    return out;
}

PlotItem bandOf(const WaysAnswer& answer, std::size_t way)
{
    const auto x = static_cast<double>(way);
    return PlotItem::band(x - 0.5, x + 0.5, answer.text(way), static_cast<int>(way), static_cast<int>(way));
}

void nameWays(Plot& plot, const WaysAnswer& answer)
{
    for (std::size_t i = 0; i < answer.shown.size(); ++i) {
        plot.across.names.push_back(std::to_string(i + 1));
        plot.items.push_back(bandOf(answer, i));
    }
}

} // namespace

Result<WaysQuestion> WaysQuestion::of(const SurveyQuestion& question)
{
    WaysQuestion out;
    const std::string& sizes = question.text("sizes");
    out.model = sizes.empty() ? question.text("model") : sizes;
    out.cluster = question.text("cluster");
    out.pinned = question.text("pin");
    out.ownModel = !sizes.empty();
    out.layersFrom = question.text("layers-from");
    std::optional<LayerTable> table;
    if (!out.layersFrom.empty() && !out.fromRun()) {
        const auto wrong = [&](Error error) { return tl::unexpected(std::move(error).with(out.layersFrom)); };
        const auto text = readSmallFile(out.layersFrom);
        if (!text) return wrong(text.error());
        auto read = parseLayerTable(*text);
        if (!read) return wrong(std::move(read.error()));
        table = std::move(*read);
        if (!out.ownModel && !table->model.empty()) out.model = table->model;
    }
    auto model = parseModelShape(out.model);
    if (!model)
        return tl::unexpected(ofField(std::move(model.error()), table && !out.ownModel ? "layers-from" : "sizes"));
    auto cluster = namedCluster(out.cluster, [](const std::string& path) { return readSmallFile(path); });
    if (!cluster) return tl::unexpected(ofField(std::move(cluster.error()), "cluster"));
    out.layout.model = *model;
    out.layout.cluster = *cluster;
    out.layout.samples = question.whole("samples");
    out.layout.zero = wholeOf<int>(question.text("zero")).value_or(-1); // "any"
    if (auto pinned = pin(out.pinned, out.layout); !pinned)
        return tl::unexpected(ofField(std::move(pinned.error()), "pin"));
    if (table) {
        auto made = constantsOf(*table, out.layout.model, out.layout.cluster, out.layout.constants);
        if (!made) return tl::unexpected(std::move(made.error()).with(out.layersFrom));
        out.layout.constants = std::move(made->constants);
        out.measured = "of " + out.layersFrom + ": " + made->words;
    }
    out.shown = question.whole("ways");
    out.tried = question.whole("tried");
    return out;
}

SurveyAnswer toSurveyAnswer(const WaysAnswer& answer)
{
    return {.setup = answer.setup(),
            .tables = {waysTable(answer), degreesTable(answer)},
            .units = {},
            .plot = waysWhole(waysTime(answer), waysMemory(answer), waysDegrees(answer))};
}

Result<WaysAnswer> waysSurvey(const WaysQuestion& question, const Progress& progress)
{
    WaysAnswer out{question, {}, {}, {}, std::nullopt};
    STAGEWRIGHT_TRY(out.all, chooseLayout(question.layout));
    const std::size_t most = out.fits() ? out.all.fitting : out.all.candidates.size();
    const std::size_t count = std::min<std::size_t>(most, static_cast<std::size_t>(question.shown));
    out.shown.assign(out.all.candidates.begin(), out.all.candidates.begin() + static_cast<std::ptrdiff_t>(count));
    const std::size_t tried = out.fits() ? std::min<std::size_t>(count, static_cast<std::size_t>(question.tried)) : 0;
    out.simulated = simulateWays(question.layout, std::span(out.shown).first(tried), progress);
    out.simulated.resize(count);
    if (out.fits() && !progress.cancelled()) out.fewer = fewerDevices(question.layout, out.shown.front());
    return out;
}

std::string WaysAnswer::setup() const
{
    const LayoutQuestion& q = question.layout;
    return fmt::format("Computed for {} on {}, {} a step{}: {} of {} ways fit {}; {}; {}.{}", q.model.name,
                       toText(q.cluster), counted(q.samples, "sample"),
                       question.pinned.empty() ? "" : ", pinned " + question.pinned, all.fitting, all.candidates.size(),
                       sizeText(q.cluster.memory), wordsOf(q.constants, q.cluster), wordsOfEmbeddings(q.model),
                       question.measured.empty() ? "" : " Layers: " + question.measured + ".");
}

std::string WaysAnswer::sentence() const
{
    const LayoutCandidate& best = shown.front();
    if (!fits())
        return fmt::format("Nothing fits {}: {} needs {} at least, {}.", sizeText(question.layout.cluster.memory),
                           toText(question.layout, best.way), sizeText(best.memory.sum()), toText(best.memory));
    std::string out =
        fmt::format("{} is fastest with {}.", toText(question.layout, best.way), timeText(best.step.sum()));
    std::size_t quickest = 0; // of those simulated
    for (std::size_t i = 0; i < simulated.size(); ++i)
        if (simulated[i] && (!simulated[quickest] || simulated[i]->seconds < simulated[quickest]->seconds))
            quickest = i;
    if (simulated[quickest])
        out +=
            fmt::format(" Of those simulated {} is fastest: {} with {}.", toText(question.layout, shown[quickest].way),
                        timeText(simulated[quickest]->seconds), simulated[quickest]->schedule);
    if (fewer)
        out += fmt::format(" Fewer devices are faster: {} on {} takes {}.", toText(question.layout, fewer->way),
                           counted(fewer->way.devices(), "device"), timeText(fewer->step.sum()));
    return out;
}

std::string WaysAnswer::text(std::size_t way) const
{
    const LayoutCandidate& one = shown[way];
    const double cap = question.layout.cluster.memory;
    std::string out =
        fmt::format("{}. {}: a step of {}", way + 1, toText(question.layout, one.way), timeText(one.step.sum()));
    if (simulated[way])
        out += fmt::format(", simulated {} with {}", timeText(simulated[way]->seconds), simulated[way]->schedule);
    out += fmt::format("; {} of {}, {}.", sizeText(one.memory.sum()), sizeText(cap), toText(one.memory));
    if (!one.fits) return out + fmt::format(" It lacks {}.", sizeText(one.memory.sum() - cap));
    const std::string why = whyItLoses(one, shown.front());
    if (!why.empty()) out += fmt::format(" It loses to the first by {}.", why);
    return out;
}

std::string WaysAnswer::command(std::size_t way) const
{
    return fmt::format(
        "stagewright choose --model {} --cluster {} --samples {} --zero {} --pin {}{} -o costs.json", question.model,
        question.cluster, question.layout.samples, shown[way].way.zero, pinsOf(shown[way].way),
        question.layersFrom.empty() ? ""
                                    : (question.fromRun() ? " --layers-from " : " --layers ") + question.layersFrom);
}

SurveyTable waysTable(const WaysAnswer& answer)
{
    SurveyTable table{"ways", fmt::format("Ways to divide {}", answer.question.layout.model.name), {}, {}};
    const double cap = answer.question.layout.cluster.memory;
    table.columns = {{"place", "#", ColumnKind::Whole},
                     {"way", "Way", ColumnKind::Text, "Tensor, pipeline, chunks, replicas, microbatch, recomputation."},
                     {"step_ns", "Step", ColumnKind::Time, "In closed form."},
                     {"schedule", "Best schedule", ColumnKind::Text, "Of those whose own peak fits."},
                     {"simulated_ns", "Its step", ColumnKind::Time, "Simulated, with gradients and optimizer."},
                     {"of_cap", "Of the cap", ColumnKind::Share, "State and activations of the fullest device."},
                     {"why", "Why not the first", ColumnKind::Text, "The part of the step that costs most more."}};
    for (const StepPart& part : stepParts) table.columns.push_back({part.key, part.title, ColumnKind::Time});
    table.columns.push_back({"state_bytes", "State", ColumnKind::Size});
    table.columns.push_back({"embedding_bytes", "Embedding", ColumnKind::Size,
                             "Of the state: embedding and head, where they are counted."});
    table.columns.push_back({"activation_bytes", "Activations", ColumnKind::Size});
    for (std::size_t i = 0; i < answer.shown.size(); ++i) {
        const LayoutCandidate& one = answer.shown[i];
        const auto& step = answer.simulated[i];
        const bool tried = static_cast<int>(i) < answer.question.tried && one.fits;
        TableRow row{static_cast<std::int64_t>(i + 1), toText(answer.question.layout, one.way),
                     nanosOf(one.step.sum())};
        row.emplace_back(std::string(step ? step->schedule : tried ? "no schedule fits" : "not simulated"));
        row.emplace_back(step ? TableCell(nanosOf(step->seconds)) : TableCell());
        row.emplace_back(one.memory.sum() / cap);
        row.emplace_back(one.fits ? whyItLoses(one, answer.shown.front())
                                  : fmt::format("lacks {}", sizeText(one.memory.sum() - cap)));
        for (const StepPart& part : stepParts) row.emplace_back(nanosOf(one.step.*part.place));
        row.emplace_back(static_cast<std::int64_t>(std::llround(one.memory.state)));
        row.emplace_back(static_cast<std::int64_t>(std::llround(one.memory.embedding)));
        row.emplace_back(static_cast<std::int64_t>(std::llround(one.memory.activations)));
        table.rows.push_back(std::move(row));
    }
    table.sentence = answer.sentence();
    return table;
}

SurveyTable degreesTable(const WaysAnswer& answer)
{
    SurveyTable table{"degrees",
                      "The best way by tensor-parallel devices and stages",
                      {{"tensor", "t", ColumnKind::Whole},
                       {"pipeline", "p", ColumnKind::Whole},
                       {"way", "Best way", ColumnKind::Text},
                       {"step_ns", "Step", ColumnKind::Time},
                       {"of_cap", "Of the cap", ColumnKind::Share},
                       {"fits", "Fits", ColumnKind::Text}},
                      {}};
    for (const auto& [degrees, place] : bestByDegrees(answer)) {
        const LayoutCandidate& one = answer.all.candidates[place];
        table.rows.push_back({std::int64_t{degrees.first}, std::int64_t{degrees.second},
                              toText(answer.question.layout, one.way), nanosOf(one.step.sum()),
                              one.memory.sum() / answer.question.layout.cluster.memory,
                              std::string(one.fits ? "yes" : "no")});
    }
    return table;
}

Plot waysTime(const WaysAnswer& answer)
{
    Plot plot{answer.fits() ? "Way, by its step" : "Way, by its memory", {}, {}};
    plot.up.title = "Step";
    plot.up.scale = PlotScale::Time;
    plot.saysChoice = true;
    plot.nothing = "no way divides them";
    for (const StepPart& part : stepParts) {
        PlotSeries series{part.title, {}, PlotMark::Bars, PlotInk{part.hue}};
        for (std::size_t i = 0; i < answer.shown.size(); ++i)
            series.points.push_back({static_cast<double>(i), answer.shown[i].step.*part.place * 1e9});
        if (std::any_of(series.points.begin(), series.points.end(), [](const PlotPoint& one) { return one.y > 0; }))
            plot.series.push_back(std::move(series));
    }
    PlotSeries simulated{"simulated", {}, PlotMark::Levels, PlotInk{PlotHue::Text}};
    for (std::size_t i = 0; i < answer.simulated.size(); ++i)
        if (answer.simulated[i])
            simulated.points.push_back({static_cast<double>(i), answer.simulated[i]->seconds * 1e9});
    if (!simulated.points.empty()) plot.series.push_back(std::move(simulated));
    nameWays(plot, answer);
    return plot;
}

Plot waysMemory(const WaysAnswer& answer)
{
    const double cap = answer.question.layout.cluster.memory;
    Plot plot{"Way", {}, {}};
    plot.up.title = "Memory of the fullest device";
    plot.up.scale = PlotScale::Bytes;
    PlotSeries state{"state", {}, PlotMark::Bars, PlotInk{PlotHue::Optimizer}},
        activations{"activations", {}, PlotMark::Bars, PlotInk{PlotHue::Memory}};
    double most = cap;
    for (std::size_t i = 0; i < answer.shown.size(); ++i) {
        const MemoryParts& memory = answer.shown[i].memory;
        state.points.push_back({static_cast<double>(i), memory.state});
        activations.points.push_back({static_cast<double>(i), memory.activations});
        most = std::max(most, memory.sum());
    }
    plot.up.most = most * 1.08;
    plot.rules.push_back({cap, false, "cap " + formatBytes(std::llround(cap))});
    plot.series = {std::move(state), std::move(activations)};
    nameWays(plot, answer);
    return plot;
}

Plot waysDegrees(const WaysAnswer& answer)
{
    Plot plot{"Stages, p", {}, {}};
    plot.up.title = "Devices that share a layer, t: step of the best way";
    plot.legend = PlotLegend::Right;
    plot.nothing = "no way divides them";
    const auto best = bestByDegrees(answer);
    std::vector<int> tensors, pipelines;
    for (const auto& [degrees, place] : best) {
        tensors.push_back(degrees.first);
        pipelines.push_back(degrees.second);
    }
    for (auto* all : {&tensors, &pipelines}) {
        std::sort(all->begin(), all->end());
        all->erase(std::unique(all->begin(), all->end()), all->end());
    }
    const auto indexOf = [](const std::vector<int>& all, int value) {
        return static_cast<int>(std::find(all.begin(), all.end(), value) - all.begin());
    };
    for (const int tensor : tensors) plot.up.names.push_back(std::to_string(tensor));
    for (const int pipeline : pipelines) plot.across.names.push_back(std::to_string(pipeline));
    double least = INFINITY, most = 0;
    for (const auto& [degrees, place] : best)
        if (const LayoutCandidate& one = answer.all.candidates[place]; one.fits) {
            least = std::min(least, one.step.sum());
            most = std::max(most, one.step.sum());
        }
    // pale is fast, by the logarithm: steps differ by factors
    const auto inkOf = [&](double seconds) {
        return PlotInk{
            PlotHue::Accent,
            static_cast<float>(most > least ? 0.08 + 0.8 * std::log(seconds / least) / std::log(most / least) : 0.3)};
    };
    PlotSeries cells{"", {}, PlotMark::Cells}, none{"does not fit", {}, PlotMark::Cells, PlotInk{PlotHue::Idle}};
    for (const auto& [degrees, place] : best) {
        const LayoutCandidate& one = answer.all.candidates[place];
        const int x = indexOf(pipelines, degrees.second), y = indexOf(tensors, degrees.first);
        PlotPoint point{static_cast<double>(x), static_cast<double>(y),
                        one.fits ? fixedNumber(one.step.sum(), one.step.sum() < 10 ? 2 : 1) : "–"};
        if (one.fits) point.ink = inkOf(one.step.sum());
        (one.fits ? cells : none).points.push_back(std::move(point));
        plot.items.push_back(PlotItem::cell(x, y, degreesText(answer, place), static_cast<int>(place)));
    }
    if (!cells.points.empty()) {
        plot.series.push_back(std::move(cells));
        plot.series.push_back({"least " + timeText(least), {}, PlotMark::Cells, inkOf(least)});
        plot.series.push_back({"most " + timeText(most), {}, PlotMark::Cells, inkOf(most)});
    }
    if (!none.points.empty()) plot.series.push_back(std::move(none));
    return plot;
}

Plot waysWhole(Plot time, Plot memory, Plot degrees)
{
    time.share = 0.4;
    memory.share = 0.28;
    degrees.share = 0.32;
    time.tall = 2;
    time.below = {std::move(memory), std::move(degrees)};
    return time;
}

namespace surveys {
extern const SurveyInfo choose;
const SurveyInfo choose{"choose", "Which parallelism", "every way to divide a model over a cluster, ranked by its step",
                        chooseFields, chooseAnswer};
} // namespace surveys

} // namespace stagewright
