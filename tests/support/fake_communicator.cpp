// NCCL between the fake devices: every end has its own lane; a message is done where its sender's lane has come to it.
// A thread moves each end on, as a device would, where ends are in several processes: a message passes through shared
// memory once both lanes have come to it, and neither goes on before.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/fake_device.h"

namespace stagewright::fake {

constexpr int mostEnds = 8;
constexpr std::size_t largestMessage = std::size_t{4} << 20;

// From one end to another; counts of messages.
struct Way {
    std::atomic<std::uint64_t> posted; // receives that have begun
    std::atomic<std::uint64_t> sent;   // messages that lie in `data`, or have
    std::atomic<std::uint64_t> taken;
    std::uint64_t bytes;
    char data[largestMessage];
};
struct Meeting {
    std::atomic<int> joined;
    Way ways[mostEnds][mostEnds]; // mostly never touched
};

} // namespace stagewright::fake

struct StagewrightCommunicator {
    std::vector<StagewrightQueue*> queues;
    std::vector<std::unique_ptr<stagewright::fake::LaneState>> lanes;
    int number = 0;
    int messages = 0;
    std::atomic<bool> aborted = false;
    // Only an end whose others are in other processes has these:
    stagewright::fake::Meeting* meeting = nullptr;
    std::string name;
    int own = 0;
    int ends = 0;
    std::vector<std::uint64_t> sends, receives; // posted, by peer
    std::atomic<bool> mismatch = false;
    std::thread device;
    std::atomic<bool> closed = false;
};

