// GEMMs by OpenBLAS, loaded when a first GEMM is asked for: started with the program, it takes threads and ends
// the process where it gets none. With little address space it asks again without end, so room for its buffers is taken
// before they are needed.
#include "engine/cpu/openblas.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <fmt/core.h>

#include "schedules/base/open_files.h"

namespace stagewright::cpu {

namespace {

// cblas.h of the reference BLAS
enum Order { RowMajor = 101 };
enum Transpose { Plain = 111, Transposed = 112 };
using Sgemm = void (*)(Order order, Transpose transposeA, Transpose transposeB, int rows, int columns, int depth,
                       float alpha, const float* a, int aStride, const float* b, int bStride, float beta, float* c,
                       int cStride);

using Dgemm = void (*)(Order order, Transpose transposeA, Transpose transposeB, int rows, int columns, int depth,
                       double alpha, const double* a, int aStride, const double* b, int bStride, double beta, double* c,
                       int cStride);
// LAPACK's Cholesky factor and the inverse by it: of Fortran, so that "L" is the upper half of a row-major matrix.
using Cholesky = void (*)(const char* half, const int* size, double* matrix, const int* stride, int* problem);

constexpr std::size_t libraryBytes = std::size_t{48} << 20; // mapped, with the libraries it needs
constexpr std::size_t bufferBytes = std::size_t{128} << 20; // mapped for each call under way, on x86-64
constexpr std::size_t spareBytes = std::size_t{8} << 20;
constexpr int mostBuffers = 64;

bool canMap(std::size_t bytes)
{
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at != MAP_FAILED && ::munmap(at, bytes) == 0;
}

// The limit of the program's address space, which is set in KiB.
std::string addressLimit()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "less is free";
    return fmt::format("less is free: the limit is {} MiB (ulimit -v {})", limit.rlim_cur >> 20, limit.rlim_cur >> 10);
}

// OpenBLAS waits without end for a buffer that can't be mapped. Its room is looked for first, but a thread that starts
// in between would take it: the C library maps 128 MiB for the heap of each. Where address space is scarce, they share
// one.
void shareHeapIfScarce()
{
    constexpr std::size_t threadBytes = std::size_t{128} << 20;
    rlimit limit{};
    if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        !canMap(mostBuffers * (bufferBytes + threadBytes)))
        ::mallopt(M_ARENA_MAX, 1);
}

constexpr std::string_view raiseLimit = "raise the limit (ulimit -v unlimited)";

// Null members: not to be used, for `problem`.
struct Library {
    Sgemm sgemm = nullptr;
    Dgemm dgemm = nullptr;
    Cholesky factorise = nullptr;
    Cholesky invert = nullptr;
    char* (*config)() = nullptr;
    char* (*coreName)() = nullptr;
    int (*parallel)() = nullptr;
    void (*setThreads)(int) = nullptr;
    void* (*takeBuffer)(int) = nullptr;
    void (*giveBuffer)(void*) = nullptr;
    Error problem{ErrorCode::Unavailable, {}, "apt-get install libopenblas0-pthread"};

    Library()
    {
        shareHeapIfScarce();
        if (!canMap(libraryBytes + spareBytes)) {
            problem.message =
                fmt::format("it needs {} MiB of address space; {}", (libraryBytes + spareBytes) >> 20, addressLimit());
            problem.remedy = raiseLimit;
            return;
        }
        // One thread: ranks are the threads. Said before it starts its own, and not to programs that are started from
        // here.
        const bool said = std::getenv("OPENBLAS_NUM_THREADS") != nullptr;
        if (!said) ::setenv("OPENBLAS_NUM_THREADS", "1", 0);
        void* library = nullptr;
        for (const char* file : {"libopenblas.so.0", "libblas.so.3"}) {
            library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
            if (library != nullptr) break;
            const char* reason = ::dlerror();
            const std::string why = reason == nullptr ? "" : reason;
            if (why.ends_with(std::strerror(EMFILE)))
                problem = *tooManyOpenFiles(EMFILE, file);
            else if (problem.message.empty())
                problem.message = why;
        }
        if (!said) ::unsetenv("OPENBLAS_NUM_THREADS");
        if (library == nullptr) return;
        const auto take = [library](auto& function, const char* name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        };
        take(sgemm, "cblas_sgemm");
        take(dgemm, "cblas_dgemm");
        take(factorise, "dpotrf_");
        take(invert, "dpotri_");
        take(config, "openblas_get_config");
        take(coreName, "openblas_get_corename");
        take(parallel, "openblas_get_parallel");
        take(setThreads, "openblas_set_num_threads");
        take(takeBuffer, "blas_memory_alloc");
        take(giveBuffer, "blas_memory_free");
        if (sgemm == nullptr) problem.message = "it has no cblas_sgemm";
        if (setThreads != nullptr) setThreads(1);
    }
};

