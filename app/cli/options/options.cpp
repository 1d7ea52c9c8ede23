#include "app/cli/options/options.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "app/cli/option_set.h"
#include "app/cli/options/channel_options.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "schedules/base/text.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/check/without_effect.h"
#include "schedules/heuristic/block_schedule.h"
#include "schedules/heuristic/building_block.h"
#include "schedules/library/registry.h"
#include "schedules/model/recompute.h"
#include "schedules/text/csv.h"

namespace stagewright {

void addShapeOptions(OptionSet& verb, ShapeOptions& options)
{
    verb.value("-p,--ranks", &options.ranks, "Ranks (devices) of the pipeline [4]")
        .form("P")
        .check(wholeNumber(1, 4096))
        .given(options.ranksGiven);
    verb.value("-m,--microbatches", &options.microbatches, "Microbatches of a step [8]")
        .form("M")
        .check(wholeNumber(1, 1'000'000))
        .given(options.microbatchesGiven);
    const auto autoOrWhole = [](const std::string& text) {
        const bool good = text == "auto" || wholeNumber(1, 64)(text).empty();
        return good ? std::string() : fmt::format("takes auto or a whole number from 1 to 64, not '{}'", text);
    };
    verb.value("--chunks", &options.chunks, "Stages per rank; auto: schedule default [auto]")
        .form("V")
        .check(autoOrWhole)
        .given(options.chunksGiven);
    verb.value("--overlap", &options.overlap,
               "An overlapped pair: atomic, one interval that needs the inputs of both; serial, one op after the other "
               "[atomic]")
        .form("atomic|serial")
        .check(oneOf({"atomic", "serial"}));
}

void addScheduleOptions(OptionSet& verb, ScheduleOptions& options, const std::string& help)
{
    verb.value("-s,--schedule", &options.schedules, help).form("NAME|FILE.csv").commas().each();
    addShapeOptions(verb, options.shape);
}

void addCommOptions(OptionSet& verb, double& comm, std::string& link)
{
    Option& units = verb.value("--comm", &comm, "Latency between ranks, in units: 1 is the forward of a rank")
                        .form("C")
                        .check(realNumber(0, 1e6));
    verb.value("--link", &link, "Link between ranks, such as 50us,10GB/s").form("LATENCY[,BANDWIDTH]").excludes(units);
}

void addPerturbOption(OptionSet& verb, std::vector<std::string>& perturb)
{
    verb.value("--perturb", &perturb,
               "Disturb it: rank=2:1.25 slows a rank, link=1-2:1.0 a link, launch=3:0.2 delays each op of a rank "
               "(forward times), "
               "jitter=0.05 varies each op's time, transient=2@3:4 slows a rank in step 3, secret=7 picks one of the "
               "first three and hides it")
        .form("WHAT=WHERE:X")
        .commas()
        .each();
}

void addSeedOption(OptionSet& verb, std::int64_t& seed)
{
    verb.value("--seed", &seed, "Seed of --perturb jitter=… [1]")
        .form("N")
        .check(wholeNumber(0, std::numeric_limits<std::int64_t>::max()));
}

void addWhatIfOption(OptionSet& verb, std::vector<std::string>& questions)
{
    verb.value("--what-if", &questions,
               "Simulate it with a change: F*0.5, B@stage2*0.8, rank1*1.25, link1-2*0, launch*0, jitter*0, UNSHARD*2, "
               "lower=pytorch, sends=rendezvous, receives=posted, channels=1, channels=one, m=16, m+8; repeat the "
               "option for several")
        .form("CHANGE,…")
        .each();
}

Result<Perturbation> choosePerturbation(const std::vector<std::string>& parts, int ranks)
{
    auto read = parsePerturbation(joined(parts, ","), ranks);
    if (!read) return tl::unexpected(std::move(read.error()).with("--perturb"));
    return read;
}

void addRecomputeOptions(OptionSet& verb, RecomputeOptions& options)
{
    verb.value("--recompute", &options.stages,
               "Stages that keep only their input and recompute before the backward [none]")
        .form("all|none|0-2");
    verb.flag("--hoist", options.hoisted, "Recompute as soon as the rank is free, not when the gradient arrives");
}

Result<Schedule> recomputed(const Schedule& schedule, const RecomputeOptions& options, Session& session)
{
    auto stages = parseRecompute(options.stages, schedule.stages);
    if (!stages) return tl::unexpected(std::move(stages.error()).with("--recompute"));
    if (options.hoisted && std::none_of(stages->begin(), stages->end(), [](bool on) { return on; }))
        session.note("--hoist is not used: no stage recomputes; --recompute names them");
    return withRecompute(schedule, *stages, options.hoisted);
}

void addCostOptions(OptionSet& verb, CostOptions& options)
{
    Option& costs =
        verb.value(
                "--costs", &options.costs,
                "In units (1: the forward of a rank), B defaults to I+W [F=1,I=1,W=1]; or a file of costs; or from a "
                "model and a device (analytic:gpt-6.2b@a100:b=1:efficiency=0.5; 'stagewright devices --presets' lists "
                "both)")
            .form("F=1,I=1,W=1|FILE.json|analytic:MODEL@DEVICE");
    verb.value("--costs-from", &options.costsFrom, "Costs fitted from a recorded run").form("FILE#RUN").excludes(costs);
    addCommOptions(verb, options.comm, options.link);
    verb.value("--free-at-input", &options.freedAtInput,
               "Share of an activation that I frees; W frees the rest; below 0: I adds what W needs [0]")
        .form("A")
        .check(realNumber(-1, 1));
    verb.value("--keep", &options.keep,
               "Share of an activation that a recomputed stage keeps: its input; unit costs only [0]")
        .form("A")
        .check(realNumber(0, 1));
    verb.value("--input-share", &options.inputShare,
               "Share of a measured full backward that is I, where only B was measured [from its layers, another run "
               "or the model's shape]")
        .form("A")
        .check(realNumber(0, 1));
    verb.value("--stage-layers", &options.stageLayers,
               "Layers of each stage, such as 4,4,3,1: costs in proportion to them")
        .form("N,N…")
        .commas()
        .each()
        .check(wholeNumber(0, 65'536));
    addPerturbOption(verb, options.perturb);
}

bool namesFile(const std::string& nameOrFile)
{
    return nameOrFile.ends_with(".csv") || nameOrFile.ends_with(".block") || nameOrFile.find('/') != std::string::npos;
}

void noteOwnShape(const std::string& path, const ShapeOptions& shape, bool block, Session& session)
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

Schedule overlapping(Schedule schedule, const ShapeOptions& shape, Session& session)
{
    if (shape.overlap != "serial") return schedule;
    if (!overlapsOps(schedule))
        session.note(fmt::format("--overlap is not used: {} has no overlapped pairs", schedule.name));
    return serialised(std::move(schedule));
}

namespace {

Result<Schedule> readScheduleFile(const std::string& path, const ShapeOptions& shape, Session& session)
{
    noteOwnShape(path, shape, path.ends_with(".block"), session);
    if (path.ends_with(".block")) {
        STAGEWRIGHT_TRY(auto text, readFile(path));
        auto block = parseBlock(text);
        if (!block) return tl::unexpected(std::move(block.error()).with(path));
        BlockOptions options;
        options.costs = shape.costs;
        auto made = scheduleOf(*block, shape.microbatches, options);
        if (!made) return tl::unexpected(std::move(made.error()).with(path));
        return made;
    }
    auto schedule = readCsvFile(path);
    if (!schedule) return schedule;
    if (const std::string idle = withoutEffect(*schedule); !idle.empty())
        session.note(fmt::format("{}: {}", path, idle));
    if (const std::string known = recognise(*schedule); !known.empty())
        session.note(fmt::format("{} is {} for {} ranks and {} microbatches", path, known, schedule->ranks,
                                 schedule->microbatches));
    return overlapping(std::move(*schedule), shape, session);
}

} // namespace

Result<Schedule> readSchedule(const std::string& nameOrFile, const ShapeOptions& shape, Session& session)
{
    if (namesFile(nameOrFile)) return readScheduleFile(nameOrFile, shape, session);
    auto info = scheduleInfoOf(nameOrFile);
    if (!info) {
        Error error = std::move(info.error()).with("--schedule");
        if (fileExists(nameOrFile)) error.remedy = fmt::format("to name a file, use .csv or a slash: ./{}", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    const int chunks = wholeOf<int>(shape.chunks).value_or(0);
    if (chunks > 0 && (*info)->fixedChunks > 0 && chunks != (*info)->fixedChunks)
        session.note(fmt::format("{} has {} stage{} per rank: --chunks {} is not used", (*info)->name,
                                 (*info)->fixedChunks, (*info)->fixedChunks == 1 ? "" : "s", chunks));
    Shape full{shape.ranks, shape.microbatches, chunks};
    full.costs = shape.costs;
    auto made = makeSchedule(nameOrFile, full);
    return made ? overlapping(std::move(*made), shape, session) : made;
}

Result<std::shared_ptr<const CheckedSchedule>> chooseSchedule(const std::string& nameOrFile, const ShapeOptions& shape,
                                                              Session& session)
{
    STAGEWRIGHT_TRY(auto schedule, readSchedule(nameOrFile, shape, session));
    const Schedule& lists = schedule; // which stay where they are if they have faults
    Validation validation;
    auto checked = CheckedSchedule::ifValid(std::move(schedule), validation);
    if (!checked) {
        if (!validation.cycle.empty())
            if (const auto deadlock = explainDeadlock(lists, {}); deadlock && deadlock->hung())
                session.out("ranks that wait for each other:\n" + deadlockText(lists, *deadlock, session.columns()));
        Error error = std::move(validation.toResult().error()).with(nameOrFile);
        if (error.remedy.empty() && namesFile(nameOrFile))
            error.remedy = fmt::format("'stagewright validate {} --all' shows every fault", nameOrFile);
        return tl::unexpected(std::move(error));
    }
    return checked;
}

RunReference parseRunReference(const std::string& text)
{
    const auto hash = text.rfind('#');
    if (hash == std::string::npos || hash == 0 || fileExists(text)) return {text, {}};
    return {text.substr(0, hash), text.substr(hash + 1)};
}

} // namespace stagewright
