#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include "engine/cuda/ceilings.h"
#include "engine/cuda/collective_check.h"
#include "engine/cuda/cuda_traits.h"
#include "engine/cuda/device_math.h"
#include "engine/cuda/device_memory.h"
#include "engine/cuda/gemm_rules.h"
#include "engine/cuda/module.h"
#include "engine/device/backends.h"
#include "engine/device/machine.h"
#include "schedules/base/quantity.h"

namespace stagewright {

namespace {

// What the module says about itself and the driver.
std::vector<std::pair<std::string, std::string>> moduleFacts(const cuda::Module& module,
                                                             const StagewrightCudaFacts& facts)
{
    std::vector<std::pair<std::string, std::string>> pairs;
    pairs.emplace_back("module", module.path);
    pairs.emplace_back("cuda_runtime", cuda::versionText(facts.runtimeVersion));
    pairs.emplace_back("cuda_driver", facts.driverVersion == 0 ? "none" : cuda::versionText(facts.driverVersion));
    pairs.emplace_back("cublaslt", fmt::format("{}", facts.matrixVersion));
    const int nccl = facts.collectiveVersion;
    pairs.emplace_back("nccl",
                       nccl == 0 ? "none" : fmt::format("{}.{}.{}", nccl / 10000, nccl % 10000 / 100, nccl % 100));
    const int cudnn = facts.attentionVersion;
    pairs.emplace_back("cudnn",
                       cudnn == 0 ? "none" : fmt::format("{}.{}.{}", cudnn / 10000, cudnn % 10000 / 100, cudnn % 100));
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

std::vector<DeviceInfo> allDevices()
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
        device.details.emplace_back("memory", formatBytes(static_cast<std::int64_t>(found.totalBytes)));
        if (found.freeBytes > 0)
            device.details.emplace_back("memory_free", formatBytes(static_cast<std::int64_t>(found.freeBytes)));
        device.details.emplace_back("green_contexts", found.greenContexts != 0 ? "yes" : "no");
        if (i == 0) device.details.insert(device.details.end(), about.begin(), about.end());
        all.push_back(std::move(device));
    }
    return all;
}

// A usable device, and the origin of its times.
struct Device {
    int number;
    std::shared_ptr<cuda::DeviceOrigins> origins;
    std::uint64_t freeBytes;
    std::string name;
    bool partitions;
};

// The memories that a backend has opened and that are still there: how it knows its own again.
class OpenedMemories {
public:
    void add(cuda::DeviceMemory& memory)
    {
        const std::lock_guard lock(m_mutex);
        m_opened[&memory] = &memory;
    }
    void remove(const Memory& memory)
    {
        const std::lock_guard lock(m_mutex);
        m_opened.erase(&memory);
    }
    cuda::DeviceMemory* find(const Memory& memory) const // null: not this backend's
    {
        const std::lock_guard lock(m_mutex);
        const auto found = m_opened.find(&memory);
        return found == m_opened.end() ? nullptr : found->second;
    }

private:
    mutable std::mutex m_mutex;
    std::map<const Memory*, cuda::DeviceMemory*> m_opened;
};

class OpenedMemory final : public cuda::DeviceMemory {
public:
    OpenedMemory(std::shared_ptr<OpenedMemories> opened, const StagewrightQueueRequest& request,
                 std::shared_ptr<cuda::DeviceOrigins> origins, std::shared_ptr<cuda::DeviceLinks> links, bool connects)
        : DeviceMemory(*cuda::theModule()->table, request, std::move(origins), std::move(links), connects),
          m_opened(std::move(opened))
    {
        m_opened->add(*this);
    }
    ~OpenedMemory() override { m_opened->remove(*this); }

private:
    std::shared_ptr<OpenedMemories> m_opened;
};

class CudaBackend final : public Backend, public CollectiveSource {
public:
    explicit CudaBackend(const DeviceOptions& options) : m_options(options)
    {
        m_options.precision = backends::cudaTraits().resolved(m_options.precision);
    }

    std::string_view name() const override { return "cuda"; }
    std::vector<DeviceInfo> devices() const override { return allDevices(); }

