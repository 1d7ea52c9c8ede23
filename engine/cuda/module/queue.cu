// Memory, queues, marks and copies. Partitions of a device are green contexts, by driver functions that are looked up:
// the module is linked to no driver.
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "engine/cuda/module/queue.cuh"

StagewrightQueue::StagewrightQueue() = default;

namespace stagewright::cuda::module {

namespace {

// The driver functions that a partition needs (CUDA 12.4 and later).
struct Driver {
    decltype(&cuGetErrorString) errorString = nullptr;
    decltype(&cuDeviceGetDevResource) deviceResource = nullptr;
    decltype(&cuDevSmResourceSplitByCount) split = nullptr;
    decltype(&cuDevResourceGenerateDesc) describe = nullptr;
    decltype(&cuGreenCtxCreate) create = nullptr;
    decltype(&cuGreenCtxDestroy) destroy = nullptr;
    decltype(&cuGreenCtxStreamCreate) stream = nullptr;
    decltype(&cuCtxFromGreenCtx) contextOf = nullptr;
    decltype(&cuCtxPushCurrent) push = nullptr;
    decltype(&cuCtxPopCurrent) pop = nullptr;
    decltype(&cuEventCreate) event = nullptr;
    const char* missing = nullptr; // the first that the driver does not have
};

template <typename Function>
void find(Driver& driver, Function& function, const char* name)
{
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status = cudaGetDriverEntryPointByVersion(name, &entry, 12050, cudaEnableDefault, &found);
    (void)cudaGetLastError();
    if (status == cudaSuccess && found == cudaDriverEntryPointSuccess)
        function = reinterpret_cast<Function>(entry);
    else if (!driver.missing)
        driver.missing = name;
}

const Driver& driver()
{
    static const Driver all = [] {
        Driver d;
        find(d, d.errorString, "cuGetErrorString");
        find(d, d.deviceResource, "cuDeviceGetDevResource");
        find(d, d.split, "cuDevSmResourceSplitByCount");
        find(d, d.describe, "cuDevResourceGenerateDesc");
        find(d, d.create, "cuGreenCtxCreate");
        find(d, d.destroy, "cuGreenCtxDestroy");
        find(d, d.stream, "cuGreenCtxStreamCreate");
        find(d, d.contextOf, "cuCtxFromGreenCtx");
        find(d, d.push, "cuCtxPushCurrent");
        find(d, d.pop, "cuCtxPopCurrent");
        find(d, d.event, "cuEventCreate");
        return d;
    }();
    return all;
}

int checkDriver(CUresult status, const char* what)
{
    if (status == CUDA_SUCCESS) return 0;
    const char* text = nullptr;
    if (!driver().errorString || driver().errorString(status, &text) != CUDA_SUCCESS || !text) text = "unknown error";
    return failed(std::string(what) + ": " + text);
}

// The device's multiprocessors in `count` equal parts; split once, as only the parts of one split are said to be
// disjoint.
int partsOf(int device, int count, const std::vector<CUdevResource>*& out)
{
    static std::mutex mutex;
    static std::map<std::pair<int, int>, std::vector<CUdevResource>> known;
    const std::lock_guard lock(mutex);
    const auto found = known.find({device, count});
    if (found != known.end()) {
        out = &found->second;
        return 0;
    }
    const Driver& d = driver();
    CUdevResource whole{};
    if (int bad =
            checkDriver(d.deviceResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM), "multiprocessors of the device"))
        return bad;
    auto groups = static_cast<unsigned>(count);
    const unsigned wanted = whole.sm.smCount / groups / 8 * 8; // in eights
    if (wanted == 0)
        return failed("a partition of " + std::to_string(whole.sm.smCount) + " multiprocessors by " +
                      std::to_string(groups) + " has less than 8");
    std::vector<CUdevResource> parts(groups);
    if (int bad =
            checkDriver(d.split(parts.data(), &groups, &whole, nullptr, 0, wanted), "splitting the multiprocessors"))
        return bad;
    if (groups < static_cast<unsigned>(count))
        return failed("the multiprocessors split into " + std::to_string(groups) + " partitions, not " +
                      std::to_string(count));
    out = &known.emplace(std::pair(device, count), std::move(parts)).first->second;
    return 0;
}

// Both streams in an equal part of the multiprocessors.
int openPartition(StagewrightQueue& queue)
{
    const Driver& d = driver();
    if (d.missing)
        return failed(std::string("the driver has no ") + d.missing +
                      ", which partitions need; it comes with CUDA 12.5");
    const std::vector<CUdevResource>* parts = nullptr;
    if (int bad = partsOf(queue.request.device, queue.request.parts, parts)) return bad;
    CUdevResource mine = (*parts)[static_cast<std::size_t>(queue.request.part)];
    CUdevResourceDesc description{};
    if (int bad = checkDriver(d.describe(&description, &mine, 1), "describing a partition")) return bad;
    if (int bad =
            checkDriver(d.create(&queue.partition, description, queue.request.device, CU_GREEN_CTX_DEFAULT_STREAM),
                        "creating a partition"))
        return bad;
    if (int bad = checkDriver(d.contextOf(&queue.partitionContext, queue.partition), "the context of a partition"))
        return bad;
    if (int bad = check(cudaStreamCreateWithFlags(&queue.clock, cudaStreamNonBlocking), "a CUDA stream")) return bad;
    queue.multiprocessors = static_cast<int>(mine.sm.smCount);
    for (cudaStream_t& lane : queue.lanes) {
        CUstream stream{};
        if (int bad =
                checkDriver(d.stream(&stream, queue.partition, CU_STREAM_NON_BLOCKING, 0), "a stream of a partition"))
            return bad;
        lane = stream;
    }
    return 0;
}

// An event and the stream it is recorded on must be of the same context, and so must two events between which time is
// measured: a partition's mark is an event of the partition, and its time is taken by a stream of the device's own
// context that waits for it.
int markPartition(StagewrightQueue& queue, int lane, StagewrightMark** out)
{
    const Driver& d = driver();
    std::unique_ptr<StagewrightMark, void (*)(StagewrightMark*)> made(new (std::nothrow) StagewrightMark, dropMark);
    if (!made) return failed("out of memory");
    made->device = queue.request.device;
    const bool timed = lane == STAGEWRIGHT_COMPUTE;
    if (int bad = checkDriver(d.push(queue.partitionContext), "entering a partition")) return bad;
    CUevent event{};
    const CUresult created = d.event(&event, CU_EVENT_DISABLE_TIMING);
    CUcontext left{};
    if (int bad = checkDriver(d.pop(&left), "leaving a partition")) return bad;
    if (int bad = checkDriver(created, "an event of a partition")) return bad;
    made->event = event;
    if (int bad = check(cudaEventRecord(made->event, queue.lanes[lane]), "recording a CUDA event")) return bad;
    if (timed) {
        if (int bad = check(cudaEventCreateWithFlags(&made->time, cudaEventDefault), "a CUDA event")) return bad;
        if (int bad = check(cudaStreamWaitEvent(queue.clock, made->event, 0), "waiting for a CUDA event")) return bad;
        if (int bad = check(cudaEventRecord(made->time, queue.clock), "recording a CUDA event")) return bad;
    }
    *out = made.release();
    return 0;
}

// Copies between devices go directly where they can; otherwise the driver stages them.
void openPeers(int device)
{
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) {
        for (int peer = 0; peer < count; ++peer) {
            int can = 0;
            if (peer != device && cudaDeviceCanAccessPeer(&can, device, peer) == cudaSuccess && can != 0)
                (void)cudaDeviceEnablePeerAccess(peer, 0);
        }
    }
    (void)cudaGetLastError(); // an access that is open already
}

