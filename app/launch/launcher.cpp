#include "app/launch/launcher.h"

#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/shell_words.h"

namespace stagewright {

namespace {

std::vector<std::string> mpirunWords(const ProcessStart& launch)
{
    std::vector<std::string> words{"mpirun", "-q", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
    // When one process ends the others get SIGTERM, and so many seconds to keep what is complete.
    for (const char* word : {"--mca", "odls_base_sigkill_timeout", "2"}) words.emplace_back(word);
    words.emplace_back("-n");
    words.push_back(std::to_string(launch.processes));
    return words;
}

std::vector<std::string> srunWords(const ProcessStart& launch, const std::string& mpi)
{
    std::vector<std::string> words{"srun", fmt::format("--ntasks={}", launch.processes)};
    if (launch.nodes > 0) words.push_back(fmt::format("--nodes={}", launch.nodes));
    if (!hasSlurmOption(launch.srun, "mpi")) words.push_back("--mpi=" + (launch.mpi ? mpi : "none"));
    words.emplace_back("--kill-on-bad-exit=0");
    for (const SlurmOption& option : launch.srun) words.push_back(toWord(option));
    return words;
}

std::vector<std::string> fluxWords(const ProcessStart& launch, const std::string& pmi)
{
    std::vector<std::string> words{"flux", "run", fmt::format("--ntasks={}", launch.processes)};
    if (launch.nodes > 0) words.push_back(fmt::format("--nodes={}", launch.nodes));
    if (!pmi.empty()) words.push_back("-opmi=" + pmi);
    return words;
}

Result<std::vector<std::string>> customWords(const std::string& text, const ProcessStart& launch)
{
    auto words = shellSplit(text);
    if (!words || words->empty())
        return fail(ErrorCode::Usage,
                    fmt::format("--launcher custom:{}: {}", plainText(text, 100),
                                words ? "it has no words" : "a quote is not closed"),
                    "write the words in front of the program, such as 'custom:mpiexec -n {n}'");
    for (std::string& word : *words)
        for (const auto& [place, number] : {std::pair("{n}", launch.processes), {"{nodes}", std::max(1, launch.nodes)}})
            for (std::size_t at = 0; (at = word.find(place)) != std::string::npos;)
                word.replace(at, std::string_view(place).size(), std::to_string(number));
    return std::move(*words);
}

} // namespace

std::vector<std::string> mpiexecWords(const std::string& program, int processes)
{
    return {program, "-n", std::to_string(processes)};
}

std::string toSetting(const SlurmOption& option)
{
    return option.second.empty() ? option.first : fmt::format("{}={}", option.first, option.second);
}

std::string toWord(const SlurmOption& option) { return "--" + toSetting(option); }

bool hasSlurmOption(const std::vector<SlurmOption>& options, const std::string& key)
{
    return std::any_of(options.begin(), options.end(), [&](const SlurmOption& option) { return option.first == key; });
}

Result<std::vector<std::string>> launcherWords(const std::string& launcher, const ProcessStart& launch)
{
    if (launcher.empty() || launcher == "mpirun") return mpirunWords(launch);
    if (launcher == "srun" || launcher.starts_with("srun:"))
        return srunWords(launch, launcher == "srun" ? "pmix" : launcher.substr(5));
    if (launcher == "mpiexec") return mpiexecWords(launcher, launch.processes);
    if (launcher == "flux" || launcher.starts_with("flux:"))
        return fluxWords(launch, launcher == "flux" ? "" : launcher.substr(5));
    if (launcher == "jsrun") return std::vector<std::string>{"jsrun", "--np", std::to_string(launch.processes)};
    if (launcher.starts_with("custom:")) return customWords(launcher.substr(7), launch);
    return fail(ErrorCode::Usage,
                fmt::format("--launcher {}: it starts PyTorch's processes, which a recording starts itself", launcher),
                "'stagewright script slurm' and 'script torchrun' write jobs that torchrun starts");
}

std::vector<std::string> oneTaskWords(const std::vector<std::string>& options)
{
    std::vector<std::string> words{"srun", "--nodes=1", "--ntasks=1", "--overlap", "--mpi=none", "--quiet"};
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

bool isApptainer(const std::string& image) { return image.ends_with(".sif") || image.find("://") != std::string::npos; }

std::vector<std::string> apptainerWords(const std::string& image, const std::vector<std::string>& folders, bool gpus)
{
    if (!isApptainer(image)) return {};
    std::vector<std::string> words{"apptainer", "exec"};
    if (gpus) words.emplace_back("--nv");
    for (const std::string& folder : folders) words.insert(words.end(), {"--bind", folder});
    words.push_back(image);
    return words;
}

std::vector<SlurmOption> pyxisOptions(const std::string& image, const std::vector<std::string>& folders,
                                      const std::vector<SlurmOption>& given)
{
    std::vector<SlurmOption> options;
    if (image.empty() || isApptainer(image)) return options;
    std::string mounts;
    for (const std::string& folder : folders)
        mounts += fmt::format("{}{}:{}", mounts.empty() ? "" : ",", folder, folder);
    if (!hasSlurmOption(given, "container-image")) options.emplace_back("container-image", image);
    if (!hasSlurmOption(given, "container-mounts") && !mounts.empty()) options.emplace_back("container-mounts", mounts);
    // else it starts in the image's own
    if (!hasSlurmOption(given, "container-workdir") && !folders.empty())
        options.emplace_back("container-workdir", folders.front());
    return options;
}

} // namespace stagewright
