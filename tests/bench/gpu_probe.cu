// What the CUDA backend and its traces assume of a GPU and its libraries, asked of CUDA alone, so that a wrong
// assumption shows before any kernel of the engine runs. One line a question; exit code 1 where an answer is not what
// the engine needs, 4 where there is no GPU.
//
//   nvcc -std=c++20 -O2 -arch=sm_90 tests/bench/gpu_probe.cu -o gpu_probe -lcublasLt -lcupti -lcuda
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cupti.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

int unexpected = 0;

void answer(const char* question, bool asNeeded, const std::string& what)
{
    std::printf("%-8s %-58s %s\n", asNeeded ? "yes" : "NO", question, what.c_str());
    std::fflush(stdout);
    if (!asNeeded) ++unexpected;
}
std::string nameOf(cudaError_t status) { return cudaGetErrorName(status); }
std::string nameOf(CUresult status)
{
    const char* name = "unknown";
    cuGetErrorName(status, &name);
    return name;
}
std::int64_t monotonic()
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

__global__ void spin(long long cycles, int* done)
{
    const long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
    if (done != nullptr) *done += 1;
}

// --- green contexts
// ------------------------------------------------------------------------------------------------------------------

struct Part {
    CUgreenCtx green = nullptr;
    CUstream stream = nullptr;
};
bool openPart(CUdevice device, unsigned multiprocessors, Part& part, std::string& why)
{
    CUdevResource all{}, first{};
    unsigned groups = 1;
    CUdevResourceDesc description{};
    CUresult status = cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM);
    if (status == CUDA_SUCCESS)
        status = cuDevSmResourceSplitByCount(&first, &groups, &all, nullptr, 0, multiprocessors);
    if (status == CUDA_SUCCESS) status = cuDevResourceGenerateDesc(&description, &first, 1);
    if (status == CUDA_SUCCESS)
        status = cuGreenCtxCreate(&part.green, description, device, CU_GREEN_CTX_DEFAULT_STREAM);
    if (status == CUDA_SUCCESS) status = cuGreenCtxStreamCreate(&part.stream, part.green, CU_STREAM_NON_BLOCKING, 0);
    why = status == CUDA_SUCCESS
              ? std::to_string(first.sm.smCount) + " of " + std::to_string(all.sm.smCount) + " multiprocessors"
              : nameOf(status);
    return status == CUDA_SUCCESS;
}

void askGreenContexts(CUdevice device)
{
    Part part;
    std::string why;
    const bool opened = openPart(device, 32, part, why);
    answer("a green context with a stream of its own", opened, why);
    if (!opened) return;
    cudaStream_t usual = nullptr;
    cudaStreamCreateWithFlags(&usual, cudaStreamNonBlocking);

    // Marks: events of the green context, waited for by a stream of the device's own context, and their times.
    CUcontext ofPart = nullptr;
    cuCtxFromGreenCtx(&ofPart, part.green);
    cuCtxPushCurrent(ofPart);
    CUevent first = nullptr, second = nullptr;
    cuEventCreate(&first, CU_EVENT_DEFAULT);
    cuEventCreate(&second, CU_EVENT_DEFAULT);
    cuEventRecord(first, part.stream);
    spin<<<1, 1, 0, part.stream>>>(20'000'000, nullptr);
    const cudaError_t launched = cudaGetLastError();
    const CUresult recorded = cuEventRecord(second, part.stream);
    CUcontext popped = nullptr;
    cuCtxPopCurrent(&popped);
    answer("a kernel launched by <<<>>> in the green context", launched == cudaSuccess, nameOf(launched));
    answer("an event of the green context is recorded there", recorded == CUDA_SUCCESS, nameOf(recorded));
    const CUresult awaited = cuStreamWaitEvent(usual, second, 0);
    answer("a stream of the device's context waits for it", awaited == CUDA_SUCCESS, nameOf(awaited));
    const bool early = cudaStreamQuery(usual) == cudaSuccess;
    cudaStreamSynchronize(usual);
    answer("and really waits", !early, early ? "the stream was done at once" : "it was not done at once");
    float milliseconds = 0;
    const CUresult elapsed = cuEventElapsedTime(&milliseconds, first, second);
    answer("time between two of its events, read from outside", elapsed == CUDA_SUCCESS && milliseconds > 1,
           nameOf(elapsed) + ", " + std::to_string(milliseconds) + " ms");

    // The runtime's events, made in the device's context, recorded in the green one.
    cudaEvent_t outside = nullptr;
    cudaEventCreate(&outside);
    const CUresult foreign = cuEventRecord(outside, part.stream);
    std::printf("%-8s %-58s %s\n", "fact", "an event of the device's context recorded in the green one",
                nameOf(foreign).c_str());

    // An event outlives its green context in a hand-over.
    cuStreamSynchronize(part.stream);
    cuStreamDestroy(part.stream);
    const CUresult closed = cuGreenCtxDestroy(part.green);
    const CUresult dropped = cuEventDestroy(second);
    std::printf("%-8s %-58s %s\n", "fact", "an event destroyed after its green context",
                (nameOf(closed) + ", then " + nameOf(dropped)).c_str());
    const cudaError_t after = cudaDeviceSynchronize();
    answer("the device works on after that", after == cudaSuccess, nameOf(after));
    cudaStreamDestroy(usual);
    cudaEventDestroy(outside);
}