int open(StagewrightQueue& queue)
{
    if (int bad = queue.enter()) return bad;
    if (int bad = check(cudaFree(nullptr), "opening the CUDA device")) return bad; // makes its context
    openPeers(queue.request.device);
    int hostPages = 0;
    if (int bad = check(
            cudaDeviceGetAttribute(&hostPages, cudaDevAttrPageableMemoryAccessUsesHostPageTables, queue.request.device),
            "an attribute of the CUDA device"))
        return bad;
    queue.readsHost = hostPages != 0;
    int major = 0;
    int minor = 0;
    if (int bad = check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, queue.request.device),
                        "an attribute of the CUDA device"))
        return bad;
    if (int bad = check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, queue.request.device),
                        "an attribute of the CUDA device"))
        return bad;
    const char* rule = std::getenv("STAGEWRIGHT_CUDA_GROUPS");
    queue.groups = major == 9 && minor == 0 && !(rule && std::string(rule) == "off");
    if (queue.request.parts > 1) {
        if (int bad = openPartition(queue)) return bad;
    } else {
        int lowest = 0;
        int highest = 0;
        if (int bad = check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities of streams")) return bad;
        for (int lane = 0; lane < 2; ++lane) {
            const int priority = lane == STAGEWRIGHT_TRANSFER ? highest : lowest;
            if (int bad = check(cudaStreamCreateWithPriority(&queue.lanes[lane], cudaStreamNonBlocking, priority),
                                "a CUDA stream"))
                return bad;
        }
    }
    if (int bad = check(cublasLtCreate(&queue.gemm), "cuBLASLt")) return bad;
    return check(cudaMalloc(&queue.workspace, workspaceBytes), "workspace of GEMMs");
}

} // namespace
} // namespace stagewright::cuda::module

