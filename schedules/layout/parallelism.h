// One way to divide a model over a cluster: the time of its step and the memory of its fullest device, in closed form.
//
// Memory (Korthikanti et al. 2022, arXiv 2205.05198, section 4): a layer has 12 h² parameters of 18 bytes (2 of weight, 4
// of gradient, 12 of optimizer state, which replicas may share). Of a layer and microbatch it keeps
//
//     s b h × (10 + 24/t + 5 a s/(h t))   without recomputation;   with sequence parallelism (34 + 5 a s/h)/t
//     s b h × (10 + 24/t), or 34/t        the scores of attention recomputed (selective)
//     s b h × 2, or 2/t                   everything but the layer's input recomputed (full)
//
// and the first stage holds layers/p × min(m, p) of them, of v > 1 chunks layers × (1 + (p − 1)/(p v)).
//
// Embedding and head, V h parameters each, are apart in that paper. Where they are counted (ModelPreset::embeddings) the
// first stage has the one and the last the other, V h/t a device. Tied ones are one matrix: once in the memory of a rank
// with the first and the last stage; on two ranks each has a copy, and the copies' gradients, 2 V h/t bytes one way, are
// summed after those of replicas, as Megatron-LM does (megatron/core/distributed/finalize_model_grads.py).
//
// Replicas that share the weights, too (ZeRO 3, arXiv 1910.02054), gather them for each forward and each backward of a
// microbatch, and scatter its gradients: three times (d − 1)/d × 2 bytes a parameter, which nothing hides, instead of the
// reduction after the step. Whole are then the weights of two layers, one of them ahead, and of embedding and head.
//
// Time: a layer's forward takes f = max(s b h (24 h + 4 s) / (t × rate), floor) + what it keeps without recomputation ÷
// memory rate; an all-reduce of its output among the t devices R = latency + 2 (t − 1)/t × 2 s b h ÷ link. Forward and
// backward: 3 f + 4 R; selective 3 f + 4.5 R and the scores again; full 4 f + 6 R. Of the pipeline m × stage + (p − 1) ×
// stage/v, the head (3 × 2 s b h V) in each microbatch, and m v + p − 1 times a message of 2 s b h/t bytes forward and
// one back, which nothing hides. Then gradients are reduced, 2 (d − 1)/d × 2 bytes a parameter, within a host where t d
// devices are on one, else over a network card; and the optimizer passes over 16 bytes a parameter. Devices are numbered
// tensor first, then replicas, then pipeline.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/layout/cluster.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

enum class KeptActivations {
    All,
    Selective, // but the scores of attention
    Inputs,    // full recomputation
};
std::string_view toText(KeptActivations kept); // "none", "selective", "full": what is recomputed
std::optional<KeptActivations> keptNamed(std::string_view name);

struct Parallelism {
    int tensor = 1;   // t: devices that share each layer
    int pipeline = 1; // p: stages side by side
    int chunks = 1;   // v: of a stage
    int replicas = 1; // d
    int samples = 1;  // b: of a microbatch
    int microbatches = 1;
    KeptActivations kept = KeptActivations::All;
    int zero = 1;          // what replicas share of the state: 0 nothing, 1 optimizer, 2 gradients too, 3 weights too
    bool sequence = false; // sequence parallelism among the t devices

    int devices() const { return tensor * pipeline * replicas; }
    bool operator==(const Parallelism&) const = default;
};
std::string toText(const Parallelism& way); // "t4 p16 v6 d1 b1 selective"

// Layers that a run measured, or a table has (layer_table.h): their passes as ratios to the formulas at the microbatch
// and tensor degree of these figures, so that the formulas carry them to others.
struct PassRatios {
    double forward = 1, input = 1, weight = 1;
    double sum() const { return forward + input + weight; }
    bool operator==(const PassRatios&) const = default;
};
// Likewise of a layer's bytes kept and of the time of recomputation, by KeptActivations, and of its parameters.
struct KeptRatios {
    std::array<double, 3> bytes{1, 1, 1}, again{1, 1, 1};
    double parameters = 1;
    bool operator==(const KeptRatios&) const = default;
};
struct MeasuredRatios {
    int samples = 1, tensor = 1;    // at which they are
    std::vector<PassRatios> layers; // by layer; those beyond count as the mean; empty: none was measured
    std::vector<KeptRatios> kept;   // as many
    KeptRatios keptMean;
    PassRatios mean, head;                // 1 where nothing was measured
    PassRatios embedding{0, 0, 0};        // no formula has it: seconds of a sample on one device
    PassRatios perOp{0, 0, 0};            // likewise: seconds of an op beside its layers
    const PassRatios& of(int layer) const // −1: the mean
    {
        return layer >= 0 && layer < static_cast<int>(layers.size()) ? layers[static_cast<std::size_t>(layer)] : mean;
    }
    const KeptRatios& keptOf(int layer) const
    {
        return layer >= 0 && layer < static_cast<int>(kept.size()) ? kept[static_cast<std::size_t>(layer)] : keptMean;
    }
    bool operator==(const MeasuredRatios&) const = default;
};

