// The model of docs/model.md once more: forward and backward in double precision by plain loops, as a reference for the
// engine's loss and gradients. It takes parameters by name and bytes, and shares no code with the engine. O(rows ·
// parameters) and one thread: for small models.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/workload/references.h"

namespace stagewright {

class DoubleModel final : public DoubleReference {
public:
    int layers = 1, hidden = 8, heads = 1, sequence = 4, vocabulary = 16, batch = 1;

    // Mean cross-entropy in nats over batch × sequence rows.
    double run(const std::vector<std::uint8_t>& tokens, const std::vector<std::uint8_t>& targets) override;

private:
    struct Kept {
        Values before, normed1, qkv, attended, between, normed2, expanded, active;
    };

    Values linear(const std::string& weight, const std::string& bias, const Values& in, std::size_t rows,
                  std::size_t inputs, std::size_t outputs) const;
    Values linearBack(const std::string& weight, const std::string& bias, const Values& in, const Values& outGrad,
                      std::size_t rows, std::size_t inputs, std::size_t outputs);
    Values norm(const std::string& name, const Values& in) const;
    Values normBack(const std::string& name, const Values& in, const Values& outGrad);
    // Causal attention of one sample and head; with outGrad also the gradient of qkv.
    void attend(const Values& qkv, Values& out, const Values* outGrad, Values* qkvGrad) const;
    void forward(int layer, Kept& kept, Values& stream) const;
    void backward(int layer, const Kept& kept, Values& grad);
};

} // namespace stagewright
