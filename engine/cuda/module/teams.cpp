// Teams: queues of several devices that NCCL connects. Each end has its own stream next to the queue's, with the
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

#include "engine/cuda/module/nccl_team.h"

struct StagewrightTeam {
    std::unique_ptr<stagewright::cuda::module::NcclTeam> team;
    std::vector<StagewrightQueue*> queues;
    std::vector<cudaStream_t> streams; // by end

    ~StagewrightTeam()
    {
        for (const cudaStream_t stream : streams) (void)cudaStreamSynchronize(stream);
        team.reset(); // before the streams that it launched on
        for (const cudaStream_t stream : streams) (void)cudaStreamDestroy(stream);
        (void)cudaGetLastError();
    }
};

namespace stagewright::cuda::module {

namespace {

int done(const StagewrightTeam& team, int status) { return status == 0 ? 0 : failed(team.team->error()); }

std::unique_ptr<StagewrightTeam> newTeam()
{
    std::unique_ptr<StagewrightTeam> made(new (std::nothrow) StagewrightTeam);
    if (made)
        made->team = std::make_unique<NcclTeam>(
            theNccl(), [](int device) { return cudaSetDevice(device) == cudaSuccess ? 0 : 1; });
    return made;
}

int addEnd(StagewrightTeam& team, StagewrightQueue* queue, NcclTeam::End* end)
{
    if (int bad = queue->enter()) return bad;
    int lowest = 0;
    int highest = 0;
    cudaStream_t stream = nullptr;
    if (int bad = check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "priorities of streams")) return bad;
    if (int bad = check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, highest), "a CUDA stream"))
        return bad;
    team.queues.push_back(queue);
    team.streams.push_back(stream);
    *end = {queue->wish.device, stream};
    return 0;
}

} // namespace

int openTeam(StagewrightQueue* const* queues, int32_t count, StagewrightTeam** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightTeam> made = newTeam();
    if (!made) return failed("out of memory");
    std::vector<NcclTeam::End> ends(static_cast<std::size_t>(count));
    for (int32_t i = 0; i < count; ++i)
        if (int bad = addEnd(*made, queues[i], &ends[static_cast<std::size_t>(i)])) return bad;
    if (int bad = done(*made, made->team->open(std::move(ends)))) return bad;
    *out = made.release();
    return 0;
}

void closeTeam(StagewrightTeam* team) { delete team; }

int teamAwait(StagewrightTeam* team, int32_t end, StagewrightMark* mark)
{
    const auto at = static_cast<std::size_t>(end);
    if (int bad = team->queues[at]->enter()) return bad;
    return check(cudaStreamWaitEvent(team->streams[at], mark->event, 0), "waiting for a CUDA event");
}

int teamMark(StagewrightTeam* team, int32_t end, StagewrightMark** out)
{
    const auto at = static_cast<std::size_t>(end);
    if (int bad = team->queues[at]->enter()) return bad;
    return markOn(team->streams[at], team->queues[at]->wish.device, out);
}

int transfer(StagewrightTeam* team, int32_t from, const void* bytes, int32_t to, void* there, size_t count)
{
    return done(*team, team->team->transfer(from, bytes, to, there, count));
}

int collect(StagewrightTeam* team, int32_t kind, const float* const* from, float* const* to, size_t count)
{
    const std::vector<const float*> given(from, from + team->queues.size());
    const std::vector<float*> made(to, to + team->queues.size());
    if (kind == STAGEWRIGHT_ALL_REDUCE) return done(*team, team->team->allReduce(given, made, count));
    if (kind == STAGEWRIGHT_REDUCE_SCATTER) return done(*team, team->team->reduceScatter(given, made, count));
    return done(*team, team->team->allGather(given, made, count));
}

int newTeamId(StagewrightTeamId* out)
{
    static_assert(sizeof(ncclUniqueId) == sizeof out->bytes);
    ncclUniqueId id{};
    std::string error;
    if (newId(theNccl(), &id, &error) != 0) return failed(error);
    std::memcpy(out->bytes, &id, sizeof id);
    return 0;
}

int joinTeam(StagewrightQueue* queue, const StagewrightTeamId* id, int32_t number, int32_t count, StagewrightTeam** out)
{
    *out = nullptr;
    std::unique_ptr<StagewrightTeam> made = newTeam();
    if (!made) return failed("out of memory");
    NcclTeam::End end;
    if (int bad = addEnd(*made, queue, &end)) return bad;
    ncclUniqueId given{};
    std::memcpy(&given, id->bytes, sizeof given);
    if (int bad = done(*made, made->team->join(end, given, number, count))) return bad;
    *out = made.release();
    return 0;
}

int settleTeam(StagewrightTeam* team) { return done(*team, team->team->settle()); }

int post(StagewrightTeam* team, const StagewrightPost* posts, int32_t count)
{
    std::vector<NcclTeam::Post> given;
    for (const StagewrightPost* one = posts; one != posts + count; ++one)
        given.push_back({one->sends != 0, one->peer, one->data, static_cast<std::size_t>(one->count)});
    return done(*team, team->team->post(given));
}

int pollTeam(StagewrightTeam* team) { return done(*team, team->team->poll()); }

void abortTeam(StagewrightTeam* team) { team->team->abort(); }

} // namespace stagewright::cuda::module

#else

namespace stagewright::cuda::module {

namespace {

int absent() { return failed("the CUDA module was built without NCCL"); }

} // namespace

int openTeam(StagewrightQueue* const*, int32_t, StagewrightTeam** out)
{
    *out = nullptr;
    return absent();
}
void closeTeam(StagewrightTeam*) {}
int teamAwait(StagewrightTeam*, int32_t, StagewrightMark*) { return absent(); }
int teamMark(StagewrightTeam*, int32_t, StagewrightMark**) { return absent(); }
int transfer(StagewrightTeam*, int32_t, const void*, int32_t, void*, size_t) { return absent(); }
int collect(StagewrightTeam*, int32_t, const float* const*, float* const*, size_t) { return absent(); }
int newTeamId(StagewrightTeamId*) { return absent(); }
int joinTeam(StagewrightQueue*, const StagewrightTeamId*, int32_t, int32_t, StagewrightTeam** out)
{
    *out = nullptr;
    return absent();
}
int settleTeam(StagewrightTeam*) { return absent(); }
int post(StagewrightTeam*, const StagewrightPost*, int32_t) { return absent(); }
int pollTeam(StagewrightTeam*) { return absent(); }
void abortTeam(StagewrightTeam*) {}

} // namespace stagewright::cuda::module

#endif
