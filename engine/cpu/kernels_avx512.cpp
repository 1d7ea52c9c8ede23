#define STAGEWRIGHT_KERNEL_SET "avx512"
#include "engine/cpu/kernels_body.h"

const stagewright::cpu::Kernels* stagewright::cpu::avx512Kernels() { return &table; }
