// K-FAC (Martens and Grosse 2015, arXiv 1503.05671): the gradient of a linear product is preconditioned with the
// inverses of two factors, A of its inputs (a column of ones for the bias) and G of its output gradients.
//
//   A ← decay · A + (1 − decay) · aᵀa / rows,  G ← decay · G + (1 − decay) · gᵀg / rows, from the identity on;
//       g: each sample's own gradient, that of the mean times its rows
//   A + √damping · π · I and G + √damping / π · I are inverted; π = √((tr A / dim A) / (tr G / dim G))
//   update = G⁻¹ · gradient · A⁻¹, times ν = min(1, √(clip / |Σ rate² · update · gradient|))
//
// All of it in double. ν is of one product, so that the division of a model into stages changes no bit.
#pragma once

#include <span>

#include "engine/device/math.h"

namespace stagewright::layers {

class KroneckerFactors {
public:
    // doubles of its state: A, G and their inverses
    static std::size_t stateSize(int inputs, int outputs);
    // state: kept by the caller as long as this lives; becomes identities.
    KroneckerFactors(int inputs, int outputs, std::span<double> state);

    int width() const { return m_width; } // inputs and the bias
    int outputs() const { return m_outputs; }
    std::span<const double> a() const { return m_a; }
    std::span<const double> g() const { return m_g; }
    double pi() const;
    // Means over the rows of one refresh: (width, width) and (outputs, outputs).
    void average(std::span<const double> a, std::span<const double> g, double decay);
    // False: a factor is not positive definite, as its numbers are not finite; the inverses are spoiled then.
    bool invert(double damping, const DenseMath& math);
    bool invertInputs(double damping, const DenseMath& math);  // A alone
    bool invertOutputs(double damping, const DenseMath& math); // G alone
    // (outputs, width) each; scratch too
    void precondition(std::span<const double> gradient, std::span<double> update, std::span<double> scratch,
                      const DenseMath& math) const;

private:
    int m_width, m_outputs;
    std::span<double> m_a, m_g, m_inverseA, m_inverseG;
};

// ν of an update.
double clipOf(std::span<const double> gradient, std::span<const double> update, double rate, double clip);

// What W adds up for a product's factors, in floats: over the rows of a step, (inputs, inputs), Σ of inputs, (outputs,
// outputs).
class FactorSums {
public:
    FactorSums(int inputs, int outputs, int stage, Allocator& allocator);
    int inputs() const { return m_inputs; }
    int outputs() const { return m_outputs; }
    bool wanted = true; // of the step that runs
    // outputGrad: of the mean over meanRows rows
    void add(LayerMath& math, int rows, double meanRows, ConstElements outputGrad, ConstElements x);
    void addInputs(LayerMath& math, int rows, ConstElements x);
    void addGradients(LayerMath& math, int rows, double meanRows, ConstElements outputGrad);
    bool empty() const { return m_rows == 0; }
    // The means, into (inputs + 1, inputs + 1) and (outputs, outputs); then it is empty.
    void take(std::span<double> a, std::span<double> g);
    void clear();

private:
    int m_inputs, m_outputs;
    Buffer m_a, m_x, m_g, m_column;
    double m_rows = 0, m_gradientRows = 0;
};

} // namespace stagewright::layers
