#include "engine/layers/parameters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "schedules/base/hashing.h"

namespace stagewright::layers {

void fillNormal(std::uint64_t seed, std::string_view name, float deviation, std::span<float> out, std::size_t first)
{
    const std::uint64_t key = mixBits(hashText(name) ^ mixBits(seed));
    // The variance of one uniform integer in 0 … 65535 is (65536² − 1) / 12; eight of them are added.
    const double scale = static_cast<double>(deviation) / std::sqrt(8.0 * (65536.0 * 65536.0 - 1.0) / 12.0);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint64_t a = mixBits(key + 2 * (first + i));
        const std::uint64_t b = mixBits(key + 2 * (first + i) + 1);
        std::int64_t sum = 0;
        for (int shift = 0; shift < 64; shift += 16)
            sum += static_cast<std::int64_t>(a >> shift & 0xffff) + static_cast<std::int64_t>(b >> shift & 0xffff);
        // Eight means of 32767.5 make 262140.
        out[i] = static_cast<float>(static_cast<double>(sum - 262140) * scale);
    }
}

namespace {

float learningRate(const OptimizerConfig& config, int step)
{
    const double warm = config.warmupSteps > 0 ? std::min(1.0, static_cast<double>(step) / config.warmupSteps) : 1.0;
    return static_cast<float>(config.learningRate * warm);
}

AdamWStep adamWStep(const OptimizerConfig& config, int step, float gradientScale)
{
    AdamWStep adam{};
    adam.learningRate = learningRate(config, step);
    adam.beta1 = static_cast<float>(config.beta1);
    adam.beta2 = static_cast<float>(config.beta2);
    adam.correction1 = static_cast<float>(1.0 / (1.0 - std::pow(config.beta1, step)));
    adam.correction2 = static_cast<float>(1.0 / (1.0 - std::pow(config.beta2, step)));
    adam.epsilon = static_cast<float>(config.epsilon);
    adam.gradientScale = gradientScale;
    return adam;
}

bool isMatrix(const Parameter& parameter)
{
    return parameter.shape.size() > 1; // others have no weight decay
}

// Read by weight gradients, which run without the other weights.
bool isOfNorm(const Parameter& parameter)
{
    return parameter.name.ends_with(".gamma") || parameter.name.ends_with(".beta");
}

class MathOfState final : public StateMath {
public:
    explicit MathOfState(LayerMath& math) : m_math(math) {}
    int elementBytes() const override { return m_math.elementBytes(); }
    void add(std::size_t count, const float* x, float* sum) override
    {
        const AddedFloats one[] = {{count, x, sum}};
        m_math.add(one);
    }
    void scale(std::size_t count, float factor, float* x) override { m_math.scale(count, factor, x); }
    void toElements(std::size_t count, const float* values, void* elements) const override
    {
        m_math.toElements(count, values, Elements{elements});
    }

private:
    LayerMath& m_math;
};

int momentsOf(const OptimizerConfig& optimizer)
{
    return optimizer.kind == OptimizerKind::AdamW ? 2 : optimizer.momentum != 0 ? 1 : 0;
}

} // namespace

ParameterSet::ParameterSet(int stage, std::uint64_t seed, const OptimizerConfig& optimizer, Allocator& allocator,
                           LayerMath& math, const StageShare* share)
    : m_stage(stage), m_seed(seed), m_optimizer(optimizer), m_allocator(allocator), m_math(math)
{
    if (share == nullptr) return;
    m_stateMath = std::make_unique<MathOfState>(math);
    m_shared = std::make_unique<SharedState>(*share, stage, momentsOf(optimizer), allocator, *m_stateMath);
}

// fill() takes what this rank has of the tensor, part by part.
void ParameterSet::addShared(Parameter& parameter,
                             const std::function<void(std::span<float> part, std::size_t first)>& fill)
{
    const std::int64_t begin = parameter.offset;
    const std::int64_t end = begin + parameter.count;
    std::vector<float> values;
    const auto start = [&](std::int64_t from, std::int64_t to) {
        values.resize(static_cast<std::size_t>(to - from));
        fill(values, static_cast<std::size_t>(from - begin));
        m_shared->start(from, values);
    };
    if (m_shared->shards(ShardLevel::Weights)) {
        for (const SharedState::Own& own : m_shared->own())
            if (std::max(begin, own.begin) < std::min(end, own.end))
                start(std::max(begin, own.begin), std::min(end, own.end));
        return;
    }
    showWeights(parameter);
    if (!m_shared->shards(ShardLevel::Gradients)) parameter.gradient = m_shared->gradientsWindow(begin, end);
    start(begin, end);
}

