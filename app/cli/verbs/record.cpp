#include "app/cli/verbs/record.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/place_options.h"
#include "app/cli/options/run_access.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/options/training_options.h"
#include "app/cli/process_runs.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/verbs/recorded.h"
#include "app/cli/verbs/recording.h"
#include "app/cli/verbs/recording_elsewhere.h"
#include "app/cli/verbs/torch_recording.h"
#include "app/launch/hosts/job_folder.h"
#include "app/launch/launcher.h"
#include "app/launch/slurm/slurm_queue.h"
#include "engine/device/backends.h"
#include "engine/device/traits.h"
#include "engine/saved/saved_training.h"
#include "engine/transport/process_job.h"
#include "schedules/base/text.h"
#include "schedules/messages/messages.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

bool hasKind(const Schedule& schedule, bool (*of)(OpKind kind))
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [of](const auto& list) {
        return std::any_of(list.begin(), list.end(), [of](const Op& op) { return of(op.kind); });
    });
}

std::string defaultOutput(const std::vector<std::string>& names)
{
    std::string text = "run-";
    for (const std::string& name : names) {
        std::string base = name.substr(name.rfind('/') + 1);
        if (base.ends_with(".csv")) base.resize(base.size() - 4);
        text += (text == "run-" ? "" : "+") + base;
    }
    return text + ".stagewright";
}

// The peak that the model's shape gives each rank, against the limit: an order that needs more is refused.
Result<void> withinMemory(const std::string& limit, RecordSettings& settings)
{
    settings.memoryLimit = limit;
    if (limit.empty()) return {};
    const TrainingOptions& training = settings.training;
    for (const auto& schedule : settings.schedules) {
        STAGEWRIGHT_TRY(auto held, checkMemoryLimit(limit, schedule->given(), training));
        settings.memoryLimits.push_back(std::move(held));
    }
    return {};
}

// What this recording has no use for.
void noteUnused(const Setup& setup, const RecordSettings& settings, Session& session)
{
    std::vector<const Schedule*> schedules;
    for (const auto& schedule : settings.schedules) schedules.push_back(&schedule->given());
    noteUnusedLayers(setup, schedules, session);
    const auto most = *std::max_element(schedules.begin(), schedules.end(),
                                        [](const Schedule* a, const Schedule* b) { return a->ranks < b->ranks; });
    noteUnusedAlone(
        *most, {{"--comm", setup.comm >= 0}, {"--link", !setup.link.empty()}, {"--cluster", !setup.cluster.empty()}},
        sourcesOf(session));
    if (setup.keepWarmup && setup.warmup == 0) session.note("--keep-warmup is not used: there are no warm-up steps");
    if (setup.noTrace && setup.engine == "own" && !traitsOf(setup.backend).hasDevices)
        session.note(fmt::format("--no-trace is not used: backend {} has no GPU to trace", setup.backend));
    const bool moves = std::any_of(schedules.begin(), schedules.end(),
                                   [](const Schedule* schedule) { return hasKind(*schedule, isCopy); });
    const Copies& copies = settings.training.links.copies;
    if (moves)
        session.note(copies.known() || copies.latency > 0
                         ? "activations are copied to the host for real, and take as long as --copies says (emulated)"
                         : "activations are copied to the host for real, as fast as this computer's memory is");
    for (const auto& [option, given] :
         {std::pair("--copies", !setup.copies.empty()), std::pair("--host-memory", !setup.hostMemory.empty())})
        if (given && !moves) session.note(fmt::format("{} is not used: no activation is offloaded", option));
    if (setup.names("--keep-checkpoints") && setup.checkpointEvery == 0)
        session.note("--keep-checkpoints is not used: --checkpoint-every says when one is saved");
    if (setup.checkpointEvery > settings.warmup + settings.steps)
        session.note(fmt::format("--checkpoint-every is not used: the recording ends after {}",
                                 plural(settings.warmup + settings.steps, "step")));
    if (setup.ranksPerProcess > 1 && !setup.processes && !settings.training.job && !setup.elsewhere())
        session.note("--ranks-per-process is not used: all ranks share this process; --processes starts several");
}

