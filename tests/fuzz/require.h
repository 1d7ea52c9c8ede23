// What must hold of any bytes: else the program ends, and the fuzzer keeps them.
#pragma once

#include <cstdlib>

inline void require(bool condition)
{
    if (!condition) std::abort();
}
