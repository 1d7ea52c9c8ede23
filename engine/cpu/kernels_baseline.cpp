#define STAGEWRIGHT_KERNEL_SET "baseline"
#include "engine/cpu/kernels_body.h"

const stagewright::cpu::Kernels* stagewright::cpu::baselineKernels() { return &table; }
