#include "tests/support/fake_device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace stagewright::fake {

namespace {

void join(Clock& to, const Clock& from)
{
    for (const auto& [lane, count] : from) to[lane] = std::max(to[lane], count);
}

std::int64_t now()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

struct Access {
    const LaneState* lane = nullptr;
    std::uint64_t number = 0;
    const char* what = "";
};

struct Range // of bytes, by its first byte
{
    std::uintptr_t end = 0;
    Access write;
    std::vector<Access> reads; // one a lane, the newest
};

std::mutex theMutex;
thread_local std::string theError;
Clock theHost; // what some thread has waited for
std::map<std::uintptr_t, Range> theRanges;
std::map<std::uintptr_t, std::size_t> theBlocks;
std::map<int, std::size_t> theUse;
std::vector<LaneState*> theLanes;
std::vector<std::shared_ptr<StagewrightQueue>> theQueues; // closed ones too: their lanes stay in clocks

long number(const char* name, long otherwise)
{
    const char* text = std::getenv(name);
    return text && *text ? std::atol(text) : otherwise;
}

// Does the requests of a lane up to a mark (null: all), and before that what they wait for. False: another process is
// not there yet.
bool run(LaneState& lane, const StagewrightMark* until)
{
    while (!lane.items.empty() && !(until && until->passed)) {
        if (lane.items.front().waits && !lane.items.front().waits->passed) {
            const std::shared_ptr<StagewrightMark> mark = lane.items.front().waits;
            if (!run(*mark->lane, mark.get())) return false;
        }
        const bool elsewhere = lane.items.front().elsewhere != nullptr;
        if (elsewhere && !lane.items.front().elsewhere()) return false;
        Item item = std::move(lane.items.front());
        lane.items.pop_front();
        if (item.waits) lane.time = std::max(lane.time, item.waits->time);
        if (elsewhere) lane.time = std::max(lane.time, now());
        lane.time = std::max(lane.time, item.asked) + item.nanos;
        if (item.work) item.work();
        ran(item.launch, lane.time - item.nanos, lane.time);
        if (item.passes) {
            item.passes->passed = true;
            item.passes->time = lane.time;
        }
    }
    return true;
}

// All of the lane, under the lock, which is let go of while another process is waited for.
void runAll(LaneState& lane, std::unique_lock<std::mutex>& lock)
{
    while (!run(lane, nullptr)) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        lock.lock();
    }
}

bool before(const Access& access, const LaneState& lane)
{
    if (!access.lane || access.lane == &lane) return true;
    const auto seen = lane.seen.find(access.lane);
    return seen != lane.seen.end() && seen->second >= access.number;
}

// Cuts the known ranges at `at`.
void cut(std::uintptr_t at)
{
    auto next = theRanges.upper_bound(at);
    if (next == theRanges.begin()) return;
    auto range = std::prev(next);
    if (range->first == at || range->second.end <= at) return;
    Range second = range->second;
    range->second.end = at;
    theRanges.emplace(at, std::move(second));
}

int touch(LaneState& lane, const char* what, const Touched& touched)
{
    if (touched.bytes == 0 || !touched.from) return 0;
    const auto begin = reinterpret_cast<std::uintptr_t>(touched.from);
    const std::uintptr_t end = begin + touched.bytes;
    auto block = theBlocks.upper_bound(begin);
    if (block == theBlocks.begin() || std::prev(block)->first + std::prev(block)->second < end)
        return failed(std::string(what) + ": touches memory that was not taken");
    cut(begin);
    cut(end);
    const Access mine{&lane, lane.asked, what};
    std::uintptr_t at = begin;
    for (auto range = theRanges.lower_bound(begin); at < end; ++range) {
        if (range == theRanges.end() || range->first > at) { // never touched
            const std::uintptr_t gapEnd = range == theRanges.end() ? end : std::min(end, range->first);
            range = theRanges.emplace(at, Range{gapEnd, {}, {}}).first;
        }
        Range& r = range->second;
        if (!before(r.write, lane))
            return failed(std::string("race: ") + what + (touched.writes ? " writes" : " reads") + " what " +
                          r.write.what + " writes on another queue, and no mark puts them in order");
        if (touched.writes) {
            for (const Access& read : r.reads)
                if (!before(read, lane))
                    return failed(std::string("race: ") + what + " writes what " + read.what +
                                  " reads on another queue, and no mark puts them in order");
            r.write = mine;
            r.reads.clear();
        } else {
            std::erase_if(r.reads, [&](const Access& read) { return read.lane == &lane; });
            r.reads.push_back(mine);
        }
        at = r.end;
    }
    return 0;
}

