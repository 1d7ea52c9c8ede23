// The parameters of a stage: values, gradient accumulators and optimizer state, each tensor in blocks of its own.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend.h"
#include "engine/cpu/kernels.h"

namespace stagewright::cpu {

struct Parameter {
    std::string name; // "layer3.mlp.fc1.weight"
    std::vector<int> shape;
    Buffer value;
    Buffer gradient;
    Buffer moment1; // AdamW: mean of gradients; Sgd with momentum: velocity
    Buffer moment2; // AdamW: mean of squares
};

// Normal deviates of a seed and a name: element i is a pure function of (seed, name, i), exact integer arithmetic until
// one scaling, so that every machine draws the same weights. The sum of eight uniform 16-bit numbers, cut at ±4.9 σ.
void fillNormal(std::uint64_t seed, std::string_view name, float deviation, std::span<float> out);

class ParameterSet {
public:
    ParameterSet(int stage, std::uint64_t seed, const OptimizerConfig& optimizer, Allocator& allocator);

    // References stay valid. Gradients and optimizer state start at zero.
    Parameter& addNormal(std::string name, std::vector<int> shape, float deviation);
    Parameter& addConstant(std::string name, std::vector<int> shape, float value);

    void zeroGradients();
    double gradientSquareSum() const; // tensor by tensor in the order of adding
    void step(const OptimizerConfig& config, int step, float gradientScale);
    std::vector<ParameterView> views();

private:
    Parameter& add(std::string name, std::vector<int> shape);

    std::deque<Parameter> m_parameters;
    int m_stage;
    std::uint64_t m_seed;
    OptimizerConfig m_optimizer;
    Allocator& m_allocator;
};

} // namespace stagewright::cpu
