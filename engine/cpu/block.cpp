#include <cmath>
#include <utility>

#include "engine/cpu/blas.h"
#include "engine/cpu/layers.h"

namespace stagewright::cpu {

namespace {

constexpr float initialDeviation = 0.02F;

NormParameters addNorm(ParameterSet& parameters, const std::string& name, int width)
{
    Parameter& gamma = parameters.addConstant(name + ".gamma", {width}, 1.0F);
    Parameter& beta = parameters.addConstant(name + ".beta", {width}, 0.0F);
    return {gamma, beta};
}

LinearParameters addLinear(ParameterSet& parameters, const std::string& name, int outputs, int inputs, float deviation)
{
    Parameter& weight = parameters.addNormal(name + ".weight", {outputs, inputs}, deviation);
    Parameter& bias = parameters.addConstant(name + ".bias", {outputs}, 0.0F);
    return {weight, bias};
}

// Layers that write to the residual stream start smaller, as there are two of them a block.
float residualDeviation(const ModelConfig& model)
{
    return initialDeviation / std::sqrt(2.0F * static_cast<float>(model.layers));
}

std::string layerName(int layer, const char* part)
{
    return "layer" + std::to_string(layer) + part;
}

} // namespace

struct Block::Sums {
    float* gamma1;
    float* beta1;
    float* gamma2;
    float* beta2;
    float* contract;
    float* project;
    float* expand; // 4·H
    float* qkv;    // 3·H

