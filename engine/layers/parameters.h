// The parameters of a stage: values, gradient accumulators and optimizer state, each tensor in blocks of its own or,
// where ranks share the stage's state, in flat vectors (engine/device/shared_state.h); and the stored versions of the
// values, by number.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/math.h"
#include "engine/device/shared_state.h"
#include "engine/layers/kfac.h"
#include "engine/layers/parameter_view.h"
#include "engine/layers/state_part.h"

namespace stagewright::layers {

struct Parameter {
    std::string name; // "layer3.mlp.fc1.weight"
    std::vector<int> shape;
    Buffer value;
    Buffer gradient;
    Buffer moment1;     // AdamW: mean of gradients; Sgd with momentum: velocity
    Buffer moment2;     // AdamW: mean of squares
    Buffer elements;    // the values as the layers compute with them, where that is not fp32
    ConstElements used; // what the layers compute with: value, elements or a stored version
    // In a flat vector value and gradient are views of it, empty while their weights are released, no gradients are
    // there or, of value, only a part of the fp32 weights is this rank's.
    std::int64_t offset = 0;
    std::int64_t count = 0;
    FactorSums* factors = nullptr; // of a product's weight that K-FAC preconditions here; null: none
    FactorSums* others = nullptr;  // of every other refresh, where sums of two are under way: factorsInOps()
};

// Normal deviates of a seed and a name: element i is a pure function of (seed, name, i), exact integer arithmetic until
// one scaling, so that every machine draws the same weights. The sum of eight uniform 16-bit numbers, cut at ±4.9 σ.
// elements from `first` on
void fillNormal(std::uint64_t seed, std::string_view name, float deviation, std::span<float> out,
                std::size_t first = 0);

class ParameterSet {
public:
    // share: of a stage whose state ranks share; null: all of it is this rank's. Versions are for whole stages.
    ParameterSet(int stage, std::uint64_t seed, const OptimizerConfig& optimizer, Allocator& allocator, LayerMath& math,
                 const StageShare* share = nullptr);

    // References stay valid. Gradients and optimizer state start at zero.
    Parameter& addNormal(std::string name, std::vector<int> shape, float deviation);
    Parameter& addConstant(std::string name, std::vector<int> shape, float value);

    // A linear layer, once both are added: of it K-FAC has factors, where the rank steps it.
    void addProduct(Parameter& weight, Parameter& bias);
    // From now on factors are summed and inverted when asked, instead of by W and steps: the inversion in so many
    // pieces, first of the inputs' factors, then of the others'.
    void factorsInOps(int pieces);
    // Takes the sums of a refresh (0 or 1, in turn), which are then empty. Until sums were, nothing. Throws
    // std::runtime_error where a factor can't be inverted.
    void invertFactors(int piece, int refresh);

    SharedState* shared() { return m_shared.get(); }
    void gatherWeights();  // room for all; views follow
    void releaseWeights(); // scales and shifts of norms stay, as weight gradients read them
    void needGradients();  // before a weight gradient

    void zeroGradients();
    double gradientSquareSum() const; // tensor by tensor in the order of adding; of shared state piece by owned piece
    void step(const OptimizerConfig& config, int step, float gradientScale);
    // Only of shared state: elements begin to end of the flat vector. The weights in use don't follow yet.
    double gradientSquareSumOn(std::int64_t begin, std::int64_t end) const;
    void stepOn(const OptimizerConfig& config, int step, float gradientScale, std::int64_t begin, std::int64_t end);
    // With the gradients of that step, which must have been finite; weights and moments come back but for rounding.
    void undoStep(const OptimizerConfig& config, int step, float gradientScale);
    // On a device these are copies on the host, fetched now (waits), which written() takes over where they were
    // changed.
    std::vector<ParameterView> views();
    void written();
    // All gradients in the order of adding, and their sum over copies, in the order given.
    std::size_t gradientCount() const;
    void packGradients(float* to) const;
    void sumGradients(std::span<const float* const> copies);

    // Versions, numbered from 0; kept ones are tagged Weights. Keeping a number again overwrites it.
    void keepVersion(int version);
    void useVersion(int version); // −1: the current values
    void dropVersion(int version);
    // w − rate · updates · d with the learning rate and the direction d of step `step` (0: none yet, the current
    // values):
    //   AdamW m̂ / (√v̂ + ε), without the weight decay; Sgd its velocity; Sgd without momentum gradient and decay
    // (PipeOptim, arXiv 2312.00839). Sgd without momentum has nothing that outlives its gradients: the first call,
    // which must come before the first step, takes buffers (tag Optimizer) that hold d from then on.
    void keepPredicted(int version, const OptimizerConfig& config, int step, double updates);

    // What this rank has of what outlives a step, part by part: values, moments, and the kept version `delayed` (−1:
    // none is). Of shared state what the rank steps. Between steps.
    void saveState(int delayed, const StateSink& sink) const;
    // The same from elsewhere; `delayed` is kept. Throws std::runtime_error, naming what the source has not.
    void loadState(int delayed, const StateSource& source);

private:
    using Version = std::vector<Buffer>; // by parameter
    Parameter& add(std::string name, std::vector<int> shape);
    void checkOptimizer(const OptimizerConfig& config) const;
    void start(Parameter& parameter, std::span<const float> values);
    void updateElements(Parameter& parameter); // its elements follow its value
    const Buffer& current(const Parameter& parameter) const
    {
        return parameter.elements ? parameter.elements : parameter.value;
    }
    struct Range {
        std::int64_t begin = 0;
        std::int64_t end = std::numeric_limits<std::int64_t>::max();
    };
    template <typename Adam, typename Sgd>
    void onTensors(const OptimizerConfig& config, int step, float gradientScale, const Range& range, Adam&& adam,
                   Sgd&& sgd);
    void stepIn(const OptimizerConfig& config, int step, float gradientScale, const Range& range);
    void addShared(Parameter& parameter, const std::function<void(std::span<float> part, std::size_t first)>& fill);
    void showWeights(Parameter& parameter); // as they are there
    // The parts of tensors in a range that this rank steps: (parameter, piece, first element, end) of the flat vector.
    template <typename Visit>
    void eachOwned(const Range& range, Visit&& visit) const;
    template <typename Step>
    void onOwned(bool decays, const Range& range, Step&& step);
    // What a step of one parameter needs that this rank steps as a whole; count 0: it does not.
    TensorStep tensorOf(const Parameter& parameter) const;
    void stepByFactors(const OptimizerConfig& config, int step, float gradientScale);
    Version& version(int number);
    Version& storedVersion(int number, const char* what);

    std::unique_ptr<StateMath> m_stateMath;
    std::unique_ptr<SharedState> m_shared; // before the views
    Buffer m_keptNorms;                    // of released weights, as elements
    std::deque<Parameter> m_parameters;
    int m_stage;
    std::uint64_t m_seed;
    OptimizerConfig m_optimizer;
    Allocator& m_allocator;
    LayerMath& m_math;
    struct Mirror { // of a parameter, on the host
        std::vector<float> value;
        std::vector<float> gradient;
    };
    std::vector<Mirror> m_mirrors;
    struct Product {
        Parameter& weight;
        Parameter& bias;
        Buffer state; // doubles
        KroneckerFactors factors;
        FactorSums sums;
        std::optional<FactorSums> others = {};
        bool known = false; // it has factors
    };
    void average(Product& product, FactorSums& sums);
    std::deque<Product> m_products;
    int m_pieces = 0; // of an inversion that is asked for; 0: steps invert
    std::map<int, Version> m_versions;
    int m_used = -1;
};

} // namespace stagewright::layers
