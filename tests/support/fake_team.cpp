// NCCL between the fake devices: every end has its own lane; a message is done where its sender's lane has come to it.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "tests/support/fake_device.h"

struct StagewrightTeam {
    std::vector<StagewrightQueue*> queues;
    std::vector<std::unique_ptr<stagewright::fake::LaneState>> lanes;
    int number = 0;
    int messages = 0;
    std::atomic<bool> aborted = false;
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

int laneNumber(const StagewrightTeam& team)
{
    return 2 + team.number % 60;
}

} // namespace

int openTeam(StagewrightQueue* const* queues, int32_t count, StagewrightTeam** out)
{
    static std::mutex mutex;
    static std::vector<std::unique_ptr<StagewrightTeam>> all; // their lanes stay in clocks
    *out = nullptr;
    if (wish() == "absent") return failed("NCCL can't be loaded: there is none");
    for (int32_t i = 0; i < count; ++i)
        for (int32_t k = 0; k < i; ++k)
            if (queues[i]->wish.device == queues[k]->wish.device)
                return failed("NCCL serves one rank per device, but device " + std::to_string(queues[i]->wish.device) + " has two");
    auto team = std::make_unique<StagewrightTeam>();
    for (int32_t i = 0; i < count; ++i) {
        team->queues.push_back(queues[i]);
        team->lanes.push_back(std::make_unique<LaneState>());
        addLane(*team->lanes.back());
    }
    const std::lock_guard lock(mutex);
    team->number = static_cast<int>(all.size());
    *out = team.get();
    all.push_back(std::move(team));
    return 0;
}

void closeTeam(StagewrightTeam* team)
{
    team->aborted = true;
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
    if (int bad = askOn(team->queues[receiver], *team->lanes[receiver], laneNumber(*team), kernel, {{there, count, true}}, [] {})) return bad;
    return meet(*team, {from, to});
}

int collect(StagewrightTeam* team, int32_t kind, const float* const* from, float* const* to, std::size_t count)
{
    if (int bad = usable(*team)) return bad;
    const std::size_t ends = team->queues.size();
    std::vector<int> all;
    for (std::size_t end = 0; end < ends; ++end)
        all.push_back(static_cast<int>(end));
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
                std::memcpy(made[i], whole.data() + (kind == STAGEWRIGHT_REDUCE_SCATTER ? i * count : 0), out * sizeof(float));
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
    if (wish() == "broken" && team->messages >= brokenAfter) {
        team->aborted = true;
        return failed("the connection between devices: NCCL: remote process exited or there was a network error");
    }
    return usable(*team);
}

void abortTeam(StagewrightTeam* team)
{
    team->aborted = true;
}

} // namespace stagewright::fake
