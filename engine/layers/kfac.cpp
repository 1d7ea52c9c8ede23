#include "engine/layers/kfac.h"

#include <algorithm>
#include <cmath>

namespace stagewright::layers {

namespace {

std::size_t squareOf(int size) { return static_cast<std::size_t>(size) * static_cast<std::size_t>(size); }

double trace(std::span<const double> matrix, int size)
{
    double sum = 0;
    for (std::size_t i = 0; i < matrix.size(); i += static_cast<std::size_t>(size) + 1) sum += matrix[i];
    return sum;
}

void becomeIdentity(std::span<double> matrix, int size)
{
    std::fill(matrix.begin(), matrix.end(), 0.0);
    for (std::size_t i = 0; i < matrix.size(); i += static_cast<std::size_t>(size) + 1) matrix[i] = 1;
}

bool invertDamped(std::span<const double> factor, std::span<double> inverse, int size, double damping,
                  const DenseMath& math)
{
    std::copy(factor.begin(), factor.end(), inverse.begin());
    for (std::size_t i = 0; i < inverse.size(); i += static_cast<std::size_t>(size) + 1) inverse[i] += damping;
    return math.invert(size, inverse.data());
}

} // namespace

std::size_t KroneckerFactors::stateSize(int inputs, int outputs)
{
    return 2 * (squareOf(inputs + 1) + squareOf(outputs));
}

KroneckerFactors::KroneckerFactors(int inputs, int outputs, std::span<double> state)
    : m_width(inputs + 1), m_outputs(outputs)
{
    const std::size_t a = squareOf(m_width), g = squareOf(m_outputs);
    m_a = state.subspan(0, a);
    m_g = state.subspan(a, g);
    m_inverseA = state.subspan(a + g, a);
    m_inverseG = state.subspan(2 * a + g, g);
    for (const auto& one : {m_a, m_inverseA}) becomeIdentity(one, m_width);
    for (const auto& one : {m_g, m_inverseG}) becomeIdentity(one, m_outputs);
}

double KroneckerFactors::pi() const
{
    return std::sqrt((trace(m_a, m_width) / m_width) / (trace(m_g, m_outputs) / m_outputs));
}

void KroneckerFactors::average(std::span<const double> a, std::span<const double> g, double decay)
{
    for (std::size_t i = 0; i < m_a.size(); ++i) m_a[i] = decay * m_a[i] + (1 - decay) * a[i];
    for (std::size_t i = 0; i < m_g.size(); ++i) m_g[i] = decay * m_g[i] + (1 - decay) * g[i];
}

bool KroneckerFactors::invert(double damping, const DenseMath& math)
{
    return invertInputs(damping, math) && invertOutputs(damping, math);
}

bool KroneckerFactors::invertInputs(double damping, const DenseMath& math)
{
    return invertDamped(m_a, m_inverseA, m_width, std::sqrt(damping) * pi(), math);
}

bool KroneckerFactors::invertOutputs(double damping, const DenseMath& math)
{
    return invertDamped(m_g, m_inverseG, m_outputs, std::sqrt(damping) / pi(), math);
}

void KroneckerFactors::precondition(std::span<const double> gradient, std::span<double> update,
                                    std::span<double> scratch, const DenseMath& math) const
{
    math.times(m_outputs, m_width, m_outputs, m_inverseG.data(), gradient.data(), scratch.data());
    math.times(m_outputs, m_width, m_width, scratch.data(), m_inverseA.data(), update.data());
}

double clipOf(std::span<const double> gradient, std::span<const double> update, double rate, double clip)
{
    double sum = 0;
    for (std::size_t i = 0; i < update.size(); ++i) sum += rate * rate * update[i] * gradient[i];
    return sum == 0 || clip <= 0 ? 1.0 : std::min(1.0, std::sqrt(clip / std::abs(sum)));
}

FactorSums::FactorSums(int inputs, int outputs, int stage, Allocator& allocator) : m_inputs(inputs), m_outputs(outputs)
{
    const MemoryTag tag{MemoryCategory::Optimizer, static_cast<std::uint16_t>(stage), -1};
    m_a = allocator.take(squareOf(inputs), tag);
    m_x = allocator.take(static_cast<std::size_t>(inputs), tag);
    m_g = allocator.take(squareOf(outputs), tag);
    m_column = allocator.take(static_cast<std::size_t>(inputs), tag);
    clear();
}

void FactorSums::clear()
{
    for (Buffer* one : {&m_a, &m_x, &m_g}) std::fill(one->span().begin(), one->span().end(), 0.0F);
    m_rows = m_gradientRows = 0;
}

void FactorSums::add(LayerMath& math, int rows, double meanRows, ConstElements outputGrad, ConstElements x)
{
    addInputs(math, rows, x);
    addGradients(math, rows, meanRows, outputGrad);
}

void FactorSums::addInputs(LayerMath& math, int rows, ConstElements x)
{
    math.linearWeightGrad(rows, m_inputs, m_inputs, 1.0F, x, x, m_a.data());
    math.columnSums(rows, m_inputs, x, m_column.data());
    const AddedFloats sum[] = {{static_cast<std::size_t>(m_inputs), m_column.data(), m_x.data()}};
    math.add(sum);
    m_rows += rows;
}

void FactorSums::addGradients(LayerMath& math, int rows, double meanRows, ConstElements outputGrad)
{
    math.linearWeightGrad(rows, m_outputs, m_outputs, static_cast<float>(meanRows * meanRows), outputGrad, outputGrad,
                          m_g.data());
    m_gradientRows += rows;
}

void FactorSums::take(std::span<double> a, std::span<double> g)
{
    const auto inputs = static_cast<std::size_t>(m_inputs), width = inputs + 1;
    for (std::size_t i = 0; i < inputs; ++i) {
        // One half for both: the factors are symmetric to the last bit.
        for (std::size_t k = 0; k <= i; ++k)
            a[i * width + k] = a[k * width + i] = static_cast<double>(m_a.span()[i * inputs + k]) / m_rows;
        a[i * width + inputs] = a[inputs * width + i] = static_cast<double>(m_x.span()[i]) / m_rows;
    }
    a[width * width - 1] = 1;
    const auto outputs = static_cast<std::size_t>(m_outputs);
    for (std::size_t i = 0; i < outputs; ++i)
        for (std::size_t k = 0; k <= i; ++k)
            g[i * outputs + k] = g[k * outputs + i] = static_cast<double>(m_g.span()[i * outputs + k]) / m_gradientRows;
    clear();
}

} // namespace stagewright::layers
