// What a workload gives for checks of devices: a second implementation in double precision, and its kernels one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/workload/workload.h"

namespace stagewright {

// Forward and backward once more, by plain loops that share no code with the engine.
class DoubleReference {
public:
    using Values = std::vector<double>; // of a matrix row by row
    virtual ~DoubleReference() = default;
    // Mean loss of one microbatch in nats.
    virtual double run(const std::vector<std::uint8_t>& tokens, const std::vector<std::uint8_t>& targets) = 0;

    std::map<std::string, Values> parameters; // by the names of StageModel::parameters()
    std::map<std::string, Values> gradients;  // of the mean loss; set by run()
};
struct DoubleForm {
    std::shared_ptr<const Workload> workload; // as small as loops in double need it
    std::string title;                        // "2 layers of 32, sequence 16"
    int samples = 1;                          // of its microbatch
    std::unique_ptr<DoubleReference> reference;
};

// A call of one kernel, with its floating-point operations (0: it moves bytes) and the bytes that it reads and writes
// at least.
struct TimedKernel {
    std::string kernel, shape;
    double flops = 0, bytes = 0;
    std::function<void()> call;
};
// The first two are "large GEMM" and "large copy".
struct TimedKernels {
    virtual ~TimedKernels() = default;
    std::vector<TimedKernel> all;
};

} // namespace stagewright
