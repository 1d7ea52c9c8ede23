#include <fmt/format.h>

#include "engine/backends.h"
#include "engine/cuda/module.h"

namespace stagewright {

namespace {

std::string gibibytes(std::uint64_t bytes)
{
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(std::uint64_t{1} << 30));
}

// What the module says of itself and of the driver.
std::vector<std::pair<std::string, std::string>> moduleFacts(const cuda::Module& module, const StagewrightCudaFacts& facts)
{
    std::vector<std::pair<std::string, std::string>> pairs;
    pairs.emplace_back("module", module.path);
    pairs.emplace_back("cuda_runtime", cuda::versionText(facts.runtimeVersion));
    pairs.emplace_back("cuda_driver", facts.driverVersion == 0 ? "none" : cuda::versionText(facts.driverVersion));
    pairs.emplace_back("cublaslt", fmt::format("{}", facts.matrixVersion));
    const int nccl = facts.collectiveVersion;
    pairs.emplace_back("nccl", nccl == 0 ? "none" : fmt::format("{}.{}.{}", nccl / 10000, nccl % 10000 / 100, nccl % 100));
    pairs.emplace_back("architectures", facts.architectures);
    return pairs;
}

DeviceInfo unusable(std::string reason, std::vector<std::pair<std::string, std::string>> details = {})
{
    DeviceInfo device;
    device.backend = "cuda";
    device.reason = std::move(reason);
    device.details = std::move(details);
    return device;
}

class CudaBackend final : public Backend {
public:
    std::string_view name() const override { return "cuda"; }

    std::vector<DeviceInfo> devices() const override
    {
        const Result<cuda::Module>& module = cuda::theModule();
        if (!module) {
            const Error& error = module.error();
            return {unusable(error.remedy.empty() ? error.message : error.message + "; " + error.remedy)};
        }
        const StagewrightCudaTable& table = *module->table;
        StagewrightCudaFacts facts{};
        if (table.facts(&facts) != 0) return {unusable(table.lastError(), {{"module", module->path}})};
        const auto about = moduleFacts(*module, facts);
        if (facts.driverMissing[0]) return {unusable(facts.driverMissing, about)};
        std::int32_t count = 0;
        if (table.deviceCount(&count) != 0) return {unusable(table.lastError(), about)};
        if (count == 0) return {unusable("the NVIDIA driver finds no GPU (or CUDA_VISIBLE_DEVICES hides all)", about)};
        std::vector<DeviceInfo> all;
        for (std::int32_t i = 0; i < count; ++i) {
            StagewrightCudaDevice found{};
            if (table.describe(i, &found) != 0) {
                all.push_back(unusable(table.lastError()));
                continue;
            }
            DeviceInfo device = unusable(found.reason);
            device.name = fmt::format("{}: {}", i, found.name);
            device.usable = device.reason.empty();
            device.details.emplace_back("compute_capability", fmt::format("{}.{}", found.major, found.minor));
            device.details.emplace_back("multiprocessors", fmt::format("{}", found.multiprocessors));
            device.details.emplace_back("memory", gibibytes(found.totalBytes));
            if (found.freeBytes > 0) device.details.emplace_back("memory_free", gibibytes(found.freeBytes));
            device.details.emplace_back("green_contexts", found.greenContexts != 0 ? "yes" : "no");
            if (i == 0) device.details.insert(device.details.end(), about.begin(), about.end());
            all.push_back(std::move(device));
        }
        return all;
    }

    Result<void> checkRoom(const ModelConfig&, std::span<const StageSlice>, const OptimizerConfig&) const override
    {
        return refusal();
    }

    Result<std::unique_ptr<StageModel>> makeStage(const ModelConfig&, const StageSlice&, int, std::uint64_t,
                                                  const OptimizerConfig&, Allocator&) override
    {
        return tl::unexpected(refusal().error());
    }

    std::vector<std::pair<std::string, std::string>> environment() const override { return devices().front().details; }

private:
    Result<void> refusal() const
    {
        std::string reasons;
        for (const DeviceInfo& device : devices()) {
            if (device.usable) return fail(ErrorCode::Unavailable, device.name + ": this version finds GPUs, but does not train on them");
            reasons += (reasons.empty() ? "" : "; ") + (device.name.empty() ? "" : device.name + ": ") + device.reason;
        }
        return fail(ErrorCode::Unavailable, "no usable CUDA device: " + reasons, "use --backend cpu");
    }
};

} // namespace

Result<std::unique_ptr<Backend>> backends::cuda()
{
    return std::make_unique<CudaBackend>();
}

} // namespace stagewright
