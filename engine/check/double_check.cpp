#include "engine/check/double_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/workload/references.h"
#include "schedules/base/hashing.h"

namespace stagewright {

namespace {

void moveAway(ParameterView& view)
{
    const float factor = view.name.ends_with("gamma") ? 1.0F : 6.0F;
    for (std::size_t i = 0; i < view.value.size(); ++i)
        view.value[i] = view.value[i] * factor + 1e-4F * (static_cast<float>(mixBits(i) % 1000) - 500.0F);
}

} // namespace

Result<DoubleComparison> compareWithDouble(const TrainingOptions& options)
{
    const std::optional<DoubleForm> form = options.workload->doubleForm(options.microbatchSize);
    if (!form)
        return fail(ErrorCode::Usage,
                    fmt::format("{} has no second implementation in double precision", options.workload->name()),
                    "give another model");
    const Workload& workload = *form->workload;
    DoubleReference& reference = *form->reference;
    DeviceOptions device = options.device;
    device.precision = Precision::Fp32;
    STAGEWRIGHT_TRY(auto backend, makeBackend(options.backend, device));
    STAGEWRIGHT_TRY(auto slices, slicesOf(workload, 1));
    Allocator allocator;
    STAGEWRIGHT_TRY(auto stage, makeStage(workload, *backend,
                                          {slices.front(), form->samples, options.seed, options.optimizer}, allocator));

    auto views = stage->parameters();
    for (ParameterView& view : views) {
        moveAway(view);
        reference.parameters[view.name].assign(view.value.begin(), view.value.end());
    }
    stage->parametersWritten();

    const auto positions = static_cast<std::size_t>(form->samples) * static_cast<std::size_t>(workload.positions());
    std::vector<std::uint8_t> tokens(positions * static_cast<std::size_t>(workload.tokenBytes()));
    std::vector<std::uint8_t> targets(positions * static_cast<std::size_t>(workload.targetBytes()));
    workload.sample(options.seed, 0, 0, form->samples, tokens, targets);
    const Part part(0);
    stage->forward(part, {}, tokens, targets);
    const double loss = stage->loss(part);
    stage->inputGrad(part, {});
    stage->weightGrad(part);
    const double expected = reference.run(tokens, targets);

    DoubleComparison result;
    result.backend = options.backend;
    result.model = form->title;
    result.gradientTolerance = 1e-4;
    result.lossTolerance = 1e-5;
    result.lossError = std::abs(loss - expected) / std::abs(expected);
    for (const ParameterView& view : stage->parameters()) {
        const auto& own = reference.gradients.at(view.name);
        double square = 0;
        double difference = 0;
        for (std::size_t i = 0; i < own.size(); ++i) {
            square += own[i] * own[i];
            difference += (view.gradient[i] - own[i]) * (view.gradient[i] - own[i]);
        }
        const double error = difference == 0 ? 0 : std::sqrt(difference / square);
        if (error <= result.gradientError) continue; // NaN stays
        result.gradientError = error;
        result.farthestTensor = view.name;
    }
    result.passed = result.gradientError <= result.gradientTolerance && result.lossError <= result.lossTolerance;
    return result;
}

} // namespace stagewright
