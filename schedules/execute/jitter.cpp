#include "schedules/execute/jitter.h"

#include <cmath>
#include <numbers>

#include "schedules/base/hashing.h"

namespace stagewright {

namespace {

// In (0, 1]: 53 bits.
double uniformOf(std::uint64_t bits) { return static_cast<double>((bits >> 11) + 1) * 0x1p-53; }

} // namespace

double jitterFactor(double sigma, std::uint64_t seed, int step, const Op& op)
{
    if (sigma <= 0) return 1;
    std::uint64_t key = mixBits(seed);
    for (const std::int64_t part : {std::int64_t{step}, std::int64_t{op.microbatch}, std::int64_t{op.stage},
                                    std::int64_t{op.slice}, static_cast<std::int64_t>(op.kind) * 4 + op.half})
        key = mixBits(key ^ static_cast<std::uint64_t>(part));
    // Box and Muller, "A note on the generation of random normal deviates", 1958
    const double normal =
        std::sqrt(-2 * std::log(uniformOf(key))) * std::cos(2 * std::numbers::pi * uniformOf(mixBits(key)));
    // Mathematical libraries differ in the last bits, which the rounding takes away.
    return std::round(std::exp(sigma * normal - sigma * sigma / 2) * 1e9) / 1e9;
}

} // namespace stagewright
