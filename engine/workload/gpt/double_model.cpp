#include "engine/workload/gpt/double_model.h"

#include <cmath>

namespace stagewright {

namespace {

void moments(const double* x, std::size_t width, double& mean, double& inverse)
{
    mean = 0;
    double square = 0;
    for (std::size_t i = 0; i < width; ++i) mean += x[i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) square += (x[i] - mean) * (x[i] - mean) / static_cast<double>(width);
    inverse = 1 / std::sqrt(square + 1e-5);
}

constexpr double curve = 0.7978845608028654; // √(2/π), of the tanh form
double gelu(double x) { return 0.5 * x * (1 + std::tanh(curve * (x + 0.044715 * x * x * x))); }
double geluSlope(double x)
{
    const double t = std::tanh(curve * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * curve * (1 + 3 * 0.044715 * x * x);
}

std::string nameOf(int layer, const char* part) { return "layer" + std::to_string(layer) + part; }

} // namespace

double DoubleModel::run(const std::vector<std::uint8_t>& tokens, const std::vector<std::uint8_t>& targets)
{
    gradients.clear();
    for (const auto& [name, values] : parameters) gradients[name].assign(values.size(), 0.0);
    const std::size_t rows = static_cast<std::size_t>(batch) * static_cast<std::size_t>(sequence);
    const auto width = static_cast<std::size_t>(hidden);
    Values stream(rows * width);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < width; ++i)
            stream[row * width + i] =
                parameters.at("embedding.token")[tokens[row] * width + i] +
                parameters.at("embedding.position")[row % static_cast<std::size_t>(sequence) * width + i];
    std::vector<Kept> kept(static_cast<std::size_t>(layers));
    for (int layer = 0; layer < layers; ++layer) forward(layer, kept[static_cast<std::size_t>(layer)], stream);
    // Head: norm, logits, softmax, loss; and straight back.
    const Values normed = norm("head.norm", stream);
    const Values logits = linear("head.weight", "", normed, rows, width, static_cast<std::size_t>(vocabulary));
    Values logitsGrad(logits.size());
    double loss = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        const double* own = &logits[row * static_cast<std::size_t>(vocabulary)];
        double sum = 0;
        for (int v = 0; v < vocabulary; ++v) sum += std::exp(own[v]);
        loss += (std::log(sum) - own[targets[row]]) / static_cast<double>(rows);
        for (int v = 0; v < vocabulary; ++v)
            logitsGrad[row * static_cast<std::size_t>(vocabulary) + static_cast<std::size_t>(v)] =
                (std::exp(own[v]) / sum - (v == targets[row] ? 1 : 0)) / static_cast<double>(rows);
    }
    Values grad = linearBack("head.weight", "", normed, logitsGrad, rows, width, static_cast<std::size_t>(vocabulary));
    grad = normBack("head.norm", stream, grad);
    for (int layer = layers; layer-- > 0;) backward(layer, kept[static_cast<std::size_t>(layer)], grad);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t i = 0; i < width; ++i) {
            gradients["embedding.token"][tokens[row] * width + i] += grad[row * width + i];
            gradients["embedding.position"][row % static_cast<std::size_t>(sequence) * width + i] +=
                grad[row * width + i];
        }
    return loss;
}

