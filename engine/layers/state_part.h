// What outlives a step, part by part: how the state of a stage is taken out and put back, whoever holds it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace stagewright {

// What is kept of a parameter; all are fp32 here, whatever the layers compute with.
enum class StateKind : std::uint8_t {
    Value,
    Moment1, // AdamW: mean of gradients; Sgd: velocity, or the direction that is predicted from
    Moment2, // AdamW: mean of squares
    Delayed, // the weights of before the last update, where ops compute with them
};

// Elements of a parameter's tensor from `first` on.
struct StatePart {
    const std::string& parameter; // its name
    const std::vector<int>& shape;
    StateKind kind = StateKind::Value;
    std::int64_t first = 0;
};

using StateSink = std::function<void(const StatePart& part, std::span<const float> numbers)>;
// Fills the numbers; false: there are none of this kind.
using StateSource = std::function<bool(const StatePart& part, std::span<float> numbers)>;

} // namespace stagewright
