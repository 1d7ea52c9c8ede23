// StageModel: one stage of a workload on one rank: all that the rank loop (engine/training) and the checks know of a
// model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/device/memory.h"
#include "engine/device/shared_state.h"
#include "engine/layers/parameter_view.h"
#include "engine/layers/state_part.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// What an op works on: a microbatch, one sequence slice of it, or one half of its batch.
struct Part {
    std::int32_t microbatch = 0;
    std::int16_t slice = -1; // −1: the whole sequence
    std::uint8_t half = 0;   // 0: the whole batch; 1: its first half, 2: its second (the batch must be even)

    Part() = default;
    Part(std::int32_t aMicrobatch) : microbatch(aMicrobatch) {} // NOLINT: a microbatch is a part
    Part(std::int32_t aMicrobatch, std::int16_t aSlice, std::uint8_t aHalf)
        : microbatch(aMicrobatch), slice(aSlice), half(aHalf)
    {
    }
    auto operator<=>(const Part&) const = default;
};

// What one stage holds: layers firstLayer … firstLayer + layerCount − 1, what comes before them on the first stage, and
// what follows them, with the loss, on the last.
struct StageSlice {
    int stage = 0;
    int firstLayer = 0;
    int layerCount = 0;
    bool first = false;
    bool last = false;
};

// The layers of one stage on one rank. All calls on the rank's thread. Keeps what backward needs between calls, by
// part, in buffers tagged Activations; temporaries of a call are tagged Workspace.
//   forward     input (batch, positions, width) of stage > 0, or the data (batch, positions) of the first stage; batch
//               and positions are those of the part. A position of a GPT is a token
//   inputGrad   frees what W does not need and keeps what it does; B runs inputGrad then weightGrad: the same code
//   weightGrad  adds this part's gradients to the accumulators, in the order of calls; frees the rest
//
// Calls out of order throw std::logic_error, parts and sizes that do not fit std::invalid_argument; nothing is changed
// then.
//
// Slices (TeraPipe, arXiv 2102.07988): forwards of a microbatch come in slice order and keep keys and values for the
// later ones; input gradients come in reverse slice order and take the key and value gradients that the later slices
// left. Halves: F, I and W by half or whole, but no whole I after an F by half, and slices are halved from F on or not
// at all. Recomputation: forwardForRecompute keeps the part's input only (the first stage its tokens, the last its
// targets too; a slice that others follow its keys and values), and what the layers outside setRecomputedLayers keep;
// recompute(part) then makes what forward would have kept, bit for bit, and must come before the input gradient.
// Weight versions (asynchronous schedules): the current weights are what optimizerStep changes; keepVersion(n) stores a
// copy of them (tagged Weights), useVersion(n) computes with it until the next useVersion, −1 being the current ones.
// Each of F, R, I and W computes with the version in use when it is called: the exact gradient of a stored version
// needs it in use for all of them. A copy is a whole one, so a caller keeps a version when a step is about to change
// what it still needs.
class StageModel {
public:
    virtual ~StageModel() = default;

    virtual const StageSlice& slice() const = 0;
    // First stage: tokens, the data of batch × positions. Later stages: input, whose buffer the stage takes over (an
    // activation). Returns the output (batch, positions, width), tagged Communication; an empty buffer on the last
    // stage. Last stage: targets are needed; the loss is the mean over batch × positions.
    virtual Buffer forward(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                           std::span<const std::uint8_t> targets) = 0;
    virtual Buffer forwardForRecompute(const Part& part, Buffer input, std::span<const std::uint8_t> tokens,
                                       std::span<const std::uint8_t> targets) = 0;
    virtual void recompute(const Part& part) = 0;
    // outputGrad: gradient of forward's output (empty on the last stage). Returns the gradient of forward's input,
    // tagged Communication; an empty buffer on the first stage. Gradients are of the mean over all microbatches:
    // lossScale = 1/m.
    virtual Buffer inputGrad(const Part& part, Buffer outputGrad) = 0;
    virtual void weightGrad(const Part& part) = 0;
    // One op over several microbatches (2BP): their inputs and output gradients stacked, one GEMM per layer.
    virtual void weightGradOver(std::span<const Part> parts) = 0;

    // Lengths in positions of the sequence slices, summing to the sequence; before the first forward. Empty: no slices.
    virtual void setSlices(std::span<const int> lengths) = 0;
    // The layers (global numbers, first … last) that forwardForRecompute drops; the others keep what they keep. The
    // head goes with the model's last layer. Default: all; none where first > last.
    virtual void setRecomputedLayers(int first, int last) = 0;

    // Partial backward, before the first forward: backwards end at this layer (global number). The blocks before it,
    // and the embedding where it is above 0, keep nothing of a forward and get no gradient; of a stage that lies before
    // it there are no backwards at all.
    virtual void setBackwardFrom(int layer) = 0;

