/* The C interface between the engine and libstagewright_cuda.so, the one module that knows CUDA. Plain C types only: both
   sides may be built by different compilers. The module exports one function, stagewright_cuda_module(); the program loads it
   with dlopen on demand, so that it starts where there is no driver, toolkit or GPU. Whoever changes anything here raises
   STAGEWRIGHT_CUDA_ABI; tableBytes tells apart builds between two versions.

   Functions that return int: 0 is done; anything else failed, and lastError() of the same thread says why. */
#ifndef STAGEWRIGHT_CUDA_MODULE_ABI_H
#define STAGEWRIGHT_CUDA_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAGEWRIGHT_CUDA_ABI 1u
#define STAGEWRIGHT_CUDA_MODULE_FUNCTION "stagewright_cuda_module"

enum {
    STAGEWRIGHT_CUDA_TEXT = 192,
    STAGEWRIGHT_CUDA_MINIMUM_MAJOR = 8 /* compute capability: bfloat16 matrix units */
};

typedef struct StagewrightCudaFacts {
    int32_t runtimeVersion;  /* 13000: CUDA 13.0 */
    int32_t driverVersion;   /* the newest runtime that the driver carries; 0: there is no driver */
    uint64_t matrixVersion;  /* of cuBLASLt */
    int32_t collectiveVersion; /* of NCCL; 0: not found */
    int32_t reserved;
    char moduleVersion[STAGEWRIGHT_CUDA_TEXT]; /* of the program it was built with */
    char architectures[STAGEWRIGHT_CUDA_TEXT]; /* compiled for: "80 90 100" */
    char driverMissing[STAGEWRIGHT_CUDA_TEXT]; /* why there is no usable device at all; empty: nothing stands against it */
} StagewrightCudaFacts;

typedef struct StagewrightCudaDevice {
    char name[STAGEWRIGHT_CUDA_TEXT];
    char reason[STAGEWRIGHT_CUDA_TEXT]; /* why it is not usable; empty: it is */
    int32_t major; /* compute capability */
    int32_t minor;
    int32_t multiprocessors;
    int32_t greenContexts; /* 1: the driver can partition it */
    uint64_t totalBytes;
    uint64_t freeBytes;
} StagewrightCudaDevice;

typedef struct StagewrightCudaTable {
    uint32_t abi;        /* STAGEWRIGHT_CUDA_ABI of the module */
    uint32_t tableBytes; /* sizeof(StagewrightCudaTable), StagewrightCudaFacts, StagewrightCudaDevice there */
    uint32_t factsBytes;
    uint32_t deviceBytes;

    const char* (*lastError)(void);
    int (*facts)(StagewrightCudaFacts* out);
    int (*deviceCount)(int32_t* out); /* fails where there is no driver; 0 devices is no failure */
    int (*describe)(int32_t device, StagewrightCudaDevice* out);
} StagewrightCudaTable;

/* The module's table, for ever valid. The module may be of any version: the caller looks at the first two members. */
typedef const StagewrightCudaTable* (*StagewrightCudaModuleFunction)(void);

#ifdef __cplusplus
}
#endif

#endif
