#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/execute/simulate.h"
#include "schedules/layout/calibration.h"
#include "schedules/layout/choose.h"
#include "schedules/library/registry.h"
#include "schedules/text/cost_json.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

struct LayoutChoice {
    std::string model = "gpt3-175b";
    std::string cluster = "64@a100";
    int samples = 64;
    int zero = 1;
    std::string pinned;
    int top = 10;
    int simulated = 10;
    std::string constants, table, output;
};

// The library schedule under which a way's step is shortest, of those whose activations fit.
struct Simulated {
    std::string schedule;
    double seconds = 0;
};

Result<void> pin(std::string_view text, LayoutQuestion& question)
{
    for (const std::string_view item : itemsOf(text)) {
        const auto [key, given] = keyValueOf(item);
        const std::string_view value = given.value_or("");
        int* place = key == "t"   ? &question.tensor
                     : key == "p" ? &question.pipeline
                     : key == "v" ? &question.chunks
                     : key == "d" ? &question.replicas
                     : key == "b" ? &question.microbatch
                                  : nullptr;
        if (place != nullptr && readNumber(value, *place) && *place >= 1) continue;
        if (key == "recompute")
            for (const KeptActivations kept :
                 {KeptActivations::All, KeptActivations::Selective, KeptActivations::Inputs})
                if (toText(kept) == value) question.kept = kept;
        if (key != "recompute" || !question.kept)
            return fail(ErrorCode::Usage, fmt::format("--pin: '{}' can't be pinned", item),
                        "write t=8,p=4,v=2,d=2,b=1 or recompute=none|selective|full");
    }
    return {};
}

Result<LayoutQuestion> questionOf(const LayoutChoice& options)
{
    LayoutQuestion question;
    auto model = parseModelShape(options.model);
    if (!model) return tl::unexpected(std::move(model.error()).with("--model"));
    auto cluster = parseCluster(options.cluster);
    if (!cluster) return tl::unexpected(std::move(cluster.error()).with("--cluster"));
    question.model = *model;
    question.cluster = *cluster;
    question.samples = options.samples;
    question.zero = options.zero;
    STAGEWRIGHT_CHECK(pin(options.pinned, question));
    if (!options.constants.empty()) {
        STAGEWRIGHT_TRY(const auto text, readFile(options.constants));
        auto constants = parseStepConstants(text);
        if (!constants) return tl::unexpected(std::move(constants.error()).with(options.constants));
        question.constants = *constants;
    }
    return question;
}

std::optional<Simulated> bestSchedule(const LayoutQuestion& question, const LayoutCandidate& one, std::stop_token stop)
{
    std::optional<Simulated> best;
    for (const ScheduleInfo& info : allSchedules()) {
        if (stop.stop_requested()) return std::nullopt;
        if (info.searches || (info.fixedChunks > 0 && info.fixedChunks != one.way.chunks)) continue;
        const auto schedule = makeSchedule(info.name, {one.way.pipeline, one.way.microbatches, one.way.chunks});
        if (!schedule || schedule->ranks != one.way.pipeline || schedule->placement.hasCopies() ||
            schedule->stages != one.way.pipeline * one.way.chunks || schedule->weights != WeightRule::Synchronous ||
            question.model.layers % schedule->stages != 0 || !sliceStartsOf(*schedule).empty())
            continue;
        const CostModel costs = pipelineCosts(*schedule, question.model, question.cluster, one.way, question.constants);
        const auto result = simulate(*schedule, costs);
        if (!result) continue;
        const auto peaks = activationPeaks(*schedule, costs);
        const auto peak = peaks.empty() ? Bytes{0} : *std::max_element(peaks.begin(), peaks.end());
        if (one.memory.state + static_cast<double>(peak) > question.cluster.memory) continue;
        const double seconds =
            static_cast<double>(figuresOf(*schedule, *result).makespan) / 1e9 + one.step.data + one.step.optimizer;
        if (!best || seconds < best->seconds) best = Simulated{std::string(info.name), seconds};
    }
    return best;
}

std::string secondsText(double seconds) { return formatDuration(static_cast<Nanos>(std::llround(seconds * 1e9))); }
std::string sizeText(double bytes) { return fmt::format("{:.1f} GB", bytes / 1e9); }

Json jsonOf(const LayoutCandidate& one, const std::optional<Simulated>& simulated, const std::string& why)
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
            {"fits", one.fits},
            {"schedule", simulated ? Json(simulated->schedule) : Json(nullptr)},
            {"simulated_s", simulated ? Json(simulated->seconds) : Json(nullptr)},
            {"why", why.empty() ? Json(nullptr) : Json(why)}};
}

std::string tableOf(const std::vector<LayoutCandidate>& shown, const std::vector<std::optional<Simulated>>& simulated,
                    bool colour)
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
        std::vector<std::string> cells{toText(one.way), secondsText(step.sum())};
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
    return fmt::format("nothing fits {}: {} needs {} at least, {} of state and {} of activations", sizeText(cap),
                       toText(least.way), sizeText(least.memory.sum()), sizeText(least.memory.state),
                       sizeText(least.memory.activations));
}

