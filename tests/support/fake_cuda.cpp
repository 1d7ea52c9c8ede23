// A CUDA module without CUDA: the same table as libstagewright_cuda.so over the host's memory, with the kernels' own bodies.
// What is asked for is not done until somebody must see it, and then only what it waits for: as late as the marks allow. Every
// range that work reads or writes is held against what other lanes did to it: work that no mark puts in order fails at once,
// naming both. Times are made up: a microsecond a piece of work and a nanosecond for every 16 bytes, in order of lanes and marks, and
// not before it was asked for.
//   STAGEWRIGHT_FAKE_DEVICES   how many devices [1]     STAGEWRIGHT_FAKE_MEMORY   bytes of each [1 GiB]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/cuda/kernel_bodies.h"

namespace {

using namespace stagewright::cuda;

struct LaneState;

using Clock = std::map<const LaneState*, std::uint64_t>; // how much of each lane has been done before

void join(Clock& to, const Clock& from)
{
    for (const auto& [lane, count] : from)
        to[lane] = std::max(to[lane], count);
}

struct Item
{
    std::function<void()> work; // or
    StagewrightMark* passes = nullptr;
    std::shared_ptr<StagewrightMark> waits;
    std::int64_t nanos = 0;
    std::int64_t asked = 0;
};

std::int64_t now()
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct LaneState
{
    std::deque<Item> items;
    std::uint64_t asked = 0;
    Clock seen;
    std::int64_t time = 0;
};

struct Access
{
    const LaneState* lane = nullptr;
    std::uint64_t number = 0;
    const char* what = "";
};

struct Range // of bytes, by its begin
{
    std::uintptr_t end = 0;
    Access write;
    std::vector<Access> reads; // one a lane, the newest
};

} // namespace

struct StagewrightMark
{
    LaneState* lane = nullptr;
    bool passed = false;
    std::int64_t time = 0;
    Clock seen;
    std::shared_ptr<StagewrightMark> self;
};

struct StagewrightQueue
{
    StagewrightQueueWish wish{};
    LaneState lanes[2];
};

