// Attention of whole sequences by cuDNN, where it is installed: its graph API (cuDNN 9, "Graph API" of its
// documentation), loaded at run time; neither its headers nor its library are needed to build. Forward only: its
// backward adds up gradients in an order that changes from run to run, or needs room for all probabilities
// (docs/performance.md).
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include <cuda_runtime.h>

#include "engine/cuda/module_abi.h"

namespace stagewright::cuda::module {

int cudnnVersion(); // 91900: 9.19.0; 0: not found

// It belongs to one queue and is used on its thread.
class CudnnAttention {
public:
    // Null: cuDNN is not there, or does not start on the thread's current device.
    static std::unique_ptr<CudnnAttention> open(cudaStream_t stream);
    ~CudnnAttention();
    CudnnAttention(const CudnnAttention&) = delete;
    CudnnAttention& operator=(const CudnnAttention&) = delete;

    // Causal, bf16: out, and the log-sum-exps of the scaled scores. Asks the stream for it; false: cuDNN does not
    // compute this shape with this workspace and the same bits in every run, and nothing was asked for.
    bool forward(const StagewrightFlash& f, void* workspace, std::size_t workspaceBytes);

private:
    struct Plan;
    explicit CudnnAttention(void* handle);
    Plan* planFor(const StagewrightFlash& f);

    void* m_handle;
    std::map<std::tuple<int, int, int, int, long long>, std::unique_ptr<Plan>> m_plans; // null: it has none
};

} // namespace stagewright::cuda::module
