#include "app/launch/batch_script.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/launch/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

// What a container is to see: the job's folder, and the program with what was installed beside it.
std::vector<std::string> seenFolders(const BatchScript& script)
{
    std::vector<std::string> folders{script.folder};
    const std::filesystem::path program(script.python || script.command.empty() ? std::string()
                                                                                : script.command.front());
    // in a container /usr is its own
    if (const std::string prefix = program.parent_path().parent_path().string();
        program.is_absolute() && prefix != "/" && !prefix.starts_with("/usr"))
        folders.push_back(prefix);
    return folders;
}

BatchShape shapeOf(const BatchScript& script)
{
    BatchShape shape;
    shape.tasks = script.python ? script.python->tasks() : script.tasks;
    shape.nodes = std::max(1, script.nodes);
    shape.gpusOfNode = script.gpusOfNode;
    if (script.python && script.python->torchrun) shape.coresOfTask = script.python->perNode;
    return shape;
}

// What mpirun doesn't ask the queue for itself: the nodes, and the environment that goes with it.
std::string placesOfMpirun(const BatchScript& script)
{
    if (script.queue->hostFile.empty()) return {};
    std::string text = fmt::format(" --hostfile \"${}\"", script.queue->hostFile);
    for (const std::string& variable : script.environment)
        if (!variable.starts_with("OMPI_")) // which it passes on by itself
            text += fmt::format(" -x {}", variable.substr(0, variable.find('=')));
    return text;
}

// Words in front of a program, the user's variables in its script excepted.
Result<std::string> started(const BatchScript& script)
{
    const std::vector<std::string> folders = seenFolders(script);
    const bool slurm = script.queue == &slurmQueue();
    std::vector<SlurmOption> srun = script.srun;
    if (slurm)
        for (SlurmOption& option : pyxisOptions(script.container, folders, srun)) srun.push_back(std::move(option));
    const BatchShape shape = shapeOf(script);
    // srun starts one process too: the container is its option
    const bool launched = slurm ? shape.tasks > 0 || !srun.empty() || script.python.has_value()
                                : script.queue && (script.python ? shape.tasks > 1 : shape.tasks > 0);
    const bool mpi = shape.tasks > 0 && !script.python;
    std::string text;
    if (launched) {
        const bool own = (mpi || !slurm) && !script.launcher.empty() && script.launcher != "torchrun";
        const std::string launcher = own ? script.launcher : std::string(script.queue->launcher);
        STAGEWRIGHT_TRY(const auto words, launcherWords(launcher, {std::max(1, shape.tasks), script.nodes, mpi, srun}));
        text = shellCommand(words) + (launcher == "mpirun" ? placesOfMpirun(script) : std::string()) + " ";
    }
    if (!slurm && !script.container.empty() && !isApptainer(script.container))
        return fail(ErrorCode::Usage, fmt::format("--container {}: only Slurm's srun starts it", script.container),
                    "name a FILE.sif or docker://IMAGE for Apptainer, or add --slurm KEY=VALUE");
    for (const std::string& word : apptainerWords(script.container, folders, script.gpus))
        text += shellWord(word) + " ";
    return text + (script.python ? inQueue(*script.python, *script.queue) : shellCommand(script.command));
}

} // namespace

Result<std::string> toText(const BatchScript& script)
{
    STAGEWRIGHT_TRY(const auto command, started(script));
    const bool slurm = script.queue == &slurmQueue();
    std::string text = "#!/bin/sh\n";
    if (script.queue) {
        for (const std::string& line : script.queue->options(script, shapeOf(script)))
            text += fmt::format("{} {}\n", script.queue->directive, line);
        for (const std::string& line : script.directives) text += fmt::format("{} {}\n", script.queue->directive, line);
    }
    for (const std::string& line : script.about) text += fmt::format("# {}\n", line);
    if (!script.python)
        text += "# A recording of stagewright. Its steps, events and log are kept in this folder; `touch stop` ends it "
                "and keeps its steps.\n";
    text += fmt::format("cd {} || exit 1\n", shellWord(script.folder));
    if (slurm && !script.python) text += "echo \"$SLURM_JOB_ID\" >slurm\n";
    if (script.queue && !script.python)
        text += fmt::format("rm -f ended.json # of a start before, where {} queued it again\n", script.queue->title);
    if (script.queue && !slurm && !script.python)
        text += "trap : TERM INT USR2 # at its time limit the program ends first, then this script says how\n";
    if (script.queue && !script.setup.empty()) {
        text += "# your setup lines\n";
        for (const std::string& line : script.setup) text += line + "\n";
    }
    if (script.queue && script.tasks > 0 &&
        (script.launcher == "mpirun" || (script.launcher.empty() && script.queue->launcher == "mpirun")))
        text += "export NO_COLOR=1 # its processes have a terminal, and write to a file\n";
    text += exportLines(script.environment);
    if (script.python && script.queue) text += headLines(*script.python, *script.queue);
    text += command + " >>log 2>&1 </dev/null\n";
    text += "code=$?\n";
    if (script.about.empty()) // all that is in it is in the stream, which is what is fetched
        text += "case $code in 0|130) rm -f run.stagewright ;; esac # its steps are in steps.stream\n";
    if (!script.python) text += "printf '{\"code\": %d}\\n' \"$code\" >ended.part && mv ended.part ended.json\n";
    return text + "exit \"$code\"\n";
}

} // namespace stagewright
