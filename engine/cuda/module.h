// Finding and loading the CUDA module. Everything here is built without nvcc; the module may be absent.
#pragma once

#include <string>
#include <vector>

#include "engine/cuda/module_abi.h"
#include "schedules/base/result.h"

namespace stagewright::cuda {

struct Module {
    const StagewrightCudaTable* table = nullptr;
    std::string path;
};

// Where the module is looked for, in this order: the environment's STAGEWRIGHT_CUDA_MODULE alone, where it is set (a
// file); next to the program; in the library folder of the installation that the program belongs to.
std::vector<std::string> modulePlaces();

// Loads the file and checks its version. Never unloaded. Unavailable, naming the file and the cause, where it is not a
// library, lacks one that it needs (the CUDA toolkit's), or has another version.
Result<Module> loadModule(const std::string& path);

// The first of modulePlaces() that exists, loaded once per process; later calls give the same answer. Any thread.
const Result<Module>& theModule();

// "13.0" of 13000.
std::string versionText(int version);

} // namespace stagewright::cuda
