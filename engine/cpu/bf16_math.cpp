// bf16 elements: GEMMs of them summed up in fp32, rounded as they are stored; everything else computed in fp32.
#include "engine/cpu/bf16_math.h"

#include <algorithm>

#include "engine/cpu/attention.h"
#include "engine/cpu/bf16_attention.h"
#include "engine/cpu/cpu_math.h"
#include "engine/cpu/shared_math.h"

namespace stagewright::cpu {

namespace {

using namespace layers;

const BFloat16* elementsOf(ConstElements elements) { return static_cast<const BFloat16*>(elements.data); }
BFloat16* elementsOf(Elements elements) { return static_cast<BFloat16*>(elements.data); }

class Bf16Math final : public SharedMath {
public:
    Bf16Math(const Bf16Gemm& gemm, Allocator& allocator, int stage)
        : m_gemm(gemm), m_allocator(allocator), m_tag(workspaceTag(stage))
    {
    }

    int elementBytes() const override { return sizeof(BFloat16); }

    void layerNorm(int rows, int width, Elements x, ConstElements bias, ConstElements gamma, ConstElements beta,
                   Elements normal, float* deviation, Elements out) override
    {
        n.layerNorm(rows, width, elementsOf(x), elementsOf(bias), elementsOf(gamma), elementsOf(beta),
                    elementsOf(normal), deviation, elementsOf(out));
    }
    void scaleShift(int rows, int width, ConstElements normal, ConstElements gamma, ConstElements beta,
                    Elements out) override
    {
        n.scaleShift(rows, width, elementsOf(normal), elementsOf(gamma), elementsOf(beta), elementsOf(out));
    }
    void layerNormBackward(int rows, int width, ConstElements outGrad, ConstElements normal, const float* deviation,
                           ConstElements gamma, ConstElements residual, Elements inputGrad,
                           const ColumnSums& sums) override
    {
        n.layerNormBackward(rows, width, elementsOf(outGrad), elementsOf(normal), deviation, elementsOf(gamma),
                            elementsOf(residual), elementsOf(inputGrad), sums);
    }

    void linear(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias,
                Elements y) override
    {
        forward(rows, out, in, x, weight, [&](int first, int columns, const float* gemm) {
            n.storeRows(rows, columns, gemm, elementsOf(bias) + first, elementsOf(y) + first, out);
        });
    }
    void linearAdd(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        forward(rows, out, in, x, weight, [&](int first, int columns, const float* gemm) {
            n.addRows(rows, columns, gemm, elementsOf(y) + first, out);
        });
    }
    void linearBare(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        forward(rows, out, in, x, weight, [&](int first, int columns, const float* gemm) {
            n.storeRows(rows, columns, gemm, nullptr, elementsOf(y) + first, out);
        });
    }
    void linearInputGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements weight,
                         Elements dx) override
    {
        backward(rows, out, in, alpha, dy, weight, [&](int first, int columns, const float* gemm) {
            n.storeRows(rows, columns, gemm, nullptr, elementsOf(dx) + first, in);
        });
    }
    void linearWeightGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements x,
                          float* gradient) override
    {
        m_gemm.multiply(true, false, out, in, rows, alpha, {elementsOf(dy), out}, {elementsOf(x), in}, 1.0F, gradient,
                        in);
    }

    void activate(int rows, int width, ConstElements hidden, ConstElements bias, Elements activation) override
    {
        n.gelu(rows, width, elementsOf(hidden), elementsOf(bias), elementsOf(activation));
    }
    void geluInputGrad(int rows, int wide, int width, ConstElements outputGrad, ConstElements contract,
                       ConstElements bias, Elements hidden, Elements hiddenGrad, float* biasSums) override
    {
        backward(rows, width, wide, 1.0F, outputGrad, contract, [&](int first, int columns, const float* gemm) {
            n.geluBackward(rows, columns, wide, elementsOf(hidden) + first, elementsOf(bias) + first, gemm,
                           elementsOf(hiddenGrad) + first, biasSums + first);
        });
    }

