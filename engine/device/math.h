// LayerMath: the arithmetic under the layers, one implementation per device. The layers decide what is computed when
// and what is kept; a LayerMath computes. One per stage, on its rank's thread; an asynchronous device works off the
// requests in order, on the rank's queue, and only the functions that return a number wait for it.
//
// All matrices are row-major and dense, in the device's memory. Gradients of weights, sums over rows, deviations and
// optimizer state are floats. Activations, their gradients and the weights that layers compute with are elements, which
// may be narrower: so many of them take words(elements) floats, and at() steps through them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/device/kernel_arguments.h"
#include "engine/device/memory.h"

namespace stagewright::layers {

struct AttentionShape {
    int batch;
    int tokens; // queries of a sample
    int hidden;
    int heads;
    int past = 0; // keys of a sample before its first query

    int rows() const { return batch * tokens; }
    int headWidth() const { return hidden / heads; }
};

// Elements, fp32 or bf16 as elementBytes() says; owned by others. Null: none.
struct ConstElements {
    const void* data = nullptr;
    operator const void*() const { return data; }
};
struct Elements {
    void* data = nullptr;
    operator void*() const { return data; }
    operator ConstElements() const { return {data}; }
};
inline Elements elementsIn(const Buffer& buffer) { return {buffer.data()}; }

// Keys and values (batch × tokens rows, the heads side by side) of one slice.
struct KeySegment {
    ConstElements key;
    ConstElements value;
    int stride; // elements from one row to the next, of both
    int tokens;
};
struct KeyGradSegment {
    Elements key;
    Elements value;
    int stride;
    bool empty; // overwritten, not added to
};

// Where a loss will be once it is computed; `slot` is the device's, created at the first use, freed with the LayerMath.
struct LossCell {
    double value = 0;
    void* slot = nullptr;
};

// sum += x, floats.
struct AddedFloats {
    std::size_t count;
    const float* x;
    float* sum;
};

// One tensor's part of an optimizer step. `used`: to be set to the new values; null where the layers use `value`.
struct TensorStep {
    std::size_t count;
    float* value;
    const float* gradient;
    float* moment1; // null: none
    float* moment2;
    Elements used;
};
struct SgdStep {
    float learningRate;
    float momentum;
    float weightDecay;
    float gradientScale;
};

// Dense matrices of doubles on the host, row-major, without strides.
class DenseMath {
public:
    virtual ~DenseMath() = default;
    // A symmetric positive definite one, in place, by its Cholesky factor; false: it is not.
    virtual bool invert(int size, double* matrix) const = 0;
    // c (rows, columns) = a (rows, depth) · b (depth, columns)
    virtual void times(int rows, int columns, int depth, const double* a, const double* b, double* c) const = 0;
};

class LayerMath {
public:
    virtual ~LayerMath() = default;

    virtual int elementBytes() const = 0; // 4 or 2
    std::size_t words(std::size_t elements) const
    {
        return (elements * static_cast<std::size_t>(elementBytes()) + sizeof(float) - 1) / sizeof(float);
    }
    Elements at(Elements base, std::size_t element) const
    {
        return {static_cast<char*>(base.data) + element * static_cast<std::size_t>(elementBytes())};
    }
    ConstElements at(ConstElements base, std::size_t element) const
    {
        return {static_cast<const char*>(base.data) + element * static_cast<std::size_t>(elementBytes())};
    }

    // normal = (x − mean) / sqrt(variance + 1e-5); out = normal · gamma + beta. Afterwards adds `bias` to x where it is
    // not null: the bias of the layer whose output is added to the residual stream x next.
    virtual void layerNorm(int rows, int width, Elements x, ConstElements bias, ConstElements gamma, ConstElements beta,
                           Elements normal, float* deviation, Elements out) = 0;
    virtual void scaleShift(int rows, int width, ConstElements normal, ConstElements gamma, ConstElements beta,
                            Elements out) = 0;
    // inputGrad = residual + gradient through the norm. residual may be null.
    virtual void layerNormBackward(int rows, int width, ConstElements outGrad, ConstElements normal,
                                   const float* deviation, ConstElements gamma, ConstElements residual,
                                   Elements inputGrad, const ColumnSums& sums) = 0;

