#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/place_options.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/verbs/record.h"
#include "app/cli/verbs/torch_recording.h"
#include "app/launch/batch_script.h"
#include "app/launch/hosts/job_folder.h"
#include "app/launch/hosts/job_list.h"
#include "app/launch/job_script.h"
#include "app/launch/launcher.h"
#include "app/launch/mpi_start.h"
#include "app/launch/shell_words.h"
#include "engine/device/traits.h"
#include "engine/torch/torch_job.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/setup/keys.h"
#include "traces/export/torchtitan.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;

struct ScriptChoice : RecordChoice {
    std::string form; // "slurm"
    int nodes = 0;
    std::vector<std::string> directives;
    std::string claim = "stagewright";
};

// What a script says by itself.
constexpr auto notOfScripts =
    std::to_array<std::string_view>({"--host", "--detach", "--script-only", "--job", "--keep-trace"});

// The job that the script starts.
struct JobShape {
    std::string name;   // of the schedule
    std::string folder; // absolute; its last part is the job's name
    int ranks = 1;
    int nodes = 1;
    int perNode() const { return ranks / nodes; }
    bool gpus = false;
};

Result<void> fits(const ScriptChoice& options)
{
    const Setup& setup = options.setup;
    for (const std::string_view option : notOfScripts)
        if (setup.names(std::string(option)))
            return fail(ErrorCode::Usage, fmt::format("{}: a script is started by you, where its folder is", option),
                        "leave it out");
    const Queue* queue = findQueue(options.form);
    const bool slurm = queue == &slurmQueue();
    if (!options.directives.empty() && (!queue || slurm))
        return fail(ErrorCode::Usage, fmt::format("--directive is not for a script of {}", options.form),
                    slurm ? "write --slurm KEY=VALUE" : "leave it out");
    for (const std::string& line : options.directives)
        if (const std::string why = whyNotSent(line); !why.empty() || !line.starts_with('-'))
            return fail(ErrorCode::Usage,
                        fmt::format("--directive {}: {}", plainText(line, 100),
                                    why.empty() ? "an option begins with a dash" : why),
                        "write it as on the queue's command line, such as --directive='-l walltime=1:00:00'");
    if (!slurm && setup.launcher.starts_with("srun"))
        return fail(ErrorCode::Usage, fmt::format("--launcher {} is Slurm's", setup.launcher),
                    "leave it out, or write 'stagewright script slurm'");
    if (!slurm && (!setup.slurm.empty() || !setup.srun.empty()))
        return fail(ErrorCode::Usage, fmt::format("--slurm and --srun are not for a script of {}", options.form),
                    "leave them out, or write 'stagewright script slurm'");
    const bool own = !setup.torch() && !setup.titan();
    if (options.form == "torchrun" && own)
        return fail(ErrorCode::Usage, "torchrun starts PyTorch's ranks, and the engine is own",
                    "add --engine torch, or write 'stagewright script slurm'");
    // in a queue but Slurm's it starts a torchrun on each node
    if (!own && !setup.launcher.empty() && setup.launcher != "torchrun" && (!queue || slurm) &&
        !(slurm && setup.torch() && setup.launcher == "srun"))
        return fail(ErrorCode::Usage,
                    fmt::format("--launcher {} can't start PyTorch's ranks in a script", setup.launcher),
                    slurm ? "choose torchrun, or srun for --engine torch" : "leave it out: torchrun starts them");
    if (own && setup.launcher == "torchrun")
        return fail(ErrorCode::Usage, "--launcher torchrun starts PyTorch's ranks, and the engine is own",
                    "add --engine torch, or choose mpirun or srun");
    if (options.form == "kubernetes" && setup.container.empty())
        return fail(ErrorCode::Usage, "a pod needs an image", "name it with --container IMAGE");
    if (options.form == "kubernetes" && own && options.nodes > 1)
        return fail(ErrorCode::Usage, "the own engine's ranks meet by MPI, which several pods don't have",
                    "leave out --nodes: one pod runs all ranks; or use --engine torch");
    if (setup.titan() && setup.config.ends_with(".toml"))
        return fail(ErrorCode::Usage, "--config: a script starts a TorchTitan that takes configuration functions",
                    "name MODULE:FUNCTION; for TOML files use 'stagewright export --format torchtitan' and its run.sh");
    STAGEWRIGHT_CHECK(slurmOptions(setup));
    STAGEWRIGHT_CHECK(srunOptions(setup));
    return {};
}

