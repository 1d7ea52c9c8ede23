// The two ends of the model: embedding and head.
#include <stdexcept>
#include <utility>

#include "engine/workload/gpt/layers.h"
#include "engine/workload/gpt/stacked_rows.h"

namespace stagewright::layers {

namespace {

// Bytes in a buffer of the device.
const std::uint8_t* bytesOf(const Buffer& buffer) { return reinterpret_cast<const std::uint8_t*>(buffer.data()); }

} // namespace

Buffer StageContext::bytes(std::span<const std::uint8_t> host, MemoryCategory category, int microbatch) const
{
    Buffer buffer = allocator.take((host.size() + sizeof(float) - 1) / sizeof(float), tag(category, microbatch));
    allocator.memory().upload(buffer.data(), host.data(), host.size());
    return buffer;
}

void Embedding::check(std::span<const std::uint8_t> tokens, const PartShape& part, int vocabulary, const char* what)
{
    if (tokens.size() != static_cast<std::size_t>(part.rows()))
        throw std::invalid_argument(std::string(what) + ": " + std::to_string(tokens.size()) + " given, " +
                                    std::to_string(part.rows()) + " needed");
    for (const std::uint8_t token : tokens)
        if (token >= vocabulary)
            throw std::out_of_range(std::string(what) + ": byte " + std::to_string(token) + ", the vocabulary has " +
                                    std::to_string(vocabulary));
}

Embedding::Embedding(const StageContext& context, ParameterSet& parameters)
    : m_context(context), m_token(parameters.addNormal(
                              "embedding.token", {context.model.vocabulary, context.model.hidden}, initialDeviation)),
      m_position(
          parameters.addNormal("embedding.position", {context.model.sequence, context.model.hidden}, initialDeviation))
{
}

void Embedding::keepTokens(Saved& saved, const PartShape& part, std::span<const std::uint8_t> tokens) const
{
    check(tokens, part, m_context.model.vocabulary, "tokens");
    saved.tokens = m_context.bytes(tokens, MemoryCategory::Activations, part.microbatch);
}

void Embedding::forward(const Saved& saved, const PartShape& part, Elements stream) const
{
    m_context.math.embed(part.batch, part.tokens, part.past, m_context.model.hidden, bytesOf(saved.tokens),
                         m_token.used, m_position.used, stream);
}

void Embedding::weightGrad(Saved& saved, const PartShape& part) const
{
    m_context.math.embedWeightGrad(part.batch, part.tokens, part.past, m_context.model.hidden,
                                   m_context.model.vocabulary, bytesOf(saved.tokens), elementsIn(saved.outputGrad),
                                   m_token.gradient.data(), m_position.gradient.data());
    saved = Saved();
}

Head::Head(const StageContext& context, ParameterSet& parameters)
    : m_context(context), m_norm{parameters.addConstant("head.norm.gamma", {context.model.hidden}, 1.0F),
                                 parameters.addConstant("head.norm.beta", {context.model.hidden}, 0.0F)},
      m_weight(parameters.addNormal("head.weight", {context.model.vocabulary, context.model.hidden}, initialDeviation))
{
}

void Head::forward(Saved& saved, const PartShape& part, Elements stream, const std::uint8_t* targets, Forward how,
                   LossCell& loss) const
{
    LayerMath& math = m_context.math;
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    const bool drop = how == Forward::Drop;
    const auto keep = [&](std::size_t elements) {
        return drop ? m_context.borrow(elements, part.microbatch) : m_context.keep(elements, part.microbatch);
    };
    Buffer norm = m_context.borrow(m_context.stream(part), part.microbatch);
    Buffer normal = keep(m_context.stream(part));
    const auto deviations = static_cast<std::size_t>(rows);
    Buffer deviation =
        drop ? m_context.borrowFloats(deviations, part.microbatch) : m_context.keepFloats(deviations, part.microbatch);
    math.layerNorm(rows, hidden, stream, {}, m_norm.gamma.used, m_norm.beta.used, elementsIn(normal), deviation.data(),
                   elementsIn(norm));
    Buffer logits = keep(static_cast<std::size_t>(rows) * static_cast<std::size_t>(vocabulary));
    math.linearBare(rows, vocabulary, hidden, elementsIn(norm), m_weight.used, elementsIn(logits));
    math.crossEntropy(rows, vocabulary, elementsIn(logits), targets, loss);
    if (drop) return;
    saved.normal = std::move(normal);
    saved.deviation = std::move(deviation);
    saved.logitsGrad = std::move(logits);
}

Buffer Head::inputGrad(Saved& saved, const PartShape& part, float scale) const
{
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const int vocabulary = m_context.model.vocabulary;
    saved.sums = m_context.keepFloats(2 * static_cast<std::size_t>(hidden), part.microbatch);
    Buffer normGrad = m_context.borrow(m_context.stream(part), part.microbatch);
    m_context.math.linearInputGrad(rows, vocabulary, hidden, scale / static_cast<float>(m_context.microbatchRows()),
                                   elementsIn(saved.logitsGrad), m_weight.used, elementsIn(normGrad));
    Buffer inputGrad = m_context.keep(m_context.stream(part), part.microbatch);
    m_context.math.layerNormBackward(rows, hidden, elementsIn(normGrad), elementsIn(saved.normal),
                                     saved.deviation.data(), m_norm.gamma.used, {}, elementsIn(inputGrad),
                                     {saved.sums.data(), saved.sums.data() + hidden, nullptr, nullptr});
    saved.deviation.reset();
    return inputGrad;
}

void Head::weightGrad(std::span<const Pending<Saved>> parts, float scale) const
{
    LayerMath& math = m_context.math;
    const int hidden = m_context.model.hidden;
    const auto width = static_cast<std::size_t>(hidden);
    const int vocabulary = m_context.model.vocabulary;
    const RowStacker<Saved> stacker(m_context, parts);
    {
        const Buffer norm = stacker.norm(&Saved::normal, m_norm);
        const Buffer logitsGrad = stacker.take(&Saved::logitsGrad, vocabulary);
        math.linearWeightGrad(stacker.rows(), vocabulary, hidden,
                              scale / static_cast<float>(m_context.microbatchRows()), elementsIn(logitsGrad),
                              elementsIn(norm), m_weight.gradient.data());
    }
    for (const Pending<Saved>& part : parts) {
        if (part.saved->sums) { // with the first half where a whole was cut afterwards
            const AddedFloats both[] = {{width, part.saved->sums.data(), m_norm.gamma.gradient.data()},
                                        {width, part.saved->sums.data() + hidden, m_norm.beta.gradient.data()}};
            math.add(both);
        }
        *part.saved = Saved();
    }
}

} // namespace stagewright::layers
