// The attention kernels of the matrix units on the host: the grids of engine/cuda/module/flash.cu and flash_groups.cu
// over emulated blocks. Elements are bf16.
#pragma once

#include <functional>

#include "engine/cuda/flash_groups.h"
#include "tests/support/emulated_block.h"

namespace stagewright::fake {

// What tests change on a kernel before its blocks run, and look at after each.
struct FlashWatch {
    std::function<void(EmulatedKernel&)> before, after;
};

enum class FlashBy {
    Warps,
    Groups, // their GEMMs made of those of warps
};

// Throw KernelFault. Both want fitsTiles(f); inner sums are the backward's own here.
void emulateFlash(const StagewrightFlash& f, const FlashWatch& watch = {}, FlashBy by = FlashBy::Warps);
void emulateFlashBackward(const StagewrightFlash& f, const FlashWatch& watch = {}, FlashBy by = FlashBy::Warps);

} // namespace stagewright::fake
