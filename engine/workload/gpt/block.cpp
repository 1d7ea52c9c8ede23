#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/workload/gpt/layers.h"
#include "engine/workload/gpt/stacked_rows.h"

namespace stagewright::layers {

namespace {

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
    parameters.addProduct(weight, bias);
    return {weight, bias};
}

// Layers that write to the residual stream start smaller, as there are two of them a block.
float residualDeviation(const ModelConfig& model)
{
    return initialDeviation / std::sqrt(2.0F * static_cast<float>(model.layers));
}

std::string layerName(int layer, const char* part) { return "layer" + std::to_string(layer) + part; }

// Keys and values of a slice, packed in qkv or, where that was dropped, alone.
KeySegment segmentOf(const LayerMath& math, const Block::Saved& saved, const PartShape& part, int hidden)
{
    const auto width = static_cast<std::size_t>(hidden);
    const ConstElements qkv = elementsIn(saved.qkv);
    if (qkv.data) return {math.at(qkv, width), math.at(qkv, 2 * width), 3 * hidden, part.tokens};
    const ConstElements both = elementsIn(saved.keyValue);
    return {both, math.at(both, width), 2 * hidden, part.tokens};
}

std::vector<KeySegment> segmentsOf(const LayerMath& math, Block::Earlier earlier, const Block::Saved& own,
                                   const PartShape& part, int hidden)
{
    std::vector<KeySegment> segments;
    segments.reserve(earlier.size() + 1);
    for (const Pending<Block::Saved>& slice : earlier)
        segments.push_back(segmentOf(math, *slice.saved, slice.shape, hidden));
    segments.push_back(segmentOf(math, own, part, hidden));
    return segments;
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
      m_project(addLinear(parameters, layerName(layer, ".attention.project"), context.model.hidden,
                          context.model.hidden, residualDeviation(context.model))),
      m_norm2(addNorm(parameters, layerName(layer, ".norm2"), context.model.hidden)),
      m_expand(addLinear(parameters, layerName(layer, ".mlp.expand"), 4 * context.model.hidden, context.model.hidden,
                         initialDeviation)),
      m_contract(addLinear(parameters, layerName(layer, ".mlp.contract"), context.model.hidden,
                           4 * context.model.hidden, residualDeviation(context.model)))
{
}

void Block::forward(Saved& saved, const PartShape& part, Earlier earlier, Elements stream, Forward how) const
{
    LayerMath& math = m_context.math;
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const std::size_t size = m_context.stream(part);
    const bool drop = how == Forward::Drop;
    const auto keep = [&](std::size_t elements) {
        return drop ? m_context.borrow(elements, part.microbatch) : m_context.keep(elements, part.microbatch);
    };
    const auto keepFloats = [&](std::size_t floats) {
        return drop ? m_context.borrowFloats(floats, part.microbatch) : m_context.keepFloats(floats, part.microbatch);
    };

    Buffer norm = m_context.borrow(size, part.microbatch);
    saved.normal1 = keep(size);
    saved.deviation1 = keepFloats(static_cast<std::size_t>(rows));
    // The projection's bias joins the stream while the row is at hand.
    math.layerNorm(rows, hidden, stream, m_project.bias.used, m_norm1.gamma.used, m_norm1.beta.used,
                   elementsIn(saved.normal1), saved.deviation1.data(), elementsIn(norm));
    if (drop) saved.normal1.reset();

    saved.qkv = keep(3 * size);
    math.linear(rows, 3 * hidden, hidden, elementsIn(norm), m_qkv.weight.used, m_qkv.bias.used, elementsIn(saved.qkv));
    saved.keyValue.reset(); // qkv holds the same
    const AttentionShape attention{part.batch, part.tokens, hidden, m_context.model.heads, part.past};
    saved.probabilities = keepFloats(math.keptByAttention(attention));
    saved.attention = keep(size);
    math.attentionForward(attention, elementsIn(saved.qkv), 3 * hidden, segmentsOf(math, earlier, saved, part, hidden),
                          saved.probabilities.data(), elementsIn(saved.attention));
    if (drop) {
        saved.probabilities.reset();
        if (part.followed) {
            saved.keyValue = m_context.keep(2 * size, part.microbatch);
            const std::size_t row = static_cast<std::size_t>(hidden) * static_cast<std::size_t>(math.elementBytes());
            m_context.allocator.memory().copyRows(saved.keyValue.data(), 2 * row,
                                                  math.at(elementsIn(saved.qkv), static_cast<std::size_t>(hidden)),
                                                  3 * row, 2 * row, static_cast<std::size_t>(rows));
        }
        saved.qkv.reset();
    }
    math.linearAdd(rows, hidden, hidden, elementsIn(saved.attention), m_project.weight.used, stream);

    saved.normal2 = keep(size);
    saved.deviation2 = keepFloats(static_cast<std::size_t>(rows));
    math.layerNorm(rows, hidden, stream, m_contract.bias.used, m_norm2.gamma.used, m_norm2.beta.used,
                   elementsIn(saved.normal2), saved.deviation2.data(), elementsIn(norm));
    saved.hidden = keep(4 * size);
    const bool whole = how != Forward::KeepWithoutOutput;
    Buffer activation;
    if (whole && math.expandsInOne()) activation = m_context.borrow(4 * size, part.microbatch);
    math.expand(rows, 4 * hidden, hidden, elementsIn(norm), m_expand.weight.used, m_expand.bias.used,
                elementsIn(saved.hidden), elementsIn(activation));
    norm.reset();
    if (!whole) return;
    if (!activation) {
        activation = m_context.borrow(4 * size, part.microbatch);
        math.activate(rows, 4 * hidden, elementsIn(saved.hidden), m_expand.bias.used, elementsIn(activation));
    }
    math.linearAdd(rows, hidden, 4 * hidden, elementsIn(activation), m_contract.weight.used, stream);
    if (!drop) return;
    Buffer keyValue = std::move(saved.keyValue);
    saved = Saved();
    saved.keyValue = std::move(keyValue);
}

Buffer Block::inputGrad(Saved& saved, const PartShape& part, Earlier earlier, Buffer outputGrad) const
{
    LayerMath& math = m_context.math;
    const int rows = part.rows();
    const int hidden = m_context.model.hidden;
    const std::size_t size = m_context.stream(part);
    const auto keep = [&](std::size_t elements) { return m_context.keep(elements, part.microbatch); };

    saved.outputGrad = std::move(outputGrad);
    saved.sums = m_context.keepFloats(Sums::size(static_cast<std::size_t>(hidden)), part.microbatch);
    const Sums sums(saved.sums.data(), static_cast<std::size_t>(hidden));

    // MLP. `hidden` turns from pre-activation into activation, which W needs.
    saved.hiddenGrad = keep(4 * size);
    math.geluInputGrad(rows, 4 * hidden, hidden, elementsIn(saved.outputGrad), m_contract.weight.used,
                       m_expand.bias.used, elementsIn(saved.hidden), elementsIn(saved.hiddenGrad), sums.expand);
    Buffer normGrad = m_context.borrow(size, part.microbatch);
    math.linearInputGrad(rows, 4 * hidden, hidden, 1.0F, elementsIn(saved.hiddenGrad), m_expand.weight.used,
                         elementsIn(normGrad));
    saved.middleGrad = keep(size);
    math.layerNormBackward(rows, hidden, elementsIn(normGrad), elementsIn(saved.normal2), saved.deviation2.data(),
                           m_norm2.gamma.used, elementsIn(saved.outputGrad), elementsIn(saved.middleGrad),
                           {sums.gamma2, sums.beta2, sums.contract, sums.project});
    saved.deviation2.reset();

    // Attention.
    Buffer attentionGrad = m_context.borrow(size, part.microbatch);
    math.linearInputGrad(rows, hidden, hidden, 1.0F, elementsIn(saved.middleGrad), m_project.weight.used,
                         elementsIn(attentionGrad));
    std::vector<KeyGradSegment> gradients;
    gradients.reserve(earlier.size() + 1);
    const auto addGradients = [&](Saved& slice, const PartShape& shape) {
        const bool empty = !slice.qkvGrad;
        if (empty) slice.qkvGrad = keep(3 * m_context.stream(shape));
        const auto width = static_cast<std::size_t>(hidden);
        gradients.push_back({math.at(elementsIn(slice.qkvGrad), width), math.at(elementsIn(slice.qkvGrad), 2 * width),
                             3 * hidden, empty});
    };
    for (const Pending<Saved>& slice : earlier) addGradients(*slice.saved, slice.shape);
    addGradients(saved, part);
    const AttentionShape attention{part.batch, part.tokens, hidden, m_context.model.heads, part.past};
    {
        Buffer workspace = m_context.borrowFloats(math.attentionWorkspace(attention), part.microbatch);
        math.attentionBackward(attention, elementsIn(saved.qkv), 3 * hidden,
                               segmentsOf(math, earlier, saved, part, hidden), saved.probabilities.data(),
                               elementsIn(saved.attention), elementsIn(attentionGrad), elementsIn(saved.qkvGrad),
                               gradients, workspace.data());
    }
    saved.qkv.reset();
    saved.probabilities.reset();
    attentionGrad.reset();
    math.linearInputGrad(rows, 3 * hidden, hidden, 1.0F, elementsIn(saved.qkvGrad), m_qkv.weight.used,
                         elementsIn(normGrad));
    Buffer inputGrad = keep(size);
    math.layerNormBackward(rows, hidden, elementsIn(normGrad), elementsIn(saved.normal1), saved.deviation1.data(),
                           m_norm1.gamma.used, elementsIn(saved.middleGrad), elementsIn(inputGrad),
                           {sums.gamma1, sums.beta1, nullptr, nullptr});
    saved.deviation1.reset();
    math.columnSums(rows, 3 * hidden, elementsIn(saved.qkvGrad), sums.qkv);
    return inputGrad;
}

namespace {

FactorSums* sumsOf(const Parameter& weight, int refresh) { return refresh == 0 ? weight.factors : weight.others; }

} // namespace

void Block::addFactors(FactorRows& rows, const PartShape& part, bool inputs, double meanRows, int refresh) const
{
    const auto linears = products();
    for (std::size_t i = 0; i < linears.size(); ++i) {
        const Buffer own = std::move((inputs ? rows.inputs : rows.gradients)[i]);
        FactorSums* sums = sumsOf(linears[i]->weight, refresh);
        if (sums == nullptr || !own) continue;
        if (inputs)
            sums->addInputs(m_context.math, part.rows(), elementsIn(own));
        else
            sums->addGradients(m_context.math, part.rows(), meanRows, elementsIn(own));
    }
}

void Block::addFactors(const Saved& saved, const PartShape& part, bool inputs, bool back, double meanRows,
                       int refresh) const
{
    LayerMath& math = m_context.math;
    const int rows = part.rows(), hidden = m_context.model.hidden;
    const std::size_t size = m_context.stream(part);
    if (!inputs) {
        const Buffer* const gradients[] = {&saved.outputGrad, &saved.hiddenGrad, &saved.middleGrad, &saved.qkvGrad};
        const auto linears = products();
        for (std::size_t i = 0; i < linears.size(); ++i)
            if (FactorSums* sums = sumsOf(linears[i]->weight, refresh))
                sums->addGradients(math, rows, meanRows, elementsIn(*gradients[i]));
        return;
    }
    if (FactorSums* sums = sumsOf(m_contract.weight, refresh)) {
        Buffer activation; // the input gradient turns the pre-activation into it
        if (!back) {
            activation = m_context.borrow(4 * size, part.microbatch);
            math.activate(rows, 4 * hidden, elementsIn(saved.hidden), m_expand.bias.used, elementsIn(activation));
        }
        sums->addInputs(math, rows, elementsIn(back ? saved.hidden : activation));
    }
    const auto addNormed = [&](const LinearParameters& linear, const Buffer& normal, const NormParameters& norm) {
        FactorSums* sums = sumsOf(linear.weight, refresh);
        if (sums == nullptr) return;
        const Buffer all = m_context.borrow(size, part.microbatch);
        math.scaleShift(rows, hidden, elementsIn(normal), norm.gamma.used, norm.beta.used, elementsIn(all));
        sums->addInputs(math, rows, elementsIn(all));
    };
    addNormed(m_expand, saved.normal2, m_norm2);
    if (FactorSums* sums = sumsOf(m_project.weight, refresh)) sums->addInputs(math, rows, elementsIn(saved.attention));
    addNormed(m_qkv, saved.normal1, m_norm1);
}

void Block::weightGrad(std::span<const Pending<Saved>> parts, double meanRows, FactorRows* keeps, bool inputs,
                       bool gradients) const
{
    LayerMath& math = m_context.math;
    const int hidden = m_context.model.hidden;
    const auto width = static_cast<std::size_t>(hidden);
    const RowStacker<Saved> stacker(m_context, parts);
    const int rows = stacker.rows();
    const auto learn = [&](const LinearParameters& linear, ConstElements outputGrad, ConstElements x) {
        const auto outputs = linear.weight.shape[0], inputs = linear.weight.shape[1];
        math.linearWeightGrad(rows, outputs, inputs, 1.0F, outputGrad, x, linear.weight.gradient.data());
        if (linear.weight.factors != nullptr && linear.weight.factors->wanted)
            linear.weight.factors->add(math, rows, meanRows, outputGrad, x);
    };
    const auto keep = [&](std::size_t product, Buffer outputGrad, Buffer x) {
        const auto stay = [&](Buffer& buffer, Buffer& in) {
            buffer.retag(m_context.tag(MemoryCategory::Activations, parts.front().shape.microbatch));
            in = std::move(buffer);
        };
        if (keeps != nullptr && inputs) stay(x, keeps->inputs[product]);
        if (keeps != nullptr && gradients) stay(outputGrad, keeps->gradients[product]);
    };

    {
        Buffer outputGrad = stacker.take(&Saved::outputGrad, hidden);
        Buffer activation = stacker.take(&Saved::hidden, 4 * hidden);
        learn(m_contract, elementsIn(outputGrad), elementsIn(activation));
        keep(0, std::move(outputGrad), std::move(activation));
    }
    {
        Buffer norm = stacker.norm(&Saved::normal2, m_norm2);
        Buffer hiddenGrad = stacker.take(&Saved::hiddenGrad, 4 * hidden);
        learn(m_expand, elementsIn(hiddenGrad), elementsIn(norm));
        keep(1, std::move(hiddenGrad), std::move(norm));
    }
    {
        Buffer middleGrad = stacker.take(&Saved::middleGrad, hidden);
        Buffer attention = stacker.take(&Saved::attention, hidden);
        learn(m_project, elementsIn(middleGrad), elementsIn(attention));
        keep(2, std::move(middleGrad), std::move(attention));
    }
    {
        Buffer norm = stacker.norm(&Saved::normal1, m_norm1);
        Buffer qkvGrad = stacker.take(&Saved::qkvGrad, 3 * hidden);
        learn(m_qkv, elementsIn(qkvGrad), elementsIn(norm));
        keep(3, std::move(qkvGrad), std::move(norm));
    }
    for (const Pending<Saved>& part : parts) {
        if (part.saved->sums) { // with the first half where a whole was cut afterwards
            const Sums sums(part.saved->sums.data(), width);
            const AddedFloats all[] = {{width, sums.gamma1, m_norm1.gamma.gradient.data()},
                                       {width, sums.beta1, m_norm1.beta.gradient.data()},
                                       {width, sums.gamma2, m_norm2.gamma.gradient.data()},
                                       {width, sums.beta2, m_norm2.beta.gradient.data()},
                                       {width, sums.contract, m_contract.bias.gradient.data()},
                                       {width, sums.project, m_project.bias.gradient.data()},
                                       {4 * width, sums.expand, m_expand.bias.gradient.data()},
                                       {3 * width, sums.qkv, m_qkv.bias.gradient.data()}};
            math.add(all);
        }
        *part.saved = Saved();
    }
}

} // namespace stagewright::layers
