// What CUDA devices are known for without one at hand.
#pragma once

#include "schedules/base/units.h"

namespace stagewright::cuda {

// Tokens of a sample from which attention keeps a number a row and head instead of its probabilities: 256 where tiles
// go to the matrix units (two bytes an element, heads of a multiple of 8 numbers), 4,096 where keys stream past a row,
// or what the environment's STAGEWRIGHT_CUDA_FLASH_FROM says; never for heads of over 128.
int streamFrom(int elementBytes, int headWidth);

// What each rank takes in addition to its stages: the workspace of cuBLASLt, as much as it requests on Hopper.
inline constexpr Bytes rankBytes = Bytes{32} << 20;

} // namespace stagewright::cuda
