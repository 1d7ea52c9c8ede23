#define STAGEWRIGHT_KERNEL_SET "avx2"
#include "engine/cpu/kernels_body.h"

const stagewright::cpu::Kernels* stagewright::cpu::avx2Kernels() { return &table; }
