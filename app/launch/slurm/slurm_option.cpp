#include "app/launch/slurm/slurm_option.h"

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

} // namespace stagewright