// A checkpoint is of one training.
Result<void> chooseCheckpoints(const Setup& setup, RecordSettings& settings)
{
    settings.checkpointEvery = setup.checkpointEvery;
    settings.keepCheckpoints = setup.keepCheckpoints;
    if (setup.checkpointEvery == 0 && setup.resume.empty()) return {};
    if (settings.training.optimizer.kind == OptimizerKind::Kfac)
        return fail(ErrorCode::Usage, "a checkpoint does not have K-FAC's factors",
                    "leave --checkpoint-every and --resume out, or train with --optimizer adamw");
    if (settings.schedules.size() > 1)
        return fail(ErrorCode::Usage,
                    fmt::format("{}: {} take turns, and a checkpoint is of one training",
                                setup.resume.empty() ? "--checkpoint-every" : "--resume",
                                plural(static_cast<long long>(settings.schedules.size()), "schedule")),
                    "record them one after the other");
    if (setup.resume.empty()) return {};
    auto file = SavedFile::open(setup.resume);
    if (!file) return tl::unexpected(std::move(file.error()).with("--resume"));
    const std::string* products = file->fact("products"); // bits depend on who multiplies
    if (products != nullptr && setup.blas.empty() && setup.backend == "cpu" && setup.precision != "bf16") {
        DeviceOptions same = settings.training.device;
        same.blas = *products;
        if (makeBackend(setup.backend, same)) settings.training.device = same;
    }
    settings.training.resume = std::make_shared<const SavedFile>(std::move(*file));
    return {};
}

} // namespace

Result<RecordSettings> recordSettingsOf(const RecordChoice& options, Session& session)
{
    const Setup& setup = options.setup;
    const SetupSources sources = sourcesOf(session);
    RecordSettings settings;
    std::vector<std::string> names = setup.schedules;
    if (names.empty()) names = {"1f1b"};
    auto model = parseWorkload(setup.model);
    if (!model) return tl::unexpected(std::move(model.error()).with("--model"));
    const auto layersOf = [&](int stages) { return layersOfStages(**model, stages, setup.stageLayers); };
    std::vector<double> speeds;
    ReadyOrder order;
    if (!setup.order.empty()) {
        STAGEWRIGHT_TRY(order, parseReadyOrder(setup.order));
    }
    settings.training.order = order;
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(const auto checked, chooseSchedule(name, setup, sources));
        auto state = trainedLists(checked->given(), name, setup, sources, layersOf);
        if (!state) return tl::unexpected(std::move(state.error()).with(name));
        settings.sharing = factsOf(*state, SharedBy::Training);
        Schedule schedule = std::move(state->schedule);
        settings.training.sharding = state->sharding;
        settings.training.replicaSamples = std::move(state->samples);
        settings.training.cuts = std::move(state->cuts);
        speeds = std::move(state->speeds);
        auto chosen = chooseChannels(schedule, isLowered(schedule), setup, sources);
        if (!chosen) return tl::unexpected(std::move(chosen.error()).with(name));
        settings.training.channels = chosen->channels;
        // the training, or PyTorch's job, lowers it; the rule says which collectives there are, but for shared state
        if (chosen->lowering) {
            settings.training.lowering = *chosen->lowering;
            if (hasKind(schedule, isCollective) && !sharesState(schedule)) schedule = withoutCommunication(schedule);
        }
        if (order.by != ReadyOrder::By::List) schedule.name += " order=" + toText(order);
        const std::string label = schedule.name;
        // again only where an option has changed its lists
        auto trained = CheckedSchedule::after(checked, std::move(schedule));
        if (!trained) return tl::unexpected(std::move(trained.error()).with(label));
        settings.schedules.push_back(std::move(*trained));
    }
    if (setup.cycle) {
        settings.cycles.push_back(std::exchange(settings.schedules, {settings.schedules.front()}));
        if (!setup.fill.empty())
            return fail(ErrorCode::Usage, "--fill makes a cycle, and --cycle gives one", "leave out either");
    }
    if (!setup.fill.empty()) {
        STAGEWRIGHT_TRY(settings.fill, parseFill(setup.fill));
        if (settings.fill.any) settings.fillText = setup.fill;
        if (settings.fill.step != 1)
            return fail(ErrorCode::Usage, "--fill: record runs every step of the cycle", "leave out :step");
    }
    int ranks = settings.schedules.front()->compute().ranks;
    for (const auto& schedule : settings.schedules) ranks = std::min(ranks, schedule->compute().ranks);
    STAGEWRIGHT_TRY(settings.perturbation, choosePerturbation(setup.perturb, ranks));
    addSpeeds(settings.perturbation, speeds);
    if (!speeds.empty()) settings.speeds = setup.speed;
    TrainingOptions& training = settings.training;
    training.workload = *model;
    STAGEWRIGHT_CHECK(applyTo(setup, training));
    const auto widest =
        std::max_element(settings.schedules.begin(), settings.schedules.end(),
                         [](const auto& a, const auto& b) { return a->given().ranks < b->given().ranks; });
    STAGEWRIGHT_CHECK(applyCluster(setup, (*widest)->given(), training, session));
    settings.cluster = setup.cluster;
    training.stageLayers = setup.stageLayers;
    training.backend = setup.backend;
    if (setup.engine == "own") STAGEWRIGHT_CHECK(checkDeviceUses(setup, setup.backend));
    training.timeoutSeconds = setup.timeout;
    settings.comm = setup.comm;
    if (!setup.data.empty()) {
        auto fed = training.workload->withData(setup.data);
        if (!fed) return tl::unexpected(std::move(fed.error()).with("--data"));
        training.workload = std::move(*fed);
    }
    for (const auto& checked : settings.schedules) {
        const Schedule& schedule = checked->given();
        STAGEWRIGHT_TRY(auto limits, readRankMemory(setup.rankMemory, schedule));
        if (!limits.empty() && schedule.ranks != settings.schedules.front()->given().ranks)
            return fail(ErrorCode::Usage, "--rank-memory: the schedules have different numbers of ranks",
                        "record them one after the other");
        training.rankMemory = std::move(limits);
        STAGEWRIGHT_TRY(training.hostMemory, readRankMemory(setup.hostMemory, schedule, "--host-memory"));
    }
    settings.rankMemory = setup.rankMemory;
    STAGEWRIGHT_CHECK(withinMemory(setup.memoryLimit, settings));
    const bool few = settings.schedules.size() > 1 || setup.engine != "own";
    settings.steps = setup.steps > 0 ? setup.steps : few ? 8 : 300;
    settings.warmup = setup.warmup;
    settings.tracedSteps = setup.traceSteps > 0 ? setup.traceSteps : settings.steps;
    if (settings.tracedSteps > settings.steps)
        return fail(
            ErrorCode::Usage,
            fmt::format("--trace-steps {}: only {} are measured", setup.traceSteps, plural(settings.steps, "step")),
            "give fewer, or more --steps");
    settings.keepWarmup = setup.keepWarmup;
    STAGEWRIGHT_CHECK(chooseCheckpoints(setup, settings));
    const int before = training.resume ? training.resume->step() : 0; // steps are those of the whole training
    STAGEWRIGHT_CHECK(disturbsRealRun(settings.perturbation, before + settings.warmup + settings.steps));
    settings.traceDevices = !setup.noTrace;
    settings.deviceDump = setup.keepTrace;
    if (setup.noTrace && !setup.keepTrace.empty())
        return fail(ErrorCode::Usage, "--no-trace and --keep-trace can't be combined", "choose one of them");
    if (!session.jobFolder.empty()) settings.stream = session.jobFolder + "/" + jobfile::steps;
    settings.file = options.output.empty() ? defaultOutput(names) : options.output;
    return settings;
}

