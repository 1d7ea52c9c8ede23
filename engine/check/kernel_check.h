// A device's kernels against the CPU's, one after the other on the same synthetic numbers (engine/device/math.h says
// what each computes).
#pragma once

#include <string>
#include <vector>

#include "engine/device/backend.h"

namespace stagewright {

struct KernelComparison {
    std::string kernel; // "attention, backward"
    double error = 0;   // largest ‖a−b‖∞ / ‖b‖∞ over what it computes; infinite where it contains NaN
    double tolerance = 0;
    bool passed = false;
};

// A backend with its own connections between devices (--transport nccl): compares what they carry and sum up with the
// host's.
class CollectiveSource {
public:
    virtual ~CollectiveSource() = default;
    virtual Result<std::vector<KernelComparison>> compareCollectives() const = 0; // empty: it has none
};

// How far one kernel's results may differ from the CPU's in fp32, with inputs rounded to the precision on both sides.
// fp32: sums in another order, at most a few hundred terms of 2⁻²⁴: 1e-4. tf32: both factors of a GEMM rounded to 11
// bits, 2 · 2⁻¹¹ of the largest term, and twice that where two GEMMs follow each other: 4e-3. bf16: results and what
// lies between two GEMMs rounded to 8 bits, 2⁻⁸ each, at most five of them in one kernel (attention, backward):
// 2e-2.
double kernelTolerance(Precision precision);

// Every kernel of a backend whose arithmetic can be compared, on its first device, and, in fp32, its collectives;
// precision: not Default. Unavailable where there is no device; empty where the backend has none to compare.
Result<std::vector<KernelComparison>> compareKernels(std::string_view backend, const DeviceOptions& options,
                                                     Precision precision);

} // namespace stagewright
