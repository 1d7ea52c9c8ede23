// BackendTraits: what is known of a backend without a device at hand, for plans and for runs that were recorded
// elsewhere.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/device/device_options.h"
#include "engine/device/load.h"

namespace stagewright {

// How a device lays out what a stage keeps (engine/workload/gpt/stage_memory.h counts it).
struct StageLayout {
    int elementBytes = 4; // of activations and of the weights that layers compute with
    // On a device of its own the activation and the loss of each row are made at once, and attention keeps whole
    // squares of probabilities, or one number a row and head from this many tokens of a sample on. Null: the layout of
    // the CPU.
    int (*streamFrom)(int elementBytes, int headWidth) = nullptr;

    bool onDevice() const { return streamFrom != nullptr; }
};

struct BackendTraits {
    std::string_view title; // in lists: "processor", "GPUs (CUDA)"
    // ranks compute on devices with their own memory and clock, whose work can be traced
    bool hasDevices = false;
    Precision defaultPrecision = Precision::Fp32; // what Precision::Default means
    // relative, in fp32: how far gradients may be off where weight gradients are added in another order
    double reorderedTolerance = 1e-5;
    std::string_view torchTransport; // what PyTorch's ranks on such devices talk by: "gloo", "nccl"
    StageLayout (*layout)(Precision) = nullptr;
    // devices: by number, empty for all. Null where there is nothing to read.
    std::unique_ptr<LoadGauge> (*openLoad)(const std::vector<int>& devices) = nullptr;

    Precision resolved(Precision asked) const { return asked == Precision::Default ? defaultPrecision : asked; }
};

// The traits of the backend with this name, or the CPU's where there is none.
const BackendTraits& traitsOf(std::string_view backend);

} // namespace stagewright