    std::size_t keptByAttention(const AttentionShape& shape) const override { return bf16::probabilityFloats(shape); }
    std::size_t attentionWorkspace(const AttentionShape& shape) const override
    {
        return bf16::backwardWorkspace(shape);
    }
    void attentionForward(const AttentionShape& shape, ConstElements query, int queryStride,
                          std::span<const KeySegment> segments, float* kept, Elements out) override
    {
        const Buffer workspace = borrow(bf16::forwardWorkspace(shape));
        bf16AttentionForward(shape, n, m_gemm, query, queryStride, segments, kept, out, workspace.data());
    }
    void attentionBackward(const AttentionShape& shape, ConstElements query, int queryStride,
                           std::span<const KeySegment> segments, const float* kept, ConstElements,
                           ConstElements outGrad, Elements queryGrad, std::span<const KeyGradSegment> gradients,
                           float* workspace) override
    {
        bf16AttentionBackward(shape, n, m_gemm, query, queryStride, segments, kept, outGrad, queryGrad, gradients,
                              workspace);
    }

    void embed(int batch, int tokens, int past, int width, const std::uint8_t* bytes, ConstElements tokenTable,
               ConstElements positionTable, Elements out) override
    {
        eachRow(batch, tokens, past, width, [&](std::size_t row, std::size_t position) {
            n.embedRow(width,
                       elementsOf(tokenTable) +
                           bytes[row / static_cast<std::size_t>(width)] * static_cast<std::size_t>(width),
                       elementsOf(positionTable) + position, elementsOf(out) + row);
        });
    }
    void embedWeightGrad(int batch, int tokens, int past, int width, int, const std::uint8_t* bytes,
                         ConstElements outGrad, float* tokenGrad, float* positionGrad) override
    {
        addToTables<BFloat16>(n, batch, tokens, past, width, bytes, elementsOf(outGrad), tokenGrad, positionGrad);
    }
    void crossEntropy(int rows, int vocabulary, Elements logits, const std::uint8_t* targets, LossCell& cell) override
    {
        cell.value = n.crossEntropy(rows, vocabulary, elementsOf(logits), targets) / rows;
    }

    void columnSums(int rows, int width, ConstElements x, float* sums) override
    {
        std::fill_n(sums, width, 0.0F);
        n.addColumnSums(rows, width, elementsOf(x), sums);
    }

    void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                 const AdamWStep& step, Elements out) override
    {
        float predicted[stepElements];
        for (std::size_t first = 0; first < count; first += stepElements) {
            const std::size_t part = std::min(stepElements, count - first);
            k.predict(part, value + first, moment1 + first, moment2 ? moment2 + first : nullptr, reach, step,
                      predicted);
            n.storeRows(1, static_cast<int>(part), predicted, nullptr, elementsOf(out) + first, 0);
        }
    }
    void toElements(std::size_t count, const float* value, Elements elements) override
    {
        for (std::size_t first = 0; first < count; first += stepElements)
            n.storeRows(1, static_cast<int>(std::min(stepElements, count - first)), value + first, nullptr,
                        elementsOf(elements) + first, 0);
    }

private:
    Buffer borrow(std::size_t floats) const { return m_allocator.take(floats, m_tag); }

    // x · Wᵀ, some columns at a time: finish(first column, columns, GEMM) is what becomes of them.
    template <typename Finish>
    void forward(int rows, int out, int in, ConstElements x, ConstElements weight, Finish&& finish) const
    {
        const Buffer gemm = borrow(bf16::gemmWorkspace(rows, out));
        for (int first = 0; first < out; first += bf16::gemmColumns) {
            const int columns = std::min(bf16::gemmColumns, out - first);
            m_gemm.multiply(false, true, rows, columns, in, 1.0F, {elementsOf(x), in},
                            {elementsOf(weight) + static_cast<std::size_t>(first) * static_cast<std::size_t>(in), in},
                            0.0F, gemm.data(), columns);
            finish(first, columns, gemm.data());
        }
    }
    // alpha · dy · W, likewise.
    template <typename Finish>
    void backward(int rows, int out, int in, float alpha, ConstElements dy, ConstElements weight, Finish&& finish) const
    {
        const Buffer gemm = borrow(bf16::gemmWorkspace(rows, in));
        for (int first = 0; first < in; first += bf16::gemmColumns) {
            const int columns = std::min(bf16::gemmColumns, in - first);
            m_gemm.multiply(false, false, rows, columns, out, alpha, {elementsOf(dy), out},
                            {elementsOf(weight) + first, in}, 0.0F, gemm.data(), columns);
            finish(first, columns, gemm.data());
        }
    }
    const Bf16Kernels& n = k.bf16;
    const Bf16Gemm& m_gemm;
    Allocator& m_allocator;
    MemoryTag m_tag;
};

} // namespace

std::unique_ptr<layers::LayerMath> makeBf16Math(const Bf16Gemm& gemm, Allocator& allocator, int stage)
{
    return std::make_unique<Bf16Math>(gemm, allocator, stage);
}

} // namespace stagewright::cpu
