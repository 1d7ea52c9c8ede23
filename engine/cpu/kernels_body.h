// Included once by each kernels_<set>.cpp, which gives the name of its set; everything here is local to that file,
// because it is compiled for a different processor than the rest: no inline function of a library may come from here.
// Loops are marked for the vectoriser; sums have a fixed shape, so that the same input gives the same bits on every
// call.
#include "engine/cpu/kernels.h"

namespace stagewright::cpu {
namespace {

constexpr float normEpsilon = 1e-5F;

inline std::int32_t bitsOf(float value) { return __builtin_bit_cast(std::int32_t, value); }

inline float floatOf(std::int32_t bits) { return __builtin_bit_cast(float, bits); }

inline float valueOf(float x) { return x; }
inline float valueOf(BFloat16 x)
{
    return floatOf(static_cast<std::int32_t>(static_cast<std::uint32_t>(x.bits) << 16));
}
inline void store(float value, float& to) { to = value; }
// To the nearest, halves to the even one; NaN stays.
inline void store(float value, BFloat16& to)
{
    const auto bits = static_cast<std::uint32_t>(bitsOf(value));
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    to.bits = static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? 0x7fc0U : rounded);
}

// e^x: x = n ln 2 + r, |r| ≤ ln 2 / 2; a polynomial for e^r, the exponent bits for 2^n. Relative error below 2e-7
// between −60 and 60 and clamped outside, which makes no difference to a probability or gate: so GEMMs with them
// stay clear of denormal numbers, which would cost a hundred cycles each. NaN stays NaN: comparisons with it are false,
// e^r is NaN.
inline float exponential(float x)
{
    x = x < -60.0F ? -60.0F : x;
    x = x > 60.0F ? 60.0F : x;
    constexpr float magic = 12582912.0F; // 1.5 · 2^23: adding it rounds to an integer held in the low bits
    const float shifted = x * 1.44269504F + magic;
    const float n = shifted - magic;
    const float r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
    float p = 1.0F / 720.0F;
    p = p * r + 1.0F / 120.0F;
    p = p * r + 1.0F / 24.0F;
    p = p * r + 1.0F / 6.0F;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    // Unsigned, so that the bits of a NaN may overflow.
    const auto power = static_cast<std::uint32_t>(bitsOf(shifted)) - static_cast<std::uint32_t>(bitsOf(magic)) + 127U;
    return p * floatOf(static_cast<std::int32_t>(power << 23));
}

template <typename E>
void layerNorm(int rows, int width, E* x, const E* bias, const E* gamma, const E* beta, E* normal,
               float* inverseDeviation, E* out)
{
    const float perWidth = 1.0F / static_cast<float>(width);
    for (int row = 0; row < rows; ++row) {
        E* in = x + static_cast<std::size_t>(row) * width;
        E* hat = normal + static_cast<std::size_t>(row) * width;
        E* to = out + static_cast<std::size_t>(row) * width;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < width; ++i) sum += valueOf(in[i]);
        const float mean = sum * perWidth;
        float squares = 0;
#pragma omp simd reduction(+ : squares)
        for (int i = 0; i < width; ++i) squares += (valueOf(in[i]) - mean) * (valueOf(in[i]) - mean);
        const float scale = 1.0F / __builtin_sqrtf(squares * perWidth + normEpsilon);
        inverseDeviation[row] = scale;
#pragma omp simd
        for (int i = 0; i < width; ++i) {
            const float value = (valueOf(in[i]) - mean) * scale;
            store(value, hat[i]);
            store(value * valueOf(gamma[i]) + valueOf(beta[i]), to[i]);
        }
        if (bias) {
#pragma omp simd
            for (int i = 0; i < width; ++i) store(valueOf(in[i]) + valueOf(bias[i]), in[i]);
        }
    }
}

