// LayerMath on the CPU of elements of bf16.
#pragma once

#include <memory>

#include "engine/cpu/gemm.h"
#include "engine/device/math.h"

namespace stagewright::cpu {

// The allocator, which outlives it too, counts the results of GEMMs before they are rounded.
std::unique_ptr<layers::LayerMath> makeBf16Math(const Bf16Gemm& gemm, Allocator& allocator, int stage);

} // namespace stagewright::cpu
