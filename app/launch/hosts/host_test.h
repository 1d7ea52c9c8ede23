// What a host has, asked with nothing but its shell: the program need not be there.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "app/launch/hosts/host_list.h"
#include "schedules/base/result.h"

namespace stagewright {

struct HostFact {
    std::string key;     // "stagewright", "cpus", "gpus", "cuda", "mpi", "pytorch", "slurm", "space", "clock", …
    std::string label;   // "PyTorch"
    std::string value;   // in words; "" where it is missing
    std::string remedy;  // what mends it; "" where nothing is amiss
    bool needed = false; // nothing runs there without it
};

struct HostReport {
    std::vector<HostFact> facts;
    std::string system;  // "Linux"
    std::string machine; // "x86_64"
    std::string libc;    // "2.36"; "" where it is not glibc
    std::string version; // of stagewright there; "" where it is missing
    double clockOffsetSeconds = 0;
    bool usable() const;
};

// Unavailable where it can't be reached: what ssh said, and what to do.
Result<HostReport> testHost(const Host& host, const std::stop_token& stop = {});

} // namespace stagewright