StagewrightQueue::~StagewrightQueue()
{
    using namespace stagewright::cuda::module;
    (void)enter();
    for (const cudaStream_t lane : lanes)
        if (lane) (void)cudaStreamSynchronize(lane);
    plans.clear();
    attention.reset();
    if (workspace) (void)cudaFree(workspace);
    if (gemm) (void)cublasLtDestroy(gemm);
    for (const cudaStream_t lane : lanes)
        if (lane) (void)cudaStreamDestroy(lane);
    if (clock) {
        (void)cudaStreamSynchronize(clock);
        (void)cudaStreamDestroy(clock);
    }
    if (partition) (void)driver().destroy(partition);
    (void)cudaGetLastError();
}

namespace stagewright::cuda::module {

int take(int32_t device, size_t bytes, void** out)
{
    *out = nullptr;
    if (int bad = check(cudaSetDevice(device), "choosing the CUDA device")) return bad;
    const cudaError_t status = cudaMalloc(out, bytes);
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        *out = nullptr;
        return 0;
    }
    return check(status, "memory of the CUDA device");
}

int give(int32_t device, void* block)
{
    if (int bad = check(cudaSetDevice(device), "choosing the CUDA device")) return bad;
    return check(cudaFree(block), "freeing memory");
}

int openQueue(const StagewrightQueueRequest* request, StagewrightQueue** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightQueue> queue(new (std::nothrow) StagewrightQueue);
    if (!queue) return failed("out of memory");
    queue->request = *request;
    if (int bad = open(*queue)) {
        const std::string cause = lastErrorText(); // closing may fail as well
        queue.reset();
        lastErrorText() = cause;
        return bad;
    }
    *out = queue.release();
    return 0;
}

void closeQueue(StagewrightQueue* queue) { delete queue; }

int enter(StagewrightQueue* queue) { return queue->enter(); }

int finish(StagewrightQueue* queue)
{
    if (int bad = queue->enter()) return bad;
    for (const cudaStream_t lane : queue->lanes)
        if (int bad = check(cudaStreamSynchronize(lane), "work of the CUDA device")) return bad;
    return queue->clock ? check(cudaStreamSynchronize(queue->clock), "work of the CUDA device") : 0;
}

