#include "engine/cpu/cpu_math.h"

#include "engine/cpu/attention.h"
#include "engine/cpu/kernels.h"

namespace stagewright::cpu {

namespace {

using namespace layers;

class CpuMath final : public LayerMath {
public:
    explicit CpuMath(const Products& products) : m_products(products) {}

    int elementBytes() const override { return sizeof(float); }

    void layerNorm(int rows, int width, float* x, const float* bias, const float* gamma, const float* beta, float* normal,
                   float* deviation, float* out) override
    {
        k.layerNorm(rows, width, x, bias, gamma, beta, normal, deviation, out);
    }
    void scaleShift(int rows, int width, const float* normal, const float* gamma, const float* beta, float* out) override
    {
        k.scaleShift(rows, width, normal, gamma, beta, out);
    }
    void layerNormBackward(int rows, int width, const float* outGrad, const float* normal, const float* deviation,
                           const float* gamma, const float* residual, float* inputGrad, const ColumnSums& sums) override
    {
        k.layerNormBackward(rows, width, outGrad, normal, deviation, gamma, residual, inputGrad, sums);
    }

    void linear(int rows, int out, int in, const float* x, const float* weight, const float* bias, float* y) override
    {
        k.fillRows(rows, out, bias, y);
        linearAdd(rows, out, in, x, weight, y);
    }
    void linearAdd(int rows, int out, int in, const float* x, const float* weight, float* y) override
    {
        m_products.timesTransposed(rows, out, in, 1.0F, {x, in}, {weight, in}, 1.0F, y, out);
    }
    void linearBare(int rows, int out, int in, const float* x, const float* weight, float* y) override
    {
        m_products.timesTransposed(rows, out, in, 1.0F, {x, in}, {weight, in}, 0.0F, y, out);
    }
    void linearInputGrad(int rows, int out, int in, float alpha, const float* dy, const float* weight, float* dx) override
    {
        m_products.times(rows, in, out, alpha, {dy, out}, {weight, in}, 0.0F, dx, in);
    }
    void linearWeightGrad(int rows, int out, int in, float alpha, const float* dy, const float* x, float* gradient) override
    {
        m_products.transposedTimes(out, in, rows, alpha, {dy, out}, {x, in}, 1.0F, gradient, in);
    }

    void expand(int rows, int out, int in, const float* x, const float* weight, const float*, float* hidden, float*) override
    {
        linearBare(rows, out, in, x, weight, hidden); // its bias comes with the GELU
    }
    void activate(int rows, int width, const float* hidden, const float* bias, float* activation) override
    {
        k.gelu(rows, width, hidden, bias, activation);
    }
    void geluInputGrad(int rows, int wide, int width, const float* outputGrad, const float* contract, const float* bias,
                       float* hidden, float* hiddenGrad, float* biasSums) override
    {
        linearInputGrad(rows, width, wide, 1.0F, outputGrad, contract, hiddenGrad);
        k.geluBackward(rows, wide, hidden, bias, hiddenGrad, biasSums);
    }

    std::size_t keptByAttention(const AttentionShape& shape) const override { return probabilityCount(shape); }
    std::size_t attentionWorkspace(const AttentionShape& shape) const override { return cpu::attentionWorkspace(shape); }
    void attentionForward(const AttentionShape& shape, const float* query, int queryStride,
                          std::span<const KeySegment> segments, float* kept, float* out) override
    {
        cpu::attentionForward(shape, k, m_products, query, queryStride, segments, kept, out);
    }
    void attentionBackward(const AttentionShape& shape, const float* query, int queryStride,
                           std::span<const KeySegment> segments, const float* kept, const float*, const float* outGrad,
                           float* queryGrad, std::span<const KeyGradSegment> gradients, float* workspace) override
    {
        cpu::attentionBackward(shape, k, m_products, query, queryStride, segments, kept, outGrad, queryGrad, gradients, workspace);
    }

    void embed(int batch, int tokens, int past, int width, const std::uint8_t* bytes, const float* tokenTable,
               const float* positionTable, float* out) override
    {
        const auto hidden = static_cast<std::size_t>(width);
        eachRow(batch, tokens, past, [&](std::size_t row, std::size_t position) {
            const float* token = tokenTable + bytes[row] * hidden;
            const float* place = positionTable + position * hidden;
            float* to = out + row * hidden;
            for (std::size_t i = 0; i < hidden; ++i)
                to[i] = token[i] + place[i];
        });
    }
    void embedWeightGrad(int batch, int tokens, int past, int width, int, const std::uint8_t* bytes, const float* outGrad,
                         float* tokenGrad, float* positionGrad) override
    {
        const auto hidden = static_cast<std::size_t>(width);
        eachRow(batch, tokens, past, [&](std::size_t row, std::size_t position) {
            k.add(hidden, outGrad + row * hidden, tokenGrad + bytes[row] * hidden);
            k.add(hidden, outGrad + row * hidden, positionGrad + position * hidden);
        });
    }
    void crossEntropy(int rows, int vocabulary, float* logits, const std::uint8_t* targets, LossCell& cell) override
    {
        cell.value = k.crossEntropy(rows, vocabulary, logits, targets) / rows;
    }
    double loss(const LossCell& cell) override { return cell.value; }

    void columnSums(int rows, int width, const float* x, float* sums) override
    {
        for (int i = 0; i < width; ++i)
            sums[i] = 0;
        k.addColumnSums(rows, width, x, sums);
    }
    void add(std::size_t count, const float* x, float* sum) override { k.add(count, x, sum); }
    double squareSum(std::span<const std::span<const float>> tensors) override
    {
        double sum = 0;
        for (const std::span<const float> tensor : tensors)
            sum += k.squareSum(tensor.size(), tensor.data());
        return sum;
    }

    void adamW(const TensorStep& t, const AdamWStep& step) override
    {
        k.adamW(t.count, t.value, t.gradient, t.moment1, t.moment2, step);
    }
    void sgd(const TensorStep& t, const SgdStep& s) override
    {
        k.sgd(t.count, t.value, t.gradient, t.moment1, s.learningRate, s.momentum, s.weightDecay, s.gradientScale);
    }
    void undoAdamW(const TensorStep& t, const AdamWStep& step) override
    {
        k.undoAdamW(t.count, t.value, t.gradient, t.moment1, t.moment2, step);
    }
    void undoSgd(const TensorStep& t, const SgdStep& s) override
    {
        k.undoSgd(t.count, t.value, t.gradient, t.moment1, s.learningRate, s.momentum, s.weightDecay, s.gradientScale);
    }
    void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                 const AdamWStep& step, float* out) override
    {
        k.predict(count, value, moment1, moment2, reach, step, out);
    }
    void toElements(std::size_t, const float*, float*) override {} // the layers use the values themselves

private:
    template <typename Visit>
    static void eachRow(int batch, int tokens, int past, Visit&& visit)
    {
        const auto length = static_cast<std::size_t>(tokens);
        for (std::size_t row = 0; row < static_cast<std::size_t>(batch) * length; ++row)
            visit(row, static_cast<std::size_t>(past) + row % length);
    }

    const Kernels& k = kernels();
    const Products& m_products;
};

} // namespace

std::unique_ptr<layers::LayerMath> makeCpuMath(const Products& products)
{
    return std::make_unique<CpuMath>(products);
}

} // namespace stagewright::cpu
