#include "engine/cpu/blas.h"

#include <cblas.h>

// OpenBLAS only; absent where another CBLAS is linked.
extern "C" {
void openblas_set_num_threads(int count) __attribute__((weak));
char* openblas_get_config(void) __attribute__((weak));
char* openblas_get_corename(void) __attribute__((weak));
}

namespace stagewright::cpu {

void multiplyByTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                          int cStride)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, columns, depth, alpha, a.data, a.stride, b.data, b.stride,
                beta, c, cStride);
}

void multiply(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c, int cStride)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, depth, alpha, a.data, a.stride, b.data,
                b.stride, beta, c, cStride);
}

void multiplyTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                        int cStride)
{
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
    return facts;
}

} // namespace stagewright::cpu
