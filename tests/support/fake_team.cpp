// NCCL between the fake devices: every end has its own lane; a message is done where its sender's lane has come to it.
// Of ends in several processes a thread moves each on, as a device would: a message passes through shared memory once
// both lanes have come to it, and neither goes on before.
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

struct StagewrightTeam {
    std::vector<StagewrightQueue*> queues;
    std::vector<std::unique_ptr<stagewright::fake::LaneState>> lanes;
    int number = 0;
    int messages = 0;
    std::atomic<bool> aborted = false;
    // Of an end whose others are in other processes:
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

std::string_view wish()
{
    const char* text = std::getenv("STAGEWRIGHT_FAKE_NCCL");
    return text != nullptr ? text : "";
}

// Later requests of the lanes wait for all earlier ones.
int meet(StagewrightTeam& team, const std::vector<int>& ends)
{
    for (const int from : ends) {
        StagewrightMark* mark = nullptr;
        if (int bad = markOn(*team.lanes[static_cast<std::size_t>(from)], &mark)) return bad;
        for (const int to : ends)
            if (int bad = to == from ? 0 : awaitOn(*team.lanes[static_cast<std::size_t>(to)], mark)) return bad;
        dropMark(mark);
    }
    return 0;
}

int usable(const StagewrightTeam& team)
{
    return team.aborted ? failed("the connection between devices was aborted") : 0;
}

int laneNumber(const StagewrightTeam& team) { return 2 + team.number % 60; }

} // namespace

namespace {

StagewrightTeam* kept(std::unique_ptr<StagewrightTeam> team) // their lanes stay in clocks
{
    static std::mutex mutex;
    static auto& all = *new std::vector<std::unique_ptr<StagewrightTeam>>;
    const std::lock_guard lock(mutex);
    team->number = static_cast<int>(all.size());
    all.push_back(std::move(team));
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

bool advanceSide(StagewrightTeam& team, Side& side)
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
        team.mismatch = true;
        return false;
    }
    std::memcpy(side.data, way.data, side.bytes);
    way.taken = side.turn + 1;
    return true;
}

} // namespace

int newTeamId(StagewrightTeamId* out)
{
    static std::atomic<int> count = 0;
    if (wish() == "absent") return failed("NCCL can't be loaded: there is none");
    const std::string name = "/stagewright-fake-nccl-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    const int file = ::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(Meeting)) != 0)
        return failed("opening a connection between devices: no shared memory");
    ::close(file);
    std::memset(out, 0, sizeof *out);
    std::memcpy(out->bytes, name.c_str(), name.size());
    return 0;
}

int joinTeam(StagewrightQueue* queue, const StagewrightTeamId* id, int32_t number, int32_t count, StagewrightTeam** out)
{
    *out = nullptr;
    if (count > mostEnds) return failed("the fake NCCL connects at most 8 ends");
    const std::string name = reinterpret_cast<const char*>(id->bytes);
    const int file = ::shm_open(name.c_str(), O_RDWR, 0600);
    if (file < 0) return failed("joining the connection between devices: " + name + " is not there");
    void* memory = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) return failed("joining the connection between devices: no memory");
    auto team = std::make_unique<StagewrightTeam>();
    team->meeting = static_cast<Meeting*>(memory);
    team->name = name;
    team->own = number;
    team->ends = count;
    team->sends.resize(static_cast<std::size_t>(count));
    team->receives.resize(static_cast<std::size_t>(count));
    team->queues.push_back(queue);
    team->lanes.push_back(std::make_unique<LaneState>());
    addLane(*team->lanes.back());
    if (++team->meeting->joined == count) ::shm_unlink(name.c_str());
    StagewrightTeam* made = kept(std::move(team));
    made->device = std::thread([made] {
        while (!made->closed) {
            advance(*made->lanes[0]);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    });
    *out = made;
    return 0;
}

int settleTeam(StagewrightTeam* team)
{
    while (team->meeting->joined < team->ends && !team->aborted)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return usable(*team);
}

