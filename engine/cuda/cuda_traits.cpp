#include "engine/cuda/cuda_traits.h"

#include <cstdlib>
#include <limits>

#include "engine/cuda/device_load.h"
#include "engine/device/backends.h"

namespace stagewright {
namespace {

constexpr int widestStreamedHead = 128;

StageLayout layoutIn(Precision precision)
{
    const bool bf16 = precision == Precision::Bf16 || precision == Precision::Default;
    return {bf16 ? 2 : 4, cuda::streamFrom};
}

} // namespace

int cuda::streamFrom(int elementBytes, int headWidth)
{
    if (headWidth > widestStreamedHead) return std::numeric_limits<int>::max();
    const char* text = std::getenv("STAGEWRIGHT_CUDA_FLASH_FROM");
    const int given = text ? std::atoi(text) : 0;
    if (given > 0) return given;
    return elementBytes == 2 && headWidth % 8 == 0 ? 256 : 4096;
}

const BackendTraits& backends::cudaTraits()
{
    static const BackendTraits traits{"GPUs (CUDA)", true, Precision::Bf16, 1e-4, "nccl", layoutIn, cuda::openLoad};
    return traits;
}

} // namespace stagewright
