// What cuBLASLt requires of a GEMM, and which epilogues are fused into one. Shared by the module and by the fake
// device of the tests, so that what a GPU would refuse is refused without one.
#pragma once

#include <cstdint>
#include <string>

#include "engine/cuda/module_abi.h"

namespace stagewright::cuda {

inline constexpr int gemmAlignment = 16; // bytes; the most that its kernels ask of a pointer

inline bool isAligned(const void* pointer, std::uintptr_t bytes)
{
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// Whether the end is an epilogue; else a kernel of its own follows the product.
//   - aux: "must be divisible by 8" is the leading dimension (cublasLt.h, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD)
//   - bias and aux are read in pieces of up to 16 bytes: the choice of an algorithm depends on their alignment
//   - how exact its GELU is is not documented; in fp32 the GELU is the one that the CPU computes
inline bool endIsFused(const StagewrightGemm& p, bool bf16, bool tf32)
{
    if (p.finish == STAGEWRIGHT_PLAIN) return true;
    if (p.finish != STAGEWRIGHT_BIAS && !bf16 && !tf32) return false;
    if (p.batches != 1 || p.floats != 0) return false;
    if (p.bias && !isAligned(p.bias, gemmAlignment)) return false;
    return !p.aux || (isAligned(p.aux, gemmAlignment) && p.columns % 8 == 0);
}

// What is wrong with a GEMM; empty: nothing.
inline std::string gemmFault(const StagewrightGemm& p, bool bf16)
{
    const int element = bf16 ? 2 : 4;
    const bool aUp = p.kind == STAGEWRIGHT_AT_B;
    const bool bUp = p.kind == STAGEWRIGHT_A_BT;
    const auto shape = [&] {
        return std::to_string(p.rows) + " x " + std::to_string(p.columns) + " x " + std::to_string(p.depth);
    };
    if (p.rows < 1 || p.columns < 1 || p.depth < 1 || p.batches < 1)
        return "GEMM of " + shape() + ", " + std::to_string(p.batches) + " times: nothing to compute";
    const auto row = [&](const char* matrix, std::int64_t stride, int width) {
        return stride >= width ? std::string()
                               : "GEMM of " + shape() + ": rows of " + matrix + " are " + std::to_string(width) +
                                     " long and begin " + std::to_string(stride) + " apart";
    };
    for (const std::string& fault : {row("A", p.aStride, aUp ? p.rows : p.depth),
                                     row("B", p.bStride, bUp ? p.depth : p.columns), row("C", p.cStride, p.columns)})
        if (!fault.empty()) return fault;
    const auto aligned = [](const void* pointer, int bytes) {
        return isAligned(pointer, static_cast<std::uintptr_t>(bytes));
    };
    if (!aligned(p.a, element) || !aligned(p.b, element) || !aligned(p.c, p.floats != 0 ? 4 : element) ||
        !aligned(p.bias, element) || !aligned(p.aux, element))
        return "GEMM of " + shape() + ": a pointer is not aligned to its elements";
    if (p.finish != STAGEWRIGHT_PLAIN && (p.batches != 1 || p.floats != 0 || p.beta != 0.0F))
        return "GEMM of " + shape() + ": an end is for one GEMM of elements that is not added";
    return {};
}

} // namespace stagewright::cuda