// --- cuBLASLt
// ------------------------------------------------------------------------------------------------------------------------

// C = A · B of n × n bf16 with an end, as the engine asks for it; the number of a failing status, or 0.
int gemm(cublasLtHandle_t handle, cudaStream_t stream, int n, cublasLtEpilogue_t end, void* workspace,
         std::size_t workspaceBytes)
{
    std::vector<void*> blocks;
    const auto take = [&](std::size_t bytes) {
        void* block = nullptr;
        cudaMalloc(&block, bytes);
        cudaMemset(block, 0, bytes);
        blocks.push_back(block);
        return block;
    };
    const std::size_t matrix = static_cast<std::size_t>(n) * static_cast<std::size_t>(n) * 2;
    void *a = take(matrix), *b = take(matrix), *c = take(matrix), *aux = take(matrix),
         *bias = take(static_cast<std::size_t>(n) * 4);
    cublasLtMatmulDesc_t what = nullptr;
    cublasLtMatrixLayout_t layout = nullptr;
    cublasLtMatmulPreference_t request = nullptr;
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end);
    if (end != CUBLASLT_EPILOGUE_DEFAULT) {
        const std::int64_t lead = n;
        if (end != CUBLASLT_EPILOGUE_DGELU) // which has no bias, and is refused with one
            cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
        cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &lead, sizeof lead);
    }
    cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(n), n);
    cublasLtMatmulPreferenceCreate(&request);
    cublasLtMatmulPreferenceSetAttribute(request, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceBytes,
                                         sizeof workspaceBytes);
    int status =
        cublasLtMatmulAlgoGetHeuristic(handle, what, layout, layout, layout, layout, request, 1, &found, &count);
    const float one = 1, zero = 0;
    if (status == 0 && count > 0)
        status = cublasLtMatmul(handle, what, &one, a, layout, b, layout, &zero, c, layout, c, layout, &found.algo,
                                workspace, workspaceBytes, stream);
    if (status == 0 && count == 0) status = CUBLAS_STATUS_NOT_SUPPORTED;
    cudaStreamSynchronize(stream);
    cublasLtMatmulPreferenceDestroy(request);
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(what);
    for (void* block : blocks) cudaFree(block);
    return status;
}

