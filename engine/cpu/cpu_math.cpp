#include "engine/cpu/cpu_math.h"

#include "engine/cpu/attention.h"
#include "engine/cpu/openblas.h"
#include "engine/cpu/shared_math.h"

namespace stagewright::cpu {

namespace {

using namespace layers;

const float* floats(ConstElements elements) { return static_cast<const float*>(elements.data); }
float* floats(Elements elements) { return static_cast<float*>(elements.data); }

class CpuMath final : public SharedMath {
public:
    explicit CpuMath(const Gemm& gemm) : m_gemm(gemm) {}

    int elementBytes() const override { return sizeof(float); }
    const DenseMath* dense() const override { return openBlasDense(); }

    void layerNorm(int rows, int width, Elements x, ConstElements bias, ConstElements gamma, ConstElements beta,
                   Elements normal, float* deviation, Elements out) override
    {
        k.layerNorm(rows, width, floats(x), floats(bias), floats(gamma), floats(beta), floats(normal), deviation,
                    floats(out));
    }
    void scaleShift(int rows, int width, ConstElements normal, ConstElements gamma, ConstElements beta,
                    Elements out) override
    {
        k.scaleShift(rows, width, floats(normal), floats(gamma), floats(beta), floats(out));
    }
    void layerNormBackward(int rows, int width, ConstElements outGrad, ConstElements normal, const float* deviation,
                           ConstElements gamma, ConstElements residual, Elements inputGrad,
                           const ColumnSums& sums) override
    {
        k.layerNormBackward(rows, width, floats(outGrad), floats(normal), deviation, floats(gamma), floats(residual),
                            floats(inputGrad), sums);
    }

    void linear(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias,
                Elements y) override
    {
        k.fillRows(rows, out, floats(bias), floats(y));
        linearAdd(rows, out, in, x, weight, y);
    }
    void linearAdd(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        m_gemm.timesTransposed(rows, out, in, 1.0F, {floats(x), in}, {floats(weight), in}, 1.0F, floats(y), out);
    }
    void linearBare(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) override
    {
        m_gemm.timesTransposed(rows, out, in, 1.0F, {floats(x), in}, {floats(weight), in}, 0.0F, floats(y), out);
    }
    void linearInputGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements weight,
                         Elements dx) override
    {
        m_gemm.times(rows, in, out, alpha, {floats(dy), out}, {floats(weight), in}, 0.0F, floats(dx), in);
    }
    void linearWeightGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements x,
                          float* gradient) override
    {
        m_gemm.transposedTimes(out, in, rows, alpha, {floats(dy), out}, {floats(x), in}, 1.0F, gradient, in);
    }

    void activate(int rows, int width, ConstElements hidden, ConstElements bias, Elements activation) override
    {
        k.gelu(rows, width, floats(hidden), floats(bias), floats(activation));
    }
    void geluInputGrad(int rows, int wide, int width, ConstElements outputGrad, ConstElements contract,
                       ConstElements bias, Elements hidden, Elements hiddenGrad, float* biasSums) override
    {
        linearInputGrad(rows, width, wide, 1.0F, outputGrad, contract, hiddenGrad);
        k.geluBackward(rows, wide, floats(hidden), floats(bias), floats(hiddenGrad), biasSums);
    }

    std::size_t keptByAttention(const AttentionShape& shape) const override { return probabilityCount(shape); }
    std::size_t attentionWorkspace(const AttentionShape& shape) const override
    {
        return cpu::attentionWorkspace(shape);
    }
    void attentionForward(const AttentionShape& shape, ConstElements query, int queryStride,
                          std::span<const KeySegment> segments, float* kept, Elements out) override
    {
        cpu::attentionForward(shape, k, m_gemm, floats(query), queryStride, segments, kept, floats(out));
    }
    void attentionBackward(const AttentionShape& shape, ConstElements query, int queryStride,
                           std::span<const KeySegment> segments, const float* kept, ConstElements,
                           ConstElements outGrad, Elements queryGrad, std::span<const KeyGradSegment> gradients,
                           float* workspace) override
    {
        cpu::attentionBackward(shape, k, m_gemm, floats(query), queryStride, segments, kept, floats(outGrad),
                               floats(queryGrad), gradients, workspace);
    }

    void embed(int batch, int tokens, int past, int width, const std::uint8_t* bytes, ConstElements tokenTable,
               ConstElements positionTable, Elements out) override
    {
        const auto hidden = static_cast<std::size_t>(width);
        eachRow(batch, tokens, past, width, [&](std::size_t row, std::size_t position) {
            const float* token = floats(tokenTable) + bytes[row / hidden] * hidden;
            const float* place = floats(positionTable) + position;
            float* to = floats(out) + row;
            for (std::size_t i = 0; i < hidden; ++i) to[i] = token[i] + place[i];
        });
    }
    void embedWeightGrad(int batch, int tokens, int past, int width, int, const std::uint8_t* bytes,
                         ConstElements outGrad, float* tokenGrad, float* positionGrad) override
    {
        addToTables(k, batch, tokens, past, width, bytes, floats(outGrad), tokenGrad, positionGrad);
    }
    void crossEntropy(int rows, int vocabulary, Elements logits, const std::uint8_t* targets, LossCell& cell) override
    {
        cell.value = k.crossEntropy(rows, vocabulary, floats(logits), targets) / rows;
    }

    void columnSums(int rows, int width, ConstElements x, float* sums) override
    {
        for (int i = 0; i < width; ++i) sums[i] = 0;
        k.addColumnSums(rows, width, floats(x), sums);
    }

    void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                 const AdamWStep& step, Elements out) override
    {
        k.predict(count, value, moment1, moment2, reach, step, floats(out));
    }
    void toElements(std::size_t, const float*, Elements) override {} // the layers use the values themselves

private:
    const Gemm& m_gemm;
};

} // namespace

std::unique_ptr<layers::LayerMath> makeCpuMath(const Gemm& gemm) { return std::make_unique<CpuMath>(gemm); }

} // namespace stagewright::cpu
