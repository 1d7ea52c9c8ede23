// The user's options of Slurm's programs.
#pragma once

#include <string>

#include "app/launch/launcher.h"
#include "schedules/base/result.h"

namespace stagewright {

enum class SlurmProgram { Sbatch, Srun }; // whose option it is
// "nodes=2", "exclusive". Usage, which names --slurm or --srun: keys are [a-z-]+, values have no control characters;
// output, error, chdir and others are the job's own.
Result<SlurmOption> parseSlurmOption(const std::string& text, SlurmProgram of = SlurmProgram::Sbatch);

} // namespace stagewright
