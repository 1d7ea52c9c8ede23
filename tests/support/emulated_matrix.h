// What a matrix unit computes, on the host.
#pragma once

namespace stagewright::fake {

// How sums of products come to be rounded: each addition to the nearest fp32, in order; or as was measured on GPUs
// (Fasi, Higham, Mikaitis, Pranesh: Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330, 2021):
// exact GEMMs and the old sum are shifted to the largest exponent among them, cut off (here with no bit beyond
// fp32's 24, the least that any has), added at once, and the sum is cut off too.
enum class MatrixSums {
    Nearest,
    CutOff,
};

// c += a · b
void multiplyTile(const float (&a)[16][16], const float (&b)[16][8], float (&c)[16][8], MatrixSums sums);

} // namespace stagewright::fake
