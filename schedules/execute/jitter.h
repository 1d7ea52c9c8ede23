// Jitter: how much longer or shorter than usual one op takes. Drawn from what the op is, so that the same op of the
// same step has the same factor in a simulation and a run, in every order, on every machine.
#pragma once

#include <cstdint>

#include "schedules/model/op.h"

namespace stagewright {

// exp(N(−σ²/2, σ)): log-normal with mean 1, in steps of 1e-9. step: from 0, over all steps of a run. 1 where sigma is
// 0.
double jitterFactor(double sigma, std::uint64_t seed, int step, const Op& op);

} // namespace stagewright
