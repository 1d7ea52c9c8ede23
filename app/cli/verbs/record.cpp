#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/channel_options.h"
#include "app/cli/options/cost_options.h"
#include "app/cli/options/engine_options.h"
#include "app/cli/options/files.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/options.h"
#include "app/cli/options/place_options.h"
#include "app/cli/options/replica_options.h"
#include "app/cli/options/run_access.h"
#include "app/cli/options/training_options.h"
#include "app/cli/process_runs.h"
#include "app/cli/session.h"
#include "app/cli/verbs/recorded.h"
#include "app/cli/verbs/recording.h"
#include "app/cli/verbs/recording_elsewhere.h"
#include "app/cli/verbs/torch_recording.h"
#include "app/launch/hosts/job_folder.h"
#include "engine/device/traits.h"
#include "engine/transport/process_job.h"
#include "schedules/base/text.h"
#include "schedules/messages/messages.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"
#include "traces/store/run_file.h"

namespace stagewright {

namespace {

struct RecordChoice {
    ScheduleOptions schedule;
    std::string model;
    int microbatchSize = 4;
    int steps = 0; // 0: 300 for one schedule, 8 for several or under PyTorch
    int warmup = 1;
    bool keepWarmup = false;
    std::string clock = "auto";
    double comm = -1;
    std::string link;
    std::string data;
    TrainingChoice choice;
    std::int64_t seed = 1;
    double timeout = 120;
    std::string backend = "cpu";
    std::vector<int> stageLayers;
    std::vector<std::string> perturb;
    std::string memoryLimit;
    std::string rankMemory;
    RecomputeOptions recompute;
    ReplicaOptions replicas;
    ChannelOptions channels;
    ProcessOptions processes;
    EngineOptions engine;
    PlaceOptions place;
    std::string deviceDump;
    bool noTrace = false;
    std::string output;
};

bool hasCollectives(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [](const auto& list) {
        return std::any_of(list.begin(), list.end(), [](const Op& op) { return isCollective(op.kind); });
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
void noteUnused(const RecordChoice& options, const RecordSettings& settings, Session& session)
{
    std::vector<const Schedule*> schedules;
    for (const auto& schedule : settings.schedules) schedules.push_back(&schedule->given());
    noteUnusedLayers(options.choice, schedules, session);
    const auto most = *std::max_element(schedules.begin(), schedules.end(),
                                        [](const Schedule* a, const Schedule* b) { return a->ranks < b->ranks; });
    noteUnusedAlone(*most, {{"--comm", options.comm >= 0}, {"--link", !options.link.empty()}}, session);
    if (options.keepWarmup && options.warmup == 0)
        session.note("--keep-warmup is not used: there are no warm-up steps");
    if (options.noTrace && options.engine.engine == "own" && !traitsOf(options.backend).hasDevices)
        session.note(fmt::format("--no-trace is not used: backend {} has no GPU to trace", options.backend));
    if (options.processes.perProcess > 1 && !options.processes.processes && !settings.training.job &&
        !options.place.elsewhere())
        session.note("--ranks-per-process is not used: all ranks share this process; --processes starts several");
}

Result<RecordSettings> settingsOf(const RecordChoice& options, Session& session)
{
    RecordSettings settings;
    std::vector<std::string> names = options.schedule.schedules;
    if (names.empty()) names = {"1f1b"};
    auto model = parseWorkload(options.model);
    if (!model) return tl::unexpected(std::move(model.error()).with("--model"));
    ReplicaOptions replicated = options.replicas;
    replicated.layersOf = [&](int stages) { return layersOfStages(**model, stages, options.stageLayers); };
    std::vector<double> speeds;
    for (const std::string& name : names) {
        STAGEWRIGHT_TRY(const auto checked, chooseSchedule(name, options.schedule.shape, session));
        auto schedule = recomputed(checked->given(), options.recompute, session);
        if (!schedule) return tl::unexpected(std::move(schedule.error()).with(name));
        auto replicas =
            trainedReplicas(*schedule, replicated, options.microbatchSize, [&](int microbatches) -> Result<Schedule> {
                ShapeOptions shape = options.schedule.shape;
                shape.microbatches = microbatches;
                STAGEWRIGHT_TRY(auto one, chooseSchedule(name, shape, session));
                return recomputed(one->given(), options.recompute, session);
            });
        if (!replicas) return tl::unexpected(std::move(replicas.error()).with(name));
        settings.sharing.clear();
        addReplicaFacts(settings.sharing, *replicas);
        schedule = std::move(replicas->schedule);
        settings.training.sharding = replicas->sharing.sharding;
        settings.training.replicaSamples = std::move(replicas->sharing.samples);
        settings.training.cuts = std::move(replicas->sharing.cuts);
        speeds = std::move(replicas->sharing.speeds);
        auto chosen = chooseChannels(*schedule, isLowered(*schedule), options.channels, session);
        if (!chosen) return tl::unexpected(std::move(chosen.error()).with(name));
        settings.training.channels = chosen->channels;
        // the training, or PyTorch's job, lowers it; the rule says which collectives there are, but for shared state
        if (chosen->lowering) {
            settings.training.lowering = *chosen->lowering;
            if (hasCollectives(*schedule) && !sharesState(*schedule)) schedule = withoutCommunication(*schedule);
        }
        const std::string label = schedule->name;
        // again only where an option has changed its lists
        auto trained = CheckedSchedule::after(checked, std::move(*schedule));
        if (!trained) return tl::unexpected(std::move(trained.error()).with(label));
        settings.schedules.push_back(std::move(*trained));
    }
    int ranks = settings.schedules.front()->compute().ranks;
    for (const auto& schedule : settings.schedules) ranks = std::min(ranks, schedule->compute().ranks);
    STAGEWRIGHT_TRY(settings.perturbation, choosePerturbation(options.perturb, ranks));
    addSpeeds(settings.perturbation, speeds);
    if (!speeds.empty()) settings.speeds = options.replicas.speed;
    TrainingOptions& training = settings.training;
    training.workload = *model;
    training.microbatchSize = options.microbatchSize;
    training.stageLayers = options.stageLayers;
    training.clock = options.clock == "wall"      ? ClockMode::Wall
                     : options.clock == "virtual" ? ClockMode::Virtual
                                                  : ClockMode::Auto;
    STAGEWRIGHT_CHECK(applyTo(options.choice, training));
    training.seed = static_cast<std::uint64_t>(options.seed);
    training.backend = options.backend;
    if (options.engine.engine == "own") STAGEWRIGHT_CHECK(checkDeviceUses(options.choice, options.backend));
    training.timeoutSeconds = options.timeout;
    if (!options.link.empty()) {
        auto link = parseLink(options.link);
        if (!link) return tl::unexpected(std::move(link.error()).with("--link"));
        training.links.all = *link;
    }
    settings.comm = options.comm;
    if (!options.data.empty()) {
        auto fed = training.workload->withData(options.data);
        if (!fed) return tl::unexpected(std::move(fed.error()).with("--data"));
        training.workload = std::move(*fed);
    }
    for (const auto& checked : settings.schedules) {
        const Schedule& schedule = checked->given();
        STAGEWRIGHT_TRY(auto limits, readRankMemory(options.rankMemory, schedule));
        if (!limits.empty() && schedule.ranks != settings.schedules.front()->given().ranks)
            return fail(ErrorCode::Usage, "--rank-memory: the schedules have different numbers of ranks",
                        "record them one after the other");
        training.rankMemory = std::move(limits);
    }
    STAGEWRIGHT_CHECK(withinMemory(options.memoryLimit, settings));
    const bool few = settings.schedules.size() > 1 || options.engine.engine != "own";
    settings.steps = options.steps > 0 ? options.steps : few ? 8 : 300;
    settings.warmup = options.warmup;
    settings.keepWarmup = options.keepWarmup;
    STAGEWRIGHT_CHECK(disturbsRealRun(settings.perturbation, settings.warmup + settings.steps));
    settings.traceDevices = !options.noTrace;
    settings.deviceDump = options.deviceDump;
    if (options.noTrace && !options.deviceDump.empty())
        return fail(ErrorCode::Usage, "--no-trace and --keep-trace can't be combined", "choose one of them");
    if (!session.jobFolder.empty()) settings.stream = session.jobFolder + "/" + jobfile::steps;
    settings.file = options.output.empty() ? defaultOutput(names) : options.output;
    return settings;
}

Result<int> runRecord(const RecordChoice& options, const std::shared_ptr<ProcessJob>& job, Session& session)
{
    STAGEWRIGHT_TRY(auto settings, settingsOf(options, session));
    settings.training.job = job;
    noteUnused(options, settings, session);
    if (job && job->index() != 0) {
        STAGEWRIGHT_CHECK(serveRecording(settings, session));
        return ExitDone;
    }
    STAGEWRIGHT_TRY(auto lowering, givenLowering(options.channels.lower));
    if (options.place.elsewhere() && !options.place.followed())
        return startElsewhere(settings, options.place, options.processes, session);
    STAGEWRIGHT_TRY(auto recording,
                    options.place.elsewhere() ? recordElsewhere(settings, options.place, options.processes, session)
                    : options.engine.titan()  ? recordWithTitan(settings, options.engine, session)
                    : options.engine.torch()  ? recordWithTorch(settings, options.engine, lowering, session)
                                              : recordRuns(settings, session));
    return endRecording(settings.file, std::move(recording), session);
}

// What the other end of a host or a batch script gives as --job: events and the stop file are there. PyTorch has a
// folder of its own in it.
Result<void> useJobFolder(EngineOptions& engine, Session& session)
{
    if (engine.job.empty()) return {};
    const bool prepared = fileExists(engine.job + "/job.sh");
    const bool own = engine.engine == "own";
    if (!own && !prepared) return {};
    std::error_code problem;
    std::filesystem::create_directories(engine.job, problem);
    if (problem)
        return fail(ErrorCode::Unreadable, fmt::format("--job {}: {}", engine.job, problem.message()),
                    "name a folder that can be made and written");
    session.jobFolder = engine.job;
    if (!own) engine.job += "/pytorch";
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
    if (options.place.elsewhere()) return runRecord(options, nullptr, session);
    const ProcessOptions& wish = options.processes;
    const auto launched = options.engine.engine != "own" ? std::nullopt : launchedProcesses();
    if (launched && !options.schedule.shape.ranksGiven) options.schedule.shape.ranks = *launched * wish.perProcess;
    if (launched || !wish.processes)
        return inProcesses(session,
                           [&](const std::shared_ptr<ProcessJob>& job) { return runRecord(options, job, session); });
    session.silent = true; // the process that leads says it
    auto chosen = settingsOf(options, session);
    session.silent = false;
    if (!chosen) return tl::unexpected(std::move(chosen.error()));
    const RecordSettings settings = std::move(*chosen);
    auto ranks = ranksOfEach(settings);
    if (!ranks) return ranks;
    if (*ranks % wish.perProcess != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("{} ranks can't be spread evenly, {} a process", *ranks, wish.perProcess),
                    "choose another --ranks-per-process");
    STAGEWRIGHT_TRY(auto end, startProcesses(*ranks / wish.perProcess, options.timeout, session));
    if (!end.standing.empty()) noteOn(settings.file, end.standing, session);
    return end.code;
}

} // namespace

Command command_record()
{
    return {
        "record", "Train for real with one or more schedules, record each as a run, and compare them",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<RecordChoice>();
            addScheduleOptions(verb, options->schedule,
                               "Schedules, by name or from CSVs; several share seed and data and take turns [1f1b]");
            verb.value("--steps", &options->steps, "Measured steps [300; 8 for several schedules or under PyTorch]")
                .form("N")
                .check(wholeNumber(1, 100'000'000));
            verb.value("--warmup", &options->warmup, "Steps before the measured ones, excluded from the figures [1]")
                .form("N")
                .check(wholeNumber(0, 1'000'000));
            verb.flag("--keep-warmup", options->keepWarmup, "Also keep runs stopped before their first measured step");
            verb.value("--model", &options->model,
                       "The model; vocab makes the head heavier [layers=8,hidden=128,heads=4,seq=128,vocab=256]")
                .form("KEY=N,…");
            verb.value("--microbatch-size", &options->microbatchSize, "Samples per microbatch [4]")
                .form("B")
                .check(wholeNumber(1, 65'536));
            verb.value("--stage-layers", &options->stageLayers,
                       "Layers of each stage, such as 3,2,2,1 [balanced by cost]")
                .form("N,N…")
                .commas()
                .each()
                .check(wholeNumber(0, 65'536));
            verb.value("--clock", &options->clock,
                       "wall; virtual: projected for as many devices as ranks; auto: wall if there are enough cores "
                       "[auto]")
                .form("CLOCK")
                .check(oneOf({"auto", "wall", "virtual"}));
            addCommOptions(verb, options->comm, options->link);
            addChannelOptions(verb, options->channels);
            addPerturbOption(verb, options->perturb);
            addMemoryOptions(verb, options->memoryLimit, options->rankMemory);
            addRecomputeOptions(verb, options->recompute);
            addReplicaOptions(verb, options->replicas);
            addTrainingOptions(verb, options->choice);
            verb.value("--data", &options->data, "A file to train on; its bytes are the tokens [built-in text]")
                .form("FILE");
            verb.value("--seed", &options->seed, "Seed of weights and data [1]")
                .form("N")
                .check(wholeNumber(0, 4'000'000'000));
            verb.value("--backend", &options->backend, "Device to train on [cpu]").form("NAME");
            addProcessOptions(verb, options->processes);
            addEngineOptions(verb, options->engine);
            addPlaceOptions(verb, options->place);
            verb.flag("--no-trace", options->noTrace, "Don't trace GPU kernels and copies with CUPTI");
            verb.value("--keep-trace", &options->deviceDump,
                       "Also keep CUPTI's raw records of the GPUs, to read them on a computer without a GPU")
                .form("FILE")
                .replaces();
            verb.value("--timeout", &options->timeout, "Give up after this long without progress, in seconds [120]")
                .form("S")
                .check(realNumber(0.1, 1e6));
            verb.value("-o,--output", &options->output,
                       "Run file; runs are appended if it exists [run-<schedule>.stagewright]")
                .form("FILE");
            verb.notes("Ctrl+C stops at once and keeps the runs with a measured step; a second one kills.\n"
                       "Examples: stagewright record -s gpipe,1f1b,zb-h1 -p 4 -m 8 -o demo.stagewright\n"
                       "          stagewright record -s mine.csv --steps 20\n"
                       "          stagewright record -s zbv -p 2 -m 4 --engine torch --python ~/venv/bin/python3\n"
                       "          stagewright record -s 1f1b -p 8 --host node1 --backend cuda\n"
                       "          stagewright record -s 1f1b -p 16 --host login --processes --slurm nodes=2 --slurm "
                       "time=1:00:00");
            return [options](Session& session) -> Result<int> {
                STAGEWRIGHT_CHECK(engineHonours(options->engine));
                STAGEWRIGHT_CHECK(placeHonours(options->place, options->engine.given));
                STAGEWRIGHT_CHECK(useJobFolder(options->engine, session));
                return runRecordAnywhere(*options, session);
            };
        },
        true, true};
}

} // namespace stagewright