void ParameterSet::showWeights(Parameter& parameter)
{
    parameter.value = m_shared->valuesWindow(parameter.offset, parameter.offset + parameter.count);
    parameter.used = {m_shared->weights(parameter.offset)};
}

void ParameterSet::gatherWeights()
{
    m_shared->takeWeights();
    std::size_t at = 0;
    for (Parameter& p : m_parameters) {
        showWeights(p);
        if (!m_keptNorms || !isOfNorm(p)) continue;
        const auto count = static_cast<std::size_t>(p.count);
        // A weight gradient may read them before the others' pieces come.
        m_allocator.memory().copy(m_shared->weights(p.offset), m_math.at(elementsIn(m_keptNorms), at),
                                  count * static_cast<std::size_t>(m_math.elementBytes()));
        at += count;
    }
    if (m_keptNorms) m_shared->refreshOwn(); // which may have been stepped since
}

void ParameterSet::releaseWeights()
{
    if (!m_shared->shards(ShardLevel::Weights)) return;
    std::size_t kept = 0;
    for (const Parameter& p : m_parameters)
        if (isOfNorm(p)) kept += static_cast<std::size_t>(p.count);
    if (!m_keptNorms)
        m_keptNorms =
            m_allocator.take(m_math.words(kept), {MemoryCategory::Gathered, static_cast<std::uint16_t>(m_stage), -1});
    std::size_t at = 0;
    for (Parameter& p : m_parameters) {
        p.used = {};
        if (isOfNorm(p)) {
            const auto count = static_cast<std::size_t>(p.count);
            const Elements to = m_math.at(elementsIn(m_keptNorms), at);
            m_allocator.memory().copy(to, m_shared->weights(p.offset),
                                      count * static_cast<std::size_t>(m_math.elementBytes()));
            p.used = to;
            at += count;
        }
        p.value.reset();
    }
    m_shared->releaseWeights();
}

void ParameterSet::needGradients()
{
    if (!m_shared || m_shared->gradients() != nullptr) return;
    m_shared->takeGradients();
    for (Parameter& p : m_parameters) p.gradient = m_shared->gradientsWindow(p.offset, p.offset + p.count);
}

Parameter& ParameterSet::add(std::string name, std::vector<int> shape)
{
    std::size_t count = 1;
    for (int extent : shape) count *= static_cast<std::size_t>(extent);
    const auto take = [&](MemoryCategory category) {
        Buffer buffer = m_allocator.take(count, {category, static_cast<std::uint16_t>(m_stage), -1});
        m_allocator.memory().clear(buffer.data(), buffer.size() * sizeof(float));
        return buffer;
    };
    Parameter parameter;
    parameter.name = std::move(name);
    parameter.shape = std::move(shape);
    parameter.count = static_cast<std::int64_t>(count);
    parameter.offset = m_parameters.empty() ? 0 : m_parameters.back().offset + m_parameters.back().count;
    if (m_shared) return m_parameters.emplace_back(std::move(parameter));
    parameter.value = take(MemoryCategory::Weights);
    parameter.gradient = take(MemoryCategory::Gradients);
    const bool adam = m_optimizer.kind == OptimizerKind::AdamW;
    if (adam || m_optimizer.momentum != 0) parameter.moment1 = take(MemoryCategory::Optimizer);
    if (adam) parameter.moment2 = take(MemoryCategory::Optimizer);
    if (m_math.elementBytes() != sizeof(float)) {
        parameter.elements =
            m_allocator.take(m_math.words(count), {MemoryCategory::Weights, static_cast<std::uint16_t>(m_stage), -1});
    }
    parameter.used = elementsIn(current(parameter));
    return m_parameters.emplace_back(std::move(parameter));
}

