// The module's only exported function, and what it reports about driver and devices.
#include <cstdio>
#include <cstring>

#include <dlfcn.h>

#include "engine/cuda/module/cudnn_attention.h"
#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

std::string& lastErrorText()
{
    thread_local std::string text;
    return text;
}

namespace {

template <std::size_t N>
void put(char (&to)[N], const std::string& text)
{
    std::snprintf(to, N, "%s", text.c_str());
}

std::string versionText(int version)
{
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

const char* lastError() { return lastErrorText().c_str(); }

// NCCL is loaded where it is: it is not part of the toolkit, and one GPU does not need it.
int collectiveVersion()
{
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return 0;
    using GetVersion = int (*)(int*);
    const auto get = reinterpret_cast<GetVersion>(dlsym(library, "ncclGetVersion"));
    int version = 0;
    return get && get(&version) == 0 ? version : 0;
}

// Why no device can be used, whatever there may be.
std::string driverMissing(int driver, int runtime)
{
    if (driver == 0) return "no NVIDIA driver is loaded (libcuda.so.1 is missing or too old to tell)";
    if (driver / 1000 < runtime / 1000)
        return "the NVIDIA driver supports CUDA " + versionText(driver) + ", but CUDA " + versionText(runtime) +
               " is needed; install a newer driver";
    return {};
}

int facts(StagewrightCudaFacts* out)
{
    std::memset(out, 0, sizeof *out);
    int runtime = 0;
    int driver = 0;
    if (int bad = check(cudaRuntimeGetVersion(&runtime), "version of the CUDA runtime")) return bad;
    if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
    (void)cudaGetLastError();
    out->runtimeVersion = runtime;
    out->driverVersion = driver;
    out->matrixVersion = cublasLtGetVersion();
    out->collectiveVersion = collectiveVersion();
    out->attentionVersion = cudnnVersion();
    put(out->moduleVersion, STAGEWRIGHT_VERSION);
    put(out->architectures, STAGEWRIGHT_CUDA_ARCHITECTURES);
    put(out->driverMissing, driverMissing(driver, runtime));
    return 0;
}

int deviceCount(int32_t* out)
{
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    *out = 0;
    if (status == cudaErrorNoDevice) { // a driver without a GPU
        (void)cudaGetLastError();
        return 0;
    }
    if (int bad = check(status, "asking for CUDA devices")) return bad;
    *out = count;
    return 0;
}

bool hasGreenContexts()
{
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuGreenCtxCreate", &entry, 12040, cudaEnableDefault, &found);
    (void)cudaGetLastError();
    return status == cudaSuccess && found == cudaDriverEntryPointSuccess && entry;
}

int describe(int32_t device, StagewrightCudaDevice* out)
{
    std::memset(out, 0, sizeof *out);
    cudaDeviceProp properties{};
    if (int bad = check(cudaGetDeviceProperties(&properties, device), "properties of a CUDA device")) return bad;
    put(out->name, properties.name);
    out->major = properties.major;
    out->minor = properties.minor;
    out->multiprocessors = properties.multiProcessorCount;
    out->greenContexts = hasGreenContexts() ? 1 : 0;
    out->totalBytes = properties.totalGlobalMem;
    std::string unit = "GPU-";
    for (const char byte : properties.uuid.bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        unit += digits;
    }
    put(out->unit, unit);
    if (properties.major < STAGEWRIGHT_CUDA_MINIMUM_MAJOR) {
        put(out->reason, "compute capability " + std::to_string(properties.major) + "." +
                             std::to_string(properties.minor) + ", but " +
                             std::to_string(STAGEWRIGHT_CUDA_MINIMUM_MAJOR) + ".0 is needed");
        return 0;
    }
    std::size_t free = 0;
    std::size_t total = 0;
    cudaError_t status = cudaSetDevice(device);
    if (status == cudaSuccess) status = cudaMemGetInfo(&free, &total);
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        put(out->reason, std::string("it can't be opened: ") + cudaGetErrorString(status));
        return 0;
    }
    out->freeBytes = free;
    return 0;
}

constexpr StagewrightCudaTable table = {STAGEWRIGHT_CUDA_ABI,
                                        sizeof(StagewrightCudaTable),
                                        sizeof(StagewrightCudaFacts),
                                        sizeof(StagewrightCudaDevice),
                                        lastError,
                                        facts,
                                        deviceCount,
                                        describe,
                                        take,
                                        give,
                                        openQueue,
                                        closeQueue,
                                        enter,
                                        finish,
                                        finished,
                                        mark,
                                        dropMark,
                                        await,
                                        nanosBetween,
                                        copyRows,
                                        clear,
                                        upload,
                                        download,
                                        multiply,
                                        norm,
                                        scaleShift,
                                        normBackward,
                                        softmax,
                                        softmaxBackward,
                                        flash,
                                        flashBackward,
                                        embed,
                                        embedGrad,
                                        crossEntropy,
                                        columnSums,
                                        add,
                                        squareSum,
                                        step,
                                        toElements,
                                        geluGrad,
                                        openCommunicator,
                                        closeCommunicator,
                                        communicatorAwait,
                                        communicatorMark,
                                        transfer,
                                        collect,
                                        newCommunicatorId,
                                        joinCommunicator,
                                        settleCommunicator,
                                        post,
                                        pollCommunicator,
                                        abortCommunicator};

} // namespace
} // namespace stagewright::cuda::module

extern "C" __attribute__((visibility("default"))) const StagewrightCudaTable* stagewright_cuda_module(void)
{
    return &stagewright::cuda::module::table;
}
