// What fp32 and bf16 elements share on the CPU: sums, losses and optimizer steps are of floats in both.
#pragma once

#include <algorithm>
#include <cstddef>

#include "engine/cpu/kernels.h"
#include "engine/device/math.h"

namespace stagewright::cpu {

class SharedMath : public layers::LayerMath {
public:
    void expand(int rows, int out, int in, layers::ConstElements x, layers::ConstElements weight, layers::ConstElements,
                layers::Elements hidden, layers::Elements) final
    {
        linearBare(rows, out, in, x, weight, hidden); // its bias comes with the GELU
    }
    double loss(const layers::LossCell& cell) final { return cell.value; }
    void add(std::span<const layers::AddedFloats> sums) final
    {
        for (const layers::AddedFloats& one : sums) k.add(one.count, one.x, one.sum);
    }
    void scale(std::size_t count, float factor, float* x) final
    {
        for (std::size_t i = 0; i < count; ++i) x[i] *= factor;
    }
    double squareSum(std::span<const std::span<const float>> tensors) final
    {
        double sum = 0;
        for (const std::span<const float> tensor : tensors) sum += k.squareSum(tensor.size(), tensor.data());
        return sum;
    }

    void adamW(std::span<const layers::TensorStep> tensors, const AdamWStep& step) final
    {
        eachPart(tensors, [&](const layers::TensorStep& part) {
            k.adamW(part.count, part.value, part.gradient, part.moment1, part.moment2, step);
        });
    }
    void sgd(std::span<const layers::TensorStep> tensors, const layers::SgdStep& s) final
    {
        eachPart(tensors, [&](const layers::TensorStep& part) {
            k.sgd(part.count, part.value, part.gradient, part.moment1, s.learningRate, s.momentum, s.weightDecay,
                  s.gradientScale);
        });
    }
    void undoAdamW(std::span<const layers::TensorStep> tensors, const AdamWStep& step) final
    {
        eachPart(tensors, [&](const layers::TensorStep& part) {
            k.undoAdamW(part.count, part.value, part.gradient, part.moment1, part.moment2, step);
        });
    }
    void undoSgd(std::span<const layers::TensorStep> tensors, const layers::SgdStep& s) final
    {
        eachPart(tensors, [&](const layers::TensorStep& part) {
            k.undoSgd(part.count, part.value, part.gradient, part.moment1, s.learningRate, s.momentum, s.weightDecay,
                      s.gradientScale);
        });
    }

protected:
    // Floats of a tensor, which stay in the cache between their step and their rounding.
    static constexpr std::size_t stepElements = 4096;

    // f(first element of the row, first element of its position): of `width` elements each.
    template <typename Visit>
    static void eachRow(int batch, int tokens, int past, int width, Visit&& visit)
    {
        const auto length = static_cast<std::size_t>(tokens);
        const auto hidden = static_cast<std::size_t>(width);
        for (std::size_t row = 0; row < static_cast<std::size_t>(batch) * length; ++row)
            visit(row * hidden, (static_cast<std::size_t>(past) + row % length) * hidden);
    }
    // Adds the gradients of embedded bytes to the rows of both tables.
    template <typename E>
    static void addToTables(const ElementKernels<E>& kernels, int batch, int tokens, int past, int width,
                            const std::uint8_t* bytes, const E* outGrad, float* tokenGrad, float* positionGrad)
    {
        const auto hidden = static_cast<std::size_t>(width);
        eachRow(batch, tokens, past, width, [&](std::size_t row, std::size_t position) {
            kernels.add(hidden, outGrad + row, tokenGrad + bytes[row / hidden] * hidden);
            kernels.add(hidden, outGrad + row, positionGrad + position);
        });
    }

    const Kernels& k = kernels();

private:
    // The step on some elements of each tensor after the others, each followed by what the layers use of them, where
    // that is not `value` itself.
    template <typename Step>
    void eachPart(std::span<const layers::TensorStep> tensors, const Step& step)
    {
        for (const layers::TensorStep& tensor : tensors) stepOn(tensor, step);
    }
    template <typename Step>
    void stepOn(const layers::TensorStep& whole, const Step& step)
    {
        if (!whole.used) return step(whole);
        const auto from = [](float* tensor, std::size_t first) { return tensor ? tensor + first : nullptr; };
        for (std::size_t first = 0; first < whole.count; first += stepElements) {
            const std::size_t count = std::min(stepElements, whole.count - first);
            step(layers::TensorStep{count,
                                    whole.value + first,
                                    whole.gradient + first,
                                    from(whole.moment1, first),
                                    from(whole.moment2, first),
                                    {}});
            toElements(count, whole.value + first, at(whole.used, first));
        }
    }
};

} // namespace stagewright::cpu