Parameter& ParameterSet::addNormal(std::string name, std::vector<int> shape, float deviation)
{
    Parameter& parameter = add(std::move(name), std::move(shape));
    if (m_shared) {
        addShared(parameter, [&](std::span<float> part, std::size_t first) {
            fillNormal(m_seed, parameter.name, deviation, part, first);
        });
        return parameter;
    }
    if (m_allocator.memory().isHost()) {
        fillNormal(m_seed, parameter.name, deviation, parameter.value.span());
        updateElements(parameter);
    } else {
        std::vector<float> values(parameter.value.size());
        fillNormal(m_seed, parameter.name, deviation, values);
        start(parameter, values);
    }
    return parameter;
}

Parameter& ParameterSet::addConstant(std::string name, std::vector<int> shape, float value)
{
    Parameter& parameter = add(std::move(name), std::move(shape));
    if (m_shared) {
        addShared(parameter, [&](std::span<float> part, std::size_t) { std::fill(part.begin(), part.end(), value); });
        return parameter;
    }
    start(parameter, std::vector<float>(parameter.value.size(), value));
    return parameter;
}

void ParameterSet::start(Parameter& parameter, std::span<const float> values)
{
    m_allocator.memory().upload(parameter.value.data(), values.data(), values.size_bytes());
    updateElements(parameter);
}

void ParameterSet::updateElements(Parameter& parameter)
{
    if (parameter.elements)
        m_math.toElements(parameter.value.size(), parameter.value.data(), elementsIn(parameter.elements));
}

void ParameterSet::zeroGradients()
{
    if (m_shared) {
        m_shared->zeroGradients();
        return;
    }
    for (Parameter& parameter : m_parameters)
        m_allocator.memory().clear(parameter.gradient.data(), parameter.gradient.size() * sizeof(float));
}

double ParameterSet::gradientSquareSum() const
{
    std::vector<std::span<const float>> gradients;
    if (m_shared) {
        for (const SharedState::Own& own : m_shared->own())
            gradients.emplace_back(m_shared->sums(own), static_cast<std::size_t>(own.end - own.begin));
        return m_math.squareSum(gradients);
    }
    for (const Parameter& parameter : m_parameters) gradients.push_back(parameter.gradient.span());
    return m_math.squareSum(gradients);
}

void ParameterSet::checkOptimizer(const OptimizerConfig& config) const
{
    if (config.kind != m_optimizer.kind || (config.momentum != 0) != (m_optimizer.momentum != 0))
        throw std::invalid_argument("optimizer step: the stage was made for another optimizer");
}

template <typename Visit>
void ParameterSet::eachOwned(const Range& range, Visit&& visit) const
{
    if (!m_shared) return;
    for (const SharedState::Own& own : m_shared->stepped())
        for (const Parameter& p : m_parameters) {
            const std::int64_t from = std::max({p.offset, own.begin, range.begin});
            const std::int64_t to = std::min({p.offset + p.count, own.end, range.end});
            if (from < to) visit(p, own, from, to);
        }
}

template <typename Step>
void ParameterSet::onOwned(bool decays, const Range& range, Step&& step)
{
    eachOwned(range, [&](const Parameter& p, const SharedState::Own& own, std::int64_t from, std::int64_t to) {
        if (isMatrix(p) != decays) return;
        const std::int64_t inside = from - own.begin;
        const auto moment = [&](int number) {
            return m_shared->moment(number) != nullptr ? m_shared->moment(number) + own.offset + inside : nullptr;
        };
        auto* elements = static_cast<char*>(m_shared->elementsFor(own));
        if (elements != nullptr) elements += inside * m_math.elementBytes();
        step(TensorStep{static_cast<std::size_t>(to - from),
                        m_shared->stepsOn(own) + inside,
                        m_shared->sums(own) + inside,
                        moment(0),
                        moment(1),
                        {elements}});
    });
}