DoubleModel::Values DoubleModel::linear(const std::string& weight, const std::string& bias, const Values& in,
                                        std::size_t rows, std::size_t inputs, std::size_t outputs) const
{
    const Values& w = parameters.at(weight);
    Values out(rows * outputs);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t o = 0; o < outputs; ++o) {
            double sum = bias.empty() ? 0 : parameters.at(bias)[o];
            for (std::size_t i = 0; i < inputs; ++i) sum += w[o * inputs + i] * in[row * inputs + i];
            out[row * outputs + o] = sum;
        }
    return out;
}
DoubleModel::Values DoubleModel::linearBack(const std::string& weight, const std::string& bias, const Values& in,
                                            const Values& outGrad, std::size_t rows, std::size_t inputs,
                                            std::size_t outputs)
{
    const Values& w = parameters.at(weight);
    Values& wGrad = gradients[weight];
    Values inGrad(rows * inputs);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t o = 0; o < outputs; ++o) {
            const double g = outGrad[row * outputs + o];
            if (!bias.empty()) gradients[bias][o] += g;
            for (std::size_t i = 0; i < inputs; ++i) {
                wGrad[o * inputs + i] += g * in[row * inputs + i];
                inGrad[row * inputs + i] += g * w[o * inputs + i];
            }
        }
    return inGrad;
}

DoubleModel::Values DoubleModel::norm(const std::string& name, const Values& in) const
{
    const auto width = static_cast<std::size_t>(hidden);
    Values out(in.size());
    for (std::size_t row = 0; row < in.size() / width; ++row) {
        double mean = 0, inverse = 0;
        moments(&in[row * width], width, mean, inverse);
        for (std::size_t i = 0; i < width; ++i)
            out[row * width + i] = (in[row * width + i] - mean) * inverse * parameters.at(name + ".gamma")[i] +
                                   parameters.at(name + ".beta")[i];
    }
    return out;
}
DoubleModel::Values DoubleModel::normBack(const std::string& name, const Values& in, const Values& outGrad)
{
    const auto width = static_cast<std::size_t>(hidden);
    const auto n = static_cast<double>(width);
    Values inGrad(in.size());
    for (std::size_t row = 0; row < in.size() / width; ++row) {
        double mean = 0, inverse = 0, sum = 0, along = 0;
        moments(&in[row * width], width, mean, inverse);
        for (std::size_t i = 0; i < width; ++i) {
            const double x = (in[row * width + i] - mean) * inverse;
            const double g = outGrad[row * width + i];
            gradients[name + ".gamma"][i] += g * x;
            gradients[name + ".beta"][i] += g;
            sum += g * parameters.at(name + ".gamma")[i];
            along += g * parameters.at(name + ".gamma")[i] * x;
        }
        for (std::size_t i = 0; i < width; ++i) {
            const double x = (in[row * width + i] - mean) * inverse;
            inGrad[row * width + i] =
                inverse * (outGrad[row * width + i] * parameters.at(name + ".gamma")[i] - sum / n - x * along / n);
        }
    }
    return inGrad;
}

void DoubleModel::attend(const Values& qkv, Values& out, const Values* outGrad, Values* qkvGrad) const
{
    const auto width = static_cast<std::size_t>(hidden);
    const std::size_t size = width / static_cast<std::size_t>(heads);
    const double scale = 1 / std::sqrt(static_cast<double>(size));
    const auto length = static_cast<std::size_t>(sequence);
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch); ++sample)
        for (std::size_t head = 0; head < static_cast<std::size_t>(heads); ++head) {
            auto at = [&](std::size_t t, std::size_t which, std::size_t i) {
                return (sample * length + t) * 3 * width + which * width + head * size + i;
            };
            for (std::size_t t = 0; t < length; ++t) {
                Values p(t + 1);
                double sum = 0;
                for (std::size_t u = 0; u <= t; ++u) {
                    double score = 0;
                    for (std::size_t i = 0; i < size; ++i) score += qkv[at(t, 0, i)] * qkv[at(u, 1, i)];
                    p[u] = std::exp(score * scale);
                    sum += p[u];
                }
                for (double& value : p) value /= sum;
                const std::size_t row = (sample * length + t) * width + head * size;
                if (!outGrad) {
                    for (std::size_t u = 0; u <= t; ++u)
                        for (std::size_t i = 0; i < size; ++i) out[row + i] += p[u] * qkv[at(u, 2, i)];
                    continue;
                }
                Values pGrad(t + 1);
                double along = 0;
                for (std::size_t u = 0; u <= t; ++u) {
                    for (std::size_t i = 0; i < size; ++i) {
                        pGrad[u] += (*outGrad)[row + i] * qkv[at(u, 2, i)];
                        (*qkvGrad)[at(u, 2, i)] += p[u] * (*outGrad)[row + i];
                    }
                    along += p[u] * pGrad[u];
                }
                for (std::size_t u = 0; u <= t; ++u) {
                    const double score = p[u] * (pGrad[u] - along) * scale;
                    for (std::size_t i = 0; i < size; ++i) {
                        (*qkvGrad)[at(t, 0, i)] += score * qkv[at(u, 1, i)];
                        (*qkvGrad)[at(u, 1, i)] += score * qkv[at(t, 0, i)];
                    }
                }
            }
        }
}

