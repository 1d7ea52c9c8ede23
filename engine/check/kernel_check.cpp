#include "engine/check/kernel_check.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "engine/check/check.h"
#include "engine/cpu/cpu_math.h"

namespace stagewright {

namespace {

using layers::AttentionShape;
using layers::ConstElements;
using layers::Elements;
using layers::LayerMath;
using Values = std::vector<float>;

constexpr int batch = 2;
constexpr int tokens = 24;
constexpr int rows = batch * tokens;
constexpr int width = 64;
constexpr int heads = 4;
constexpr int wide = 4 * width;
constexpr int vocabulary = 96;
constexpr std::size_t manyTensors = 140; // more than a device takes in one launch

// Two bytes: the upper half of a float, to the nearest even.
std::uint16_t toBf16(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float widened(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

std::size_t area(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

// One of the two that are compared: puts inputs into its memory, computes, fetches what came out.
class Side {
public:
    Side(LayerMath& computes, Allocator& allocator, Precision precision)
        : math(computes), m_allocator(allocator), m_bf16(precision == Precision::Bf16)
    {
    }

    LayerMath& math;

    // Inputs, the same on both sides: random, rounded to the precision where they are elements.
    Elements elements(std::size_t count, float from = -1, float to = 1)
    {
        return {put(random(count, from, to, m_bf16), true)};
    }
    float* floats(std::size_t count, float from = -1, float to = 1)
    {
        return put(random(count, from, to, false), false);
    }
    const std::uint8_t* bytes(std::size_t count, int below)
    {
        std::vector<std::uint8_t> values(count);
        for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(m_random() % static_cast<unsigned>(below));
        float* to = take((count + 3) / 4);
        m_allocator.memory().upload(to, values.data(), count);
        return reinterpret_cast<const std::uint8_t*>(to);
    }
    Elements emptyElements(std::size_t count) { return {take(math.words(count))}; }
    float* empty(std::size_t count) { return take(count); }

    void keepElements(ConstElements from, std::size_t count)
    {
        Values values(count);
        if (math.elementBytes() == 4) {
            m_allocator.memory().download(values.data(), from, count * 4);
        } else {
            std::vector<std::uint16_t> halves(count);
            m_allocator.memory().download(halves.data(), from, count * 2);
            for (std::size_t i = 0; i < count; ++i) values[i] = widened(halves[i]);
        }
        results.push_back(std::move(values));
    }
    void keep(const float* from, std::size_t count)
    {
        Values values(count);
        m_allocator.memory().download(values.data(), from, count * 4);
        results.push_back(std::move(values));
    }
    void keep(double value) { results.push_back({static_cast<float>(value)}); }

    std::vector<Values> results;

private:
    Values random(std::size_t count, float from, float to, bool bf16)
    {
        Values values(count);
        for (float& value : values) {
            value = from + (to - from) * static_cast<float>(m_random() >> 8) / 16777216.0F;
            if (bf16) value = widened(toBf16(value));
        }
        return values;
    }
    float* put(const Values& values, bool elements)
    {
        if (!elements || math.elementBytes() == 4) {
            float* to = take(values.size());
            m_allocator.memory().upload(to, values.data(), values.size() * 4);
            return to;
        }
        std::vector<std::uint16_t> halves;
        for (const float value : values) halves.push_back(toBf16(value));
        float* to = take(math.words(values.size()));
        m_allocator.memory().upload(to, halves.data(), halves.size() * 2);
        return to;
    }
    float* take(std::size_t count)
    {
        m_buffers.push_back(m_allocator.take(count, workspaceTag()));
        return m_buffers.back().data();
    }

    Allocator& m_allocator;
    bool m_bf16;
    std::mt19937 m_random{1};
    std::vector<Buffer> m_buffers;
};

struct Case {
    const char* name;
    std::function<void(Side&)> run;
};

void norms(std::vector<Case>& cases)
{
    cases.push_back({"layer norm", [](Side& s) {
                         const Elements x = s.elements(area(rows, width));
                         const Elements normal = s.emptyElements(area(rows, width));
                         float* deviation = s.empty(rows);
                         const Elements out = s.emptyElements(area(rows, width));
                         const ConstElements bias = s.elements(width);
                         const ConstElements gamma = s.elements(width);
                         s.math.layerNorm(rows, width, x, bias, gamma, s.elements(width), normal, deviation, out);
                         for (const Elements result : {x, normal, out}) s.keepElements(result, area(rows, width));
                         s.keep(deviation, rows);
                     }});
    cases.push_back({"scale and shift", [](Side& s) {
                         const ConstElements normal = s.elements(area(rows, width));
                         const ConstElements gamma = s.elements(width);
                         const ConstElements beta = s.elements(width);
                         const Elements out = s.emptyElements(area(rows, width));
                         s.math.scaleShift(rows, width, normal, gamma, beta, out);
                         s.keepElements(out, area(rows, width));
                     }});
    cases.push_back({"layer norm, backward", [](Side& s) {
                         const ConstElements outGrad = s.elements(area(rows, width));
                         const ConstElements normal = s.elements(area(rows, width));
                         const float* deviation = s.floats(rows, 0.5F, 2);
                         const ConstElements gamma = s.elements(width);
                         const ConstElements residual = s.elements(area(rows, width));
                         const Elements inputGrad = s.emptyElements(area(rows, width));
                         const layers::ColumnSums sums{s.empty(width), s.empty(width), s.empty(width), s.empty(width)};
                         s.math.layerNormBackward(rows, width, outGrad, normal, deviation, gamma, residual, inputGrad,
                                                  sums);
                         s.keepElements(inputGrad, area(rows, width));
                         for (const float* sum : {sums.gamma, sums.beta, sums.residual, sums.input}) s.keep(sum, width);
                     }});
}

void gemm(std::vector<Case>& cases)
{
    cases.push_back({"linear", [](Side& s) {
                         const ConstElements x = s.elements(area(rows, width));
                         const ConstElements weight = s.elements(area(wide, width));
                         const ConstElements bias = s.elements(wide);
                         const Elements y = s.emptyElements(area(rows, wide));
                         s.math.linear(rows, wide, width, x, weight, bias, y);
                         s.keepElements(y, area(rows, wide));
                         s.math.linearBare(rows, wide, width, x, weight, y);
                         s.keepElements(y, area(rows, wide));
                         const Elements sum = s.elements(area(rows, wide));
                         s.math.linearAdd(rows, wide, width, x, weight, sum);
                         s.keepElements(sum, area(rows, wide));
                     }});
    cases.push_back({"linear, input gradient", [](Side& s) {
                         const ConstElements dy = s.elements(area(rows, wide));
                         const ConstElements weight = s.elements(area(wide, width));
                         const Elements dx = s.emptyElements(area(rows, width));
                         s.math.linearInputGrad(rows, wide, width, 0.25F, dy, weight, dx);
                         s.keepElements(dx, area(rows, width));
                     }});
    cases.push_back({"linear, weight gradient", [](Side& s) {
                         const ConstElements dy = s.elements(area(rows, wide));
                         const ConstElements x = s.elements(area(rows, width));
                         float* gradient = s.floats(area(wide, width));
                         s.math.linearWeightGrad(rows, wide, width, 0.25F, dy, x, gradient);
                         s.keep(gradient, area(wide, width));
                     }});
    cases.push_back({"GELU layer, forward and backward", [](Side& s) {
                         const ConstElements x = s.elements(area(rows, width));
                         const ConstElements weight = s.elements(area(wide, width), -0.5F, 0.5F);
                         const ConstElements bias = s.elements(wide);
                         const Elements hidden = s.emptyElements(area(rows, wide));
                         const Elements activation = s.emptyElements(area(rows, wide));
                         s.math.expand(rows, wide, width, x, weight, bias, hidden, activation);
                         s.math.activate(rows, wide, hidden, bias, activation);
                         s.keepElements(activation, area(rows, wide));
                         const ConstElements outputGrad = s.elements(area(rows, width));
                         const ConstElements contract = s.elements(area(width, wide), -0.5F, 0.5F);
                         const Elements hiddenGrad = s.emptyElements(area(rows, wide));
                         float* sums = s.empty(wide);
                         s.math.geluInputGrad(rows, wide, width, outputGrad, contract, bias, hidden, hiddenGrad, sums);
                         s.keepElements(hiddenGrad, area(rows, wide));
                         s.keepElements(hidden, area(rows, wide));
                         s.keep(sums, wide);
                     }});
}

// shape.past: keys of an earlier slice before the own ones.
void attend(Side& s, const AttentionShape& shape)
{
    const std::size_t own = area(shape.rows(), shape.hidden);
    const int stride = 3 * shape.hidden;
    const ConstElements input = s.elements(3 * own);
    const std::size_t past = area(shape.batch * shape.past, stride);
    std::vector<layers::KeySegment> segments;
    std::vector<layers::KeyGradSegment> gradients;
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    Elements earlierGrad;
    if (past > 0) {
        const ConstElements earlier = s.elements(past);
        earlierGrad = s.elements(past);
        segments.push_back({s.math.at(earlier, hidden), s.math.at(earlier, 2 * hidden), stride, shape.past});
        gradients.push_back({s.math.at(earlierGrad, hidden), s.math.at(earlierGrad, 2 * hidden), stride, false});
    }
    const Elements inputGrad = s.elements(3 * own);
    segments.push_back({s.math.at(input, hidden), s.math.at(input, 2 * hidden), stride, shape.tokens});
    gradients.push_back({s.math.at(inputGrad, hidden), s.math.at(inputGrad, 2 * hidden), stride, true});
    float* kept = s.empty(s.math.keptByAttention(shape));
    const Elements out = s.emptyElements(own);
    s.math.attentionForward(shape, input, stride, segments, kept, out);
    s.keepElements(out, own);
    const ConstElements outGrad = s.elements(own);
    float* workspace = s.empty(s.math.attentionWorkspace(shape));
    s.math.attentionBackward(shape, input, stride, segments, kept, out, outGrad, inputGrad, gradients, workspace);
    s.keepElements(inputGrad, 3 * own);
    if (past > 0) s.keepElements(earlierGrad, past);
}

// The number of the first case that streams, as those after it.
std::size_t attentions(std::vector<Case>& cases)
{
    const auto add = [&](const char* name, const AttentionShape& shape) {
        cases.push_back({name, [shape](Side& s) { attend(s, shape); }});
    };
    add("attention, forward and backward", {batch, tokens, width, heads, 0});
    add("attention of a later slice", {batch, tokens, width, heads, 2 * tokens});
    const std::size_t streamed = cases.size();
    add("attention that streams its keys", {batch, tokens, width, heads, 0});
    add("attention that streams its keys, heads of 12", {batch, tokens, 24, 2, 0});
    add("attention that streams its keys, heads of 64", {1, 150, 128, 2, 0}); // of more than a tile
    add("attention that streams its keys, heads of 128", {1, 150, 128, 1, 0});
    return streamed;
}

void ends(std::vector<Case>& cases)
{
    cases.push_back({"embedding, forward and backward", [](Side& s) {
                         const std::uint8_t* bytes = s.bytes(rows, vocabulary);
                         const ConstElements tokenTable = s.elements(area(vocabulary, width));
                         const ConstElements positions = s.elements(area(tokens, width));
                         const Elements out = s.emptyElements(area(rows, width));
                         s.math.embed(batch, tokens, 0, width, bytes, tokenTable, positions, out);
                         s.keepElements(out, area(rows, width));
                         const ConstElements outGrad = s.elements(area(rows, width));
                         float* tokenGrad = s.floats(area(vocabulary, width));
                         float* positionGrad = s.floats(area(tokens, width));
                         s.math.embedWeightGrad(batch, tokens, 0, width, vocabulary, bytes, outGrad, tokenGrad,
                                                positionGrad);
                         s.keep(tokenGrad, area(vocabulary, width));
                         s.keep(positionGrad, area(tokens, width));
                     }});
    cases.push_back({"cross entropy", [](Side& s) {
                         const Elements logits = s.elements(area(rows, vocabulary), -4, 4);
                         const std::uint8_t* targets = s.bytes(rows, vocabulary);
                         layers::LossCell cell;
                         s.math.crossEntropy(rows, vocabulary, logits, targets, cell);
                         s.keepElements(logits, area(rows, vocabulary));
                         s.keep(s.math.loss(cell));
                     }});
    cases.push_back({"sums", [](Side& s) {
                         const ConstElements x = s.elements(area(rows, width));
                         float* columns = s.empty(width);
                         s.math.columnSums(rows, width, x, columns);
                         s.keep(columns, width);
                         const std::size_t count = area(rows, width) + 3;
                         const float* more = s.floats(count);
                         const std::size_t sumFloats = count + manyTensors * manyTensors;
                         float* sum = s.floats(sumFloats);
                         std::vector<layers::AddedFloats> sums{{count, more, sum}};
                         for (std::size_t i = 1; i < manyTensors; ++i) // of many sizes
                             sums.push_back({i, more + i, sum + count + i * manyTensors});
                         s.math.add(sums);
                         s.keep(sum, sumFloats);
                         std::vector<std::span<const float>> tensors{{more, count}, {columns, width}};
                         for (std::size_t i = 1; i < manyTensors; ++i) tensors.emplace_back(more + i, i);
                         s.keep(s.math.squareSum(tensors));
                     }});
}

void optimizers(std::vector<Case>& cases)
{
    constexpr std::size_t count = 1021;
    const auto state = [](Side& s, bool second) {
        layers::TensorStep step{count, s.floats(count), s.floats(count), s.floats(count), nullptr, {}};
        if (second) step.moment2 = s.floats(count, 0.1F, 1);
        if (s.math.elementBytes() != 4) step.used = s.emptyElements(count); // else the layers use the values themselves
        return step;
    };
    const auto keep = [](Side& s, const layers::TensorStep& step) {
        s.keep(step.value, count);
        s.keep(step.moment1, count);
        if (step.moment2 != nullptr) s.keep(step.moment2, count);
        step.used.data != nullptr ? s.keepElements(step.used, count) : s.keep(step.value, count);
    };
    cases.push_back({"AdamW, step and undo", [=](Side& s) {
                         const layers::TensorStep tensor = state(s, true);
                         const layers::AdamWStep step{3e-3F, 0.9F, 0.95F, 1.5F, 2.0F, 1e-8F, 0.1F, 0.5F};
                         s.math.adamW({&tensor, 1}, step);
                         keep(s, tensor);
                         const Elements predicted = s.emptyElements(count);
                         s.math.predict(count, tensor.value, tensor.moment1, tensor.moment2, 6e-3F, step, predicted);
                         s.keepElements(predicted, count);
                         s.math.undoAdamW({&tensor, 1}, step);
                         keep(s, tensor);
                     }});
    cases.push_back(
        {"AdamW on many tensors", [=](Side& s) {
             std::vector<layers::TensorStep> tensors;
             for (std::size_t i = 1; i < manyTensors; ++i) {
                 tensors.push_back(
                     {3 * i, s.floats(3 * i), s.floats(3 * i), s.floats(3 * i), s.floats(3 * i, 0.1F, 1), {}});
                 if (s.math.elementBytes() != 4) tensors.back().used = s.emptyElements(3 * i);
             }
             s.math.adamW(tensors, {3e-3F, 0.9F, 0.95F, 1.5F, 2.0F, 1e-8F, 0.1F, 0.5F});
             for (const layers::TensorStep& tensor : tensors) {
                 s.keep(tensor.value, tensor.count);
                 tensor.used.data != nullptr ? s.keepElements(tensor.used, tensor.count)
                                             : s.keep(tensor.value, tensor.count);
             }
         }});
    cases.push_back({"SGD, step and undo", [=](Side& s) {
                         const layers::TensorStep tensor = state(s, false);
                         const layers::SgdStep step{3e-3F, 0.9F, 0.1F, 0.5F};
                         s.math.sgd({&tensor, 1}, step);
                         keep(s, tensor);
                         s.math.undoSgd({&tensor, 1}, step);
                         keep(s, tensor);
                     }});
    cases.push_back({"rounding to elements", [](Side& s) {
                         const float* value = s.floats(count);
                         if (s.math.elementBytes() == 4) {
                             s.keep(value, count);
                             return;
                         }
                         const Elements out = s.emptyElements(count);
                         s.math.toElements(count, value, out);
                         s.keepElements(out, count);
                     }});
}

std::vector<Values> resultsOf(const Case& one, LayerMath& math, Allocator& allocator, Precision precision)
{
    Side side(math, allocator, precision);
    one.run(side);
    return std::move(side.results);
}

} // namespace

double kernelTolerance(Precision precision)
{
    return precision == Precision::Bf16 ? 2e-2 : precision == Precision::Tf32 ? 4e-3 : 1e-4;
}

Result<std::vector<KernelComparison>> compareKernels(std::string_view backend, const DeviceOptions& options,
                                                     Precision precision)
{
    DeviceOptions wanted = options;
    wanted.precision = precision;
    STAGEWRIGHT_TRY(auto made, makeBackend(backend, wanted));
    std::vector<KernelComparison> all;
    if (!made->capabilities().comparable) return all;
    STAGEWRIGHT_TRY(auto memory, made->openMemory(0, 1, 1));

    std::vector<Case> cases;
    norms(cases);
    gemm(cases);
    const std::size_t streamed = attentions(cases);
    const std::size_t notStreamed = cases.size();
    ends(cases);
    optimizers(cases);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        try {
            Allocator allocator(memory ? *memory : hostMemory());
            StageUse use;
            use.math.streams = i >= streamed && i < notStreamed;
            STAGEWRIGHT_TRY(const auto device, made->makeMath(use, allocator));
            const std::vector<Values> mine = resultsOf(cases[i], *device, allocator, precision);
            Allocator hostAllocator;
            STAGEWRIGHT_TRY(const auto gemm, cpu::gemmNamed("openblas"));
            STAGEWRIGHT_CHECK(gemm->reserve(1));
            const auto host = cpu::makeCpuMath(*gemm);
            const std::vector<Values> reference = resultsOf(cases[i], *host, hostAllocator, precision);
            Difference difference;
            for (std::size_t k = 0; k < mine.size(); ++k) difference.add(mine[k], reference[k]);
            const double tolerance = kernelTolerance(precision);
            all.push_back({cases[i].name, difference.error, tolerance, difference.error <= tolerance});
        } catch (const std::exception& e) {
            return fail(ErrorCode::Failed, fmt::format("{}: {}", cases[i].name, e.what()));
        }
    }
    const CollectiveSource* connected = made->capabilities().collectives;
    if (connected == nullptr || precision != Precision::Fp32) return all;
    STAGEWRIGHT_TRY(auto collectives, connected->compareCollectives());
    all.insert(all.end(), collectives.begin(), collectives.end());
    return all;
}

} // namespace stagewright