void askGemm(CUdevice device)
{
    cublasLtHandle_t handle = nullptr;
    answer("cuBLASLt starts", cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS,
           "version " + std::to_string(cublasLtGetVersion()));
    const std::size_t bytes = std::size_t{32} << 20;
    void* workspace = nullptr;
    cudaMalloc(&workspace, bytes);
    const std::pair<const char*, cublasLtEpilogue_t> ends[] = {
        {"a GEMM in bf16", CUBLASLT_EPILOGUE_DEFAULT},
        {"with GELU and bias, the input kept", CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
        {"with GELU's gradient", CUBLASLT_EPILOGUE_DGELU},
        {"with GELU's gradient and sums of the bias", CUBLASLT_EPILOGUE_DGELU_BGRAD},
        {"with sums of the bias of B", CUBLASLT_EPILOGUE_BGRADB}};
    for (const auto& [name, end] : ends) {
        const int status = gemm(handle, nullptr, 1024, end, workspace, bytes);
        const bool needed = end != CUBLASLT_EPILOGUE_DGELU_BGRAD && end != CUBLASLT_EPILOGUE_BGRADB;
        if (needed)
            answer(name, status == 0, "status " + std::to_string(status));
        else
            std::printf("%-8s %-58s status %d\n", "fact", name, status);
    }
    Part part;
    std::string why;
    if (openPart(device, 32, part, why)) {
        CUcontext ofPart = nullptr;
        cuCtxFromGreenCtx(&ofPart, part.green);
        cuCtxPushCurrent(ofPart);
        cublasLtHandle_t inside = nullptr;
        cublasLtCreate(&inside);
        const int status = gemm(inside, part.stream, 1024, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, workspace, bytes);
        cublasLtDestroy(inside);
        CUcontext popped = nullptr;
        cuCtxPopCurrent(&popped);
        answer("a GEMM of cuBLASLt in a green context", status == 0, "status " + std::to_string(status));
        cuStreamDestroy(part.stream);
        cuGreenCtxDestroy(part.green);
    }
    cudaFree(workspace);
    cublasLtDestroy(handle);
}

// --- CUPTI
// ---------------------------------------------------------------------------------------------------------------------------

struct Records {
    std::mutex mutex;
    struct Call {
        std::uint32_t kind, cbid;
        std::uint64_t start, end;
    };
    struct Kernel {
        std::string name;
        std::uint64_t start, end;
    };
    std::multimap<std::uint32_t, Call> calls;     // by correlation
    std::multimap<std::uint32_t, Kernel> kernels; // by correlation
    std::map<std::uint32_t, std::uint64_t> ids;   // correlation → the id that was pushed
    std::size_t dropped = 0;
} records;

void CUPTIAPI giveBuffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most)
{
    *size = std::size_t{4} << 20;
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
    *most = 0;
}
void CUPTIAPI readBuffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t, std::size_t valid)
{
    const std::lock_guard lock(records.mutex);
    CUpti_Activity* record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
        switch (record->kind) {
        case CUPTI_ACTIVITY_KIND_RUNTIME:
        case CUPTI_ACTIVITY_KIND_DRIVER: {
            const auto* call = reinterpret_cast<const CUpti_ActivityAPI*>(record);
            records.calls.insert(
                {call->correlationId, {static_cast<std::uint32_t>(record->kind), call->cbid, call->start, call->end}});
            break;
        }
        case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
            const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
            records.kernels.insert({kernel->correlationId, {kernel->name, kernel->start, kernel->end}});
            break;
        }
        case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
            const auto* external = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
            records.ids[external->correlationId] = external->externalId;
            break;
        }
        default: break;
        }
    }
    std::size_t lost = 0;
    cuptiActivityGetNumDroppedRecords(context, stream, &lost);
    records.dropped += lost;
    std::free(buffer);
}

