// What is put in front of a program so that it runs as several processes, as one task of a Slurm job, or in a container:
// words, for recordings and for batch scripts alike.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

// A long option of srun or sbatch without its dashes, and its value ("" for one without a value).
using SlurmOption = std::pair<std::string, std::string>;
std::string toWord(const SlurmOption& option);    // "--nodes=2"
std::string toSetting(const SlurmOption& option); // "nodes=2"
bool hasSlurmOption(const std::vector<SlurmOption>& options, const std::string& key);

struct ProcessStart {
    int processes = 1;
    int nodes = 0;                   // 0: the launcher decides
    bool mpi = true;                 // they meet by MPI
    std::vector<SlurmOption> srun{}; // the user's
};
// The words of a --launcher: "mpirun" (also ""; Open MPI's), "mpiexec" (of MPICH and its kin), "srun" or "srun:MPI" (of
// --mpi; pmix), "flux" or "flux:PMI", "jsrun", "custom:WORDS" with {n} and {nodes} in them. The program's own words follow. Usage: words with an open quote, or torchrun, which starts PyTorch only.
Result<std::vector<std::string>> launcherWords(const std::string& launcher, const ProcessStart& launch);
// What every MPI's starter takes: MPICH's is called mpiexec or mpirun, and has none of Open MPI's options.
std::vector<std::string> mpiexecWords(const std::string& program, int processes);

// srun's words for one task within a job, where it has a place; the user's options come last.
std::vector<std::string> oneTaskWords(const std::vector<std::string>& options);

// A container image that Apptainer starts: FILE.sif, or a URI such as docker://NAME. Others are enroot's and pyxis's, by
// options of srun.
bool isApptainer(const std::string& image);
// Apptainer's words in front of a program that sees these folders; none without an image.
std::vector<std::string> apptainerWords(const std::string& image, const std::vector<std::string>& folders, bool gpus);
// Options of srun for an image of pyxis, which starts in the first folder, without those that are given already; none for
// another image.
std::vector<SlurmOption> pyxisOptions(const std::string& image, const std::vector<std::string>& folders,
                                      const std::vector<SlurmOption>& given);

} // namespace stagewright
