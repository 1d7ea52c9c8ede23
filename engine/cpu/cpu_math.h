// LayerMath on the CPU: fp32, everything done at once on the calling thread.
#pragma once

#include <memory>

#include "engine/cpu/products.h"
#include "engine/layers/math.h"

namespace stagewright::cpu {

std::unique_ptr<layers::LayerMath> makeCpuMath(const Products& products); // which outlives it

} // namespace stagewright::cpu
