// OpenBLAS behind products.h.
#pragma once

#include "engine/cpu/products.h"

namespace stagewright::cpu {

const Products* openBlas(); // null: not to be had, for the reason
Error openBlasMissing();    // that this says

} // namespace stagewright::cpu