Result<JobShape> shapeOf(const ScriptChoice& options, const RecordSettings& settings)
{
    JobShape shape;
    shape.name = settings.schedules.front()->given().name;
    shape.gpus = traitsOf(options.setup.backend).hasDevices;
    STAGEWRIGHT_TRY(shape.ranks, ranksOfEach(settings));
    if (options.setup.engine != "own" && settings.schedules.size() > 1)
        return fail(ErrorCode::Usage, "a script starts one job of PyTorch's, and there are several schedules",
                    "write one for each");
    shape.nodes = std::max(1, options.nodes);
    STAGEWRIGHT_TRY(const auto slurm, slurmOptions(options.setup));
    for (const auto& [key, value] : slurm)
        if (key == "nodes") {
            const int nodes = wholeOf<int>(value).value_or(0);
            if (nodes < 1 || (options.nodes > 0 && options.nodes != nodes))
                return fail(ErrorCode::Usage,
                            fmt::format("--slurm nodes={}: a script needs one number of nodes", value),
                            "give it by --nodes");
            shape.nodes = nodes;
        }
    if (shape.ranks % shape.nodes != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("{} ranks can't be spread evenly over {} nodes", shape.ranks, shape.nodes),
                    "choose another -p or --nodes");
    std::error_code problem;
    fs::path folder =
        fs::absolute(options.output.empty() ? shape.name + "-job" : options.output, problem).lexically_normal();
    if (folder.filename().empty()) folder = folder.parent_path();
    shape.folder = folder.string();
    const std::string name = folder.filename().string();
    constexpr std::size_t longestOfPods = 63;
    if (!isJobId(name) || (options.form == "kubernetes" && name.size() > longestOfPods))
        return fail(ErrorCode::Usage, fmt::format("-o {}: the folder's name is the job's", shape.folder),
                    "choose a short one of a to z, digits and dashes");
    return shape;
}

std::string whatItIs(const JobShape& shape, const std::string& what)
{
    return fmt::format("{} of {}: {} on {}, written by stagewright script", what, shape.name,
                       counted(shape.ranks, "rank"), counted(shape.nodes, "node"));
}

// Files of the folder by name.
using Files = std::vector<std::pair<std::string, std::string>>;

std::string howToStart(const Queue& queue, const JobShape& shape)
{
    return fmt::format("{} {}/job.sh", queue.submit, shape.folder);
}

// What every job of a queue has.
Result<BatchScript> scriptOf(const ScriptChoice& options, const JobShape& shape, const Queue* queue)
{
    BatchScript script;
    script.name = fs::path(shape.folder).filename().string();
    script.folder = shape.folder;
    script.queue = queue;
    script.nodes = queue ? shape.nodes : 0;
    script.gpusOfNode = shape.gpus && queue ? shape.perNode() : 0;
    script.gpus = shape.gpus;
    script.directives = options.directives;
    STAGEWRIGHT_TRY(script.options, slurmOptions(options.setup));
    STAGEWRIGHT_TRY(script.srun, srunOptions(options.setup));
    return script;
}

// A recording of the own engine: job.sh runs `stagewright record` in the folder, on all nodes or in a pod.
Result<Files> ownScript(const ScriptChoice& options, const JobShape& shape, TravelCall& call)
{
    const Setup& setup = options.setup;
    const Queue* queue = findQueue(options.form);
    const bool queued = queue != nullptr;
    const int processes = shape.ranks / std::max(1, setup.ranksPerProcess);
    const bool several = setup.processes || shape.nodes > 1;
    std::vector<std::string> leftOut{"--srun",   "--container", "--env",   "--interface",
                                     "--engine", "--nodes",     "--claim", "--directive"};
    if (several && queued) leftOut.insert(leftOut.end(), {"--processes", "--launcher"});
    STAGEWRIGHT_TRY(call, travelCall("record", options.typed, leftOut));
    STAGEWRIGHT_TRY(auto script, scriptOf(options, shape, queue));
    script.tasks = queued && several ? processes : 0;
    script.launcher = setup.launcher;
    script.container = queued ? setup.container : std::string();
    script.environment = rankEnvironment(setup);
    STAGEWRIGHT_TRY(const auto own, ownArguments());
    script.command = {queued ? own.front() : std::string("stagewright")};
    for (std::string word : call.arguments) {
        for (std::size_t i = 0; i < call.files.size(); ++i)
            if (const std::string place = fmt::format("{{file:{}}}", i); word.find(place) != std::string::npos)
                word.replace(word.find(place), place.size(), fmt::format("files/{}/{}", i, call.files[i].name));
        script.command.push_back(std::move(word));
    }
    for (const char* word : {"--progress=jsonl", "--job=."}) script.command.emplace_back(word);
    script.command.push_back(fmt::format("--output={}", jobfile::run));
    script.about = {whatItIs(shape, "A recording"),
                    fmt::format("start:  {}", queued ? howToStart(*queue, shape) : "kubectl apply -f job.yaml"),
                    fmt::format("fetch:  stagewright hosts fetch {} -o {}.stagewright   (hosts attach follows it; from "
                                "elsewhere HOST:{})",
                                shape.folder, script.name, shape.folder)};
    STAGEWRIGHT_TRY(auto text, toText(script));
    Files files{{"job.sh", std::move(text)}};
    if (queued) return files;
    PodJob pod;
    pod.name = script.name;
    pod.image = setup.container;
    pod.folder = shape.folder;
    pod.claim = options.claim;
    pod.about = script.about;
    pod.command = {"sh", "job.sh"};
    pod.gpus = shape.gpus ? shape.ranks : 0;
    files.emplace_back("job.yaml", toText(pod));
    return files;
}

