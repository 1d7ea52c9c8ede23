// A job folder for PyTorch and the command that runs a rank of it.
//
//   driver.py  job.json  schedule.csv  weights.safetensors and data (own model), model.py (the user's)
//   logs/rank0.log …  traces/rank0.json.gz …       written when it runs
//
// Paths in it are relative, so the folder can be moved, and started by hand: python3 driver.py.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/torch/torch_version.h"
#include "engine/training/training.h"
#include "schedules/base/result.h"

namespace stagewright {

struct TorchJob {
    Schedule schedule;
    std::optional<Lowering> lowering; // none: PyTorch inserts messages
    // model, slices, sizes, optimizer, seed, data, backend (cpu: gloo, cuda: NCCL), time-out
    TrainingOptions training;
    int steps = 8;
    int warmup = 1;
    int tracedSteps = 8;          // the last of `steps`
    int stepsWithoutProfiler = 0; // after the others: how long a step takes by itself
    std::string modelFile;        // "": the own engine's model
    std::string modelFunction;    // of that file
};

// "FILE:FUNCTION" of --model-file. Usage where a part is missing or the file is not there.
Result<std::pair<std::string, std::string>> parseModelFile(const std::string& text);

// Writes the job's files into an existing folder. Errors: what this PyTorch can't run (Invalid), layers that do not fit
// the stages (Usage), files.
Result<void> writeTorchJob(const TorchJob& job, const TorchVersion& version, const std::string& folder);

// For the run: schedule, model, data, optimizer, engine, under the keys that Training::configuration() has.
std::vector<std::pair<std::string, std::string>> configurationOf(const TorchJob& job);

// One rank's process: to be started in the job folder.
struct TorchRankCommand {
    std::vector<std::string> arguments;                         // the program first
    std::vector<std::pair<std::string, std::string>> variables; // to be set
};
struct TorchRankPlace {
    int rank = 0;
    int ranks = 1;
    int localRank = 0; // on its computer
    int localRanks = 1;
    std::string master; // the computer of rank 0 by a name that the others know; "": all are on this one
    int port = 0;       // a free one there, the same for all
};
TorchRankCommand torchRankCommand(const std::string& python, const TorchRankPlace& place);

// The driver's text, as it is in a job folder.
std::string torchDriverText();

} // namespace stagewright