namespace stagewright::fake {

namespace {

constexpr const char* kernel = "ncclDevKernel_SendRecv";
constexpr int brokenAfter = 10;

std::string_view request()
{
    const char* text = std::getenv("STAGEWRIGHT_FAKE_NCCL");
    return text != nullptr ? text : "";
}

// Later requests of the lanes wait for all earlier ones.
int meet(StagewrightCommunicator& communicator, const std::vector<int>& ends)
{
    for (const int from : ends) {
        StagewrightMark* mark = nullptr;
        if (int bad = markOn(*communicator.lanes[static_cast<std::size_t>(from)], &mark)) return bad;
        for (const int to : ends)
            if (int bad = to == from ? 0 : awaitOn(*communicator.lanes[static_cast<std::size_t>(to)], mark)) return bad;
        dropMark(mark);
    }
    return 0;
}

int usable(const StagewrightCommunicator& communicator)
{
    return communicator.aborted ? failed("the connection between devices was aborted") : 0;
}

int laneNumber(const StagewrightCommunicator& communicator) { return 2 + communicator.number % 60; }

} // namespace

namespace {

StagewrightCommunicator* kept(std::unique_ptr<StagewrightCommunicator> communicator) // their lanes stay in clocks
{
    static std::mutex mutex;
    static auto& all = *new std::vector<std::unique_ptr<StagewrightCommunicator>>;
    const std::lock_guard lock(mutex);
    communicator->number = static_cast<int>(all.size());
    all.push_back(std::move(communicator));
    return all.back().get();
}

// One side of a message between processes.
struct Side {
    Way* way;
    bool sends;
    void* data;
    std::uint64_t bytes;
    std::uint64_t turn;
    bool done = false;
};

bool advanceSide(StagewrightCommunicator& communicator, Side& side)
{
    Way& way = *side.way;
    if (side.sends) {
        if (way.sent == side.turn && way.taken == side.turn && way.posted > side.turn) {
            std::memcpy(way.data, side.data, side.bytes);
            way.bytes = side.bytes;
            way.sent = side.turn + 1;
        }
        return way.taken > side.turn;
    }
    if (way.posted == side.turn) way.posted = side.turn + 1;
    if (way.sent <= side.turn) return false;
    if (way.bytes != side.bytes) {
        communicator.mismatch = true;
        return false;
    }
    std::memcpy(side.data, way.data, side.bytes);
    way.taken = side.turn + 1;
    return true;
}

} // namespace

int newCommunicatorId(StagewrightCommunicatorId* out)
{
    static std::atomic<int> count = 0;
    if (request() == "absent") return failed("NCCL can't be loaded: there is none");
    const std::string name = "/stagewright-fake-nccl-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    const int file = ::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Meeting)) != 0)
        return failed("opening a connection between devices: no shared memory");
    ::close(file);
    std::memset(out, 0, sizeof *out);
    std::memcpy(out->bytes, name.c_str(), name.size());
    return 0;
}

int joinCommunicator(StagewrightQueue* queue, const StagewrightCommunicatorId* id, int32_t number, int32_t count,
                     StagewrightCommunicator** out)
{
    *out = nullptr;
    if (count > mostEnds) return failed("the fake NCCL connects at most 8 ends");
    const std::string name = reinterpret_cast<const char*>(id->bytes);
    const int file = ::shm_open(name.c_str(), O_RDWR, 0600);
    if (file < 0) return failed("joining the connection between devices: " + name + " is not there");
    void* memory = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) return failed("joining the connection between devices: no memory");
    auto communicator = std::make_unique<StagewrightCommunicator>();
    communicator->meeting = static_cast<Meeting*>(memory);
    communicator->name = name;
    communicator->own = number;
    communicator->ends = count;
    communicator->sends.resize(static_cast<std::size_t>(count));
    communicator->receives.resize(static_cast<std::size_t>(count));
    communicator->queues.push_back(queue);
    communicator->lanes.push_back(std::make_unique<LaneState>());
    addLane(*communicator->lanes.back());
    if (++communicator->meeting->joined == count) ::shm_unlink(name.c_str());
    StagewrightCommunicator* made = kept(std::move(communicator));
    made->device = std::thread([made] {
        while (!made->closed) {
            advance(*made->lanes[0]);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    });
    *out = made;
    return 0;
}

int settleCommunicator(StagewrightCommunicator* communicator)
{
    while (communicator->meeting->joined < communicator->ends && !communicator->aborted)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return usable(*communicator);
}

int post(StagewrightCommunicator* communicator, const StagewrightPost* posts, int32_t count)
{
    if (int bad = usable(*communicator)) return bad;
    communicator->messages += count;
    auto sides = std::make_shared<std::vector<Side>>();
    std::vector<Touched> touched;
    for (const StagewrightPost* one = posts; one != posts + count; ++one) {
        if (one->count > largestMessage) return failed("a message is larger than the fake NCCL's memory");
        if (one->peer < 0 || one->peer >= communicator->ends || one->peer == communicator->own)
            return failed("a message for an end that is not there");
        const auto peer = static_cast<std::size_t>(one->peer);
        Way& way = one->sends != 0 ? communicator->meeting->ways[communicator->own][peer]
                                   : communicator->meeting->ways[peer][communicator->own];
        sides->push_back({&way, one->sends != 0, one->data, one->count,
                          one->sends != 0 ? communicator->sends[peer]++ : communicator->receives[peer]++});
        touched.push_back({one->data, static_cast<std::size_t>(one->count), one->sends == 0});
    }
    return askElsewhere(communicator->queues[0], *communicator->lanes[0], laneNumber(*communicator), kernel, touched,
                        [communicator, sides] {
                            bool done = true;
                            for (Side& side : *sides) {
                                if (communicator->aborted) return true; // as it is
                                side.done = side.done || advanceSide(*communicator, side);
                                done = done && side.done;
                            }
                            return done;
                        });
}

int openCommunicator(StagewrightQueue* const* queues, int32_t count, StagewrightCommunicator** out)
{
    *out = nullptr;
    if (request() == "absent") return failed("NCCL can't be loaded: there is none");
    for (int32_t i = 0; i < count; ++i)
        for (int32_t k = 0; k < i; ++k)
            if (queues[i]->request.device == queues[k]->request.device)
                return failed("NCCL serves one rank per device, but device " +
                              std::to_string(queues[i]->request.device) + " has two");
    auto communicator = std::make_unique<StagewrightCommunicator>();
    for (int32_t i = 0; i < count; ++i) {
        communicator->queues.push_back(queues[i]);
        communicator->lanes.push_back(std::make_unique<LaneState>());
        addLane(*communicator->lanes.back());
    }
    *out = kept(std::move(communicator));
    return 0;
}

void closeCommunicator(StagewrightCommunicator* communicator)
{
    communicator->aborted = true;
    if (!communicator->device.joinable()) return;
    advance(*communicator->lanes[0]);
    communicator->closed = true;
    communicator->device.join();
    ::shm_unlink(communicator->name.c_str());
    ::munmap(communicator->meeting, sizeof(Meeting));
}

int communicatorAwait(StagewrightCommunicator* communicator, int32_t end, StagewrightMark* mark)
{
    return awaitOn(*communicator->lanes[static_cast<std::size_t>(end)], mark);
}

int communicatorMark(StagewrightCommunicator* communicator, int32_t end, StagewrightMark** out)
{
    return markOn(*communicator->lanes[static_cast<std::size_t>(end)], out);
}

int transfer(StagewrightCommunicator* communicator, int32_t from, const void* bytes, int32_t to, void* there,
             std::size_t count)
{
    if (int bad = usable(*communicator)) return bad;
    ++communicator->messages;
    if (int bad = meet(*communicator, {from, to})) return bad;
    const auto sender = static_cast<std::size_t>(from);
    const auto receiver = static_cast<std::size_t>(to);
    if (int bad = askOn(communicator->queues[sender], *communicator->lanes[sender], laneNumber(*communicator), kernel,
                        {{bytes, count, false}}, [=] { std::memcpy(there, bytes, count); }))
        return bad;
    if (int bad = askOn(communicator->queues[receiver], *communicator->lanes[receiver], laneNumber(*communicator),
                        kernel, {{there, count, true}}, [] {}))
        return bad;
    return meet(*communicator, {from, to});
}

int collect(StagewrightCommunicator* communicator, int32_t kind, const float* const* from, float* const* to,
            std::size_t count)
{
    if (int bad = usable(*communicator)) return bad;
    const std::size_t ends = communicator->queues.size();
    std::vector<int> all;
    for (std::size_t end = 0; end < ends; ++end) all.push_back(static_cast<int>(end));
    const std::vector<const float*> given(from, from + ends);
    const std::vector<float*> made(to, to + ends);
    const std::size_t in = kind == STAGEWRIGHT_REDUCE_SCATTER ? count * ends : count;
    const std::size_t out = kind == STAGEWRIGHT_ALL_GATHER ? count * ends : count;
    if (int bad = meet(*communicator, all)) return bad;
    for (std::size_t end = 0; end < ends; ++end) { // the first does it all
        const auto work = [=] {
            std::vector<float> whole(in * (kind == STAGEWRIGHT_ALL_GATHER ? ends : 1), 0.0F);
            for (std::size_t i = 0; i < ends; ++i)
                for (std::size_t k = 0; k < in; ++k)
                    whole[kind == STAGEWRIGHT_ALL_GATHER ? i * in + k : k] += given[i][k];
            for (std::size_t i = 0; i < ends; ++i)
                std::memcpy(made[i], whole.data() + (kind == STAGEWRIGHT_REDUCE_SCATTER ? i * count : 0),
                            out * sizeof(float));
        };
        if (int bad = askOn(
                communicator->queues[end], *communicator->lanes[end], laneNumber(*communicator),
                "ncclDevKernel_AllReduce",
                {{given[end], in * sizeof(float), false}, {made[end], out * sizeof(float), true}},
                end == 0 ? std::function<void()>(work) : [] {}))
            return bad;
    }
    return meet(*communicator, all);
}

int pollCommunicator(StagewrightCommunicator* communicator)
{
    if (communicator->mismatch) return failed("messages between devices: one is not as long as its receive");
    if (request() == "broken" && communicator->messages >= brokenAfter) {
        communicator->aborted = true;
        return failed("the connection between devices: NCCL: remote process exited or there was a network error");
    }
    return usable(*communicator);
}

void abortCommunicator(StagewrightCommunicator* communicator) { communicator->aborted = true; }

} // namespace stagewright::fake
