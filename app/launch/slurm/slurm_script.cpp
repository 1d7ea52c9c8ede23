#include "app/launch/slurm/slurm_script.h"

#include <algorithm>
#include <array>

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

bool hasOption(const std::vector<SlurmOption>& options, std::string_view key)
{
    return std::any_of(options.begin(), options.end(), [&](const SlurmOption& option) { return option.first == key; });
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

std::string toSetting(const SlurmOption& option)
{
    return option.second.empty() ? option.first : fmt::format("{}={}", option.first, option.second);
}

std::string toWord(const SlurmOption& option) { return "--" + toSetting(option); }

std::string toText(const BatchScript& script)
{
    std::string text = "#!/bin/sh\n";
    if (script.queued) {
        text += fmt::format("#SBATCH --job-name={}\n#SBATCH --output={}\n", batchWord(script.name),
                            batchWord(script.folder + "/slurm.log"));
        if (script.tasks > 0 && !hasOption(script.options, "ntasks"))
            text += fmt::format("#SBATCH --ntasks={}\n", script.tasks);
        for (const auto& [key, value] : script.options)
            text += value.empty() ? fmt::format("#SBATCH --{}\n", key)
                                  : fmt::format("#SBATCH --{}={}\n", key, batchWord(value));
    }
    text += fmt::format("# A recording of stagewright. Its steps, events and log are kept in this folder; `touch stop` "
                        "ends it and keeps its steps.\n"
                        "cd {} || exit 1\n",
                        shellWord(script.folder));
    if (script.queued && !script.setup.empty()) {
        text += "# your setup lines\n";
        for (const std::string& line : script.setup) text += line + "\n";
    }
    const std::string command = shellCommand(script.command);
    if (script.queued && (script.tasks > 0 || !script.srun.empty())) {
        text += fmt::format("srun --ntasks={} ", std::max(1, script.tasks));
        if (!hasOption(script.srun, "mpi")) text += script.tasks > 0 ? "--mpi=pmix " : "--mpi=none ";
        text += "--kill-on-bad-exit=0 ";
        for (const SlurmOption& option : script.srun) text += shellWord(toWord(option)) + " ";
    }
    text += command + " >>log 2>&1 </dev/null\n";
    text += "code=$?\n"
            "printf '{\"code\": %d}\\n' \"$code\" >ended.part && mv ended.part ended.json\n"
            "exit \"$code\"\n";
    return text;
}

} // namespace stagewright
