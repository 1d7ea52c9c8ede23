// The kernels of a block's forward and backward, the ends and the optimizer, at a GPT's shapes.
#include "engine/workload/gpt/gpt_kernels.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace stagewright {

namespace {

using layers::ConstElements;
using layers::Elements;
using layers::LayerMath;

constexpr int largeGemm = 4096; // at most 8 times as wide as the model; on the host an eighth
constexpr std::size_t largeCopy = std::size_t{64} << 20;

class GptKernels final : public TimedKernels {
public:
    GptKernels(LayerMath& math, Allocator& allocator, const ModelConfig& model, int samples)
        : m_math(math), m_allocator(allocator), m_model(model), m_samples(samples), m_rows(samples * model.sequence),
          m_hidden(model.hidden), m_element(math.elementBytes())
    {
        ceilings();
        gemm();
        attention();
        norms();
        ends();
        optimizer();
    }

private:
    static std::size_t area(int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }
    // Contents that no kernel can make slow or fast: small numbers of both signs, repeated.
    float* floats(std::size_t count)
    {
        if (m_pattern.empty())
            for (int i = 0; i < 4099; ++i) // a prime: rows differ
                m_pattern.push_back(static_cast<float>((i * 37) % 201 - 100) / 128.0F);
        m_buffers.push_back(m_allocator.take(count, workspaceTag()));
        float* to = m_buffers.back().data();
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = m_pattern[i % m_pattern.size()];
        m_allocator.memory().upload(to, values.data(), count * sizeof(float));
        return to;
    }
    Elements elements(std::size_t count)
    {
        if (m_element == sizeof(float)) return {floats(count)};
        Buffer thin = m_allocator.take(m_math.words(count), workspaceTag());
        m_math.toElements(count, floats(count), {thin.data()});
        m_allocator.memory().finish();
        m_buffers.back() = std::move(thin); // instead of the floats
        return {m_buffers.back().data()};
    }
    const std::uint8_t* bytes(int count)
    {
        std::vector<std::uint8_t> values(static_cast<std::size_t>(count));
        std::uint32_t state = 1;
        for (std::uint8_t& value : values) { // as uneven as text: half of all is of 16 bytes
            state = state * 1664525U + 1013904223U;
            const auto number = state >> 16;
            value = static_cast<std::uint8_t>(
                (number & 1) != 0 ? number >> 1 & 15
                                  : (number >> 1) % static_cast<unsigned>(std::min(m_model.vocabulary, 256)));
        }
        m_buffers.push_back(m_allocator.take((values.size() + 3) / 4, workspaceTag()));
        m_allocator.memory().upload(m_buffers.back().data(), values.data(), values.size());
        return reinterpret_cast<const std::uint8_t*>(m_buffers.back().data());
    }

    void add(std::string kernel, std::string shape, double flops, double bytes, std::function<void()> call)
    {
        all.push_back({std::move(kernel), std::move(shape), flops, bytes, std::move(call)});
    }
    void addGemm(std::string kernel, int rows, int columns, int depth, std::function<void()> call,
                 double resultBytes = 0)
    {
        const double a = static_cast<double>(area(rows, depth)), b = static_cast<double>(area(columns, depth)),
                     c = static_cast<double>(area(rows, columns));
        add(std::move(kernel), fmt::format("{} x {} x {}", rows, columns, depth), 2 * c * depth,
            (a + b) * m_element + c * (resultBytes > 0 ? resultBytes : m_element), std::move(call));
    }
    std::string rowsShape(int width) const { return fmt::format("{} x {}", m_rows, width); }

    void ceilings()
    {
        const int n = std::min(8 * m_hidden, m_allocator.memory().isHost() ? largeGemm / 8 : largeGemm);
        addGemm("large GEMM", n, n, n,
                [this, n, a = elements(area(n, n)), b = elements(area(n, n)), c = elements(area(n, n))] {
                    m_math.linearBare(n, n, n, a, b, c);
                });
        float* from = floats(largeCopy / sizeof(float));
        float* to = floats(largeCopy / sizeof(float));
        add("large copy", fmt::format("{} MiB", largeCopy >> 20), 0, 2.0 * largeCopy,
            [this, from, to] { m_allocator.memory().copy(to, from, largeCopy); });
    }