// Constants of a software on a kind of device. The defaults are fitted to 55 measured steps of Megatron-DeepSpeed on
// A100s (vTrain, arXiv 2312.12391), the passes of the optimizer set to its reads and writes.
struct StepConstants {
    double efficiency = 0.816;          // share of the peak that products reach
    double memoryShare = 0.429;         // of the memory's bandwidth that everything else reaches
    double layerFloor = 0.831e-3;       // seconds: a layer's forward takes no less
    double collective = 0.493e-3;       // seconds: an all-reduce takes no less
    double withinShare = 0.704;         // of the link within a host
    double betweenShare = 0.458;        // of a network card
    double optimizerPasses = 2;         // over 16 bytes a parameter
    MeasuredRatios measured;            // of a run or table; not part of a file of constants
    std::vector<MeasuredRatios> others; // at other microbatches and tensor degrees
    const MeasuredRatios& measuredAt(const Parallelism& way) const; // the nearest
    bool operator==(const StepConstants&) const = default;
};

struct StepParts { // seconds; their sum is the step
    double compute = 0;
    double recompute = 0;
    double bubble = 0;
    double tensor = 0;   // all-reduces within layers
    double messages = 0; // between stages
    double data = 0;     // gradients among replicas and copies, weights that replicas share
    double optimizer = 0;
    double sum() const { return compute + recompute + bubble + tensor + messages + data + optimizer; }
};
StepParts stepOf(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                 const StepConstants& constants = {});

struct MemoryParts { // bytes of the fullest device
    double state = 0;
    double activations = 0;
    double embedding = 0; // of the state: embedding and head, where they are counted
    double gathered = 0;  // of the state: weights that are whole for a while
    double sum() const { return state + activations; }
};
MemoryParts memoryOf(const ModelPreset& model, const Parallelism& way, const StepConstants& constants = {});
// "66.5 GiB of state, of it 4.80 GiB embedding and head, and 3.2 GiB of activations".
std::string toText(const MemoryParts& memory);

// What the layers of a stage do to one microbatch, a layer of each kind of recomputation: seconds and bytes.
struct LayerFigures {
    double forward = 0, input = 0, weight = 0; // what it waits for within the pass included
    double kept = 0;                           // activations of a microbatch
    double parameters = 0;                     // of a device
    double alone = 0, again = 0;               // forward, and what is recomputed, without all-reduces and gathers
};
LayerFigures layerFigures(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                          const StepConstants& constants, int layer = -1);
// A third of what the head takes of a microbatch, forward and backward, by the formula: in seconds.
double headSeconds(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                   const StepConstants& constants);
double messageBytes(const ModelPreset& model, const Parallelism& way);
// Bytes of state of a parameter on a device.
double stateBytes(const Parallelism& way);
// Bytes of weights that are whole for a while on a device with so many layers of so many parameters, and so many of
// embedding and head; 0 where replicas do not share weights.
double gatheredBytes(const Parallelism& way, double layers, double parameters, double others);
// Seconds of one gather, or scatter, of so many parameters; 0 likewise.
double gatherSeconds(double parameters, const Cluster& cluster, const Parallelism& way, const StepConstants& constants);
// Seconds in which copies of a tied embedding on the first and the last rank sum their gradients.
double tiedSeconds(const ModelPreset& model, const Cluster& cluster, const Parallelism& way,
                   const StepConstants& constants);
// Seconds in which the gradients of so many parameters are reduced, and the optimizer passes over them.
double reduceSeconds(double parameters, const Cluster& cluster, const Parallelism& way, const StepConstants& constants);
double optimizerSeconds(double parameters, const Cluster& cluster, const StepConstants& constants);
// From one device to another where so many in a row are one group.
Link linkOf(const Cluster& cluster, const StepConstants& constants, int group);

} // namespace stagewright