// The host has seen all of the lane.
void settle(LaneState& lane, std::unique_lock<std::mutex>& lock)
{
    runAll(lane, lock);
    join(lane.seen, theHost);
    join(theHost, lane.seen);
    theHost[&lane] = std::max(theHost[&lane], lane.asked);
}

} // namespace

int failed(std::string text)
{
    theError = std::move(text);
    return 1;
}

int ask(StagewrightQueue* queue, int laneNumber, const char* what, const std::vector<Touched>& touched,
        std::function<void()> work)
{
    return askOn(queue, queue->lanes[laneNumber], laneNumber, what, touched, std::move(work));
}

void addLane(LaneState& lane)
{
    const std::lock_guard lock(theMutex);
    theLanes.push_back(&lane);
}

void advance(LaneState& lane)
{
    const std::lock_guard lock(theMutex);
    (void)run(lane, nullptr);
}

namespace {

int askItem(StagewrightQueue* queue, LaneState& lane, int laneNumber, const char* what,
            const std::vector<Touched>& touched, Item item)
{
    const std::int64_t begun = now();
    const std::lock_guard lock(theMutex);
    join(lane.seen, theHost);
    ++lane.asked;
    std::int64_t nanos = 1000;
    std::size_t bytes = 0;
    for (const Touched& t : touched) {
        if (int bad = touch(lane, what, t)) return bad;
        nanos += static_cast<std::int64_t>(t.from ? t.bytes / 16 : 0);
        bytes = t.bytes;
    }
    item.nanos = nanos;
    item.asked = now();
    item.launch = launched(what, bytes, queue->request.device, queue->number, laneNumber, begun, item.asked);
    lane.items.push_back(std::move(item));
    return 0;
}

} // namespace

int askOn(StagewrightQueue* queue, LaneState& lane, int laneNumber, const char* what,
          const std::vector<Touched>& touched, std::function<void()> work)
{
    Item item;
    item.work = std::move(work);
    return askItem(queue, lane, laneNumber, what, touched, std::move(item));
}

int askElsewhere(StagewrightQueue* queue, LaneState& lane, int laneNumber, const char* what,
                 const std::vector<Touched>& touched, std::function<bool()> done)
{
    Item item;
    item.elsewhere = std::move(done);
    return askItem(queue, lane, laneNumber, what, touched, std::move(item));
}

const char* lastError() { return theError.c_str(); }

int facts(StagewrightCudaFacts* out)
{
    std::memset(out, 0, sizeof *out);
    out->runtimeVersion = out->driverVersion = 13000;
    std::strcpy(out->moduleVersion, "fake");
    std::strcpy(out->architectures, "none");
    return 0;
}
int deviceCount(int32_t* out)
{
    *out = static_cast<int32_t>(number("STAGEWRIGHT_FAKE_DEVICES", 1));
    return 0;
}
std::size_t memoryOf() { return static_cast<std::size_t>(number("STAGEWRIGHT_FAKE_MEMORY", 1L << 30)); }
int describe(int32_t device, StagewrightCudaDevice* out)
{
    const std::lock_guard lock(theMutex);
    std::memset(out, 0, sizeof *out);
    std::strcpy(out->name, "fake device");
    out->major = 9;
    out->multiprocessors = 8;
    out->greenContexts = 1;
    out->totalBytes = memoryOf();
    out->freeBytes = memoryOf() - theUse[device];
    std::strcpy(out->unit, ("fake " + std::to_string(device)).c_str());
    return 0;
}