// PyTorch's ranks: the driver of a job folder, or a TorchTitan job by a configuration function.
Result<Files> pythonScript(const ScriptChoice& options, const JobShape& shape, const RecordSettings& settings)
{
    const Setup& setup = options.setup;
    Files files;
    PythonRanks ranks;
    ranks.python = setup.python.empty() ? "python3" : setup.python;
    ranks.nodes = shape.nodes;
    ranks.perNode = shape.perNode();
    ranks.torchrun = setup.launcher != "srun";
    std::vector<std::string> environment{"OMP_NUM_THREADS=1", "USE_LIBUV=0"}; // as a rank of a recording
    std::string fetch = "stagewright import traces";
    if (setup.titan()) {
        STAGEWRIGHT_TRY(const auto config, titanConfig(setup.config));
        STAGEWRIGHT_TRY(files, torchTitanFolder(settings.schedules.front()->given(), "stagewright script"));
        ranks.program = {"-m", "torchtitan.train", "--module", "stagewright_job", "--config", "run"};
        environment.push_back("BASE=" + config);
        environment.push_back(fmt::format("STEPS={}", settings.steps));
        environment.push_back("PYTHONPATH=.");
        fetch = fmt::format("stagewright import outputs/profile_traces/iteration_{}", settings.steps);
    } else {
        ranks.program = {"driver.py", "."};
    }
    for (std::string& variable : rankEnvironment(setup)) environment.push_back(std::move(variable));
    const std::string name = fs::path(shape.folder).filename().string();
    std::vector<std::string> about{whatItIs(shape, setup.titan() ? "A TorchTitan job" : "A job of PyTorch")};
    const auto say = [&](const std::string& start) {
        about.push_back("start:  " + start);
        about.push_back(fmt::format("fetch:  cd {} && {} -o {}.stagewright", shape.folder, fetch, name));
        if (setup.interface.empty() && shape.nodes > 1)
            about.emplace_back("nodes with several networks: --interface NAME sets NCCL_SOCKET_IFNAME and "
                               "GLOO_SOCKET_IFNAME");
    };
    if (options.form == "kubernetes") {
        say("kubectl apply -f job.yaml");
        PodJob pod{name, setup.container, shape.folder, options.claim, about, environment, {}, shape.nodes};
        pod.command = torchrunWords(ranks, name, fmt::format("{}:{}", firstPod(name), ranks.port));
        pod.gpus = shape.gpus ? ranks.perNode : 0;
        pod.port = ranks.port;
        files.emplace_back("job.yaml", toText(pod));
    } else if (options.form == "torchrun") {
        say(shape.nodes == 1 ? fmt::format("{}/run.sh", shape.folder)
                             : fmt::format("{}/run.sh FIRST-NODE [PORT] on every node", shape.folder));
        std::erase_if(files, [](const auto& file) { return file.first == "run.sh"; }); // of one node
        files.emplace_back("run.sh",
                           toText(NodeScript{name, about, environment,
                                             apptainerWords(setup.container, {shape.folder}, shape.gpus), ranks}));
    } else {
        const Queue& queue = *findQueue(options.form);
        say(howToStart(queue, shape));
        STAGEWRIGHT_TRY(auto script, scriptOf(options, shape, &queue));
        script.launcher = setup.launcher;
        script.container = setup.container;
        script.environment = environment;
        script.about = about;
        script.python = ranks;
        STAGEWRIGHT_TRY(auto text, toText(script));
        files.emplace_back("job.sh", std::move(text));
    }
    return files;
}

