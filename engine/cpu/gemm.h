// Gemm: matrix products (GEMM, as BLAS calls them) of a library, row-major, fp32, one thread a caller. Which library is fastest depends on the
// processor: Debian 12's OpenBLAS 0.3.21 runs its AVX2 kernels on some AVX-512 processors that are not Intel's, where
// oneDNN's, made at run time, are up to twice as fast. Both are loaded with the first question; oneDNN (libdnnl2) where
// it is installed. Safe to call from several threads.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/kernel_arguments.h"
#include "schedules/base/result.h"

namespace stagewright::cpu {

struct Matrix {
    const float* data;
    int stride; // floats from one row to the next
};

class Gemm {
public:
    virtual ~Gemm() = default;
    virtual std::string_view name() const = 0; // "openblas", "onednn"
    // Library, version, kernels, as far as the library says.
    virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
    // C (rows, columns) = alpha · op(A) · op(B) + beta · C, inner products of length `depth`; op transposes where the
    // flag is set.
    virtual void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a,
                          Matrix b, float beta, float* c, int cStride) const = 0;
    // Takes what so many threads need that multiply at once, for the program's life. Unavailable: less memory is free;
    // without it such a library may wait for memory without end.
    virtual Result<void> reserve(int) const { return {}; }

    // A (rows, depth), B (columns, depth): x · Wᵀ
    void timesTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                         int cStride) const
    {
        multiply(false, true, rows, columns, depth, alpha, a, b, beta, c, cStride);
    }
    // A (rows, depth), B (depth, columns): dy · W
    void times(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
               int cStride) const
    {
        multiply(false, false, rows, columns, depth, alpha, a, b, beta, c, cStride);
    }
    // A (depth, rows), B (depth, columns): dyᵀ · x
    void transposedTimes(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                         int cStride) const
    {
        multiply(true, false, rows, columns, depth, alpha, a, b, beta, c, cStride);
    }
};

// GEMMs of bf16 factors with sums and results in fp32; else as Gemm.
class Bf16Gemm {
public:
    struct Matrix {
        const layers::BFloat16* data;
        int stride; // elements from one row to the next
    };
    virtual ~Bf16Gemm() = default;
    virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
    virtual void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a,
                          Matrix b, float beta, float* c, int cStride) const = 0;
};
// oneDNN's; Unavailable where it is not installed or has none for this processor (AVX-512 is needed). Valid until the
// program ends.
Result<const Bf16Gemm*> bf16Gemm();

// Those that work here; OpenBLAS first; none: no library can be loaded. Valid until the program ends.
const std::vector<const Gemm*>& allGemms();
// Usage: an unknown name; Unavailable: not installed or not to be loaded, with the package.
Result<const Gemm*> gemmNamed(std::string_view name);

// What a backend computes with, and why.
struct GemmChoice {
    const Gemm* gemm = nullptr;
    std::string reason; // "asked for", "measured: onednn 101, openblas 94 GFLOP/s", "by processor"
    double gflops = 0;  // of one core, measured on these shapes; 0: not measured
};
// The fastest GEMMs that were ever measured on this machine with these libraries, at any shapes, as the cache has
// kept them.
struct FastestGemm {
    std::string reason; // "measured: onednn 101, openblas 94 GFLOP/s"
    std::string shape;  // "hidden 512, 512 tokens"
    double gflops = 0;
};
std::optional<FastestGemm> fastestGemm(bool bf16);
// GFLOP/s of bf16 GEMMs on a workload's shapes, measured once and kept as those of fp32 are; 0: not measured.
double bf16Speed(const Bf16Gemm& gemm, const MathUse& use);
// name: one library, or "" for the fastest. Several libraries are measured once on the GEMMs of the workload's
// layers (0.1 to 0.5 s of CPU time) and the result kept in $XDG_CACHE_HOME/stagewright/products under processor,
// libraries and shape; with STAGEWRIGHT_PRODUCTS=table, or where the folder can't be written, the processor decides.
// OPENBLAS_CORETYPE in the environment chooses OpenBLAS. One shape has one choice for the program's life, so that
// repeated trainings give the same bits.
Result<GemmChoice> chooseGemm(std::string_view name, const MathUse& use);

} // namespace stagewright::cpu
