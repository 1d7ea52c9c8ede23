// The GEMMs of warp groups on Hopper (compute capability 9.0, "sm_90a"): wgmma over descriptors of tiles in shared
// memory, for bodies written over `Groups` (engine/cuda/group_tiles.h). Formats: PTX ISA, "Asynchronous Warpgroup Level
// Matrix Multiply-Accumulate".
#pragma once

#include "engine/cuda/group_tiles.h"
#include "engine/cuda/module/device_threads.cuh"

namespace stagewright::cuda::module {

#define STAGEWRIGHT_SUMS(constraint, n)                                                                                \
    constraint(sums[n][0]), constraint(sums[n][1]), constraint(sums[n][2]), constraint(sums[n][3])
#define STAGEWRIGHT_SUMS_8(constraint)                                                                                 \
    STAGEWRIGHT_SUMS(constraint, 0), STAGEWRIGHT_SUMS(constraint, 1), STAGEWRIGHT_SUMS(constraint, 2),                 \
        STAGEWRIGHT_SUMS(constraint, 3), STAGEWRIGHT_SUMS(constraint, 4), STAGEWRIGHT_SUMS(constraint, 5),             \
        STAGEWRIGHT_SUMS(constraint, 6), STAGEWRIGHT_SUMS(constraint, 7)
#define STAGEWRIGHT_SUMS_16(constraint)                                                                                \
    STAGEWRIGHT_SUMS_8(constraint), STAGEWRIGHT_SUMS(constraint, 8), STAGEWRIGHT_SUMS(constraint, 9),                  \
        STAGEWRIGHT_SUMS(constraint, 10), STAGEWRIGHT_SUMS(constraint, 11), STAGEWRIGHT_SUMS(constraint, 12),          \
        STAGEWRIGHT_SUMS(constraint, 13), STAGEWRIGHT_SUMS(constraint, 14), STAGEWRIGHT_SUMS(constraint, 15)

struct DeviceGroups : DeviceThreads {
    // bytes of shared memory in addition, as the dynamic part may begin anywhere
    static constexpr std::uint32_t slack = tileAlignment;

    __device__ DeviceGroups() { base = (base + tileAlignment - 1) / tileAlignment * tileAlignment; }

    // What cp.async and ordinary stores wrote is seen by the matrix units.
    __device__ void copiesReady() const { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
    __device__ void beginGemm() const { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
    __device__ void endGemm() const
    {
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }

    // It describes a tile: pieces of 128 bytes exchanged, the next eight rows 1,024 bytes on; `leading`: bytes from one
    // panel to the next where columns are the rows of the GEMM, else not used.
    __device__ std::uint64_t descriptor(std::uint32_t at, std::uint32_t leading) const
    {
        constexpr std::uint64_t exchangedBy128 = std::uint64_t{1} << 62;
        return (std::uint64_t{base + at & 0x3ffffU} >> 4) | std::uint64_t{leading >> 4} << 16 |
               std::uint64_t{1024 >> 4} << 32 | exchangedBy128;
    }

    template <int Columns>
    __device__ void multiply(float (&sums)[Columns / 8][4], std::uint32_t a, std::uint32_t b, bool fresh) const
    {
        static_assert(Columns == 64);
        const std::uint64_t left = descriptor(a, 16), right = descriptor(b, 16);
        if (fresh)
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 0, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                         "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                         "%27, %28, %29, %30, %31}, %32, %33, add, 1, 1, 0, 0;\n}"
                         : STAGEWRIGHT_SUMS_8("=f")
                         : "l"(left), "l"(right));
        else
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                         "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                         "%27, %28, %29, %30, %31}, %32, %33, add, 1, 1, 0, 0;\n}"
                         : STAGEWRIGHT_SUMS_8("+f")
                         : "l"(left), "l"(right));
    }
    template <int Columns>
    __device__ void multiplyRows(float (&sums)[Columns / 8][4], const Quad& a, std::uint32_t b,
                                 std::uint32_t panel) const
    {
        static_assert(Columns == 64 || Columns == 128);
        const std::uint64_t right = descriptor(b, panel);
        if constexpr (Columns == 64)
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                         "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                         "%27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, add, 1, 1, 1;\n}"
                         : STAGEWRIGHT_SUMS_8("+f")
                         : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "l"(right));
        else
            asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, 1, 0;\n"
                         "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
                         "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
                         "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "
                         "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, "
                         "%63}, {%64, %65, %66, %67}, %68, add, 1, 1, 1;\n}"
                         : STAGEWRIGHT_SUMS_16("+f")
                         : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "l"(right));
    }
};

#undef STAGEWRIGHT_SUMS
#undef STAGEWRIGHT_SUMS_8
#undef STAGEWRIGHT_SUMS_16

} // namespace stagewright::cuda::module