template <typename Adam, typename Sgd>
void ParameterSet::onTensors(const OptimizerConfig& config, int step, float gradientScale, const Range& range,
                             Adam&& adam, Sgd&& sgd)
{
    checkOptimizer(config);
    AdamWStep one = adamWStep(config, step, gradientScale);
    for (const bool decays : {true, false}) {
        std::vector<TensorStep> tensors;
        onOwned(decays, range, [&tensors](const TensorStep& part) { tensors.push_back(part); });
        for (Parameter& p : m_parameters)
            if (isMatrix(p) == decays && !m_shared)
                tensors.push_back({p.value.size(), p.value.data(), p.gradient.data(), p.moment1.data(),
                                   p.moment2.data(), elementsIn(p.elements)});
        one.weightDecay = decays ? static_cast<float>(config.weightDecay) : 0.0F;
        if (config.kind == OptimizerKind::AdamW)
            adam(tensors, one);
        else
            sgd(tensors,
                SgdStep{one.learningRate, static_cast<float>(config.momentum), one.weightDecay, gradientScale});
    }
}

double ParameterSet::gradientSquareSumOn(std::int64_t begin, std::int64_t end) const
{
    std::vector<std::span<const float>> gradients;
    for (const SharedState::Own& own : m_shared->stepped()) {
        const std::int64_t from = std::max(begin, own.begin);
        const std::int64_t to = std::min(end, own.end);
        if (from < to)
            gradients.emplace_back(m_shared->sums(own) + (from - own.begin), static_cast<std::size_t>(to - from));
    }
    return m_math.squareSum(gradients);
}

void ParameterSet::stepOn(const OptimizerConfig& config, int step, float gradientScale, std::int64_t begin,
                          std::int64_t end)
{
    stepIn(config, step, gradientScale, {begin, end});
}

void ParameterSet::step(const OptimizerConfig& config, int step, float gradientScale)
{
    if (config.kind == OptimizerKind::Kfac)
        stepByFactors(config, step, gradientScale);
    else
        stepIn(config, step, gradientScale, {});
    if (m_shared) m_shared->refreshOwn();
}

void ParameterSet::stepIn(const OptimizerConfig& config, int step, float gradientScale, const Range& range)
{
    onTensors(
        config, step, gradientScale, range,
        [this](const auto& tensors, const AdamWStep& adam) { m_math.adamW(tensors, adam); },
        [this](const auto& tensors, const SgdStep& sgd) { m_math.sgd(tensors, sgd); });
}

void ParameterSet::undoStep(const OptimizerConfig& config, int step, float gradientScale)
{
    onTensors(
        config, step, gradientScale, {},
        [this](const auto& tensors, const AdamWStep& adam) { m_math.undoAdamW(tensors, adam); },
        [this](const auto& tensors, const SgdStep& sgd) { m_math.undoSgd(tensors, sgd); });
    if (step > 1) return;
    // Before the first step there was nothing: no trace of rounding is left.
    for (Parameter& p : m_parameters)
        for (const Buffer* moment : {&p.moment1, &p.moment2})
            if (*moment) m_allocator.memory().clear(moment->data(), moment->size() * sizeof(float));
}

void ParameterSet::addProduct(Parameter& weight, Parameter& bias)
{
    if (m_optimizer.kind != OptimizerKind::Kfac || tensorOf(weight).count == 0 || tensorOf(bias).count == 0) return;
    const int outputs = weight.shape[0], inputs = weight.shape[1];
    const std::size_t doubles = KroneckerFactors::stateSize(inputs, outputs);
    Buffer state = m_allocator.take(2 * doubles, {MemoryCategory::Optimizer, static_cast<std::uint16_t>(m_stage), -1});
    const KroneckerFactors factors(inputs, outputs, {reinterpret_cast<double*>(state.data()), doubles});
    Product& added = m_products.emplace_back(
        Product{weight, bias, std::move(state), factors, FactorSums(inputs, outputs, m_stage, m_allocator)});
    weight.factors = &added.sums;
}

TensorStep ParameterSet::tensorOf(const Parameter& p) const
{
    if (!m_shared)
        return {static_cast<std::size_t>(p.count),
                p.value.data(),
                p.gradient.data(),
                p.moment1.data(),
                p.moment2.data(),
                elementsIn(p.elements)};
    for (const SharedState::Own& own : m_shared->stepped()) {
        if (own.begin > p.offset || own.end < p.offset + p.count) continue;
        const std::int64_t inside = p.offset - own.begin;
        float* moment = m_shared->moment(0);
        auto* elements = static_cast<char*>(m_shared->elementsFor(own));
        if (elements != nullptr) elements += inside * m_math.elementBytes();
        return {static_cast<std::size_t>(p.count),
                m_shared->stepsOn(own) + inside,
                m_shared->sums(own) + inside,
                moment != nullptr ? moment + own.offset + inside : nullptr,
                nullptr,
                {elements}};
    }
    return {};
}

