// The device of fake_cuda.cpp: lanes on which everything is done as late as the marks allow, and the watch over what
// they touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>

#include "engine/cuda/module_abi.h"
#include "tests/support/fake_cupti.h"

namespace stagewright::fake {

struct LaneState;

using Clock = std::map<const LaneState*, std::uint64_t>; // how much of each lane has been done before

struct Item {
    std::function<void()> work;      // or
    std::function<bool()> elsewhere; // whether it is done, which another process has a part in; asked until it is; or
    StagewrightMark* passes = nullptr;
    std::shared_ptr<StagewrightMark> waits;
    std::int64_t nanos = 0;
    std::int64_t asked = 0;
    Launch launch; // for the tracer
};

struct LaneState {
    std::deque<Item> items;
    std::uint64_t asked = 0;
    Clock seen;
    std::int64_t time = 0;
    bool closed = false; // with its queue
};

struct Touched {
    const void* from;
    std::size_t bytes;
    bool writes;
};

// Requests work from a lane, with the ranges it touches.
int askOn(StagewrightQueue* queue, LaneState& lane, int laneNumber, const char* what,
          const std::vector<Touched>& touched, std::function<void()> work);
// The same of work that another process has a part in: `done` is asked until it is.
int askElsewhere(StagewrightQueue* queue, LaneState& lane, int laneNumber, const char* what,
                 const std::vector<Touched>& touched, std::function<bool()> done);
void advance(LaneState& lane); // as far as it can go now
int markOn(LaneState& lane, StagewrightMark** out);
int awaitOn(LaneState& lane, StagewrightMark* mark);
void addLane(LaneState& lane); // lives as long as the process
int ask(StagewrightQueue* queue, int lane, const char* what, const std::vector<Touched>& touched,
        std::function<void()> work);
int failed(std::string text);

const char* lastError();
int facts(StagewrightCudaFacts* out);
int deviceCount(int32_t* out);
int describe(int32_t device, StagewrightCudaDevice* out);
int take(int32_t device, std::size_t bytes, void** out);
int give(int32_t device, void* block);
int openQueue(const StagewrightQueueRequest* request, StagewrightQueue** out);
void closeQueue(StagewrightQueue* queue);
int enter(StagewrightQueue* queue);
int finish(StagewrightQueue* queue);
int mark(StagewrightQueue* queue, int32_t lane, StagewrightMark** out);
void dropMark(StagewrightMark* mark);
int await(StagewrightQueue* queue, int32_t lane, StagewrightMark* mark);
int nanosBetween(StagewrightMark* from, StagewrightMark* to, int64_t* out);
int copyRows(StagewrightQueue* queue, int32_t lane, void* to, std::size_t toStride, const void* from,
             std::size_t fromStride, std::size_t bytes, std::size_t rows);
int clear(StagewrightQueue* queue, void* to, std::size_t bytes);
int upload(StagewrightQueue* queue, void* to, const void* host, std::size_t bytes);
int download(StagewrightQueue* queue, void* host, const void* from, std::size_t bytes);
int finished(StagewrightQueue* queue, int32_t* out);

int openCommunicator(StagewrightQueue* const* queues, int32_t count, StagewrightCommunicator** out);
void closeCommunicator(StagewrightCommunicator* communicator);
int communicatorAwait(StagewrightCommunicator* communicator, int32_t end, StagewrightMark* mark);
int communicatorMark(StagewrightCommunicator* communicator, int32_t end, StagewrightMark** out);
int transfer(StagewrightCommunicator* communicator, int32_t from, const void* bytes, int32_t to, void* there,
             std::size_t count);
int collect(StagewrightCommunicator* communicator, int32_t kind, const float* const* from, float* const* to,
            std::size_t count);
int newCommunicatorId(StagewrightCommunicatorId* out);
int joinCommunicator(StagewrightQueue* queue, const StagewrightCommunicatorId* id, int32_t number, int32_t count,
                     StagewrightCommunicator** out);
int settleCommunicator(StagewrightCommunicator* communicator);
int post(StagewrightCommunicator* communicator, const StagewrightPost* posts, int32_t count);
int pollCommunicator(StagewrightCommunicator* communicator);
void abortCommunicator(StagewrightCommunicator* communicator);

} // namespace stagewright::fake

struct StagewrightMark {
    stagewright::fake::LaneState* lane = nullptr;
    bool passed = false;
    std::int64_t time = 0;
    stagewright::fake::Clock seen;
    std::shared_ptr<StagewrightMark> self;
};

struct StagewrightQueue {
    StagewrightQueueRequest request{};
    stagewright::fake::LaneState lanes[2];
    std::uint32_t number = 0; // of all that were ever opened
};
