#include "engine/cpu/parameters.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "engine/hashing.h"

namespace stagewright::cpu {

void fillNormal(std::uint64_t seed, std::string_view name, float deviation, std::span<float> out)
{
    const std::uint64_t key = mixBits(hashText(name) ^ mixBits(seed));
    // The variance of one uniform integer in 0 … 65535 is (65536² − 1) / 12; eight of them are added.
    const double scale = static_cast<double>(deviation) / std::sqrt(8.0 * (65536.0 * 65536.0 - 1.0) / 12.0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t a = mixBits(key + 2 * i);
        const std::uint64_t b = mixBits(key + 2 * i + 1);
        std::int64_t sum = 0;
        for (int shift = 0; shift < 64; shift += 16)
            sum += static_cast<std::int64_t>(a >> shift & 0xffff) + static_cast<std::int64_t>(b >> shift & 0xffff);
        // Eight means of 32767.5 make 262140.
        out[i] = static_cast<float>(static_cast<double>(sum - 262140) * scale);
    }
}

ParameterSet::ParameterSet(int stage, std::uint64_t seed, const OptimizerConfig& optimizer, Allocator& allocator)
    : m_stage(stage), m_seed(seed), m_optimizer(optimizer), m_allocator(allocator)
{
}

Parameter& ParameterSet::add(std::string name, std::vector<int> shape)
{
    std::size_t count = 1;
    for (int extent : shape)
        count *= static_cast<std::size_t>(extent);
    const auto take = [&](MemoryCategory category) {
        Buffer buffer = m_allocator.take(count, {category, static_cast<std::uint16_t>(m_stage), -1});
        std::ranges::fill(buffer.span(), 0.0F);
        return buffer;
    };
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.value = take(MemoryCategory::Weights);
    parameter.gradient = take(MemoryCategory::Gradients);
    const bool adam = m_optimizer.kind == OptimizerKind::AdamW;
    if (adam || m_optimizer.momentum != 0) parameter.moment1 = take(MemoryCategory::Optimizer);
    if (adam) parameter.moment2 = take(MemoryCategory::Optimizer);
    return m_parameters.emplace_back(std::move(parameter));
}

Parameter& ParameterSet::addNormal(std::string name, std::vector<int> shape, float deviation)
{
    Parameter& parameter = add(std::move(name), std::move(shape));
    fillNormal(m_seed, parameter.name, deviation, parameter.value.span());
    return parameter;
}

Parameter& ParameterSet::addConstant(std::string name, std::vector<int> shape, float value)
{
    Parameter& parameter = add(std::move(name), std::move(shape));
    std::ranges::fill(parameter.value.span(), value);
    return parameter;
}

void ParameterSet::zeroGradients()
{
    for (Parameter& parameter : m_parameters)
        std::ranges::fill(parameter.gradient.span(), 0.0F);
}

double ParameterSet::gradientSquareSum() const
{
    double sum = 0;
    for (const Parameter& parameter : m_parameters)
        sum += kernels().squareSum(parameter.gradient.size(), parameter.gradient.data());
    return sum;
}

void ParameterSet::step(const OptimizerConfig& config, int step, float gradientScale)
{
    if (config.kind != m_optimizer.kind || (config.momentum != 0) != (m_optimizer.momentum != 0))
        throw std::invalid_argument("optimizer step: the stage was made for another optimizer");
    const double warm = config.warmupSteps > 0 ? std::min(1.0, static_cast<double>(step) / config.warmupSteps) : 1.0;
    const auto rate = static_cast<float>(config.learningRate * warm);
    AdamWStep adam{};
    adam.learningRate = rate;
    adam.beta1 = static_cast<float>(config.beta1);
    adam.beta2 = static_cast<float>(config.beta2);
    adam.correction1 = static_cast<float>(1.0 / (1.0 - std::pow(config.beta1, step)));
    adam.correction2 = static_cast<float>(1.0 / (1.0 - std::pow(config.beta2, step)));
    adam.epsilon = static_cast<float>(config.epsilon);
    adam.gradientScale = gradientScale;
    for (Parameter& p : m_parameters) {
        const auto decay = static_cast<float>(p.shape.size() > 1 ? config.weightDecay : 0.0);
        if (config.kind == OptimizerKind::AdamW) {
            adam.weightDecay = decay;
            kernels().adamW(p.value.size(), p.value.data(), p.gradient.data(), p.moment1.data(), p.moment2.data(), adam);
        } else {
            kernels().sgd(p.value.size(), p.value.data(), p.gradient.data(), p.moment1.data(), rate,
                          static_cast<float>(config.momentum), decay, gradientScale);
        }
    }
}

std::vector<ParameterView> ParameterSet::views()
{
    std::vector<ParameterView> views;
    views.reserve(m_parameters.size());
    for (Parameter& parameter : m_parameters)
        views.push_back({parameter.name, parameter.shape, parameter.value.span(), parameter.gradient.span()});
    return views;
}

} // namespace stagewright::cpu