Result<void> haveLayers(const RecordSettings& settings, const Setup& setup)
{
    if (setup.titan() || !setup.modelFile.empty()) return {}; // a model of the user's
    for (const auto& checked : settings.schedules)
        STAGEWRIGHT_CHECK(
            slicesOf(*settings.training.workload, checked->given().stages, settings.training.stageLayers));
    return {};
}

namespace {

Result<int> runRecord(const RecordChoice& options, const std::shared_ptr<ProcessJob>& job, Session& session)
{
    const Setup& setup = options.setup;
    STAGEWRIGHT_TRY(auto settings, recordSettingsOf(options, session));
    settings.training.job = job;
    if (settings.fill.any && (job || setup.processes))
        return fail(ErrorCode::Usage, "--fill: each process would measure and fill for itself",
                    "run the ranks as threads, or give the lists with --cycle");
    if (settings.fill.any && settings.training.optimizer.kind != OptimizerKind::Kfac)
        return fail(ErrorCode::Usage, "--fill: the work in the gaps is K-FAC's", "give --optimizer kfac with it");
    noteUnused(setup, settings, session);
    if (setup.elsewhere()) STAGEWRIGHT_CHECK(haveLayers(settings, setup));
    if (job && job->index() != 0) {
        STAGEWRIGHT_CHECK(serveRecording(settings, session));
        return ExitDone;
    }
    if (setup.scriptOnly || (setup.elsewhere() && setup.detach))
        return startElsewhere(settings, setup, options.typed, session);
    STAGEWRIGHT_TRY(auto recording, setup.elsewhere() ? recordElsewhere(settings, setup, options.typed, session)
                                    : setup.titan()   ? recordWithTitan(settings, setup, session)
                                    : setup.torch()   ? recordWithTorch(settings, setup, session)
                                                      : recordRuns(settings, session));
    return endRecording(settings.file, std::move(recording), session);
}

// What the other end of a host or a batch script gives as --job: events and the stop file are there. PyTorch has a
// folder of its own in it.
Result<void> useJobFolder(Setup& setup, Session& session)
{
    if (setup.job.empty()) return {};
    const bool prepared = fileExists(setup.job + "/job.sh");
    const bool own = setup.engine == "own";
    if (!own && !prepared) return {};
    std::error_code problem;
    std::filesystem::create_directories(setup.job, problem);
    if (problem)
        return fail(ErrorCode::Unreadable, fmt::format("--job {}: {}", setup.job, problem.message()),
                    "name a folder that can be made and written");
    session.jobFolder = setup.job;
    if (!own) setup.job += slurmRestarts() > 0 ? fmt::format("/pytorch-{}", slurmRestarts() + 1) : "/pytorch";
    return {};
}

// What ranks left behind belongs to the run that they could not complete: the newest one that is not.
void noteOn(const std::string& path, const std::string& text, Session& session)
{
    auto file = openRunFile(path, OpenMode::Write);
    if (!file) return; // it was not even made
    const auto infos = (*file)->runs();
    if (!infos) return;
    const auto last = std::find_if(infos->rbegin(), infos->rend(),
                                   [](const RunInfo& info) { return info.state == RunState::Interrupted; });
    if (last == infos->rend()) return;
    std::string line;
    for (const std::string_view part : split(text, "\n"))
        if (!part.empty()) line += (line.empty() ? "" : "; ") + std::string(part.substr(part.find_first_not_of(' ')));
    if (auto noted = (*file)->annotate(last->id, line); !noted) session.warn(noted.error().message);
}

// Ranks are processes on request, or where mpirun or srun started the program; else threads.
Result<int> runRecordAnywhere(const RecordChoice& given, Session& session)
{
    RecordChoice options = given;
    Setup& setup = options.setup;
    if (setup.elsewhere()) return runRecord(options, nullptr, session);
    const auto launched = setup.engine != "own" ? std::nullopt : launchedProcesses();
    if (launched && !setup.names("--ranks")) setup.ranks = *launched * setup.ranksPerProcess;
    if (launched || !setup.processes)
        return inProcesses(session,
                           [&](const std::shared_ptr<ProcessJob>& job) { return runRecord(options, job, session); });
    session.silent = true; // the process that leads says it
    auto chosen = recordSettingsOf(options, session);
    session.silent = false;
    if (!chosen) return tl::unexpected(std::move(chosen.error()));
    const RecordSettings settings = std::move(*chosen);
    auto ranks = ranksOfEach(settings);
    if (!ranks) return ranks;
    if (*ranks % setup.ranksPerProcess != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("{} ranks can't be spread evenly, {} a process", *ranks, setup.ranksPerProcess),
                    "choose another --ranks-per-process");
    const int processes = *ranks / setup.ranksPerProcess;
    STAGEWRIGHT_TRY(auto srun, srunOptions(setup));
    STAGEWRIGHT_TRY(const auto launcher, launcherWords(setup.launcher, {processes, 0, true, std::move(srun)}));
    STAGEWRIGHT_TRY(auto end, startProcesses(processes, launcher, setup.timeout, session));
    if (!end.standing.empty()) noteOn(settings.file, end.standing, session);
    return end.code;
}

} // namespace

