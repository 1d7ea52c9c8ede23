#include "engine/cpu/kernels.h"

#include "engine/cpu/processor.h"

namespace stagewright::cpu {

#ifndef STAGEWRIGHT_X86_KERNELS
const Kernels* avx2Kernels() { return nullptr; }
const Kernels* avx512Kernels() { return nullptr; }
#endif

namespace {

const Kernels& best()
{
#ifdef STAGEWRIGHT_X86_KERNELS
    if (hasAvx512()) return *avx512Kernels();
    if (hasAvx2()) return *avx2Kernels();
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