    // The four linear layers of a block and the head: forward with its end, gradient of the input, of the weight.
    void gemm()
    {
        const int h = m_hidden;
        const Elements thin = elements(area(m_rows, h)), wide = elements(area(m_rows, 4 * h)),
                       wide2 = elements(area(m_rows, 4 * h)), weight = elements(area(4 * h, h)),
                       bias = elements(area(4, h));
        float* gradient = floats(area(4 * h, h));
        float* sums = floats(area(4, h));
        const int rows = m_rows;
        LayerMath& math = m_math;
        addGemm("query, key, value with bias", rows, 3 * h, h,
                [=, &math] { math.linear(rows, 3 * h, h, thin, weight, bias, wide); });
        addGemm("projection added to the stream", rows, h, h,
                [=, &math] { math.linearAdd(rows, h, h, wide, weight, thin); });
        addGemm(
            "expand with GELU", rows, 4 * h, h,
            [=, &math] {
                math.expand(rows, 4 * h, h, thin, weight, bias, wide, wide2);
                math.activate(rows, 4 * h, wide, bias, wide2);
            },
            2.0 * m_element);
        addGemm("contract added to the stream", rows, h, 4 * h,
                [=, &math] { math.linearAdd(rows, h, 4 * h, wide, weight, thin); });
        addGemm(
            "gradient through contract, GELU and bias sums", rows, 4 * h, h,
            [=, &math] { math.geluInputGrad(rows, 4 * h, h, thin, weight, bias, wide, wide2, sums); }, 4.0 * m_element);
        addGemm("gradient of expand's input", rows, h, 4 * h,
                [=, &math] { math.linearInputGrad(rows, 4 * h, h, 1, wide, weight, thin); });
        addGemm("gradient of projection's input", rows, h, h,
                [=, &math] { math.linearInputGrad(rows, h, h, 1, thin, weight, wide); });
        addGemm("gradient of query, key, value's input", rows, h, 3 * h,
                [=, &math] { math.linearInputGrad(rows, 3 * h, h, 1, wide, weight, thin); });
        addGemm(
            "gradient of expand's weight", 4 * h, h, rows,
            [=, &math] { math.linearWeightGrad(rows, 4 * h, h, 1, wide, thin, gradient); }, 8);
        addGemm(
            "gradient of projection's weight", h, h, rows,
            [=, &math] { math.linearWeightGrad(rows, h, h, 1, wide, thin, gradient); }, 8);
        const int v = m_model.vocabulary;
        const Elements logits = elements(area(rows, v)), head = elements(area(v, h));
        addGemm("head", rows, v, h, [=, &math] { math.linearBare(rows, v, h, thin, head, logits); });
    }

    void attention()
    {
        const layers::AttentionShape shape{m_samples, m_model.sequence, m_hidden, m_model.heads, 0};
        const int stride = 3 * m_hidden;
        const Elements input = elements(area(m_rows, stride)), inputGrad = elements(area(m_rows, stride)),
                       out = elements(area(m_rows, m_hidden)), outGrad = elements(area(m_rows, m_hidden));
        float* kept = floats(m_math.keptByAttention(shape));
        float* workspace = floats(m_math.attentionWorkspace(shape));
        const auto hidden = static_cast<std::size_t>(m_hidden);
        const std::vector<layers::KeySegment> keys{{m_math.at(ConstElements(input), hidden),
                                                    m_math.at(ConstElements(input), 2 * hidden), stride,
                                                    m_model.sequence}};
        const std::vector<layers::KeyGradSegment> gradients{
            {m_math.at(inputGrad, hidden), m_math.at(inputGrad, 2 * hidden), stride, true}};
        const std::string text = fmt::format("{} x {} heads of {}, {} tokens", m_samples, m_model.heads,
                                             shape.headWidth(), m_model.sequence);
        // half of it is masked: two GEMMs of 2, halved
        const double square = static_cast<double>(m_rows) * m_model.sequence * m_hidden;
        const double moved = static_cast<double>(area(m_rows, m_hidden)) * m_element;
        add("attention", text, 2 * square, 4 * moved,
            [=, this] { m_math.attentionForward(shape, input, stride, keys, kept, out); });
        add("attention, backward", text, 5 * square, 8 * moved, [=, this] {
            m_math.attentionBackward(shape, input, stride, keys, kept, out, outGrad, inputGrad, gradients, workspace);
        });
    }