void DoubleModel::forward(int layer, Kept& kept, Values& stream) const
{
    const auto width = static_cast<std::size_t>(hidden);
    const std::size_t rows = stream.size() / width;
    kept.before = stream;
    kept.normed1 = norm(nameOf(layer, ".norm1"), stream);
    kept.qkv = linear(nameOf(layer, ".attention.qkv.weight"), nameOf(layer, ".attention.qkv.bias"), kept.normed1, rows,
                      width, 3 * width);
    kept.attended.assign(stream.size(), 0.0);
    attend(kept.qkv, kept.attended, nullptr, nullptr);
    const Values projected = linear(nameOf(layer, ".attention.project.weight"),
                                    nameOf(layer, ".attention.project.bias"), kept.attended, rows, width, width);
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += projected[i];
    kept.between = stream;
    kept.normed2 = norm(nameOf(layer, ".norm2"), stream);
    kept.expanded = linear(nameOf(layer, ".mlp.expand.weight"), nameOf(layer, ".mlp.expand.bias"), kept.normed2, rows,
                           width, 4 * width);
    kept.active.resize(kept.expanded.size());
    for (std::size_t i = 0; i < kept.active.size(); ++i) kept.active[i] = gelu(kept.expanded[i]);
    const Values contracted = linear(nameOf(layer, ".mlp.contract.weight"), nameOf(layer, ".mlp.contract.bias"),
                                     kept.active, rows, 4 * width, width);
    for (std::size_t i = 0; i < stream.size(); ++i) stream[i] += contracted[i];
}
void DoubleModel::backward(int layer, const Kept& kept, Values& grad)
{
    const auto width = static_cast<std::size_t>(hidden);
    const std::size_t rows = grad.size() / width;
    Values inner = linearBack(nameOf(layer, ".mlp.contract.weight"), nameOf(layer, ".mlp.contract.bias"), kept.active,
                              grad, rows, 4 * width, width);
    for (std::size_t i = 0; i < inner.size(); ++i) inner[i] *= geluSlope(kept.expanded[i]);
    inner = linearBack(nameOf(layer, ".mlp.expand.weight"), nameOf(layer, ".mlp.expand.bias"), kept.normed2, inner,
                       rows, width, 4 * width);
    inner = normBack(nameOf(layer, ".norm2"), kept.between, inner);
    for (std::size_t i = 0; i < grad.size(); ++i) grad[i] += inner[i];
    inner = linearBack(nameOf(layer, ".attention.project.weight"), nameOf(layer, ".attention.project.bias"),
                       kept.attended, grad, rows, width, width);
    Values qkvGrad(kept.qkv.size());
    Values unused;
    attend(kept.qkv, unused, &inner, &qkvGrad);
    inner = linearBack(nameOf(layer, ".attention.qkv.weight"), nameOf(layer, ".attention.qkv.bias"), kept.normed1,
                       qkvGrad, rows, width, 3 * width);
    inner = normBack(nameOf(layer, ".norm1"), kept.before, inner);
    for (std::size_t i = 0; i < grad.size(); ++i) grad[i] += inner[i];
}

} // namespace stagewright
