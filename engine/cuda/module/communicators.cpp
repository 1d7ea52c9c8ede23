// Communicators: queues of several devices that NCCL connects. Each end has its own stream next to the queue's, with the
// highest priority: messages pass while the queue computes.
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/cuda/module/queue.cuh"

#if __has_include(<nccl.h>)

#include "engine/cuda/module/nccl_communicator.h"

struct StagewrightCommunicator {
    std::unique_ptr<stagewright::cuda::module::NcclCommunicator> communicator;
    std::vector<StagewrightQueue*> queues;
    std::vector<cudaStream_t> streams; // by end

    ~StagewrightCommunicator()
    {
        for (const cudaStream_t stream : streams) (void)cudaStreamSynchronize(stream);
        communicator.reset(); // before the streams that it launched on
        for (const cudaStream_t stream : streams) (void)cudaStreamDestroy(stream);
        (void)cudaGetLastError();
    }
};

namespace stagewright::cuda::module {

namespace {

int done(const StagewrightCommunicator& communicator, int status)
{
    return status == 0 ? 0 : failed(communicator.communicator->error());
}

std::unique_ptr<StagewrightCommunicator> newCommunicator()
{
    std::unique_ptr<StagewrightCommunicator> made(new (std::nothrow) StagewrightCommunicator);
    if (made)
        made->communicator = std::make_unique<NcclCommunicator>(
            theNccl(), [](int device) { return cudaSetDevice(device) == cudaSuccess ? 0 : 1; });
    return made;
}

int addEnd(StagewrightCommunicator& communicator, StagewrightQueue* queue, NcclCommunicator::End* end)
{
    if (int bad = queue->enter()) return bad;
    int lowest = 0;
    int highest = 0;
    cudaStream_t stream = nullptr;
    if (int bad = check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities of streams")) return bad;
    if (int bad = check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "a CUDA stream"))
        return bad;
    communicator.queues.push_back(queue);
    communicator.streams.push_back(stream);
    *end = {queue->request.device, stream};
    return 0;
}

} // namespace

int openCommunicator(StagewrightQueue* const* queues, int32_t count, StagewrightCommunicator** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightCommunicator> made = newCommunicator();
    if (!made) return failed("out of memory");
    std::vector<NcclCommunicator::End> ends(static_cast<std::size_t>(count));
    for (int32_t i = 0; i < count; ++i)
        if (int bad = addEnd(*made, queues[i], &ends[static_cast<std::size_t>(i)])) return bad;
    if (int bad = done(*made, made->communicator->open(std::move(ends)))) return bad;
    *out = made.release();
    return 0;
}

void closeCommunicator(StagewrightCommunicator* communicator) { delete communicator; }

int communicatorAwait(StagewrightCommunicator* communicator, int32_t end, StagewrightMark* mark)
{
    const auto at = static_cast<std::size_t>(end);
    if (int bad = communicator->queues[at]->enter()) return bad;
    return check(cudaStreamWaitEvent(communicator->streams[at], mark->event, 0), "waiting for a CUDA event");
}

int communicatorMark(StagewrightCommunicator* communicator, int32_t end, StagewrightMark** out)
{
    const auto at = static_cast<std::size_t>(end);
    if (int bad = communicator->queues[at]->enter()) return bad;
    return markOn(communicator->streams[at], communicator->queues[at]->request.device, out);
}

int transfer(StagewrightCommunicator* communicator, int32_t from, const void* bytes, int32_t to, void* there,
             size_t count)
{
    return done(*communicator, communicator->communicator->transfer(from, bytes, to, there, count));
}

int collect(StagewrightCommunicator* communicator, int32_t kind, const float* const* from, float* const* to,
            size_t count)
{
    const std::vector<const float*> given(from, from + communicator->queues.size());
    const std::vector<float*> made(to, to + communicator->queues.size());
    if (kind == STAGEWRIGHT_ALL_REDUCE)
        return done(*communicator, communicator->communicator->allReduce(given, made, count));
    if (kind == STAGEWRIGHT_REDUCE_SCATTER)
        return done(*communicator, communicator->communicator->reduceScatter(given, made, count));
    return done(*communicator, communicator->communicator->allGather(given, made, count));
}

int newCommunicatorId(StagewrightCommunicatorId* out)
{
    static_assert(sizeof(ncclUniqueId) == sizeof out->bytes);
    ncclUniqueId id{};
    std::string error;
    if (newId(theNccl(), &id, &error) != 0) return failed(error);
    std::memcpy(out->bytes, &id, sizeof id);
    return 0;
}

int joinCommunicator(StagewrightQueue* queue, const StagewrightCommunicatorId* id, int32_t number, int32_t count,
                     StagewrightCommunicator** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightCommunicator> made = newCommunicator();
    if (!made) return failed("out of memory");
    NcclCommunicator::End end;
    if (int bad = addEnd(*made, queue, &end)) return bad;
    ncclUniqueId given{};
    std::memcpy(&given, id->bytes, sizeof given);
    if (int bad = done(*made, made->communicator->join(end, given, number, count))) return bad;
    *out = made.release();
    return 0;
}

int settleCommunicator(StagewrightCommunicator* communicator)
{
    return done(*communicator, communicator->communicator->settle());
}

int post(StagewrightCommunicator* communicator, const StagewrightPost* posts, int32_t count)
{
    std::vector<NcclCommunicator::Post> given;
    for (const StagewrightPost* one = posts; one != posts + count; ++one)
        given.push_back({one->sends != 0, one->peer, one->data, static_cast<std::size_t>(one->count)});
    return done(*communicator, communicator->communicator->post(given));
}

int pollCommunicator(StagewrightCommunicator* communicator)
{
    return done(*communicator, communicator->communicator->poll());
}

void abortCommunicator(StagewrightCommunicator* communicator) { communicator->communicator->abort(); }

} // namespace stagewright::cuda::module

#else

namespace stagewright::cuda::module {

namespace {

int absent() { return failed("the CUDA module was built without NCCL"); }

} // namespace

int openCommunicator(StagewrightQueue* const*, int32_t, StagewrightCommunicator** out)
{
    *out = nullptr;
    return absent();
}
void closeCommunicator(StagewrightCommunicator*) {}
int communicatorAwait(StagewrightCommunicator*, int32_t, StagewrightMark*) { return absent(); }
int communicatorMark(StagewrightCommunicator*, int32_t, StagewrightMark**) { return absent(); }
int transfer(StagewrightCommunicator*, int32_t, const void*, int32_t, void*, size_t) { return absent(); }
int collect(StagewrightCommunicator*, int32_t, const float* const*, float* const*, size_t) { return absent(); }
int newCommunicatorId(StagewrightCommunicatorId*) { return absent(); }
int joinCommunicator(StagewrightQueue*, const StagewrightCommunicatorId*, int32_t, int32_t,
                     StagewrightCommunicator** out)
{
    *out = nullptr;
    return absent();
}
int settleCommunicator(StagewrightCommunicator*) { return absent(); }
int post(StagewrightCommunicator*, const StagewrightPost*, int32_t) { return absent(); }
int pollCommunicator(StagewrightCommunicator*) { return absent(); }
void abortCommunicator(StagewrightCommunicator*) {}

} // namespace stagewright::cuda::module

#endif
