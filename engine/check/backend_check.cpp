#include "engine/check/backend_check.h"

#include <algorithm>
#include <cmath>

#include "engine/check/check.h"
#include "engine/check/replay.h"

namespace stagewright {

namespace {

Result<std::unique_ptr<Replay>> undividedOn(const TrainingOptions& options,
                                            const std::shared_ptr<const CheckedSchedule>& undivided)
{
    STAGEWRIGHT_TRY(std::unique_ptr<Backend> backend, makeBackend(options.backend, options.device));
    return Replay::create(undivided, options, std::move(backend));
}

} // namespace

double bf16GradientTolerance(int layers) { return 3.0 / 512 * std::sqrt(24.0 * layers); }

Result<BackendComparison> compareWithCpu(const TrainingOptions& options, int microbatches, int steps,
                                         const std::stop_token& stop)
{
    TrainingOptions device = options;
    device.stageLayers.clear();
    // At one rate a wider model moves further away with every step, and two trainings that differ in rounding go ways
    // of their own; the rate that moves every width alike falls with the width (Tensor Programs V, arXiv 2203.03466,
    // table 3).
    constexpr double widestAtFullRate = 64;
    device.optimizer.learningRate *= std::min(1.0, widestAtFullRate / device.workload->width());
    TrainingOptions host = device;
    host.backend = "cpu";
    host.device = {};
    STAGEWRIGHT_TRY(const auto undivided, checkedUndivided(microbatches));
    STAGEWRIGHT_TRY(std::unique_ptr<Replay> mine, undividedOn(device, undivided));
    STAGEWRIGHT_TRY(std::unique_ptr<Replay> reference, undividedOn(host, undivided));

    BackendComparison result;
    result.backend = options.backend;
    result.precision = traitsOf(options.backend).resolved(options.device.precision);
    result.steps = steps;
    result.gradientTolerance = result.precision == Precision::Bf16   ? bf16GradientTolerance(options.workload->layers())
                               : result.precision == Precision::Tf32 ? 1e-2
                                                                     : 1e-4;
    result.lossTolerance = result.precision == Precision::Bf16   ? 2e-2
                           : result.precision == Precision::Tf32 ? 1e-2
                                                                 : 1e-4;
    for (int step = 0; step < steps; ++step) {
        STAGEWRIGHT_TRY(double loss, mine->step(stop));
        STAGEWRIGHT_TRY(double expected, reference->step(stop));
        const double apart = std::abs(loss - expected) / std::abs(expected);
        result.lossError = apart <= result.lossError ? result.lossError : apart; // NaN stays
        // later gradients are of weights that differ already
        if (step > 0) continue;
        const auto names = mine->parameterNames();
        for (std::size_t i = 0; i < names.front().size(); ++i) {
            Difference difference;
            difference.add(mine->gradients().front()[i], reference->gradients().front()[i]);
            if (difference.error <= result.gradientError) continue;
            result.gradientError = difference.error;
            result.farthestTensor = names.front()[i];
        }
    }
    result.passed = result.gradientError <= result.gradientTolerance && result.lossError <= result.lossTolerance;
    return result;
}

} // namespace stagewright
