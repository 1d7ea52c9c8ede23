// The libraries behind products.h, one source each.
#pragma once

#include "engine/cpu/products.h"

namespace stagewright::cpu {

const Products* openBlas();           // null: not to be had, for the reason
Error openBlasMissing();              // that this says
const Products* oneDnn();             // null: not installed
const NarrowProducts* oneDnnNarrow(); // null: not installed, or not for this processor

} // namespace stagewright::cpu
