#include "app/launch/python_ranks.h"

#include <fmt/format.h>

#include "app/launch/shell_words.h"

namespace stagewright {

namespace {

// torchrun is this module; its own program may be missing where PyTorch is.
std::vector<std::string> frontWords(const PythonRanks& ranks)
{
    return {ranks.python,
            "-m",
            "torch.distributed.run",
            fmt::format("--nnodes={}", ranks.nodes),
            fmt::format("--nproc-per-node={}", ranks.perNode),
            "--rdzv-backend=c10d"};
}

} // namespace

std::string torchrunText(const PythonRanks& ranks, const std::string& id, const std::string& endpoint)
{
    return fmt::format("{} --rdzv-id={} --rdzv-endpoint={} {}", shellCommand(frontWords(ranks)), id, endpoint,
                       shellCommand(ranks.program));
}

std::vector<std::string> torchrunWords(const PythonRanks& ranks, const std::string& id, const std::string& endpoint)
{
    std::vector<std::string> words = frontWords(ranks);
    words.push_back("--rdzv-id=" + id);
    words.push_back("--rdzv-endpoint=" + endpoint);
    words.insert(words.end(), ranks.program.begin(), ranks.program.end());
    return words;
}

std::string headLines(const PythonRanks& ranks)
{
    std::string text = fmt::format("# The processes meet at the first node of the job.\n"
                                   "head=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
                                   "port=$(({} + SLURM_JOB_ID % 1000))\n",
                                   ranks.port);
    if (!ranks.torchrun)
        text += fmt::format("export MASTER_ADDR=\"$head\" MASTER_PORT=\"$port\" WORLD_SIZE={} LOCAL_WORLD_SIZE={}\n",
                            ranks.nodes * ranks.perNode, ranks.perNode);
    return text;
}

std::string inSlurm(const PythonRanks& ranks)
{
    if (ranks.torchrun) return torchrunText(ranks, "\"$SLURM_JOB_ID\"", "\"$head:$port\"");
    std::vector<std::string> words{ranks.python, "-u"};
    words.insert(words.end(), ranks.program.begin(), ranks.program.end());
    return "sh -c " + shellWord("export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID; exec " + shellCommand(words));
}

std::string exportLines(const std::vector<std::string>& environment)
{
    std::string text;
    for (const std::string& variable : environment) {
        const std::size_t sign = variable.find('=');
        text += fmt::format("export {}={}\n", variable.substr(0, sign), shellWord(variable.substr(sign + 1)));
    }
    return text;
}

} // namespace stagewright
