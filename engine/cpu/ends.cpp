// The two ends of the model: embedding and head.
#include <cstring>
#include <stdexcept>
#include <utility>

#include "engine/cpu/blas.h"
#include "engine/cpu/layers.h"
#include "engine/cpu/stacked_rows.h"

namespace stagewright::cpu {

namespace {

constexpr float initialDeviation = 0.02F;

Buffer keepBytes(std::span<const std::uint8_t> bytes, const StageContext& context, int microbatch)
{
    Buffer kept = context.keep((bytes.size() + sizeof(float) - 1) / sizeof(float), microbatch);
    std::memcpy(kept.data(), bytes.data(), bytes.size());
    return kept;
}

std::span<const std::uint8_t> bytesOf(const Buffer& buffer, const PartShape& part)
{
    return {reinterpret_cast<const std::uint8_t*>(buffer.data()), static_cast<std::size_t>(part.rows())};
}

void checkTokens(std::span<const std::uint8_t> tokens, const PartShape& part, int vocabulary, const char* what)
{
    if (tokens.size() != static_cast<std::size_t>(part.rows()))
        throw std::invalid_argument(std::string(what) + ": " + std::to_string(tokens.size()) + " given, " +
                                    std::to_string(part.rows()) + " needed");
    for (const std::uint8_t token : tokens)
        if (token >= vocabulary)
            throw std::out_of_range(std::string(what) + ": byte " + std::to_string(token) + ", the vocabulary has " +
                                    std::to_string(vocabulary));
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

void Embedding::keepTokens(Saved& saved, const PartShape& part, std::span<const std::uint8_t> tokens) const
{
    checkTokens(tokens, part, m_context.model.vocabulary, "tokens");
    saved.tokens = keepBytes(tokens, m_context, part.microbatch);
}

void Embedding::forward(const Saved& saved, const PartShape& part, float* stream) const
{
    const std::span<const std::uint8_t> tokens = bytesOf(saved.tokens, part);
    const auto hidden = static_cast<std::size_t>(m_context.model.hidden);
    const auto length = static_cast<std::size_t>(part.tokens);
    const auto past = static_cast<std::size_t>(part.past);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        const float* token = m_token.used + tokens[row] * hidden;
        const float* position = m_position.used + (past + row % length) * hidden;
        float* out = stream + row * hidden;
        for (std::size_t i = 0; i < hidden; ++i)
            out[i] = token[i] + position[i];
    }
}

void Embedding::weightGrad(Saved& saved, const PartShape& part) const
{
    const std::span<const std::uint8_t> tokens = bytesOf(saved.tokens, part);
    const auto hidden = static_cast<std::size_t>(m_context.model.hidden);
    const auto length = static_cast<std::size_t>(part.tokens);
    const auto past = static_cast<std::size_t>(part.past);
    for (std::size_t row = 0; row < tokens.size(); ++row) {
        const float* grad = saved.outputGrad.data() + row * hidden;
        m_context.kernels.add(hidden, grad, m_token.gradient.data() + tokens[row] * hidden);
        m_context.kernels.add(hidden, grad, m_position.gradient.data() + (past + row % length) * hidden);
    }
    saved = Saved();
}

Head::Head(const StageContext& context, ParameterSet& parameters)
    : m_context(context), m_norm{parameters.addConstant("head.norm.gamma", {context.model.hidden}, 1.0F),
                                 parameters.addConstant("head.norm.beta", {context.model.hidden}, 0.0F)},
      m_weight(parameters.addNormal("head.weight", {context.model.vocabulary, context.model.hidden}, initialDeviation))
{
}

double Head::forward(Saved& saved, const PartShape& part, float* stream, std::span<const std::uint8_t> targets,
                     Forward how) const
{
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    const bool drop = how == Forward::Drop;
    const auto keep = [&](std::size_t floats) {
        return drop ? m_context.borrow(floats, part.microbatch) : m_context.keep(floats, part.microbatch);
    };
    checkTokens(targets, part, vocabulary, "targets");
    if (drop) saved.targets = keepBytes(targets, m_context, part.microbatch);
    Buffer norm = m_context.borrow(m_context.stream(part), part.microbatch);
    Buffer normal = keep(m_context.stream(part));
    Buffer deviation = keep(static_cast<std::size_t>(rows));
    m_context.kernels.layerNorm(rows, hidden, stream, nullptr, m_norm.gamma.used, m_norm.beta.used, normal.data(),
                                deviation.data(), norm.data());
    Buffer logits = keep(static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary));
    multiplyByTransposed(rows, vocabulary, hidden, 1.0F, {norm.data(), hidden}, {m_weight.used, hidden}, 0.0F,
                         logits.data(), vocabulary);
    const double loss = m_context.kernels.crossEntropy(rows, vocabulary, logits.data(), targets.data()) / rows;
    if (drop) return loss;
    saved.normal = std::move(normal);
    saved.deviation = std::move(deviation);
    saved.logitsGrad = std::move(logits);
    return loss;
}

Buffer Head::inputGrad(Saved& saved, const PartShape& part, float scale) const
{
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    saved.sums = m_context.keep(2 * static_cast<std::size_t>(hidden), part.microbatch);
    Buffer normGrad = m_context.borrow(m_context.stream(part), part.microbatch);
    multiply(rows, hidden, vocabulary, scale / static_cast<float>(m_context.microbatchRows()),
             {saved.logitsGrad.data(), vocabulary}, {m_weight.used, hidden}, 0.0F, normGrad.data(), hidden);
    Buffer inputGrad = m_context.keep(m_context.stream(part), part.microbatch);
    m_context.kernels.layerNormBackward(rows, hidden, normGrad.data(), saved.normal.data(), saved.deviation.data(),
                                        m_norm.gamma.used, nullptr, inputGrad.data(),
                                        {saved.sums.data(), saved.sums.data() + hidden, nullptr, nullptr});
    saved.deviation.reset();
    return inputGrad;
}

void Head::weightGrad(std::span<const Pending<Saved>> parts, float scale) const
{
    const int hidden = m_context.model.hidden;
    const auto width = static_cast<std::size_t>(hidden);
    const int vocabulary = m_context.model.vocabulary;
    const RowStacker<Saved> stacker(m_context, parts);
    {
        const Buffer norm = stacker.norm(&Saved::normal, m_norm);
        const Buffer logitsGrad = stacker.take(&Saved::logitsGrad, vocabulary);
        multiplyTransposed(vocabulary, hidden, stacker.rows(), scale / static_cast<float>(m_context.microbatchRows()),
                           {logitsGrad.data(), vocabulary}, {norm.data(), hidden}, 1.0F, m_weight.gradient.data(),
                           hidden);
    }
    for (const Pending<Saved>& part : parts) {
        if (part.saved->sums) { // with the first half where a whole was cut afterwards
            m_context.kernels.add(width, part.saved->sums.data(), m_norm.gamma.gradient.data());
            m_context.kernels.add(width, part.saved->sums.data() + hidden, m_norm.beta.gradient.data());
        }
        *part.saved = Saved();
    }
}

} // namespace stagewright::cpu
