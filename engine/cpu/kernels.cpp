#include "engine/cpu/kernels.h"

namespace stagewright::cpu {

#ifndef STAGEWRIGHT_X86_KERNELS
const Kernels* avx2Kernels()
{
    return nullptr;
}
const Kernels* avx512Kernels()
{
    return nullptr;
}
#endif

namespace {

const Kernels& best()
{
#ifdef STAGEWRIGHT_X86_KERNELS
    const bool vector = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (vector && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return *avx512Kernels();
    if (vector) return *avx2Kernels();
#endif
    return *baselineKernels();
}

} // namespace

const Kernels& kernels()
{
    static const Kernels& chosen = best();
    return chosen;
}

} // namespace stagewright::cpu
