#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <new>
#include <thread>

#include <unistd.h>

#include "engine/cpu/bf16_math.h"
#include "engine/cpu/cpu_math.h"
#include "engine/cpu/gemm.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/openblas.h"
#include "engine/cpu/processor.h"
#include "engine/device/backend.h"
#include "engine/device/backends.h"
#include "engine/device/machine.h"
#include "schedules/base/quantity.h"

namespace stagewright {

namespace {

Bytes stateOf(std::span<const StageUse> stages)
{
    Bytes bytes = 0;
    for (const StageUse& stage : stages) bytes += stage.state;
    return bytes;
}

// 0 if unknown.
std::int64_t machineBytes()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long size = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? static_cast<std::int64_t>(pages) * size : 0;
}

std::string needOf(std::span<const StageUse> stages)
{
    const std::string who = stages.size() == 1 ? "stage " + std::to_string(stages.front().stage) + " needs "
                                               : "all " + std::to_string(stages.size()) + " stages together need ";
    return who + formatBytes(stateOf(stages)) + " for weights, gradients and optimizer";
}

class CpuBackend final : public Backend {
public:
    // bf16: its library; null: fp32, by the library `gemm`.
    CpuBackend(std::string gemm, const cpu::Bf16Gemm* bf16)
        : m_wanted(std::move(gemm)), m_bf16(bf16), m_precision(bf16 ? Precision::Bf16 : Precision::Fp32)
    {
    }

    std::string_view name() const override { return "cpu"; }

    std::vector<DeviceInfo> devices() const override
    {
        const unsigned cores = std::thread::hardware_concurrency();
        DeviceInfo device;
        device.backend = "cpu";
        device.name = cpu::processorName() + ", " + std::to_string(cores) + (cores == 1 ? " core" : " cores");
        device.usable = true;
        device.details = environment();
        for (const bool bf16 : {false, true}) {
            const auto fastest = cpu::fastestGemm(bf16);
            if (fastest)
                device.details.emplace_back(bf16 ? "products_best_bf16" : "products_best",
                                            fastest->reason + " a core (" + fastest->shape + ")");
        }
        return {device};
    }

    // A system that promises more memory than it has would end the program instead of refusing.
    Result<void> checkRoom(std::span<const StageUse> stages) const override
    {
        const std::int64_t present = machineBytes();
        if (present == 0 || stateOf(stages) <= present) return {};
        return fail(ErrorCode::Unavailable, needOf(stages) + "; this machine has " + formatBytes(present),
                    "use a smaller model");
    }

    Capabilities capabilities() const override
    {
        Capabilities can;
        can.layout = traits().layout(m_precision);
        can.sharesState = true;
        can.dense = m_bf16 == nullptr && cpu::openBlasDense() != nullptr;
        can.comparable = m_bf16 != nullptr; // in fp32 it is what others are compared with
        return can;
    }

    Result<DeviceOptions> resolve(const DeviceOptions& request, const MathUse& use) override
    {
        DeviceOptions resolved = request;
        if (m_bf16 != nullptr) return resolved;
        STAGEWRIGHT_TRY(auto choice, cpu::chooseGemm(m_wanted, use));
        resolved.blas = choice.gemm->name();
        return resolved;
    }

    Result<std::unique_ptr<layers::LayerMath>> makeMath(const StageUse& stage, Allocator& allocator) override
    {
        // BLAS counts rows and columns with int.
        if (stage.math.widest > std::numeric_limits<int>::max())
            return fail(ErrorCode::Usage,
                        "an activation of " + std::to_string(stage.math.widest) + " floats; at most " +
                            std::to_string(std::numeric_limits<int>::max()) + " are possible",
                        "use a smaller microbatch or a shorter sequence");
        if (!stage.shared) STAGEWRIGHT_CHECK(checkRoom({&stage, 1}));
        STAGEWRIGHT_TRY(const auto gemm, gemmFor(stage.math));
        return m_bf16 ? cpu::makeBf16Math(*m_bf16, allocator, stage.stage) : cpu::makeCpuMath(*gemm);
    }

    std::optional<Error> refusal(const StageUse& stage, const std::exception& why) const override
    {
        if (dynamic_cast<const std::bad_alloc*>(&why) == nullptr) return std::nullopt;
        return Error{ErrorCode::Unavailable, needOf({&stage, 1}) + "; less is free", "use a smaller model"};
    }

