#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

#include <unistd.h>

#include "engine/device/backends.h"
#include "engine/device/machine.h"

namespace stagewright {
namespace {

class HostGauge final : public LoadGauge {
public:
    HostGauge() { computed(); }
    std::vector<DeviceLoad> read() override
    {
        DeviceLoad load;
        load.name = "processor";
        const std::int64_t page = ::sysconf(_SC_PAGESIZE);
        std::int64_t size = 0, resident = 0;
        std::ifstream("/proc/self/statm") >> size >> resident;
        load.usedBytes = resident * page;
        load.totalBytes = std::max(std::int64_t{0}, static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * page);
        load.busy = computed();
        return {load};
    }

private:
    double computed() // since the last call
    {
        const auto now = std::chrono::steady_clock::now();
        const double cpu = static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
        const double elapsed = std::chrono::duration<double>(now - m_last).count();
        const double used = cpu - m_cpu;
        m_last = now;
        m_cpu = cpu;
        return elapsed > 0 ? std::clamp(used / (elapsed * usableCores()), 0.0, 1.0) : -1;
    }
    std::chrono::steady_clock::time_point m_last;
    double m_cpu = 0;
};

StageLayout layoutIn(Precision precision) { return {precision == Precision::Bf16 ? 2 : 4}; }

std::unique_ptr<LoadGauge> openLoad(const std::vector<int>&) { return std::make_unique<HostGauge>(); }

} // namespace

const BackendTraits& backends::cpuTraits()
{
    static const BackendTraits traits{"processor", false, Precision::Fp32, 1e-5, "gloo", layoutIn, openLoad};
    return traits;
}

} // namespace stagewright
