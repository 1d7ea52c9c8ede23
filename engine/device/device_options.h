// DeviceOptions: what a backend is asked for: devices, precision, sharing, messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

// Elements of activations and of the weights that layers compute with, and how GEMMs are made; sums, master weights,
// gradients of weights and optimizer state are fp32 always.
enum class Precision {
    Default,
    Fp32,
    Tf32,
    Bf16,
};
// How ranks share one device: queues side by side, or an equal part of its processors each.
enum class DeviceSharing {
    Queues,
    Partitions,
};
enum class DeviceTransport {
    Copies,
    Nccl,
}; // messages between devices: peer copies of the driver; NCCL, each rank on a device of its own
struct DeviceOptions {
    std::vector<int> devices; // rank r runs on the r-th, modulo their number; empty: all that are usable
    Precision precision = Precision::Default;
    DeviceSharing sharing = DeviceSharing::Queues;
    DeviceTransport transport = DeviceTransport::Copies;
    // cpu: the library of its GEMMs, openblas or onednn; empty: the fastest (engine/cpu/gemm.h)
    std::string blas{};
    bool operator==(const DeviceOptions&) const = default;
};
std::string_view toText(Precision precision);
std::string_view toText(DeviceSharing sharing);
std::string_view toText(DeviceTransport transport);

} // namespace stagewright
