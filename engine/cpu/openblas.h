// OpenBLAS behind products.h.
#pragma once

#include "engine/cpu/gemm.h"

namespace stagewright::cpu {

const Gemm* openBlas();  // null: not to be had, for the reason
Error openBlasMissing(); // that this says

} // namespace stagewright::cpu
