// LayerMath on the CPU, everything done at once on the calling thread: fp32, or elements of bf16.
#pragma once

#include <memory>

#include "engine/cpu/gemm.h"
#include "engine/device/math.h"

namespace stagewright::cpu {

std::unique_ptr<layers::LayerMath> makeCpuMath(const Gemm& gemm); // which outlives it

} // namespace stagewright::cpu