template <typename E>
void scaleShift(int rows, int width, const E* normal, const E* gamma, const E* beta, E* out)
{
    for (int row = 0; row < rows; ++row) {
        const E* hat = normal + static_cast<std::size_t>(row) * width;
        E* to = out + static_cast<std::size_t>(row) * width;
#pragma omp simd
        for (int i = 0; i < width; ++i) store(valueOf(hat[i]) * valueOf(gamma[i]) + valueOf(beta[i]), to[i]);
    }
}

void clear(int width, float* row)
{
    if (!row) return;
    for (int i = 0; i < width; ++i) row[i] = 0;
}

template <typename E>
void addTo(int width, const E* row, float* sum)
{
#pragma omp simd
    for (int i = 0; i < width; ++i) sum[i] += valueOf(row[i]);
}

template <typename E>
void layerNormBackward(int rows, int width, const E* outGrad, const E* normal, const float* inverseDeviation,
                       const E* gamma, const E* residual, E* inputGrad, const ColumnSums& sums)
{
    const float perWidth = 1.0F / static_cast<float>(width);
    float* gammaSum = sums.gamma;
    float* betaSum = sums.beta;
    clear(width, gammaSum);
    clear(width, betaSum);
    clear(width, sums.residual);
    clear(width, sums.input);
    for (int row = 0; row < rows; ++row) {
        const E* from = outGrad + static_cast<std::size_t>(row) * width;
        const E* hat = normal + static_cast<std::size_t>(row) * width;
        E* to = inputGrad + static_cast<std::size_t>(row) * width;
        float meanGrad = 0;
        float meanProduct = 0;
#pragma omp simd reduction(+ : meanGrad, meanProduct)
        for (int i = 0; i < width; ++i) {
            const float outer = valueOf(from[i]);
            const float grad = outer * valueOf(gamma[i]);
            meanGrad += grad;
            meanProduct += grad * valueOf(hat[i]);
            gammaSum[i] += outer * valueOf(hat[i]);
            betaSum[i] += outer;
        }
        meanGrad *= perWidth;
        meanProduct *= perWidth;
        const float scale = inverseDeviation[row];
        if (residual) {
            const E* past = residual + static_cast<std::size_t>(row) * width;
#pragma omp simd
            for (int i = 0; i < width; ++i)
                store(valueOf(past[i]) +
                          scale * (valueOf(from[i]) * valueOf(gamma[i]) - meanGrad - valueOf(hat[i]) * meanProduct),
                      to[i]);
            if (sums.residual) addTo(width, past, sums.residual);
        } else {
#pragma omp simd
            for (int i = 0; i < width; ++i)
                store(scale * (valueOf(from[i]) * valueOf(gamma[i]) - meanGrad - valueOf(hat[i]) * meanProduct), to[i]);
        }
        if (sums.input) addTo(width, to, sums.input);
    }
}

void fillRows(int rows, int width, const float* from, float* out)
{
    for (int row = 0; row < rows; ++row) {
        float* to = out + static_cast<std::size_t>(row) * width;
#pragma omp simd
        for (int i = 0; i < width; ++i) to[i] = from[i];
    }
}

template <typename E>
void addColumnSums(int rows, int width, const E* x, float* sums)
{
    for (int row = 0; row < rows; ++row) addTo(width, x + static_cast<std::size_t>(row) * width, sums);
}

// 0.5 x (1 + tanh u) = x · sigmoid(2u), u = sqrt(2/π) (x + 0.044715 x³).
constexpr float geluSlope = 2.0F * 0.797884561F;
constexpr float geluCubic = 0.044715F;

inline float geluSigmoid(float x) { return 1.0F / (1.0F + exponential(-geluSlope * x * (1.0F + geluCubic * x * x))); }

template <typename E>
void gelu(int rows, int width, const E* x, const E* bias, E* out)
{
    for (int row = 0; row < rows; ++row) {
        const E* in = x + static_cast<std::size_t>(row) * width;
        E* to = out + static_cast<std::size_t>(row) * width;
#pragma omp simd
        for (int i = 0; i < width; ++i) {
            const float value = valueOf(in[i]) + valueOf(bias[i]);
            store(value * geluSigmoid(value), to[i]);
        }
    }
}

