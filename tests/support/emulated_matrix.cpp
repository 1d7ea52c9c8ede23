#include "tests/support/emulated_matrix.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <numeric>

namespace stagewright::fake {

namespace {

float cutOff(double x)
{
    const auto rounded = static_cast<float>(x);
    return std::abs(static_cast<double>(rounded)) > std::abs(x) ? std::nextafter(rounded, 0.0F) : rounded;
}

float sumCutOff(const std::array<double, 17>& terms)
{
    int largest = INT_MIN;
    for (const double term : terms) {
        if (!std::isfinite(term)) return static_cast<float>(std::accumulate(terms.begin(), terms.end(), 0.0));
        if (term != 0) largest = std::max(largest, std::ilogb(term));
    }
    if (largest == INT_MIN) return 0;
    double sum = 0; // of multiples of 2^(largest − 23), at most 17 · 2^(largest + 1): exact
    for (const double term : terms) sum += std::ldexp(std::trunc(std::ldexp(term, 23 - largest)), largest - 23);
    return cutOff(sum);
}

} // namespace

void multiplyTile(const float (&a)[16][16], const float (&b)[16][8], float (&c)[16][8], MatrixSums sums)
{
    if (sums == MatrixSums::Nearest) {
        for (int row = 0; row < 16; ++row)
            for (int k = 0; k < 16; ++k)
                for (int column = 0; column < 8; ++column) c[row][column] += a[row][k] * b[k][column];
        return;
    }
    for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 8; ++column) {
            std::array<double, 17> terms;
            for (std::size_t k = 0; k < 16; ++k)
                terms[k] = static_cast<double>(a[row][k]) * static_cast<double>(b[k][column]);
            terms[16] = static_cast<double>(c[row][column]);
            c[row][column] = sumCutOff(terms);
        }
    }
}

} // namespace stagewright::fake
