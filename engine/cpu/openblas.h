// OpenBLAS behind products.h.
#pragma once

#include "engine/cpu/gemm.h"
#include "engine/device/math.h"

namespace stagewright::cpu {

const Gemm* openBlas(); // null: not to be had, for the reason
// LAPACK and products of doubles; null: likewise, or it is built without LAPACK.
const layers::DenseMath* openBlasDense();
Error openBlasMissing(); // that this says

} // namespace stagewright::cpu