Result<int> runCalibration(const LayoutChoice& options, const LayoutQuestion& question, Session& session)
{
    STAGEWRIGHT_TRY(const auto text, readFile(options.table));
    auto rows = parseMeasuredSteps(text);
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
                        {"mean_error", fitted.mean},
                        {"largest_error", fitted.largest},
                        {"rows", std::move(residuals)}});
    session.out(table.text(session.colourOut()));
    session.out(fmt::format("\n{}mean error {}, largest {}, of {} measured steps\n", constants,
                            formatPercent(fitted.mean), formatPercent(fitted.largest), rows->size()));
    if (!options.output.empty())
        session.note(fmt::format("use them: stagewright choose --constants {}", options.output));
    return ExitDone;
}

Result<int> runChoose(const LayoutChoice& options, Session& session)
{
    STAGEWRIGHT_TRY(const auto question, questionOf(options));
    if (!options.table.empty()) return runCalibration(options, question, session);
    STAGEWRIGHT_TRY(const auto answer, chooseLayout(question));
    std::vector<LayoutCandidate> shown(
        answer.candidates.begin(),
        answer.candidates.begin() +
            static_cast<std::ptrdiff_t>(std::min({answer.candidates.size(), static_cast<std::size_t>(options.top),
                                                  answer.fitting > 0 ? answer.fitting : answer.candidates.size()})));
    std::vector<std::optional<Simulated>> simulated(shown.size());
    const auto stop = session.stop();
    const std::size_t tried = answer.fitting > 0 ? std::min<std::size_t>(shown.size(), options.simulated) : 0;
    for (std::size_t i = 0; i < tried && !stop.stop_requested(); ++i) {
        session.progress().tell("ways", static_cast<std::int64_t>(i), static_cast<std::int64_t>(tried), "");
        simulated[i] = bestSchedule(question, shown[i], stop);
    }
    session.progress().clear();
    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "interrupted");
    const LayoutCandidate& best = shown.front();
    const auto fewer = best.fits ? fewerDevices(question, best) : std::nullopt;
    if (session.json) {
        Json rows = Json::array();
        for (std::size_t i = 0; i < shown.size(); ++i)
            rows.push_back(jsonOf(shown[i], simulated[i], best.fits ? whyItLoses(shown[i], best) : ""));
        session.answer({{"model", std::string(question.model.name)},
                        {"devices", question.cluster.devices},
                        {"memory_bytes", question.cluster.memory},
                        {"candidates", answer.candidates.size()},
                        {"fitting", answer.fitting},
                        {"rows", std::move(rows)},
                        {"fewer_devices", fewer ? jsonOf(*fewer, std::nullopt, "") : Json(nullptr)}});
    }
    session.out(fmt::format("{} on {}, {} samples a step: {} of {} ways fit {}\n", question.model.name,
                            toText(question.cluster), question.samples, answer.fitting, answer.candidates.size(),
                            sizeText(question.cluster.memory)));
    session.out(tableOf(shown, simulated, session.colourOut()));
    if (!best.fits) {
        session.unmet(missing(best, question.cluster.memory));
        return ExitDoesNotHold;
    }
    if (fewer)
        session.out(fmt::format("{} devices are faster: {} takes {}\n", fewer->way.devices(), toText(fewer->way),
                                secondsText(fewer->step.sum())));
    if (!options.output.empty()) {
        const auto& named = simulated.front();
        STAGEWRIGHT_TRY(const auto schedule, makeSchedule(named                 ? named->schedule
                                                          : best.way.chunks > 1 ? "interleaved-1f1b"
                                                                                : "1f1b",
                                                          {best.way.pipeline, best.way.microbatches, best.way.chunks}));
        STAGEWRIGHT_CHECK(writeFileAtomically(
            options.output,
            writeCostsJson(pipelineCosts(schedule, question.model, question.cluster, best.way, question.constants))));
        session.note(fmt::format("simulated only: stagewright simulate -s {} -p {} -m {} --chunks {} --costs {}",
                                 schedule.name, best.way.pipeline, best.way.microbatches, best.way.chunks,
                                 options.output));
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
                       "The model: a preset of 'stagewright devices --presets', or its sizes [gpt3-175b]")
                .form("NAME|layers=L,hidden=H,heads=A[,seq=S,vocab=V]");
            verb.value("--cluster", &options->cluster,
                       "Devices and their kind; :per-host=8, :memory=80GB, :within=300GB/s, :between=25GB/s of a "
                       "network card, :cards=8 of a host [64@a100]")
                .form("N@DEVICE[:KEY=VALUE…]");
            verb.value("--samples", &options->samples, "Samples of a step, over all replicas [64]")
                .form("B")
                .check(wholeNumber(1, 1'000'000));
            verb.value("--zero", &options->zero,
                       "What replicas share: 0 nothing, 1 the optimizer's state, 2 gradients too [1]")
                .form("0|1|2")
                .check(wholeNumber(0, 2));
            verb.value("--pin", &options->pinned, "Only ways with these: t, p, v, d, b, recompute").form("t=8,p=4,…");
            verb.value("--top", &options->top, "Ways that are shown [10]").form("N").check(wholeNumber(1, 10'000));
            verb.value("--simulate", &options->simulated,
                       "Of these, simulate so many under every schedule of the library [10]")
                .form("N")
                .check(wholeNumber(0, 1000));
            verb.value("--calibrate", &options->table,
                       "Fit the constants of the formulas to the measured steps of a CSV, and print them and their "
                       "errors; with --constants test those")
                .form("TABLE.csv");
            verb.value("--constants", &options->constants, "Constants that --calibrate wrote [of A100s]")
                .form("FILE.json");
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