namespace {

std::span<double> doublesIn(const Buffer& buffer)
{
    return {reinterpret_cast<double*>(buffer.data()), buffer.size() / 2};
}

std::runtime_error notInvertible(const Parameter& weight)
{
    return std::runtime_error(weight.name + ": its factors can't be inverted: their numbers are not finite; lower the "
                                            "learning rate");
}

} // namespace

void ParameterSet::factorsInOps(int pieces)
{
    m_pieces = pieces;
    for (Product& product : m_products) {
        product.sums.wanted = false;
        product.others.emplace(product.sums.inputs(), product.factors.outputs(), m_stage, m_allocator);
        product.weight.others = &*product.others;
    }
}

void ParameterSet::average(Product& product, FactorSums& sums)
{
    const auto square = [this](int size) {
        return m_allocator.take(2 * static_cast<std::size_t>(size) * static_cast<std::size_t>(size),
                                workspaceTag(m_stage));
    };
    const Buffer a = square(product.factors.width()), g = square(product.factors.outputs());
    sums.take(doublesIn(a), doublesIn(g));
    product.factors.average(doublesIn(a), doublesIn(g), m_optimizer.factorDecay);
    product.known = true;
}

void ParameterSet::invertFactors(int piece, int refresh)
{
    const DenseMath* math = m_math.dense();
    if (math == nullptr) throw std::invalid_argument("K-FAC needs LAPACK, which OpenBLAS has, and floats on the host");
    for (Product& product : m_products)
        if (FactorSums& sums = refresh == 0 ? product.sums : *product.others; !sums.empty()) average(product, sums);
    const int count = static_cast<int>(m_products.size()), ofInputs = (m_pieces + 1) / 2;
    for (int i = 0; i < count; ++i) {
        Product& product = m_products[static_cast<std::size_t>(i)];
        if (!product.known) continue;
        const bool inputs = i * ofInputs / count == piece;
        const bool outputs = m_pieces == 1 || ofInputs + i * (m_pieces - ofInputs) / count == piece;
        if ((inputs && !product.factors.invertInputs(m_optimizer.damping, *math)) ||
            (outputs && !product.factors.invertOutputs(m_optimizer.damping, *math)))
            throw notInvertible(product.weight);
    }
}

// Sgd, whose gradients of products are preconditioned first.
void ParameterSet::stepByFactors(const OptimizerConfig& config, int step, float gradientScale)
{
    checkOptimizer(config);
    const DenseMath* math = m_math.dense();
    if (math == nullptr) throw std::invalid_argument("K-FAC needs LAPACK, which OpenBLAS has, and floats on the host");
    const float rate = learningRate(config, step);
    std::vector<TensorStep> preconditioned[2], others[2]; // with weight decay, and without
    std::vector<Buffer> updates;
    const auto borrow = [this](std::size_t doubles) { return m_allocator.take(2 * doubles, workspaceTag(m_stage)); };
    for (Product& product : m_products) {
        const auto width = static_cast<std::size_t>(product.factors.width());
        const auto outputs = static_cast<std::size_t>(product.factors.outputs());
        if (m_pieces == 0 && !product.sums.empty()) {
            average(product, product.sums);
            if (!product.factors.invert(config.damping, *math)) throw notInvertible(product.weight);
        }
        product.sums.wanted = m_pieces == 0 && step % std::max(1, config.refresh) == 0;
        TensorStep weight = tensorOf(product.weight), bias = tensorOf(product.bias);
        const Buffer gradient = borrow(outputs * width), update = borrow(outputs * width),
                     scratch = borrow(outputs * width);
        const std::span<double> from = doublesIn(gradient), to = doublesIn(update);
        for (std::size_t i = 0; i < outputs; ++i) {
            for (std::size_t k = 0; k + 1 < width; ++k)
                from[i * width + k] = static_cast<double>(weight.gradient[i * (width - 1) + k] * gradientScale);
            from[(i + 1) * width - 1] = static_cast<double>(bias.gradient[i] * gradientScale);
        }
        product.factors.precondition(from, to, doublesIn(scratch), *math);
        const double clip = clipOf(from, to, static_cast<double>(rate), config.klClip);
        const Buffer& steps = updates.emplace_back(m_allocator.take(weight.count + bias.count, workspaceTag(m_stage)));
        float* out = steps.data();
        for (std::size_t i = 0; i < outputs; ++i) {
            for (std::size_t k = 0; k + 1 < width; ++k)
                out[i * (width - 1) + k] = static_cast<float>(clip * to[i * width + k]);
            out[weight.count + i] = static_cast<float>(clip * to[(i + 1) * width - 1]);
        }
        weight.gradient = out;
        bias.gradient = out + weight.count;
        preconditioned[0].push_back(weight);
        preconditioned[1].push_back(bias);
    }
    const auto isOfProduct = [this](const Parameter& p) {
        return std::any_of(m_products.begin(), m_products.end(),
                           [&p](const Product& product) { return &product.weight == &p || &product.bias == &p; });
    };
    for (const Parameter& p : m_parameters)
        if (const TensorStep own = tensorOf(p); own.count > 0 && !isOfProduct(p))
            others[isMatrix(p) ? 0 : 1].push_back(own);
    for (const int decays : {0, 1}) {
        SgdStep sgd{rate, static_cast<float>(config.momentum),
                    decays == 0 ? static_cast<float>(config.weightDecay) : 0.0F, 1.0F};
        m_math.sgd(preconditioned[decays], sgd);
        sgd.gradientScale = gradientScale;
        m_math.sgd(others[decays], sgd);
    }
}