void askTraces()
{
    std::uint32_t version = 0;
    cuptiGetVersion(&version);
    CUptiResult started = cuptiActivityRegisterCallbacks(giveBuffer, readBuffer);
    for (const CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
          CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION})
        if (started == CUPTI_SUCCESS) started = cuptiActivityEnable(kind);
    answer("CUPTI records calls, kernels and external ids", started == CUPTI_SUCCESS,
           "version " + std::to_string(version) + ", status " + std::to_string(started));
    if (started != CUPTI_SUCCESS) return;

    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cublasLtHandle_t handle = nullptr;
    cublasLtCreate(&handle);
    int* done = nullptr;
    cudaMalloc(&done, sizeof(int));
    struct Launch {
        const char* how;
        std::uint64_t id;
        std::int64_t before = 0, after = 0; // CLOCK_MONOTONIC around the launch and its end
    };
    std::vector<Launch> launches{
        {"<<<>>>", 101}, {"cudaLaunchKernelExC", 102}, {"cuLaunchKernel", 103}, {"cublasLtMatmul", 104}};
    void* spinArguments[2];
    long long cycles = 20'000;
    spinArguments[0] = &cycles;
    spinArguments[1] = &done;
    for (Launch& launch : launches) {
        cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, launch.id);
        launch.before = monotonic();
        if (launch.id == 101) spin<<<1, 1, 0, stream>>>(cycles, done);
        if (launch.id == 102) {
            cudaLaunchConfig_t shape{};
            shape.gridDim = shape.blockDim = dim3(1);
            shape.stream = stream;
            cudaLaunchKernelExC(&shape, reinterpret_cast<const void*>(&spin), spinArguments);
        }
        if (launch.id == 103) {
            cudaFunction_t function = nullptr;
            cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&spin));
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, spinArguments, nullptr);
        }
        std::uint64_t popped = 0;
        if (launch.id == 104) gemm(handle, stream, 1024, CUBLASLT_EPILOGUE_DEFAULT, nullptr, 0);
        cudaStreamSynchronize(stream);
        launch.after = monotonic();
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped);
    }
    std::uint64_t gpuNow = 0;
    const std::int64_t hostBefore = monotonic();
    cuptiGetTimestamp(&gpuNow);
    const std::int64_t hostAfter = monotonic();
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    // The same offset as the engine uses: CUPTI's clock against CLOCK_MONOTONIC.
    const std::int64_t offset = static_cast<std::int64_t>(gpuNow) - (hostBefore + hostAfter) / 2;
    std::printf("%-8s %-58s %lld ns\n", "fact", "reading CUPTI's clock takes",
                static_cast<long long>(hostAfter - hostBefore));
    std::set<std::uint32_t> runtime, driver;
    std::int64_t earliest = INT64_MAX, latest = INT64_MAX;
    for (const Launch& launch : launches) {
        std::string found;
        std::size_t kernels = 0, nested = 0;
        for (const auto& [correlation, kernel] : records.kernels) {
            const auto id = records.ids.find(correlation);
            if (id == records.ids.end() || id->second != launch.id) continue;
            ++kernels;
            nested += records.calls.count(correlation) > 1 ? 1 : 0;
            const auto calls = records.calls.equal_range(correlation);
            for (auto call = calls.first; call != calls.second; ++call) {
                (call->second.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? runtime : driver).insert(call->second.cbid);
                found += (call->second.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? " runtime " : " driver ") +
                         std::to_string(call->second.cbid);
            }
            earliest = std::min(earliest, static_cast<std::int64_t>(kernel.start) - offset - launch.before);
            latest = std::min(latest, launch.after - (static_cast<std::int64_t>(kernel.end) - offset));
        }
        answer((std::string("kernels of ") + launch.how + " have the id that was pushed").c_str(), kernels > 0,
               std::to_string(kernels) + " kernels, " + std::to_string(nested) + " with two calls;" + found);
    }
    answer("kernels lie between the host's stamps around them", earliest > -1'000 && latest > -1'000,
           "least room before " + std::to_string(earliest) + " ns, after " + std::to_string(latest) + " ns");
    answer("no record was dropped", records.dropped == 0, std::to_string(records.dropped));
    cublasLtDestroy(handle);
    cudaFree(done);
    cudaStreamDestroy(stream);
}

} // namespace

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("no GPU: %s\n", nameOf(cudaGetLastError()).c_str());
        return 4;
    }
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, 0);
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    std::printf("%s, %d multiprocessors, %.0f MiB of L2, driver %d, runtime %d\n", properties.name,
                properties.multiProcessorCount, static_cast<double>(properties.l2CacheSize) / (1 << 20), driver,
                runtime);
    cudaSetDevice(0);
    cudaFree(nullptr); // makes the device's context
    CUdevice device = 0;
    cuInit(0);
    cuDeviceGet(&device, 0);
    askGreenContexts(device);
    askGemm(device);
    askTraces();
    std::printf("%d answers are not what the engine needs\n", unexpected);
    return unexpected == 0 ? 0 : 1;
}
