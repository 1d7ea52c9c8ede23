// oneDNN behind products.h.
#pragma once

#include "engine/cpu/products.h"

namespace stagewright::cpu {

const Products* oneDnn();             // null: not installed
const NarrowProducts* oneDnnNarrow(); // null: not installed, or not for this processor

} // namespace stagewright::cpu