    void norms()
    {
        const int h = m_hidden, rows = m_rows;
        const Elements x = elements(area(rows, h)), normal = elements(area(rows, h)), out = elements(area(rows, h)),
                       gamma = elements(static_cast<std::size_t>(h)), beta = elements(static_cast<std::size_t>(h)),
                       wide = elements(area(rows, 3 * h));
        float* deviation = floats(static_cast<std::size_t>(rows));
        float* sums = floats(area(4, h));
        const double moved = static_cast<double>(area(rows, h)) * m_element;
        add("layer norm", rowsShape(h), 0, 3 * moved,
            [=, this] { m_math.layerNorm(rows, h, x, {}, gamma, beta, normal, deviation, out); });
        add("layer norm, backward with sums", rowsShape(h), 0, 6 * moved, [=, this] {
            m_math.layerNormBackward(rows, h, x, normal, deviation, gamma, x, out, {sums, sums + h, nullptr, nullptr});
        });
        add("scale and shift", rowsShape(h), 0, 2 * moved,
            [=, this] { m_math.scaleShift(rows, h, normal, gamma, beta, out); });
        add("sums of columns", rowsShape(3 * h), 0, 3 * moved,
            [=, this] { m_math.columnSums(rows, 3 * h, wide, sums); });
    }

    void ends()
    {
        const int h = m_hidden, v = m_model.vocabulary, tokens = m_model.sequence, samples = m_samples, rows = m_rows;
        const std::uint8_t* text = bytes(rows);
        const Elements table = elements(area(v, h)), positions = elements(area(tokens, h)),
                       stream = elements(area(rows, h)), logits = elements(area(rows, v));
        float* tokenGrad = floats(area(v, h));
        float* positionGrad = floats(area(tokens, h));
        const double moved = static_cast<double>(area(rows, h)) * m_element;
        add("embedding", rowsShape(h), 0, 2 * moved,
            [=, this] { m_math.embed(samples, tokens, 0, h, text, table, positions, stream); });
        add("gradient of the embedding", rowsShape(h), 0, 2 * moved + 8.0 * static_cast<double>(area(v, h)),
            [=, this] { m_math.embedWeightGrad(samples, tokens, 0, h, v, text, stream, tokenGrad, positionGrad); });
        add("cross entropy", rowsShape(v), 0, 2.0 * static_cast<double>(area(rows, v)) * m_element,
            [=, this] { m_math.crossEntropy(rows, v, logits, text, m_loss); });
    }

    void optimizer()
    {
        const std::size_t count = area(4 * m_hidden, m_hidden);
        layers::TensorStep tensor{count, floats(count), floats(count), floats(count), floats(count), {}};
        if (m_element != sizeof(float)) tensor.used = elements(count);
        const double elements = static_cast<double>(count);
        const std::string shape = fmt::format("{} x {}", 4 * m_hidden, m_hidden);
        add("AdamW", shape, 0, elements * (28 + (m_element == 4 ? 0 : m_element)), [=, this] {
            m_math.adamW({&tensor, 1}, {1e-4F, 0.9F, 0.95F, 1, 1, 1e-8F, 0.1F, 1});
        });
        const std::span<const float> gradient(tensor.gradient, count);
        add("sum of squares", shape, 0, 4 * elements, [=, this] { (void)m_math.squareSum({&gradient, 1}); });
        add("sum of gradients", shape, 0, 12 * elements, [=, this] {
            const layers::AddedFloats one{count, tensor.gradient, tensor.value};
            m_math.add({&one, 1});
        });
    }

    LayerMath& m_math;
    Allocator& m_allocator;
    ModelConfig m_model;
    int m_samples, m_rows, m_hidden, m_element;
    std::vector<float> m_pattern;
    std::vector<Buffer> m_buffers;
    layers::LossCell m_loss;
};

} // namespace

std::unique_ptr<TimedKernels> gptKernels(const ModelConfig& model, LayerMath& math, Allocator& allocator, int samples)
{
    return std::make_unique<GptKernels>(math, allocator, model, samples);
}

} // namespace stagewright
