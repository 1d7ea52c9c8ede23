#include "app/launch/slurm/slurm_script.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "app/launch/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr std::size_t longestValue = 1000;
// What the job sets itself, or what would make another program of it.
constexpr auto ofSbatch =
    std::to_array<std::string_view>({"output", "error", "chdir", "wrap", "job-name", "open-mode", "array", "wait",
                                     "parsable", "test-only", "help", "version", "usage"});
constexpr auto ofSrun = std::to_array<std::string_view>({"output",
                                                         "error",
                                                         "input",
                                                         "chdir",
                                                         "job-name",
                                                         "open-mode",
                                                         "ntasks",
                                                         "nodes",
                                                         "nodelist",
                                                         "overlap",
                                                         "kill-on-bad-exit",
                                                         "unbuffered",
                                                         "quiet",
                                                         "label",
                                                         "pty",
                                                         "multi-prog",
                                                         "jobid",
                                                         "test-only",
                                                         "help",
                                                         "version",
                                                         "usage"});

// sbatch reads #SBATCH lines itself, with quotes as a shell's, and no expansion.
std::string batchWord(const std::string& value)
{
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
        return c > ' ' && c != '"' && c != '\'' && c != '\\' && c != '#' && c != '$' && c != '`';
    });
    return plain ? value : shellWord(value);
}

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

std::string directives(const BatchScript& script)
{
    std::string text;
    const auto add = [&](const std::string& key, const std::string& value) {
        text += value.empty() ? fmt::format("#SBATCH --{}\n", key)
                              : fmt::format("#SBATCH --{}={}\n", key, batchWord(value));
    };
    add("job-name", script.name);
    add("output", script.folder + "/slurm.log");
    add("open-mode", "append"); // it says why the job was queued again
    const auto unlessGiven = [&](const char* key, int value) {
        if (value > 0 && !hasSlurmOption(script.options, key)) add(key, std::to_string(value));
    };
    unlessGiven("nodes", script.nodes);
    const int tasks = script.python ? script.python->tasks() : script.tasks;
    unlessGiven("ntasks", tasks);
    if (script.nodes > 0) unlessGiven("ntasks-per-node", tasks / script.nodes);
    for (const auto& [key, value] : script.options) add(key, value);
    return text;
}

// Words in front of a program, the user's variables in its script excepted.
Result<std::string> started(const BatchScript& script)
{
    const std::vector<std::string> folders = seenFolders(script);
    std::vector<SlurmOption> srun = script.srun;
    for (SlurmOption& option : pyxisOptions(script.container, folders, srun)) srun.push_back(std::move(option));
    const int tasks = script.python ? script.python->tasks() : script.tasks;
    std::string text;
    if (script.queued && (tasks > 0 || !srun.empty() || script.python)) {
        const bool mpi = tasks > 0 && !script.python;
        const std::string launcher = mpi && !script.launcher.empty() ? script.launcher : "srun";
        STAGEWRIGHT_TRY(const auto words, launcherWords(launcher, {std::max(1, tasks), script.nodes, mpi, srun}));
        text = shellCommand(words) + " ";
    } else if (!script.container.empty() && !isApptainer(script.container)) {
        return fail(ErrorCode::Usage, fmt::format("--container {}: only Slurm's srun starts it", script.container),
                    "name a FILE.sif or docker://IMAGE for Apptainer, or add --slurm KEY=VALUE");
    }
    for (const std::string& word : apptainerWords(script.container, folders, script.gpus))
        text += shellWord(word) + " ";
    return text + (script.python ? inSlurm(*script.python) : shellCommand(script.command));
}

} // namespace

Result<SlurmOption> parseSlurmOption(const std::string& text, SlurmProgram of)
{
    const bool srun = of == SlurmProgram::Srun;
    const std::string option = srun ? "--srun" : "--slurm";
    const KeyValue parts = keyValueOf(text);
    const std::string key(parts.key);
    const bool named = !key.empty() && key.front() != '-' &&
                       std::all_of(key.begin(), key.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
    if (!named)
        return fail(ErrorCode::Usage,
                    fmt::format("{} {}: '{}' can't be an option of {}", option, plainText(text, 100),
                                plainText(key, 100), srun ? "srun" : "sbatch"),
                    srun ? "write a long option without dashes, such as container-image=FILE or mpi=pmi2"
                         : "write a long option without dashes, such as nodes=2 or partition=gpu");
    const auto isOwn = [&](const auto& own) { return std::find(own.begin(), own.end(), key) != own.end(); };
    if (srun ? isOwn(ofSrun) : isOwn(ofSbatch))
        return fail(ErrorCode::Usage, fmt::format("{} {}: the job sets it itself", option, key),
                    "leave it out; --script-only writes a script to edit");
    const std::string value(parts.value.value_or(""));
    if (const std::string why = whyNotSent(value); !why.empty())
        return fail(ErrorCode::Usage, fmt::format("{} {}: {}", option, key, why), "leave it out");
    if (value.size() > longestValue)
        return fail(ErrorCode::Usage, fmt::format("{} {}: a value of {} bytes; at most {} are sent", option, key,
                                                  value.size(), longestValue));
    if (parts.value && value.empty())
        return fail(ErrorCode::Usage, fmt::format("{} {}= has no value", option, key),
                    fmt::format("write {}=VALUE, or {} alone", key, key));
    return SlurmOption{key, value};
}

Result<std::string> toText(const BatchScript& script)
{
    STAGEWRIGHT_TRY(const auto command, started(script));
    std::string text = "#!/bin/sh\n";
    if (script.queued) text += directives(script);
    for (const std::string& line : script.about) text += fmt::format("# {}\n", line);
    if (!script.python)
        text += "# A recording of stagewright. Its steps, events and log are kept in this folder; `touch stop` ends it "
                "and keeps its steps.\n";
    text += fmt::format("cd {} || exit 1\n", shellWord(script.folder));
    if (script.queued && !script.python)
        text += "echo \"$SLURM_JOB_ID\" >slurm\n"
                "rm -f ended.json # of a start before, where Slurm queued it again\n";
    if (script.queued && !script.setup.empty()) {
        text += "# your setup lines\n";
        for (const std::string& line : script.setup) text += line + "\n";
    }
    if (script.queued && script.tasks > 0 && script.launcher == "mpirun")
        text += "export NO_COLOR=1 # its processes have a terminal, and write to a file\n";
    text += exportLines(script.environment);
    if (script.python) text += headLines(*script.python);
    text += command + " >>log 2>&1 </dev/null\n";
    text += "code=$?\n";
    if (script.about.empty()) // all that is in it is in the stream, which is what is fetched
        text += "case $code in 0|130) rm -f run.stagewright ;; esac # its steps are in steps.stream\n";
    if (!script.python) text += "printf '{\"code\": %d}\\n' \"$code\" >ended.part && mv ended.part ended.json\n";
    return text + "exit \"$code\"\n";
}

} // namespace stagewright
