// Threads of a block on a GPU, for bodies written over `Threads` (engine/cuda/matrix_tiles.h): a thin layer over PTX of
// compute capability 8.0. "memory" keeps accesses on their side of a barrier or wait.
#pragma once

#include "engine/cuda/matrix_tiles.h"

namespace stagewright::cuda::module {

extern __shared__ __align__(128) unsigned char dynamicShared[];

struct DeviceThreads {
    std::uint32_t base = static_cast<std::uint32_t>(__cvta_generic_to_shared(dynamicShared));

    __device__ int thread() const { return static_cast<int>(threadIdx.x); }
    __device__ void barrier() const { __syncthreads(); }
    template <typename T>
    __device__ T shuffleXor(T x, int mask) const
    {
        return __shfl_xor_sync(0xffffffffU, x, mask);
    }

    __device__ Quad loadMatrices(std::uint32_t at) const
    {
        Quad q;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(q.at[0]), "=r"(q.at[1]), "=r"(q.at[2]), "=r"(q.at[3])
                     : "r"(base + at)
                     : "memory");
        return q;
    }
    __device__ Quad loadTransposed(std::uint32_t at) const
    {
        Quad q;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(q.at[0]), "=r"(q.at[1]), "=r"(q.at[2]), "=r"(q.at[3])
                     : "r"(base + at)
                     : "memory");
        return q;
    }
    __device__ void multiplyAdd(float (&sums)[4], const Quad& a, std::uint32_t b0, std::uint32_t b1) const
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
            "%1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a.at[0]), "r"(a.at[1]), "r"(a.at[2]), "r"(a.at[3]), "r"(b0), "r"(b1));
    }

    __device__ void copy16(std::uint32_t to, const void* from, bool there) const
    {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(base + to),
                     "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
                     : "memory");
    }
    __device__ void copy4(std::uint32_t to, const void* from, bool there) const
    {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(base + to),
                     "l"(__cvta_generic_to_global(from)), "r"(there ? 4 : 0)
                     : "memory");
    }
    __device__ void commitCopies() const { asm volatile("cp.async.commit_group;" ::: "memory"); }
    __device__ void waitCopies() const { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

    __device__ float sharedFloat(std::uint32_t at) const
    {
        float value;
        asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(base + at) : "memory");
        return value;
    }
    // Numbers that a block's threads exchange, outside the dynamic shared memory.
    template <typename T, int Slots>
    __device__ static T* slots()
    {
        __shared__ T all[Slots];
        return all;
    }
    template <typename T, int Slots>
    __device__ void putSlot(int number, T value) const
    {
        slots<T, Slots>()[number] = value;
    }
    template <typename T, int Slots>
    __device__ T slot(int number) const
    {
        return slots<T, Slots>()[number];
    }

    __device__ float loadFloat(const float* from) const { return *from; }
    __device__ std::uint32_t loadPair(const std::uint16_t* from) const
    {
        return *reinterpret_cast<const std::uint32_t*>(from);
    }
    __device__ void storeFloat(float* to, float value) const { *to = value; }
    __device__ void storePair(std::uint16_t* to, std::uint32_t pair) const
    {
        *reinterpret_cast<std::uint32_t*>(to) = pair;
    }

    __device__ std::uint32_t pack(float first, float second) const { return Bf16::pair(first, second); }
    __device__ float exp2(float x) const
    {
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
    }
};

} // namespace stagewright::cuda::module
