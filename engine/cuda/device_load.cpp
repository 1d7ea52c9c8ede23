#include "engine/cuda/device_load.h"

#include <algorithm>

#include <dlfcn.h>
#include <fmt/format.h>

#include "engine/cuda/module.h"

namespace stagewright {
namespace {

// The part of NVIDIA's management library and driver that reports how busy a GPU is; loaded like the driver itself, if
// present.
class Management {
public:
    Management()
    {
        m_nvml = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        m_driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (m_nvml == nullptr || m_driver == nullptr) return;
        fetch(m_nvml, "nvmlInit_v2", m_init);
        fetch(m_nvml, "nvmlShutdown", m_shutdown);
        fetch(m_nvml, "nvmlDeviceGetHandleByPciBusId_v2", m_handle);
        fetch(m_nvml, "nvmlDeviceGetUtilizationRates", m_rates);
        fetch(m_driver, "cuDeviceGet", m_device);
        fetch(m_driver, "cuDeviceGetPCIBusId", m_bus);
        m_usable = m_init != nullptr && m_shutdown != nullptr && m_handle != nullptr && m_rates != nullptr &&
                   m_device != nullptr && m_bus != nullptr && m_init() == 0;
    }
    ~Management()
    {
        if (m_usable) m_shutdown();
        if (m_nvml != nullptr) ::dlclose(m_nvml);
        // the driver stays: it does not take being unloaded
    }
    Management(const Management&) = delete;
    Management& operator=(const Management&) = delete;

    // By the number that CUDA gives it, which CUDA_VISIBLE_DEVICES changes and the management library does not know.
    double busy(int number) const
    {
        int device = 0;
        char bus[32] = {};
        void* handle = nullptr;
        struct {
            unsigned gpu, memory;
        } rates{};
        if (!m_usable || m_device(&device, number) != 0 || m_bus(bus, sizeof bus, device) != 0 ||
            m_handle(bus, &handle) != 0 || m_rates(handle, &rates) != 0)
            return -1;
        return std::min(rates.gpu, 100u) / 100.0;
    }

private:
    template <typename Function>
    static void fetch(void* library, const char* name, Function*& into)
    {
        into = reinterpret_cast<Function*>(::dlsym(library, name));
    }
    void* m_nvml = nullptr;
    void* m_driver = nullptr;
    bool m_usable = false;
    int (*m_init)() = nullptr;
    int (*m_shutdown)() = nullptr;
    int (*m_handle)(const char* bus, void** device) = nullptr;
    int (*m_rates)(void* device, void* rates) = nullptr;
    int (*m_device)(int* device, int number) = nullptr;
    int (*m_bus)(char* text, int length, int device) = nullptr;
};

class GpuGauge final : public LoadGauge {
public:
    GpuGauge(const StagewrightCudaTable& table, std::vector<int> devices)
        : m_table(table), m_devices(std::move(devices))
    {
    }
    std::vector<DeviceLoad> read() override
    {
        std::vector<DeviceLoad> all;
        for (const int number : m_devices) {
            StagewrightCudaDevice facts{};
            if (m_table.describe(number, &facts) != 0 || facts.totalBytes == 0) continue;
            DeviceLoad load;
            load.name = fmt::format("GPU {}", number);
            load.totalBytes = static_cast<std::int64_t>(facts.totalBytes);
            load.usedBytes = static_cast<std::int64_t>(facts.totalBytes - std::min(facts.freeBytes, facts.totalBytes));
            load.busy = m_management.busy(number);
            all.push_back(std::move(load));
        }
        return all;
    }

private:
    const StagewrightCudaTable& m_table;
    std::vector<int> m_devices;
    Management m_management;
};

} // namespace

std::unique_ptr<LoadGauge> cuda::openLoad(const std::vector<int>& devices)
{
    const Result<cuda::Module>& module = cuda::theModule();
    if (!module) return nullptr;
    std::vector<int> numbers = devices;
    std::int32_t count = 0;
    if (module->table->deviceCount(&count) != 0) return nullptr;
    if (numbers.empty())
        for (std::int32_t i = 0; i < count; ++i) numbers.push_back(i);
    return std::make_unique<GpuGauge>(*module->table, std::move(numbers));
}

} // namespace stagewright