ParameterSet::Version& ParameterSet::version(int number)
{
    if (number < 0)
        throw std::invalid_argument("weight version " + std::to_string(number) + ": versions are numbered from 0");
    Version& stored = m_versions[number];
    stored.reserve(m_parameters.size());
    for (std::size_t i = stored.size(); i < m_parameters.size(); ++i)
        stored.push_back(m_allocator.take(current(m_parameters[i]).size(),
                                          {MemoryCategory::Weights, static_cast<std::uint16_t>(m_stage), -1}));
    return stored;
}

ParameterSet::Version& ParameterSet::storedVersion(int number, const char* what)
{
    const auto found = m_versions.find(number);
    if (found == m_versions.end())
        throw std::logic_error("stage " + std::to_string(m_stage) + ": weight version " + std::to_string(number) +
                               " is to be " + what + ", but it is not kept");
    return found->second;
}

void ParameterSet::keepVersion(int number)
{
    Version& stored = version(number);
    for (std::size_t i = 0; i < stored.size(); ++i)
        m_allocator.memory().copy(stored[i].data(), current(m_parameters[i]).data(), stored[i].size() * sizeof(float));
}

void ParameterSet::useVersion(int number)
{
    const Version* stored = number < 0 ? nullptr : &storedVersion(number, "used");
    for (std::size_t i = 0; i < m_parameters.size(); ++i)
        m_parameters[i].used = elementsIn(stored ? (*stored)[i] : current(m_parameters[i]));
    m_used = number;
}

void ParameterSet::dropVersion(int number)
{
    storedVersion(number, "dropped");
    if (number == m_used)
        throw std::logic_error("stage " + std::to_string(m_stage) + ": weight version " + std::to_string(number) +
                               " is to be dropped, but it is in use");
    m_versions.erase(number);
}

void ParameterSet::keepPredicted(int number, const OptimizerConfig& config, int step, double updates)
{
    checkOptimizer(config);
    const bool bare = config.kind == OptimizerKind::Sgd && config.momentum == 0;
    if (bare && !m_parameters.empty() && !m_parameters.front().moment1) {
        if (step > 0)
            throw std::logic_error("stage " + std::to_string(m_stage) + ": step " + std::to_string(step) +
                                   " left no direction to predict from; predict before the first step already");
        for (Parameter& p : m_parameters) {
            p.moment1 =
                m_allocator.take(p.value.size(), {MemoryCategory::Optimizer, static_cast<std::uint16_t>(m_stage), -1});
            m_allocator.memory().clear(p.moment1.data(), p.moment1.size() * sizeof(float));
        }
    }
    Version& stored = version(number);
    const AdamWStep adam = adamWStep(config, std::max(step, 1), 1.0F);
    const double reach = step > 0 ? static_cast<double>(adam.learningRate) * updates : 0.0;
    for (std::size_t i = 0; i < stored.size(); ++i) {
        const Parameter& p = m_parameters[i];
        if (reach == 0)
            m_allocator.memory().copy(stored[i].data(), current(p).data(), stored[i].size() * sizeof(float));
        else
            m_math.predict(p.value.size(), p.value.data(), p.moment1.data(), p.moment2.data(),
                           static_cast<float>(reach), adam, elementsIn(stored[i]));
    }
}