// outGrad and gradient may be the same.
template <typename E>
void geluRowsBackward(int rows, int width, int stride, E* x, const E* bias, const float* outGrad, E* gradient,
                      float* biasSums)
{
    clear(width, biasSums);
    for (int row = 0; row < rows; ++row) {
        E* in = x + static_cast<std::size_t>(row) * stride;
        const float* from = outGrad + static_cast<std::size_t>(row) * width;
        E* grad = gradient + static_cast<std::size_t>(row) * stride;
#pragma omp simd
        for (int i = 0; i < width; ++i) {
            const float value = valueOf(in[i]) + valueOf(bias[i]);
            const float gate = geluSigmoid(value);
            const float result = value * gate;
            const float slope = geluSlope * (1.0F + 3.0F * geluCubic * value * value);
            const float back = from[i] * (gate + result * (1.0F - gate) * slope);
            store(result, in[i]);
            store(back, grad[i]);
            biasSums[i] += back;
        }
    }
}

void geluBackward(int rows, int width, float* x, const float* bias, float* gradient, float* biasSums)
{
    geluRowsBackward(rows, width, width, x, bias, gradient, gradient, biasSums);
}

// Turns a row into exp(x − largest) and returns the sum. A NaN never wins a comparison, but passes through the
// exponential.
inline float exponentials(int width, float* row, float& largest)
{
    float most = row[0];
#pragma omp simd reduction(max : most)
    for (int i = 0; i < width; ++i) most = row[i] > most ? row[i] : most;
    largest = most;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < width; ++i) {
        const float value = exponential(row[i] - most);
        row[i] = value;
        sum += value;
    }
    return sum;
}

void causalSoftmax(int firstRow, int rows, int columns, float* scores)
{
    for (int row = 0; row < rows; ++row) {
        float* line = scores + static_cast<std::size_t>(row) * columns;
        const int kept = firstRow + row + 1;
        float largest = 0;
        const float scale = 1.0F / exponentials(kept, line, largest);
#pragma omp simd
        for (int i = 0; i < kept; ++i) line[i] *= scale;
#pragma omp simd
        for (int i = kept; i < columns; ++i) line[i] = 0;
    }
}

void causalSoftmaxBackward(int firstRow, int rows, int columns, const float* probabilities, float* gradient)
{
    for (int row = 0; row < rows; ++row) {
        const float* p = probabilities + static_cast<std::size_t>(row) * columns;
        float* grad = gradient + static_cast<std::size_t>(row) * columns;
        const int kept = firstRow + row + 1;
        float inner = 0;
#pragma omp simd reduction(+ : inner)
        for (int i = 0; i < kept; ++i) inner += p[i] * grad[i];
#pragma omp simd
        for (int i = 0; i < kept; ++i) grad[i] = p[i] * (grad[i] - inner);
#pragma omp simd
        for (int i = kept; i < columns; ++i) grad[i] = 0;
    }
}

// Scores of fp32 become probabilities of bf16, gradients of probabilities become those of scores.
void bf16Softmax(int firstRow, int rows, int columns, float* scores, BFloat16* probabilities)
{
    for (int row = 0; row < rows; ++row) {
        float* line = scores + static_cast<std::size_t>(row) * columns;
        BFloat16* to = probabilities + static_cast<std::size_t>(row) * columns;
        const int kept = firstRow + row + 1;
        float largest = 0;
        const float scale = 1.0F / exponentials(kept, line, largest);
#pragma omp simd
        for (int i = 0; i < kept; ++i) store(line[i] * scale, to[i]);
#pragma omp simd
        for (int i = kept; i < columns; ++i) to[i].bits = 0;
    }
}

