#include "engine/cpu/processor.h"

#include <fstream>

namespace stagewright::cpu {

namespace {

// The first value of a key of /proc/cpuinfo; empty: not there.
std::string cpuInfo(std::string_view key)
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key))
            if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
    return {};
}

} // namespace

std::string processorName()
{
    std::string name = cpuInfo("model name");
    return name.empty() ? "processor" : name;
}

#ifdef STAGEWRIGHT_X86_KERNELS
bool isIntel() { return __builtin_cpu_is("intel"); }
bool hasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool hasAvx512()
{
    return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool isIntel() { return false; }
bool hasAvx2() { return false; }
bool hasAvx512() { return false; }
#endif

} // namespace stagewright::cpu