    std::vector<std::pair<std::string, std::string>> environment() const override
    {
        const std::lock_guard lock(m_choosing);
        std::vector<std::pair<std::string, std::string>> facts;
        facts.emplace_back("cpu", cpu::processorName());
        facts.emplace_back("cores", std::to_string(std::thread::hardware_concurrency()));
        facts.emplace_back("kernels", cpu::kernels().name);
        if (m_bf16 != nullptr) {
            facts.emplace_back("products", "onednn");
            facts.emplace_back("products_chosen", "the only one in bf16");
            addSpeeds(facts, m_bf16Speed);
            for (auto& fact : m_bf16->facts()) facts.push_back(std::move(fact));
            return facts;
        }
        std::vector<const cpu::Gemm*> gemm = cpu::allGemms();
        if (m_choice.gemm != nullptr) {
            facts.emplace_back("products", m_choice.gemm->name());
            facts.emplace_back("products_chosen", m_choice.reason);
            addSpeeds(facts, m_choice.gflops);
            gemm = {m_choice.gemm};
        }
        for (const cpu::Gemm* each : gemm)
            for (auto& fact : each->facts()) facts.push_back(std::move(fact));
        return facts;
    }

private:
    // For one more stage. Chosen by the first that is made, for all; ranks make theirs at the same time. Null in bf16,
    // which has one library.
    Result<const cpu::Gemm*> gemmFor(const MathUse& use)
    {
        const std::lock_guard lock(m_choosing);
        if (m_bf16 != nullptr) {
            if (m_bf16Speed == 0 && !use.layers.empty()) m_bf16Speed = cpu::bf16Speed(*m_bf16, use);
            return nullptr;
        }
        if (m_choice.gemm == nullptr) {
            STAGEWRIGHT_TRY(m_choice, cpu::chooseGemm(m_wanted, use));
        }
        STAGEWRIGHT_CHECK(m_choice.gemm->reserve(++m_stages));
        return m_choice.gemm;
    }

    // FLOP/s of one core: of the GEMMs on the workload's shapes, and of the machine's fastest.
    void addSpeeds(std::vector<std::pair<std::string, std::string>>& facts, double gflops) const
    {
        if (gflops > 0) facts.emplace_back("products_flops", std::to_string(std::llround(1e9 * gflops)));
        if (const auto fastest = cpu::fastestGemm(m_bf16 != nullptr))
            facts.emplace_back("products_best_flops",
                               std::to_string(std::llround(1e9 * std::max(gflops, fastest->gflops))));
    }

    std::string m_wanted;          // empty: the fastest
    mutable std::mutex m_choosing; // of the choice and the speed
    cpu::GemmChoice m_choice;
    int m_stages = 0; // made so far: as many threads may multiply at once
    const cpu::Bf16Gemm* m_bf16;
    double m_bf16Speed = 0;
    Precision m_precision;
};

} // namespace

Result<std::unique_ptr<Backend>> backends::cpu(const DeviceOptions& options)
{
    if (options.precision == Precision::Tf32)
        return fail(ErrorCode::Usage, "the cpu backend computes in fp32 or bf16, not in tf32",
                    "use --precision fp32, or --backend cuda");
    if (options.sharing != DeviceSharing::Queues || options.transport != DeviceTransport::Copies ||
        !options.devices.empty())
        return fail(ErrorCode::Usage, "the cpu backend has no devices to choose, share or connect",
                    "use --backend cuda with it");
    if (!options.blas.empty()) STAGEWRIGHT_CHECK(cpu::gemmNamed(options.blas));
    if (options.precision != Precision::Bf16) return std::make_unique<CpuBackend>(options.blas, nullptr);
    if (!options.blas.empty() && options.blas != "onednn")
        return fail(ErrorCode::Usage, "BLAS " + options.blas + ": on the CPU only oneDNN multiplies in bf16",
                    "use --blas onednn, or --precision fp32");
    STAGEWRIGHT_TRY(auto bf16, cpu::bf16Gemm());
    return std::make_unique<CpuBackend>(options.blas, bf16);
}

} // namespace stagewright
