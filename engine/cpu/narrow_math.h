// LayerMath on the CPU of elements of bf16.
#pragma once

#include <memory>

#include "engine/cpu/products.h"
#include "engine/device/math.h"

namespace stagewright::cpu {

// The allocator, which outlives it too, counts the results of products before they are rounded.
std::unique_ptr<layers::LayerMath> makeNarrowMath(const NarrowProducts& products, Allocator& allocator, int stage);

} // namespace stagewright::cpu
