// Matrix products, row-major, fp32, one thread. The only place that sees a BLAS header is blas.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stagewright::cpu {

struct Matrix {
    const float* data;
    int stride; // floats from one row to the next
};

// C (rows, columns) = alpha · A · op(B) + beta · C, inner products of length `depth`.
void multiplyByTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                          int cStride); // A (rows, depth), B (columns, depth): x · Wᵀ
void multiply(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
              int cStride); // A (rows, depth), B (depth, columns): dy · W
void multiplyTransposed(int rows, int columns, int depth, float alpha, Matrix a, Matrix b, float beta, float* c,
                        int cStride); // A (depth, rows), B (depth, columns): dyᵀ · x

// Makes the BLAS use one thread in every calling thread; safe to call again.
void useOneBlasThread();
// Name, version and chosen kernel, as far as the library reports them.
std::vector<std::pair<std::string, std::string>> blasFacts();

} // namespace stagewright::cpu