Result<void> writeAll(const Files& files, const TravelCall& call, const std::string& folder)
{
    STAGEWRIGHT_CHECK(writeTorchTitanFolder(files, folder)); // scripts can be run
    for (std::size_t i = 0; i < call.files.size(); ++i) {
        const fs::path to = fs::path(folder) / "files" / std::to_string(i) / call.files[i].name;
        std::error_code problem;
        fs::create_directories(to.parent_path(), problem);
        if (!problem) fs::copy_file(call.files[i].path, to, problem);
        if (problem)
            return fail(ErrorCode::Failed, fmt::format("file {}: {}", to.string(), problem.message()),
                        "free some space, or choose another folder with -o");
    }
    return {};
}

Result<int> runScript(const ScriptChoice& options, Session& session)
{
    const Setup& setup = options.setup;
    STAGEWRIGHT_CHECK(engineHonours(setup));
    STAGEWRIGHT_CHECK(fits(options));
    STAGEWRIGHT_TRY(const auto settings, recordSettingsOf(options, session));
    STAGEWRIGHT_CHECK(haveLayers(settings, setup));
    STAGEWRIGHT_TRY(const auto shape, shapeOf(options, settings));
    TravelCall call;
    STAGEWRIGHT_TRY(const auto files,
                    setup.engine == "own" ? ownScript(options, shape, call) : pythonScript(options, shape, settings));
    STAGEWRIGHT_CHECK(writeAll(files, call, shape.folder));
    if (setup.torch()) {
        STAGEWRIGHT_TRY(const auto job, torchJobOf(settings, setup, settings.schedules.front()->given()));
        STAGEWRIGHT_CHECK(writeTorchJob(job, newestTorch, shape.folder));
    }
    const std::string& name = files.back().first;
    std::string about;
    for (const std::string_view line : split(files.back().second, "\n"))
        if (line.starts_with("# start:") || line.starts_with("# fetch:")) about += fmt::format("{}\n", line.substr(2));
    if (session.json)
        session.answer({{"folder", shape.folder},
                        {"script", shape.folder + "/" + name},
                        {"ranks", shape.ranks},
                        {"nodes", shape.nodes}});
    session.out(fmt::format("written: {}/{}\n{}", shape.folder, name, about));
    return ExitDone;
}

} // namespace

Command command_script()
{
    return {
        "script", "Write the batch files of a job on several nodes: for Slurm, PBS, LSF, Flux, torchrun, Kubernetes",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<ScriptChoice>();
            verb.value("FORM", &options->form, "slurm, pbs, lsf, flux, torchrun or kubernetes")
                .check(oneOf({"slurm", "pbs", "lsf", "flux", "torchrun", "kubernetes"}))
                .required();
            verb.value("-o,--output", &options->output,
                       "A new folder for the job, which all nodes see; its name is the job's [SCHEDULE-job]")
                .form("FOLDER");
            verb.value("--nodes", &options->nodes, "Nodes, or pods; ranks are spread evenly [1]")
                .form("N")
                .check(wholeNumber(1, 4096));
            verb.value("--claim", &options->claim, "kubernetes: the volume claim that has the folder [stagewright]")
                .form("NAME");
            verb.value("--directive", &options->directives,
                       "pbs, lsf, flux: an option of the queue's, such as --directive='-l walltime=1:00:00'; repeat it")
                .form("LINE")
                .each();
            addRecordOptions(verb, *options);
            verb.notes("The folder has the script, what the job reads, and later what it writes; the script says how "
                       "to start it and\nhow to fetch its run. It is plain text: edit it.\n"
                       "Examples: stagewright script slurm -s 1f1b -p 8 -m 16 --nodes 2 -o /shared/me/big\n"
                       "          stagewright script slurm -s zbv -p 8 --engine torch --backend cuda --nodes 2 "
                       "--interface ib0 --container nvcr.io/nvidia/pytorch:25.01-py3\n"
                       "          stagewright script pbs -s 1f1b -p 8 --nodes 2 --directive='-A project' "
                       "--directive='-l walltime=1:00:00'\n"
                       "          stagewright script torchrun -s 1f1b -p 8 --engine torchtitan --config "
                       "llama3:llama3_debugmodel --nodes 2\n"
                       "          stagewright script kubernetes -s 1f1b -p 8 --engine torch --container IMAGE "
                       "--nodes 2 --claim shared");
            return [options](Session& session) { return runScript(*options, session); };
        }};
}

} // namespace stagewright
