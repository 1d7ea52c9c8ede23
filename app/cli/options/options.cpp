#include "app/cli/options/options.h"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/options/channel_options.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "schedules/check/validate.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/model/recompute.h"
#include "schedules/text/csv.h"

namespace stagewright {

void addShapeOptions(CLI::App& app, ShapeOptions& options)
{
    app.add_option("-p,--ranks", options.ranks, "Ranks (devices) of the pipeline [4]")
        ->type_name("P")
        ->check(wholeNumber(1, 4096))
        ->each([&options](const std::string&) { options.ranksGiven = true; });
    app.add_option("-m,--microbatches", options.microbatches, "Microbatches of a step [8]")
        ->type_name("M")
        ->check(wholeNumber(1, 1'000'000))
        ->each([&options](const std::string&) { options.microbatchesGiven = true; });
    app.add_option("--chunks", options.chunks, "Stages per rank; auto: schedule default [auto]")
        ->type_name("V")
        ->check(CLI::Validator(
            [](std::string& text) {
                if (text == "auto") return std::string();
                std::string error = wholeNumber(1, 64)(text);
                return error.empty() ? error : fmt::format("takes auto or a whole number from 1 to 64, not '{}'", text);
            },
            ""))
        ->each([&options](const std::string&) { options.chunksGiven = true; });
    app.add_option("--overlap", options.overlap,
                   "An overlapped pair: atomic, one interval that needs the inputs of both; serial, one op after the other [atomic]")
        ->type_name("atomic|serial")
        ->check(oneOf({"atomic", "serial"}));
}

CLI::Option* addScheduleOptions(CLI::App& app, ScheduleOptions& options, const std::string& help)
{
    CLI::Option* option = app.add_option("-s,--schedule", options.schedules, help)
                              ->type_name("NAME|FILE.csv")
                              ->delimiter(',')
                              ->allow_extra_args(false);
    addShapeOptions(app, options.shape);
    return option;
}

void addCommOptions(CLI::App& app, double& comm, std::string& link)
{
    auto* units = app.add_option("--comm", comm, "Latency between ranks, in forward times of one rank share")
                      ->type_name("C")
                      ->check(realNumber(0, 1e6));
    app.add_option("--link", link, "Link between ranks, such as 50us,10GB/s")->type_name("LATENCY[,BANDWIDTH]")->excludes(units);
}

void addPerturbOption(CLI::App& app, std::vector<std::string>& perturb)
{
    app.add_option("--perturb", perturb,
                   "Disturb it: rank=2:1.25 slows a rank, link=1-2:1.0 a link, launch=3:0.2 delays each op of a rank (forward times), "
                   "jitter=0.05 varies each op's time, transient=2@3:4 slows a rank in step 3")
        ->type_name("WHAT=WHERE:X")
        ->delimiter(',')
        ->allow_extra_args(false);
}

void addSeedOption(CLI::App& app, std::int64_t& seed)
{
    app.add_option("--seed", seed, "Seed of --perturb jitter=… [1]")->type_name("N")->check(CLI::NonNegativeNumber);
}

Result<Perturbation> choosePerturbation(const std::vector<std::string>& parts, int ranks)
{
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
    auto read = parsePerturbation(text, ranks);
    if (!read) return tl::unexpected(std::move(read.error()).with("--perturb"));
    return read;
}

void addRecomputeOptions(CLI::App& app, RecomputeOptions& options)
{
    app.add_option("--recompute", options.stages, "Stages that keep only their input and recompute before the backward [none]")
        ->type_name("all|none|0-2");
    app.add_flag("--hoist", options.hoisted, "Recompute as soon as the rank is free, not when the gradient arrives");
}

Result<Schedule> recomputed(const Schedule& schedule, const RecomputeOptions& options, Session& session)
{
    auto stages = parseRecompute(options.stages, schedule.stages);
    if (!stages) return tl::unexpected(std::move(stages.error()).with("--recompute"));
    if (options.hoisted && std::none_of(stages->begin(), stages->end(), [](bool on) { return on; })) session.note("--hoist is not used: no stage recomputes; --recompute names them");
    return withRecompute(schedule, *stages, options.hoisted);
}

void addCostOptions(CLI::App& app, CostOptions& options)
{
    auto* costs = app.add_option("--costs", options.costs,
                                 "Units of one full rank share, B defaults to I+W [F=1,I=1,W=1]; or a file of costs; or from a "
                                 "model and a device (analytic:gpt-6.2b@a100:b=1:efficiency=0.5; 'stagewright devices --presets' lists both)")
                      ->type_name("F=1,I=1,W=1|FILE.json|analytic:MODEL@DEVICE")
                      ->expected(1);
    app.add_option("--costs-from", options.costsFrom, "Costs fitted from a recorded run")->type_name("FILE#RUN")->excludes(costs);
    addCommOptions(app, options.comm, options.link);
    app.add_option("--free-at-input", options.freedAtInput, "Share of an activation that I frees; W frees the rest; below 0: I adds what W needs [0]")
        ->type_name("A")
        ->check(realNumber(-1, 1));
    app.add_option("--keep", options.keep, "Share of an activation that a recomputed stage keeps: its input; unit costs only [0]")
        ->type_name("A")
        ->check(realNumber(0, 1));
    app.add_option("--input-share", options.inputShare, "Share of a measured full backward that is I, where only B was measured [from its layers, another run or the model's shape]")
        ->type_name("A")
        ->check(realNumber(0, 1));
    app.add_option("--stage-layers", options.stageLayers, "Layers of each stage, such as 4,4,3,1: costs in proportion to them")
        ->type_name("N,N…")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(wholeNumber(0, 65'536));
    addPerturbOption(app, options.perturb);
}

bool namesFile(const std::string& nameOrFile)
{
    return nameOrFile.ends_with(".csv") || nameOrFile.ends_with(".block") || nameOrFile.find('/') != std::string::npos;
}

namespace {

// A file has its own shape; a block leaves only the number of microbatches free.
void tellUnused(const std::string& path, const ShapeOptions& shape, bool block, Session& session)
{
    std::string names;
    const auto add = [&](bool given, const char* name) {
        if (given) names += (names.empty() ? "" : ", ") + std::string(name);
    };
    add(shape.ranksGiven, "--ranks");
    add(shape.microbatchesGiven && !block, "--microbatches");
    add(shape.chunksGiven, "--chunks");
    if (!names.empty()) session.note(fmt::format("{} has its own shape: {} not used", path, names));
}

Result<Schedule> readScheduleFile(const std::string& path, const ShapeOptions& shape, Session& session)
{
    tellUnused(path, shape, path.ends_with(".block"), session);
    auto text = readFile(path);
    if (!text) return tl::unexpected(std::move(text.error()));
    if (path.ends_with(".block")) {
        auto block = parseBlock(*text);
        if (!block) return tl::unexpected(std::move(block.error()).with(path));
        BlockOptions options;
        options.costs = shape.costs;
        auto made = scheduleOf(*block, shape.microbatches, options);
        if (!made) return tl::unexpected(std::move(made.error()).with(path));
        return made;
    }
    std::string name = path.substr(path.rfind('/') + 1);
    auto schedule = readScheduleCsv(*text, {}, name);
    if (!schedule) return tl::unexpected(std::move(schedule.error()).with(path));
    if (const std::string known = recognise(*schedule); !known.empty())
        session.note(fmt::format("{} is {} for {} ranks and {} microbatches", path, known, schedule->ranks, schedule->microbatches));
    return shape.overlap == "serial" ? serialised(std::move(*schedule)) : schedule;
}

} // namespace

Result<Schedule> readSchedule(const std::string& nameOrFile, const ShapeOptions& shape, Session& session)
{
    if (namesFile(nameOrFile)) return readScheduleFile(nameOrFile, shape, session);
    auto info = findSchedule(nameOrFile.substr(0, nameOrFile.find(':')));
    if (!info) {
        Error error = std::move(info.error()).with("--schedule");
        if (fileExists(nameOrFile)) error.remedy = fmt::format("to name a file, use .csv or a slash: ./{}", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    const int chunks = shape.chunks == "auto" ? 0 : std::stoi(shape.chunks);
    if (chunks > 0 && (*info)->fixedChunks > 0 && chunks != (*info)->fixedChunks)
        session.note(fmt::format("{} has {} stage{} per rank: --chunks {} is not used", (*info)->name, (*info)->fixedChunks,
                                 (*info)->fixedChunks == 1 ? "" : "s", chunks));
    Shape full{shape.ranks, shape.microbatches, chunks};
    full.costs = shape.costs;
    auto made = makeSchedule(nameOrFile, full);
    return made && shape.overlap == "serial" ? serialised(std::move(*made)) : made;
}

Result<Schedule> chooseSchedule(const std::string& nameOrFile, const ShapeOptions& shape, Session& session)
{
    auto schedule = readSchedule(nameOrFile, shape, session);
    if (!schedule) return schedule;
    const Validation validation = validate(*schedule);
    if (auto valid = validation.toResult(); !valid) {
        if (!validation.cycle.empty())
            if (const auto deadlock = explainDeadlock(*schedule, {}); deadlock && deadlock->hung())
                session.out("ranks that wait for each other:\n" + deadlockText(*schedule, *deadlock, session.columns()));
        Error error = std::move(valid.error()).with(nameOrFile);
        if (error.remedy.empty() && namesFile(nameOrFile))
            error.remedy = fmt::format("'stagewright validate {} --all' shows every fault", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    return schedule;
}

RunReference parseRunReference(const std::string& text)
{
    const auto hash = text.rfind('#');
    if (hash == std::string::npos || hash == 0 || fileExists(text)) return {text, {}};
    return {text.substr(0, hash), text.substr(hash + 1)};
}

} // namespace stagewright
