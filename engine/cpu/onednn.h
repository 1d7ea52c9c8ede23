// oneDNN behind products.h.
#pragma once

#include "engine/cpu/gemm.h"

namespace stagewright::cpu {

const Gemm* oneDnn();         // null: not installed
const Bf16Gemm* oneDnnBf16(); // null: not installed, or not for this processor

} // namespace stagewright::cpu
