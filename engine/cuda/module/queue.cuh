// A queue of the module: two streams of a device, and what its GEMMs need. One per rank, used on the rank's thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include <cuda.h>

#include "engine/cuda/module/errors.cuh"
#include "engine/cuda/module_abi.h"

namespace stagewright::cuda::module {

// The choice of cuBLASLt for one shape, kept for later calls.
struct GemmPlan;
struct GemmKey {
    StagewrightGemm shape; // without pointers, alpha and beta's values
    int alignment[3];      // of a, b, c: bytes, at most 16
    bool fused;            // the end is requested as an epilogue
    bool operator<(const GemmKey& other) const;
};
class CudnnAttention;
using GemmPlans = std::map<GemmKey, std::shared_ptr<GemmPlan>>;

inline constexpr std::size_t workspaceBytes = std::size_t{32} << 20; // what cuBLASLt requests on Hopper

} // namespace stagewright::cuda::module

struct StagewrightQueue {
    StagewrightQueueRequest request{};
    cudaStream_t lanes[2] = {};
    cublasLtHandle_t gemm = nullptr;
    void* workspace = nullptr;
    CUgreenCtx partition = nullptr;
    CUcontext partitionContext = nullptr; // the same, for what is created in it
    cudaStream_t clock = nullptr;         // of a partition, in the device's own context: its marks' times
    int multiprocessors = 0;              // of the partition; 0: the whole device
    bool groups = false;                  // the device multiplies by warp groups (compute capability 9.0)
    bool readsHost = false;               // copies may read the host's memory after the call
    stagewright::cuda::module::GemmPlans plans;
    std::shared_ptr<stagewright::cuda::module::CudnnAttention> attention; // null: not there, or not asked for yet
    bool attentionOpened = false;
    // by batch, heads, tokens, width, stride: whether cuDNN's
    std::map<std::tuple<int, int, int, int, std::int64_t>, bool> attentionChoices;

    StagewrightQueue();
    ~StagewrightQueue();
    // Makes the queue's device the thread's.
    int enter() const
    {
        return stagewright::cuda::module::check(cudaSetDevice(request.device), "choosing the CUDA device");
    }
    cudaStream_t compute() const { return lanes[STAGEWRIGHT_COMPUTE]; }
};

struct StagewrightMark {
    cudaEvent_t event = nullptr;
    cudaEvent_t time = nullptr; // of a partition; null: `event` has it
    int device = 0;
};

namespace stagewright::cuda::module {

// The functions of the table, by source.
int take(int32_t device, size_t bytes, void** out);
int give(int32_t device, void* block);
int openQueue(const StagewrightQueueRequest* request, StagewrightQueue** out);
void closeQueue(StagewrightQueue* queue);
int enter(StagewrightQueue* queue);
int finish(StagewrightQueue* queue);
int finished(StagewrightQueue* queue, int32_t* out);
int markOn(cudaStream_t stream, int device, StagewrightMark** out); // the device is the thread's
int mark(StagewrightQueue* queue, int32_t lane, StagewrightMark** out);
void dropMark(StagewrightMark* mark);
int await(StagewrightQueue* queue, int32_t lane, StagewrightMark* mark);
int nanosBetween(StagewrightMark* from, StagewrightMark* to, int64_t* out);
int copyRows(StagewrightQueue* queue, int32_t lane, void* to, size_t toStride, const void* from, size_t fromStride,
             size_t bytes, size_t rows);
int clear(StagewrightQueue* queue, void* to, size_t bytes);
int upload(StagewrightQueue* queue, void* to, const void* host, size_t bytes);
int download(StagewrightQueue* queue, void* host, const void* from, size_t bytes);

int multiply(StagewrightQueue* queue, const StagewrightGemm* gemm);

int norm(StagewrightQueue* queue, const StagewrightNorm* norm);
int scaleShift(StagewrightQueue* queue, const StagewrightNorm* norm);
int normBackward(StagewrightQueue* queue, const StagewrightNorm* norm);
// what the epilogue does, where cuBLASLt has none
int finishGemm(StagewrightQueue* queue, const StagewrightGemm& gemm);
int softmax(StagewrightQueue* queue, const StagewrightSoftmax* softmax);
int softmaxBackward(StagewrightQueue* queue, const StagewrightSoftmax* softmax);
int flash(StagewrightQueue* queue, const StagewrightFlash* flash);
int flashBackward(StagewrightQueue* queue, const StagewrightFlash* flash);
// on the matrix units; the caller has entered the queue
int flashTiles(StagewrightQueue* queue, const StagewrightFlash& flash);
// the same by warp groups: of queues with `groups`
int flashGroups(StagewrightQueue* queue, const StagewrightFlash& flash);
int flashGroupsBackward(StagewrightQueue* queue, const StagewrightFlash& flash); // after the inner sums
// the same by the faster of flashTiles() and cuDNN
int attend(StagewrightQueue* queue, const StagewrightFlash& flash);
int flashTilesBackward(StagewrightQueue* queue, const StagewrightFlash& flash); // after the inner sums
int embed(StagewrightQueue* queue, const StagewrightEmbedding* embedding);
int embedGrad(StagewrightQueue* queue, const StagewrightEmbedding* embedding);
int crossEntropy(StagewrightQueue* queue, int32_t rows, int32_t vocabulary, void* logits, const uint8_t* targets,
                 float* rowLoss, double* loss);
int columnSums(StagewrightQueue* queue, int32_t rows, int32_t width, const void* x, float* sums, float* partial);
int add(StagewrightQueue* queue, const StagewrightTensor* sums, int32_t count);
int squareSum(StagewrightQueue* queue, const StagewrightTensor* tensors, int32_t count, double* partial, double* sum);
int step(StagewrightQueue* queue, int32_t kind, const StagewrightStep* step, const StagewrightTensor* tensors,
         int32_t count);
int toElements(StagewrightQueue* queue, uint64_t count, const float* x, void* elements);
int geluGrad(StagewrightQueue* queue, int32_t rows, int32_t width, void* hidden, void* gradient, float* sums,
             float* partial);

int openCommunicator(StagewrightQueue* const* queues, int32_t count, StagewrightCommunicator** out);
void closeCommunicator(StagewrightCommunicator* communicator);
int communicatorAwait(StagewrightCommunicator* communicator, int32_t end, StagewrightMark* mark);
int communicatorMark(StagewrightCommunicator* communicator, int32_t end, StagewrightMark** out);
int transfer(StagewrightCommunicator* communicator, int32_t from, const void* bytes, int32_t to, void* there,
             size_t count);
int collect(StagewrightCommunicator* communicator, int32_t kind, const float* const* from, float* const* to,
            size_t count);
int newCommunicatorId(StagewrightCommunicatorId* out);
int joinCommunicator(StagewrightQueue* queue, const StagewrightCommunicatorId* id, int32_t number, int32_t count,
                     StagewrightCommunicator** out);
int settleCommunicator(StagewrightCommunicator* communicator);
int post(StagewrightCommunicator* communicator, const StagewrightPost* posts, int32_t count);
int pollCommunicator(StagewrightCommunicator* communicator);
void abortCommunicator(StagewrightCommunicator* communicator);

} // namespace stagewright::cuda::module
