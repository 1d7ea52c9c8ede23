#include "engine/check/double_check.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "engine/check/double_model.h"
#include "engine/device/backends.h"
#include "engine/model/corpus.h"
#include "schedules/base/hashing.h"

namespace stagewright {

namespace {

constexpr double mostProducts = 2e8;
constexpr int mostSamples = 4;

// Multiplications of a forward and a backward, about.
double productsOf(const ModelConfig& model, int samples)
{
    const double rows = static_cast<double>(samples) * model.sequence;
    const double hidden = model.hidden;
    return 3 * rows * (model.layers * (12 * hidden * hidden + 2 * hidden * model.sequence) + hidden * model.vocabulary);
}

ModelConfig cut(ModelConfig model, int samples)
{
    model.layers = std::min(model.layers, 3);
    while (productsOf(model, samples) > mostProducts && model.sequence > 16) model.sequence /= 2;
    while (productsOf(model, samples) > mostProducts && model.hidden / model.heads > 8 &&
           model.hidden % (2 * model.heads) == 0)
        model.hidden /= 2;
    while (productsOf(model, samples) > mostProducts && model.heads > 1) {
        model.hidden = model.hidden / model.heads * (model.heads / 2);
        model.heads /= 2;
    }
    return model;
}

void moveAway(ParameterView& view)
{
    const float factor = view.name.ends_with("gamma") ? 1.0F : 6.0F;
    for (std::size_t i = 0; i < view.value.size(); ++i)
        view.value[i] = view.value[i] * factor + 1e-4F * (static_cast<float>(mixBits(i) % 1000) - 500.0F);
}

} // namespace

Result<DoubleComparison> compareWithDouble(const TrainingOptions& options)
{
    const int samples = std::min(options.microbatchSize, mostSamples);
    const ModelConfig model = cut(options.model, samples);
    DeviceOptions device = options.device;
    device.precision = Precision::Fp32;
    STAGEWRIGHT_TRY(auto backend, makeBackend(options.backend, device));
    STAGEWRIGHT_TRY(auto slices, sliceModel(model, 1, {}));
    Allocator allocator;
    STAGEWRIGHT_TRY(auto stage,
                    backend->makeStage(model, slices.front(), samples, options.seed, options.optimizer, allocator));

    DoubleModel reference;
    reference.layers = model.layers;
    reference.hidden = model.hidden;
    reference.heads = model.heads;
    reference.sequence = model.sequence;
    reference.vocabulary = model.vocabulary;
    reference.batch = samples;
    auto views = stage->parameters();
    for (ParameterView& view : views) {
        moveAway(view);
        reference.parameters[view.name].assign(view.value.begin(), view.value.end());
    }
    stage->parametersWritten();

    std::vector<std::uint8_t> tokens(static_cast<std::size_t>(samples) * static_cast<std::size_t>(model.sequence));
    std::vector<std::uint8_t> targets(tokens.size());
    const std::shared_ptr<const Corpus> data = options.data ? options.data : Corpus::builtIn();
    data->sample(options.seed, 0, 0, samples, model.sequence, tokens, targets);
    for (auto* bytes : {&tokens, &targets})
        for (std::uint8_t& byte : *bytes) byte = static_cast<std::uint8_t>(byte % model.vocabulary);
    const Part part(0);
    stage->forward(part, {}, tokens, targets);
    const double loss = stage->loss(part);
    stage->inputGrad(part, {});
    stage->weightGrad(part);
    const double expected = reference.run(tokens, targets);

    DoubleComparison result;
    result.backend = options.backend;
    result.model = fmt::format("{} layers of {}, sequence {}", model.layers, model.hidden, model.sequence);
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
