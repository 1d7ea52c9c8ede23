#include "app/launch/batch_queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/launch/batch_script.h"
#include "app/launch/shell_words.h"

namespace stagewright {

namespace {

// sbatch reads #SBATCH lines itself, with quotes as a shell's, and no expansion.
std::string batchWord(const std::string& value)
{
    const bool plain = std::all_of(value.begin(), value.end(), [](char c) {
        return c > ' ' && c != '"' && c != '\'' && c != '\\' && c != '#' && c != '$' && c != '`';
    });
    return plain ? value : shellWord(value);
}

std::vector<std::string> slurmLines(const BatchScript& script, const BatchShape& shape)
{
    std::vector<std::string> lines;
    const auto add = [&](const std::string& key, const std::string& value) {
        lines.push_back(value.empty() ? "--" + key : fmt::format("--{}={}", key, batchWord(value)));
    };
    add("job-name", script.name);
    add("output", script.folder + "/slurm.log");
    add("open-mode", "append"); // it says why the job was queued again
    const auto unlessGiven = [&](const char* key, int value) {
        if (value > 0 && !hasSlurmOption(script.options, key)) add(key, std::to_string(value));
    };
    unlessGiven("nodes", script.nodes);
    unlessGiven("ntasks", shape.tasks);
    if (script.nodes > 0) unlessGiven("ntasks-per-node", shape.tasksOfNode());
    if (!hasSlurmOption(script.options, "gpus")) unlessGiven("gpus-per-node", shape.gpusOfNode);
    for (const auto& [key, value] : script.options) add(key, value);
    return lines;
}

// Whether a line of the user's starts so: it has the place of the job's own.
bool isGiven(const BatchScript& script, std::string_view option)
{
    return std::any_of(script.directives.begin(), script.directives.end(),
                       [&](const std::string& line) { return line.starts_with(option); });
}

std::vector<std::string> pbsLines(const BatchScript& script, const BatchShape& shape)
{
    constexpr std::size_t longestName = 15; // of Torque
    std::vector<std::string> lines{"-N " + script.name.substr(0, longestName), "-S /bin/sh", "-j oe",
                                   "-o " + batchWord(script.folder + "/queue.log")};
    if (isGiven(script, "-l select") || isGiven(script, "-l nodes")) return lines;
    const int tasks = std::max(1, shape.tasksOfNode());
    lines.push_back(fmt::format("-l select={}:ncpus={}:mpiprocs={}{}", std::max(1, shape.nodes),
                                tasks * shape.coresOfTask, tasks,
                                shape.gpusOfNode > 0 ? fmt::format(":ngpus={}", shape.gpusOfNode) : ""));
    if (shape.nodes > 1 && !isGiven(script, "-l place")) lines.emplace_back("-l place=scatter");
    return lines;
}

std::vector<std::string> lsfLines(const BatchScript& script, const BatchShape& shape)
{
    std::vector<std::string> lines{"-J " + script.name, "-o " + batchWord(script.folder + "/queue.log")};
    if (!isGiven(script, "-n ")) lines.push_back(fmt::format("-n {}", std::max(1, shape.tasks)));
    lines.push_back(fmt::format("-R \"span[ptile={}]\"", std::max(1, shape.tasksOfNode())));
    if (shape.gpusOfNode > 0 && !isGiven(script, "-gpu")) // of each node
        lines.push_back(fmt::format("-gpu \"num={}\"", shape.gpusOfNode));
    return lines;
}

std::vector<std::string> fluxLines(const BatchScript& script, const BatchShape& shape)
{
    std::vector<std::string> lines{"--job-name=" + script.name, "--output=" + batchWord(script.folder + "/queue.log"),
                                   fmt::format("--nodes={}", std::max(1, shape.nodes)),
                                   fmt::format("--nslots={}", std::max(1, shape.tasks)),
                                   fmt::format("--cores-per-slot={}", shape.coresOfTask)};
    if (shape.gpusOfNode > 0)
        lines.push_back(fmt::format("--gpus-per-slot={}", shape.gpusOfNode / std::max(1, shape.tasksOfNode())));
    return lines;
}

} // namespace

const std::vector<Queue>& batchQueues()
{
    static const std::vector<Queue> queues{
        {"slurm", "Slurm", "#SBATCH", "sbatch", "SLURM_JOB_ID", "scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "",
         "srun", slurmLines},
        {"pbs", "PBS", "#PBS", "qsub", "PBS_JOBID", "cat \"$PBS_NODEFILE\"", "PBS_NODEFILE", "mpirun", pbsLines},
        {"lsf", "LSF", "#BSUB", "bsub <", "LSB_JOBID", "cat \"$LSB_DJOB_HOSTFILE\"", "LSB_DJOB_HOSTFILE", "mpirun",
         lsfLines},
        {"flux", "Flux", "#flux:", "flux batch", "FLUX_ENCLOSING_ID", "flux hostlist --nth=0 instance", "", "flux",
         fluxLines},
    };
    return queues;
}

const Queue* findQueue(std::string_view name)
{
    const auto& queues = batchQueues();
    const auto found = std::find_if(queues.begin(), queues.end(), [&](const Queue& one) { return one.name == name; });
    return found == queues.end() ? nullptr : &*found;
}

const Queue& slurmQueue() { return batchQueues().front(); }

} // namespace stagewright
