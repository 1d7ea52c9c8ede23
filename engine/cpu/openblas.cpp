// Products by the linked CBLAS, OpenBLAS as a rule.
#include <mutex>

#include <cblas.h>

#include "engine/cpu/product_libraries.h"

// OpenBLAS only; absent where another CBLAS is linked.
extern "C" {
void openblas_set_num_threads(int count) __attribute__((weak));
int openblas_get_parallel(void) __attribute__((weak));
char* openblas_get_config(void) __attribute__((weak));
char* openblas_get_corename(void) __attribute__((weak));
}

namespace stagewright::cpu {

namespace {

// OpenBLAS built without threads has no locks either: two threads that call at once may be handed the same scratch buffer
// and get wrong products. Where that flavour is loaded, calls take turns.
bool needsTurns()
{
    static const bool serial = openblas_get_parallel && openblas_get_parallel() == 0;
    return serial;
}

std::unique_lock<std::mutex> turn()
{
    static std::mutex mutex;
    return needsTurns() ? std::unique_lock(mutex) : std::unique_lock<std::mutex>();
}

class OpenBlas final : public Products {
public:
    OpenBlas()
    {
        if (openblas_set_num_threads) openblas_set_num_threads(1); // in every calling thread
    }

    std::string_view name() const override { return "openblas"; }

    std::vector<std::pair<std::string, std::string>> facts() const override
    {
        std::vector<std::pair<std::string, std::string>> facts;
        facts.emplace_back("blas", openblas_get_config ? openblas_get_config() : "unnamed CBLAS");
        if (openblas_get_corename) facts.emplace_back("blas_kernel", openblas_get_corename());
        facts.emplace_back("blas_calls", needsTurns() ? "in turn: this OpenBLAS is built without locks; libopenblas0-pthread "
                                                        "lets ranks compute side by side"
                                                      : "side by side");
        return facts;
    }

    void multiply(bool transposeA, bool transposeB, int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                  int cStride) const override
    {
        const auto own = turn();
        cblas_sgemm(CblasRowMajor, transposeA ? CblasTrans : CblasNoTrans, transposeB ? CblasTrans : CblasNoTrans, rows, columns, depth, alpha,
                    a.data, a.stride, b.data, b.stride, beta, c, cStride);
    }
};

} // namespace

const Products& openBlas()
{
    static const OpenBlas library;
    return library;
}

} // namespace stagewright::cpu
