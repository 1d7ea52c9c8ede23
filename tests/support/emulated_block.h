// Blocks of a GPU on the host, for kernels whose bodies are written over `Threads` (engine/cuda/matrix_tiles.h): every
// thread of a block is a fiber that runs the very body; a warp's shuffles, matrix loads and GEMMs are computed when
// its last lane requests them, with the register layouts of the PTX ISA (warp-level matrix instructions: ldmatrix,
// mma.m16n8k16). Threads may run in any order; a block's result must not depend on it. What a GPU would leave to chance
// fails with KernelFault:
//   shared memory that another thread wrote, or read, with no barrier between; that nothing was written to; whose copy
//   was not waited for; outside of what the launch requested; at an address that the instruction can't take. Warps
//   order nothing, only barriers do. device memory outside of the launch's ranges, or in one for reading that is
//   written; what two threads of a launch write, or one writes and another reads
//   threads that never meet: some end or wait elsewhere while others wait at a barrier or for their warp
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/cuda/matrix_tiles.h"
#include "tests/support/emulated_matrix.h"

namespace stagewright::fake {

struct KernelFault : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct KernelRange // of the device's memory; null: none
{
    const void* from;
    std::size_t bytes;
    bool writes;
};

class EmulatedThread;

// One launch: blocks one after the other. Not for several threads of the host at once.
class EmulatedKernel {
public:
    explicit EmulatedKernel(std::vector<KernelRange> ranges);
    ~EmulatedKernel();
    EmulatedKernel(const EmulatedKernel&) = delete;
    EmulatedKernel& operator=(const EmulatedKernel&) = delete;

    // Runs a block of `threads` (a multiple of 32) with this much dynamic shared memory; slots are separate.
    void run(int threads, std::uint32_t sharedBytes, const std::function<void(const EmulatedThread&)>& body);

    // How the tests make a kernel wrong, run its threads in another order or round its sums differently. Barriers and
    // waits are counted within a thread, from 0.
    int ignoredBarrier = -1; // threads meet there, but it orders nothing
    int ignoredWait = -1;    // does not wait
    bool newestFirst = false;
    MatrixSums matrixSums = MatrixSums::Nearest;

    int barriersOfLastBlock() const;
    int waitsOfLastBlock() const; // of its thread 0
    int bankConflicts() const;    // matrices loaded with two of their rows in the same banks, all blocks

private:
    friend class EmulatedThread;
    struct State;
    std::unique_ptr<State> m_state;
};

// `Threads` of a body.
class EmulatedThread {
public:
    int thread() const { return m_thread; }
    void barrier() const;
    template <typename T>
    T shuffleXor(T x, int mask) const
    {
        static_assert(sizeof(T) <= sizeof(std::uint64_t));
        std::uint64_t bits = 0;
        std::memcpy(&bits, &x, sizeof x);
        bits = shuffle(bits, mask);
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
    cuda::Quad loadMatrices(std::uint32_t at) const { return load(at, false); }
    cuda::Quad loadTransposed(std::uint32_t at) const { return load(at, true); }
    void multiplyAdd(float (&sums)[4], const cuda::Quad& a, std::uint32_t b0, std::uint32_t b1) const;
    void copy16(std::uint32_t to, const void* from, bool there) const { copy(to, from, 16, there); }
    void copy4(std::uint32_t to, const void* from, bool there) const { copy(to, from, 4, there); }
    void commitCopies() const;
    void waitCopies() const;
    float sharedFloat(std::uint32_t at) const;
    template <typename T, int Slots>
    void putSlot(int number, T value) const
    {
        slotAccess(number, Slots, &value, sizeof value, true);
    }
    template <typename T, int Slots>
    T slot(int number) const
    {
        T value;
        slotAccess(number, Slots, &value, sizeof value, false);
        return value;
    }
    float loadFloat(const float* from) const
    {
        look(from, sizeof(float), false);
        return *from;
    }
    std::uint32_t loadPair(const std::uint16_t* from) const
    {
        look(from, 4, false);
        return static_cast<std::uint32_t>(from[0]) | static_cast<std::uint32_t>(from[1]) << 16;
    }
    void storeFloat(float* to, float value) const
    {
        look(to, sizeof(float), true);
        *to = value;
    }
    void storePair(std::uint16_t* to, std::uint32_t pair) const
    {
        look(to, 4, true);
        to[0] = static_cast<std::uint16_t>(pair);
        to[1] = static_cast<std::uint16_t>(pair >> 16);
    }
    std::uint32_t pack(float first, float second) const;
    float exp2(float x) const { return exp2f(x); }
    void storeShared(std::uint32_t at, const void* from, std::uint32_t bytes) const; // as ordinary code would

private:
    friend class EmulatedKernel;
    EmulatedThread(EmulatedKernel::State& state, int thread) : m_state(&state), m_thread(thread) {}
    std::uint64_t shuffle(std::uint64_t bits, int mask) const;
    cuda::Quad load(std::uint32_t at, bool transposed) const;
    void copy(std::uint32_t to, const void* from, std::uint32_t bytes, bool there) const;
    void slotAccess(int number, int slots, void* value, std::size_t bytes, bool writes) const;
    void look(const void* at, std::size_t bytes, bool writes) const;

    EmulatedKernel::State* m_state;
    int m_thread;
};

} // namespace stagewright::fake
