// Units. Time is integer nanoseconds from a timeline's origin; memory is integer bytes.
#pragma once

#include <cstdint>

namespace stagewright {

using Nanos = std::int64_t;
using Bytes = std::int64_t;

// Unit-cost work: the forward of one full rank share lasts 10,080,000 ns, and one microbatch's activations on 1/p of
// the model weigh 10,080,000 units, so that chunks and thirds (v up to 10, 12, 14, 15, 16 …) are exact integers.
inline constexpr Nanos rankShare = 10'080'000;
inline constexpr Bytes activationShare = 10'080'000;

} // namespace stagewright