std::vector<ParameterView> ParameterSet::views()
{
    Memory& memory = m_allocator.memory();
    std::vector<ParameterView> views;
    views.reserve(m_parameters.size());
    if (!memory.isHost()) m_mirrors.resize(m_parameters.size());
    for (std::size_t i = 0; i < m_parameters.size(); ++i) {
        Parameter& p = m_parameters[i];
        const std::span<float> gradient =
            m_shared && m_shared->gradients() == nullptr ? std::span<float>() : p.gradient.span();
        if (memory.isHost()) {
            views.push_back({p.name, p.shape, p.value.span(), gradient});
            continue;
        }
        Mirror& mirror = m_mirrors[i];
        mirror.value.resize(p.value.size());
        mirror.gradient.resize(gradient.size());
        if (p.value) memory.download(mirror.value.data(), p.value.data(), p.value.size() * sizeof(float));
        if (!gradient.empty()) memory.download(mirror.gradient.data(), gradient.data(), gradient.size_bytes());
        views.push_back({p.name, p.shape, mirror.value, mirror.gradient});
    }
    return views;
}

void ParameterSet::written()
{
    if (m_allocator.memory().isHost()) {
        for (Parameter& parameter : m_parameters) updateElements(parameter);
        return;
    }
    for (std::size_t i = 0; i < m_mirrors.size(); ++i) {
        Parameter& p = m_parameters[i];
        m_allocator.memory().upload(p.gradient.data(), m_mirrors[i].gradient.data(), p.gradient.size() * sizeof(float));
        start(p, m_mirrors[i].value);
    }
}

void ParameterSet::saveState(int delayed, const StateSink& sink) const
{
    Memory& memory = m_allocator.memory();
    std::vector<float> numbers; // of a device, or wider than they are kept
    const auto give = [&](const Parameter& p, StateKind kind, std::int64_t first, const float* from,
                          std::int64_t count) {
        if (from == nullptr) return;
        std::span<const float> there(from, static_cast<std::size_t>(count));
        if (!memory.isHost()) {
            numbers.resize(there.size());
            memory.download(numbers.data(), from, there.size_bytes());
            there = numbers;
        }
        sink({p.name, p.shape, kind, first}, there);
    };
    constexpr StateKind moments[] = {StateKind::Moment1, StateKind::Moment2};
    eachOwned({}, [&](const Parameter& p, const SharedState::Own& own, std::int64_t from, std::int64_t to) {
        const std::int64_t inside = from - own.begin;
        give(p, StateKind::Value, from - p.offset, m_shared->stepsOn(own) + inside, to - from);
        for (int i = 0; i < 2; ++i)
            if (const float* moment = m_shared->moment(i))
                give(p, moments[i], from - p.offset, moment + own.offset + inside, to - from);
    });
    for (std::size_t i = 0; i < m_parameters.size() && !m_shared; ++i) {
        const Parameter& p = m_parameters[i];
        give(p, StateKind::Value, 0, p.value.data(), p.count);
        give(p, moments[0], 0, p.moment1.data(), p.count);
        give(p, moments[1], 0, p.moment2.data(), p.count);
        if (delayed < 0) continue;
        const Buffer& kept = m_versions.at(delayed)[i];
        if (m_math.elementBytes() == sizeof(float)) {
            give(p, StateKind::Delayed, 0, kept.data(), p.count);
            continue;
        }
        std::vector<std::uint16_t> elements(2 * kept.size()); // the upper halves of floats
        memory.download(elements.data(), kept.data(), kept.size() * sizeof(float));
        numbers.resize(static_cast<std::size_t>(p.count));
        for (std::size_t k = 0; k < numbers.size(); ++k)
            numbers[k] = std::bit_cast<float>(static_cast<std::uint32_t>(elements[k]) << 16U);
        sink({p.name, p.shape, StateKind::Delayed, 0}, numbers);
    }
}