    // Linear layers, weight (out, in): y = x · Wᵀ + bias; y += x · Wᵀ; y = x · Wᵀ.
    virtual void linear(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias,
                        Elements y) = 0;
    virtual void linearAdd(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) = 0;
    virtual void linearBare(int rows, int out, int in, ConstElements x, ConstElements weight, Elements y) = 0;
    // dx = alpha · dy · W; gradient (floats) += alpha · dyᵀ · x.
    virtual void linearInputGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements weight,
                                 Elements dx) = 0;
    virtual void linearWeightGrad(int rows, int out, int in, float alpha, ConstElements dy, ConstElements x,
                                  float* gradient) = 0;

    // The first layer of an MLP and its GELU (tanh form): `hidden` is what geluInputGrad() wants, activation = gelu(x ·
    // Wᵀ + bias). Where the device does both in one, `activation` is there in expand() and activate() does nothing.
    virtual bool expandsInOne() const { return false; }
    virtual void expand(int rows, int out, int in, ConstElements x, ConstElements weight, ConstElements bias,
                        Elements hidden, Elements activation) = 0;
    virtual void activate(int rows, int width, ConstElements hidden, ConstElements bias, Elements activation) = 0;
    // hiddenGrad (rows, wide) = (outputGrad (rows, width) · contract) through the GELU; `hidden` becomes the
    // activation; biasSums (wide) = Σ hiddenGrad.
    virtual void geluInputGrad(int rows, int wide, int width, ConstElements outputGrad, ConstElements contract,
                               ConstElements bias, Elements hidden, Elements hiddenGrad, float* biasSums) = 0;

    // Causal attention. What forward keeps for backward and what backward needs for itself, in floats.
    virtual std::size_t keptByAttention(const AttentionShape& shape) const = 0;
    virtual std::size_t attentionWorkspace(const AttentionShape& shape) const = 0;
    // query: (rows, …) with queryStride; segments: the slices in order, the query's own last. out (rows, hidden) and
    // kept are overwritten.
    virtual void attentionForward(const AttentionShape& shape, ConstElements query, int queryStride,
                                  std::span<const KeySegment> segments, float* kept, Elements out) = 0;
    // out: what forward made. queryGrad, with queryStride, is overwritten; gradients has one entry a segment.
    virtual void attentionBackward(const AttentionShape& shape, ConstElements query, int queryStride,
                                   std::span<const KeySegment> segments, const float* kept, ConstElements out,
                                   ConstElements outGrad, Elements queryGrad, std::span<const KeyGradSegment> gradients,
                                   float* workspace) = 0;

    // tokens, targets: bytes in the device's memory. past: the position of a sample's first row.
    virtual void embed(int batch, int tokens, int past, int width, const std::uint8_t* bytes, ConstElements tokenTable,
                       ConstElements positionTable, Elements out) = 0;
    virtual void embedWeightGrad(int batch, int tokens, int past, int width, int vocabulary, const std::uint8_t* bytes,
                                 ConstElements outGrad, float* tokenGrad, float* positionGrad) = 0;
    // logits become softmax(logits) − onehot(target); the cell is to hold the mean of −ln p(target) over the rows.
    virtual void crossEntropy(int rows, int vocabulary, Elements logits, const std::uint8_t* targets,
                              LossCell& cell) = 0;
    virtual double loss(const LossCell& cell) = 0; // waits

    virtual void columnSums(int rows, int width, ConstElements x, float* sums) = 0; // overwritten
    // Sums of floats, apart from each other; the sum of squares of all tensors in double, tensor after tensor (waits).
    virtual void add(std::span<const AddedFloats> sums) = 0;
    virtual double squareSum(std::span<const std::span<const float>> tensors) = 0;
    virtual void scale(std::size_t count, float factor, float* x) = 0; // x *= factor

    // Optimizers (engine/device/backend.h), forwards and back, on tensors of one weight decay; predict: out (elements)
    // = value − reach · d.
    virtual void adamW(std::span<const TensorStep> tensors, const AdamWStep& step) = 0;
    virtual void sgd(std::span<const TensorStep> tensors, const SgdStep& step) = 0;
    virtual void undoAdamW(std::span<const TensorStep> tensors, const AdamWStep& step) = 0;
    virtual void undoSgd(std::span<const TensorStep> tensors, const SgdStep& step) = 0;
    virtual void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
                         const AdamWStep& step, Elements out) = 0;
    virtual void toElements(std::size_t count, const float* value, Elements elements) = 0;
    // Where its elements are floats of the host; null: it has none.
    virtual const DenseMath* dense() const { return nullptr; }
};

} // namespace stagewright::layers
