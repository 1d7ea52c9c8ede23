// How the module's functions fail: a text of this thread, and 1.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace stagewright::cuda::module {

std::string& lastErrorText(); // of this thread

inline int failed(std::string text)
{
    lastErrorText() = std::move(text);
    return 1;
}

inline int check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return 0;
    (void)cudaGetLastError(); // not sticky: the next call starts clean
    return failed(std::string(what) + ": " + cudaGetErrorString(status));
}

inline int check(cublasStatus_t status, const char* what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return failed(std::string(what) + ": " + cublasLtGetStatusString(status));
}

} // namespace stagewright::cuda::module