    Sums(float* data, std::size_t hidden)
        : gamma1(data), beta1(data + hidden), gamma2(data + 2 * hidden), beta2(data + 3 * hidden),
          contract(data + 4 * hidden), project(data + 5 * hidden), expand(data + 6 * hidden), qkv(data + 10 * hidden)
    {
    }
    static std::size_t size(std::size_t hidden) { return 13 * hidden; }
};

Block::Block(const StageContext& context, int layer, ParameterSet& parameters)
    : m_context(context), m_norm1(addNorm(parameters, layerName(layer, ".norm1"), context.model.hidden)),
      m_qkv(addLinear(parameters, layerName(layer, ".attention.qkv"), 3 * context.model.hidden, context.model.hidden,
                      initialDeviation)),
      m_project(addLinear(parameters, layerName(layer, ".attention.project"), context.model.hidden, context.model.hidden,
                          residualDeviation(context.model))),
      m_norm2(addNorm(parameters, layerName(layer, ".norm2"), context.model.hidden)),
      m_expand(addLinear(parameters, layerName(layer, ".mlp.expand"), 4 * context.model.hidden, context.model.hidden,
                         initialDeviation)),
      m_contract(addLinear(parameters, layerName(layer, ".mlp.contract"), context.model.hidden, 4 * context.model.hidden,
                           residualDeviation(context.model)))
{
}

void Block::forward(Saved& saved, int microbatch, float* stream) const
{
    const Kernels& k = m_context.kernels;
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const std::size_t size = m_context.stream();
    const auto keep = [&](std::size_t floats) { return m_context.keep(floats, microbatch); };

    Buffer norm = m_context.borrow(size, microbatch);
    saved.normal1 = keep(size);
    saved.deviation1 = keep(static_cast<std::size_t>(rows));
    // The projection's bias joins the stream while the row is at hand.
    k.layerNorm(rows, hidden, stream, m_project.bias.value.data(), m_norm1.gamma.value.data(), m_norm1.beta.value.data(),
                saved.normal1.data(), saved.deviation1.data(), norm.data());

    saved.qkv = keep(3 * size);
    k.fillRows(rows, 3 * hidden, m_qkv.bias.value.data(), saved.qkv.data());
    multiplyByTransposed(rows, 3 * hidden, hidden, 1.0F, {norm.data(), hidden}, {m_qkv.weight.value.data(), hidden}, 1.0F,
                         saved.qkv.data(), 3 * hidden);
    const AttentionShape attention = m_context.attention();
    saved.probabilities = keep(attention.probabilities());
    saved.attention = keep(size);
    attentionForward(attention, k, saved.qkv.data(), saved.probabilities.data(), saved.attention.data());
    multiplyByTransposed(rows, hidden, hidden, 1.0F, {saved.attention.data(), hidden},
                         {m_project.weight.value.data(), hidden}, 1.0F, stream, hidden);

    saved.normal2 = keep(size);
    saved.deviation2 = keep(static_cast<std::size_t>(rows));
    k.layerNorm(rows, hidden, stream, m_contract.bias.value.data(), m_norm2.gamma.value.data(),
                m_norm2.beta.value.data(), saved.normal2.data(), saved.deviation2.data(), norm.data());
    saved.hidden = keep(4 * size);
    multiplyByTransposed(rows, 4 * hidden, hidden, 1.0F, {norm.data(), hidden}, {m_expand.weight.value.data(), hidden},
                         0.0F, saved.hidden.data(), 4 * hidden);
    norm.reset();
    Buffer activation = m_context.borrow(4 * size, microbatch);
    k.gelu(rows, 4 * hidden, saved.hidden.data(), m_expand.bias.value.data(), activation.data());
    multiplyByTransposed(rows, hidden, 4 * hidden, 1.0F, {activation.data(), 4 * hidden},
                         {m_contract.weight.value.data(), 4 * hidden}, 1.0F, stream, hidden);
}

Buffer Block::inputGrad(Saved& saved, int microbatch, Buffer outputGrad) const
{
    const Kernels& k = m_context.kernels;
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const std::size_t size = m_context.stream();
    const auto keep = [&](std::size_t floats) { return m_context.keep(floats, microbatch); };

    saved.outputGrad = std::move(outputGrad);
    saved.sums = keep(Sums::size(static_cast<std::size_t>(hidden)));
    const Sums sums(saved.sums.data(), static_cast<std::size_t>(hidden));

    // MLP. `hidden` turns from pre-activation into activation, which W needs.
    saved.hiddenGrad = keep(4 * size);
    multiply(rows, 4 * hidden, hidden, 1.0F, {saved.outputGrad.data(), hidden},
             {m_contract.weight.value.data(), 4 * hidden}, 0.0F, saved.hiddenGrad.data(), 4 * hidden);
    k.geluBackward(rows, 4 * hidden, saved.hidden.data(), m_expand.bias.value.data(), saved.hiddenGrad.data(),
                   sums.expand);
    Buffer normGrad = m_context.borrow(size, microbatch);
    multiply(rows, hidden, 4 * hidden, 1.0F, {saved.hiddenGrad.data(), 4 * hidden},
             {m_expand.weight.value.data(), hidden}, 0.0F, normGrad.data(), hidden);
    saved.middleGrad = keep(size);
    k.layerNormBackward(rows, hidden, normGrad.data(), saved.normal2.data(), saved.deviation2.data(),
                        m_norm2.gamma.value.data(), saved.outputGrad.data(), saved.middleGrad.data(),
                        {sums.gamma2, sums.beta2, sums.contract, sums.project});
    saved.deviation2.reset();

    // Attention.
    Buffer attentionGrad = m_context.borrow(size, microbatch);
    multiply(rows, hidden, hidden, 1.0F, {saved.middleGrad.data(), hidden}, {m_project.weight.value.data(), hidden}, 0.0F,
             attentionGrad.data(), hidden);
    saved.qkvGrad = keep(3 * size);
    const AttentionShape attention = m_context.attention();
    {
        Buffer workspace = m_context.borrow(attention.workspace(), microbatch);
        attentionBackward(attention, k, saved.qkv.data(), saved.probabilities.data(), attentionGrad.data(),
                          saved.qkvGrad.data(), workspace.data());
    }
    saved.qkv.reset();
    saved.probabilities.reset();
    attentionGrad.reset();
    multiply(rows, hidden, 3 * hidden, 1.0F, {saved.qkvGrad.data(), 3 * hidden}, {m_qkv.weight.value.data(), hidden},
             0.0F, normGrad.data(), hidden);
    Buffer inputGrad = keep(size);
    k.layerNormBackward(rows, hidden, normGrad.data(), saved.normal1.data(), saved.deviation1.data(),
                        m_norm1.gamma.value.data(), saved.middleGrad.data(), inputGrad.data(),
                        {sums.gamma1, sums.beta1, nullptr, nullptr});
    saved.deviation1.reset();
    for (int i = 0; i < 3 * hidden; ++i)
        sums.qkv[i] = 0;
    k.addColumnSums(rows, 3 * hidden, saved.qkvGrad.data(), sums.qkv);
    return inputGrad;
}

void Block::weightGrad(Saved& saved, int microbatch) const
{
    const Kernels& k = m_context.kernels;
    const int rows = m_context.rows();
    const int hidden = m_context.model.hidden;
    const auto width = static_cast<std::size_t>(hidden);
    const Sums sums(saved.sums.data(), width);

    multiplyTransposed(hidden, 4 * hidden, rows, 1.0F, {saved.outputGrad.data(), hidden},
                       {saved.hidden.data(), 4 * hidden}, 1.0F, m_contract.weight.gradient.data(), 4 * hidden);
    saved.outputGrad.reset();
    saved.hidden.reset();

    Buffer norm = m_context.borrow(m_context.stream(), microbatch);
    k.scaleShift(rows, hidden, saved.normal2.data(), m_norm2.gamma.value.data(), m_norm2.beta.value.data(), norm.data());
    multiplyTransposed(4 * hidden, hidden, rows, 1.0F, {saved.hiddenGrad.data(), 4 * hidden}, {norm.data(), hidden}, 1.0F,
                       m_expand.weight.gradient.data(), hidden);
    saved.normal2.reset();
    saved.hiddenGrad.reset();

    multiplyTransposed(hidden, hidden, rows, 1.0F, {saved.middleGrad.data(), hidden}, {saved.attention.data(), hidden},
                       1.0F, m_project.weight.gradient.data(), hidden);
    saved.middleGrad.reset();
    saved.attention.reset();

    k.scaleShift(rows, hidden, saved.normal1.data(), m_norm1.gamma.value.data(), m_norm1.beta.value.data(), norm.data());
    multiplyTransposed(3 * hidden, hidden, rows, 1.0F, {saved.qkvGrad.data(), 3 * hidden}, {norm.data(), hidden}, 1.0F,
                       m_qkv.weight.gradient.data(), hidden);

    k.add(width, sums.gamma1, m_norm1.gamma.gradient.data());
    k.add(width, sums.beta1, m_norm1.beta.gradient.data());
    k.add(width, sums.gamma2, m_norm2.gamma.gradient.data());
    k.add(width, sums.beta2, m_norm2.beta.gradient.data());
    k.add(width, sums.contract, m_contract.bias.gradient.data());
    k.add(width, sums.project, m_project.bias.gradient.data());
    k.add(4 * width, sums.expand, m_expand.bias.gradient.data());
    k.add(3 * width, sums.qkv, m_qkv.bias.gradient.data());
    saved = Saved();
}

} // namespace stagewright::cpu
