// What processor this is, as far as the choice of kernels and libraries depends on it.
#pragma once

#include <string>

namespace stagewright::cpu {

std::string processorName(); // "AMD EPYC 9B14"; "processor" where the system doesn't say
bool isIntel();
bool hasAvx2();   // with FMA
bool hasAvx512(); // F, BW, DQ and VL

} // namespace stagewright::cpu