namespace {

std::mutex theMutex;
thread_local std::string theError;
Clock theHost; // what some thread has waited for
std::map<std::uintptr_t, Range> theRanges;
std::map<std::uintptr_t, std::size_t> theBlocks;
std::map<int, std::size_t> theUse;
std::vector<std::shared_ptr<StagewrightQueue>> theQueues; // closed ones too: their lanes stay in clocks

int failed(std::string text)
{
    theError = std::move(text);
    return 1;
}

long number(const char* name, long otherwise)
{
    const char* text = std::getenv(name);
    return text && *text ? std::atol(text) : otherwise;
}

// Does what a lane was asked for up to a mark (null: all of it), and before that what it waits for.
void run(LaneState& lane, const StagewrightMark* until)
{
    while (!lane.items.empty() && !(until && until->passed)) {
        if (lane.items.front().waits && !lane.items.front().waits->passed) {
            const std::shared_ptr<StagewrightMark> mark = lane.items.front().waits;
            run(*mark->lane, mark.get());
        }
        Item item = std::move(lane.items.front());
        lane.items.pop_front();
        if (item.waits) lane.time = std::max(lane.time, item.waits->time);
        lane.time = std::max(lane.time, item.asked) + item.nanos;
        if (item.work) item.work();
        if (item.passes) {
            item.passes->passed = true;
            item.passes->time = lane.time;
        }
    }
}

bool before(const Access& access, const LaneState& lane)
{
    if (!access.lane || access.lane == &lane) return true;
    const auto seen = lane.seen.find(access.lane);
    return seen != lane.seen.end() && seen->second >= access.number;
}

struct Touched
{
    const void* from;
    std::size_t bytes;
    bool writes;
};

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
            return failed(std::string("race: ") + what + (touched.writes ? " writes" : " reads") + " what " + r.write.what +
                          " writes on another queue, and no mark puts them in order");
        if (touched.writes) {
            for (const Access& read : r.reads)
                if (!before(read, lane))
                    return failed(std::string("race: ") + what + " writes what " + read.what + " reads on another queue, and no mark puts them in order");
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

// Asks a lane for work on what it touches.
int ask(StagewrightQueue* queue, int laneNumber, const char* what, std::initializer_list<Touched> touched, std::function<void()> work)
{
    const std::lock_guard lock(theMutex);
    LaneState& lane = queue->lanes[laneNumber];
    join(lane.seen, theHost);
    ++lane.asked;
    std::int64_t nanos = 1000;
    for (const Touched& t : touched) {
        if (int bad = touch(lane, what, t)) return bad;
        nanos += static_cast<std::int64_t>(t.from ? t.bytes / 16 : 0);
    }
    Item item;
    item.work = std::move(work);
    item.nanos = nanos;
    item.asked = now();
    lane.items.push_back(std::move(item));
    return 0;
}

// The host has seen all of the lane.
void settle(LaneState& lane)
{
    run(lane, nullptr);
    join(lane.seen, theHost);
    join(theHost, lane.seen);
    theHost[&lane] = std::max(theHost[&lane], lane.asked);
}

template <typename Work> int withElements(const StagewrightQueue* queue, Work&& work)
{
    return queue->wish.narrow != 0 ? work(Bf16{}) : work(Fp32{});
}
std::size_t width(const StagewrightQueue* queue)
{
    return queue->wish.narrow != 0 ? 2 : 4;
}
template <typename... Sizes> std::size_t times(Sizes... sizes)
{
    return (static_cast<std::size_t>(sizes) * ...);
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
    std::strcpy(out->name, "device made up for tests");
    out->major = 9;
    out->multiprocessors = 8;
    out->greenContexts = 1;
    out->totalBytes = memoryOf();
    out->freeBytes = memoryOf() - theUse[device];
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
    const std::lock_guard lock(theMutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const auto found = theBlocks.find(begin);
    if (found == theBlocks.end()) return failed("memory is given back that was not taken");
    for (const auto& queue : theQueues) // as the real one: everything is done first
        for (LaneState& lane : queue->lanes)
            run(lane, nullptr);
    cut(begin + found->second);
    theRanges.erase(theRanges.lower_bound(begin), theRanges.lower_bound(begin + found->second));
    theUse[device] -= found->second;
    theBlocks.erase(found);
    std::free(block);
    return 0;
}

int openQueue(const StagewrightQueueWish* wish, StagewrightQueue** out)
{
    const std::lock_guard lock(theMutex);
    auto queue = std::make_shared<StagewrightQueue>();
    queue->wish = *wish;
    *out = queue.get();
    theQueues.push_back(std::move(queue));
    return 0;
}
int finish(StagewrightQueue* queue)
{
    const std::lock_guard lock(theMutex);
    for (LaneState& lane : queue->lanes)
        settle(lane);
    return 0;
}
void closeQueue(StagewrightQueue* queue)
{
    (void)finish(queue);
}
int mark(StagewrightQueue* queue, int32_t laneNumber, StagewrightMark** out)
{
    const std::lock_guard lock(theMutex);
    LaneState& lane = queue->lanes[laneNumber];
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
    const std::shared_ptr<StagewrightMark> gone = std::move(mark->self);
}
int await(StagewrightQueue* queue, int32_t laneNumber, StagewrightMark* mark)
{
    const std::lock_guard lock(theMutex);
    LaneState& lane = queue->lanes[laneNumber];
    join(lane.seen, mark->seen);
    Item item;
    item.waits = mark->self;
    lane.items.push_back(std::move(item));
    return 0;
}
int nanosBetween(StagewrightMark* from, StagewrightMark* to, int64_t* out)
{
    const std::lock_guard lock(theMutex);
    if (!from->passed || !to->passed) return failed("a mark's time is asked for before it is passed");
    *out = to->time - from->time;
    return 0;
}

int copyRows(StagewrightQueue* queue, int32_t lane, void* to, std::size_t toStride, const void* from, std::size_t fromStride,
             std::size_t bytes, std::size_t rows)
{
    if (rows == 0) return 0;
    return ask(queue, lane, "copy", {{from, (rows - 1) * fromStride + bytes, false}, {to, (rows - 1) * toStride + bytes, true}}, [=] {
        for (std::size_t r = 0; r < rows; ++r)
            std::memcpy(static_cast<char*>(to) + r * toStride, static_cast<const char*>(from) + r * fromStride, bytes);
    });
}
int clear(StagewrightQueue* queue, void* to, std::size_t bytes)
{
    return ask(queue, 0, "clear", {{to, bytes, true}}, [=] { std::memset(to, 0, bytes); });
}
int upload(StagewrightQueue* queue, void* to, const void* host, std::size_t bytes)
{
    const auto* first = static_cast<const char*>(host);
    return ask(queue, 0, "upload", {{to, bytes, true}}, [to, kept = std::vector<char>(first, first + bytes)] { std::memcpy(to, kept.data(), kept.size()); });
}
int download(StagewrightQueue* queue, void* host, const void* from, std::size_t bytes)
{
    if (int bad = ask(queue, 0, "download", {{from, bytes, false}}, [=] { std::memcpy(host, from, bytes); })) return bad;
    const std::lock_guard lock(theMutex);
    settle(queue->lanes[0]);
    return 0;
}

template <typename E> void multiplyNow(const StagewrightProduct& p)
{
    for (int batch = 0; batch < p.batches; ++batch) {
        const auto* a = row<E>(p.a, static_cast<std::size_t>(batch * p.aBatch));
        const auto* b = row<E>(p.b, static_cast<std::size_t>(batch * p.bBatch));
        for (int r = 0; r < p.rows; ++r) {
            for (int c = 0; c < p.columns; ++c) {
                float sum = 0;
                for (int k = 0; k < p.depth; ++k) {
                    const float x = p.kind == STAGEWRIGHT_AT_B ? E::load(a, times(k, p.aStride) + r) : E::load(a, times(r, p.aStride) + k);
                    const float y = p.kind == STAGEWRIGHT_A_BT ? E::load(b, times(c, p.bStride) + k) : E::load(b, times(k, p.bStride) + c);
                    sum += x * y;
                }
                sum *= p.alpha;
                const std::size_t at = times(r, p.cStride) + c;
                const std::size_t dense = times(r, p.columns) + c;
                if (p.finish == STAGEWRIGHT_BIAS || p.finish == STAGEWRIGHT_GELU) sum += E::load(row<E>(p.bias, 0), c);
                if (p.finish == STAGEWRIGHT_GELU) {
                    E::store(row<E>(p.aux, 0), dense, sum);
                    sum = geluOf(sum);
                }
                if (p.finish == STAGEWRIGHT_GELU_GRAD) sum *= geluSlope(E::load(row<E>(static_cast<const void*>(p.aux), 0), dense));
                if (p.floats != 0) {
                    auto* to = static_cast<float*>(p.c) + batch * p.cBatch;
                    to[at] = p.beta == 0.0F ? sum : to[at] * p.beta + sum;
                } else {
                    auto* to = row<E>(p.c, static_cast<std::size_t>(batch * p.cBatch));
                    E::store(to, at, p.beta == 0.0F ? sum : E::load(to, at) * p.beta + sum);
                }
            }
        }
    }
}
int multiply(StagewrightQueue* queue, const StagewrightProduct* product)
{
    const StagewrightProduct p = *product;
    const auto bytes = [&](std::int64_t batch, int rows, std::int64_t stride, int columns, std::size_t element) {
        return (times(p.batches - 1, batch) + times(rows - 1, stride) + static_cast<std::size_t>(columns)) * element;
    };
    const std::size_t e = width(queue);
    const bool aUp = p.kind == STAGEWRIGHT_AT_B;
    const bool bUp = p.kind == STAGEWRIGHT_A_BT;
    const Touched c{p.c, bytes(p.cBatch, p.rows, p.cStride, p.columns, p.floats != 0 ? 4 : e), true};
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "product",
                   {{p.a, bytes(p.aBatch, aUp ? p.depth : p.rows, p.aStride, aUp ? p.rows : p.depth, e), false},
                    {p.b, bytes(p.bBatch, bUp ? p.columns : p.depth, p.bStride, bUp ? p.depth : p.columns, e), false},
                    {p.bias, times(p.columns, e), false},
                    {p.aux, times(p.rows, p.columns, e), p.finish == STAGEWRIGHT_GELU},
                    c},
                   [p] { multiplyNow<decltype(element)>(p); });
    });
}

