#include "engine/cuda/module/gemm_choice.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "engine/cuda/module/call_time.h"
#include "engine/device/kept_choices.h"

namespace stagewright::cuda::module {

namespace {

constexpr double leastMeasured = 1e9; // operations; a smaller GEMM takes a few microseconds with any of them
constexpr double expectedRate = 5e14; // operations a second, for the number of calls

std::string hexOf(const cublasLtMatmulAlgo_t& algorithm)
{
    std::string text;
    for (const std::uint64_t word : algorithm.data) {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
        text += digits;
    }
    return text;
}
bool fromHex(const std::string& text, cublasLtMatmulAlgo_t& out)
{
    constexpr std::size_t words = sizeof out.data / sizeof out.data[0];
    if (text.size() != 16 * words || text.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
    for (std::size_t i = 0; i < words; ++i) out.data[i] = std::stoull(text.substr(16 * i, 16), nullptr, 16);
    return true;
}

// Names device, library and shape: what two queues must have in common to choose alike.
int choiceKey(const StagewrightQueue& queue, const GemmKey& key, bool fused, std::string& out)
{
    cudaDeviceProp device{};
    if (int bad = check(cudaGetDeviceProperties(&device, queue.request.device), "describing the CUDA device"))
        return bad;
    const StagewrightGemm& p = key.shape;
    const char* kinds[] = {"A·Bᵀ", "A·B", "Aᵀ·B"};
    out = std::string(device.name) + "; cuBLASLt " + std::to_string(cublasLtGetVersion()) +
          (queue.request.bf16 != 0   ? "; bf16; "
           : queue.request.tf32 != 0 ? "; tf32; "
                                     : "; fp32; ") +
          kinds[p.kind] + " of " + std::to_string(p.rows) + " x " + std::to_string(p.columns) + " x " +
          std::to_string(p.depth);
    for (const std::int64_t part :
         {p.aStride, p.bStride, p.cStride, static_cast<std::int64_t>(fused ? p.finish : 0),
          static_cast<std::int64_t>(p.floats), static_cast<std::int64_t>(p.beta != 0.0F),
          static_cast<std::int64_t>(key.alignment[0]), static_cast<std::int64_t>(key.alignment[1]),
          static_cast<std::int64_t>(key.alignment[2])})
        out += ' ' + std::to_string(part);
    std::replace(out.begin(), out.end(), '\t', ' ');
    return 0;
}

// Matrices like the GEMM's, on the device for as long as it is measured.
class Scratch {
public:
    explicit Scratch(const StagewrightQueue& queue) : m_queue(queue) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch()
    {
        for (void* block : m_blocks) (void)cudaFree(block);
        (void)cudaGetLastError();
    }
    // Null: the device's memory is out.
    void* matrix(std::int64_t rows, std::int64_t stride, bool floats)
    {
        const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
        const std::size_t bytes = count * (m_queue.request.bf16 != 0 && !floats ? 2 : 4);
        void* block = nullptr;
        if (cudaMalloc(&block, bytes) != cudaSuccess) {
            (void)cudaGetLastError();
            return nullptr;
        }
        m_blocks.push_back(block);
        return fill(static_cast<char*>(block), bytes) ? block : nullptr;
    }

private:
    // Numbers between −0.5 and 0.5, as on zeros a device is faster than it will be: some from the host, then copies of
    // what is there.
    bool fill(char* to, std::size_t bytes) const
    {
        std::vector<std::uint16_t> pattern(std::min<std::size_t>(bytes / 2, 1 << 16));
        std::uint32_t x = 1;
        for (std::uint16_t& number : pattern) {
            x = x * 1664525U + 1013904223U;
            const float value = static_cast<float>(x >> 8) / 16777216.0F - 0.5F;
            std::uint32_t bits = 0;
            std::memcpy(&bits, &value, sizeof bits);
            // bf16; two of them are an fp32 of about the upper one's size
            number = static_cast<std::uint16_t>(bits >> 16);
        }
        std::size_t done = pattern.size() * 2;
        if (cudaMemcpyAsync(to, pattern.data(), done, cudaMemcpyHostToDevice, m_queue.compute()) != cudaSuccess ||
            cudaStreamSynchronize(m_queue.compute()) != cudaSuccess)
            return false;
        for (; done < bytes; done += std::min(done, bytes - done))
            if (cudaMemcpyAsync(to + done, to, std::min(done, bytes - done), cudaMemcpyDeviceToDevice,
                                m_queue.compute()) != cudaSuccess)
                return false;
        return true;
    }

    const StagewrightQueue& m_queue;
    std::vector<void*> m_blocks;
};

// Seconds of a call with each algorithm; infinity where it does not run. False: not measurable here.
bool measureEach(const StagewrightQueue& queue, const StagewrightGemm& p, const GemmPlan& plan,
                 std::span<const cublasLtMatmulAlgo_t> algorithms, std::vector<double>& seconds)
{
    Scratch scratch(queue);
    const bool aUp = p.kind == STAGEWRIGHT_AT_B;
    const bool bUp = p.kind == STAGEWRIGHT_A_BT;
    const void* a = scratch.matrix(aUp ? p.depth : p.rows, p.aStride, false);
    const void* b = scratch.matrix(bUp ? p.columns : p.depth, p.bStride, false);
    void* c = scratch.matrix(p.rows, p.cStride, p.floats != 0);
    void* aux = p.aux ? scratch.matrix(p.rows, p.columns, false) : nullptr;
    void* bias = p.bias ? scratch.matrix(1, p.columns, false) : nullptr;
    if (!a || !b || !c || (p.aux && !aux) || (p.bias && !bias) || setEnd(plan, p, bias, aux) != 0) return false;
    const double work = 2.0 * p.rows * p.columns * p.depth;
    const auto run = [&](const cublasLtMatmulAlgo_t& algorithm) {
        return cublasLtMatmul(queue.gemm, plan.description, &p.alpha, b, plan.first, a, plan.second, &p.beta, c,
                              plan.result, c, plan.result, &algorithm, queue.workspace, workspaceBytes,
                              queue.compute()) == CUBLAS_STATUS_SUCCESS;
    };
    const CallTimer timer(queue);
    for (const cublasLtMatmulAlgo_t& algorithm : algorithms)
        seconds.push_back(timer.seconds(work / expectedRate, [&] { return run(algorithm); }));
    return cudaGetLastError() == cudaSuccess;
}

} // namespace

int chooseAlgorithm(const StagewrightQueue& queue, const StagewrightGemm& p, const GemmKey& key, const GemmPlan& plan,
                    std::span<const cublasLtMatmulAlgo_t> algorithms, cublasLtMatmulAlgo_t& out)
{
    out = algorithms.front();
    const bool small = 2.0 * p.rows * p.columns * p.depth < leastMeasured;
    // An event in a partition belongs to its context, and one of many small GEMMs is not worth the time.
    if (algorithms.size() < 2 || small || p.batches != 1 || queue.partition || choicesByTable()) return 0;
    std::string name;
    if (int bad = choiceKey(queue, key, plan.fused, name)) return bad;
    static std::mutex mutex;
    static std::map<std::string, cublasLtMatmulAlgo_t> chosen;
    const std::lock_guard lock(mutex);
    const auto [at, fresh] = chosen.try_emplace(name, out);
    if (fresh) {
        const KeptChoices kept;
        cublasLtMatmulAlgo_t known{};
        cublasLtMatmulHeuristicResult_t fits{};
        const auto line = kept.find(name);
        if (line && fromHex(line->first, known) &&
            cublasLtMatmulAlgoCheck(queue.gemm, plan.description, plan.first, plan.second, plan.result, plan.result,
                                    &known, &fits) == CUBLAS_STATUS_SUCCESS &&
            fits.workspaceSize <= workspaceBytes) {
            at->second = known;
        } else if (std::vector<double> seconds; kept.canKeep() && measureEach(queue, p, plan, algorithms, seconds)) {
            const auto best = std::min_element(seconds.begin(), seconds.end());
            const std::size_t number =
                *best < worthwhile * seconds.front() ? static_cast<std::size_t>(best - seconds.begin()) : 0;
            at->second = algorithms[number];
            char reason[96];
            std::snprintf(reason, sizeof reason, "measured: number %zu of %zu, %.1f us, the first %.1f us", number + 1,
                          seconds.size(), 1e6 * seconds[number], 1e6 * seconds.front());
            kept.keep(name, hexOf(at->second), reason);
        }
    }
    out = at->second;
    return 0;
}

} // namespace stagewright::cuda::module
