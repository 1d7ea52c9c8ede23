// Processes that mpirun or srun started, by libstagewright_mpi.so or, where MPICH or its kin started them,
// libstagewright_mpich.so, which is loaded when it is needed: the program links no MPI.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/transport/processes.h"
#include "schedules/base/result.h"

namespace stagewright::mpi {

// How many processes a launcher of MPI says that it started, this one among them; none: started by hand. MPI itself is
// not asked.
std::optional<int> launchedProcesses();

// This process's number among them as mpirun or mpiexec says it; "": it doesn't.
std::string launchedPlace();

// Unavailable where the module or MPI is missing, saying what to install; Failed where MPI can't start.
Result<std::unique_ptr<Processes>> joinProcesses();
// As joinProcesses() would answer, without starting MPI.
Result<void> available();

} // namespace stagewright::mpi
