// What a plan minimises.
#pragma once

#include <cstdint>

namespace stagewright {

enum class Objective : std::uint8_t {
    Makespan, // last end of any rank
    Span,     // longest time from a rank's own first start to its own last end
};

} // namespace stagewright
