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

std::string headLines(const PythonRanks& ranks, const Queue& queue)
{
    // numbers of other queues have letters in them
    const std::string number = &queue == &slurmQueue()
                                   ? std::string(queue.number)
                                   : fmt::format("$(printf %s \"${}\" | cksum | cut -d ' ' -f 1)", queue.number);
    std::string text = fmt::format("# The processes meet at the first node of the job.\n"
                                   "head=$({} | head -n 1)\n"
                                   "port=$(({} + {} % 1000))\n",
                                   queue.hosts, ranks.port, number);
    if (!ranks.torchrun)
        text += fmt::format("export MASTER_ADDR=\"$head\" MASTER_PORT=\"$port\" WORLD_SIZE={} LOCAL_WORLD_SIZE={}\n",
                            ranks.nodes * ranks.perNode, ranks.perNode);
    return text;
}

std::string inQueue(const PythonRanks& ranks, const Queue& queue)
{
    if (ranks.torchrun) return torchrunText(ranks, fmt::format("\"${}\"", queue.number), "\"$head:$port\"");
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
