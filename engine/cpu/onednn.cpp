// Products by oneDNN, whose kernels are made at run time for the processor at hand. Loaded where it is installed: versions 2 and 3 have the
// same dnnl_sgemm (oneDNN's reference, "BLAS functions"), declared here, so that no header is needed to build.
#include <cstdint>

#include <dlfcn.h>

#include "engine/cpu/product_libraries.h"

namespace stagewright::cpu {

namespace {

using Sgemm = int (*)(char transposeA, char transposeB, std::int64_t rows, std::int64_t columns, std::int64_t depth, float alpha, const float* a,
                      std::int64_t aStride, const float* b, std::int64_t bStride, float beta, float* c, std::int64_t cStride);
struct Version { // the head of dnnl_version_t
    int major;
    int minor;
    int patch;
};

class OneDnn final : public Products {
public:
    // Null members: not to be used.
    OneDnn()
    {
        void* library = nullptr;
        for (const char* file : {"libdnnl.so.3", "libdnnl.so.2"})
            if (library == nullptr) library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        m_sgemm = reinterpret_cast<Sgemm>(::dlsym(library, "dnnl_sgemm"));
        m_version = reinterpret_cast<const Version* (*)()>(::dlsym(library, "dnnl_version"));
        // Debian's is built with OpenMP, whose number of threads is each calling thread's own; a sequential one has no such function.
        m_setThreads = reinterpret_cast<void (*)(int)>(::dlsym(library, "omp_set_num_threads"));
    }

    bool usable() const { return m_sgemm != nullptr && m_version != nullptr; }
    std::string_view name() const override { return "onednn"; }

    std::vector<std::pair<std::string, std::string>> facts() const override
    {
        const Version* version = m_version();
        return {{"onednn", std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch)}};
    }

    void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                  int cStride) const override
    {
        thread_local bool alone = false;
        if (!alone && m_setThreads != nullptr) m_setThreads(1);
        alone = true;
        m_sgemm(transposeA ? 'T' : 'N', transposeB ? 'T' : 'N', rows, columns, depth, alpha, a.data, a.stride, b.data, b.stride, beta, c, cStride);
    }

private:
    Sgemm m_sgemm = nullptr;
    const Version* (*m_version)() = nullptr;
    void (*m_setThreads)(int) = nullptr;
};

} // namespace

const Products* oneDnn()
{
    static const OneDnn library;
    return library.usable() ? &library : nullptr;
}

} // namespace stagewright::cpu