const Library& library()
{
    static const Library loaded;
    return loaded;
}

class OpenBlas final : public Gemm {
public:
    bool usable() const { return m_library.sgemm != nullptr; }
    std::string_view name() const override { return "openblas"; }

    std::vector<std::pair<std::string, std::string>> facts() const override
    {
        std::vector<std::pair<std::string, std::string>> facts;
        facts.emplace_back("blas", m_library.config != nullptr ? m_library.config() : "unnamed CBLAS");
        if (m_library.coreName != nullptr) facts.emplace_back("blas_kernel", m_library.coreName());
        facts.emplace_back("blas_calls", m_serial
                                             ? "in turn: this OpenBLAS is built without locks; libopenblas0-pthread "
                                               "lets ranks compute side by side"
                                             : "side by side");
        return facts;
    }

    Result<void> reserve(int callers) const override
    {
        const int wanted = m_serial ? 1 : std::clamp(callers, 1, mostBuffers);
        if (m_library.takeBuffer == nullptr || m_library.giveBuffer == nullptr) return {};
        const std::lock_guard lock(m_reserving);
        if (wanted <= m_reserved) return {};
        // Those that it has already are handed out first: all are held until there are enough, and stay its own.
        std::vector<void*> held;
        bool room = true;
        while (room && static_cast<int>(held.size()) < wanted) {
            room = static_cast<int>(held.size()) < m_reserved || canMap(bufferBytes + spareBytes);
            if (room) held.push_back(m_library.takeBuffer(0));
        }
        for (void* buffer : held) m_library.giveBuffer(buffer);
        m_reserved = std::max(m_reserved, static_cast<int>(held.size()));
        if (room) return {};
        return fail(ErrorCode::Unavailable,
                    fmt::format("GEMMs of {} {} need {} MiB of address space for OpenBLAS; {}", wanted,
                                wanted == 1 ? "rank" : "ranks", (static_cast<std::size_t>(wanted) * bufferBytes) >> 20,
                                addressLimit()),
                    fmt::format("{}, use fewer ranks, or --blas onednn", raiseLimit));
    }

    void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a, Matrix b,
                  float beta, float* c, int cStride) const override
    {
        const auto own = turn();
        m_library.sgemm(RowMajor, transposeA ? Transposed : Plain, transposeB ? Transposed : Plain, rows, columns,
                        depth, alpha, a.data, a.stride, b.data, b.stride, beta, c, cStride);
    }

    // OpenBLAS built without threads has no locks either: two threads that call at once may be handed the same scratch
    // buffer and get wrong products. Where that flavour is loaded, calls take turns.
    std::unique_lock<std::mutex> turn() const
    {
        return m_serial ? std::unique_lock(m_turns) : std::unique_lock<std::mutex>();
    }

private:
    const Library& m_library = library();
    const bool m_serial = m_library.parallel != nullptr && m_library.parallel() == 0;
    mutable std::mutex m_turns;
    mutable std::mutex m_reserving;
    mutable int m_reserved = 0; // buffers that it has for certain
};

const OpenBlas& gemmOfOpenBlas()
{
    static const OpenBlas gemm;
    return gemm;
}

class OpenBlasDense final : public layers::DenseMath {
public:
    bool usable() const
    {
        return m_library.dgemm != nullptr && m_library.factorise != nullptr && m_library.invert != nullptr;
    }
    bool invert(int size, double* matrix) const override
    {
        const auto own = gemmOfOpenBlas().turn();
        int problem = 0;
        m_library.factorise("L", &size, matrix, &size, &problem);
        if (problem == 0) m_library.invert("L", &size, matrix, &size, &problem);
        if (problem != 0) return false;
        const auto n = static_cast<std::size_t>(size);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t k = 0; k < i; ++k) matrix[i * n + k] = matrix[k * n + i];
        return true;
    }
    void times(int rows, int columns, int depth, const double* a, const double* b, double* c) const override
    {
        const auto own = gemmOfOpenBlas().turn();
        m_library.dgemm(RowMajor, Plain, Plain, rows, columns, depth, 1, a, depth, b, columns, 0, c, columns);
    }

private:
    const Library& m_library = library();
};

} // namespace

const Gemm* openBlas() { return gemmOfOpenBlas().usable() ? &gemmOfOpenBlas() : nullptr; }

const layers::DenseMath* openBlasDense()
{
    static const OpenBlasDense dense;
    return dense.usable() ? &dense : nullptr;
}

Error openBlasMissing() { return Error(library().problem).with("OpenBLAS can't be loaded"); }

} // namespace stagewright::cpu