void addRecordOptions(OptionSet& verb, RecordChoice& options)
{
    options.setup.backend = "cpu";
    addSetupOptions(
        verb, options.setup, SetupRecord,
        {{"--schedule", "Schedules, by name or from CSVs; several share seed and data and take turns [1f1b]"},
         {"--stage-layers", "Layers of each stage, such as 3,2,2,1 [balanced by cost]"},
         {"--seed", "Seed of weights and data [1]"}});
    verb.typed(options.typed);
}

Command command_record()
{
    return {"record", "Train for real with one or more schedules, record each as a run, and compare them",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<RecordChoice>();
                addRecordOptions(verb, *options);
                verb.value("-o,--output", &options->output,
                           "Run file; runs are appended if it exists [run-<schedule>.stagewright]")
                    .form("FILE");
                verb.notes(
                    "Ctrl+C stops at once and keeps the runs with a measured step; a second one kills.\n"
                    "Examples: stagewright record -s gpipe,1f1b,zb-h1 -p 4 -m 8 -o demo.stagewright\n"
                    "          stagewright record -s mine.csv --steps 20\n"
                    "          stagewright record -s zbv -p 2 -m 4 --engine torch --python ~/venv/bin/python3\n"
                    "          stagewright record -s 1f1b -p 8 --host node1 --backend cuda\n"
                    "          stagewright record -s 1f1b -p 16 --host login --processes --slurm nodes=2 --slurm "
                    "time=1:00:00");
                return [options](Session& session) -> Result<int> {
                    STAGEWRIGHT_CHECK(engineHonours(options->setup));
                    STAGEWRIGHT_CHECK(placeHonours(options->setup));
                    STAGEWRIGHT_CHECK(useJobFolder(options->setup, session));
                    if (!options->setup.elsewhere())
                        for (const std::string& variable : rankEnvironment(options->setup)) {
                            const KeyValue pair = keyValueOf(variable);
                            ::setenv(std::string(pair.key).c_str(), std::string(*pair.value).c_str(), 1);
                        }
                    return runRecordAnywhere(*options, session);
                };
            },
            true, true};
}

} // namespace stagewright
