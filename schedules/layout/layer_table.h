// A layer table: what each layer of a model takes and keeps, in figures of one's own or of a recorded run, for the
// closed form of a layout. Figures are at some numbers of samples a microbatch and of devices that share a layer; at
// others they follow the formulas by the ratio that they have to them at the nearest, layer by layer. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/layout/parallelism.h"
#include "schedules/layout/partition.h"

namespace stagewright {

struct LayerPoint { // at one microbatch and tensor degree; below 0: unknown
    int samples = 1, tensor = 1;
    PassRatios seconds{-1, -1, -1};          // F, I, W of a device, without all-reduces among the devices
    std::array<double, 3> kept{-1, -1, -1};  // bytes, by KeptActivations
    std::array<double, 3> again{-1, -1, -1}; // seconds of recomputation, likewise
    bool timed() const { return seconds.forward >= 0; }
};
struct TableLayer {
    ModelLayer::Kind kind = ModelLayer::Kind::Block;
    std::vector<LayerPoint> points; // the first has times
    double weights = -1;            // bytes of all its devices, 2 a parameter; below 0: unknown
};
struct LayerTable {
    std::string model;              // as --model has it; empty: not said
    std::vector<TableLayer> layers; // embedding, blocks, the rest
    PassRatios perOp{0, 0, 0};      // seconds of an op beside its layers
};

// The layers of parseModelLayers(), and "model", "microbatch_size" [1] and "tensor" [1] of their figures; a layer has others
// in "at": [{"microbatch_size", "tensor", "recompute": "none|selective|full", "forward_ns", "input_grad_ns",
// "weight_grad_ns", "activation_bytes", "recompute_ns"}] (docs/formats.md). Unreadable names the layer.
Result<LayerTable> parseLayerTable(std::string_view text);

struct TableConstants {
    StepConstants constants;
    std::string words; // what of it is the table's, and what stays analytic
};
// Constants that have the table's layers; those beyond its last count as their mean where `more` allows it. Usage: it has
// no blocks, or other than the model.
Result<TableConstants> constantsOf(const LayerTable& table, const ModelPreset& model, const Cluster& cluster,
                                   StepConstants constants, bool more = false);

} // namespace stagewright
