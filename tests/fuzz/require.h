// What must hold of any bytes: else the program ends, and the fuzzer keeps them.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>

inline void require(bool condition, std::source_location where = std::source_location::current())
{
    if (condition) return;
    std::fprintf(stderr, "%s:%u: what is required does not hold\n", where.file_name(),
                 static_cast<unsigned>(where.line()));
    std::abort();
}
