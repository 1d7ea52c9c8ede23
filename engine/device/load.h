// LoadGauge: how full and how busy a device is now, shown while a run is recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stagewright {

struct DeviceLoad {
    std::string name;           // "GPU 0"; "processor"
    std::int64_t usedBytes = 0; // by everybody on a GPU; by this process on the host
    std::int64_t totalBytes = 0;
    double busy = -1; // share of time since the last reading (a GPU: of the driver's last sampling period) in which it
                      // computed; of all cores for the host. −1: not known
};

// Reads in microseconds for the host, in about a millisecond for GPUs. One thread at a time.
class LoadGauge {
public:
    virtual ~LoadGauge() = default;
    virtual std::vector<DeviceLoad> read() = 0;
};

} // namespace stagewright
