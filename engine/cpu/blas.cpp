#include "engine/cpu/blas.h"

#include <mutex>

#include <cblas.h>

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

} // namespace

void multiplyByTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                          int cStride)
{
    const auto own = turn();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, depth, alpha, a.data, a.stride, b.data, b.stride,
                beta, c, cStride);
}

void multiply(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c, int cStride)
{
    const auto own = turn();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, alpha, a.data, a.stride, b.data,
                b.stride, beta, c, cStride);
}

void multiplyTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                        int cStride)
{
    const auto own = turn();
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows, columns, depth, alpha, a.data, a.stride, b.data, b.stride,
                beta, c, cStride);
}

void useOneBlasThread()
{
    if (openblas_set_num_threads) openblas_set_num_threads(1);
}

std::vector<std::pair<std::string, std::string>> blasFacts()
{
    std::vector<std::pair<std::string, std::string>> facts;
    facts.emplace_back("blas", openblas_get_config ? openblas_get_config() : "unnamed CBLAS");
    if (openblas_get_corename) facts.emplace_back("blas_kernel", openblas_get_corename());
    facts.emplace_back("blas_calls", needsTurns() ? "in turn: this OpenBLAS is built without locks; libopenblas0-pthread "
                                                    "lets ranks compute side by side"
                                                  : "side by side");
    return facts;
}

} // namespace stagewright::cpu