    // The stages of a rank must fit on its device; only the caller knows how they are spread: all of them on
    // all devices together.
    Result<void> checkRoom(std::span<const StageUse> stages) const override
    {
        STAGEWRIGHT_TRY(std::vector<Device> there, chosen());
        // one stage per rank, at most: what a rank takes in addition is little compared with its stages
        double needed = 0;
        for (const StageUse& stage : stages) needed += static_cast<double>(stage.state + cuda::rankBytes);
        double free = 0;
        for (const Device& device : there) free += static_cast<double>(device.freeBytes);
        if (needed <= free) return {};
        return fail(ErrorCode::Unavailable,
                    fmt::format("all {} stages together need {} for weights, gradients and optimizer; {} {} free",
                                stages.size(), formatBytes(static_cast<std::int64_t>(needed)),
                                there.size() == 1 ? there.front().name + " has" : "the devices have",
                                formatBytes(static_cast<std::int64_t>(free))),
                    "use a smaller model");
    }

    Result<std::unique_ptr<Memory>> openMemory(int rank, int ranks, int ranksHere) override
    {
        STAGEWRIGHT_TRY(std::vector<Device> there, chosen());
        const auto devices = static_cast<int>(there.size());
        const Device& device = there[static_cast<std::size_t>(rank % devices)];
        if (partitioned(ranks) && !device.partitions)
            return fail(ErrorCode::Unavailable, fmt::format("{}: its driver has no green contexts", device.name),
                        "use --sharing queues");
        m_ranks = ranks;
        const bool nccl = m_options.transport == DeviceTransport::Nccl;
        if (nccl && ranksHere > devices)
            return fail(ErrorCode::Usage,
                        fmt::format("NCCL serves one rank per device: {} ranks on {} devices", ranksHere, devices),
                        "use fewer ranks, or --transport copies");
        const bool connects = nccl && ranksHere < ranks; // with other processes; then all messages go that way
        if (nccl && !connects && rank == 0) m_links = std::make_shared<cuda::DeviceLinks>(*cuda::theModule()->table);
        const StagewrightQueueRequest request = requestOf(device, rank, ranks, devices);
        try {
            return std::make_unique<OpenedMemory>(m_opened, request, device.origins, m_links, connects);
        } catch (const std::exception& e) {
            return fail(ErrorCode::Unavailable, fmt::format("{}: {}", device.name, e.what()));
        }
    }

    int sideBySide(int ranks) const override
    {
        const Result<std::vector<Device>> there = chosen();
        if (!there) return 0;
        return m_options.sharing == DeviceSharing::Partitions ? ranks : static_cast<int>(there->size());
    }

    Capabilities capabilities() const override
    {
        Capabilities can;
        can.layout = traits().layout(m_options.precision);
        can.sharesState = true;
        can.sharedTensor = cuda::gemmAlignment / 2; // the narrowest elements in that many bytes
        can.comparable = true;
        can.collectives = this;
        return can;
    }

    Result<std::unique_ptr<layers::LayerMath>> makeMath(const StageUse& stage, Allocator& allocator) override
    {
        cuda::DeviceMemory* memory = m_opened->find(allocator.memory());
        if (!memory)
            return fail(ErrorCode::Unavailable,
                        fmt::format("stage {}: its memory was not opened by this backend", stage.stage));
        constexpr int most = std::numeric_limits<std::int32_t>::max();
        if (stage.math.widest > most)
            return fail(ErrorCode::Usage,
                        fmt::format("an activation of {} elements; at most {} are possible", stage.math.widest, most),
                        "use a smaller microbatch or a shorter sequence");
        const int streamFrom = stage.math.streams
                                   ? (*stage.math.streams ? 1 : most)
                                   : cuda::streamFrom(memory->request().bf16 != 0 ? 2 : 4, stage.math.headWidth);
        try {
            return cuda::makeDeviceMath(*memory, allocator, stage.stage, streamFrom);
        } catch (const std::exception& e) {
            return tl::unexpected(*refusal(stage, e));
        }
    }

    std::optional<Error> refusal(const StageUse& stage, const std::exception& why) const override
    {
        if (dynamic_cast<const std::bad_alloc*>(&why) != nullptr)
            return Error{ErrorCode::Unavailable, fmt::format("stage {}: the device is out of memory", stage.stage),
                         "use a smaller model"};
        return Error{ErrorCode::Unavailable, fmt::format("stage {}: {}", stage.stage, why.what()), ""};
    }

    Result<std::vector<KernelComparison>> compareCollectives() const override
    {
        STAGEWRIGHT_TRY(std::vector<Device> there, chosen());
        if (m_options.transport != DeviceTransport::Nccl) return std::vector<KernelComparison>();
        std::vector<int> numbers;
        for (const Device& device : there) numbers.push_back(device.number);
        return cuda::compareCollectives(*cuda::theModule()->table, numbers);
    }

