// PyTorch's processes as a batch job starts them: by torchrun, one process a node that starts the node's ranks and meets
// the others at the first node, or by srun, one task a rank. Text for scripts that people read.
#pragma once

#include <string>
#include <vector>

#include "app/launch/batch_queue.h"

namespace stagewright {

struct PythonRanks {
    std::string python = "python3";
    std::vector<std::string> program; // of a rank: "driver.py", "." or "-m", "torchtitan.train" …
    int nodes = 1;
    int perNode = 1; // ranks
    bool torchrun = true;
    int port = 29500; // of the rendezvous, at the first node

    int tasks() const { return torchrun ? nodes : nodes * perNode; }
};

// "python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d ID ENDPOINT PROGRAM": the id and
// the endpoint as words of a shell.
std::string torchrunText(const PythonRanks& ranks, const std::string& id, const std::string& endpoint);
// The same as words.
std::vector<std::string> torchrunWords(const PythonRanks& ranks, const std::string& id, const std::string& endpoint);

std::string headLines(const PythonRanks& ranks,
                      const Queue& queue); // of a job: its first node and port, as $head and $port
std::string inQueue(const PythonRanks& ranks, const Queue& queue);    // what the queue's launcher starts in that job
std::string exportLines(const std::vector<std::string>& environment); // NAME=VALUE each

} // namespace stagewright