int post(StagewrightTeam* team, const StagewrightPost* posts, int32_t count)
{
    if (int bad = usable(*team)) return bad;
    team->messages += count;
    auto sides = std::make_shared<std::vector<Side>>();
    std::vector<Touched> touched;
    for (const StagewrightPost* one = posts; one != posts + count; ++one) {
        if (one->count > largestMessage) return failed("a message is larger than the fake NCCL's memory");
        if (one->peer < 0 || one->peer >= team->ends || one->peer == team->own)
            return failed("a message for an end that is not there");
        const auto peer = static_cast<std::size_t>(one->peer);
        Way& way = one->sends != 0 ? team->meeting->ways[team->own][peer] : team->meeting->ways[peer][team->own];
        sides->push_back({&way, one->sends != 0, one->data, one->count,
                          one->sends != 0 ? team->sends[peer]++ : team->receives[peer]++});
        touched.push_back({one->data, static_cast<std::size_t>(one->count), one->sends == 0});
    }
    return askElsewhere(team->queues[0], *team->lanes[0], laneNumber(*team), kernel, touched, [team, sides] {
        bool done = true;
        for (Side& side : *sides) {
            if (team->aborted) return true; // as it is
            side.done = side.done || advanceSide(*team, side);
            done = done && side.done;
        }
        return done;
    });
}

int openTeam(StagewrightQueue* const* queues, int32_t count, StagewrightTeam** out)
{
    *out = nullptr;
    if (wish() == "absent") return failed("NCCL can't be loaded: there is none");
    for (int32_t i = 0; i < count; ++i)
        for (int32_t k = 0; k < i; ++k)
            if (queues[i]->wish.device == queues[k]->wish.device)
                return failed("NCCL serves one rank per device, but device " + std::to_string(queues[i]->wish.device) +
                              " has two");
    auto team = std::make_unique<StagewrightTeam>();
    for (int32_t i = 0; i < count; ++i) {
        team->queues.push_back(queues[i]);
        team->lanes.push_back(std::make_unique<LaneState>());
        addLane(*team->lanes.back());
    }
    *out = kept(std::move(team));
    return 0;
}

void closeTeam(StagewrightTeam* team)
{
    team->aborted = true;
    if (!team->device.joinable()) return;
    advance(*team->lanes[0]);
    team->closed = true;
    team->device.join();
    ::shm_unlink(team->name.c_str());
    ::munmap(team->meeting, sizeof(Meeting));
}

int teamAwait(StagewrightTeam* team, int32_t end, StagewrightMark* mark)
{
    return awaitOn(*team->lanes[static_cast<std::size_t>(end)], mark);
}

int teamMark(StagewrightTeam* team, int32_t end, StagewrightMark** out)
{
    return markOn(*team->lanes[static_cast<std::size_t>(end)], out);
}

int transfer(StagewrightTeam* team, int32_t from, const void* bytes, int32_t to, void* there, std::size_t count)
{
    if (int bad = usable(*team)) return bad;
    ++team->messages;
    if (int bad = meet(*team, {from, to})) return bad;
    const auto sender = static_cast<std::size_t>(from);
    const auto receiver = static_cast<std::size_t>(to);
    if (int bad = askOn(team->queues[sender], *team->lanes[sender], laneNumber(*team), kernel, {{bytes, count, false}},
                        [=] { std::memcpy(there, bytes, count); }))
        return bad;
    if (int bad = askOn(team->queues[receiver], *team->lanes[receiver], laneNumber(*team), kernel,
                        {{there, count, true}}, [] {}))
        return bad;
    return meet(*team, {from, to});
}

int collect(StagewrightTeam* team, int32_t kind, const float* const* from, float* const* to, std::size_t count)
{
    if (int bad = usable(*team)) return bad;
    const std::size_t ends = team->queues.size();
    std::vector<int> all;
    for (std::size_t end = 0; end < ends; ++end) all.push_back(static_cast<int>(end));
    const std::vector<const float*> given(from, from + ends);
    const std::vector<float*> made(to, to + ends);
    const std::size_t in = kind == STAGEWRIGHT_REDUCE_SCATTER ? count * ends : count;
    const std::size_t out = kind == STAGEWRIGHT_ALL_GATHER ? count * ends : count;
    if (int bad = meet(*team, all)) return bad;
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
                team->queues[end], *team->lanes[end], laneNumber(*team), "ncclDevKernel_AllReduce",
                {{given[end], in * sizeof(float), false}, {made[end], out * sizeof(float), true}},
                end == 0 ? std::function<void()>(work) : [] {}))
            return bad;
    }
    return meet(*team, all);
}

int pollTeam(StagewrightTeam* team)
{
    if (team->mismatch) return failed("messages between devices: one is not as long as its receive");
    if (wish() == "broken" && team->messages >= brokenAfter) {
        team->aborted = true;
        return failed("the connection between devices: NCCL: remote process exited or there was a network error");
    }
    return usable(*team);
}

void abortTeam(StagewrightTeam* team) { team->aborted = true; }

} // namespace stagewright::fake
