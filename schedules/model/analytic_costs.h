// Costs from the model and the device alone: floating-point operations over the device's peak times an efficiency, or
// bytes over its memory bandwidth, whichever takes longer. Per layer and microbatch of b samples, s tokens, width h (Qi
// et al. 2024, arXiv 2401.10241, table 1):
//
//     F  s b h (24 h + 4 s)    I  s b h (24 h + 8 s)    W  s b h 24 h        floating-point operations
//     activations  34 s b h bytes, with attention scores kept 5 a s² b more; kept for W after I 32 s b h
//     parameters   12 h² + 13 h; 2 bytes of weight, 2 of gradient, 12 of optimizer state each; messages 2 s b h bytes
//
// The last stage also has the head (2 s b h V each for F, I, W). Stages get layers so that the embedding and the head
// count as one layer each: the first and last stage have one fewer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// What counts of the embedding and the head, a matrix of vocabulary × hidden parameters each, to a planner of layouts.
enum class Embeddings {
    Apart, // nothing, as in the published formulas
    Own,   // a matrix each
    Tied,  // one matrix for both; on two ranks a copy each
};

struct ModelPreset {
    std::string_view name; // "gpt-1.5b"
    int layers = 0;
    int heads = 0;
    int hidden = 0;
    int sequence = 0;
    int vocabulary = 50304;
    int microbatchSize = 1; // as published
    int keyHeads = 0;       // of keys and values; 0: as many as heads
    int ffn = 0;            // inner width of the perceptron; 0: 4 × hidden
    int experts = 1;        // perceptrons of a layer, of which a token takes one; all are on each device
    Embeddings embeddings = Embeddings::Apart;
    double keyShare() const { return keyHeads > 0 ? static_cast<double>(keyHeads) / heads : 1; }
    double inner() const { return ffn > 0 ? ffn : 4.0 * hidden; }
    double layerParameters() const; // 12 h² where nothing differs
    // Parameters of the counted matrices on a rank with the first stage, the last, or both.
    double embeddingParameters(bool first, bool last) const;
    double parameters() const;
};

struct DevicePreset {
    std::string_view name;         // "a100"
    std::string_view title;        // "NVIDIA A100 80 GB SXM"
    double flops = 0;              // peak, dense 16-bit, per second
    double bytesPerSecond = 0;     // memory
    double memory = 0;             // bytes
    double linkBytesPerSecond = 0; // to another device, one way
    Nanos linkLatency = 0;
    double hostBytesPerSecond = 0; // to the host and back, as PipeOffload (arXiv 2503.01328) measured; 0: not known
};

std::span<const ModelPreset> modelPresets();
std::span<const DevicePreset> devicePresets();
// By name; Usage lists the names.
Result<ModelPreset> modelPresetOf(std::string_view name);
Result<DevicePreset> devicePresetOf(std::string_view name);

// A stage of `layers` blocks of width h, s tokens and vocabulary V, b samples a microbatch.
struct StageShape {
    double layers = 0;
    bool head = false;
    double hidden = 0;
    double sequence = 0;
    double vocabulary = 0;
    double samples = 0;
};
// Floating-point operations of one whole microbatch, as above; B is I and W, R is F, others have none.
double stageFlops(OpKind kind, const StageShape& stage);

struct AnalyticCosts {
    ModelPreset model;
    DevicePreset device;
    int microbatchSize = 0;   // 0: the model's own
    double efficiency = 0.5;  // share of the peak that matrix products reach
    bool keepsScores = false; // attention without recomputed scores (not flash attention)
    std::vector<int> layers;  // by stage; empty: as above
};

// "gpt-1.5b@a100", then options: ":b=4", ":seq=2048", ":efficiency=0.45", ":attention=full|flash". Usage errors list
// the names.
Result<AnalyticCosts> parseAnalyticCosts(std::string_view text);

// Times in nanoseconds, sizes in bytes, source Analytic. Fails (Usage) where there are more stages than layers.
Result<CostModel> analyticCosts(const Schedule& schedule, const AnalyticCosts& costs);

} // namespace stagewright
