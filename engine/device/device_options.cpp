// In the words of options and configurations.
#include "engine/device/device_options.h"

namespace stagewright {

std::string_view toText(Precision precision)
{
    switch (precision) {
    case Precision::Default: return "default";
    case Precision::Fp32: return "fp32";
    case Precision::Tf32: return "tf32";
    case Precision::Bf16: return "bf16";
    }
    return "default";
}

std::string_view toText(DeviceSharing sharing)
{
    return sharing == DeviceSharing::Partitions ? "partitions" : "queues";
}

std::string_view toText(DeviceTransport transport) { return transport == DeviceTransport::Nccl ? "nccl" : "copies"; }

} // namespace stagewright
