#include "app/cli/options/place_options.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "app/launch/shell_words.h"
#include "app/launch/slurm/slurm_queue.h"
#include "schedules/base/text.h"
#include "schedules/layout/cluster.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"

namespace stagewright {

namespace {

// What a call has beside its setup.
constexpr auto staysHere =
    std::to_array<std::string_view>({"--output", "--progress", "--stdin-control", "--json", "--log-level"});

// What of a value is a file that is read: all of it, or what is before the last colon. "": nothing.
std::string fileIn(const SetupKey& key, const std::string& value)
{
    if ((key.users & SetupReadsFile) == 0) return {};
    if (key.form.ends_with(":FUNCTION")) return value.substr(0, value.rfind(':'));
    if (key.form == clusterForm) {
        const std::string_view file = keyValueOf(value, ':').key;
        return std::string(file.ends_with(".json") ? file : "");
    }
    return !key.form.starts_with("NAME|") || namesFile(value) ? value : std::string();
}

Result<std::vector<SlurmOption>> optionsOf(const std::vector<std::string>& texts, SlurmProgram of)
{
    std::vector<SlurmOption> options;
    for (const std::string& text : texts) {
        STAGEWRIGHT_TRY(auto option, parseSlurmOption(text, of));
        options.push_back(std::move(option));
    }
    return options;
}

} // namespace

Result<void> placeHonours(const Setup& setup)
{
    if (setup.scriptOnly && setup.slurm.empty())
        return fail(ErrorCode::Usage, "--script-only writes a script for Slurm, and there is no --slurm",
                    "add --slurm KEY=VALUE, such as --slurm nodes=1");
    if (setup.detach && !setup.elsewhere())
        return fail(ErrorCode::Usage, "--detach needs --host or --slurm", "add one of them");
    if (setup.detach && setup.scriptOnly)
        return fail(ErrorCode::Usage, "--detach and --script-only can't be combined", "choose one of them");
    if (setup.elsewhere() && setup.names("--job"))
        return fail(ErrorCode::Usage, "--job is the folder over there, which --host and --slurm choose",
                    "leave it out");
    if (setup.elsewhere() && setup.names("--keep-trace"))
        return fail(ErrorCode::Usage, "--keep-trace writes a file where the GPUs are, and it is not fetched",
                    "omit it, or record there by hand");
    if (setup.elsewhere() && setup.checkpointEvery > 0)
        return fail(ErrorCode::Usage, "--checkpoint-every writes files where the ranks are, and they are not fetched",
                    "omit it, or record there by hand");
    if (!setup.container.empty() && !setup.torch() && !setup.elsewhere())
        return fail(ErrorCode::Usage, "--container is for PyTorch's ranks, a host or Slurm's queue",
                    "start 'stagewright record' in the container yourself, or add --host, --slurm or --engine torch");
    if (const std::string why = whyNotSent(setup.container + setup.launcher); !why.empty())
        return fail(ErrorCode::Usage, fmt::format("--container and --launcher: {}", why), "leave it out");
    if (!setup.container.empty() && !isApptainer(setup.container) && setup.slurm.empty() && !inSlurmJob())
        return fail(ErrorCode::Usage, fmt::format("--container {}: only Slurm's srun starts it", setup.container),
                    "name a FILE.sif or docker://IMAGE for Apptainer, or add --slurm KEY=VALUE");
    if (setup.launcher == "torchrun" || (setup.torch() && !setup.launcher.empty()))
        return fail(ErrorCode::Usage,
                    fmt::format("--launcher {}: a recording starts PyTorch's ranks itself", setup.launcher),
                    "leave it out; 'stagewright script slurm' and 'script torchrun' write jobs that torchrun starts");
    if (!setup.launcher.empty() && !setup.processes && setup.slurm.empty())
        return fail(ErrorCode::Usage, "--launcher starts processes, and ranks are threads here", "add --processes");
    STAGEWRIGHT_CHECK(slurmOptions(setup));
    STAGEWRIGHT_CHECK(srunOptions(setup));
    const bool srun = (setup.torch() && inSlurmJob()) || setup.launcher.starts_with("srun");
    if (!setup.srun.empty() && setup.slurm.empty() && !srun)
        return fail(ErrorCode::Usage, "--srun is for Slurm's srun, and there is no --slurm",
                    "add --slurm KEY=VALUE, such as --slurm nodes=1");
    return {};
}

Result<std::vector<SlurmOption>> slurmOptions(const Setup& setup)
{
    return optionsOf(setup.slurm, SlurmProgram::Sbatch);
}

std::vector<std::string> rankEnvironment(const Setup& setup)
{
    std::vector<std::string> variables;
    if (!setup.interface.empty())
        for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include"})
            variables.push_back(fmt::format("{}={}", name, setup.interface));
    variables.insert(variables.end(), setup.env.begin(), setup.env.end());
    return variables;
}

Result<std::vector<SlurmOption>> srunOptions(const Setup& setup) { return optionsOf(setup.srun, SlurmProgram::Srun); }

Result<TravelCall> travelCall(const std::string& verb, const std::vector<TypedOption>& typed,
                              const std::vector<std::string>& leftOut)
{
    TravelCall call;
    call.arguments.push_back(verb);
    for (const TypedOption& option : typed) {
        const SetupKey* key = findSetupKey(option.name);
        if (key ? (key->users & SetupStaysHere) != 0
                : std::find(staysHere.begin(), staysHere.end(), option.name) != staysHere.end())
            continue;
        const std::string shown = option.value ? option.name + "=" + *option.value : option.name;
        call.shown.push_back(shown);
        if (std::find(leftOut.begin(), leftOut.end(), option.name) != leftOut.end()) continue;
        if (const std::string why = whyNotSent(shown); !why.empty())
            return fail(ErrorCode::Usage, fmt::format("{}: {}", option.name, why), "leave it out");
        const std::string file = option.value && key ? fileIn(*key, *option.value) : std::string();
        if (file.empty()) {
            call.arguments.push_back(shown);
            continue;
        }
        if (!fileExists(file) || isFolder(file))
            return fail(
                ErrorCode::Unreadable,
                fmt::format("{} {}: {}", option.name, file, isFolder(file) ? "it is a folder" : "it is not there"),
                "name a file on this computer; it is sent along");
        call.arguments.push_back(
            fmt::format("{}={{file:{}}}{}", option.name, call.files.size(), option.value->substr(file.size())));
        call.files.push_back(
            {std::filesystem::absolute(file).string(), std::filesystem::path(file).filename().string()});
    }
    return call;
}

} // namespace stagewright