    std::vector<std::pair<std::string, std::string>> environment() const override
    {
        std::vector<std::pair<std::string, std::string>> facts;
        if (const Result<std::vector<Device>> there = chosen())
            for (const Device& device : *there) facts.emplace_back(fmt::format("gpu_{}", device.number), device.name);
        const std::vector<DeviceInfo> all = devices();
        facts.insert(facts.end(), all.front().details.begin(), all.front().details.end());
        addCeilings(facts);
        return facts;
    }

private:
    bool partitioned(int ranks) const { return m_options.sharing == DeviceSharing::Partitions && ranks > 1; }

    StagewrightQueueRequest requestOf(const Device& device, int rank, int ranks, int devices) const
    {
        StagewrightQueueRequest request{};
        request.device = device.number;
        request.bf16 = m_options.precision == Precision::Bf16 ? 1 : 0;
        request.tf32 = m_options.precision == Precision::Tf32 ? 1 : 0;
        if (!partitioned(ranks)) return request;
        request.parts = (ranks + devices - 1) / devices;
        request.part = rank / devices;
        return request;
    }

    // The ceilings of what the first rank computes on: its device, or its part of it.
    void addCeilings(std::vector<std::pair<std::string, std::string>>& facts) const
    {
        const Result<std::vector<Device>> there = chosen();
        if (!there) return;
        const auto ceilings = cuda::ceilingsOf(*cuda::theModule()->table,
                                               requestOf(there->front(), 0, m_ranks, static_cast<int>(there->size())));
        if (!ceilings) {
            facts.emplace_back("ceilings", ceilings.error().message);
            return;
        }
        facts.emplace_back("ceiling_matrix_flops", fmt::format("{:.4g}", ceilings->matrixFlops));
        facts.emplace_back("ceiling_copy_bytes", fmt::format("{:.4g}", ceilings->copyBytes));
    }

    // The requested devices, or all that are usable.
    Result<std::vector<Device>> chosen() const
    {
        const std::lock_guard lock(m_mutex);
        if (!m_chosen.empty()) return m_chosen;
        const std::vector<DeviceInfo> infos = allDevices();
        std::string reasons;
        for (const DeviceInfo& info : infos)
            if (!info.usable)
                reasons += (reasons.empty() ? "" : "; ") + (info.name.empty() ? "" : info.name + ": ") + info.reason;
        const bool none = std::none_of(infos.begin(), infos.end(), [](const DeviceInfo& info) { return info.usable; });
        if (none) return fail(ErrorCode::Unavailable, "no usable CUDA device: " + reasons, "use --backend cpu");
        std::vector<int> wanted = m_options.devices;
        if (wanted.empty())
            for (std::size_t i = 0; i < infos.size(); ++i)
                if (infos[i].usable) wanted.push_back(static_cast<int>(i));
        std::vector<Device> found;
        for (const int number : wanted) {
            if (number < 0 || number >= static_cast<int>(infos.size()))
                return fail(ErrorCode::Unavailable, fmt::format("CUDA device {} of {}", number, infos.size()),
                            "stagewright devices lists them");
            const DeviceInfo& info = infos[static_cast<std::size_t>(number)];
            if (!info.usable)
                return fail(ErrorCode::Unavailable, fmt::format("CUDA device {}: {}", info.name, info.reason));
            StagewrightCudaDevice facts{};
            if (cuda::theModule()->table->describe(number, &facts) != 0)
                return fail(ErrorCode::Unavailable, cuda::theModule()->table->lastError());
            found.push_back({number, std::make_shared<cuda::DeviceOrigins>(), facts.freeBytes, facts.name,
                             facts.greenContexts != 0});
        }
        m_chosen = std::move(found);
        return m_chosen;
    }

    DeviceOptions m_options;
    std::shared_ptr<OpenedMemories> m_opened = std::make_shared<OpenedMemories>(); // which may outlive it
    mutable std::mutex m_mutex;
    mutable std::vector<Device> m_chosen;
    int m_ranks = 1;                            // of the training whose memories were opened
    std::shared_ptr<cuda::DeviceLinks> m_links; // shared by its ranks; null: copies
};

} // namespace

Result<std::unique_ptr<Backend>> backends::cuda(const DeviceOptions& options)
{
    if (!options.blas.empty())
        return fail(ErrorCode::Usage, "BLAS " + options.blas + ": the cuda backend multiplies with cuBLASLt",
                    "leave --blas out");
    return std::make_unique<CudaBackend>(options);
}

} // namespace stagewright