    // K-FAC's factors and inverses as ops (schedules/plan/fill_plan.h), in so many pieces of the inversion, instead of
    // in W and the optimizer's step. Before the first forward.
    virtual void factorsInOps(int pieces);
    // Whether W of this step keeps what the factors of its part need, until addFactors() has been asked for it.
    virtual void keepFactorInputs(bool on);
    // Adds the part's inputs, or its output gradients, to a refresh's sums (0 or 1, in turn): what W kept of it, else
    // what lies there between F, or I, and W. Nothing where neither is there.
    virtual void addFactors(const Part& part, bool inputs, int refresh);
    virtual void invertFactors(int piece, int refresh);

    // Last stage, after forward; nats per token of the part: its share of the microbatch's loss is loss × its tokens.
    virtual double loss(const Part& part) const = 0;
    virtual void setLossScale(float scale) = 0;
    virtual void zeroGradients() = 0;
    virtual double gradientSquareSum() const = 0; // in double, tensor order
    // step counts from 1; gradientScale multiplies every gradient first (clipping).
    virtual void optimizerStep(const OptimizerConfig& config, int step, float gradientScale) = 0;
    // Rolls the last optimizerStep back (weights, moments), as far as rounding allows: about 1e-6 relative. The
    // arguments and the gradients of that step, which must have been finite (Zero Bubble, arXiv 2401.10241, algorithm
    // 1).
    virtual void undoOptimizerStep(const OptimizerConfig& config, int step, float gradientScale) = 0;
    virtual void keepVersion(int version) = 0;
    virtual void useVersion(int version) = 0; // −1: the current weights; throws where it is not kept
    virtual void dropVersion(int version) = 0;
    // Stores as `version` the weights as `updates` more steps in the direction of the last one would leave them:
    // w − lr · updates · d (PipeOptim, arXiv 2312.00839); d of AdamW is m̂ / (√v̂ + ε) without the decay, of Sgd the
    // velocity, without momentum gradient and decay. Before the first step (step 0): the current weights. Sgd without
    // momentum keeps d from the first call on, which must come before the first step.
    virtual void keepPredicted(int version, const OptimizerConfig& config, int step, double updates) = 0;
    // of the current weights; a device's are copies, fetched by the call
    virtual std::vector<ParameterView> parameters() = 0;
    // After a caller wrote to views of the last parameters(): a device takes them over.
    virtual void parametersWritten() {}
    // What outlives a step, and the kept version `delayed` with it (−1: none): out of the stage, of shared state what
    // the rank steps, and into it. loadState() throws std::runtime_error, naming what the source has not.
    virtual void saveState(int delayed, const StateSink& sink) = 0;
    virtual void loadState(int delayed, const StateSource& source) = 0;
    // All gradients in the order of parameters(), one after another, into a buffer of the stage's memory; and the
    // gradients replaced by the sum over copies of the stage, in the order given, element by element.
    virtual void packGradients(const Buffer& to);
    virtual void sumGradients(std::span<const Buffer> copies);
    // The rank's part of a stage whose state ranks share. Weights are there from gatherWeights(), which makes room in
    // which the owned ones lie, to releaseWeights(); the optimizer steps what is owned. Null: the stage is whole.
    virtual SharedState* shared() { return nullptr; }
    // For elements begin to end of such a stage's flat vector: the sum of squares of their summed gradients, and an
    // optimizer step of what the rank steps of them. Weights in use follow with SharedState::refreshOwn().
    virtual double gradientSquareSumOn(std::int64_t /*begin*/, std::int64_t /*end*/) const { return 0; }
    virtual void optimizerStepOn(const OptimizerConfig& /*config*/, int /*step*/, float /*gradientScale*/,
                                 std::int64_t /*begin*/, std::int64_t /*end*/)
    {
    }
    virtual void gatherWeights() {}
    virtual void releaseWeights() {}
    // All that is kept of a part between its forward and the op that needs it next, for who moves it meanwhile: the
    // buffers stay where they are until that op, which must find them as they were. Not what later slices of the
    // microbatch read.
    virtual std::vector<Buffer*> keptBuffers(const Part& part) = 0;
    virtual void dropMicrobatches() = 0; // after a stopped step: frees whatever is kept

    // How long the stage's parts take within its ops over whole microbatches, while they are timed; between ops, any
    // thread. cpu: by the thread's processor time, else by the wall clock; a device's by its own. settlePartTimes()
    // once a step, before the device's clock forgets. partTimes(): medians by part, embedding, blocks, head as the
    // stage has them; without memory.
    virtual void timeParts(bool /*on*/, bool /*cpu*/) {}
    virtual void settlePartTimes() {}
    virtual std::vector<LayerCosts> partTimes() const { return {}; }
};

} // namespace stagewright
