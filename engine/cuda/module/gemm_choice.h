// Which algorithm of cuBLASLt computes a product. Of those that it offers for a large one the fastest is chosen by
// measurement, once on a kind of device with its library, and kept (engine/device/kept_choices.h): its own first choice
// is up to a quarter slower (docs/performance.md). A shape has one choice in all queues of a process and, once kept, in
// all processes, so that repeated trainings give the same bits.
#pragma once

#include <span>

#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

struct GemmPlan {
    cublasLtMatmulDesc_t description = nullptr;
    cublasLtMatrixLayout_t first = nullptr;  // of B
    cublasLtMatrixLayout_t second = nullptr; // of A
    cublasLtMatrixLayout_t result = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    bool fused = false; // the end is an epilogue

    GemmPlan() = default;
    GemmPlan(const GemmPlan&) = delete;
    GemmPlan& operator=(const GemmPlan&) = delete;
    ~GemmPlan()
    {
        if (result) cublasLtMatrixLayoutDestroy(result);
        if (second) cublasLtMatrixLayoutDestroy(second);
        if (first) cublasLtMatrixLayoutDestroy(first);
        if (description) cublasLtMatmulDescDestroy(description);
    }
};

// Bias and aux of the GEMM's end, where it is an epilogue.
int setEnd(const GemmPlan& plan, const StagewrightGemm& p, const void* bias, void* aux);

// algorithms: at least one, by their estimated time; each needs at most workspaceBytes. The first is taken where
// nothing is measured: for small GEMMs and batches, in partitions, where a choice can't be kept, where the memory is
// out, with STAGEWRIGHT_PRODUCTS=table.
int chooseAlgorithm(const StagewrightQueue& queue, const StagewrightGemm& p, const GemmKey& key, const GemmPlan& plan,
                    std::span<const cublasLtMatmulAlgo_t> algorithms, cublasLtMatmulAlgo_t& out);

} // namespace stagewright::cuda::module