int take(int32_t device, std::size_t bytes, void** out)
{
    const std::lock_guard lock(theMutex);
    *out = nullptr;
    if (theUse[device] + bytes > memoryOf()) return 0;
    void* block = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memset(block, 0xff, bytes); // not a number: what reads it before it is written spoils the result
    theUse[device] += bytes;
    theBlocks[reinterpret_cast<std::uintptr_t>(block)] = bytes;
    *out = block;
    return 0;
}
int give(int32_t device, void* block)
{
    std::unique_lock lock(theMutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const auto found = theBlocks.find(begin);
    if (found == theBlocks.end()) return failed("memory is given back that was not taken");
    for (std::size_t i = 0; i < theLanes.size(); ++i) // as the real one: everything is done first
        runAll(*theLanes[i], lock);
    cut(begin + found->second);
    theRanges.erase(theRanges.lower_bound(begin), theRanges.lower_bound(begin + found->second));
    theUse[device] -= found->second;
    theBlocks.erase(found);
    std::free(block);
    return 0;
}

int openQueue(const StagewrightQueueRequest* request, StagewrightQueue** out)
{
    const std::lock_guard lock(theMutex);
    auto queue = std::make_shared<StagewrightQueue>();
    queue->request = *request;
    queue->number = static_cast<std::uint32_t>(theQueues.size());
    *out = queue.get();
    for (LaneState& lane : queue->lanes) theLanes.push_back(&lane);
    theQueues.push_back(std::move(queue));
    return 0;
}
int enter(StagewrightQueue*) { return 0; }
int finish(StagewrightQueue* queue)
{
    std::unique_lock lock(theMutex);
    for (LaneState& lane : queue->lanes) settle(lane, lock);
    return 0;
}
void closeQueue(StagewrightQueue* queue)
{
    (void)finish(queue);
    for (LaneState& lane : queue->lanes) lane.closed = true;
}
int finished(StagewrightQueue* queue, int32_t* out) // a step at a time, as time passes
{
    const std::lock_guard lock(theMutex);
    *out = 1;
    for (LaneState& lane : queue->lanes) {
        if (lane.items.empty()) continue;
        (void)run(lane, nullptr);
        *out = 0;
    }
    return 0;
}
int mark(StagewrightQueue* queue, int32_t laneNumber, StagewrightMark** out)
{
    return markOn(queue->lanes[laneNumber], out);
}
int markOn(LaneState& lane, StagewrightMark** out)
{
    const std::lock_guard lock(theMutex);
    auto made = std::make_shared<StagewrightMark>();
    made->lane = &lane;
    made->seen = lane.seen;
    made->seen[&lane] = lane.asked;
    Item item;
    item.passes = made.get();
    item.asked = now();
    lane.items.push_back(std::move(item));
    lane.items.back().work = [made] {}; // as long as it is under way
    *out = made.get();
    made->self = std::move(made);
    return 0;
}
void dropMark(StagewrightMark* mark)
{
    const std::lock_guard lock(theMutex);
    if (mark->lane->closed) { // its event would be of a context that is gone
        (void)std::fputs("fake device: a mark is dropped after its queue was closed\n", stderr);
        std::abort();
    }
    const std::shared_ptr<StagewrightMark> gone = std::move(mark->self);
}
int await(StagewrightQueue* queue, int32_t laneNumber, StagewrightMark* mark)
{
    return awaitOn(queue->lanes[laneNumber], mark);
}
int awaitOn(LaneState& lane, StagewrightMark* mark)
{
    const std::lock_guard lock(theMutex);
    join(lane.seen, mark->seen);
    Item item;
    item.waits = mark->self;
    lane.items.push_back(std::move(item));
    return 0;
}
int nanosBetween(StagewrightMark* from, StagewrightMark* to, int64_t* out)
{
    const std::lock_guard lock(theMutex);
    if (from->lane->closed || to->lane->closed) return failed("a mark's time is asked for after its queue was closed");
    if (!from->passed || !to->passed) return failed("a mark's time is asked for before it is passed");
    *out = to->time - from->time;
    return 0;
}

int copyRows(StagewrightQueue* queue, int32_t lane, void* to, std::size_t toStride, const void* from,
             std::size_t fromStride, std::size_t bytes, std::size_t rows)
{
    if (rows == 0) return 0;
    if (rows > 1 && (bytes > toStride || bytes > fromStride)) // as cudaMemcpy2DAsync
        return failed("copy: rows of " + std::to_string(bytes) + " bytes begin " +
                      std::to_string(std::min(toStride, fromStride)) + " apart");
    return ask(queue, lane, "copy",
               {{from, (rows - 1) * fromStride + bytes, false}, {to, (rows - 1) * toStride + bytes, true}}, [=] {
                   for (std::size_t r = 0; r < rows; ++r)
                       std::memcpy(static_cast<char*>(to) + r * toStride,
                                   static_cast<const char*>(from) + r * fromStride, bytes);
               });
}
int clear(StagewrightQueue* queue, void* to, std::size_t bytes)
{
    return ask(queue, 0, "clear", {{to, bytes, true}}, [=] { std::memset(to, 0, bytes); });
}
int upload(StagewrightQueue* queue, void* to, const void* host, std::size_t bytes)
{
    const auto* first = static_cast<const char*>(host);
    return ask(queue, 0, "upload", {{to, bytes, true}},
               [to, kept = std::vector<char>(first, first + bytes)] { std::memcpy(to, kept.data(), kept.size()); });
}
int download(StagewrightQueue* queue, void* host, const void* from, std::size_t bytes)
{
    if (int bad = ask(queue, 0, "download", {{from, bytes, false}}, [=] { std::memcpy(host, from, bytes); }))
        return bad;
    std::unique_lock lock(theMutex);
    settle(queue->lanes[0], lock);
    return 0;
}

} // namespace stagewright::fake
