// GEMMs by oneDNN, whose kernels are made at run time for the processor at hand. Loaded where it is installed:
// versions 2 and 3 have the same dnnl_sgemm (oneDNN's reference, "BLAS functions"), declared here, so that no header is
// needed to build.
#include "engine/cpu/onednn.h"

#include <cstdint>

#include <dlfcn.h>

namespace stagewright::cpu {

namespace {

using Sgemm = int (*)(char transposeA, char transposeB, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                      float alpha, const float* a, std::int64_t aStride, const float* b, std::int64_t bStride,
                      float beta, float* c, std::int64_t cStride);
struct Version { // the head of dnnl_version_t
    int major;
    int minor;
    int patch;
};

// Exported by versions 2 and 3, though in no header: their own tests call it.
using GemmBf16 = int (*)(char transposeA, char transposeB, std::int64_t rows, std::int64_t columns, std::int64_t depth,
                         float alpha, const layers::BFloat16* a, std::int64_t aStride, const layers::BFloat16* b,
                         std::int64_t bStride, float beta, float* c, std::int64_t cStride);

// Null members: not to be used.
struct Library {
    Sgemm sgemm = nullptr;
    GemmBf16 gemmBf16 = nullptr;
    const Version* (*version)() = nullptr;
    void (*setThreads)(int) = nullptr;

    Library()
    {
        void* library = nullptr;
        for (const char* file : {"libdnnl.so.3", "libdnnl.so.3.6", "libdnnl.so.2"}) // Debian 13 has the second
            if (library == nullptr) library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        sgemm = reinterpret_cast<Sgemm>(::dlsym(library, "dnnl_sgemm"));
        gemmBf16 = reinterpret_cast<GemmBf16>(::dlsym(library, "dnnl_gemm_bf16bf16f32"));
        version = reinterpret_cast<const Version* (*)()>(::dlsym(library, "dnnl_version"));
        // Debian's is built with OpenMP, whose number of threads is each calling thread's own; a sequential one has no
        // such function.
        setThreads = reinterpret_cast<void (*)(int)>(::dlsym(library, "omp_set_num_threads"));
    }
    void oneThread() const
    {
        thread_local bool alone = false;
        if (!alone && setThreads != nullptr) setThreads(1);
        alone = true;
    }
    std::vector<std::pair<std::string, std::string>> facts() const
    {
        const Version* v = version();
        return {{"onednn", std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch)}};
    }
};

const Library& library()
{
    static const Library loaded;
    return loaded;
}

class OneDnn final : public Gemm {
public:
    bool usable() const { return m_library.sgemm != nullptr && m_library.version != nullptr; }
    std::string_view name() const override { return "onednn"; }
    std::vector<std::pair<std::string, std::string>> facts() const override { return m_library.facts(); }
    void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a, Matrix b,
                  float beta, float* c, int cStride) const override
    {
        m_library.oneThread();
        m_library.sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', rows, columns, depth, alpha, a.data, a.stride,
                        b.data, b.stride, beta, c, cStride);
    }

private:
    const Library& m_library = library();
};

class OneDnnBf16 final : public Bf16Gemm {
public:
    // It refuses processors that it has no kernel for.
    bool usable() const
    {
        if (m_library.gemmBf16 == nullptr || m_library.version == nullptr) return false;
        m_library.oneThread();
        const layers::BFloat16 one{0x3f80};
        float gemm = 0;
        return m_library.gemmBf16('N', 'N', 1, 1, 1, 1.0F, &one, 1, &one, 1, 0.0F, &gemm, 1) == 0 && gemm == 1.0F;
    }
    std::vector<std::pair<std::string, std::string>> facts() const override { return m_library.facts(); }
    void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a, Matrix b,
                  float beta, float* c, int cStride) const override
    {
        m_library.oneThread();
        m_library.gemmBf16(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', rows, columns, depth, alpha, a.data,
                           a.stride, b.data, b.stride, beta, c, cStride);
    }

private:
    const Library& m_library = library();
};

} // namespace

const Gemm* oneDnn()
{
    static const OneDnn gemm;
    return gemm.usable() ? &gemm : nullptr;
}

const Bf16Gemm* oneDnnBf16()
{
    static const OneDnnBf16 gemm;
    static const bool usable = gemm.usable();
    return usable ? &gemm : nullptr;
}

} // namespace stagewright::cpu
