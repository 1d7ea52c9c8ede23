// The two ends of the model: embedding and head.
#include <cstring>
#include <stdexcept>
#include <utility>

#include "engine/cpu/blas.h"
#include "engine/cpu/layers.h"

namespace stagewright::cpu {

namespace {

constexpr float initialDeviation = 0.02F;

void checkTokens(std::span<const std::uint8_t> tokens, const StageContext& context, const char* what)
{
    if (tokens.size() != static_cast<std::size_t>(context.rows()))
        throw std::invalid_argument(std::string(what) + ": " + std::to_string(tokens.size()) + " given, " +
                                    std::to_string(context.rows()) + " needed");
    for (const std::uint8_t token : tokens)
        if (token >= context.model.vocabulary)
            throw std::out_of_range(std::string(what) + ": byte " + std::to_string(token) + ", the vocabulary has " +
                                    std::to_string(context.model.vocabulary));
}

} // namespace

Embedding::Embedding(const StageContext& context, ParameterSet& parameters)
    : m_context(context), m_token(parameters.addNormal("embedding.token",
                                                       {context.model.vocabulary, context.model.hidden},
                                                       initialDeviation)),
      m_position(parameters.addNormal("embedding.position", {context.model.sequence, context.model.hidden},
                                      initialDeviation))
{
}

void Embedding::forward(Saved& saved, int microbatch, std::span<const std::uint8_t> tokens, float* stream) const
{
    checkTokens(tokens, m_context, "tokens");
    saved.tokens = m_context.keep((tokens.size() + sizeof(float) - 1) / sizeof(float), microbatch);
    std::memcpy(saved.tokens.data(), tokens.data(), tokens.size());
    const auto hidden = static_cast<std::size_t>(m_context.model.hidden);
    const auto sequence = static_cast<std::size_t>(m_context.model.sequence);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        const float* token = m_token.value.data() + tokens[row] * hidden;
        const float* position = m_position.value.data() + row % sequence * hidden;
        float* out = stream + row * hidden;
        for (std::size_t i = 0; i < hidden; ++i)
            out[i] = token[i] + position[i];
    }
}

void Embedding::inputGrad(Saved& saved, Buffer outputGrad) const
{
    saved.outputGrad = std::move(outputGrad);
}

void Embedding::weightGrad(Saved& saved) const
{
    const auto hidden = static_cast<std::size_t>(m_context.model.hidden);
    const auto sequence = static_cast<std::size_t>(m_context.model.sequence);
    const auto* tokens = reinterpret_cast<const std::uint8_t*>(saved.tokens.data());
    for (std::size_t row = 0; row < static_cast<std::size_t>(m_context.rows()); ++row) {
        const float* grad = saved.outputGrad.data() + row * hidden;
        m_context.kernels.add(hidden, grad, m_token.gradient.data() + tokens[row] * hidden);
        m_context.kernels.add(hidden, grad, m_position.gradient.data() + row % sequence * hidden);
    }
    saved = Saved();
}

Head::Head(const StageContext& context, ParameterSet& parameters)
    : m_context(context), m_norm{parameters.addConstant("head.norm.gamma", {context.model.hidden}, 1.0F),
                                 parameters.addConstant("head.norm.beta", {context.model.hidden}, 0.0F)},
      m_weight(parameters.addNormal("head.weight", {context.model.vocabulary, context.model.hidden}, initialDeviation))
{
}

double Head::forward(Saved& saved, int microbatch, float* stream, std::span<const std::uint8_t> targets) const
{
    checkTokens(targets, m_context, "targets");
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    Buffer norm = m_context.borrow(m_context.stream(), microbatch);
    saved.normal = m_context.keep(m_context.stream(), microbatch);
    saved.deviation = m_context.keep(static_cast<std::size_t>(rows), microbatch);
    m_context.kernels.layerNorm(rows, hidden, stream, nullptr, m_norm.gamma.value.data(), m_norm.beta.value.data(),
                                saved.normal.data(), saved.deviation.data(), norm.data());
    saved.logitsGrad =
        m_context.keep(static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary), microbatch);
    multiplyByTransposed(rows, vocabulary, hidden, 1.0F, {norm.data(), hidden}, {m_weight.value.data(), hidden}, 0.0F,
                         saved.logitsGrad.data(), vocabulary);
    return m_context.kernels.crossEntropy(rows, vocabulary, saved.logitsGrad.data(), targets.data()) / rows;
}

Buffer Head::inputGrad(Saved& saved, int microbatch, float scale) const
{
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    saved.sums = m_context.keep(2 * static_cast<std::size_t>(hidden), microbatch);
    Buffer normGrad = m_context.borrow(m_context.stream(), microbatch);
    multiply(rows, hidden, vocabulary, scale / static_cast<float>(rows), {saved.logitsGrad.data(), vocabulary},
             {m_weight.value.data(), hidden}, 0.0F, normGrad.data(), hidden);
    Buffer inputGrad = m_context.keep(m_context.stream(), microbatch);
    m_context.kernels.layerNormBackward(rows, hidden, normGrad.data(), saved.normal.data(), saved.deviation.data(),
                                        m_norm.gamma.value.data(), nullptr, inputGrad.data(),
                                        {saved.sums.data(), saved.sums.data() + hidden, nullptr, nullptr});
    saved.deviation.reset();
    return inputGrad;
}

void Head::weightGrad(Saved& saved, int microbatch, float scale) const
{
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    Buffer norm = m_context.borrow(m_context.stream(), microbatch);
    m_context.kernels.scaleShift(rows, hidden, saved.normal.data(), m_norm.gamma.value.data(), m_norm.beta.value.data(),
                                 norm.data());
    multiplyTransposed(vocabulary, hidden, rows, scale / static_cast<float>(rows), {saved.logitsGrad.data(), vocabulary},
                       {norm.data(), hidden}, 1.0F, m_weight.gradient.data(), hidden);
    m_context.kernels.add(static_cast<std::size_t>(hidden), saved.sums.data(), m_norm.gamma.gradient.data());
    m_context.kernels.add(static_cast<std::size_t>(hidden), saved.sums.data() + hidden, m_norm.beta.gradient.data());
    saved = Saved();
}

} // namespace stagewright::cpu