void bf16SoftmaxBackward(int firstRow, int rows, int columns, const BFloat16* probabilities, const float* gradient,
                         BFloat16* scoreGradient)
{
    for (int row = 0; row < rows; ++row) {
        const BFloat16* p = probabilities + static_cast<std::size_t>(row) * columns;
        const float* grad = gradient + static_cast<std::size_t>(row) * columns;
        BFloat16* to = scoreGradient + static_cast<std::size_t>(row) * columns;
        const int kept = firstRow + row + 1;
        float inner = 0;
#pragma omp simd reduction(+ : inner)
        for (int i = 0; i < kept; ++i) inner += valueOf(p[i]) * grad[i];
#pragma omp simd
        for (int i = 0; i < kept; ++i) store(valueOf(p[i]) * (grad[i] - inner), to[i]);
#pragma omp simd
        for (int i = kept; i < columns; ++i) to[i].bits = 0;
    }
}

double bf16CrossEntropy(int rows, int vocabulary, BFloat16* logits, const std::uint8_t* targets)
{
    double total = 0;
    for (int row = 0; row < rows; ++row) {
        BFloat16* line = logits + static_cast<std::size_t>(row) * vocabulary;
        const int target = targets[row];
        const auto targetLogit = static_cast<double>(valueOf(line[target]));
        float most = valueOf(line[0]);
#pragma omp simd reduction(max : most)
        for (int i = 0; i < vocabulary; ++i) most = valueOf(line[i]) > most ? valueOf(line[i]) : most;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < vocabulary; ++i) sum += exponential(valueOf(line[i]) - most);
        total += __builtin_log(static_cast<double>(sum)) - (targetLogit - static_cast<double>(most));
        const float scale = 1.0F / sum;
        const float own = exponential(valueOf(line[target]) - most) * scale - 1.0F;
#pragma omp simd
        for (int i = 0; i < vocabulary; ++i) store(exponential(valueOf(line[i]) - most) * scale, line[i]);
        store(own, line[target]);
    }
    return total;
}

void storeRows(int rows, int width, const float* gemm, const BFloat16* bias, BFloat16* out, int stride)
{
    for (int row = 0; row < rows; ++row) {
        const float* from = gemm + static_cast<std::size_t>(row) * width;
        BFloat16* to = out + static_cast<std::size_t>(row) * stride;
        if (bias) {
#pragma omp simd
            for (int i = 0; i < width; ++i) store(from[i] + valueOf(bias[i]), to[i]);
        } else {
#pragma omp simd
            for (int i = 0; i < width; ++i) store(from[i], to[i]);
        }
    }
}

void addRows(int rows, int width, const float* gemm, BFloat16* sum, int stride)
{
    for (int row = 0; row < rows; ++row) {
        const float* from = gemm + static_cast<std::size_t>(row) * width;
        BFloat16* to = sum + static_cast<std::size_t>(row) * stride;
#pragma omp simd
        for (int i = 0; i < width; ++i) store(valueOf(to[i]) + from[i], to[i]);
    }
}

void embedRow(int width, const BFloat16* token, const BFloat16* position, BFloat16* out)
{
#pragma omp simd
    for (int i = 0; i < width; ++i) store(valueOf(token[i]) + valueOf(position[i]), out[i]);
}

double crossEntropy(int rows, int vocabulary, float* logits, const std::uint8_t* targets)
{
    double total = 0;
    for (int row = 0; row < rows; ++row) {
        float* line = logits + static_cast<std::size_t>(row) * vocabulary;
        const int target = targets[row];
        const auto targetLogit = static_cast<double>(line[target]);
        float largest = 0;
        const float sum = exponentials(vocabulary, line, largest);
        const float scale = 1.0F / sum;
        total += __builtin_log(static_cast<double>(sum)) - (targetLogit - static_cast<double>(largest));
#pragma omp simd
        for (int i = 0; i < vocabulary; ++i) line[i] *= scale;
        line[target] -= 1.0F;
    }
    return total;
}

template <typename E>
void add(std::size_t count, const E* x, float* sum)
{
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) sum[i] += valueOf(x[i]);
}

double squareSum(std::size_t count, const float* x)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return sum;
}