int finished(StagewrightQueue* queue, int32_t* out)
{
    *out = 0;
    if (int bad = queue->enter()) return bad;
    for (const cudaStream_t lane : queue->lanes) {
        const cudaError_t status = cudaStreamQuery(lane);
        if (status == cudaErrorNotReady) {
            (void)cudaGetLastError();
            return 0;
        }
        if (int bad = check(status, "work of the CUDA device")) return bad;
    }
    *out = 1;
    return 0;
}

int mark(StagewrightQueue* queue, int32_t lane, StagewrightMark** out)
{
    *out = nullptr;
    if (int bad = queue->enter()) return bad;
    return queue->partition ? markPartition(*queue, lane, out) : markOn(queue->lanes[lane], queue->request.device, out);
}

int markOn(cudaStream_t stream, int device, StagewrightMark** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightMark> made(new (std::nothrow) StagewrightMark);
    if (!made) return failed("out of memory");
    made->device = device;
    // it has the time
    if (int bad = check(cudaEventCreateWithFlags(&made->event, cudaEventDefault), "a CUDA event")) return bad;
    const int bad = check(cudaEventRecord(made->event, stream), "recording a CUDA event");
    if (bad != 0) {
        const std::string cause = lastErrorText();
        dropMark(made.release());
        lastErrorText() = cause;
        return bad;
    }
    *out = made.release();
    return 0;
}

void dropMark(StagewrightMark* mark)
{
    if (!mark) return;
    for (const cudaEvent_t event : {mark->event, mark->time})
        if (event) (void)cudaEventDestroy(event);
    (void)cudaGetLastError();
    delete mark;
}

int await(StagewrightQueue* queue, int32_t lane, StagewrightMark* mark)
{
    if (int bad = queue->enter()) return bad;
    return check(cudaStreamWaitEvent(queue->lanes[lane], mark->event, 0), "waiting for a CUDA event");
}

int nanosBetween(StagewrightMark* from, StagewrightMark* to, int64_t* out)
{
    const auto eventOf = [](const StagewrightMark* mark) { return mark->time ? mark->time : mark->event; };
    float milliseconds = 0;
    if (int bad = check(cudaEventElapsedTime(&milliseconds, eventOf(from), eventOf(to)), "time between CUDA events"))
        return bad;
    *out = std::llround(static_cast<double>(milliseconds) * 1e6);
    return 0;
}

int copyRows(StagewrightQueue* queue, int32_t lane, void* to, size_t toStride, const void* from, size_t fromStride,
             size_t bytes, size_t rows)
{
    if (int bad = queue->enter()) return bad;
    const cudaStream_t stream = queue->lanes[lane];
    // Unified addresses identify the devices of both: between two of them it is a peer copy.
    const cudaError_t status =
        rows == 1 ? cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream)
                  : cudaMemcpy2DAsync(to, toStride, from, fromStride, bytes, rows, cudaMemcpyDefault, stream);
    return check(status, "a copy on the CUDA device");
}

int clear(StagewrightQueue* queue, void* to, size_t bytes)
{
    if (int bad = queue->enter()) return bad;
    return check(cudaMemsetAsync(to, 0, bytes, queue->compute()), "clearing memory");
}

int upload(StagewrightQueue* queue, void* to, const void* host, size_t bytes)
{
    if (int bad = queue->enter()) return bad;
    // Pageable memory has been staged at return, except where the device reads the host's own pages.
    if (int bad = check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, queue->compute()),
                        "a copy to the CUDA device"))
        return bad;
    return queue->readsHost ? check(cudaStreamSynchronize(queue->compute()), "work of the CUDA device") : 0;
}

int download(StagewrightQueue* queue, void* host, const void* from, size_t bytes)
{
    if (int bad = queue->enter()) return bad;
    if (int bad = check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, queue->compute()),
                        "a copy from the CUDA device"))
        return bad;
    return check(cudaStreamSynchronize(queue->compute()), "work of the CUDA device");
}

} // namespace stagewright::cuda::module