void ParameterSet::loadState(int delayed, const StateSource& source)
{
    Memory& memory = m_allocator.memory();
    std::vector<float> numbers;
    const auto missing = [](const Parameter& p, const char* what) {
        return std::runtime_error("parameter " + p.name + ": " + what + " was not saved");
    };
    const auto read = [&](const Parameter& p, StateKind kind, std::int64_t first, std::int64_t count) {
        numbers.resize(static_cast<std::size_t>(count));
        return source({p.name, p.shape, kind, first}, numbers);
    };
    constexpr StateKind moments[] = {StateKind::Moment1, StateKind::Moment2};
    if (m_shared) {
        for (Parameter& p : m_parameters)
            addShared(p, [&](std::span<float> part, std::size_t first) {
                if (!source({p.name, p.shape, StateKind::Value, static_cast<std::int64_t>(first)}, part))
                    throw missing(p, "its value");
            });
        eachOwned({}, [&](const Parameter& p, const SharedState::Own& own, std::int64_t from, std::int64_t to) {
            for (int i = 0; i < 2; ++i) {
                float* moment = m_shared->moment(i);
                if (moment == nullptr) continue;
                if (!read(p, moments[i], from - p.offset, to - from)) throw missing(p, "its optimizer state");
                memory.upload(moment + own.offset + (from - own.begin), numbers.data(), numbers.size() * sizeof(float));
            }
        });
        return;
    }
    if (delayed >= 0) keepVersion(delayed);
    for (std::size_t i = 0; i < m_parameters.size(); ++i) {
        Parameter& p = m_parameters[i];
        if (!read(p, StateKind::Value, 0, p.count)) throw missing(p, "its value");
        start(p, numbers);
        for (int k = 0; k < 2; ++k) {
            Buffer& moment = k == 0 ? p.moment1 : p.moment2;
            if (!read(p, moments[k], 0, p.count)) {
                if (moment) throw missing(p, "its optimizer state");
                continue;
            }
            if (!moment) // the direction of plain Sgd, which keepPredicted() takes at the first step
                moment = m_allocator.take(p.value.size(),
                                          {MemoryCategory::Optimizer, static_cast<std::uint16_t>(m_stage), -1});
            memory.upload(moment.data(), numbers.data(), numbers.size() * sizeof(float));
        }
        if (delayed < 0) continue;
        if (!read(p, StateKind::Delayed, 0, p.count)) throw missing(p, "its version of before the last update");
        Buffer& kept = m_versions.at(delayed)[i];
        if (m_math.elementBytes() == sizeof(float)) {
            memory.upload(kept.data(), numbers.data(), numbers.size() * sizeof(float));
            continue;
        }
        const Buffer staged = m_allocator.take(numbers.size(), workspaceTag(m_stage));
        memory.upload(staged.data(), numbers.data(), numbers.size() * sizeof(float));
        m_math.toElements(numbers.size(), staged.data(), elementsIn(kept));
    }
}

std::size_t ParameterSet::gradientCount() const
{
    std::size_t count = 0;
    for (const Parameter& parameter : m_parameters) count += parameter.gradient.size();
    return count;
}

void ParameterSet::packGradients(float* to) const
{
    for (const Parameter& p : m_parameters) {
        m_allocator.memory().copy(to, p.gradient.data(), p.gradient.size() * sizeof(float));
        to += p.gradient.size();
    }
}

void ParameterSet::sumGradients(std::span<const float* const> copies)
{
    for (std::size_t i = 0; i < copies.size(); ++i) {
        std::vector<AddedFloats> sums;
        std::size_t at = 0;
        for (Parameter& p : m_parameters) {
            if (i == 0)
                m_allocator.memory().copy(p.gradient.data(), copies[i] + at, p.gradient.size() * sizeof(float));
            else
                sums.push_back({p.gradient.size(), copies[i] + at, p.gradient.data()});
            at += p.gradient.size();
        }
        m_math.add(sums);
    }
}

} // namespace stagewright::layers