void adamW(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
           const AdamWStep& step)
{
    const AdamWStep s = step; // copied: the arrays could alias it
    const float keep = 1.0F - s.learningRate * s.weightDecay;
    const float rate = s.learningRate * s.correction1;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
        const float grad = gradient[i] * s.gradientScale;
        const float first = s.beta1 * moment1[i] + (1.0F - s.beta1) * grad;
        const float second = s.beta2 * moment2[i] + (1.0F - s.beta2) * grad * grad;
        moment1[i] = first;
        moment2[i] = second;
        value[i] = value[i] * keep - rate * first / (__builtin_sqrtf(second * s.correction2) + s.epsilon);
    }
}

void sgd(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate, float momentum,
         float weightDecay, float gradientScale)
{
    if (!velocity) {
#pragma omp simd
        for (std::size_t i = 0; i < count; ++i)
            value[i] -= learningRate * (gradient[i] * gradientScale + weightDecay * value[i]);
        return;
    }
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
        const float grad = gradient[i] * gradientScale + weightDecay * value[i];
        const float next = momentum * velocity[i] + grad;
        velocity[i] = next;
        value[i] -= learningRate * next;
    }
}

void undoAdamW(std::size_t count, float* value, const float* gradient, float* moment1, float* moment2,
               const AdamWStep& step)
{
    const AdamWStep s = step;
    const float regrow = 1.0F / (1.0F - s.learningRate * s.weightDecay);
    const float rate = s.learningRate * s.correction1;
    const float back1 = 1.0F / s.beta1;
    const float back2 = 1.0F / s.beta2;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
        const float grad = gradient[i] * s.gradientScale;
        const float first = moment1[i];
        const float second = moment2[i];
        value[i] = (value[i] + rate * first / (__builtin_sqrtf(second * s.correction2) + s.epsilon)) * regrow;
        moment1[i] = (first - (1.0F - s.beta1) * grad) * back1;
        const float square = (second - (1.0F - s.beta2) * grad * grad) * back2;
        moment2[i] = square < 0.0F ? 0.0F : square; // rounding below zero would make the next root a NaN
    }
}

void undoSgd(std::size_t count, float* value, const float* gradient, float* velocity, float learningRate,
             float momentum, float weightDecay, float gradientScale)
{
    const float regrow = 1.0F / (1.0F - learningRate * weightDecay);
    if (!velocity) {
#pragma omp simd
        for (std::size_t i = 0; i < count; ++i)
            value[i] = (value[i] + learningRate * gradient[i] * gradientScale) * regrow;
        return;
    }
    const float back = momentum == 0.0F ? 0.0F : 1.0F / momentum; // without momentum the velocity before is lost
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
        const float before = value[i] + learningRate * velocity[i];
        velocity[i] = (velocity[i] - gradient[i] * gradientScale - weightDecay * before) * back;
        value[i] = before;
    }
}

void predict(std::size_t count, const float* value, const float* moment1, const float* moment2, float reach,
             const AdamWStep& step, float* out)
{
    const AdamWStep s = step;
    if (!moment2) {
#pragma omp simd
        for (std::size_t i = 0; i < count; ++i) out[i] = value[i] - reach * moment1[i];
        return;
    }
    const float rate = reach * s.correction1;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
        out[i] = value[i] - rate * moment1[i] / (__builtin_sqrtf(moment2[i] * s.correction2) + s.epsilon);
}

constexpr Kernels table = {
    {layerNorm<float>, scaleShift<float>, layerNormBackward<float>, addColumnSums<float>, gelu<float>, add<float>},
    STAGEWRIGHT_KERNEL_SET,
    fillRows,
    geluBackward,
    causalSoftmax,
    causalSoftmaxBackward,
    crossEntropy,
    squareSum,
    adamW,
    sgd,
    undoAdamW,
    undoSgd,
    predict,
    {{layerNorm<BFloat16>, scaleShift<BFloat16>, layerNormBackward<BFloat16>, addColumnSums<BFloat16>, gelu<BFloat16>,
      add<BFloat16>},
     storeRows,
     addRows,
     geluRowsBackward<BFloat16>,
     bf16Softmax,
     bf16SoftmaxBackward,
     bf16CrossEntropy,
     embedRow}};

} // namespace
} // namespace stagewright::cpu