int norm(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t one = times(n.width, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "layer norm",
                   {{n.x, all, n.bias != nullptr}, {n.bias, one, false}, {n.gamma, one, false}, {n.beta, one, false}, {n.normal, all, true},
                    {n.deviation, times(n.rows, 4), true}, {n.out, all, true}},
                   [n] {
                       for (int r = 0; r < n.rows; ++r)
                           normRow<decltype(element)>(OneLane{}, n, static_cast<std::size_t>(r));
                   });
    });
}
int scaleShift(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t one = times(n.width, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "scale and shift", {{n.normal, all, false}, {n.gamma, one, false}, {n.beta, one, false}, {n.out, all, true}}, [n] {
            for (std::size_t i = 0; i < times(n.rows, n.width); ++i)
                scaleShiftAt<decltype(element)>(n, i);
        });
    });
}
int normBackward(StagewrightQueue* queue, const StagewrightNorm* norm)
{
    const StagewrightNorm n = *norm;
    const std::size_t all = times(n.rows, n.width, width(queue));
    const std::size_t floats = times(n.width, 4);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "layer norm backward",
                   {{n.outGrad, all, false}, {n.normal, all, false}, {n.deviation, times(n.rows, 4), false},
                    {n.gamma, times(n.width, width(queue)), false}, {n.residual, all, false}, {n.inputGrad, all, true},
                    {n.gammaSum, floats, true}, {n.betaSum, floats, true}, {n.residualSum, floats, true}, {n.inputSum, floats, true}},
                   [n] {
                       using E = decltype(element);
                       for (int r = 0; r < n.rows; ++r)
                           normBackwardRow<E>(OneLane{}, n, static_cast<std::size_t>(r));
                       for (int column = 0; column < n.width; ++column)
                           putSums(n, column, normColumn<E>(n, column, 0, 1));
                   });
    });
}
int gelu(StagewrightQueue* queue, std::uint64_t count, const void* x, void* out)
{
    const std::size_t bytes = times(count, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "gelu", {{x, bytes, false}, {out, bytes, true}}, [=] {
            using E = decltype(element);
            for (std::size_t i = 0; i < count; ++i)
                E::store(row<E>(out, 0), i, geluOf(E::load(row<E>(x, 0), i)));
        });
    });
}
template <bool Backward> int anySoftmax(StagewrightQueue* queue, const StagewrightSoftmax* softmax)
{
    const StagewrightSoftmax s = *softmax;
    const std::size_t bytes = times(s.blocks, s.blockStride, width(queue));
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, Backward ? "softmax backward" : "softmax", {{s.scores, bytes, !Backward}, {s.gradient, bytes, Backward}}, [s] {
            using E = decltype(element);
            for (int block = 0; block < s.blocks; ++block)
                for (int r = 0; r < s.rows; ++r)
                    if constexpr (Backward) softmaxBackwardRow<E>(OneLane{}, s, block, r);
                    else softmaxRow<E>(OneLane{}, s, block, r);
        });
    });
}
template <typename Row> void eachHeadRow(const StagewrightFlash& f, Row&& row)
{
    for (int sample = 0; sample < f.batch; ++sample)
        for (int head = 0; head < f.heads; ++head)
            for (int r = 0; r < f.tokens; ++r)
                row(sample, head, r);
}
template <bool Backward> int anyFlash(StagewrightQueue* queue, const StagewrightFlash* flash)
{
    const StagewrightFlash f = *flash;
    const std::size_t e = width(queue);
    const std::size_t in = (times(f.batch * f.tokens - 1, f.stride) + times(f.heads, f.width)) * e;
    const std::size_t out = times(f.batch, f.tokens, f.heads, f.width, e);
    const std::size_t sums = times(f.batch, f.heads, f.tokens, 4);
    return withElements(queue, [&](auto element) {
        using E = decltype(element);
        if constexpr (Backward) {
            return ask(queue, 0, "attention backward",
                       {{f.query, in, false}, {f.key, in, false}, {f.value, in, false}, {f.out, out, false}, {f.sums, sums, false},
                        {f.outGrad, out, false}, {f.inner, sums, true}, {f.queryGrad, in, true}, {f.keyGrad, in, true}, {f.valueGrad, in, true}},
                       [f] {
                           eachHeadRow(f, [&](int b, int h, int r) { flashInnerRow<E>(OneLane{}, f, b, h, r); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashQueryRow<E>(OneLane{}, f, b, h, r); });
                           eachHeadRow(f, [&](int b, int h, int r) { flashKeyRow<E>(OneLane{}, f, b, h, r); });
                       });
        } else {
            return ask(queue, 0, "attention", {{f.query, in, false}, {f.key, in, false}, {f.value, in, false}, {f.out, out, true}, {f.sums, sums, true}},
                       [f] { eachHeadRow(f, [&](int b, int h, int r) { flashRow<E>(OneLane{}, f, b, h, r); }); });
        }
    });
}
int embed(StagewrightQueue* queue, const StagewrightEmbedding* embedding)
{
    const StagewrightEmbedding e = *embedding;
    const std::size_t rows = times(e.batch, e.tokens);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "embedding", {{e.bytes, rows, false}, {e.out, times(rows, e.width, width(queue)), true}}, [e, rows] {
            for (std::size_t i = 0; i < rows * static_cast<std::size_t>(e.width); ++i)
                embedAt<decltype(element)>(e, i);
        });
    });
}
int embedGrad(StagewrightQueue* queue, const StagewrightEmbedding* embedding)
{
    const StagewrightEmbedding e = *embedding;
    const std::size_t rows = times(e.batch, e.tokens);
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "embedding's gradient",
                   {{e.bytes, rows, false}, {e.outGrad, times(rows, e.width, width(queue)), false},
                    {e.tokenGrad, times(e.vocabulary, e.width, 4), true}, {e.positionGrad, times(e.past + e.tokens, e.width, 4), true}},
                   [e] {
                       using E = decltype(element);
                       for (int token = 0; token < e.vocabulary; ++token)
                           tokenGrad<E>(OneLane{}, e, token);
                       for (int token = 0; token < e.tokens; ++token)
                           positionGrad<E>(OneLane{}, e, token);
                   });
    });
}
int crossEntropy(StagewrightQueue* queue, int32_t rows, int32_t vocabulary, void* logits, const std::uint8_t* targets, float* rowLoss,
                 double* loss)
{
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "cross entropy",
                   {{logits, times(rows, vocabulary, width(queue)), true}, {targets, times(rows), false}, {rowLoss, times(rows, 4), true}, {loss, 8, true}},
                   [=] {
                       for (int r = 0; r < rows; ++r)
                           crossEntropyRow<decltype(element)>(OneLane{}, vocabulary, logits, targets[r], rowLoss, static_cast<std::size_t>(r));
                       meanLoss(OneLane{}, rows, rowLoss, loss);
                   });
    });
}
int columnSums(StagewrightQueue* queue, int32_t rows, int32_t columns, const void* x, float* sums)
{
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "column sums", {{x, times(rows, columns, width(queue)), false}, {sums, times(columns, 4), true}}, [=] {
            for (int column = 0; column < columns; ++column)
                sums[column] = columnSum<decltype(element)>(x, rows, columns, column, 0, 1);
        });
    });
}
int add(StagewrightQueue* queue, std::uint64_t count, const float* x, float* sum)
{
    return ask(queue, 0, "sum", {{x, count * 4, false}, {sum, count * 4, true}}, [=] {
        for (std::uint64_t i = 0; i < count; ++i)
            sum[i] += x[i];
    });
}
int squareSum(StagewrightQueue* queue, std::uint64_t count, const float* x, double* partial, double* sum)
{
    return ask(queue, 0, "square sum", {{x, count * 4, false}, {partial, STAGEWRIGHT_PARTIALS * 8, true}, {sum, 8, true}},
               [=] { *sum += squares(OneLane{}, count, x); });
}
int step(StagewrightQueue* queue, int32_t kind, const StagewrightStep* given)
{
    const StagewrightStep s = *given;
    const std::size_t floats = s.count * 4;
    const bool writes = kind != STAGEWRIGHT_PREDICT;
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "optimizer",
                   {{s.value, floats, writes}, {s.gradient, floats, false}, {s.moment1, floats, writes}, {s.moment2, floats, writes},
                    {s.used, s.count * width(queue), true}},
                   [s, kind] {
                       for (std::size_t i = 0; i < s.count; ++i)
                           stepAt<decltype(element)>(kind, s, i);
                   });
    });
}
int narrow(StagewrightQueue* queue, std::uint64_t count, const float* x, void* elements)
{
    return withElements(queue, [&](auto element) {
        return ask(queue, 0, "narrowing", {{x, count * 4, false}, {elements, count * width(queue), true}}, [=] {
            using E = decltype(element);
            for (std::uint64_t i = 0; i < count; ++i)
                E::store(row<E>(elements, 0), i, x[i]);
        });
    });
}
int opBegin(std::uint64_t, const char*) { return 0; }
int opEnd() { return 0; }

const StagewrightCudaTable table = {
    STAGEWRIGHT_CUDA_ABI, sizeof(StagewrightCudaTable), sizeof(StagewrightCudaFacts), sizeof(StagewrightCudaDevice), lastError, facts, deviceCount,
    describe, take, give, openQueue, closeQueue, finish, mark, dropMark, await, nanosBetween, copyRows, clear, upload, download, multiply, norm,
    scaleShift, normBackward, gelu, anySoftmax<false>, anySoftmax<true>, anyFlash<false>, anyFlash<true>, embed, embedGrad, crossEntropy,
    columnSums, add, squareSum, step, narrow, opBegin, opEnd};

} // namespace

extern "C" __attribute__((visibility("default"))) const StagewrightCudaTable* stagewright_cuda_module(void)
{
    return &table;
}
